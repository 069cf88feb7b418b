//! From wishes to schedules that keep every rule.

mod eject;
mod level;
mod settle;
mod table;

pub(crate) use eject::{Ejection, Preference, eject};
pub(crate) use level::{Levelling, level};
pub use settle::Side;
pub(crate) use settle::settle;
pub(crate) use table::Table;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Clock, Control};
    use crate::feasible::rank;
    use crate::model::Model;
    use crate::testing::{everything, operation, resources, uses};
    use crate::{Mobility, Precedence, is_legal};
    use twill_graph::{Dataflow, DataflowObjective, DataflowOperation, DataflowProblem};

    fn unsigned(steps: &[i64]) -> Vec<u64> {
        steps.iter().map(|&s| s as u64).collect()
    }

    #[test]
    fn settled_schedules_keep_dependences_on_every_side() {
        for interval in [None, Some(11)] {
            let mut problem = everything(DataflowObjective::Storage, interval);
            let latency = Mobility::new(&problem).unwrap().latency + 9;
            problem.latency_bound = Some(latency);
            let precedence = Precedence::new(&problem.graph, interval);
            let model = Model::new(&problem, &precedence, latency).unwrap();
            // Wishes far off, out of order and out of the windows.
            let wishes: Vec<f64> = (0..model.len()).map(|v| ((v * 37) % 50) as f64 - 10.0).collect();
            let sides = [Side::Earlier, Side::Middle, Side::Later].map(|side| settle(&model, &wishes, side));
            for steps in &sides {
                let steps = unsigned(steps);
                for d in problem.graph.dependences().iter().filter(|d| d.distance == 0 || interval.is_some()) {
                    let apart = u64::from(d.distance) * interval.unwrap_or(0);
                    assert!(steps[d.to.index()] + apart >= steps[d.from.index()] + d.delay as u64);
                }
                let finishes = steps.iter().zip(&model.latencies).map(|(s, &l)| s + l as u64);
                assert!(finishes.max() <= Some(latency));
            }
            assert!((0..model.len()).all(|v| sides[0][v] <= sides[1][v] && sides[1][v] <= sides[2][v]));
        }
    }

    #[test]
    fn ejection_keeps_limits_bounds_and_recurrences() {
        let mut problem = everything(DataflowObjective::Latency, Some(30));
        let latency = Mobility::new(&problem).unwrap().latency + 20;
        problem.latency_bound = Some(latency);
        let precedence = Precedence::new(&problem.graph, problem.interval);
        let model = Model::new(&problem, &precedence, latency).unwrap();
        let clock = Clock::start(Control::default());
        for preference in [Preference::Earliest, Preference::Nearest, Preference::Snug] {
            let rank = rank(&model, |v| model.latest[v] as f64);
            let how = Ejection { preference, budget: 50, seed: 1 };
            let middle: Vec<i64> = (0..model.len()).map(|v| (model.earliest[v] + model.latest[v]) / 2).collect();
            let steps = eject(&model, &middle, &rank, &model.limits, how, &clock);
            let steps = steps.unwrap_or_else(|| panic!("nothing found, {preference:?} first"));
            assert!(is_legal(&problem, &precedence, &unsigned(&steps)));
        }
    }

    #[test]
    fn what_cannot_be_is_given_up() {
        // Three operations of two steps on one unit, in five steps.
        let mut one = resources(1);
        one[0].limit = Some(1);
        let operations = (0..3).map(|v| DataflowOperation { latency: 2, uses: vec![uses(0, 2)], ..operation(v) });
        let graph = Dataflow::new("tight", operations.collect(), Vec::new(), one).unwrap();
        let problem = |bound| DataflowProblem {
            graph: graph.clone(),
            latency_bound: Some(bound),
            interval: None,
            objective: DataflowObjective::Latency,
        };
        let precedence = Precedence::new(&graph, None);
        for (bound, found) in [(5, false), (6, true)] {
            let problem = problem(bound);
            let model = Model::new(&problem, &precedence, bound).unwrap();
            let how = Ejection { preference: Preference::Earliest, budget: 20, seed: 1 };
            let clock = Clock::start(Control::default());
            // The middle one is placed first and leaves no room on either side: it has to be ejected.
            let steps = eject(&model, &[1, 1, 1], &[0, 1, 2], &model.limits, how, &clock);
            assert_eq!(steps.is_some(), found, "{steps:?}");
        }
    }
}
