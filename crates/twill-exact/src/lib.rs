//! Exact scheduling: the least initiation interval of a loop on a machine with a warp assignment,
//! proved.
//!
//! The problem is stated in `docs/model.md`, the choice of the method in `docs/solvers.md`: a SAT
//! solver with difference logic over integer issue cycles, whose cost does not grow with cycle
//! counts. [`schedule`] gives a claim; `twill-check` verifies it. [`schedule_multi_loop`] does the same for
//! several loops that share their warp groups; [`pipeline`] leaves warps out; [`alternatives`] gives other
//! schedules that are worth timing.
//!
//! ```
//! use twill_exact::{SearchOptions, schedule};
//! use twill_graph::{Cycles, ModelOptions, Problem, Status, builtin, format::MachineReference};
//!
//! let toy = builtin::find("toy-attention").unwrap();
//! let Some(MachineReference::Resources(machine)) = toy.machine else { unreachable!() };
//! let problem = Problem::new(toy.graph, *machine, ModelOptions::default()).unwrap();
//! let report = schedule(&problem, &SearchOptions::default(), &mut |_| {});
//! assert_eq!(report.outcome.status(), Status::Optimal);
//! assert_eq!(report.outcome.schedule().unwrap().interval, Cycles(2)); // sequentially it takes 3
//! ```

mod alternatives;
mod ask;
mod bounds;
mod certify;
mod compact;
mod constraints;
mod demand;
mod encoding;
mod engine;
mod explain;
mod extract;
mod greedy;
mod limits;
mod modulo;
mod multi_loop;
mod naive;
mod normalise;
mod objective;
mod progress;
mod proof_log;
mod query;
mod repetition;
mod search;
mod sparse;
mod structure;
mod theory;
mod variables;

pub use alternatives::{AlternativeOptions, Alternatives, Difference, End, alternatives, differences};
pub use certify::{CertifyError, certify};
pub use explain::{ExplainOptions, explain, what_if};
pub use limits::{Budget, Clock};
pub use modulo::pipeline;
pub use multi_loop::schedule_multi_loop;
pub use naive::{Naive, naive, naive_multi_loop, unpipelined};
pub use normalise::{NormaliseError, Normalised, normalise};
pub use progress::Progress;
pub use search::{SearchOptions, schedule};
pub use sparse::modulo_schedule;
pub use structure::{impossible, lower_bound};
