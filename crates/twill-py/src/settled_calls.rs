//! Calls of an autotuner of which all is settled.

use crate::decision::locked;
use crate::launches::SettledLauncher;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

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
    choice: Option<Arc<Choice>>,
}

/// What an autotuner comes to for calls that are alike.
pub(crate) struct Choice {
    /// Its dictionary of configurations, which says when it has chosen anew.
    pub(crate) cache: Py<PyAny>,
    pub(crate) configuration: Py<PyAny>,
    /// The arguments that the configuration adds.
    pub(crate) options: Py<PyDict>,
    /// What is launched, where it is not of stock Triton's choice: a compiled kernel, its launcher, and as of which epoch.
    pub(crate) taken: Option<(Py<PyAny>, Py<SettledLauncher>, u64)>,
    /// What tells calls apart by being the same object: no other one may come to its address.
    _kept: Vec<Py<PyAny>>,
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
    /// Of some of them it is known what the autotuner comes to.
    has_choices: AtomicBool,
}

#[pymethods]
impl SettledCalls {
    #[new]
    fn new(parameters: Vec<(String, bool)>) -> Self {
        Self { parameters, calls: Mutex::default(), rest: AtomicI64::new(0), has_choices: AtomicBool::new(false) }
    }

    /// Has so many calls in a row made without a look.
    fn rest(&self, calls: i64) {
        self.rest.store(calls, Ordering::Relaxed);
    }

    /// What is known of a call; `None` where somebody has to look at it.
    fn look(&self, args: &Bound<'_, PyTuple>, named: &Bound<'_, PyDict>) -> Option<Py<PyAny>> {
        if locked(&self.calls).is_empty() {
            return None;
        }
        // What cannot be told apart is looked at.
        let call = self.likeness(args, named).ok().flatten()?;
        let calls = locked(&self.calls);
        let known = calls.get(&*call.key)?;
        let is_left = known.left.fetch_sub(1, Ordering::Relaxed) > 0;
        is_left.then(|| known.what.clone_ref(args.py()))
    }

    /// Remembers what is known of a call for so many that are like it; for all of them without a number.
    #[pyo3(signature = (args, named, what, left=None))]
    fn settle(&self, args: &Bound<'_, PyTuple>, named: &Bound<'_, PyDict>, what: Py<PyAny>, left: Option<i64>) {
        let Ok(Some(call)) = self.likeness(args, named) else { return };
        let known = Known { what, left: AtomicI64::new(left.unwrap_or(i64::MAX)), choice: None };
        let mut calls = locked(&self.calls);
        let before = if calls.len() >= REMEMBERED { std::mem::take(&mut *calls) } else { HashMap::new() };
        let replaced = calls.insert(call.key.into(), known);
        drop(calls);
        // What that lets go of may call whom it likes.
        drop((before, replaced));
    }

    /// Remembers what the autotuner comes to for a call of which something is known, and for those that are like it.
    ///
    /// configuration: that of the call, by its dictionary; taken: the compiled kernel and its launcher, if that makes other launches
    /// than those of stock Triton's choice.
    #[pyo3(signature = (args, named, cache, configuration, taken=None))]
    fn choose(
        &self,
        args: &Bound<'_, PyTuple>,
        named: &Bound<'_, PyDict>,
        cache: Py<PyAny>,
        configuration: &Bound<'_, PyAny>,
        taken: Option<(Py<PyAny>, Py<SettledLauncher>)>,
    ) -> PyResult<()> {
        let Some(call) = self.likeness(args, named)?.filter(|call| call.has_key_of_tuner) else { return Ok(()) };
        let choice = Arc::new(Choice {
            cache,
            configuration: configuration.clone().unbind(),
            options: configuration.call_method0(intern!(args.py(), "all_kwargs"))?.cast_into::<PyDict>()?.unbind(),
            taken: taken.map(|(kernel, launcher)| {
                let epoch = launcher.get().epoch();
                (kernel, launcher, epoch)
            }),
            _kept: call.by_identity,
        });
        let before = locked(&self.calls).get_mut(&*call.key).and_then(|known| known.choice.replace(choice));
        drop(before);
        self.has_choices.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Forgets all of them.
    pub(crate) fn forget(&self) {
        self.rest(0);
        self.has_choices.store(false, Ordering::Relaxed);
        let before = std::mem::take(&mut *locked(&self.calls));
        drop(before);
    }

    /// A copy of an autotuner begins anew.
    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, Bound<'py, PyTuple>) {
        (py.None().into_bound(py).get_type().into_any(), PyTuple::empty(py))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // What is being changed is not garbage.
        let Ok(calls) = self.calls.try_lock() else { return Ok(()) };
        for known in calls.values() {
            visit.call(&known.what)?;
            // Whoever makes a call by a choice has it too.
            let Some(choice) = known.choice.as_ref().filter(|choice| Arc::strong_count(choice) == 1) else { continue };
            [&choice.cache, &choice.configuration].into_iter().try_for_each(|one| visit.call(one))?;
            visit.call(&choice.options)?;
            if let Some((kernel, launcher, _)) = &choice.taken {
                visit.call(kernel)?;
                visit.call(launcher)?;
            }
        }
        Ok(())
    }
}

