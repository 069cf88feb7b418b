//! Calls of an autotuner of which all is settled: they need no line of Python but the autotuner's own.

use crate::decision::locked;
use crate::launches::{SettledLauncher, is_in_call};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

/// Calls that are remembered.
const REMEMBERED: usize = 1024;
/// What tells kinds of arguments apart.
const SIZE: i64 = -1;
const EXACT: i64 = -2;
const TUPLE: i64 = -3;
const OTHER: i64 = -4;

/// What is known of calls that are alike, and how many of them it holds for.
struct Known {
    what: Py<PyAny>,
    left: AtomicI64,
}

/// Calls of an autotuner of which all is settled.
///
/// Calls are alike if constants and the numbers that the autotuner looks at are the same, other whole numbers have as many bits, and
/// tensors have the same type: `Tuning.likeness` and the autotuner's key together.
#[pyclass(frozen, weakref, module = "twill_gpu._twill")]
pub(crate) struct SettledCalls {
    /// By parameter: its name, and whether its value tells calls apart.
    parameters: Vec<(String, bool)>,
    calls: Mutex<HashMap<Box<[i64]>, Known>>,
    /// Calls that are not even looked at.
    rest: AtomicI64,
    /// What makes their launches, and as of which epoch: they are looked at where its launches are.
    launchers: Mutex<Vec<(Py<SettledLauncher>, u64)>>,
}

/// In the place of `Autotuner.run`: the method itself where an autotuner rests, and what looks at a call where it does not.
///
/// Calls have tens of arguments by their names. What stands between a caller and the method would pack all of them anew, so nothing
/// does.
#[pyclass(frozen, module = "twill_gpu._twill")]
pub(crate) struct TunerRun {
    original: Py<PyAny>,
    looks: Py<PyAny>,
    /// Where an autotuner has its `SettledCalls`.
    attribute: Py<PyString>,
    /// `types.MethodType`.
    bind: Py<PyAny>,
}

#[pymethods]
impl TunerRun {
    #[new]
    fn new(original: Py<PyAny>, looks: Py<PyAny>, attribute: Py<PyString>, bind: Py<PyAny>) -> Self {
        Self { original, looks, attribute, bind }
    }

    fn __get__<'py>(
        &self,
        py: Python<'py>,
        tuner: Option<&Bound<'py, PyAny>>,
        _type: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(tuner) = tuner.filter(|tuner| !tuner.is_none()) else { return Ok(self.looks.bind(py).clone()) };
        let settled = tuner.getattr_opt(self.attribute.bind(py))?;
        let rests = settled.is_some_and(|one| one.cast::<SettledCalls>().is_ok_and(|one| one.get().rests(py)));
        self.bind.bind(py).call1((if rests { &self.original } else { &self.looks }, tuner))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        [&self.original, &self.looks, &self.bind].into_iter().try_for_each(|object| visit.call(object))
    }
}

#[pymethods]
impl SettledCalls {
    #[new]
    fn new(parameters: Vec<(String, bool)>) -> Self {
        Self { parameters, calls: Mutex::default(), rest: AtomicI64::new(0), launchers: Mutex::default() }
    }

    /// Has so many calls in a row made without a look. launchers: of kernels of other configurations than stock Triton's choice.
    #[pyo3(signature = (calls, launchers=Vec::new()))]
    fn rest(&self, calls: i64, launchers: Vec<Py<SettledLauncher>>) {
        let launchers = launchers
            .into_iter()
            .map(|one| {
                let epoch = one.get().epoch();
                (one, epoch)
            })
            .collect();
        let before = std::mem::replace(&mut *locked(&self.launchers), launchers);
        self.rest.store(calls, Ordering::Relaxed);
        drop(before);
    }

    /// What is known of a call; `None` where somebody has to look at it.
    fn look(&self, args: &Bound<'_, PyTuple>, named: &Bound<'_, PyDict>) -> Option<Py<PyAny>> {
        if locked(&self.calls).is_empty() {
            return None;
        }
        // What cannot be told apart is looked at.
        let call = self.likeness(args, named).ok().flatten()?;
        let calls = locked(&self.calls);
        let known = calls.get(&*call)?;
        let is_left = known.left.fetch_sub(1, Ordering::Relaxed) > 0;
        is_left.then(|| known.what.clone_ref(args.py()))
    }

    /// Remembers what is known of a call for so many that are like it; for all of them without a number.
    #[pyo3(signature = (args, named, what, left=None))]
    fn settle(&self, args: &Bound<'_, PyTuple>, named: &Bound<'_, PyDict>, what: Py<PyAny>, left: Option<i64>) {
        let Ok(Some(call)) = self.likeness(args, named) else { return };
        let known = Known { what, left: AtomicI64::new(left.unwrap_or(i64::MAX)) };
        let mut calls = locked(&self.calls);
        let before = if calls.len() >= REMEMBERED { std::mem::take(&mut *calls) } else { HashMap::new() };
        let replaced = calls.insert(call, known);
        drop(calls);
        // What that lets go of may call whom it likes.
        drop((before, replaced));
    }

