//! Two CTAs of a cluster, with neighbouring tiles, load once what both of them read: each copies one half of it into the
//! shared memory of both (TMA multicast). What is full or empty is so for each CTA by itself; a slot is empty when the groups
//! of both have released it.

use crate::builder::kernel::{KernelBuilder, is_tma};
use crate::error::Error;
use crate::ir::{BarrierId, BufferId};
use crate::ir::{Cluster, Group, MulticastRing, TileOrder, WarpProgram};
use crate::ir::{Op, visit};
use crate::passes::steps::program::BufferKind;
use std::collections::BTreeMap;
use twill_triton::tile::{Axis, TileOpKind};

/// CTAs of a cluster.
pub const CTAS: u32 = 2;

/// Lines of a pattern of swizzling: a half of a tile consists of whole ones.
const PATTERN: u64 = 8;

/// The pass.
///
/// Before: the groups are complete. After: with the option, the rings that both CTAs of a cluster load are known; code is the same.
pub(crate) fn run(builder: &mut KernelBuilder<'_>) -> Result<(), Error> {
    if builder.options.cluster {
        builder.program.cluster = Some(plan(builder, &builder.program.groups)?);
    }
    Ok(())
}

/// The rings that two CTAs whose programs follow each other along the first axis of the grid can load together.
///
/// # Errors
/// Where there is none, or the two would not go through their loops in lockstep.
fn plan(lowering: &KernelBuilder<'_>, groups: &[Group]) -> Result<Cluster, Error> {
    let refuse = |what: &str, way_out| Err(lowering.unsupported(lowering.kernel.function(), what, way_out));
    if lowering.has_tensor_memory() {
        return refuse("clusters of CTAs with tensor memory", "leave out --cluster");
    }
    for l in &lowering.loops {
        let bounds = [l.parts.lower, l.parts.upper, l.parts.step];
        if bounds.iter().any(|bound| lowering.kernel.differs(*bound).contains(Axis::X)) {
            return Err(lowering.unsupported(
                l.parts.operation,
                "clusters of CTAs that run this loop differently often",
                "leave out --cluster",
            ));
        }
    }
    let returns = lowering.early_returns();
    if let Some(id) = returns.iter().find(|id| {
        let conditions = &lowering.module.operation(**id).operands;
        conditions.iter().any(|condition| lowering.kernel.differs(*condition).contains(Axis::X))
    }) {
        return Err(lowering.unsupported(*id, "clusters of CTAs of which one may return early", "leave out --cluster"));
    }
    match lowering.options.order {
        TileOrder::Lpt { .. } => {
            return refuse("clusters of CTAs where long loops come first", "ask for --tile-order linear too");
        }
        TileOrder::GroupM(rows) if rows % CTAS != 0 => {
            return refuse("clusters of two CTAs in bands of an odd number of programs", "ask for an even --group-m");
        }
        TileOrder::GroupM(_) | TileOrder::Linear => {}
    }
    let mut rings = common(lowering, groups);
    // A descriptor copies parts of one size.
    while let Some(buffer) = rings.values().find(|ring| is_used_otherwise(groups, &rings, ring)).map(|ring| ring.buffer)
    {
        rings.remove(&buffer);
    }
    if rings.is_empty() {
        return if lowering.storage.buffers.values().any(|buffer| is_common(lowering, *buffer)) {
            refuse(
                "clusters whose common tiles cannot be copied in halves: of two dimensions, a multiple of 16 rows, and a \
                 descriptor that copies nothing else",
                "leave out --cluster",
            )
        } else {
            refuse(
                "a cluster of CTAs without a tile that TMA loads in the loop for mmas alone, alike for programs next to \
                 each other along x",
                "leave out --cluster, or let the grid's first axis be the one along which loads are shared",
            )
        };
    }
    Ok(Cluster { rings: rings.into_values().collect() })
}

