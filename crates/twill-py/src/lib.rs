//! What the Python package `twill_gpu` asks of Twill: plain data in, plain data out (text, JSON as `docs/formats.md` has it).
//!
//! The package makes objects of it. Whatever may take long releases the GIL, tells how far it is, and ends at Ctrl-C
//! ([`task`]). Options are those of [`twill_driver::options`], by
//! keywords. Nothing here needs the `twill` command; a wheel has it besides (feature `command`).

mod answers;
mod arguments;
mod decision;
mod errors;
mod launches;
mod machines;
mod question;
mod settled_calls;
mod task;
mod tuner_run;

use pyo3::prelude::pymodule;

/// What is behind `twill_gpu`.
#[pymodule]
mod _twill {
    #[cfg(feature = "command")]
    #[pymodule_export]
    use super::answers::run_command;
    #[pymodule_export]
    use super::answers::{
        cache_clear, cache_folder, cache_info, cached, check, compile, explain, fit, gaus, lower, option_names,
        pseudocode, report, schedule, timeline, timeline_svg, top, wrong_option,
    };
    #[pymodule_export]
    use super::launches::{SettledLauncher, Switch, is_suspended, resume, set_in_call, suspend};
    #[pymodule_export]
    use super::machines::{cuda_primitives, machine_names, machine_numbers, machine_text};
    #[pymodule_export]
    use super::settled_calls::SettledCalls;
    #[pymodule_export]
    use super::tuner_run::TunerRun;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("MOST_BITS", super::decision::MOST_BITS)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
