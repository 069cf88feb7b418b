//! Kernels in Python source, `FILE.py::KERNEL`: Triton's front end, in Python, makes their TTIR.

use crate::arguments::PythonArguments;
use crate::error::Error;
use crate::python;
use std::path::Path;
use twill_driver::Input;
use twill_driver::files::named;

/// What stands between a file and a function of it.
const PARTED: &str = "::";

/// Whether an input is a function of a Python file.
pub(crate) fn is_python(input: &str) -> bool {
    input
        .rsplit_once(PARTED)
        .is_some_and(|(file, name)| Path::new(file).extension().is_some_and(|kind| kind == "py") && !name.is_empty())
}

/// The input of this name: a file, standard input, a built-in graph, or a function of a Python file.
///
/// # Errors
/// When there is none, it does not read, or Triton makes no TTIR of it.
pub(crate) fn input(name: &str, given: &PythonArguments, machine: Option<&str>) -> Result<Input, Error> {
    if !is_python(name) {
        let option = if given.call.is_some() { Some("call") } else { (!given.args.is_empty()).then_some("arg") };
        return match option {
            Some(option) => Err(Error::OnlyForPython { input: name.to_owned(), option }),
            None => Ok(named(name)?),
        };
    }
    let mut words = vec![name.to_owned()];
    words.extend(given.args.iter().map(|arg| format!("--arg={arg}")));
    words.extend(given.call.iter().map(|script| format!("--call={}", script.display())));
    words.extend(machine.iter().map(|machine| format!("--machine={machine}")));
    Ok(Input::kernel(name, python::output(python::Module::Ttir, name, &words)?))
}
