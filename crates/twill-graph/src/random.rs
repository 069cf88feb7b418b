//! Random graphs of operations, the same for the same description on every machine.

use crate::saturate;
use crate::{
    Dataflow, DataflowDependence, DataflowError, DataflowOperation, DataflowResource, OpId, ResourceUse, SplitMix64,
    UnitId,
};
use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The shape of a random graph. Operations are numbered; dependences go from smaller to larger numbers, and back
/// edges the other way, at a distance.
///
/// As text: `nodes=1000,density=0.01,back-edges=50,seed=7`. What is left out is as in [`Random::default`].
///
/// ```
/// let random: twill_graph::Random = "nodes=100,density=0.02,back-edges=5".parse().unwrap();
/// let graph = random.graph().unwrap();
/// assert_eq!((graph.operations().len(), graph.dependences().len()), (100, 99 + 5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Random {
    /// Operations, from 1 to 2^22.
    pub nodes: u32,
    /// Part of the pairs of operations within reach that are dependences, from 0 to 1, rounded to a whole number of pairs.
    pub density: f64,
    /// Largest difference of numbers along a dependence; 0 for any. A small one makes the graph deep.
    pub reach: u32,
    /// Dependences to the next iterations: from any operation to itself or a smaller number.
    pub back_edges: u32,
    /// Largest distance of these, at least 1, drawn by chance.
    pub distance: u32,
    /// Largest `RecMII`: distances are raised until no cycle through one back edge needs a longer interval; 0 to leave them.
    pub recurrence: u32,
    /// Largest latency, at least 1. An operation holds its resource for all of it, with even odds, or for one step.
    pub latency: u32,
    /// Kinds of resources; each operation uses one.
    pub resources: u32,
    /// Limit of each; 0 for none.
    pub limit: u64,
    /// Largest storage of a value.
    pub storage: u32,
    /// Where chance begins.
    pub seed: u64,
}

impl Default for Random {
    fn default() -> Random {
        Random {
            nodes: 100,
            density: 0.02,
            reach: 0,
            back_edges: 0,
            distance: 1,
            recurrence: 8,
            latency: 1,
            resources: 4,
            limit: 0,
            storage: 1,
            seed: 1,
        }
    }
}

/// Why a description is of no random graph.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RandomError {
    /// Not `key=value`.
    #[error("`{text}` is not of the form key=value; known keys: {}", KEYS.join(", "))]
    Form {
        /// The result.
        text: String,
    },
    /// Another key.
    #[error("`{key}` is not known of random graphs; known keys: {}", KEYS.join(", "))]
    Key {
        /// The key.
        key: String,
    },
    /// A value out of range.
    #[error("`{key}` is `{value}`; it must be {expected}")]
    Value {
        /// The key.
        key: String,
        /// The result.
        value: String,
        /// The allowed values.
        expected: &'static str,
    },
    /// More dependences than are sensible.
    #[error("{edges} dependences are too many; lower `density`, `reach` or `back-edges` to {MOST_EDGES} or less")]
    Edges {
        /// How many there would be.
        edges: u64,
    },
}

const KEYS: [&str; 11] = [
    "nodes",
    "density",
    "reach",
    "back-edges",
    "distance",
    "recurrence",
    "latency",
    "resources",
    "limit",
    "storage",
    "seed",
];
const MOST_NODES: u32 = 1 << 22;
const MOST_EDGES: u64 = 1 << 24;

impl FromStr for Random {
    type Err = RandomError;

    fn from_str(text: &str) -> Result<Random, RandomError> {
        let mut random = Random::default();
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(RandomError::Form { text: part.to_owned() });
            };
            random.set(key.trim(), value.trim())?;
        }
        Ok(random)
    }
}

impl fmt::Display for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nodes={},density={},reach={},", self.nodes, self.density, self.reach)?;
        write!(f, "back-edges={},distance={},", self.back_edges, self.distance)?;
        write!(f, "recurrence={},latency={},", self.recurrence, self.latency)?;
        write!(f, "resources={},limit={},storage={},seed={}", self.resources, self.limit, self.storage, self.seed)
    }
}

