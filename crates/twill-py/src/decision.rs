//! Who has the launches of a class, and what those are made by.

use crate::arguments::{Arguments, whole};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bits from which numbers are alike.
pub(crate) const MOST_BITS: u32 = 24;

/// Arguments of a launcher before all others: three numbers of programs, and the stream.
pub(crate) const GRID_AND_STREAM: usize = 4;
/// Those between them and the kernel's, where Triton launches: the function, metadata of the kernel and the launch, two hooks.
pub(crate) const FUNCTION_AND_HOOKS: usize = 5;

/// What is settled.
#[derive(Default)]
pub(crate) struct Settled {
    /// Where the whole numbers are that tell classes of launches apart; known with the first class.
    pub(crate) numbers: Arc<[usize]>,
    /// By class: the grid, and the bits of those numbers.
    pub(crate) classes: HashMap<Box<[i64]>, Decision>,
    pub(crate) kernels: Vec<(Py<PyAny>, Arc<Kernel>)>,
}

/// A launch of which somebody found out whose it is: its arguments, the names of the numbers that tell classes apart, the epoch
/// before that was found out, and the side.
#[derive(FromPyObject)]
pub(crate) struct Launched<'py>(
    pub(crate) Bound<'py, PyTuple>,
    pub(crate) Vec<String>,
    pub(crate) u64,
    pub(crate) String,
);

/// Whose launches of a class are.
#[derive(Clone)]
pub(crate) enum Decision {
    Stock(Arc<Side>),
    /// Stock Triton's for now: until the contest wants to try another one.
    Open(Arc<OpenContest>, Arc<Side>),
    Own(Arc<Kernel>, Arc<Side>),
    /// What stock Triton compiled with other stages and warps.
    Other(Arc<OtherConfiguration>, Arc<Side>),
}

/// The function that stock Triton's launcher calls in the end, and what it is told besides the launch: whether thread blocks
/// cooperate, and whether launches overlap. It has no scratch memory.
#[derive(FromPyObject)]
pub(crate) struct LaunchFunction(pub(crate) Py<PyAny>, Py<PyAny>, Py<PyAny>);

/// A contest that is not settled, and the launches that it leaves to stock Triton without a look.
pub(crate) struct OpenContest {
    pub(crate) contest: Py<PyAny>,
    pub(crate) left: AtomicI64,
}

/// A kernel of stock Triton's with another launcher, that launcher, its function and metadata.
#[derive(FromPyObject)]
pub(crate) struct OtherConfiguration(
    pub(crate) Py<PyAny>,
    pub(crate) Py<PyAny>,
    pub(crate) Py<PyAny>,
    pub(crate) Option<LaunchFunction>,
);

/// One of Twill's kernels, and its plans by what they depend on.
pub(crate) struct Kernel {
    pub(crate) arguments: Arguments,
    pub(crate) plans: Mutex<HashMap<Box<[i64]>, Arc<Plan>>>,
}

/// How a kernel is launched: by what takes stream and open values, or by a function on the arguments that it makes of them.
#[derive(FromPyObject)]
pub(crate) struct Plan(pub(crate) Py<PyAny>, pub(crate) Option<Py<PyAny>>);

/// A side of contests: how many launches it had, and how many of them into CUDA graphs.
pub(crate) struct Side {
    pub(crate) name: String,
    pub(crate) launched: AtomicU64,
    pub(crate) captured: AtomicU64,
}

impl LaunchFunction {
    /// Its arguments: own are function, metadata of the kernel and the launch, and hooks; rest: where those of the kernel begin.
    pub(crate) fn arguments<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        rest: usize,
        own: [PyResult<Bound<'py, PyAny>>; FUNCTION_AND_HOOKS],
    ) -> PyResult<Bound<'py, PyTuple>> {
        let py = args.py();
        let [function, more @ ..] = own;
        let none = || Ok(py.None().into_bound(py));
        let Self(_, cooperates, overlaps) = self;
        let before = [function, Ok(cooperates.bind(py).clone()), Ok(overlaps.bind(py).clone()), none(), none()];
        joined(args, rest, before.into_iter().chain(more))
    }
}

impl OpenContest {
    /// Whether the next launch is stock Triton's without a look; counts it.
    pub(crate) fn rests(&self, py: Python<'_>) -> PyResult<bool> {
        if self.left.fetch_sub(1, Ordering::Relaxed) > 0 {
            return Ok(true);
        }
        let more: i64 = self.contest.bind(py).call_method0(intern!(py, "rest"))?.extract()?;
        self.left.store(more - 1, Ordering::Relaxed);
        Ok(more > 0)
    }
}

/// Grid and stream of a launch, then others, then the arguments of the kernel, which begin at `rest`.
pub(crate) fn joined<'py>(
    args: &Bound<'py, PyTuple>,
    rest: usize,
    others: impl IntoIterator<Item = PyResult<Bound<'py, PyAny>>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let mut all = Vec::with_capacity(args.len() + 8);
    for at in 0..GRID_AND_STREAM {
        all.push(args.get_item(at)?);
    }
    for other in others {
        all.push(other?);
    }
    for at in rest..args.len() {
        all.push(args.get_item(at)?);
    }
    PyTuple::new(args.py(), all)
}

/// What a lock has. Nothing that is done with it leaves it half done.
pub(crate) fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The class of a launch: the grid, and the bits of some arguments; nothing where a number is none of Python's.
pub(crate) fn class(args: &Bound<'_, PyTuple>, numbers: &[usize]) -> PyResult<Option<Box<[i64]>>> {
    let mut class = Vec::with_capacity(3 + numbers.len());
    for at in (0..3).chain(numbers.iter().copied()) {
        let Some(number) = whole(&args.get_item(at)?)? else { return Ok(None) };
        class.push(if at < 3 { number } else { bits(number) });
    }
    Ok(Some(class.into()))
}

/// The bits of a number, but for its sign. Those of large ones say nothing of work: they are seeds, say, which are others each time.
pub(crate) fn bits(number: i64) -> i64 {
    i64::from((i64::BITS - number.unsigned_abs().leading_zeros()).min(MOST_BITS))
}
