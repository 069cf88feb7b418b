//! Difference logic: bounds `x_j − x_i ≥ c` over integers, kept closed under addition.
//!
//! The longest path between every two variables is maintained as bounds come and go
//! (Cotton & Maler, "Fast and Flexible Difference Constraint Propagation for DPLL(T)", SAT 2006).
//! A new bound costs O(n²); a graph of tile operations has few variables and many bounds. Every
//! improvement is kept with the bound that caused it, so the bounds of any path can be told.

use batsat::Lit;

/// A variable of the difference system: an operation's issue cycle, or a reference point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Node(u32);

impl Node {
    pub(crate) const fn new(index: usize) -> Self {
        Node(index as u32)
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// No path. Far enough from the end of the range that sums of two do not overflow.
pub(crate) const NO_PATH: i64 = i64::MIN / 4;

/// `x_to − x_from ≥ bound`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bound {
    pub(crate) from: Node,
    pub(crate) to: Node,
    pub(crate) least: i64,
}

impl Bound {
    /// The bound that holds exactly when this one does not: integers have no middle.
    pub(crate) fn negated(self) -> Bound {
        Bound { from: self.to, to: self.from, least: 1 - self.least }
    }
}

/// One improvement of a longest path.
#[derive(Clone, Copy, Debug)]
struct Record {
    pair: u32,
    /// Asserted bound that caused it; 0 for what holds from the start.
    cause: u32,
    /// The record of the same pair that it replaced.
    previous: u32,
    value: i64,
}

#[derive(Clone, Copy, Debug)]
struct Asserted {
    bound: Bound,
    literal: Lit,
}

/// A longest path that became longer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Improvement {
    pub(crate) from: Node,
    pub(crate) to: Node,
    pub(crate) before: i64,
    pub(crate) after: i64,
}

/// All longest paths under the bounds asserted so far.
#[derive(Debug)]
pub(crate) struct DifferenceSystem {
    nodes: usize,
    value: Vec<i64>,
    latest: Vec<u32>,
    records: Vec<Record>,
    asserted: Vec<Asserted>,
    levels: Vec<(usize, usize)>,
    sources: Vec<(u32, i64)>,
    targets: Vec<(u32, i64)>,
    effort: u64,
}

impl DifferenceSystem {
    /// A system in which `bounds` hold unconditionally; `None` if they contradict each other.
    pub(crate) fn new(nodes: usize, bounds: impl IntoIterator<Item = Bound>) -> Option<DifferenceSystem> {
        let mut value = vec![NO_PATH; nodes * nodes];
        for i in 0..nodes {
            value[i * nodes + i] = 0;
        }
        for b in bounds {
            let cell = &mut value[b.from.index() * nodes + b.to.index()];
            *cell = (*cell).max(b.least);
        }
        for k in 0..nodes {
            for i in 0..nodes {
                let first = value[i * nodes + k];
                if first == NO_PATH {
                    continue;
                }
                for j in 0..nodes {
                    let second = value[k * nodes + j];
                    if second != NO_PATH && first + second > value[i * nodes + j] {
                        value[i * nodes + j] = first + second;
                    }
                }
            }
        }
        if (0..nodes).any(|i| value[i * nodes + i] > 0) {
            return None;
        }
        let records: Vec<Record> = value
            .iter()
            .enumerate()
            .map(|(p, &value)| Record { pair: p as u32, cause: 0, previous: 0, value })
            .collect();
        Some(DifferenceSystem {
            nodes,
            latest: (0..records.len() as u32).collect(),
            value,
            records,
            // Position 0 stands for "from the start" and is never read.
            asserted: vec![Asserted { bound: Bound { from: Node(0), to: Node(0), least: 0 }, literal: Lit::UNDEF }],
            levels: Vec::new(),
            sources: Vec::new(),
            targets: Vec::new(),
            effort: 0,
        })
    }

    /// Greatest `c` for which `x_to − x_from ≥ c` follows.
    pub(crate) fn least(&self, from: Node, to: Node) -> i64 {
        self.value[from.index() * self.nodes + to.index()]
    }

