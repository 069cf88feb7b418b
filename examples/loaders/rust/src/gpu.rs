//! The kernel on a GPU.

use crate::error::Error;
use crate::kernel::Kernel;
use crate::launch::{Argument, Launch, Sizes, TensorMap};
use cudarc::driver::sys::{self, CUdevice_attribute, CUevent_flags, CUfunction_attribute};
use cudarc::driver::{CudaContext, CudaSlice, DevicePtr, DeviceRepr, DriverError, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use half::f16;

const WARM_UP: u32 = 3;
const LAUNCHES: u32 = 20;

/// A matrix that no element was written of: all bits set are no number.
const UNWRITTEN: u16 = 0xffff;

/// A tensor map, which the kernel takes as it is.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Map(sys::CUtensorMap);

// SAFETY: 128 bytes without pointers that the CPU could follow, made by the driver for the GPU.
unsafe impl DeviceRepr for Map {}

/// An argument with its address.
enum Passed {
    Map(Map),
    Number(i32),
}

/// The outcome of a run.
pub struct Outcome {
    /// The result.
    pub c: Vec<f16>,
    /// The time of a launch, the mean of several.
    pub seconds: f64,
}

/// Computes on the first GPU.
///
/// # Errors
/// [`Error::NoDriver`], [`Error::OtherGpu`], [`Error::TooMany`], and [`Error::Driver`] where a call of the driver fails.
pub fn run(
    kernel: &Kernel,
    launch: &Launch,
    code: Vec<u8>,
    a: &[f16],
    b: &[f16],
    sizes: Sizes,
) -> Result<Outcome, Error> {
    // SAFETY: only looks whether the library can be loaded. Without it cudarc would panic.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::NoDriver);
    }
    let context = CudaContext::new(0).map_err(Error::driver("no GPU"))?;
    let about = Error::driver("the GPU");
    let (major, minor) = context.compute_capability().map_err(&about)?;
    let wanted: String = kernel.architecture.chars().filter(char::is_ascii_digit).collect();
    if wanted != format!("{major}{minor}") {
        return Err(Error::OtherGpu { architecture: kernel.architecture.clone(), major, minor });
    }
    let count = context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT).map_err(&about)?;
    let config = LaunchConfig {
        grid_dim: (kernel.ctas(launch.programs, u64::from(count.unsigned_abs()))?, 1, 1),
        block_dim: (kernel.threads, 1, 1),
        shared_mem_bytes: kernel.shared_memory,
    };

    let loading = Error::driver("the kernel's machine code");
    let module = context.load_module(Ptx::from_binary(code)).map_err(&loading)?;
    let function = module.load_function(&kernel.function).map_err(&loading)?;
    // A thread block has at most 227 KiB.
    let most = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    function.set_attribute(most, kernel.shared_memory as i32).map_err(Error::driver("the kernel's shared memory"))?;

    let stream = context.default_stream();
    let copying = Error::driver("memory of the GPU");
    let upload = |matrix: &[f16]| -> Result<CudaSlice<u16>, DriverError> {
        let bits: Vec<u16> = matrix.iter().map(|element| element.to_bits()).collect();
        stream.clone_htod(&bits)
    };
    let (a, b) = (upload(a).map_err(&copying)?, upload(b).map_err(&copying)?);
    let c = stream.clone_htod(&vec![UNWRITTEN; sizes.m as usize * sizes.n as usize]).map_err(&copying)?;

    let mut passed = Vec::new();
    for argument in &launch.arguments {
        passed.push(match argument {
            Argument::Number(value) => Passed::Number(*value),
            Argument::Map(parameter, map) => {
                let matrix = match parameter.as_str() {
                    "a_desc" => &a,
                    "b_desc" => &b,
                    _ => &c,
                };
                Passed::Map(encode(map, matrix.device_ptr(&stream).0)?)
            }
        });
    }
    let launch_once = || {
        let mut builder = stream.launch_builder(&function);
        for argument in &passed {
            match argument {
                Passed::Map(map) => builder.arg(map),
                Passed::Number(number) => builder.arg(number),
            };
        }
        // SAFETY: kernel.json says what the function takes, and in what order; TMA keeps within the matrices.
        unsafe { builder.launch(config) }.map(|_| ()).map_err(Error::driver("the launch"))
    };
    launch_once()?;
    let bits = stream.clone_dtoh(&c).map_err(Error::driver("the kernel"))?;
    // The copy may still be under way.
    stream.synchronize().map_err(Error::driver("the kernel"))?;

    let timing = Error::driver("an event");
    let event = || context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).map_err(&timing);
    let (begin, end) = (event()?, event()?);
    for _ in 0..WARM_UP {
        launch_once()?;
    }
    begin.record(&stream).map_err(&timing)?;
    for _ in 0..LAUNCHES {
        launch_once()?;
    }
    end.record(&stream).map_err(&timing)?;
    let milliseconds = begin.elapsed_ms(&end).map_err(&timing)?;
    Ok(Outcome {
        c: bits.into_iter().map(f16::from_bits).collect(),
        seconds: f64::from(milliseconds) * 1e-3 / f64::from(LAUNCHES),
    })
}

/// A tensor map of the matrix at an address.
fn encode(map: &TensorMap, address: sys::CUdeviceptr) -> Result<Map, Error> {
    let mut made = Map(sys::CUtensorMap { opaque: [0; 16] });
    // SAFETY: the arrays have as many elements as `cuTensorMapEncodeTiled` reads: the rank, strides one less.
    unsafe {
        sys::cuTensorMapEncodeTiled(
            &raw mut made.0,
            map.data_type,
            map.shape.len() as u32,
            address as *mut _,
            map.shape.as_ptr(),
            map.strides.as_ptr(),
            map.extents.as_ptr(),
            map.element_strides.as_ptr(),
            TensorMap::INTERLEAVE,
            map.swizzle,
            TensorMap::L2_PROMOTION,
            TensorMap::OOB_FILL,
        )
    }
    .result()
    .map_err(Error::driver("a tensor map"))?;
    Ok(made)
}
