//! The second scheduler, for graphs too large for exact search: scheduling by gradient, with lower bounds.
//!
//! After "GauS: Differentiable Scheduling Optimization via Gaussian Reparameterization" (Cai, Bakhtazad, Yu, Zhang;
//! arXiv 2602.20427). Every start is a random variable `X_v ~ N(μ_v, σ_v²)`; objectives and broken constraints become
//! expectations with gradients, which Adam follows down an augmented Lagrangian. The means are then rounded, made legal,
//! and polished by jump moves and simulated annealing, and the search goes on from the best schedule.
//!
//! [`schedule`] answers formulations A, B and C and the least latency, [`smallest_interval`] the smallest interval of a
//! loop. Every answer keeps all rules, or there is none. Each part can be left out by [`Options`], to see what it is
//! worth. What differs from the paper:
//!
//! - a broken dependence costs the expected number of steps by which it is broken, which pulls however far off it is; the
//!   paper's probability is an option ([`DependenceLoss`]);
//! - distributions are mixtures of two spline kernels, so that a gradient takes constant time an operation and a dependence,
//!   whatever `σ`;
//! - rounding keeps what the gradient levelled: operations are placed in the order of their means, under a cap that rises
//!   where it has to;
//! - limits of resources are kept, by ejection as in iterative modulo scheduling;
//! - schedules are polished ([`Polish`]), which is no gradient at all.
//!
//! ```
//! use twill_gaus::{Control, Options, schedule};
//! use twill_graph::{
//!     Dataflow, DataflowDependence, DataflowObjective, DataflowOperation, DataflowProblem, DataflowResource, OpId,
//!     ResourceUse, UnitId,
//! };
//! // Six additions into one, within four steps: two adders are enough.
//! let adder = ResourceUse { resource: UnitId::new(0), offset: 0, steps: 1, amount: 1 };
//! let add = |v| DataflowOperation { name: format!("add{v}"), latency: 1, uses: vec![adder], storage: 1 };
//! let wait = |v| DataflowDependence {
//!     from: OpId::new(v), to: OpId::new(6), delay: 1, distance: 0, communication: 1,
//! };
//! let adders = DataflowResource { name: "adder".into(), limit: None };
//! let graph = Dataflow::new("sum", (0..7).map(add).collect(), (0..6).map(wait).collect(), vec![adders])?;
//! let objective = DataflowObjective::Resources { peak: 1, communication: 0 };
//! let problem = DataflowProblem { graph, latency_bound: Some(4), interval: None, objective };
//! let found = schedule(&problem, &Options::default(), Control::default(), &mut |_| {})?;
//! assert_eq!(found.objective, Some(2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod baseline;
mod bounds;
mod control;
mod descent;
mod engine;
mod feasible;
mod interval;
mod latency;
mod legal;
mod measure;
mod mobility;
mod model;
pub mod neighbourhood;
mod options;
mod polish;
mod precedence;
mod relax;
#[cfg(test)]
mod testing;

pub use baseline::{Baseline, BaselineError, UnknownBaseline};
pub use bounds::{
    Argument, BoundedTerm, IntervalBound, LowerBound, Term, least_interval, least_interval_within, lower_bound,
    lower_bound_within, multipliers, wavefront,
};
pub use control::Control;
pub use descent::Descent;
pub use engine::{GausResult, Part, Progress, schedule};
pub use interval::{Cyclic, at_least_interval, smallest_interval};
pub use legal::Side;
pub use measure::{Measure, is_legal, legal_measure};
pub use mobility::{Mobility, MobilityError};
pub use model::GausError;
pub use options::{Options, StartFrom};
pub use polish::Polish;
pub use precedence::{Neighbour, Precedence};
pub use relax::DependenceLoss;

/// The name of the GPU that [`Descent::on_gpu`] means. The first call in a process begins it, within a second.
///
/// # Errors
/// Why there is none.
pub fn gpu() -> Result<&'static str, String> {
    #[cfg(feature = "cuda")]
    return twill_gaus_cuda::device_name().map_err(|error| error.to_string());
    #[cfg(not(feature = "cuda"))]
    Err("this Twill was built without CUDA".to_owned())
}
