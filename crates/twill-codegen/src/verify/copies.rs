//! Rings that a group fills by copies of its own (PTX, `cp.async` in groups): every tile that it reads is the one of its iteration, and
//! is there; none is overwritten before it was read, or while another copy to its slot is under way.
//!
//! The program is walked for each number of trips from 0 to a few times around the rings. Cursors count on: a copy puts a tile of the
//! fill cursor's number into a slot, and a read expects that of its own. Loops one after the other may share a ring: each has two
//! cursors of its own. Branches are walked in all ways, one after the other.

use crate::error::Error;
use crate::ir::{CursorId, Group, Node, Op, Slot, WarpProgram, any};

/// Most slots of a ring whose loops are walked.
const MOST_SLOTS: u32 = 16;

/// A tile in a slot: its number, the group of copies that brings it, and the cursor by which it is read.
#[derive(Clone, Copy)]
struct Tile {
    number: u64,
    group: u64,
    reader: CursorId,
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
    /// The cursors of the loop that is under way: by which slots are filled, and by which they are read.
    of_loop: Option<(CursorId, CursorId)>,
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
            let mut walk = Walk { program, trips, cursors, of_loop: None, slots, committed: 0, done: 0 };
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

    /// The cursor of a slot, its buffer, which of that it is, and the number of the tile.
    fn place(&self, group: &Group, slot: &Slot) -> Option<(CursorId, usize, usize, u64)> {
        let (buffer, at) = (slot.buffer.index(), slot.at?);
        let number = self.cursors[at.index()];
        let slots = u64::from(group.cursors[at.index()].slots);
        Some((at, buffer, usize::try_from(number % slots.max(1)).unwrap_or(0), number))
    }

    fn op(&mut self, group: &Group, op: &Op) -> Result<(), String> {
        let name = |program: &WarpProgram, buffer: usize| program.buffers[buffer].name.clone();
        for slot in op.reads() {
            let Some((reader, buffer, at, number)) = self.place(group, &slot) else { continue };
            match self.slots[buffer].get(at).copied().flatten() {
                Some(tile) if tile.group >= self.done => {
                    return Err(format!("{} is read before its copy is waited for", name(self.program, buffer)));
                }
                Some(tile) if (tile.number, tile.reader) == (number, reader) => {}
                _ => return Err(format!("{} has no tile of this iteration", name(self.program, buffer))),
            }
        }
        match op {
            Op::CpAsync { to, full: None, .. } => {
                let Some((fill, buffer, at, number)) = self.place(group, to) else { return Ok(()) };
                let Some((_, reader)) = self.of_loop.filter(|(filled, _)| *filled == fill) else {
                    return Err(format!("{} is filled by a cursor of another loop", name(self.program, buffer)));
                };
                let Some(slot) = self.slots[buffer].get_mut(at) else {
                    return Err(format!("{} has too few slots", name(self.program, buffer)));
                };
                if slot.is_some_and(|tile| tile.group >= self.done) {
                    return Err(format!("two copies to a slot of {} are under way", name(self.program, buffer)));
                }
                // Who has read less than this has not read what is there.
                if slot.is_some_and(|tile| tile.number >= self.cursors[tile.reader.index()]) {
                    return Err(format!("a tile of {} is overwritten before it is read", name(self.program, buffer)));
                }
                *slot = Some(Tile { number, group: self.committed, reader });
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
                self.of_loop = Some((*to, *from));
                self.slots.iter_mut().flatten().for_each(|slot| *slot = None);
            }
            _ => {}
        }
        Ok(())
    }
}
