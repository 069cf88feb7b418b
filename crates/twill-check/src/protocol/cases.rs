//! Which trip counts and tiles stand for all.
//!
//! In the middle of a long loop, behaviour is the same again and again: what a process does in an iteration depends on
//! the iteration's number only by constants of the program (`first`, `at_least`, offsets of tags, operations in flight: at
//! most `K`), and rings look the same from every slot, once they have gone round. What orders two events, or lets them come in the other
//! order, is a chain of events in which one process is ahead of another by no more than the slots between them, `S` at most.
//! Conflicts are between uses of one slot or barrier, `S` iterations apart, and parity looks two rounds back. What is
//! slower is drift: an arrival too many (or too few) in each round, of `A` that make a phase, adds up to a whole phase in `A` rounds. So
//! what can go wrong does so within a window of `S (A + 1) + 2` iterations, beyond the `K` at the ends of loops, and longer
//! loops only repeat what is between.
//!
//! - One tile: all trip counts that exceed `K` by that window in all (a window cannot hold more of several loops).
//! - Two tiles: all pairs of small trip counts, 0 included: every end meets every beginning.
//! - As many tiles as the window has iterations, and one more, with equal trip counts, so that rings that are used once in
//!   a tile go round and drift as far; and one long run in which every three small trip counts stand behind each other, in
//!   every order.
//!
//! Cases are tried in the order of their size, so that the first that fails is the smallest.

use super::error::ProtocolError;
use super::limits::Limits;
use super::program::Program;
use super::system::{Access, Event, Iteration, Node, System};
use std::fmt;

/// Trip counts of every loop, for every tile.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Case {
    pub(super) tiles: Vec<Vec<u32>>,
}

/// What a [`Case`] is called in messages.
pub(super) struct Named<'a>(pub(super) &'a System, pub(super) &'a Case);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Named(system, case) = self;
        let of = |tile: &Vec<u32>| {
            let each: Vec<String> = system.loops.iter().zip(tile).map(|(name, n)| format!("{name}: {n}")).collect();
            if each.is_empty() { "no loops".to_owned() } else { each.join(", ") }
        };
        match case.tiles.as_slice() {
            [tile] if !has_tiles(system) => write!(f, "trips of {}", of(tile)),
            tiles => {
                write!(f, "{} tile{}, trips of", tiles.len(), if tiles.len() == 1 { "" } else { "s" })?;
                for (i, tile) in tiles.iter().enumerate().take(8) {
                    write!(f, "{} {}", if i == 0 { "" } else { ";" }, of(tile))?;
                }
                if tiles.len() > 8 { f.write_str("; ...") } else { Ok(()) }
            }
        }
    }
}

/// The cases of a system, smallest first.
///
/// # Errors
/// More than allowed.
pub(super) fn cases(system: &System, limits: &Limits) -> Result<Vec<Case>, ProtocolError> {
    let limit = limits.cases;
    let loops = system.loops.len();
    let constants = system.processes.iter().map(|p| largest_constant(&p.body)).max().unwrap_or(0).max(1);
    let slots = system.buffers.iter().map(|b| b.slots);
    let slots = slots.chain(system.barriers.iter().map(|b| b.slots));
    let cursors = system.processes.iter().flat_map(|p| p.cursors.iter().map(|c| c.slots));
    let slots = slots.chain(cursors).max().unwrap_or(1);
    let arrivals = system.barriers.iter().map(|b| b.arrivals);
    let arrivals = arrivals.chain(system.named_barriers.iter().map(|b| b.participants)).max().unwrap_or(1);
    let window = slots.saturating_mul(arrivals.saturating_add(1)).saturating_add(2).saturating_add(limits.further);

    let too_many = || ProtocolError::TooManyCases { limit };
    if constants.max(window) as usize > limit {
        return Err(too_many());
    }
    let mut found: Vec<Case> = Vec::new();
    for tile in combinations(loops, constants, window, limit).ok_or_else(too_many)? {
        found.push(Case { tiles: vec![tile] });
    }
    if has_tiles(system) {
        let small = small(loops, constants, slots, 30);
        for first in &small {
            for second in &small {
                found.push(Case { tiles: vec![first.clone(), second.clone()] });
            }
        }
        for trips in 0..=constants.saturating_add(slots).min(1000) {
            found.push(Case { tiles: vec![vec![trips; loops]; window as usize + 1] });
        }
        // As many different tiles as make a run that is short enough.
        let long = (2..=5).rev().map(|most| {
            let few = self::small(loops, constants, slots, most);
            Case { tiles: every_three(few.len()).into_iter().map(|at| few[at].clone()).collect() }
        });
        found.extend(long.filter(|case| Program::new(system, case, limits.events).is_ok()).take(1));
    }
    found.sort_by_key(|case| (case.tiles.iter().flatten().sum::<u32>() as usize + 2 * case.tiles.len(), case.clone()));
    found.dedup();
    if found.len() > limit { Err(too_many()) } else { Ok(found) }
}