impl Random {
    fn set(&mut self, key: &str, value: &str) -> Result<(), RandomError> {
        let wrong = |expected| RandomError::Value { key: key.to_owned(), value: value.to_owned(), expected };
        let number = |least: u64, most: u64, expected| {
            value.parse().ok().filter(|n| (least..=most).contains(n)).ok_or_else(|| wrong(expected))
        };
        let most = 1_u64 << 16;
        let (small, from_one) = ("a whole number from 0 to 65536", "a whole number from 1 to 65536");
        match key {
            "nodes" => self.nodes = number(1, MOST_NODES.into(), "a whole number from 1 to 4194304")? as u32,
            "density" => {
                let density = value.parse().ok().filter(|d| (0.0..=1.0).contains(d));
                self.density = density.ok_or_else(|| wrong("a number from 0 to 1"))?;
            }
            "reach" => self.reach = number(0, MOST_NODES.into(), "a whole number from 0 to 4194304")? as u32,
            "back-edges" => self.back_edges = number(0, MOST_EDGES, "a whole number from 0 to 16777216")? as u32,
            "distance" => self.distance = number(1, most, from_one)? as u32,
            "recurrence" => self.recurrence = number(0, most, small)? as u32,
            "latency" => self.latency = number(1, most, from_one)? as u32,
            "resources" => self.resources = number(0, most, small)? as u32,
            "limit" => self.limit = number(0, most, small)?,
            "storage" => self.storage = number(0, most, small)? as u32,
            "seed" => self.seed = number(0, u64::MAX, "a whole number below 2^64")?,
            _ => return Err(RandomError::Key { key: key.to_owned() }),
        }
        Ok(())
    }

    /// Pairs `u < v` with `v − u ≤ reach`.
    fn pairs(&self) -> u64 {
        let nodes = u64::from(self.nodes);
        let reach = self.effective_reach();
        // Numbers that have a full reach before them have `reach` pairs each; the first have 0, 1, 2, … of them.
        (nodes - reach) * reach + reach * reach.saturating_sub(1) / 2
    }

    fn effective_reach(&self) -> u64 {
        let all = u64::from(self.nodes).saturating_sub(1);
        if self.reach == 0 { all } else { all.min(self.reach.into()) }
    }

    /// The graph.
    ///
    /// # Errors
    /// When it would have too many dependences.
    pub fn graph(&self) -> Result<Dataflow, RandomError> {
        let pairs = if self.nodes == 0 { 0 } else { self.pairs() };
        // A whole number below 2^44, which is exact.
        let edges = (self.density * pairs as f64).round() as u64;
        if edges > MOST_EDGES {
            return Err(RandomError::Edges { edges });
        }
        let mut chance = SplitMix64::new(self.seed);
        let operations: Vec<DataflowOperation> = (0..self.nodes).map(|v| self.operation(v, &mut chance)).collect();
        let mut dependences = Vec::new();
        for (from, to) in self.sample(edges, pairs, &mut chance) {
            let delay = i64::from(operations[from].latency);
            let (from, to) = (OpId::new(from), OpId::new(to));
            dependences.push(DataflowDependence { from, to, delay, distance: 0, communication: 1 });
        }
        // Sources come first in order of their readers, so one pass is enough.
        let mut earliest = vec![0_i64; operations.len()];
        for d in &dependences {
            earliest[d.to.index()] = earliest[d.to.index()].max(earliest[d.from.index()] + d.delay);
        }
        for _ in 0..self.back_edges {
            let from = chance.below(self.nodes.into());
            let to = from - chance.below((from + 1).min(self.effective_reach() + 1));
            let distance = 1 + chance.below(self.distance.into()) as u32;
            let delay = i64::from(operations[from as usize].latency);
            // No path there is longer than what lies between the earliest starts.
            let around = earliest[from as usize] - earliest[to as usize] + delay;
            let needed = if self.recurrence == 0 {
                1
            } else {
                (around.max(1) + i64::from(self.recurrence) - 1) / i64::from(self.recurrence)
            };
            let distance = distance.max(saturate::<u32>(needed));
            let (from, to) = (OpId::new(from as usize), OpId::new(to as usize));
            dependences.push(DataflowDependence { from, to, delay, distance, communication: 1 });
        }
        let resource = |r| DataflowResource { name: format!("r{r}"), limit: Some(self.limit).filter(|&l| l > 0) };
        let resources = (0..self.resources).map(resource).collect();
        let graph = Dataflow::new(format!("random {self}"), operations, dependences, resources);
        // Names, indices and order are right by construction; sums may be too large, and that many edges are too many.
        graph.map_err(|_: DataflowError| RandomError::Edges { edges: edges + u64::from(self.back_edges) })
    }

