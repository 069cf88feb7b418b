//! Long work while Python goes on: without the GIL, with progress, and ended by Ctrl-C.

use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;
use twill_driver::Observer;

/// How often Python is asked whether somebody pressed Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(50);
/// Stack of a worker: kernels may be nested deeply.
const STACK: usize = 64 << 20;

/// Passes on what a person may want to know.
pub(crate) struct ProgressReporter(Option<Sender<String>>);

impl Observer for ProgressReporter {
    fn progress(&mut self, progress: &twill_driver::Progress) {
        self.note(&progress.to_string());
    }

    fn say(&mut self, what: &str) {
        self.note(what);
    }

    fn note(&mut self, text: &str) {
        if let Some(sender) = &self.0 {
            // Nobody is hurt when nobody listens any more.
            let _ = sender.send(text.to_owned());
        }
    }
}

/// Does `work` without the GIL. `progress`, if there is one, is called with what is going on. Where that or a signal's handler
/// raises, the work is asked to stop, and what was raised is raised when it has.
///
/// # Errors
/// What was raised meanwhile.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(Arc<AtomicBool>, &mut ProgressReporter) -> T + Send,
) -> PyResult<T> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let (sender, mut receiver) = mpsc::channel::<String>();
    let (flag, tells) = (Arc::clone(&interrupt), progress.is_some());
    thread::scope(|scope| {
        let body = move || {
            // The channel closes with the work, also where nobody is told anything.
            let done = sender;
            work(flag, &mut ProgressReporter(tells.then(|| done.clone())))
        };
        let worker = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, body)?;
        let mut raised = None;
        loop {
            let told;
            (receiver, told) = py.detach(move || listen(receiver));
            let heard = match told {
                Ok(text) => progress.map_or(Ok(()), |progress| progress.call1(py, (text,)).map(|_| ())),
                Err(RecvTimeoutError::Timeout) => py.check_signals(),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if let Err(error) = heard {
                interrupt.store(true, Ordering::Relaxed);
                raised.get_or_insert(error);
            }
        }
        let result = worker.join().map_err(|_| pyo3::exceptions::PyRuntimeError::new_err(DEFECT))?;
        raised.map_or(Ok(result), Err)
    })
}

const DEFECT: &str = "Twill has stopped unexpectedly; this is a defect of Twill, please report it";

fn listen(receiver: Receiver<String>) -> (Receiver<String>, Result<String, RecvTimeoutError>) {
    let told = receiver.recv_timeout(PATIENCE);
    (receiver, told)
}
