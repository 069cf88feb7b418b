//! Structural checks of a system.

use super::error::ProtocolError;
use super::system::{
    Access, BarrierId, BufferId, CursorId, Event, Iteration, LoopId, NamedBarrierId, Node, Process, System,
};

/// Every name names something, cursors fit what they are used for, and tiles and iterations are where they mean something.
pub(super) fn check(system: &System) -> Result<(), ProtocolError> {
    let wrong = |place: String, problem: &str| Err(ProtocolError::Malformed { place, problem: problem.into() });
    if system.processes.len() > 16 {
        return wrong("processes".into(), "more than 16");
    }
    let sensible = |slots: u32| (1..=1024).contains(&slots);
    if let Some(buffer) = system.buffers.iter().find(|b| !sensible(b.slots)) {
        return wrong(format!("buffer {}", buffer.name), "has no slots, or more than 1024");
    }
    if let Some(barrier) = system.barriers.iter().find(|b| !sensible(b.slots)) {
        return wrong(format!("barrier {}", barrier.name), "has no slots, or more than 1024");
    }
    if let Some(barrier) = system.barriers.iter().find(|b| b.arrivals == 0) {
        return wrong(format!("barrier {}", barrier.name), "takes no arrivals; at least one");
    }
    if let Some(named) = system.named_barriers.iter().find(|b| b.participants == 0) {
        return wrong(format!("named barrier {}", named.name), "has no participants; at least one");
    }
    let mut check = Check { system, process: None, inside: Vec::new(), outside: Vec::new() };
    for process in &system.processes {
        check.process = Some(process);
        if let Some(cursor) = process.cursors.iter().find(|c| c.slots == 0) {
            return wrong(format!("{}: cursor {}", process.name, cursor.name), "has no slots; at least one");
        }
        check.nodes(&process.body, false, false)?;
    }
    match check.outside.iter().find(|id| check.inside.contains(id)) {
        Some(id) => wrong(
            format!("loop {}", system.loops[id.index()]),
            "runs inside and outside of tiles, whose trip counts differ; name two loops",
        ),
        None => Ok(()),
    }
}

struct Check<'a> {
    system: &'a System,
    process: Option<&'a Process>,
    /// Loops that are named inside and outside of tiles.
    inside: Vec<LoopId>,
    outside: Vec<LoopId>,
}

impl Check<'_> {
    fn wrong<T>(&self, problem: String) -> Result<T, ProtocolError> {
        Err(ProtocolError::Malformed { place: self.process.map_or_else(String::new, |p| p.name.clone()), problem })
    }

    fn nodes(&mut self, nodes: &[Node], in_loop: bool, in_tiles: bool) -> Result<(), ProtocolError> {
        for node in nodes {
            match node {
                Node::Do(event) => self.event(event, in_loop, in_tiles)?,
                Node::Loop { trips, body, .. } => {
                    self.trips(*trips, in_tiles)?;
                    self.nodes(body, true, in_tiles)?;
                }
                Node::When { trips, body, .. } => {
                    self.trips(*trips, in_tiles)?;
                    self.nodes(body, in_loop, in_tiles)?;
                }
                Node::Tiles(_) if in_tiles || in_loop => {
                    return self.wrong("tiles within tiles or within a loop; they go around all loops".into());
                }
                Node::Tiles(body) => self.nodes(body, false, true)?,
            }
        }
        Ok(())
    }

    fn trips(&mut self, id: LoopId, in_tiles: bool) -> Result<(), ProtocolError> {
        if id.index() >= self.system.loops.len() {
            return self.wrong(format!("loop {} does not exist; there are {}", id.0, self.system.loops.len()));
        }
        if in_tiles {
            self.inside.push(id)
        } else {
            self.outside.push(id)
        }
        Ok(())
    }

    fn event(&mut self, event: &Event, in_loop: bool, in_tiles: bool) -> Result<(), ProtocolError> {
        match event {
            Event::Wait { barrier, at, .. } | Event::Arrive { barrier, at } => self.barrier(*barrier, *at),
            Event::Load { writes, barrier, at, .. } => {
                self.barrier(*barrier, *at)?;
                self.access(writes, in_loop, in_tiles)
            }
            Event::Mma { reads, writes, signals } => {
                reads.iter().chain(writes).try_for_each(|access| self.access(access, in_loop, in_tiles))?;
                signals.iter().try_for_each(|&(barrier, at)| self.barrier(barrier, at))
            }
            Event::Write(access) | Event::Read(access) | Event::Store(access) => self.access(access, in_loop, in_tiles),
            Event::NamedBarrierSync(named) | Event::NamedBarrierArrive(named) => self.named(*named),
            Event::Advance(cursor) => self.cursor(*cursor).map(|_| ()),
            Event::CopyCursor { to, from } => {
                if self.cursor(*to)? == self.cursor(*from)? {
                    return Ok(());
                }
                self.wrong(format!("cursor {} is kept at cursor {}, which has other slots", to.0, from.0))
            }
            Event::MmaWait(_) | Event::StoreWait(_) | Event::Fence => Ok(()),
        }
    }

    fn cursor(&self, id: CursorId) -> Result<u32, ProtocolError> {
        match self.process.and_then(|p| p.cursors.get(id.index())) {
            Some(cursor) => Ok(cursor.slots),
            None => self.wrong(format!("cursor {} does not exist", id.0)),
        }
    }

    fn fits(&self, name: &str, slots: u32, at: CursorId) -> Result<(), ProtocolError> {
        let cursor = self.cursor(at)?;
        if cursor <= slots {
            return Ok(());
        }
        self.wrong(format!("cursor {} goes round {cursor} slots, {name} has {slots}; as many at most", at.0))
    }

    fn barrier(&self, id: BarrierId, at: CursorId) -> Result<(), ProtocolError> {
        match self.system.barriers.get(id.index()) {
            Some(barrier) => self.fits(&barrier.name, barrier.slots, at),
            None => self.wrong(format!("barrier {} does not exist", id.0)),
        }
    }

    fn named(&self, id: NamedBarrierId) -> Result<(), ProtocolError> {
        if id.index() < self.system.named_barriers.len() {
            return Ok(());
        }
        self.wrong(format!("named barrier {} does not exist", id.0))
    }

    fn access(&mut self, access: &Access, in_loop: bool, in_tiles: bool) -> Result<(), ProtocolError> {
        let BufferId(id) = access.buffer;
        let Some(buffer) = self.system.buffers.get(access.buffer.index()) else {
            return self.wrong(format!("buffer {id} does not exist"));
        };
        if let Some(at) = access.at {
            self.fits(&buffer.name, buffer.slots, at)?;
        }
        match access.value.iteration {
            Iteration::Current(_) if !in_loop => {
                self.wrong(format!("value {} is of the current iteration, outside of loops", access.value.value))
            }
            Iteration::End(id, _) => self.trips(id, in_tiles),
            _ => Ok(()),
        }
    }
}
