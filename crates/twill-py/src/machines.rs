//! Machine descriptions.

use crate::errors::wrong;
use crate::question::machine;
use pyo3::prelude::*;
use twill_machine::Machine;

/// Names of the machines that come with Twill.
#[pyfunction]
pub(crate) fn machine_names() -> Vec<&'static str> {
    twill_machine::builtin_names().collect()
}

/// A machine as a complete file: a built-in one by its name, or a file by its path, or `text` itself, checked.
#[pyfunction]
#[pyo3(signature = (name, text=None))]
pub(crate) fn machine_text(py: Python<'_>, name: &str, text: Option<&str>) -> PyResult<String> {
    let machine = match text {
        Some(text) => machine(py, text)?,
        None => Machine::load(name).map_err(|error| wrong(py, error))?,
    };
    Ok(machine.to_toml())
}

type Number = (String, f64, &'static str, &'static str, String);

/// Every number of a machine's file: key, value, unit, provenance, source.
#[pyfunction]
pub(crate) fn machine_numbers(py: Python<'_>, text: &str) -> PyResult<Vec<Number>> {
    let machine = machine(py, text)?;
    let row =
        |row: &twill_machine::Row| (row.key.clone(), row.value, row.unit, row.provenance.key(), row.source.clone());
    Ok(machine.rows().map(row).collect())
}

/// The header of generated kernels in CUDA, for microbenchmarks.
#[pyfunction]
pub(crate) fn cuda_primitives() -> &'static str {
    twill_backend::cuda::PRIMITIVES
}