    /// The same under the bounds that hold unconditionally.
    pub(crate) fn unconditional(&self, from: Node, to: Node) -> i64 {
        // The first records are those of the start, in the order of the pairs.
        self.records[from.index() * self.nodes + to.index()].value
    }

    pub(crate) fn push_level(&mut self) {
        self.levels.push((self.records.len(), self.asserted.len()));
    }

    pub(crate) fn pop_levels(&mut self, count: usize) {
        let keep = self.levels.len().saturating_sub(count);
        let Some(&(records, asserted)) = self.levels.get(keep) else { return };
        self.levels.truncate(keep);
        while self.records.len() > records {
            let Some(record) = self.records.pop() else { break };
            let pair = record.pair as usize;
            self.latest[pair] = record.previous;
            self.value[pair] = self.records[record.previous as usize].value;
        }
        self.asserted.truncate(asserted);
    }

    /// Adds a bound that holds because `literal` does, and lists the paths that became longer.
    /// `Err`: the bound contradicts others; the literals that cannot hold together with it.
    pub(crate) fn assert(
        &mut self,
        bound: Bound,
        literal: Lit,
        improvements: &mut Vec<Improvement>,
    ) -> Result<(), Vec<Lit>> {
        let Bound { from, to, least } = bound;
        self.effort = 0;
        if self.least(from, to) >= least {
            return Ok(());
        }
        let back = self.least(to, from);
        if back != NO_PATH && back + least > 0 {
            let mut core = vec![literal];
            self.explain(to, from, 1 - least, &mut core);
            return Err(core);
        }
        let cause = self.asserted.len() as u32;
        self.asserted.push(Asserted { bound, literal });
        let n = self.nodes;
        let (i, j) = (from.index(), to.index());
        let (mut sources, mut targets) = (std::mem::take(&mut self.sources), std::mem::take(&mut self.targets));
        sources.clear();
        targets.clear();
        for x in 0..n {
            let path = self.value[x * n + i];
            // Sources whose path to `to` does not improve cannot improve any further one.
            if path != NO_PATH && self.value[x * n + j] < path + least {
                sources.push((x as u32, path));
            }
        }
        for y in 0..n {
            let path = self.value[j * n + y];
            if path != NO_PATH && self.value[i * n + y] < least + path {
                targets.push((y as u32, path));
            }
        }
        self.effort = (sources.len() * targets.len() + 2 * n) as u64;
        for &(x, first) in &sources {
            for &(y, second) in &targets {
                if x == y {
                    continue;
                }
                let pair = x as usize * n + y as usize;
                let longer = first + least + second;
                let before = self.value[pair];
                if longer > before {
                    let previous = self.latest[pair];
                    self.latest[pair] = self.records.len() as u32;
                    self.records.push(Record { pair: pair as u32, cause, previous, value: longer });
                    self.value[pair] = longer;
                    improvements.push(Improvement { from: Node(x), to: Node(y), before, after: longer });
                }
            }
        }
        self.sources = sources;
        self.targets = targets;
        Ok(())
    }

    /// Pairs of nodes that the last bound made it look at.
    pub(crate) fn effort(&self) -> u64 {
        self.effort
    }

    /// Appends literals that together imply `x_to − x_from ≥ least`, taking the oldest reason that
    /// suffices. The implication must hold.
    pub(crate) fn explain(&self, from: Node, to: Node, least: i64, core: &mut Vec<Lit>) {
        let mut open = vec![(from, to, least, u32::MAX)];
        while let Some((from, to, least, before)) = open.pop() {
            if from == to && least <= 0 {
                continue;
            }
            let pair = from.index() * self.nodes + to.index();
            let Some(record) = self.oldest(pair, least, before) else {
                debug_assert!(false, "nothing implies the bound to explain");
                continue;
            };
            if record.cause == 0 {
                continue;
            }
            let Asserted { bound, literal } = self.asserted[record.cause as usize];
            core.push(literal);
            let second = self.value_before(bound.to, to, record.cause);
            open.push((from, bound.from, least - bound.least - second, record.cause));
            open.push((bound.to, to, second, record.cause));
        }
    }