/// Whether a buffer is a ring of loops whose tiles are the same for both CTAs. Tensor cores read them and no threads: those
/// would release a slot to the other CTA without a fence of the cluster.
fn is_common(lowering: &KernelBuilder<'_>, at: BufferId) -> bool {
    let mut of = lowering.storage.buffers.iter().filter(|(_, known)| **known == at);
    of.all(|((index, id), _)| {
        let facts = &lowering.loops[*index];
        let buffer = facts.program.buffer(*id);
        let is_dot = |op| facts.tile_operation(op).is_some_and(|o| matches!(o.kind, TileOpKind::Dot { .. }));
        let alike = |op| {
            let tile = facts.tile_operation(op).and_then(|o| o.result);
            let same = tile.is_some_and(|t| !facts.tiles.tile(t).differs.contains(Axis::X));
            is_tma(facts, op) && same && facts.problem.graph().uses(op).all(|d| is_dot(d.to))
        };
        matches!(buffer.kind, BufferKind::Ring(_)) && buffer.values.iter().all(|v| alike(v.op))
    })
}

/// Rings of such tiles in halves that TMA can copy.
fn common(lowering: &KernelBuilder<'_>, groups: &[Group]) -> BTreeMap<BufferId, MulticastRing> {
    let halves = |at: BufferId| {
        let buffer = &lowering.program.buffers[at.index()];
        matches!(buffer.shape[..], [rows, _] if rows.is_multiple_of(u64::from(CTAS) * PATTERN))
    };
    let mut rings = BTreeMap::new();
    for op in groups.iter().flat_map(ops) {
        let Op::TmaLoad { to, full, descriptor, .. } = op else { continue };
        let (buffer, known) = (to.buffer, rings.contains_key(&to.buffer));
        let whole =
            lowering.program.descriptors[descriptor.index()].block == lowering.program.buffers[buffer.index()].shape;
        if let Some(empty) = lowering.storage.empty.get(&buffer)
            && !known
            && whole
            && is_common(lowering, buffer)
            && halves(buffer)
        {
            rings.insert(buffer, MulticastRing { buffer, descriptor: *descriptor, full: *full, empty: *empty });
        }
    }
    rings
}

/// Whether a ring is loaded in another way too, or its descriptor copies something else.
fn is_used_otherwise(groups: &[Group], rings: &BTreeMap<BufferId, MulticastRing>, ring: &MulticastRing) -> bool {
    groups.iter().flat_map(ops).any(|op| match op {
        Op::TmaLoad { descriptor, to, full, .. } if to.buffer == ring.buffer => {
            *descriptor != ring.descriptor || *full != ring.full
        }
        Op::TmaLoad { descriptor, to, .. } => *descriptor == ring.descriptor && !rings.contains_key(&to.buffer),
        Op::TmaStore { descriptor, from, .. } => *descriptor == ring.descriptor || from.buffer == ring.buffer,
        Op::CpAsync { whole: Some(whole), .. } if whole.descriptor == ring.descriptor => true,
        Op::CpAsync { to, .. } | Op::LocalStore { to, .. } => to.buffer == ring.buffer,
        _ => false,
    })
}

/// Everything that a group does.
fn ops(group: &Group) -> Vec<&Op> {
    let mut all = Vec::new();
    [&group.begin, &group.body, &group.end].into_iter().for_each(|nodes| visit(nodes, &mut |op| all.push(op)));
    all
}

impl WarpProgram {
    /// Whether the groups of both CTAs of a cluster arrive at a barrier.
    pub fn has_arrivals_of_both_ctas(&self, barrier: BarrierId) -> bool {
        self.cluster.as_ref().is_some_and(|cluster| cluster.releases(barrier))
    }

    /// Whether both CTAs of a cluster load a buffer, each one half.
    pub fn is_loaded_in_halves(&self, buffer: BufferId) -> bool {
        self.cluster.as_ref().is_some_and(|cluster| cluster.loads(buffer))
    }

    /// CTAs that form a cluster: 2, or 1 where none is formed.
    pub fn ctas_per_cluster(&self) -> u32 {
        if self.cluster.is_some() { CTAS } else { 1 }
    }
}

impl Cluster {
    /// Whether both CTAs load a buffer together.
    pub(crate) fn loads(&self, buffer: BufferId) -> bool {
        self.rings.iter().any(|ring| ring.buffer == buffer)
    }

    /// Whether the groups of both CTAs arrive at a barrier.
    pub(crate) fn releases(&self, barrier: BarrierId) -> bool {
        self.rings.iter().any(|ring| ring.empty == barrier)
    }
}
