//! What the protocol checker sees of two CTAs of a cluster.

use crate::ir::Cluster;
use crate::passes::multicast::CTAS;
use twill_check::protocol::{
    Access, BarrierId, Buffer, BufferId, Event, NamedBarrierId, Node as Step, Process, System,
};

impl Cluster {
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
        match rings.iter().position(|ring| ring.buffer.0 == access.buffer.0) {
            Some(ring) if half > 0 => {
                let first = CTAS * count(&self.one.buffers) + cta * count(rings);
                Access { buffer: BufferId(first + twill_graph::narrow(ring)), ..access }
            }
            _ => whole,
        }
    }

    /// All that a CTA reads or writes where the code of one names a slot.
    fn own(&self, access: Access, cta: u32) -> Vec<Access> {
        let halves = if self.cluster.loads(own_buffer(access.buffer)) { CTAS } else { 1 };
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
            Event::Load { writes, barrier, at, by_unit } if self.cluster.loads(own_buffer(writes.buffer)) => (0..CTAS)
                .map(|to| Event::Load {
                    writes: self.half(*writes, cta, to),
                    barrier: self.barrier(*barrier, to),
                    at: *at,
                    by_unit: *by_unit,
                })
                .collect(),
            Event::Load { writes, barrier, at, by_unit } => {
                let (writes, barrier) = (self.half(*writes, 0, cta), self.barrier(*barrier, cta));
                vec![Event::Load { writes, barrier, at: *at, by_unit: *by_unit }]
            }
            Event::Arrive { barrier, at } if self.cluster.releases(own_barrier(*barrier)) => {
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
    twill_graph::narrow(list.len())
}

/// The program's number of a buffer.
fn own_buffer(id: BufferId) -> crate::ir::BufferId {
    crate::ir::BufferId(id.0)
}

/// The program's number of barriers.
fn own_barrier(id: BarrierId) -> crate::ir::BarrierId {
    crate::ir::BarrierId(id.0)
}
