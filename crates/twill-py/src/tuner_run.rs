//! What stands in the place of `Autotuner.run` while Twill is active.
//!
//! A call of which all is settled does what the method does once it has a configuration, and does not look for that.

use crate::launches::{Switch, is_in_call, is_suspended};
use crate::settled_calls::{Choice, SettledCalls};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

/// In the place of `Autotuner.run`: the method itself where an autotuner rests, a [`TunedCall`] where calls are settled, and what
/// looks at a call where neither is so.
///
/// Calls have tens of arguments by their names. What stands between a caller and the method would pack all of them anew, so nothing
/// does without need.
#[pyclass(frozen, module = "twill_gpu._twill")]
pub(crate) struct TunerRun {
    original: Py<PyAny>,
    looks: Py<PyAny>,
    /// Where an autotuner has its `SettledCalls`.
    attribute: Py<PyString>,
    /// `types.MethodType`.
    bind: Py<PyAny>,
    switch: Py<Switch>,
}

#[pymethods]
impl TunerRun {
    /// original: the method; looks: a function of its arguments; attribute, bind, switch: as in the struct and the activity.
    #[new]
    fn new(
        original: Py<PyAny>,
        looks: Py<PyAny>,
        attribute: Py<PyString>,
        bind: Py<PyAny>,
        switch: Py<Switch>,
    ) -> Self {
        Self { original, looks, attribute, bind, switch }
    }

    fn __get__<'py>(
        &self,
        py: Python<'py>,
        tuner: Option<&Bound<'py, PyAny>>,
        _type: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(tuner) = tuner.filter(|tuner| !tuner.is_none()) else { return Ok(self.looks.bind(py).clone()) };
        let settled = tuner.getattr_opt(self.attribute.bind(py))?;
        let settled = settled.as_ref().and_then(|one| one.cast::<SettledCalls>().ok());
        // A copy of an autotuner has its attributes.
        let settled = settled.filter(|one| one.get().is_of(tuner));
        let rests = !is_in_call() && settled.is_some_and(|one| one.get().rests());
        let bound = self.bind.bind(py).call1((if rests { &self.original } else { &self.looks }, tuner))?;
        match settled.filter(|one| !rests && one.get().has_choices()) {
            Some(settled) => {
                let (tuner, settled, switch) =
                    (tuner.clone().unbind(), settled.clone().unbind(), self.switch.clone_ref(py));
                Ok(Bound::new(py, TunedCall { tuner, settled, switch, looks: bound.unbind() })?.into_any())
            }
            None => Ok(bound),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        [&self.original, &self.looks, &self.bind].into_iter().try_for_each(|object| visit.call(object))
    }
}

/// `Autotuner.run` of an autotuner some of whose calls are settled.
#[pyclass(frozen, module = "twill_gpu._twill")]
pub(crate) struct TunedCall {
    tuner: Py<PyAny>,
    settled: Py<SettledCalls>,
    switch: Py<Switch>,
    /// What looks at a call that is not settled.
    looks: Py<PyAny>,
}

#[pymethods]
impl TunedCall {
    #[pyo3(signature = (*args, **named))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let named = named.cloned().unwrap_or_else(|| PyDict::new(py));
        let (tuner, settled) = (self.tuner.bind(py), self.settled.get());
        let looks = || self.looks.bind(py).call(args, Some(&named));
        if is_in_call() || is_suspended() || !self.switch.get().is_on() {
            return looks();
        }
        let Some((key, choice)) = settled.choice(args, &named) else { return looks() };
        if !choice.holds(tuner)? {
            return looks();
        }
        let configuration = choice.configuration.bind(py);
        let options = configuration.call_method0(intern!(py, "all_kwargs"))?;
        let options = match options.cast_into::<PyDict>() {
            // The autotuner says what is wrong with an argument that is given twice.
            Ok(options) if !options.keys().iter().any(|name| named.contains(name).unwrap_or(true)) => options,
            _ => return looks(),
        };
        let result = call(tuner, configuration, &options, args, &named)?;
        if choice.taken.as_ref().is_some_and(|taken| !result.is(&taken.kernel)) {
            // Calls like this one are not all of one specialisation: each is looked at.
            settled.look_at(&key);
        }
        Ok(result)
    }

    /// As the bound method that it stands for.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<Self>() {
            Ok(other) => self.looks.bind(other.py()).eq(other.get().looks.bind(other.py())),
            Err(_) => Ok(false),
        }
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.looks.bind(py).hash()
    }

    /// Whoever asks the method what it is.
    fn __getattr__<'py>(&self, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        self.looks.bind(name.py()).getattr(name)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.tuner)?;
        visit.call(&self.settled)?;
        visit.call(&self.looks)
    }
}

impl Choice {
    /// Whether the autotuner would come to it now.
    fn holds(&self, tuner: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = tuner.py();
        let is_same = tuner.getattr(intern!(py, "cache"))?.is(&self.cache);
        // One of a single configuration looks at no dictionary.
        let is_tuned = is_same && tuner.getattr(intern!(py, "configs"))?.len()? > 1;
        let has_keys = is_tuned && tuner.getattr(intern!(py, "keys"))?.eq(&self.keys)?;
        Ok(has_keys && self.taken.as_ref().is_none_or(|taken| taken.holds(py)))
    }
}

/// What `Autotuner.run` does with a configuration (alike in Triton 3.6 to 3.9). options: those of the configuration; named: what a
/// call gives by names, which is changed.
fn call<'py>(
    tuner: &Bound<'py, PyAny>,
    configuration: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
    args: &Bound<'py, PyTuple>,
    named: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = tuner.py();
    let positional = PyDict::new(py);
    for (name, value) in tuner.getattr(intern!(py, "arg_names"))?.try_iter()?.zip(args.iter_borrowed()) {
        positional.set_item(name?, value)?;
    }
    tuner.setattr(intern!(py, "nargs"), &positional)?;
    tuner.setattr(intern!(py, "best_config"), configuration)?;
    let hook = configuration.getattr(intern!(py, "pre_hook"))?;
    if !hook.is_none() {
        let all = positional.copy()?;
        all.update(named.as_mapping())?;
        all.update(options.as_mapping())?;
        hook.call1((all,))?;
    }
    named.update(options.as_mapping())?;
    let result = tuner.getattr(intern!(py, "fn"))?.getattr(intern!(py, "run"))?.call(args, Some(named))?;
    tuner.setattr(intern!(py, "nargs"), py.None())?;
    Ok(result)
}
