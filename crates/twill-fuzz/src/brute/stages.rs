//! Stages of all operations, when groups and slots are given: dependences, memories and the objective.

use super::{Objectives, Search, memory};
use std::collections::BTreeSet;
use twill_graph::{GroupRole, Storage};

/// No path.
const NONE: i64 = i64::MIN / 4;

/// The stages that are tried.
pub(super) struct Stages<'s, 'p> {
    search: &'s mut Search<'p>,
    /// Least difference of the stages of two operations, along any path of dependences.
    least: Vec<Vec<i64>>,
    /// Largest gap that a dependence can ask for.
    gap: i64,
    stage: Vec<i64>,
}

impl<'s, 'p> Stages<'s, 'p> {
    pub(super) fn new(search: &'s mut Search<'p>) -> Stages<'s, 'p> {
        let count = search.slot.len();
        let mut least = vec![vec![NONE; count]; count];
        let mut gap = 1;
        (0..count).for_each(|v| least[v][v] = 0);
        for d in search.dependences() {
            let (u, v) = (d.from.index(), d.to.index());
            let cycles = search.delay(d) + search.slot[u] - search.slot[v];
            let stages = cycles.div_euclid(search.interval) + i64::from(cycles.rem_euclid(search.interval) > 0);
            let stages = stages - i64::from(d.distance);
            gap = gap.max(stages).max(i64::from(d.distance));
            least[u][v] = least[u][v].max(stages);
        }
        for k in 0..count {
            for u in 0..count {
                for v in 0..count {
                    if least[u][k] > NONE && least[k][v] > NONE {
                        least[u][v] = least[u][v].max(least[u][k] + least[k][v]);
                    }
                }
            }
        }
        Stages { search, least, gap, stage: vec![0; count] }
    }

    /// Tries all stages, the first operation's being 0.
    pub(super) fn try_all(mut self) {
        // A cycle of dependences that asks for more than its distance.
        if (0..self.stage.len()).all(|v| self.least[v][v] == 0) {
            self.place(1);
        }
    }

    fn place(&mut self, v: usize) {
        if self.search.is_over() {
            return;
        }
        if v == self.stage.len() {
            return self.measure();
        }
        let reach = self.gap * (self.stage.len() as i64 - 1);
        let (mut low, mut high) = (-reach, reach);
        for u in 0..v {
            if self.least[u][v] > NONE {
                low = low.max(self.stage[u] + self.least[u][v]);
            }
            if self.least[v][u] > NONE {
                high = high.min(self.stage[u] - self.least[v][u]);
            }
        }
        for stage in low..=high {
            self.stage[v] = stage;
            self.place(v + 1);
        }
    }

    fn measure(&mut self) {
        let mut sorted = self.stage.clone();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[1] - pair[0] > self.gap) {
            return;
        }
        let search = &self.search;
        let cycles: Vec<i64> = (0..sorted.len()).map(|v| self.stage[v] * search.interval + search.slot[v]).collect();
        let first = cycles.iter().min().copied().unwrap_or(0);
        let length = cycles.iter().enumerate().map(|(v, t)| t - first + search.op(v).span().0).max().unwrap_or(0);
        let stages = length.div_euclid(search.interval) + i64::from(length.rem_euclid(search.interval) > 0);
        if search.best.is_some_and(|best| best[0] < stages) {
            return;
        }
        if let Some(registers) = memory::fits(search, &cycles) {
            let objectives = self.objectives(stages, length, registers);
            let best = &mut self.search.best;
            *best = Some(best.map_or(objectives, |best| best.min(objectives)));
        }
    }

    fn objectives(&self, stages: i64, length: i64, registers: i64) -> Objectives {
        let search = &self.search;
        let role = |g: usize| search.problem.groups()[g].role;
        let computing: BTreeSet<usize> =
            search.group.iter().copied().filter(|&g| role(g) == GroupRole::Compute).collect();
        let mut words = 0;
        let mut channels = BTreeSet::new();
        for d in search.dependences().iter().filter(|d| d.carries_value) {
            let (u, reader) = (d.from.index(), search.group[d.to.index()]);
            if search.group[u] != reader {
                channels.insert((u, reader));
            }
            if let (true, Storage::Registers(value)) = (search.crosses(d), search.op(u).storage) {
                words += (value.0 as i64 / 64).max(1);
            }
        }
        [stages, computing.len() as i64, words, channels.len() as i64, length, registers]
    }
}
