//! Gradients of the scheduler for large graphs, and Adam's steps along them, on a CUDA GPU.
//!
//! The formulas are those of `twill-gaus`, operation by operation (`step.cu` names their files), in 64-bit numbers. Sums over
//! operations go into integers or block by block in order: results are the same each time, and those of processors up to rounding.
//!
//! The kernels are PTX for compute capability 8.0 and later, made of `step.cu` by `compile.py`; CUDA's driver, which is looked for
//! at run time, does the rest. A step takes four launches, five for storage.

mod layout;
mod problem;

pub use problem::{Problem, Profile, Row, Used};

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, DeviceRepr, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use layout::{Arrays, Step};
use std::any::Any;
use std::sync::{Arc, OnceLock};
use thiserror::Error;

/// Operations of a block, as `BLOCK` in `step.cu`.
const BLOCK: u32 = 256;
/// Threads of the block that has a profile, as `THREADS` there.
const THREADS: u32 = 1024;
/// Steps that wait on the GPU at most, so that whoever asks for them sees a clock in between.
const AHEAD: u32 = 8;

/// Why there is no gradient by a GPU.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CudaError {
    /// CUDA's driver is not there, or finds no GPU.
    #[error("there is no CUDA GPU: {0}")]
    Missing(String),
    /// The driver refused something.
    #[error("CUDA: {0}")]
    Driver(String),
}

impl From<DriverError> for CudaError {
    fn from(error: DriverError) -> Self {
        CudaError::Driver(error.to_string())
    }
}

static DEVICE: OnceLock<Result<Device, CudaError>> = OnceLock::new();

/// The GPU with the kernels loaded.
struct Device {
    stream: Arc<CudaStream>,
    name: String,
    last_reads: CudaFunction,
    lay: CudaFunction,
    pull: CudaFunction,
    trace: CudaFunction,
    follow: CudaFunction,
}

impl Device {
    /// The first GPU, once for a process: to begin takes some tenths of a second.
    fn get() -> Result<&'static Device, CudaError> {
        DEVICE.get_or_init(Device::new).as_ref().map_err(Clone::clone)
    }

    fn new() -> Result<Device, CudaError> {
        // SAFETY: it looks for a library.
        if !unsafe { cudarc::driver::sys::is_culib_present() } {
            return Err(CudaError::Missing("its driver is not installed".to_owned()));
        }
        let context = CudaContext::new(0).map_err(|error| CudaError::Missing(error.to_string()))?;
        let name = context.name()?;
        let module = context.load_module(Ptx::from_src(include_str!("step.ptx")))?;
        let stream = context.new_stream()?;
        let kernel = |name| module.load_function(name);
        Ok(Device {
            last_reads: kernel("last_reads")?,
            lay: kernel("lay")?,
            pull: kernel("pull")?,
            trace: kernel("trace")?,
            follow: kernel("follow")?,
            name,
            stream,
        })
    }
}

/// The name of the GPU that gradients are computed on.
///
/// # Errors
/// Where there is none.
pub fn device_name() -> Result<&'static str, CudaError> {
    Ok(&Device::get()?.name)
}

/// Whether the GPU has begun: [`device_name`] was called, and has ended.
pub fn has_begun() -> bool {
    DEVICE.get().is_some()
}

/// What losses and their gradient came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// The objective as far as profiles have a part in it; then broken dependences, and usage above limits.
    pub losses: [f64; 3],
    /// By operation: the derivative by mean and by width.
    pub gradient: Vec<[f64; 2]>,
}

/// A constraint of the Lagrangian: `∂L/∂V = unit · (lambda + rho · V / scale)`, where `V` is its loss in the step before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Constraint {
    /// The weight that makes its pull as strong as the objective's.
    pub unit: f64,
    /// The multiplier.
    pub lambda: f64,
    /// The weight of the violation.
    pub rho: f64,
    /// What a violation is counted in.
    pub scale: f64,
}