    fn operation(&self, index: u32, chance: &mut SplitMix64) -> DataflowOperation {
        let latency = 1 + chance.below(self.latency.into()) as u32;
        let steps = if chance.below(2) == 0 { 1 } else { latency };
        let used = |chance: &mut SplitMix64| {
            let resource = UnitId::new(chance.below(self.resources.into()) as usize);
            ResourceUse { resource, offset: 0, steps, amount: 1 }
        };
        let uses = if self.resources == 0 { Vec::new() } else { vec![used(chance)] };
        let storage = if self.storage == 0 { 0 } else { 1 + chance.below(self.storage.into()) };
        DataflowOperation { name: format!("v{index}"), latency, uses, storage }
    }

    /// `edges` of the `pairs`, each once, in order of the reader.
    fn sample(&self, edges: u64, pairs: u64, chance: &mut SplitMix64) -> Vec<(usize, usize)> {
        // Where most pairs are wanted, choose those that are not.
        let (fewer, inverted) = if edges * 2 > pairs { (pairs - edges, true) } else { (edges, false) };
        let mut chosen = HashSet::new();
        while (chosen.len() as u64) < fewer {
            chosen.insert(chance.below(pairs));
        }
        let mut chosen: Vec<u64> = if inverted {
            (0..pairs).filter(|pair| !chosen.contains(pair)).collect()
        } else {
            chosen.into_iter().collect()
        };
        chosen.sort_unstable();
        let (mut sampled, mut to, mut first) = (Vec::with_capacity(chosen.len()), 0_u64, 0_u64);
        for pair in chosen {
            // Reader `to` has the pairs from `first` on.
            while pair - first >= to.min(self.effective_reach()) {
                first += to.min(self.effective_reach());
                to += 1;
            }
            sampled.push(((to - 1 - (pair - first)) as usize, to as usize));
        }
        sampled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_within_reach_is_drawn_once() {
        for (nodes, reach, pairs) in [(5, 0, 10), (5, 2, 7), (5, 9, 10), (1, 0, 0), (2, 1, 1)] {
            let random = Random { nodes, reach, density: 1.0, ..Random::default() };
            let graph = random.graph().unwrap_or_else(|error| unreachable!("{error}"));
            let drawn: HashSet<_> = graph.dependences().iter().map(|d| (d.from, d.to)).collect();
            assert_eq!((graph.dependences().len(), drawn.len()), (pairs, pairs), "{random}");
            let most = if reach == 0 { nodes } else { reach };
            assert!(drawn.iter().all(|(u, v)| u < v && v.index() - u.index() <= most as usize), "{random}");
        }
    }

    #[test]
    fn the_same_text_is_the_same_graph() {
        let text = "nodes=60,density=0.1,back-edges=9,distance=3,latency=4,resources=2,limit=2,storage=8,seed=3";
        let graph = |text: &str| text.parse::<Random>().and_then(|random| random.graph());
        assert_eq!(graph(text), graph(text));
        assert_ne!(
            graph(text).ok().map(|g| g.dependences().to_vec()),
            graph("nodes=60").ok().map(|g| g.dependences().to_vec())
        );
        let read: Result<Random, _> = text.parse();
        assert_eq!(read.clone().map(|random| random.to_string().parse()), Ok(read));
        // The first numbers of SplitMix64 with seed 0.
        let mut chance = SplitMix64::new(0);
        assert_eq!([chance.next_number(), chance.next_number()], [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4]);
    }

    #[test]
    fn a_wrong_description_is_told_what_is_known() {
        let told = |text: &str| text.parse::<Random>().map(|_| ()).map_err(|error| error.to_string()).unwrap_err();
        assert!(told("nodes").contains("not of the form key=value; known keys: nodes, density"));
        assert!(told("edges=4").contains("`edges` is not known"));
        assert_eq!(told("density=1.5"), "`density` is `1.5`; it must be a number from 0 to 1");
        let dense = Random { nodes: 1 << 20, density: 0.5, ..Random::default() };
        assert!(matches!(dense.graph(), Err(RandomError::Edges { .. })));
    }
}
