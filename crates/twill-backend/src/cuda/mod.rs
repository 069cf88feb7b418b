//! Warp programs as CUDA C++, if you have no Python where the kernel runs.
//!
//! | file | what |
//! |---|---|
//! | `source` | the file: tiles in shared memory, groups, kernel |
//! | `group` | what a group does |
//! | `expression` | what is computed, element by element |
//! | `operation` | operations on elements |
//! | `fragment` | how threads hold tiles, as types of `twill.cuh` |
//! | `instruction` | the MMAs that the kernel uses |
//! | `tensor_memory` | Blackwell's MMAs and the memory of their results |
//! | `tensor_map` | tensor maps of TMA, and their boxes |
//! | `host` | the entry from C, which makes tensor maps and launches |
//! | `wave_sync` | soft grid barrier (wave sync) |
//! | `names` | what C++ calls things |
//! | `trace` | the time stamps of a traced kernel |
//! | `scratch` | what threads exchange through shared memory |
//! | `opaque` | operations that no pass has a rule for |
//! | `rows` | which tiles are held as those from tensor memory |
//! | `twill.cuh` | tile primitives that every kernel uses |
//! | `twill_scratch.cuh` | those of kernels that use scratch memory |
//! | `twill_tcgen05.cuh` | those of kernels with tensor memory |
//! | `twill_cluster.cuh` | those of kernels whose CTAs form clusters |
//! | `twill_wave_sync.cuh` | the soft grid barrier (wave sync) |

mod expression;
mod fragment;
mod group;
mod host;
mod instruction;
mod names;
mod one_thread;
mod opaque;
mod operation;
mod rows;
mod scratch;
mod source;
mod storage;
mod tensor_map;
mod tensor_memory;
mod tiles;
mod trace;
mod wave_sync;

use crate::dead_code;
use crate::header::Header;
use crate::listing::Listing;
use std::collections::BTreeMap;
pub use tensor_map::Boxes;
use twill_codegen::Checked;
use twill_codegen::Error;
use twill_codegen::ir::Descriptor;

/// The tile primitives, written next to every kernel.
pub const PRIMITIVES: &str = include_str!("twill.cuh");

/// The primitives of scratch memory.
const SCRATCH_PRIMITIVES: &str = include_str!("twill_scratch.cuh");

/// The primitives of tensor memory.
const TENSOR_PRIMITIVES: &str = include_str!("twill_tcgen05.cuh");

/// The primitives of clusters.
const CLUSTER_PRIMITIVES: &str = include_str!("twill_cluster.cuh");

/// The soft grid barrier (wave sync).
const WAVE_SYNC_PRIMITIVES: &str = include_str!("twill_wave_sync.cuh");

/// The headers that the kernel includes, by their names.
///
/// # Errors
/// [`Error::NotInCuda`] for what only the Gluon back end can write.
pub fn headers(kernel: &Checked) -> Result<Vec<(&'static str, &'static str)>, Error> {
    let mut headers = vec![("twill.cuh", PRIMITIVES)];
    if source::groups(&dead_code::removed(kernel))?.iter().any(source::PrintedGroup::uses_scratch_primitives) {
        headers.push(("twill_scratch.cuh", SCRATCH_PRIMITIVES));
    }
    if tensor_memory::is_used(kernel) {
        headers.push(("twill_tcgen05.cuh", TENSOR_PRIMITIVES));
    }
    if kernel.cluster.is_some() {
        headers.push(("twill_cluster.cuh", CLUSTER_PRIMITIVES));
    }
    if kernel.tile_scheduler.wave_sync {
        headers.push(("twill_wave_sync.cuh", WAVE_SYNC_PRIMITIVES));
    }
    Ok(headers)
}

/// The kernel's source.
///
/// # Errors
/// [`Error::NotInCuda`] for what only the Gluon back end can write.
pub fn source(kernel: &Checked, header: &Header) -> Result<String, Error> {
    Ok(listing(kernel, header)?.text)
}

/// The kernel's source, with the lines that run operations.
///
/// # Errors
/// [`Error::NotInCuda`] for what only the Gluon back end can write.
pub fn listing(kernel: &Checked, header: &Header) -> Result<Listing, Error> {
    Ok(Listing::new(&source::print(&dead_code::removed(kernel), header)?))
}

/// `kernel.h`, for callers in C or C++.
///
/// # Errors
/// [`Error::NotInCuda`] for parameters that C has no type for.
pub fn header(kernel: &Checked) -> Result<String, Error> {
    host::header(kernel)
}

/// What a launch takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The kernel's symbol.
    pub function: String,
    /// Threads of a CTA.
    pub threads: u32,
    /// Bytes of dynamic shared memory.
    pub shared_memory: u64,
    /// The warp groups, in the order of their warps.
    pub groups: Vec<String>,
    /// By argument, how the tiles of a descriptor are copied.
    pub boxes: BTreeMap<String, Boxes>,
}

/// What a launch of the kernel takes.
///
/// # Errors
/// [`Error::NotInCuda`] for what only the Gluon back end can write.
pub fn launch(kernel: &Checked) -> Result<Launch, Error> {
    let warps = storage::Warps::of(kernel)?;
    let scratch: Vec<_> = source::groups(&dead_code::removed(kernel))?.iter().map(|group| group.scratch).collect();
    let name = |k: &usize| kernel.groups[*k].name.clone();
    let named = |d: &Descriptor| Ok((d.name.clone(), Boxes::of(kernel, d)?));
    let boxes = kernel.descriptors.iter().map(named).collect::<Result<_, Error>>()?;
    Ok(Launch {
        function: names::name(&kernel.name),
        threads: warps.threads(),
        shared_memory: storage::Storage::of(kernel, &scratch).total,
        groups: warps.warp_groups.iter().flat_map(|(_, groups)| groups.iter().map(|(k, _)| name(k))).collect(),
        boxes,
    })
}
