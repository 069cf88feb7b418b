//! Calls of an autotuner of which all is settled.

use crate::decision::{bits, locked};
use crate::launches::SettledLauncher;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
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
    /// They never have a choice.
    is_looked_at: bool,
}

/// The configuration that an autotuner comes to for calls that are alike.
pub(crate) struct Choice {
    pub(crate) configuration: Py<PyAny>,
    /// Its dictionary of configurations, which says when it has chosen anew.
    pub(crate) cache: Py<PyAny>,
    /// The parameters that it looks at.
    pub(crate) keys: Py<PyAny>,
    pub(crate) taken: Option<Taken>,
    /// What tells calls apart by being the same object: no other one may come to its address.
    kept: Vec<Py<PyAny>>,
}

/// What a call launches whose configuration is not stock Triton's choice.
pub(crate) struct Taken {
    pub(crate) kernel: Py<PyAny>,
    pub(crate) launcher: Py<SettledLauncher>,
    /// The launcher's.
    pub(crate) epoch: u64,
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
    /// Some of them have a [`Choice`].
    has_choices: AtomicBool,
    /// Changes when all of them are forgotten.
    generation: AtomicU64,
    /// The address of their autotuner, whose copies have calls of their own.
    tuner: usize,
}

#[pymethods]
impl SettledCalls {
    /// parameters: by name, whether their values tell calls apart; tuner: `id` of the autotuner.
    #[new]
    fn new(parameters: Vec<(String, bool)>, tuner: usize) -> Self {
        let (rest, has_choices, generation) = (AtomicI64::new(0), AtomicBool::new(false), AtomicU64::new(0));
        Self { parameters, calls: Mutex::default(), rest, has_choices, generation, tuner }
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
        let known = Known { what, left: AtomicI64::new(left.unwrap_or(i64::MAX)), choice: None, is_looked_at: false };
        let mut calls = locked(&self.calls);
        let before = if calls.len() >= REMEMBERED { std::mem::take(&mut *calls) } else { HashMap::new() };
        let replaced = calls.insert(call.key.into(), known);
        drop(calls);
        // What that lets go of may call whom it likes.
        drop((before, replaced));
    }

    /// Has calls like this one, of which something is known, make their launches by a configuration without another look.
    ///
    /// generation: that before the call; cache, keys: the autotuner's; taken: the compiled kernel, its launcher and the epoch before
    /// the call, if that makes other launches than those of stock Triton's choice.
    #[pyo3(signature = (args, named, generation, cache, keys, configuration, taken=None))]
    #[expect(clippy::too_many_arguments, reason = "as Python gives them")]
    fn choose(
        &self,
        args: &Bound<'_, PyTuple>,
        named: &Bound<'_, PyDict>,
        generation: u64,
        cache: Py<PyAny>,
        keys: Py<PyAny>,
        configuration: Py<PyAny>,
        taken: Option<(Py<PyAny>, Py<SettledLauncher>, u64)>,
    ) {
        // What cannot be told apart is looked at.
        let Ok(Some(call)) = self.likeness(args, named) else { return };
        let is_now = taken.as_ref().is_none_or(|(_, launcher, epoch)| launcher.get().epoch() == *epoch);
        let taken = taken.map(|(kernel, launcher, epoch)| Taken { kernel, launcher, epoch });
        let choice = Arc::new(Choice { configuration, cache, keys, taken, kept: call.by_identity });
        let mut calls = locked(&self.calls);
        let is_current = self.generation() == generation;
        let known = calls.get_mut(&*call.key).filter(|known| is_current && is_now && !known.is_looked_at);
        let before = match known {
            Some(known) if call.covers_key => {
                self.has_choices.store(true, Ordering::Relaxed);
                known.choice.replace(choice)
            }
            Some(known) => {
                known.is_looked_at = true;
                Some(choice)
            }
            None => Some(choice),
        };
        drop(calls);
        // What that lets go of may call whom it likes.
        drop(before);
    }

