//! A legal schedule that is changed move by move, with what it uses.

use super::live::{Level, LiveLevel};
use crate::legal::Table;
use crate::model::Model;
use twill_graph::DataflowObjective;

/// A schedule that keeps dependences and windows, and everything that objectives and limits are made of.
pub(crate) struct State<'m> {
    pub model: &'m Model<'m>,
    pub steps: Vec<i64>,
    /// By resource; empty for those that neither the objective nor a limit asks about.
    pub levels: Vec<Level>,
    pub live: Option<LiveLevel>,
    /// `Σ communication · (s_to + δ·II − s_from)`.
    pub communication: i128,
    /// By operation, what communication grows by when it starts a step later.
    later: Vec<i64>,
    /// Operations moved since [`keep`](Self::keep), with where they were.
    journal: Vec<(u32, i64)>,
}

impl<'m> State<'m> {
    pub fn new(model: &'m Model<'m>, steps: Vec<i64>) -> Self {
        let table = Table::of(model, &steps);
        let resources = matches!(model.objective(), DataflowObjective::Resources { .. });
        let levels = (0..model.limits.len()).map(|resource| match model.limits[resource] {
            _ if resources => Level::new(table.usage(resource).to_vec(), i64::MAX),
            Some(limit) => Level::new(table.usage(resource).to_vec(), limit),
            None => Level::new(Vec::new(), i64::MAX),
        });
        let levels = levels.collect();
        let stored = model.objective() == DataflowObjective::Storage;
        let live = stored.then(|| LiveLevel::new(model, &steps, i64::MAX));
        let mut later = vec![0_i64; model.len()];
        let mut communication = 0_i128;
        for v in 0..model.len() {
            for edge in &model.edges()[model.edges_of(v)] {
                later[v] -= edge.communication as i64;
                later[edge.to] += edge.communication as i64;
                communication += edge.communication as i128 * i128::from(steps[edge.to] + edge.shift - steps[v]);
            }
        }
        Self { model, steps, levels, live, communication, later, journal: Vec::new() }
    }

    /// The objective, exactly; `None` where a limit is exceeded.
    pub fn value(&self) -> Option<i128> {
        for (level, limit) in self.levels.iter().zip(&self.model.limits) {
            if limit.is_some_and(|limit| level.peak() > limit) {
                return None;
            }
        }
        Some(match self.model.objective() {
            DataflowObjective::Resources { peak, communication } => {
                let peaks: i128 = self.levels.iter().map(|level| i128::from(level.peak())).sum();
                i128::from(peak) * peaks + i128::from(communication) * self.communication
            }
            DataflowObjective::Storage => self.live.as_ref().map_or(0, |live| i128::from(live.level.peak())),
            DataflowObjective::Latency => {
                let finishes = self.steps.iter().zip(&self.model.latencies).map(|(s, l)| s + l);
                i128::from(finishes.max().unwrap_or(0))
            }
        })
    }

    fn set(&mut self, v: usize, step: i64) {
        let before = self.steps[v];
        self.steps[v] = step;
        for &used in &self.model.uses[v] {
            let level = &mut self.levels[used.resource];
            if level.usage.is_empty() {
                continue;
            }
            for slot in Table::slots(self.model, used, before) {
                level.add(slot, -used.amount);
            }
            for slot in Table::slots(self.model, used, step) {
                level.add(slot, used.amount);
            }
        }
        self.communication += i128::from(self.later[v]) * i128::from(step - before);
        if let Some(live) = &mut self.live {
            live.moved(self.model, &self.steps, v, before);
        }
    }

    /// Steps to which `v` can go with all others staying.
    pub fn slack(&self, v: usize) -> (i64, i64) {
        let model = self.model;
        let others = model.precedence.predecessors(v).iter().filter(|p| p.op() != v);
        let low = others.map(|p| self.steps[p.op()] + p.lag).fold(model.earliest[v], i64::max);
        let edges = model.edges()[model.edges_of(v)].iter().filter(|edge| edge.to != v);
        (low, edges.map(|edge| self.steps[edge.to] - edge.lag).fold(model.latest[v], i64::min))
    }

