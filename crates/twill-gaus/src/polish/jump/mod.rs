//! Jump moves: many operations move by the same number of steps at once, chosen by a minimum cut.
//!
//! Annealing moves one operation; where values are tied to each other, only a whole part of the graph can give way. Of
//! all sets of operations that may move by `k` steps, a minimum cut finds the one that lowers the objective most, as far
//! as prices of steps tell (Veksler, "Efficient Graph-Based Energy Minimization Methods in Computer Vision", PhD thesis,
//! Cornell 1999: jump moves; Möhring, Schulz, Stork, Uetz, Management Science 49, 2003: schedules as cuts). Prices are
//! those of a smooth maximum, which gets sharper. A part of the set that is tied to no other moves only if that is better
//! by the smooth maximum itself. Own: neither paper has peaks.

mod choice;
mod landscape;

use super::Polish;
use crate::bounds::Budget;
use crate::control::Clock;
use crate::model::Model;
use landscape::Landscape;
use std::time::Instant;
use twill_graph::DataflowObjective;
use twill_graph::SplitMix64;

/// Operations in the smallest windows and in the largest, about.
const FEW: f64 = 256.0;
const MANY: f64 = 16_384.0;
/// Longest jump: in parts of the latency, but at least so many steps. Hardly any that is longer is accepted.
const FAR: f64 = 1.0 / 32.0;
const FAR_STEPS: f64 = 16.0;

/// Returns whether the objective has a peak to lower, with neither limits nor an interval.
pub(super) fn is_for(model: &Model<'_>, how: &Polish) -> bool {
    let peaks = match model.objective() {
        DataflowObjective::Resources { peak, communication } => peak > 0 || communication > 0,
        DataflowObjective::Storage => true,
        DataflowObjective::Latency => false,
    };
    how.jumps > 0 && peaks && model.len() > 1 && model.interval.is_none() && model.limits.iter().all(Option::is_none)
}

/// Improves `steps`, which are legal; never for the worse.
pub(super) fn jump(model: &Model<'_>, steps: Vec<i64>, how: &Polish, seed: u64, clock: &Clock<'_>) -> Vec<i64> {
    if !is_for(model, how) {
        return steps;
    }
    let arcs = (model.len() + model.edges().len()) as u64;
    let work = arcs * u64::from(how.jumps);
    let mut budget = Budget::within(clock, work);
    let mut random = SplitMix64::new(seed);
    let mut land = Landscape::new(model, steps);
    let mut best = (land.value(), land.steps.clone());
    let since = Instant::now();
    while !budget.is_over() {
        let done = budget.gone().max(clock.gone(since));
        land.price(how.jump_hot * (how.jump_cold / how.jump_hot).powf(done));
        let wanted = FEW * (MANY / FEW).powf(random.unit());
        let length = model.length as f64 * (wanted / model.len() as f64).min(1.0);
        let middle = land.step(&mut random) as f64;
        let window = (middle - length / 2.0) as i64..=(middle + length / 2.0) as i64;
        let most = (model.length as f64 * FAR).max(FAR_STEPS).min(length).max(1.0);
        let far = most.powf(random.unit()).round() as i64;
        let by = if random.index(2) == 0 { far } else { -far };
        let Some(parts) = choice::choose(&land, window, by, &mut budget) else { break };
        let mut moved = false;
        for part in parts {
            moved |= land.offer(&part, by);
        }
        if moved {
            let value = land.value();
            if value < best.0 {
                best.0 = value;
                best.1.clone_from(&land.steps);
            }
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Control;
    use crate::testing::{after, operation, resources, uses};
    use crate::{Measure, Precedence, is_legal};
    use twill_graph::{Dataflow, DataflowOperation, DataflowProblem};

    /// Chains side by side, each of which starts where all others do: one peak for every operation of a chain.
    fn chains(count: usize, length: usize, objective: DataflowObjective) -> DataflowProblem {
        let operations = (0..count * length)
            .map(|v| DataflowOperation { uses: vec![uses(0, 1)], storage: 1, ..operation(v) })
            .collect();
        let dependences = (0..count * length).filter(|v| v % length > 0).map(|v| after(v - 1, v, 1)).collect();
        let graph = Dataflow::new("chains", operations, dependences, resources(1)).unwrap();
        DataflowProblem { graph, latency_bound: Some((count * length) as u64), interval: None, objective }
    }

    #[test]
    fn chains_that_overlap_are_pulled_apart() {
        let resources = DataflowObjective::Resources { peak: 100, communication: 1 };
        for (objective, least) in [(DataflowObjective::Storage, 2), (resources, 2 * 100 + 5 * 7)] {
            let problem = chains(4, 8, objective);
            let precedence = Precedence::new(&problem.graph, None);
            let model = Model::new(&problem, &precedence, 32).unwrap();
            let clock = Clock::start(Control::default());
            let how = Polish { jumps: 2000, ..Polish::default() };
            let steps = jump(&model, model.earliest.clone(), &how, 1, &clock);
            let again = jump(&model, model.earliest.clone(), &how, 1, &clock);
            assert_eq!(steps, again, "the same seed");
            let unsigned: Vec<u64> = steps.iter().map(|&s| s as u64).collect();
            assert!(is_legal(&problem, &precedence, &unsigned));
            let found = Measure::new(&problem.graph, None, &unsigned).objective(objective);
            assert!(found <= least, "{found} for {objective:?}");
        }
    }

    #[test]
    fn it_ends_where_nothing_can_move() {
        let problem = chains(1, 2, DataflowObjective::Storage);
        let precedence = Precedence::new(&problem.graph, None);
        let model = Model::new(&problem, &precedence, 2).unwrap();
        let clock = Clock::start(Control::default());
        let how = Polish { jumps: 100, ..Polish::default() };
        assert_eq!(jump(&model, model.earliest.clone(), &how, 1, &clock), model.earliest);
    }
}