/// How a step is taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stride {
    /// `τ` of smooth maxima, in means of what they are the maximum of.
    pub temperature: f64,
    /// Least and greatest width of a distribution.
    pub widths: [f64; 2],
    /// Adam's rate, by its correction for the mean of gradients; the correction for the mean of squares.
    pub rates: [f64; 2],
    /// Dependences, and limits.
    pub constraints: [Constraint; 2],
}

/// A descent on the GPU.
pub struct Descent {
    device: &'static Device,
    arrays: Arrays,
    /// What `arrays` has the addresses of, but for what is read here.
    _memory: Vec<Box<dyn Any>>,
    gradient: CudaSlice<f64>,
    losses: CudaSlice<f64>,
    broken: CudaSlice<f64>,
    at: [CudaSlice<f64>; 2],
    now: usize,
    parity: u32,
    blocks: u32,
    profiles: usize,
    waiting: u32,
    probability: bool,
}

/// Puts arrays on the GPU, and keeps them.
struct Loader<'d> {
    stream: &'d Arc<CudaStream>,
    memory: Vec<Box<dyn Any>>,
}

impl Loader<'_> {
    fn put<T: DeviceRepr + Default + Clone + 'static>(&mut self, values: &[T]) -> Result<CUdeviceptr, CudaError> {
        // An array of nothing has no address.
        let nothing = [T::default()];
        let slice = self.stream.clone_htod(if values.is_empty() { &nothing[..] } else { values })?;
        // What is copied may go when this returns.
        self.stream.synchronize()?;
        let address = self.address(&slice);
        self.memory.push(Box::new(slice));
        Ok(address)
    }

    fn zeros(&mut self, count: usize) -> Result<CUdeviceptr, CudaError> {
        self.put(&vec![0_f64; count])
    }

    fn address<T>(&self, slice: &CudaSlice<T>) -> CUdeviceptr {
        slice.device_ptr(self.stream).0
    }
}