    /// Moves `v` to `step`, which lies in its window, and pushes on who is in the way, again and again; `false` when more
    /// than `most` operations would have to move. Then, and whenever it is not liked, [`undo`](Self::undo).
    pub fn shift(&mut self, v: usize, step: i64, most: usize) -> bool {
        let model = self.model;
        let up = step > self.steps[v];
        let first = self.journal.len();
        self.journal.push((v as u32, self.steps[v]));
        self.set(v, step);
        let mut next = first;
        while next < self.journal.len() {
            let moved = self.journal[next].0 as usize;
            next += 1;
            let now = self.steps[moved];
            if up {
                for edge in &model.edges()[model.edges_of(moved)] {
                    if self.steps[edge.to] < now + edge.lag {
                        self.journal.push((edge.to as u32, self.steps[edge.to]));
                        self.set(edge.to, now + edge.lag);
                    }
                }
            } else {
                for p in model.precedence.predecessors(moved) {
                    if self.steps[p.op()] > now - p.lag {
                        self.journal.push((p.op() as u32, self.steps[p.op()]));
                        self.set(p.op(), now - p.lag);
                    }
                }
            }
            if self.journal.len() - first > most {
                return false;
            }
        }
        true
    }

    /// Takes back what was moved since [`keep`](Self::keep).
    pub fn undo(&mut self) {
        while let Some((v, before)) = self.journal.pop() {
            self.set(v as usize, before);
        }
    }

    /// Keeps what was moved; `report` is told of every operation.
    pub fn keep(&mut self, mut report: impl FnMut(usize)) {
        self.journal.drain(..).for_each(|(v, _)| report(v as usize));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::everything;
    use crate::{Measure, Mobility, Precedence, is_legal};
    use twill_graph::SplitMix64;

    #[test]
    fn what_is_kept_up_to_date_is_what_a_fresh_measure_says() {
        let resources = DataflowObjective::Resources { peak: 3, communication: 2 };
        for (objective, interval) in [
            (resources, None),
            (resources, Some(11)),
            (DataflowObjective::Storage, None),
            (DataflowObjective::Storage, Some(11)),
        ] {
            let mut problem = everything(objective, interval);
            let latency = Mobility::new(&problem).unwrap().latency + 9;
            problem.latency_bound = Some(latency);
            let precedence = Precedence::new(&problem.graph, interval);
            let model = Model::new(&problem, &precedence, latency).unwrap();
            let mut random = SplitMix64::new(5);
            let mut state = State::new(&model, model.earliest.clone());
            let (mut moves, mut kept) = (0, 0);
            while moves < 500 {
                let v = random.index(model.len());
                if model.width(v) == 0 {
                    continue;
                }
                let step = model.earliest[v] + random.index(model.width(v) as usize + 1) as i64;
                moves += 1;
                if state.shift(v, step, 8) && random.index(3) > 0 {
                    kept += 1;
                    state.keep(|_| {});
                } else {
                    state.undo();
                }
                let steps: Vec<u64> = state.steps.iter().map(|&s| s as u64).collect();
                let measure = Measure::with(&problem.graph, &precedence, interval, &steps);
                assert_eq!(state.communication, measure.communication);
                for (level, &peak) in state.levels.iter().zip(&measure.peaks) {
                    assert!(level.usage.is_empty() || level.peak() == peak as i64);
                }
                if let Some(live) = &state.live {
                    assert_eq!(live.level.peak() as u128, measure.storage);
                }
                if state.value().is_some() {
                    assert!(is_legal(&problem, &precedence, &steps));
                    assert_eq!(state.value(), Some(measure.objective(objective)));
                }
            }
            assert!(kept > 50, "{kept}");
        }
    }

    #[test]
    fn sums_above_targets_and_smooth_maxima_follow_changes() {
        let mut level = Level::new(vec![3, 9, 1], 4);
        assert_eq!(level.above, 5);
        level.add(2, 6);
        assert_eq!((level.above, level.height()), (8, 8.0));
        level.smooth(0.5);
        level.add(1, -4);
        let expected = 0.5 * [3.0_f64, 5.0, 7.0].map(|usage| (usage / 0.5).exp()).iter().sum::<f64>().ln();
        assert!((level.height() - expected).abs() < 1e-9);
    }
}
