//! Two CTAs of a cluster, with neighbouring tiles, load once what both of them read: each copies one half of it into the
//! shared memory of both (TMA multicast). What is full or empty is so for each CTA by itself; a slot is empty when the groups
//! of both have released it.

use crate::builder::kernel::{KernelBuilder, is_tma};
use crate::error::Error;
use crate::ir::{Cluster, Group, MulticastRing, TileOrder, WarpProgram};
use crate::ir::{Op, visit};
use crate::passes::steps::program::BufferKind;
use std::collections::BTreeMap;
use twill_check::protocol::{
    Access, BarrierId, Buffer, BufferId, Event, NamedBarrierId, Node as Step, Process, System,
};
use twill_triton::tile::{Axis, Kind};

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
/// Where there is none, or the two would not go through their loops in step.
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
        let is_dot = |op| facts.tile_operation(op).is_some_and(|o| matches!(o.kind, Kind::Dot { .. }));
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
    for action in groups.iter().flat_map(actions) {
        let Op::TmaLoad { to, full, descriptor, .. } = action else { continue };
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
    groups.iter().flat_map(actions).any(|action| match action {
        Op::TmaLoad { descriptor, to, full, .. } if to.buffer == ring.buffer => {
            *descriptor != ring.descriptor || *full != ring.full
        }
        Op::TmaLoad { descriptor, to, .. } => *descriptor == ring.descriptor && !rings.contains_key(&to.buffer),
        Op::TmaStore { descriptor, from, .. } => *descriptor == ring.descriptor || from.buffer == ring.buffer,
        Op::CpAsync { to, .. } | Op::LocalStore { to, .. } => to.buffer == ring.buffer,
        _ => false,
    })
}

/// Everything that a group does.
fn actions(group: &Group) -> Vec<&Op> {
    let mut all = Vec::new();
    [&group.begin, &group.body, &group.end].into_iter().for_each(|nodes| visit(nodes, &mut |action| all.push(action)));
    all
}

impl WarpProgram {
    /// Whether the groups of both CTAs of a cluster arrive at a barrier.
    pub fn is_released_by_both(&self, barrier: BarrierId) -> bool {
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
    fn loads(&self, buffer: BufferId) -> bool {
        self.rings.iter().any(|ring| ring.buffer == buffer)
    }

    /// Whether the groups of both CTAs arrive at a barrier.
    fn releases(&self, barrier: BarrierId) -> bool {
        self.rings.iter().any(|ring| ring.empty == barrier)
    }

    /// What the protocol checker sees of both CTAs: what each has of its own twice, and each slot of a ring that they load
    /// together as two halves, of which each CTA brings one to both.
    pub(crate) fn of_both(&self, one: &System) -> System {
        let both = Both { cluster: self, one };
        let cta = |name: &str, cta: u32| format!("{name} of CTA {cta}");
        let mut system = System { loops: one.loops.clone(), ..System::default() };
        for of in 0..CTAS {
            system.buffers.extend(one.buffers.iter().map(|b| Buffer { name: cta(&b.name, of), slots: b.slots }));
            system.barriers.extend(one.barriers.iter().enumerate().map(|(k, b)| {
                let is_shared = self.rings.iter().any(|r| r.full.index() == k || r.empty.index() == k);
                let mut barriers = b.clone();
                barriers.name = cta(&b.name, of);
                barriers.arrivals *= if is_shared { CTAS } else { 1 };
                barriers
            }));
            system.named_barriers.extend(one.named_barriers.iter().map(|b| {
                let mut barrier = b.clone();
                barrier.name = cta(&b.name, of);
                barrier
            }));
            system.processes.extend(one.processes.iter().map(|p| Process {
                name: cta(&p.name, of),
                cursors: p.cursors.clone(),
                body: both.steps(&p.body, of),
            }));
        }
        for of in 0..CTAS {
            let halves = self.rings.iter().map(|ring| &one.buffers[ring.buffer.index()]);
            system
                .buffers
                .extend(halves.map(|b| Buffer { name: cta(&format!("{}, below", b.name), of), slots: b.slots }));
        }
        system
    }
}

/// Numbers of things of one CTA among those of both.
struct Both<'a> {
    cluster: &'a Cluster,
    one: &'a System,
}

