//! Gradients on a CUDA GPU: the problem as plain numbers, for `twill-gaus-cuda`.

use super::adam::corrections;
use super::{Descent, Lagrangian, Multiplier, Stepper, Stopped, Stride};
use crate::model::Model;
use crate::relax::{DependenceLoss, Gaussian, Losses, Relaxation, Shape};
use twill_gaus_cuda::{Constraint, CudaError, Evaluated, Problem, Row, Used};
use twill_graph::DataflowObjective;

/// A descent on the GPU.
pub(crate) struct Gpu<'m> {
    relaxation: Relaxation<'m>,
    descent: twill_gaus_cuda::Descent,
    steps: i32,
}

impl<'m> Gpu<'m> {
    /// `None` where there is no GPU, or its kernels do not know the objective.
    pub fn new(model: &'m Model<'m>, at: &[Gaussian], how: &Descent) -> Option<Self> {
        if model.objective() == DataflowObjective::Latency {
            return None;
        }
        let relaxation = Relaxation::new(model);
        let problem = problem(model, &relaxation, how);
        let descent = twill_gaus_cuda::Descent::new(&problem, at).ok()?;
        Some(Self { relaxation, descent, steps: 0 })
    }
}

fn losses_of([objective, dependence, limits]: [f64; 3]) -> Losses {
    Losses { objective, dependence, limits }
}

impl From<CudaError> for Stopped {
    fn from(_: CudaError) -> Self {
        Stopped
    }
}

impl Stepper for Gpu<'_> {
    fn evaluate(&mut self, shape: Shape, weights: Losses) -> Result<(Losses, f64), Stopped> {
        let weights = [weights.objective, weights.dependence, weights.limits];
        let Evaluated { losses, gradient } = self.descent.evaluate(shape.temperature, weights)?;
        let mut losses = losses_of(losses);
        losses.objective += self.relaxation.communication(&self.descent.at()?);
        Ok((losses, gradient.iter().map(|by| by[0].abs()).sum()))
    }

    fn step(&mut self, stride: &Stride, lagrangian: &Lagrangian) -> Result<(), Stopped> {
        self.steps = self.steps.saturating_add(1);
        let constraint =
            |one: &Multiplier| Constraint { unit: one.unit, lambda: one.lambda, rho: one.rho, scale: one.scale };
        self.descent.step(&twill_gaus_cuda::Stride {
            temperature: stride.shape.temperature,
            widths: stride.widths,
            rates: corrections(stride.rate, self.steps),
            constraints: [constraint(&lagrangian.dependence), constraint(&lagrangian.limits)],
        })?;
        Ok(())
    }

    fn losses(&mut self) -> Result<Losses, Stopped> {
        Ok(losses_of(self.descent.losses()?))
    }

    fn means(&mut self) -> Result<Vec<f64>, Stopped> {
        Ok(self.descent.at()?.iter().map(|at| at[0]).collect())
    }
}

/// The problem of a model.
fn problem(model: &Model<'_>, relaxation: &Relaxation<'_>, how: &Descent) -> Problem {
    let laid = relaxation.laid();
    let operation = |v: usize| {
        let edges = model.edges_of(v);
        Row {
            uses: model.uses[v]
                .iter()
                .map(|used| Used {
                    track: laid.tracks_of[used.resource].tracks[usize::from(used.steps > 1)],
                    offset: used.offset as f64,
                    end: (used.steps > 1).then_some((used.offset + used.steps) as f64),
                    amount: used.amount as f64,
                })
                .collect(),
            stored: model.storage[v] as f64,
            later: relaxation.later(v),
            window: [model.earliest[v] as f64, model.latest[v] as f64],
            out: model.edges()[edges]
                .iter()
                .zip(model.precedence.successors(v))
                .map(|(edge, after)| (edge.to as u32, after.lag as f64, edge.shift as f64))
                .collect(),
            into: model
                .precedence
                .predecessors(v)
                .iter()
                .zip(model.edges_into(v))
                .map(|(before, &edge)| (before.op() as u32, before.lag as f64, edge))
                .collect(),
        }
    };
    let operations = (0..model.len()).map(operation).collect();
    Problem {
        operations,
        first_cells: laid.first_cells,
        length: model.length,
        slots: model.slots,
        mean_slots: laid.mean_slots,
        ends: laid.ends,
        has_storage: laid.has_storage,
        profiles: laid.tracks_of,
        counts_probability: how.dependence == DependenceLoss::Probability,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Threads;
    use super::*;
    use crate::testing::with_model;

    /// Losses, gradients and forty steps of both, for all formulations.
    #[test]
    #[ignore = "needs a CUDA GPU"]
    fn a_gpu_computes_what_threads_do() {
        let resources = DataflowObjective::Resources { peak: 3, communication: 2 };
        for (objective, interval) in [
            (resources, None),
            (resources, Some(11)),
            (DataflowObjective::Storage, None),
            (DataflowObjective::Storage, Some(11)),
        ] {
            for dependence in [DependenceLoss::Shortfall, DependenceLoss::Probability] {
                compare(objective, interval, Descent { dependence, ..Descent::default() });
            }
        }
    }

    fn compare(objective: DataflowObjective, interval: Option<u64>, how: Descent) {
        with_model(objective, interval, |model, at| agree(model, at, objective, interval, how));
    }

    fn agree(model: &Model<'_>, at: Vec<Gaussian>, objective: DataflowObjective, interval: Option<u64>, how: Descent) {
        let mut gpu = Gpu::new(model, &at, &how).expect("a GPU");
        let mut threads = Threads::new(model, at);
        let near = |a: f64, b: f64, within: f64| (a - b).abs() <= within * (1.0 + a.abs().max(b.abs()));
        let shape = Shape { dependence: how.dependence, temperature: 0.3 };
        for weights in [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.7, 2.0]] {
            let weights = Losses { objective: weights[0], dependence: weights[1], limits: weights[2] };
            let (mine, pull) = gpu.evaluate(shape, weights).unwrap();
            let (theirs, their_pull) = threads.evaluate(shape, weights).unwrap();
            for (a, b) in [
                (mine.objective, theirs.objective),
                (mine.dependence, theirs.dependence),
                (mine.limits, theirs.limits),
                (pull, their_pull),
            ] {
                assert!(
                    near(a, b, 1e-6),
                    "{objective:?} {interval:?} {weights:?}: {mine:?} {pull}, not {theirs:?} {their_pull}"
                );
            }
        }
        let constraint = |unit| Multiplier { lambda: 0.1, rho: 1.0, unit, scale: 3.0, before: 1.0 };
        let lagrangian = Lagrangian { dependence: constraint(0.8), limits: constraint(1.1) };
        for step in 0..40 {
            let stride = Stride { shape, widths: [0.3, 2.6 - 0.05 * f64::from(step)], rate: 0.01 };
            gpu.step(&stride, &lagrangian).unwrap();
            threads.step(&stride, &lagrangian).unwrap();
        }
        let (mine, theirs) = (gpu.losses().unwrap(), threads.losses().unwrap());
        assert!(near(mine.dependence, theirs.dependence, 1e-4) && near(mine.limits, theirs.limits, 1e-4));
        for (v, (a, b)) in gpu.means().unwrap().into_iter().zip(threads.means().unwrap()).enumerate() {
            assert!(near(a, b, 1e-4), "{objective:?} {interval:?}: operation {v} is at {a}, not at {b}");
        }
    }
}
