//! Which of the steps that can be taken is taken.

use std::fmt;
use twill_graph::SplitMix64;

/// The actor of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Actor {
    /// A group.
    Group(usize),
    /// A group's copies to shared memory.
    Loads(usize),
    /// A group's MMAs.
    Mmas(usize),
    /// A group's copies from shared memory.
    Stores(usize),
    /// The path by which units see what threads wrote.
    Visibility,
}

impl Actor {
    fn is_group(self) -> bool {
        matches!(self, Actor::Group(_))
    }
}

/// How steps are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Habit {
    /// Any, with the same probability.
    Even,
    /// Asynchronous units do nothing as long as a group can go on.
    UnitsLate,
    /// Asynchronous units do at once what they are told.
    UnitsEarly,
    /// By random priorities, which change now and then: somebody is as slow as can be for a while (Burckhardt et al.,
    /// "A randomized scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010).
    Priorities,
}

impl Habit {
    /// All of them.
    pub const ALL: [Habit; 4] = [Habit::Priorities, Habit::UnitsLate, Habit::UnitsEarly, Habit::Even];
}

/// Chooses steps by a seed.
#[derive(Clone, Debug)]
pub struct Choice {
    habit: Habit,
    seed: u64,
    random: SplitMix64,
    priorities: Vec<(Actor, u64)>,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} with seed {}", self.habit, self.seed)
    }
}

/// One step in this many changes a priority.
const CHANGE: usize = 24;

impl Choice {
    /// The choices of a seed.
    pub fn new(habit: Habit, seed: u64) -> Choice {
        Choice { habit, seed, random: SplitMix64::new(seed ^ 0x7477_696c_6c00_0000), priorities: Vec::new() }
    }

    pub(super) fn random(&mut self) -> &mut SplitMix64 {
        &mut self.random
    }

    /// The position of the actor that takes the next step; there is at least one.
    pub(super) fn of(&mut self, actors: &[Actor]) -> usize {
        let any = |random: &mut SplitMix64, wanted: &dyn Fn(Actor) -> bool| {
            let places: Vec<usize> = (0..actors.len()).filter(|k| wanted(actors[*k])).collect();
            if places.is_empty() { None } else { Some(places[random.index(places.len())]) }
        };
        let chosen = match self.habit {
            Habit::Even => None,
            Habit::UnitsLate => any(&mut self.random, &|a| a.is_group()),
            Habit::UnitsEarly => any(&mut self.random, &|a| !a.is_group()),
            Habit::Priorities => Some(self.by_priority(actors)),
        };
        chosen.unwrap_or_else(|| self.random.index(actors.len().max(1)))
    }

    fn by_priority(&mut self, actors: &[Actor]) -> usize {
        for actor in actors {
            if !self.priorities.iter().any(|(known, _)| known == actor) {
                self.priorities.push((*actor, self.random.next_number()));
            }
        }
        if self.random.index(CHANGE) == 0 {
            let place = self.random.index(self.priorities.len());
            self.priorities[place].1 = self.random.next_number();
        }
        let priority = |actor: &Actor| self.priorities.iter().find(|(known, _)| known == actor).map_or(0, |(_, p)| *p);
        (0..actors.len()).max_by_key(|k| priority(&actors[*k])).unwrap_or(0)
    }
}
