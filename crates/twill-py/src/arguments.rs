//! How arguments of a launch are read: what a plan of a generated kernel depends on, and what it leaves open.
//!
//! It is what `Readers.form` in a kernel's `launch.py` does, for arguments in their order, of a kernel that Triton compiled for
//! their types: what those are is not looked at again.

use pyo3::exceptions::PyKeyError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString, PyTuple};

/// How a kernel's arguments are read.
pub(crate) struct Arguments {
    /// Whole numbers that a plan depends on.
    sizes: Vec<usize>,
    memory: Vec<Memory>,
    counts: Vec<Count>,
    reals: Vec<Real>,
}

/// A tensor, or a tensor descriptor.
struct Memory {
    at: usize,
    /// A descriptor is made of it, or it is one.
    is_tiled: bool,
    /// Bytes of rows before it.
    before: u64,
}

/// Another whole number: the least, the greatest, and bits that must not be set.
struct Count {
    at: usize,
    least: i64,
    most: i64,
    below: i64,
}

/// A number of floating point: the least and the greatest.
struct Real {
    at: usize,
    least: f64,
    most: f64,
}

/// Form and open values: see [`Arguments::read`].
type Read<'py> = (Vec<i64>, Bound<'py, PyList>);

impl Arguments {
    /// reading: `Kernel.reading` of a kernel; names: of its parameters in a launch, from position `first` on.
    pub(crate) fn new(reading: &Bound<'_, PyAny>, names: &[String], first: usize) -> PyResult<Self> {
        let at = |name: &String| position(names, first, name);
        let sizes: Vec<String> = reading.getattr("sizes")?.extract()?;
        let memory: Vec<(String, bool, u64)> = reading.getattr("memory")?.extract()?;
        let counts: Vec<(String, i128, i128, i64)> = reading.getattr("counts")?.extract()?;
        let reals: Vec<(String, Option<f64>, Option<f64>)> = reading.getattr("reals")?.extract()?;
        let memory = memory
            .iter()
            .map(|(name, is_tiled, before)| Ok(Memory { at: at(name)?, is_tiled: *is_tiled, before: *before }));
        let counts = counts.iter().map(|(name, least, most, below)| {
            // What has more than 64 bits is looked at elsewhere.
            let least = i64::try_from(*least).unwrap_or(i64::MIN);
            let most = i64::try_from(*most).unwrap_or(i64::MAX);
            Ok(Count { at: at(name)?, least, most, below: *below })
        });
        let reals = reals.iter().map(|(name, least, most)| {
            let (least, most) = (least.unwrap_or(f64::NEG_INFINITY), most.unwrap_or(f64::INFINITY));
            Ok(Real { at: at(name)?, least, most })
        });
        Ok(Self {
            sizes: sizes.iter().map(at).collect::<PyResult<_>>()?,
            memory: memory.collect::<PyResult<_>>()?,
            counts: counts.collect::<PyResult<_>>()?,
            reals: reals.collect::<PyResult<_>>()?,
        })
    }

    /// What a plan depends on, and what it leaves open; nothing where a value has to be looked at.
    pub(crate) fn read<'py>(&self, args: &Bound<'py, PyTuple>) -> PyResult<Option<Read<'py>>> {
        let mut form = Vec::with_capacity(3 + self.sizes.len() + self.memory.len());
        let mut varying = Vec::with_capacity(self.memory.len() + self.counts.len() + self.reals.len());
        for at in (0..3).chain(self.sizes.iter().copied()) {
            let Some(number) = whole(&args.get_item(at)?)? else { return Ok(None) };
            form.push(number);
        }
        for one in &self.memory {
            let Some(address) = one.read(&args.get_item(one.at)?, &mut form)? else { return Ok(None) };
            varying.push(address);
        }
        for one in &self.counts {
            let value = args.get_item(one.at)?;
            match whole(&value)? {
                Some(number) if (one.least..=one.most).contains(&number) && number & one.below == 0 => {
                    varying.push(value);
                }
                _ => return Ok(None),
            }
        }
        for one in &self.reals {
            let value = args.get_item(one.at)?;
            if !(value.is_exact_instance_of::<PyFloat>() || value.is_exact_instance_of::<PyInt>()) {
                return Ok(None);
            }
            let number: f64 = value.extract()?;
            // What is no number is in no range but that of all.
            let is_free = one.least == f64::NEG_INFINITY && one.most == f64::INFINITY;
            if !is_free && !(one.least..=one.most).contains(&number) {
                return Ok(None);
            }
            varying.push(PyFloat::new(args.py(), number).into_any());
        }
        Ok(Some((form, PyList::new(args.py(), varying)?)))
    }
}

impl Memory {
    /// The tensor that a value is, or that is behind a descriptor.
    fn tensor<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = value.py();
        let is_descriptor = self.is_tiled && value.getattr_opt(intern!(py, "block_shape"))?.is_some();
        if is_descriptor { value.getattr(intern!(py, "base")) } else { Ok(value.clone()) }
    }

    /// The address; what a plan depends on besides goes into the form. Nothing where that is of a kind that is rare.
    fn read<'py>(&self, value: &Bound<'py, PyAny>, form: &mut Vec<i64>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = value.py();
        let tensor = self.tensor(value)?;
        let is_descriptor = !value.is(&tensor);
        // That of a tensor on the CPU is negative.
        form.push(tensor.call_method0(intern!(py, "get_device"))?.extract()?);
        let address = tensor.call_method0(intern!(py, "data_ptr"))?;
        let number: u64 = address.extract()?;
        let is_behind = i64::from(self.before > 0 && number > self.before);
        form.push(i64::from((number & 15) as u8) | is_behind << 4);
        if is_descriptor {
            extents(&value.getattr(intern!(py, "shape"))?, form)?;
            extents(&value.getattr(intern!(py, "strides"))?, form)?;
            let is_odd = value
                .getattr_opt(intern!(py, "padding"))?
                .is_some_and(|one| !one.cast::<PyString>().is_ok_and(|text| text == "zero"));
            let rounds = value.getattr_opt(intern!(py, "round_f32_to_tf32"))?;
            if is_odd || rounds.map_or(Ok(false), |one| one.is_truthy())? {
                return Ok(None);
            }
        } else if self.is_tiled {
            extents(&value.getattr(intern!(py, "shape"))?, form)?;
            extents(&value.call_method0(intern!(py, "stride"))?, form)?;
        }
        Ok(Some(address))
    }
}

/// Where the argument of a name is in a launch, whose kernel's arguments begin at `first`.
///
/// # Errors
/// `KeyError` for a name that the kernel has not.
pub(crate) fn position(names: &[String], first: usize, name: &String) -> PyResult<usize> {
    let at = names.iter().position(|one| one == name);
    at.map(|at| first + at).ok_or_else(|| PyKeyError::new_err(name.clone()))
}

/// Extents of a shape or strides, behind their number.
fn extents(of: &Bound<'_, PyAny>, form: &mut Vec<i64>) -> PyResult<()> {
    let extents: Vec<i64> = of.extract()?;
    form.push(i64::try_from(extents.len()).unwrap_or(i64::MAX));
    form.extend(extents);
    Ok(())
}

/// A whole number or truth value of Python's own; nothing for anything else.
///
/// # Errors
/// One that has more than 64 bits.
pub(crate) fn whole(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    let is_whole = value.is_exact_instance_of::<PyInt>() || value.is_exact_instance_of::<PyBool>();
    if is_whole { value.extract().map(Some) } else { Ok(None) }
}