impl Both<'_> {
    fn barrier(&self, barrier: BarrierId, cta: u32) -> BarrierId {
        BarrierId(barrier.0 + cta * count(&self.one.barriers))
    }

    fn named(&self, barrier: NamedBarrierId, cta: u32) -> NamedBarrierId {
        NamedBarrierId(barrier.0 + cta * count(&self.one.named_barriers))
    }

    /// A half of a tile that both load, in one CTA: the upper one is where the whole is.
    fn half(&self, access: Access, half: u32, cta: u32) -> Access {
        let whole = Access { buffer: BufferId(access.buffer.0 + cta * count(&self.one.buffers)), ..access };
        let rings = &self.cluster.rings;
        match rings.iter().position(|ring| ring.buffer == access.buffer) {
            Some(ring) if half > 0 => {
                let first = CTAS * count(&self.one.buffers) + cta * count(rings);
                Access { buffer: BufferId(first + u32::try_from(ring).unwrap_or(0)), ..access }
            }
            _ => whole,
        }
    }

    /// All that a CTA reads or writes where the code of one names a slot.
    fn own(&self, access: Access, cta: u32) -> Vec<Access> {
        let halves = if self.cluster.loads(access.buffer) { CTAS } else { 1 };
        (0..halves).map(|half| self.half(access, half, cta)).collect()
    }

    fn steps(&self, nodes: &[Step], cta: u32) -> Vec<Step> {
        let mut all = Vec::new();
        for node in nodes {
            match node {
                Step::Do(event) => all.extend(self.events(event, cta).into_iter().map(Step::Do)),
                Step::Loop { trips, first, body } => {
                    all.push(Step::Loop { trips: *trips, first: *first, body: self.steps(body, cta) });
                }
                Step::When { trips, at_least, at_most, body } => all.push(Step::When {
                    trips: *trips,
                    at_least: *at_least,
                    at_most: *at_most,
                    body: self.steps(body, cta),
                }),
                Step::Tiles(body) => all.push(Step::Tiles(self.steps(body, cta))),
            }
        }
        all
    }

    fn events(&self, event: &Event, cta: u32) -> Vec<Event> {
        let all = |accesses: &[Access]| accesses.iter().flat_map(|a| self.own(*a, cta)).collect::<Vec<_>>();
        match event {
            Event::Load { writes, barrier, at } if self.cluster.loads(writes.buffer) => (0..CTAS)
                .map(|to| Event::Load {
                    writes: self.half(*writes, cta, to),
                    barrier: self.barrier(*barrier, to),
                    at: *at,
                })
                .collect(),
            Event::Load { writes, barrier, at } => {
                vec![Event::Load { writes: self.half(*writes, 0, cta), barrier: self.barrier(*barrier, cta), at: *at }]
            }
            Event::Arrive { barrier, at } if self.cluster.releases(*barrier) => {
                (0..CTAS).map(|to| Event::Arrive { barrier: self.barrier(*barrier, to), at: *at }).collect()
            }
            Event::Arrive { barrier, at } => vec![Event::Arrive { barrier: self.barrier(*barrier, cta), at: *at }],
            Event::Wait { barrier, at, previous } => {
                vec![Event::Wait { barrier: self.barrier(*barrier, cta), at: *at, previous: *previous }]
            }
            Event::Mma { reads, writes, signals } => vec![Event::Mma {
                reads: all(reads),
                writes: all(writes),
                signals: signals.iter().map(|(barrier, at)| (self.barrier(*barrier, cta), *at)).collect(),
            }],
            Event::Write(access) => self.own(*access, cta).into_iter().map(Event::Write).collect(),
            Event::Read(access) => self.own(*access, cta).into_iter().map(Event::Read).collect(),
            Event::Store(access) => vec![Event::Store(self.half(*access, 0, cta))],
            Event::NamedBarrierSync(barrier) => vec![Event::NamedBarrierSync(self.named(*barrier, cta))],
            Event::NamedBarrierArrive(barrier) => vec![Event::NamedBarrierArrive(self.named(*barrier, cta))],
            Event::Fence | Event::MmaWait(_) | Event::StoreWait(_) | Event::Advance(_) | Event::CopyCursor { .. } => {
                vec![event.clone()]
            }
        }
    }
}

fn count<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}
