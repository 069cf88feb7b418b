//! What stands in the place of a compiled kernel's launcher while Twill is active: launches of which all is settled.
//!
//! Nearly all launches are of this kind, so what is done here is what Twill costs. All others are `launches.Runner`'s, in Python,
//! which says what is settled by them, and when that is settled no longer.

use crate::arguments::{Arguments, position, whole};
use crate::decision::{
    Decision, FUNCTION_AND_HOOKS, GRID_AND_STREAM, Kernel, LaunchFunction, Launched, OpenContest, OtherConfiguration,
    Plan, Settled, Side, class, joined, locked,
};
use pyo3::exceptions::{
    PyArithmeticError, PyAttributeError, PyLookupError, PyMemoryError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Classes of launches that are remembered, and plans of a kernel.
const REMEMBERED: usize = 1024;

thread_local! {
    /// How many of those who want stock Triton's launches this thread is within.
    static SUSPENDED: Cell<u32> = const { Cell::new(0) };
    /// It is in a call of an autotuner that is not settled.
    static IN_CALL: Cell<bool> = const { Cell::new(false) };
}

/// Leaves this thread's launches to stock Triton, until `resume` was called as often.
#[pyfunction]
pub(crate) fn suspend() {
    SUSPENDED.set(SUSPENDED.get() + 1);
}

/// Ends what `suspend` began.
#[pyfunction]
pub(crate) fn resume() {
    SUSPENDED.set(SUSPENDED.get().saturating_sub(1));
}

/// Whether this thread's launches are left to stock Triton.
#[pyfunction]
pub(crate) fn is_suspended() -> bool {
    SUSPENDED.get() > 0
}

/// Says whether this thread is in a call of an autotuner that has a part in its launches.
#[pyfunction]
pub(crate) fn set_in_call(is_in: bool) {
    IN_CALL.set(is_in);
}

/// Whether this thread is in a call of an autotuner that has a part in its launches.
pub(crate) fn is_in_call() -> bool {
    IN_CALL.get()
}

/// Whether launches are Twill's business: off while it is paused, and once it has ended.
#[pyclass(frozen, module = "twill_gpu._twill")]
pub(crate) struct Switch(AtomicBool);

#[pymethods]
impl Switch {
    #[new]
    fn new() -> Self {
        Self(AtomicBool::new(true))
    }

    /// Turns it on or off.
    fn turn(&self, on: bool) {
        self.0.store(on, Ordering::Relaxed);
    }
}

impl Switch {
    /// Whether it is on.
    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A launcher of a compiled kernel: it takes three numbers of programs, a stream, and more arguments, the last of them those
/// of the kernel.
#[pyclass(frozen, module = "twill_gpu._twill")]
pub(crate) struct SettledLauncher {
    /// Makes all launches that are not settled.
    runner: Py<PyAny>,
    /// The launcher of stock Triton, with the same arguments.
    #[pyo3(get)]
    original: Py<PyAny>,
    launch_function: Option<LaunchFunction>,
    activity: Py<PyAny>,
    switch: Py<Switch>,
    /// `triton.knobs`, whose `runtime` has the hooks.
    knobs: Py<PyAny>,
    names: Vec<String>,
    /// Arguments after the stream and before those of the kernel.
    before: usize,
    /// The device that the kernel is loaded on, where there are several.
    device: Option<i64>,
    /// There is nothing but stock Triton's launcher, and its launches are counted here.
    alone: PyOnceLock<Arc<Side>>,
    asks_capture: PyOnceLock<Py<PyAny>>,
    epoch: AtomicU64,
    settled: Mutex<Settled>,
    counted: Mutex<Vec<Arc<Side>>>,
}

/// Who makes a launch.
enum Turn<'py> {
    /// Stock Triton, as if there were nothing else.
    Left,
    Stock(Arc<Side>),
    /// A side by what is called with these arguments.
    Other(Bound<'py, PyAny>, Bound<'py, PyTuple>, Arc<Side>),
    /// Somebody has to look at it.
    Unsettled,
}

#[pymethods]
impl SettledLauncher {
    /// launch_function: what the original calls in the end, if that can be called at once; device: as in the struct; the rest is the
    /// `Runner`'s.
    #[new]
    fn new(
        runner: Py<PyAny>,
        original: Py<PyAny>,
        launch_function: Option<LaunchFunction>,
        activity: &Bound<'_, PyAny>,
        names: Vec<String>,
        before: usize,
        device: Option<i64>,
    ) -> PyResult<Self> {
        Ok(Self {
            runner,
            original,
            launch_function: if before == FUNCTION_AND_HOOKS { launch_function } else { None },
            switch: activity.getattr("switch")?.cast::<Switch>()?.clone().unbind(),
            knobs: activity.getattr("triton")?.getattr("knobs")?.unbind(),
            activity: activity.clone().unbind(),
            names,
            before,
            device,
            alone: PyOnceLock::new(),
            asks_capture: PyOnceLock::new(),
            epoch: AtomicU64::new(0),
            settled: Mutex::default(),
            counted: Mutex::default(),
        })
    }

    #[pyo3(signature = (*args))]
    fn __call__<'py>(&self, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let left = |error: PyErr| match was_not_launched(py, &error) {
            // What has to be said is said where it is tried again.
            true => self.runner.bind(py).call1(args),
            false => Err(error),
        };
        match self.turn(args) {
            Ok(Turn::Left) => self.original.bind(py).call1(args),
            Ok(Turn::Stock(side)) => {
                let result = match &self.launch_function {
                    Some(launch) => {
                        let own = [4, 5, 6, 7, 8].map(|at| args.get_item(at));
                        let all = launch.arguments(args, GRID_AND_STREAM + FUNCTION_AND_HOOKS, own)?;
                        launch.0.bind(py).call1(all)
                    }
                    None => self.original.bind(py).call1(args),
                }?;
                self.count(args, &side);
                Ok(result)
            }
            Ok(Turn::Other(launch, all, side)) => match launch.call1(all) {
                Ok(result) => {
                    self.count(args, &side);
                    Ok(result)
                }
                Err(error) => left(error),
            },
            Ok(Turn::Unsettled) => self.runner.bind(py).call1(args),
            Err(error) => left(error),
        }
    }

    /// Changes with each `forget`: what was found out before is settled no longer.
    #[getter]
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Forgets all that is settled.
    fn forget(&self) {
        let mut settled = locked(&self.settled);
        self.epoch.fetch_add(1, Ordering::AcqRel);
        let before = std::mem::take(&mut *settled);
        drop(settled);
        // What that lets go of may call whom it likes.
        drop(before);
    }

    /// Leaves all launches to the launcher of stock Triton: there is no other, and none will be.
    fn leave(&self, py: Python<'_>, side: &str) {
        let side = self.side(side);
        self.alone.get_or_init(py, || side);
    }

    /// Launches like this one are stock Triton's; with a contest, until that wants to try another one.
    ///
    /// Whether it is settled: arguments may be of kinds that are looked at each time.
    #[pyo3(signature = (launched, contest=None))]
    fn settle_stock(&self, launched: Launched<'_>, contest: Option<Py<PyAny>>) -> PyResult<bool> {
        self.settle(&launched, |side| match contest {
            Some(contest) => Decision::Open(Arc::new(OpenContest { contest, left: AtomicI64::new(0) }), side),
            None => Decision::Stock(side),
        })
    }

    /// Launches like this one are those of what stock Triton compiled with other stages and warps.
    ///
    /// direct: its launcher, function and metadata, and what the launcher calls in the end, if that can be called at once.
    fn settle_other(&self, launched: Launched<'_>, direct: OtherConfiguration) -> PyResult<bool> {
        self.settle(&launched, |side| Decision::Other(Arc::new(direct), side))
    }

    /// Launches like this one are a kernel's of Twill.
    ///
    /// reading: how it reads arguments; plan: what launches by the plan for these, on a stream, with what the plan leaves open; or
    /// what makes arguments of that, and the function that takes them.
    fn settle_own(&self, launched: Launched<'_>, reading: &Bound<'_, PyAny>, plan: Plan) -> PyResult<bool> {
        let known =
            locked(&self.settled).kernels.iter().find(|(of, _)| of.is(reading)).map(|(_, known)| Arc::clone(known));
        let kernel = match known {
            Some(known) => known,
            None => Arc::new(Kernel {
                arguments: Arguments::new(reading, &self.names, GRID_AND_STREAM + self.before)?,
                plans: Mutex::default(),
            }),
        };
        let Some((form, _)) = kernel.arguments.read(&launched.0)? else { return Ok(false) };
        let before = {
            let mut plans = locked(&kernel.plans);
            let full = plans.len() >= REMEMBERED;
            let before = if full { std::mem::take(&mut *plans) } else { HashMap::new() };
            (plans.insert(form.into(), Arc::new(plan)), before)
        };
        drop(before);
        let is_settled = self.settle(&launched, |side| Decision::Own(Arc::clone(&kernel), side))?;
        let mut settled = locked(&self.settled);
        if self.epoch() == launched.2 && !settled.kernels.iter().any(|(of, _)| of.is(reading)) {
            settled.kernels.push((reading.clone().unbind(), kernel));
        }
        Ok(is_settled)
    }

    /// Launches that were settled, by side: all, and those into CUDA graphs.
    fn counts(&self) -> Vec<(String, u64, u64)> {
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let counted = locked(&self.counted);
        counted.iter().map(|one| (one.name.clone(), count(&one.launched), count(&one.captured))).collect()
    }

    /// Whoever asks a launcher what it is.
    fn __getattr__<'py>(&self, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        self.original.bind(name.py()).getattr(name)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for object in [&self.runner, &self.original, &self.activity, &self.knobs] {
            visit.call(object)?;
        }
        // What is being changed is not garbage.
        let Ok(settled) = self.settled.try_lock() else { return Ok(()) };
        for decision in settled.classes.values() {
            if let Decision::Open(open, _) = decision {
                visit.call(&open.contest)?;
            }
        }
        Ok(())
    }
}

