//! Trip counts and tiles that represent all others.
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
//! - Two tiles: all pairs of small trip counts, 0 included: every end is paired with every beginning.
//! - As many tiles as the window has iterations, and one more, with equal trip counts, so that rings that are used once in
//!   a tile go round and drift as far; and one long run in which every three small trip counts follow each other, in
//!   every order.
//!
//! Cases are tried in the order of their size, so that the first that fails is the smallest.

use super::error::ProtocolError;
use super::limits::Limits;
use super::system::{Access, Event, Iteration, Node, System};
use super::unrolled::UnrolledSystem;
use std::fmt;
use twill_graph::saturate;

/// Trip counts of every loop, for every tile.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Case {
    pub(super) tiles: Vec<Vec<u32>>,
}

/// The name of a [`Case`] in messages.
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
        found.extend(long.filter(|case| UnrolledSystem::new(system, case, limits.events).is_ok()).take(1));
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

/// A sequence of `0..count` in which every three follow each other (de Bruijn's, greedily).
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
            Event::Mma { reads, writes, .. } => reads.iter().chain(writes).map(offset).max().unwrap_or(0),
            Event::MmaWait(n) | Event::StoreWait(n) => *n,
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
    saturate::<u32>(n.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::super::system::{Buffer, BufferId, LoopId, Process, Tag};
    use super::*;

    /// One process that goes through its loops one after the other.
    fn system(loops: &[&str], in_tiles: bool) -> System {
        let one = |trips| Node::Loop { trips: LoopId(trips), first: 0, body: vec![] };
        let body: Vec<Node> = (0..loops.len() as u32).map(one).collect();
        let body = if in_tiles { vec![Node::Tiles(body)] } else { body };
        let process = Process { name: "p".into(), cursors: vec![], body };
        let loops = loops.iter().map(|name| (*name).to_owned()).collect();
        System { loops, processes: vec![process], ..System::default() }
    }

    fn at_most(cases: usize) -> Limits {
        Limits { cases, ..Limits::default() }
    }

    fn tried(system: &System, limits: &Limits) -> Vec<Vec<Vec<u32>>> {
        cases(system, limits).unwrap().into_iter().map(|case| case.tiles).collect()
    }

    #[test]
    fn cases_have_names() {
        let name = |system: &System, tiles: &[&[u32]]| {
            let case = Case { tiles: tiles.iter().map(|tile| tile.to_vec()).collect() };
            Named(system, &case).to_string()
        };
        assert_eq!(name(&system(&["k"], false), &[&[3]]), "trips of k: 3");
        assert_eq!(name(&system(&["k", "n"], false), &[&[3, 4]]), "trips of k: 3, n: 4");
        assert_eq!(name(&system(&[], false), &[&[]]), "trips of no loops");
        let tiles = system(&["k"], true);
        assert_eq!(name(&tiles, &[&[3]]), "1 tile, trips of k: 3");
        assert_eq!(name(&tiles, &[&[3], &[0]]), "2 tiles, trips of k: 3; k: 0");
        let eight = "k: 1; ".repeat(7) + "k: 1";
        assert_eq!(name(&tiles, &[&[1u32] as &[u32]; 8]), format!("8 tiles, trips of {eight}"));
        assert_eq!(name(&tiles, &[&[1u32] as &[u32]; 9]), format!("9 tiles, trips of {eight}; ..."));
    }

    #[test]
    fn one_tile_has_all_trip_counts_of_a_window() {
        // One slot, one arrival: a window of 4, after the constant of 1.
        let one: Vec<Vec<Vec<u32>>> = (0..=5).map(|trips| vec![vec![trips]]).collect();
        assert_eq!(tried(&system(&["k"], false), &Limits::default()), one);
        let further = Limits { further: 2, ..Limits::default() };
        assert_eq!(tried(&system(&["k"], false), &further).len(), 8);
        // A window cannot hold more than two loops.
        assert_eq!(
            combinations(2, 1, 1, 100).unwrap(),
            [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2], [2, 0], [2, 1]]
        );
        assert_eq!(combinations(2, 1, 1, 8).map(|all| all.len()), Some(8));
        assert_eq!(combinations(2, 1, 1, 7), None);
    }

    #[test]
    fn as_many_as_are_allowed() {
        let none = system(&[], false);
        assert_eq!(cases(&none, &at_most(4)).unwrap().len(), 1);
        assert_eq!(cases(&none, &at_most(3)), Err(ProtocolError::TooManyCases { limit: 3 }));
        let tiles = system(&["k"], true);
        let all = tried(&tiles, &Limits::default()).len();
        assert_eq!(tried(&tiles, &at_most(all)).len(), all);
        assert_eq!(cases(&tiles, &at_most(all - 1)), Err(ProtocolError::TooManyCases { limit: all - 1 }));
    }

    #[test]
    fn tiles_stand_behind_each_other_smallest_first() {
        let all = tried(&system(&["k"], true), &Limits::default());
        assert_eq!(
            all[..9],
            [
                vec![vec![0]],
                vec![vec![1]],
                vec![vec![0], vec![0]],
                vec![vec![2]],
                vec![vec![0], vec![1]],
                vec![vec![1], vec![0]],
                vec![vec![3]],
                vec![vec![0], vec![2]],
                vec![vec![1], vec![1]],
            ]
        );
        // Equal ones, one more than the window has iterations; and every three of four in a long run.
        for trips in 0..=2 {
            assert!(all.contains(&vec![vec![trips]; 5]));
        }
        let longest = all.last().unwrap();
        assert_eq!(longest.len(), 4 * 4 * 4 + 2);
        // Six of one tile, pairs of the four small ones, three alike, and the run.
        assert_eq!(all.len(), 6 + 4 * 4 + 3 + 1);
    }

    #[test]
    fn small_trip_counts() {
        let one = |all: &[u32]| all.iter().map(|n| vec![*n]).collect::<Vec<_>>();
        assert_eq!(small(1, 1, 2, 30), one(&[0, 1, 2, 3, 4, 5]));
        assert_eq!(small(1, 1, 2, 4), one(&[0, 1, 2, 3]));
        // Nine pairs of 0, 1, 2; sixteen would be too many, but three and three may stand together.
        let pairs = small(2, 1, 1, 10);
        assert_eq!((pairs.len(), &pairs[9]), (10, &vec![3, 3]));
        assert_eq!(small(2, 1, 1, 9).len(), 9);
    }

    #[test]
    fn every_three_stand_behind_each_other() {
        assert_eq!(every_three(0), [0, 0]);
        assert_eq!(every_three(1), [0, 0, 0]);
        assert_eq!(every_three(2), [0, 0, 1, 1, 1, 0, 1, 0, 0, 0]);
        for count in 3..6 {
            let sequence = every_three(count);
            let threes: std::collections::BTreeSet<_> = sequence.windows(3).collect();
            assert_eq!((threes.len(), sequence.len()), (count.pow(3), count.pow(3) + 2));
        }
    }

    #[test]
    fn numbers_that_tell_iterations_apart() {
        let access = |iteration| Access { buffer: BufferId(0), at: None, value: Tag { value: 0, iteration } };
        let of = |event| largest_constant(&[Node::Do(event)]);
        let (absolute, current) = (access(Iteration::Absolute(3)), access(Iteration::Current(-4)));
        let end = access(Iteration::End(LoopId(0), -5));
        assert_eq!([of(Event::Write(absolute)), of(Event::Read(current)), of(Event::Store(end))], [3, 4, 5]);
        let mma = |reads: &[Access], writes: &[Access]| {
            of(Event::Mma { reads: reads.to_vec(), writes: writes.to_vec(), signals: vec![] })
        };
        assert_eq!([mma(&[absolute, end], &[current]), mma(&[], &[current]), mma(&[], &[])], [5, 4, 0]);
        assert_eq!([of(Event::MmaWait(2)), of(Event::StoreWait(6)), of(Event::Fence)], [2, 6, 0]);
        assert_eq!(offset(&access(Iteration::Current(i64::MIN))), u32::MAX);
        let when = |at_least, at_most| Node::When { trips: LoopId(0), at_least, at_most, body: vec![] };
        assert_eq!(largest_constant(&[when(2, None), when(1, Some(3))]), 4);
        let inner = Node::Tiles(vec![Node::Loop { trips: LoopId(0), first: 7, body: vec![when(8, None)] }]);
        assert_eq!(largest_constant(&[when(1, None), inner]), 8);
    }

    #[test]
    fn rings_and_arrivals_make_the_window() {
        let mut system = system(&["k"], false);
        system.buffers.push(Buffer { name: "ring".into(), slots: 3 });
        // 3 · (1 + 1) + 2, after the constant of 1.
        assert_eq!(tried(&system, &Limits::default()).len(), 1 + 1 + 8);
    }
}
