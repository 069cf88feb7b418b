//! Rings that a group fills by copies of its own (PTX, `cp.async` in groups): every tile that it reads is the one of its iteration, and
//! is there; none is overwritten before it was read, or while another copy to its slot is under way.
//!
//! The program is walked for each number of trips from 0 to a few times around the rings. Cursors count on: a copy puts a tile of the
//! fill cursor's number into a slot, and a read expects that of its own. Branches are walked in all ways, one after the other.

use crate::error::Error;
use crate::ir::{Group, Node, Op, Slot, WarpProgram, any};

/// Most slots of a ring whose loops are walked.
const MOST_SLOTS: u32 = 16;

/// A tile in a slot: its number, and the group of copies that brings it.
#[derive(Clone, Copy)]
struct Tile {
    number: u64,
    group: u64,
}

/// Whether a group makes groups of copies.
pub(super) fn fills(group: &Group) -> bool {
    any(&group.body, |op| matches!(op, Op::CpAsyncCommit | Op::CpAsyncWait(_) | Op::CpAsync { full: None, .. }))
}

struct Walk<'p> {
    program: &'p WarpProgram,
    trips: u64,
    /// How far each cursor went.
    cursors: Vec<u64>,
    slots: Vec<Vec<Option<Tile>>>,
    committed: u64,
    /// Groups of copies that were waited for.
    done: u64,
}

/// Proves it of all groups.
///
/// # Errors
/// [`Error::Protocol`] with what goes wrong, and after how many trips.
pub(super) fn check(program: &WarpProgram) -> Result<(), Error> {
    for group in &program.groups {
        if !fills(group) {
            continue;
        }
        let most = program.buffers.iter().map(|buffer| buffer.slots).max().unwrap_or(1);
        if most > MOST_SLOTS {
            return Err(Error::NotProved { why: format!("a ring has {most} slots") });
        }
        for trips in 0..=u64::from(2 * most + 1) {
            let slots = program.buffers.iter().map(|buffer| vec![None; buffer.slots as usize]).collect();
            let cursors = vec![0; group.cursors.len()];
            let mut walk = Walk { program, trips, cursors, slots, committed: 0, done: 0 };
            let walked = walk.nodes(group, &group.body).and_then(|()| match walk.committed == walk.done {
                true => Ok(()),
                false => Err("copies are under way at the end".to_owned()),
            });
            walked.map_err(|why| Error::Protocol { counterexample: format!("{why}, after {trips} trips") })?;
        }
    }
    Ok(())
}

/// Whether a loop's own operations copy.
fn has_own(body: &[Node]) -> bool {
    body.iter().any(|node| matches!(node, Node::Op(Op::CpAsyncCommit | Op::CpAsyncWait(_), _)))
}

impl Walk<'_> {
    fn nodes(&mut self, group: &Group, nodes: &[Node]) -> Result<(), String> {
        for node in nodes {
            match node {
                Node::Op(op, _) => self.op(group, op)?,
                Node::For { lower, upper, body, .. } => {
                    let known = match (&lower.kind, &upper.kind) {
                        (crate::ir::ExpressionKind::Integer(a), crate::ir::ExpressionKind::Integer(b)) => {
                            u64::try_from(b - a).ok().filter(|trips| *trips <= u64::from(MOST_SLOTS))
                        }
                        _ => None,
                    };
                    // A loop around others begins theirs anew.
                    let trips = if has_own(body) { self.trips } else { self.trips.min(2) };
                    for _ in 0..known.unwrap_or(trips) {
                        self.nodes(group, body)?;
                    }
                }
                Node::While { before, body, .. } => {
                    for _ in 0..self.trips.min(2) {
                        self.nodes(group, before)?;
                        self.nodes(group, body)?;
                    }
                    self.nodes(group, before)?;
                }
                _ => node.blocks().into_iter().try_for_each(|block| self.nodes(group, block))?,
            }
        }
        Ok(())
    }

    fn place(&self, slot: &Slot) -> Option<(usize, usize, u64)> {
        let (buffer, at) = (slot.buffer.index(), slot.at?);
        let number = self.cursors[at.index()];
        let slots = self.slots[buffer].len() as u64;
        Some((buffer, usize::try_from(number % slots.max(1)).unwrap_or(0), number))
    }

    fn op(&mut self, group: &Group, op: &Op) -> Result<(), String> {
        let name = |program: &WarpProgram, buffer: usize| program.buffers[buffer].name.clone();
        for slot in op.reads() {
            let Some((buffer, at, number)) = self.place(&slot) else { continue };
            match self.slots[buffer][at] {
                Some(tile) if tile.group >= self.done => {
                    return Err(format!("{} is read before its copy is waited for", name(self.program, buffer)));
                }
                Some(tile) if tile.number == number => {}
                _ => return Err(format!("{} has no tile of this iteration", name(self.program, buffer))),
            }
        }
        match op {
            Op::CpAsync { to, full: None, .. } => {
                let Some((buffer, at, number)) = self.place(to) else { return Ok(()) };
                if self.slots[buffer][at].is_some_and(|tile| tile.group >= self.done) {
                    return Err(format!("two copies to a slot of {} are under way", name(self.program, buffer)));
                }
                // Who has read less than this has not read what is there.
                let behind = self
                    .readers(group, buffer)
                    .any(|reader| self.slots[buffer][at].is_some_and(|t| t.number >= reader));
                if behind {
                    return Err(format!("a tile of {} is overwritten before it is read", name(self.program, buffer)));
                }
                self.slots[buffer][at] = Some(Tile { number, group: self.committed });
            }
            Op::CpAsyncCommit => self.committed += 1,
            Op::CpAsyncWait(pending) => self.done = self.done.max(self.committed.saturating_sub(u64::from(*pending))),
            Op::AdvanceCursor(at) => self.cursors[at.index()] += 1,
            // A loop begins: what an earlier one has left is read no more.
            Op::CopyCursor { to, from } => {
                if self.committed != self.done {
                    return Err("a loop begins while copies are under way".into());
                }
                self.cursors[to.index()] = self.cursors[from.index()];
                self.slots.iter_mut().flatten().for_each(|slot| *slot = None);
            }
            _ => {}
        }
        Ok(())
    }

    /// How far cursors went by which a buffer is read.
    fn readers<'w>(&'w self, group: &'w Group, buffer: usize) -> impl Iterator<Item = u64> + 'w {
        let mut cursors = Vec::new();
        crate::ir::visit(&group.body, &mut |op| {
            let own = op.reads().into_iter().filter(|slot| slot.buffer.index() == buffer);
            cursors.extend(own.filter_map(|slot| slot.at));
        });
        cursors.into_iter().map(|at| self.cursors[at.index()])
    }
}
