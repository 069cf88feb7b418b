//! What stands in the place of `Autotuner.run` while Twill is active.
//!
//! A call of which all is settled does what the method does once it has a configuration (Triton 3.6 to 3.9 agree in that), and
//! nothing of what comes before.

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
        let is_ours = !is_in_call() && !is_suspended() && self.switch.get().is_on();
        let choice = if is_ours { settled.choice(args, &named) } else { None };
        let Some(choice) = choice else { return self.looks.bind(py).call(args, Some(&named)) };
        if !choice.holds(tuner)? {
            return self.looks.bind(py).call(args, Some(&named));
        }
        let result = choice.call(tuner, args, &named)?;
        if choice.taken.as_ref().is_some_and(|(kernel, ..)| !result.is(kernel)) {
            // Calls like this one are not all of one specialisation: each is looked at.
            settled.forget();
        }
        Ok(result)
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
        Ok(is_tuned && self.taken.as_ref().is_none_or(|(_, launcher, epoch)| launcher.get().is_as_of(py, *epoch)))
    }

    /// What `Autotuner.run` does with a configuration. named: that of the call alone; it is changed.
    fn call<'py>(
        &self,
        tuner: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        named: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = tuner.py();
        let (configuration, options) = (self.configuration.bind(py), self.options.bind(py));
        tuner.setattr(intern!(py, "best_config"), configuration)?;
        let hook = configuration.getattr(intern!(py, "pre_hook"))?;
        let is_hooked = !hook.is_none();
        if is_hooked {
            let names = tuner.getattr(intern!(py, "arg_names"))?;
            let given = PyDict::new(py);
            for (name, value) in names.try_iter()?.zip(args.iter_borrowed()) {
                given.set_item(name?, value)?;
            }
            tuner.setattr(intern!(py, "nargs"), &given)?;
            let all = given.copy()?;
            all.update(named.as_mapping())?;
            all.update(options.as_mapping())?;
            hook.call1((all,))?;
        }
        named.update(options.as_mapping())?;
        let result = tuner.getattr(intern!(py, "fn"))?.getattr(intern!(py, "run"))?.call(args, Some(named))?;
        if is_hooked {
            tuner.setattr(intern!(py, "nargs"), py.None())?;
        }
        Ok(result)
    }
}