impl Descent {
    /// Puts a problem and its distributions, `[mean, width]` of each operation, on the GPU.
    ///
    /// # Errors
    /// Where there is no GPU, or not enough memory on it.
    pub fn new(problem: &Problem, at: &[[f64; 2]]) -> Result<Descent, CudaError> {
        let device = Device::get()?;
        device.stream.context().bind_to_thread()?;
        let mut load = Loader { stream: &device.stream, memory: Vec::new() };
        let count = problem.operations.len();
        let tracks = problem.ends.len();
        let layout = problem.first_cells.last().copied().unwrap_or(0) as usize;
        let blocks = (count as u32).div_ceil(BLOCK).max(1);
        let profiles = problem.profiles.len();
        let uses: Vec<&Used> = problem.operations.iter().flat_map(|row| &row.uses).collect();
        let begins = |count: fn(&Row) -> usize| {
            let ends = problem.operations.iter().map(count).scan(0, |sum, more| {
                *sum += more as u32;
                Some(*sum)
            });
            std::iter::once(0).chain(ends).collect::<Vec<u32>>()
        };
        let of_uses = |of: fn(&Used) -> f64| uses.iter().map(|used| of(used)).collect::<Vec<f64>>();
        let of_rows = |of: fn(&Row) -> f64| problem.operations.iter().map(of).collect::<Vec<f64>>();
        let outs = || problem.operations.iter().flat_map(|row| &row.out);
        let ins = || problem.operations.iter().flat_map(|row| &row.into);
        let arrays = Arrays {
            count: count as u32,
            levels: (problem.first_cells.len() - 1) as u32,
            tracks: tracks as u32,
            resources: (profiles - usize::from(problem.has_storage)) as u32,
            length: problem.length as u32,
            slots: problem.slots as u32,
            layout: layout as u32,
            has_storage: u32::from(problem.has_storage),
            mean_slots: problem.mean_slots,
            unit: problem.unit(),
            first: load.put(&problem.first_cells)?,
            ends: load.put(&problem.ends.iter().map(|&ends| u32::from(ends)).collect::<Vec<_>>())?,
            tracks_of: {
                let of = |track: &Option<usize>| track.map_or(-1, |track| track as i32);
                let tracks: Vec<i32> = problem.profiles.iter().flat_map(|one| one.tracks.iter().map(of)).collect();
                load.put(&tracks)?
            },
            limit: load.put(&problem.profiles.iter().map(|one| one.limit.unwrap_or(-1.0)).collect::<Vec<_>>())?,
            peak: load.put(&problem.profiles.iter().map(|one| one.peak).collect::<Vec<_>>())?,
            first_use: load.put(&begins(|row| row.uses.len()))?,
            use_track: {
                let tracks: Vec<i32> = uses.iter().map(|used| used.track.map_or(-1, |track| track as i32)).collect();
                load.put(&tracks)?
            },
            use_offset: load.put(&of_uses(|used| used.offset))?,
            use_end: load.put(&of_uses(|used| used.end.unwrap_or(0.0)))?,
            use_amount: load.put(&of_uses(|used| used.amount))?,
            stored: load.put(&of_rows(|row| row.stored))?,
            later: load.put(&of_rows(|row| row.later))?,
            earliest: load.put(&of_rows(|row| row.window[0]))?,
            latest: load.put(&of_rows(|row| row.window[1]))?,
            first_out: load.put(&begins(|row| row.out.len()))?,
            out_to: load.put(&outs().map(|&(to, ..)| to).collect::<Vec<_>>())?,
            out_lag: load.put(&outs().map(|&(_, lag, _)| lag).collect::<Vec<_>>())?,
            out_shift: load.put(&outs().map(|&(.., shift)| shift).collect::<Vec<_>>())?,
            first_in: load.put(&begins(|row| row.into.len()))?,
            in_from: load.put(&ins().map(|&(from, ..)| from).collect::<Vec<_>>())?,
            in_lag: load.put(&ins().map(|&(_, lag, _)| lag).collect::<Vec<_>>())?,
            in_edge: load.put(&ins().map(|&(.., edge)| edge).collect::<Vec<_>>())?,
            moments: load.zeros(4 * count)?,
            reads: load.zeros(2 * count)?,
            by_read: load.zeros(2 * count)?,
            share: load.put(&vec![0_f32; outs().count()])?,
            laid: load.put(&vec![0_i64; tracks * layout])?,
            grids: load.zeros(tracks * layout)?,
            steps: load.zeros(tracks * problem.length)?,
            folded: load.zeros(profiles * problem.slots)?,
            weights: load.zeros(3)?,
            ..Arrays::default()
        };
        let flat: Vec<f64> = at.iter().flatten().copied().collect();
        let zeros = |count: usize| device.stream.alloc_zeros::<f64>(count.max(1));
        let (gradient, losses, broken) = (zeros(2 * count)?, zeros(4 * profiles)?, zeros(2 * blocks as usize)?);
        let places = [device.stream.clone_htod(&flat)?, device.stream.clone_htod(&flat)?];
        device.stream.synchronize()?;
        Ok(Descent {
            device,
            arrays: Arrays {
                gradient: load.address(&gradient),
                losses: load.address(&losses),
                broken: load.address(&broken),
                ..arrays
            },
            _memory: load.memory,
            gradient,
            losses,
            broken,
            at: places,
            now: 0,
            parity: 0,
            blocks,
            profiles,
            waiting: 0,
            probability: problem.counts_probability,
        })
    }

    /// Losses where the distributions are now, and the gradient of their sum: weighted are the objective, dependences and limits.
    ///
    /// # Errors
    /// What the driver refuses.
    pub fn evaluate(&mut self, temperature: f64, weights: [f64; 3]) -> Result<Evaluated, CudaError> {
        let [objective, dependences, limits] = weights;
        let step = Step { temperature, objective, lambda: [dependences, limits], ..self.step_here() };
        self.launch(&step)?;
        let gradient = self.read(&self.gradient)?;
        let gradient = gradient.chunks_exact(2).map(|by| [by[0], by[1]]).collect();
        Ok(Evaluated { losses: self.losses()?, gradient })
    }