    /// As of which state calls are known: it changes when all of them are forgotten.
    #[getter]
    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Forgets all of them.
    fn forget(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
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
            let own = [&choice.configuration, &choice.cache, &choice.keys];
            own.into_iter().chain(&choice.kept).try_for_each(|one| visit.call(one))?;
            if let Some(taken) = &choice.taken {
                visit.call(&taken.kernel)?;
                visit.call(&taken.launcher)?;
            }
        }
        Ok(())
    }
}

/// What calls that are alike have in common.
struct Likeness {
    key: Vec<i64>,
    /// It tells apart whatever the autotuner's own key does.
    covers_key: bool,
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

    /// Whether this is an autotuner's.
    pub(crate) fn is_of(&self, tuner: &Bound<'_, PyAny>) -> bool {
        tuner.as_ptr() as usize == self.tuner
    }

    /// The configuration that the autotuner comes to for a call, and what calls like it have in common; counts it.
    pub(crate) fn choice(
        &self,
        args: &Bound<'_, PyTuple>,
        named: &Bound<'_, PyDict>,
    ) -> Option<(Vec<i64>, Arc<Choice>)> {
        let call = self.likeness(args, named).ok().flatten()?;
        let calls = locked(&self.calls);
        let known = calls.get(&*call.key)?;
        let choice = Arc::clone(known.choice.as_ref()?);
        let is_left = known.left.fetch_sub(1, Ordering::Relaxed) > 0;
        drop(calls);
        is_left.then_some((call.key, choice))
    }

    /// Has calls with this in common looked at from now on.
    pub(crate) fn look_at(&self, key: &[i64]) {
        let mut calls = locked(&self.calls);
        let before = calls.get_mut(key).and_then(|known| {
            known.is_looked_at = true;
            known.choice.take()
        });
        drop(calls);
        drop(before);
    }

    /// What calls that are alike have in common; nothing where a number has more than 64 bits.
    fn likeness(&self, args: &Bound<'_, PyTuple>, named: &Bound<'_, PyDict>) -> PyResult<Option<Likeness>> {
        let key = Vec::with_capacity(2 * (args.len() + named.len()));
        let mut call = Likeness { key, covers_key: true, by_identity: Vec::new() };
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
            // Triton makes kernels of their own for 1, and for multiples of 16.
            let size = || bits(number) << 2 | i64::from(number % 16 == 0) << 1 | i64::from(number == 1);
            self.key.extend(if is_exact { [EXACT, number] } else { [SIZE, size()] });
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
        } else if let Some((memory, is_own)) = memory_of(value)? {
            let (dtype, address) = (intern!(value.py(), "dtype"), intern!(value.py(), "data_ptr"));
            let Some(kind) = memory.getattr_opt(dtype)? else { return Ok(false) };
            // A tensor that the autotuner looks at is told apart from others, and so is a type that is not that of the memory.
            self.covers_key &= !is_exact && (is_own || value.getattr_opt(dtype)?.is_none());
            // Triton makes kernels of their own for memory that begins at a multiple of 16 bytes.
            let is_aligned = memory.call_method0(address)?.extract::<u64>()? % 16 == 0;
            // There is one object for each of torch's types.
            self.key.extend([OTHER, kind.as_ptr() as i64, i64::from(is_aligned)]);
            self.by_identity.push(kind.unbind());
        } else if !is_exact {
            // Numbers of numpy's have a type of elements, which is part of the autotuner's key.
            self.covers_key &= value.getattr_opt(intern!(value.py(), "dtype"))?.is_none();
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

/// What has the address of a value, and whether that is the value itself.
fn memory_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<(Bound<'py, PyAny>, bool)>> {
    let address = intern!(value.py(), "data_ptr");
    if value.getattr_opt(address)?.is_some() {
        return Ok(Some((value.clone(), true)));
    }
    let base = value.getattr_opt(intern!(value.py(), "base"))?;
    Ok(match base {
        Some(base) if base.getattr_opt(address)?.is_some() => Some((base, false)),
        _ => None,
    })
}

impl Taken {
    /// Whether calls still launch it: nothing has changed, and no launch hook is set.
    pub(crate) fn holds(&self, py: Python<'_>) -> bool {
        self.launcher.get().is_as_of(py, self.epoch)
    }
}
