//! What `step.cu` is given, byte by byte as it is declared there.

use cudarc::driver::DeviceRepr;
use cudarc::driver::sys::CUdeviceptr;

/// `Arrays` of `step.cu`: sizes, and where on the GPU everything is.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrays {
    pub count: u32,
    pub levels: u32,
    pub tracks: u32,
    pub resources: u32,
    pub length: u32,
    pub slots: u32,
    pub layout: u32,
    pub has_storage: u32,
    pub mean_slots: f64,
    pub unit: f64,
    pub first: CUdeviceptr,
    pub ends: CUdeviceptr,
    pub tracks_of: CUdeviceptr,
    pub limit: CUdeviceptr,
    pub peak: CUdeviceptr,
    pub first_use: CUdeviceptr,
    pub use_track: CUdeviceptr,
    pub use_offset: CUdeviceptr,
    pub use_end: CUdeviceptr,
    pub use_amount: CUdeviceptr,
    pub stored: CUdeviceptr,
    pub later: CUdeviceptr,
    pub earliest: CUdeviceptr,
    pub latest: CUdeviceptr,
    pub first_out: CUdeviceptr,
    pub out_to: CUdeviceptr,
    pub out_lag: CUdeviceptr,
    pub out_shift: CUdeviceptr,
    pub first_in: CUdeviceptr,
    pub in_from: CUdeviceptr,
    pub in_lag: CUdeviceptr,
    pub in_edge: CUdeviceptr,
    pub moments: CUdeviceptr,
    pub gradient: CUdeviceptr,
    pub reads: CUdeviceptr,
    pub by_read: CUdeviceptr,
    pub share: CUdeviceptr,
    pub laid: CUdeviceptr,
    pub grids: CUdeviceptr,
    pub steps: CUdeviceptr,
    pub folded: CUdeviceptr,
    pub losses: CUdeviceptr,
    pub broken: CUdeviceptr,
    pub weights: CUdeviceptr,
}

/// `Step` of `step.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Step {
    pub at: CUdeviceptr,
    pub next: CUdeviceptr,
    pub parity: u32,
    pub blocks: u32,
    pub follows: u32,
    pub applies: u32,
    pub temperature: f64,
    pub ceiling: f64,
    pub floor: f64,
    pub rate: f64,
    pub first_bias: f64,
    pub second_bias: f64,
    pub unit: [f64; 2],
    pub lambda: [f64; 2],
    pub rho: [f64; 2],
    pub scale: [f64; 2],
    pub objective: f64,
    pub probability: u32,
    pub pad: u32,
}

// SAFETY: plain numbers in the order and with the alignment of the structures in `step.cu`, whose sizes the test below knows.
unsafe impl DeviceRepr for Arrays {}
// SAFETY: as above.
unsafe impl DeviceRepr for Step {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_that_the_kernels_state() {
        // `step.cu` asserts the same numbers.
        assert_eq!((size_of::<Arrays>(), size_of::<Step>()), (320, 160));
    }
}
