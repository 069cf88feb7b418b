//! Exceptions: the classes of `twill_gpu.errors`, with the place in the user's source.

use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use std::fmt::Display;
use twill_graph::Source;

/// Something is wrong with what was given.
pub(crate) fn wrong(py: Python<'_>, message: impl Display) -> PyErr {
    of_class(py, "InputError", &message.to_string(), None)
}

/// There is no schedule; proved.
pub(crate) fn infeasible(py: Python<'_>, message: impl Display) -> PyErr {
    of_class(py, "InfeasibleError", &message.to_string(), None)
}

/// Nothing was found within the budget.
pub(crate) fn stopped(py: Python<'_>, message: impl Display) -> PyErr {
    of_class(py, "BudgetError", &message.to_string(), None)
}

/// What the driver says. What says nothing about a kernel is an error of the system.
pub(crate) fn of_driver(py: Python<'_>, error: &twill_driver::Error) -> PyErr {
    if matches!(error, twill_driver::Error::Interrupted { .. } | twill_driver::Error::Scratch { .. }) {
        return PyOSError::new_err(error.to_string());
    }
    of_class(py, "InputError", &error.to_string(), error.source_line())
}

fn of_class(py: Python<'_>, name: &str, message: &str, source: Option<&Source>) -> PyErr {
    let make = || {
        let place = source.map(|source| (source.file.clone(), source.line));
        let class = py.import("twill_gpu.errors")?.getattr(name)?;
        class.call1((message, place))
    };
    make().map_or_else(|_: PyErr| PyRuntimeError::new_err(message.to_owned()), PyErr::from_value)
}
