#![allow(dead_code)]
//! The second scheduler, for graphs too large for exact search: scheduling by gradient, with lower bounds.
//!
//! After "GauS: Differentiable Scheduling Optimization via Gaussian Reparameterization" (Cai, Bakhtazad, Yu, Zhang;
//! arXiv 2602.20427).

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
mod random;
mod relax;
#[cfg(test)]
mod testing;

pub use baseline::{Baseline, BaselineError, UnknownBaseline};
pub use bounds::{Argument, BoundedTerm, IntervalBound, LowerBound, Term, least_interval, lower_bound};
pub use control::Control;
pub use descent::Descent;
pub use engine::{Found, Progress, schedule};
pub use interval::{Cyclic, recurrence_interval, resource_interval, smallest_interval};
pub use legal::{Preference, Side};
pub use measure::{Measure, is_legal};
pub use mobility::{Mobility, MobilityError};
pub use model::GausError;
pub use options::{Options, StartFrom};
pub use polish::Polish;
pub use precedence::{Neighbour, Precedence};
pub use relax::{DependenceLoss, Detail};
