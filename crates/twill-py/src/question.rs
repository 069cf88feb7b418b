//! What is asked: an input, a machine, and options.

use crate::errors::{of_driver, wrong};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use twill_driver::options::CompileOptions;
use twill_driver::{Cache, Input, Options, Request};
use twill_exact::SearchOptions;
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
    /// Options by keywords, such as `{"sub_tiles": 2}`.
    options: Keywords,
}

/// A dictionary of keyword arguments.
pub(crate) struct Keywords(pub(crate) Map<String, Value>);

impl<'py> FromPyObject<'_, 'py> for Keywords {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Keywords> {
        let given = given.cast::<PyDict>()?;
        let each = given.iter().map(|(name, value)| Ok((name.extract()?, plain(&value)?)));
        Ok(Keywords(each.collect::<PyResult<_>>()?))
    }
}

/// A value as JSON has it; what it has not is its text.
fn plain(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    let each =
        |all: &mut dyn Iterator<Item = Bound<'_, PyAny>>| all.map(|one| plain(&one)).collect::<PyResult<Vec<_>>>();
    Ok(if value.is_none() {
        Value::Null
    } else if let Ok(is_on) = value.cast::<PyBool>() {
        Value::Bool(is_on.is_true())
    } else if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        // Numbers of any size and kind: text of one that JSON has is one.
        let text = value.str()?.to_string();
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    } else if let Ok(text) = value.cast::<PyString>() {
        Value::String(text.to_string())
    } else if let Ok(all) = value.cast::<PyList>() {
        Value::Array(each(&mut all.iter())?)
    } else if let Ok(all) = value.cast::<PyTuple>() {
        Value::Array(each(&mut all.iter())?)
    } else {
        Value::String(value.str()?.to_string())
    })
}

/// Options, and how to search with them.
#[derive(Clone, Debug)]
pub(crate) struct Requested(pub(crate) Options);

impl Requested {
    /// How hard to search, until `interrupt` is set.
    pub(crate) fn search(&self, interrupt: Arc<AtomicBool>) -> SearchOptions {
        self.0.search.search(Instant::now(), interrupt)
    }

    /// How hard to search for code, until `interrupt` is set.
    pub(crate) fn search_for_code(&self, interrupt: Arc<AtomicBool>) -> SearchOptions {
        self.0.search.patient().search(Instant::now(), interrupt)
    }

    /// Code generation; `command` is what generates the kernel again.
    pub(crate) fn code(&self, command: &str) -> CompileOptions {
        CompileOptions { command: command.to_owned(), ..self.0.code.clone() }
    }

    /// The cache, if these options use it.
    pub(crate) fn cache(&self) -> Option<Cache> {
        Cache::of_environment(|name| std::env::var_os(name)).filter(|_| !self.0.search.no_cache)
    }
}

impl Question {
    /// What is asked for, and how.
    pub(crate) fn read(&self, py: Python<'_>) -> PyResult<(Request, Requested)> {
        let options = Options::from_keywords(&self.options.0).map_err(|error| wrong(py, error))?;
        let input = match self.kind.as_str() {
            "kernel" => Input::kernel(&self.name, &self.text),
            "graph" => Input::graph(&self.name, &self.text).map_err(|error| of_driver(py, &error))?,
            _ => Input::builtin(&self.name)
                .ok_or_else(|| wrong(py, format!("no built-in graph is named `{}`", self.name)))?,
        };
        let machine = self.machine.as_deref().map(|text| machine(py, text)).transpose()?;
        let request = options.request(input, machine).map_err(|error| wrong(py, error))?;
        Ok((request, Requested(options)))
    }
}

/// A machine of the text of its file.
pub(crate) fn machine(py: Python<'_>, text: &str) -> PyResult<Machine> {
    twill_machine::check(text, "machine")
        .map_err(|errors| wrong(py, errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")))
}