    /// Takes a step, whose weights follow the losses of the one before. It may still be under way afterwards.
    ///
    /// # Errors
    /// What the driver refuses, or found wrong with steps before.
    pub fn step(&mut self, stride: &Stride) -> Result<(), CudaError> {
        let of = |get: fn(&Constraint) -> f64| stride.constraints.each_ref().map(get);
        let step = Step {
            follows: 1,
            applies: 1,
            temperature: stride.temperature,
            floor: stride.widths[0],
            ceiling: stride.widths[1],
            // The kernel multiplies both.
            rate: 1.0,
            first_bias: stride.rates[0],
            second_bias: stride.rates[1],
            unit: of(|one| one.unit),
            lambda: of(|one| one.lambda),
            rho: of(|one| one.rho),
            scale: of(|one| one.scale),
            objective: 1.0,
            ..self.step_here()
        };
        self.launch(&step)?;
        self.now = 1 - self.now;
        self.waiting += 1;
        if self.waiting >= AHEAD {
            self.waiting = 0;
            self.device.stream.synchronize()?;
        }
        Ok(())
    }

    /// The losses of the last step or evaluation: the objective as far as profiles have a part in it, broken dependences, usage
    /// above limits.
    ///
    /// # Errors
    /// What the driver found wrong with steps before.
    pub fn losses(&self) -> Result<[f64; 3], CudaError> {
        let last = 1 - self.parity as usize;
        let by_profile = self.read(&self.losses)?;
        let by_profile = &by_profile[2 * last * self.profiles..][..2 * self.profiles];
        let sum = |which: usize| by_profile.chunks_exact(2).map(|one| one[which]).sum();
        let broken = self.read(&self.broken)?;
        let blocks = self.blocks as usize;
        Ok([sum(0), broken[last * blocks..][..blocks].iter().sum(), sum(1)])
    }

    /// Where the distributions are: `[mean, width]` of each operation.
    ///
    /// # Errors
    /// What the driver found wrong with steps before.
    pub fn at(&self) -> Result<Vec<[f64; 2]>, CudaError> {
        let flat = self.read(&self.at[self.now])?;
        Ok(flat.chunks_exact(2).map(|at| [at[0], at[1]]).collect())
    }

    fn read(&self, slice: &CudaSlice<f64>) -> Result<Vec<f64>, CudaError> {
        let read = self.device.stream.clone_dtoh(slice)?;
        self.device.stream.synchronize()?;
        Ok(read)
    }

    fn step_here(&self) -> Step {
        let address = |slice: &CudaSlice<f64>| slice.device_ptr(&self.device.stream).0;
        Step {
            at: address(&self.at[self.now]),
            next: address(&self.at[1 - self.now]),
            parity: self.parity,
            blocks: self.blocks,
            probability: u32::from(self.probability),
            ..Step::default()
        }
    }

    fn launch(&mut self, step: &Step) -> Result<(), CudaError> {
        let Device { stream, last_reads, lay, pull, trace, follow, .. } = self.device;
        stream.context().bind_to_thread()?;
        let by_operation =
            LaunchConfig { grid_dim: (self.blocks, 1, 1), block_dim: (BLOCK, 1, 1), shared_mem_bytes: 0 };
        let by_profile = LaunchConfig {
            grid_dim: (self.profiles.max(1) as u32, 1, 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        let reads = (self.arrays.has_storage == 1).then_some((last_reads, by_operation));
        let others = [(lay, by_operation), (pull, by_profile), (trace, by_operation), (follow, by_operation)];
        for (kernel, config) in reads.into_iter().chain(others) {
            // SAFETY: the kernels take these two, with arrays of the sizes that they state, which live as long as `self`.
            unsafe { stream.launch_builder(kernel).arg(&self.arrays).arg(step).launch(config) }?;
        }
        self.parity = 1 - self.parity;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};
    use std::fmt::Write;

    #[test]
    fn the_ptx_is_that_of_the_source() {
        let digest = Sha256::digest(include_str!("step.cu"));
        let mut first = "// Made by compile.py of step.cu, sha256 ".to_owned();
        digest.iter().for_each(|byte| write!(first, "{byte:02x}").unwrap_or_default());
        assert!(include_str!("step.ptx").starts_with(&first), "run compile.py");
    }
}
