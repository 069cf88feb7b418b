//! What is requested: an input, a machine, and options.

use crate::errors::{of_driver, wrong};
use pyo3::prelude::*;
use twill_cli::Requested;
use twill_driver::{Cache, Input, Request};
use twill_machine::Machine;

/// An input, a machine, and options, as Python passes them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Question {
    /// `kernel`, `graph` or `builtin`.
    kind: String,
    /// What errors call the input; of a built-in graph, its name.
    name: String,
    /// TTIR, or a loop graph's JSON.
    text: String,
    /// The text of a machine file.
    machine: Option<String>,
    /// As the command has them, such as `--sub-tiles=2`.
    options: Vec<String>,
}

impl Question {
    /// What is asked for, and how.
    pub(crate) fn read(&self, py: Python<'_>) -> PyResult<(Request, Requested)> {
        let requested = Requested::read(&self.options).map_err(|error| wrong(py, error))?;
        let input = match self.kind.as_str() {
            "kernel" => Input::kernel(&self.name, &self.text),
            "graph" => Input::graph(&self.name, &self.text).map_err(|error| of_driver(py, &error))?,
            _ => Input::builtin(&self.name)
                .ok_or_else(|| wrong(py, format!("no built-in graph is named `{}`", self.name)))?,
        };
        let machine = self.machine.as_deref().map(|text| machine(py, text)).transpose()?;
        let request = requested.request(input, machine).map_err(|error| wrong(py, error))?;
        Ok((request, requested))
    }
}

/// A machine of the text of its file.
pub(crate) fn machine(py: Python<'_>, text: &str) -> PyResult<Machine> {
    twill_machine::check(text, "machine")
        .map_err(|errors| wrong(py, errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")))
}

/// The cache of these options.
pub(crate) fn cache(requested: &Requested) -> Option<Cache> {
    Cache::of_environment(|name| std::env::var_os(name)).filter(|_| requested.is_cached())
}