    /// Forgets all of them.
    fn forget(&self) {
        self.rest(0, Vec::new());
        let before = std::mem::take(&mut *locked(&self.calls));
        drop(before);
    }

    /// A copy of an autotuner begins anew.
    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, Bound<'py, PyTuple>) {
        (py.None().into_bound(py).get_type().into_any(), PyTuple::empty(py))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // What is being changed is not garbage.
        let (Ok(calls), Ok(launchers)) = (self.calls.try_lock(), self.launchers.try_lock()) else { return Ok(()) };
        launchers.iter().try_for_each(|(one, _)| visit.call(one))?;
        calls.values().try_for_each(|known| visit.call(&known.what))
    }
}

impl SettledCalls {
    /// Whether the next call is made without a look; counts it.
    fn rests(&self, py: Python<'_>) -> bool {
        if is_in_call() || self.rest.load(Ordering::Relaxed) <= 0 {
            return false;
        }
        let launchers: Vec<_> =
            locked(&self.launchers).iter().map(|(one, epoch)| (one.clone_ref(py), *epoch)).collect();
        let has_changed = launchers.iter().any(|(one, epoch)| one.get().epoch() != *epoch);
        // What one is told of, all are.
        let is_looked_at = has_changed || launchers.first().is_some_and(|(one, _)| one.get().is_looked_at(py));
        !is_looked_at && self.rest.fetch_sub(1, Ordering::Relaxed) > 0
    }

    /// What calls that are alike have in common; nothing where a number has more than 64 bits.
    fn likeness(&self, args: &Bound<'_, PyTuple>, named: &Bound<'_, PyDict>) -> PyResult<Option<Box<[i64]>>> {
        let mut call = Vec::with_capacity(2 * (args.len() + named.len()));
        for (at, value) in args.iter_borrowed().enumerate() {
            // What is given beyond the parameters is the autotuner's to refuse.
            let is_exact = self.parameters.get(at).is_none_or(|(_, is_exact)| *is_exact);
            if !add(&value, is_exact, &mut call)? {
                return Ok(None);
            }
        }
        for (name, value) in named.iter() {
            let name = name.cast::<PyString>()?;
            let text = name.to_cow()?;
            let parameter = self.parameters.iter().find(|(known, _)| *known == text);
            if parameter.is_none() && value.is_callable() {
                continue;
            }
            call.push(name.hash()? as i64);
            // Of options of Triton's, a grid among them.
            let is_exact = parameter.map_or(text != "grid", |(_, is_exact)| *is_exact);
            if !add(&value, is_exact, &mut call)? {
                return Ok(None);
            }
        }
        Ok(Some(call.into()))
    }
}

/// Adds what tells a value apart; `false` where that is not known.
fn add(value: &Bound<'_, PyAny>, is_exact: bool, call: &mut Vec<i64>) -> PyResult<bool> {
    let class = value.get_type().as_ptr() as i64;
    if value.is_none() {
        call.push(class);
    } else if value.is_exact_instance_of::<PyInt>() {
        // One of more than 64 bits is nobody's size.
        let Ok(number) = value.extract::<i64>() else { return Ok(false) };
        let bits = || i64::from(i64::BITS - number.unsigned_abs().leading_zeros());
        call.extend(if is_exact { [EXACT, number] } else { [SIZE, bits()] });
    } else if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        call.extend([TUPLE, tuple.len() as i64]);
        for one in tuple.iter_borrowed() {
            if !add(&one, is_exact, call)? {
                return Ok(false);
            }
        }
    } else if value.is_exact_instance_of::<PyFloat>() {
        call.extend([class, if is_exact { value.extract::<f64>()?.to_bits() as i64 } else { 0 }]);
    } else if is_plain(value) {
        call.extend([class, value.hash()? as i64]);
    } else if let Some(dtype) = type_of(value)? {
        call.extend([OTHER, dtype.as_ptr() as i64]);
    } else if !is_exact {
        call.extend([OTHER, class]);
    } else if value.get_type().module()?.to_cow()?.starts_with("triton.") {
        // Functions and types of its language last.
        call.extend([OTHER, value.as_ptr() as i64]);
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// Whether a value is a truth value or a text, which are looked at as they are.
fn is_plain(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<PyBool>() || value.is_exact_instance_of::<PyString>()
}

/// The type of a tensor's elements, or of those that a descriptor describes; there is one object for each of torch's. Nothing of
/// what is no memory.
fn type_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (dtype, address) = (intern!(value.py(), "dtype"), intern!(value.py(), "data_ptr"));
    let base = value.getattr_opt(intern!(value.py(), "base"))?;
    for one in [Some(value), base.as_ref()].into_iter().flatten() {
        if one.getattr_opt(address)?.is_some() {
            return one.getattr_opt(dtype);
        }
    }
    Ok(None)
}