impl SettledLauncher {
    /// Whose launch it is; where it is a kernel's of Twill, that is launched.
    fn turn<'py>(&self, args: &Bound<'py, PyTuple>) -> PyResult<Turn<'py>> {
        let py = args.py();
        let is_in_call = IN_CALL.get();
        if is_suspended() || !self.switch.get().is_on() {
            // An autotuner may want to know of it.
            return Ok(if is_in_call { Turn::Unsettled } else { Turn::Left });
        }
        if is_in_call || args.len() != GRID_AND_STREAM + self.before + self.names.len() {
            return Ok(Turn::Unsettled);
        }
        if let Some(side) = self.alone.get(py) {
            return Ok(Turn::Stock(Arc::clone(side)));
        }
        let numbers = Arc::clone(&locked(&self.settled).numbers);
        // Without a lock: a number of more than 64 bits makes an exception, and with that Python may collect garbage.
        let Some(class) = class(args, &numbers)? else { return Ok(Turn::Unsettled) };
        let decision = {
            let settled = locked(&self.settled);
            let known = settled.classes.get(&class).filter(|_| Arc::ptr_eq(&settled.numbers, &numbers));
            match known {
                Some(decision) => decision.clone(),
                None => return Ok(Turn::Unsettled),
            }
        };
        match decision {
            Decision::Stock(side) => Ok(Turn::Stock(side)),
            Decision::Open(open, side) => Ok(if open.rests(py)? { Turn::Stock(side) } else { Turn::Unsettled }),
            _ if self.is_hooked(py)? || self.is_elsewhere(py)? => Ok(Turn::Unsettled),
            Decision::Own(kernel, side) => {
                let Some((form, varying)) = kernel.arguments.read(args)? else { return Ok(Turn::Unsettled) };
                let plan = locked(&kernel.plans).get(&*form).cloned();
                let Some(plan) = plan else { return Ok(Turn::Unsettled) };
                let open = (args.get_item(GRID_AND_STREAM - 1)?, varying).into_pyobject(py)?;
                let Plan(launch, function) = &*plan;
                let (launch, all) = match function {
                    // No line of Python is between the launch and the application: there, a signal's handler could raise what
                    // looks like a launch that failed.
                    Some(function) => (function, launch.bind(py).call1(open)?.cast_into::<PyTuple>()?),
                    None => (launch, open),
                };
                Ok(Turn::Other(launch.bind(py).clone(), all, side))
            }
            Decision::Other(other, side) => {
                let OtherConfiguration(launcher, function, metadata, launch) = &*other;
                // There are no hooks that want to know more.
                let none = || Ok(py.None().into_bound(py));
                let own = [Ok(function.bind(py).clone()), Ok(metadata.bind(py).clone()), none(), none(), none()];
                let rest = GRID_AND_STREAM + self.before;
                Ok(match launch {
                    Some(launch) => Turn::Other(launch.0.bind(py).clone(), launch.arguments(args, rest, own)?, side),
                    None => Turn::Other(launcher.bind(py).clone(), joined(args, rest, own)?, side),
                })
            }
        }
    }

    /// Remembers whose launches like this one are, unless something has changed meanwhile.
    fn settle(&self, launched: &Launched<'_>, decision: impl FnOnce(Arc<Side>) -> Decision) -> PyResult<bool> {
        let Launched(args, numbers, epoch, side) = launched;
        let first = GRID_AND_STREAM + self.before;
        let numbers: Vec<usize> =
            numbers.iter().map(|name| position(&self.names, first, name)).collect::<PyResult<_>>()?;
        let Some(class) = class(args, &numbers)? else { return Ok(false) };
        let decision = decision(self.side(side));
        let mut before = HashMap::new();
        let mut settled = locked(&self.settled);
        if self.epoch() != *epoch {
            return Ok(false);
        }
        if *settled.numbers != *numbers || settled.classes.len() >= REMEMBERED {
            before = std::mem::take(&mut settled.classes);
            settled.numbers = numbers.into();
        }
        let replaced = settled.classes.insert(class, decision);
        drop(settled);
        drop((before, replaced));
        Ok(true)
    }

    /// A side by its name.
    fn side(&self, name: &str) -> Arc<Side> {
        let mut counted = locked(&self.counted);
        if let Some(known) = counted.iter().find(|one| one.name == name) {
            return Arc::clone(known);
        }
        let made = Arc::new(Side { name: name.to_owned(), launched: AtomicU64::new(0), captured: AtomicU64::new(0) });
        counted.push(Arc::clone(&made));
        made
    }

    /// Counts a launch by a side.
    fn count(&self, args: &Bound<'_, PyTuple>, side: &Side) {
        side.launched.fetch_add(1, Ordering::Relaxed);
        // The legacy default stream has the handle 0, and is never captured.
        let is_default = args.get_item(GRID_AND_STREAM - 1).is_ok_and(|stream| matches!(whole(&stream), Ok(Some(0))));
        if !is_default && self.is_capturing(args.py()).unwrap_or(false) {
            side.captured.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether all is as it was at an epoch, and no launch hook is set.
    pub(crate) fn is_as_of(&self, py: Python<'_>, epoch: u64) -> bool {
        // What cannot be told is looked at.
        self.epoch() == epoch && !self.is_hooked(py).unwrap_or(true)
    }

    /// Whether launches go into a CUDA graph.
    fn is_capturing(&self, py: Python<'_>) -> PyResult<bool> {
        let asks = match self.asks_capture.get(py) {
            Some(asks) => asks,
            None => {
                let asks = self.activity.bind(py).call_method0("asks_capture")?.unbind();
                self.asks_capture.get_or_init(py, || asks)
            }
        };
        asks.bind(py).call0()?.is_truthy()
    }

    /// Whether anything is to be told of launches: profilers are told of stock Triton's, with the metadata of their authors.
    fn is_hooked(&self, py: Python<'_>) -> PyResult<bool> {
        let runtime = self.knobs.bind(py).getattr(intern!(py, "runtime"))?;
        for name in [intern!(py, "launch_enter_hook"), intern!(py, "launch_exit_hook")] {
            let hook = runtime.getattr(name)?;
            if !hook.is_none() && hook.getattr_opt(intern!(py, "calls"))?.unwrap_or(hook).is_truthy()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether another device is in use than the one that the kernel is loaded on, as `compiled[grid](…)` allows.
    fn is_elsewhere(&self, py: Python<'_>) -> PyResult<bool> {
        let Some(device) = self.device else { return Ok(false) };
        Ok(self.activity.bind(py).call_method0(intern!(py, "device"))?.extract::<Option<i64>>()? != Some(device))
    }
}

/// Whether an error says that a launch was not made. Others may be raised by a signal's handler, after it.
fn was_not_launched(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyRuntimeError>(py)
        || error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyArithmeticError>(py)
        || error.is_instance_of::<PyAttributeError>(py)
        || error.is_instance_of::<PyLookupError>(py)
        || error.is_instance_of::<PyMemoryError>(py)
}