/// All trip counts whose excess over `constants` is at most `window` in all.
fn combinations(loops: usize, constants: u32, window: u32, limit: usize) -> Option<Vec<Vec<u32>>> {
    let mut partial = vec![(Vec::new(), window)];
    for _ in 0..loops {
        let mut longer = Vec::new();
        for (tile, left) in &partial {
            for trips in 0..=constants.saturating_add(*left) {
                if longer.len() >= limit {
                    return None;
                }
                let mut tile: Vec<u32> = tile.clone();
                tile.push(trips);
                longer.push((tile, left - trips.saturating_sub(constants)));
            }
        }
        partial = longer;
    }
    Some(partial.into_iter().map(|(tile, _)| tile).collect())
}

/// At most `most` small trip counts: as many of 0, 1, 2 ... as can be combined freely, and some of all loops alike.
fn small(loops: usize, constants: u32, slots: u32, most: usize) -> Vec<Vec<u32>> {
    let enough = constants.saturating_add(slots.saturating_mul(2));
    let mut found: Vec<Vec<u32>> = Vec::new();
    for highest in 0..=enough {
        match combinations(loops, highest, 0, most) {
            Some(all) => found = all,
            None => break,
        }
    }
    for trips in 0..=enough {
        let alike = vec![trips; loops];
        if found.len() < most && !found.contains(&alike) {
            found.push(alike);
        }
    }
    found
}

/// A sequence of `0..count` in which every three stand behind each other (de Bruijn's, greedily).
fn every_three(count: usize) -> Vec<usize> {
    let mut seen = std::collections::HashSet::new();
    let mut sequence = vec![0, 0];
    loop {
        let (a, b) = (sequence[sequence.len() - 2], sequence[sequence.len() - 1]);
        match (0..count).rev().find(|&c| !seen.contains(&(a, b, c))) {
            Some(c) => {
                seen.insert((a, b, c));
                sequence.push(c);
            }
            None => return sequence,
        }
    }
}

pub(super) fn has_tiles(system: &System) -> bool {
    system.processes.iter().any(|p| p.body.iter().any(tiles))
}

fn tiles(node: &Node) -> bool {
    match node {
        Node::Do(_) => false,
        Node::Loop { body, .. } | Node::When { body, .. } => body.iter().any(tiles),
        Node::Tiles(_) => true,
    }
}

/// The largest number that tells iterations apart.
fn largest_constant(nodes: &[Node]) -> u32 {
    let of = |node: &Node| match node {
        Node::Do(event) => match event {
            Event::Load { writes: a, .. } | Event::Write(a) | Event::Read(a) | Event::Store(a) => offset(a),
            Event::Multiply { reads, writes, .. } => reads.iter().chain(writes).map(offset).max().unwrap_or(0),
            Event::WaitMultiplies(n) | Event::WaitStores(n) => *n,
            _ => 0,
        },
        Node::Loop { first, body, .. } => largest_constant(body).max(*first),
        Node::When { at_least, at_most, body, .. } => {
            let most = at_most.map_or(0, |most| most.saturating_add(1));
            largest_constant(body).max(*at_least).max(most)
        }
        Node::Tiles(body) => largest_constant(body),
    };
    nodes.iter().map(of).max().unwrap_or(0)
}

fn offset(access: &Access) -> u32 {
    let (Iteration::Absolute(n) | Iteration::Current(n) | Iteration::End(_, n)) = access.value.iteration;
    u32::try_from(n.unsigned_abs()).unwrap_or(u32::MAX)
}