/// What calls that are alike have in common.
#[derive(Default)]
struct Likeness {
    key: Vec<i64>,
    /// It tells apart whatever the autotuner's own key does.
    has_key_of_tuner: bool,
    by_identity: Vec<Py<PyAny>>,
}

impl SettledCalls {
    /// Whether the next call is made without a look; counts it.
    pub(crate) fn rests(&self) -> bool {
        self.rest.load(Ordering::Relaxed) > 0 && self.rest.fetch_sub(1, Ordering::Relaxed) > 0
    }

    /// Whether there is any [`Choice`].
    pub(crate) fn has_choices(&self) -> bool {
        self.has_choices.load(Ordering::Relaxed)
    }

    /// What the autotuner comes to for a call; counts it.
    pub(crate) fn choice(&self, args: &Bound<'_, PyTuple>, named: &Bound<'_, PyDict>) -> Option<Arc<Choice>> {
        let call = self.likeness(args, named).ok().flatten()?;
        let calls = locked(&self.calls);
        let known = calls.get(&*call.key)?;
        let choice = known.choice.as_ref()?;
        (known.left.fetch_sub(1, Ordering::Relaxed) > 0).then(|| Arc::clone(choice))
    }

    /// What calls that are alike have in common; nothing where a number has more than 64 bits.
    fn likeness(&self, args: &Bound<'_, PyTuple>, named: &Bound<'_, PyDict>) -> PyResult<Option<Likeness>> {
        let key = Vec::with_capacity(2 * (args.len() + named.len()));
        let mut call = Likeness { key, has_key_of_tuner: true, by_identity: Vec::new() };
        for (at, value) in args.iter_borrowed().enumerate() {
            // What is given beyond the parameters is the autotuner's to refuse.
            let is_exact = self.parameters.get(at).is_none_or(|(_, is_exact)| *is_exact);
            if !call.add(&value, is_exact)? {
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
            call.key.push(name.hash()? as i64);
            // Of options of Triton's, a grid among them.
            let is_exact = parameter.map_or(text != "grid", |(_, is_exact)| *is_exact);
            if !call.add(&value, is_exact)? {
                return Ok(None);
            }
        }
        Ok(Some(call))
    }
}

impl Likeness {
    /// Adds what tells a value apart; `false` where that is not known.
    fn add(&mut self, value: &Bound<'_, PyAny>, is_exact: bool) -> PyResult<bool> {
        let class = value.get_type().as_ptr() as i64;
        if value.is_none() {
            self.key.push(class);
        } else if value.is_exact_instance_of::<PyInt>() {
            // One of more than 64 bits is nobody's size.
            let Ok(number) = value.extract::<i64>() else { return Ok(false) };
            let bits = || i64::from(i64::BITS - number.unsigned_abs().leading_zeros());
            self.key.extend(if is_exact { [EXACT, number] } else { [SIZE, bits()] });
        } else if let Ok(tuple) = value.cast_exact::<PyTuple>() {
            self.key.extend([TUPLE, tuple.len() as i64]);
            for one in tuple.iter_borrowed() {
                if !self.add(&one, is_exact)? {
                    return Ok(false);
                }
            }
        } else if value.is_exact_instance_of::<PyFloat>() {
            self.key.extend([class, if is_exact { value.extract::<f64>()?.to_bits() as i64 } else { 0 }]);
        } else if is_plain(value) {
            self.key.extend([class, value.hash()? as i64]);
        } else if let Some(dtype) = type_of(value)? {
            // A tensor is told apart from others, where the autotuner looks at it.
            self.has_key_of_tuner &= !is_exact;
            self.key.extend([OTHER, dtype.as_ptr() as i64]);
        } else if !is_exact {
            // Numbers of numpy's have a type of elements, which is part of the autotuner's key.
            self.has_key_of_tuner &= value.getattr_opt(intern!(value.py(), "dtype"))?.is_none();
            self.key.extend([OTHER, class]);
            self.by_identity.push(value.get_type().into_any().unbind());
        } else if value.get_type().module()?.to_cow()?.starts_with("triton.") {
            // Functions and types of its language last.
            self.key.extend([OTHER, value.as_ptr() as i64]);
            self.by_identity.push(value.clone().unbind());
        } else {
            return Ok(false);
        }
        Ok(true)
    }
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