    /// The oldest record of a pair with at least this value, made before bound `before`.
    fn oldest(&self, pair: usize, least: i64, before: u32) -> Option<Record> {
        let mut found = None;
        let mut at = self.latest[pair];
        loop {
            let record = self.records[at as usize];
            if record.value < least {
                return found;
            }
            if record.cause < before {
                found = Some(record);
            }
            if record.cause == 0 {
                return found;
            }
            at = record.previous;
        }
    }

    /// Longest path as it was when bound `cause` was asserted.
    fn value_before(&self, from: Node, to: Node, cause: u32) -> i64 {
        if from == to {
            return 0;
        }
        let mut at = self.latest[from.index() * self.nodes + to.index()];
        loop {
            let record = self.records[at as usize];
            if record.cause < cause || record.cause == 0 {
                return record.value;
            }
            at = record.previous;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use batsat::Var;
    use proptest::prelude::*;

    const NODES: usize = 5;

    fn literal(index: usize) -> Lit {
        Lit::new(Var::unsafe_from_idx(index as u32), true)
    }

    fn bound(from: usize, to: usize, least: i64) -> Bound {
        Bound { from: Node::new(from), to: Node::new(to), least }
    }

    /// All longest paths from scratch; `None` on a positive cycle.
    fn from_scratch(bounds: &[Bound]) -> Option<Vec<i64>> {
        let system = DifferenceSystem::new(NODES, bounds.iter().copied())?;
        Some((0..NODES * NODES).map(|p| system.least(Node::new(p / NODES), Node::new(p % NODES))).collect())
    }

    fn all(system: &DifferenceSystem) -> Vec<i64> {
        (0..NODES * NODES).map(|p| system.least(Node::new(p / NODES), Node::new(p % NODES))).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn agrees_with_paths_from_scratch(
            steps in prop::collection::vec((0..NODES, 0..NODES, -6_i64..6, 0..5_u8), 1..40),
        ) {
            let mut system = DifferenceSystem::new(NODES, []).unwrap();
            // Bounds in force by level, each with the literal it stands for.
            let mut levels: Vec<Vec<(Bound, usize)>> = vec![Vec::new()];
            let mut improvements = Vec::new();
            for (index, (from, to, least, action)) in steps.into_iter().enumerate() {
                if action == 0 && levels.len() > 1 {
                    system.pop_levels(1);
                    levels.pop();
                } else if action == 1 {
                    system.push_level();
                    levels.push(Vec::new());
                } else if from != to {
                    let held: Vec<(Bound, usize)> = levels.iter().flatten().copied().collect();
                    let new = bound(from, to, least);
                    let with: Vec<Bound> = held.iter().map(|h| h.0).chain([new]).collect();
                    match (system.assert(new, literal(index), &mut improvements), from_scratch(&with)) {
                        (Ok(()), Some(_)) => levels.last_mut().unwrap().push((new, index)),
                        (Err(core), None) => {
                            // The core alone contradicts itself.
                            let in_core = |i: usize| core.contains(&literal(i));
                            let mut named: Vec<Bound> = held.iter().filter(|h| in_core(h.1)).map(|h| h.0).collect();
                            prop_assert!(in_core(index));
                            named.push(new);
                            prop_assert!(from_scratch(&named).is_none());
                        }
                        (got, expected) => prop_assert!(false, "{got:?} {expected:?}"),
                    }
                }
                let held: Vec<(Bound, usize)> = levels.iter().flatten().copied().collect();
                let bounds: Vec<Bound> = held.iter().map(|h| h.0).collect();
                prop_assert_eq!(all(&system), from_scratch(&bounds).unwrap());
                // Every path's explanation implies it.
                for (from, to) in [(0, 1), (2, 3), (4, 0)] {
                    let path = system.least(Node::new(from), Node::new(to));
                    if path != NO_PATH {
                        let mut core = Vec::new();
                        system.explain(Node::new(from), Node::new(to), path, &mut core);
                        let named: Vec<Bound> =
                            held.iter().filter(|h| core.contains(&literal(h.1))).map(|h| h.0).collect();
                        prop_assert_eq!(from_scratch(&named).unwrap()[from * NODES + to], path);
                    }
                }
            }
        }
    }
}
