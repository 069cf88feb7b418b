//! An independent check of schedules: only a schedule that survives its replay becomes [`Verified`].
//!
//! [`verify`] shares no code with any solver. It knows the vocabulary (`twill-graph`) and the
//! statements of `docs/model.md`, and takes nothing that a schedule says about itself on trust:
//! length, groups, channels, rings and all demands on registers and memories are worked out anew
//! from the issue cycles and groups.
//!
//! # Method
//!
//! The loop is run: as many overlapped copies of the iteration are laid out, each one initiation
//! interval after the last, as it takes to reach the steady state, and the result is swept in the
//! order of time from the first issue (`unroll.rs` says how many copies suffice and why). So the
//! ramp-up is seen as well as the steady state, wrap-around needs no modular arithmetic, and the
//! cost depends on the number of operations and copies, not on cycle counts. Each constraint has
//! one file, named as in `docs/model.md`. [`verify_modulo`], [`verify_pipeline`] and
//! [`verify_dataflow`] replay schedules without warps, [`verify_multipliers`] and [`verify_wavefront`]
//! add up what a bound on their objective follows from.
//!
//! # What is proved
//!
//! For a `Verified<Schedule>` and the problem that it was verified against, under the problem's
//! [`ModelOptions`](twill_graph::ModelOptions):
//!
//! - every constraint in the table of `docs/model.md` holds in every cycle of a loop of any number
//!   of iterations (with [`Liveness::Paper`](twill_graph::Liveness): in the program that the paper
//!   counts, which is not the same);
//! - the schedule's length, groups, channels with their depths, and rings are exactly those that
//!   follow from its placements.
//!
//! # What is not proved
//!
//! - that no better schedule exists;
//! - that the costs in the graph are those of the hardware;
//! - that values find contiguous places in shared and tensor memory: amounts are added up, not
//!   packed;
//! - anything about code generated from the schedule; its barriers are checked by [`protocol`].
//!
//! ```
//! use twill_graph::{builtin, format::MachineReference, Cycles, GroupId, GroupRole, ModelOptions};
//! use twill_graph::{Placement, Problem, Schedule, WarpGroup};
//!
//! let toy = builtin::find("toy-attention").unwrap();
//! let Some(MachineReference::Resources(machine)) = toy.machine else { panic!() };
//! let problem = Problem::new(toy.graph, *machine, ModelOptions::default()).unwrap();
//! let at = |cycle, group| Placement { cycle: Cycles(cycle), group: GroupId::new(group) };
//! let group =
//!     |id| WarpGroup { id: GroupId::new(id), role: GroupRole::Compute, warps: 4, registers_per_thread: 40 };
//! let schedule = Schedule {
//!     interval: Cycles(3),
//!     length: Cycles(3),
//!     placements: vec![at(0, 0), at(1, 0), at(2, 0)],
//!     groups: vec![group(0)],
//!     channels: vec![],
//!     rings: vec![],
//! };
//! let verified = twill_check::verify(&problem, schedule.clone()).unwrap();
//! assert_eq!(verified.stages(), 1);
//!
//! let impatient = Schedule { interval: Cycles(1), ..schedule };
//! let rejected = twill_check::verify(&problem, impatient).unwrap_err();
//! assert!(rejected.to_string().contains("unit `tensor`"));
//! ```

mod assignment;
mod bandwidth;
mod certificate;
mod channels;
mod concurrency;
mod constraint;
mod dataflow;
mod dependence;
mod exclusive;
mod handoff;
mod holders;
mod lives;
mod modulo;
mod multi_loop;
mod multipliers;
mod pipeline;
mod placed;
pub mod protocol;
mod registers;
mod rejected;
mod resource;
mod rings;
mod shared_memory;
mod structure;
mod tensor_memory;
mod unroll;
mod verified;
mod violation;
mod wavefront;

pub use certificate::{CertificateError, Evidence, verify_certificate};
pub use constraint::Constraint;
pub use dataflow::{MeasuredSteps, verify_dataflow};
pub use holders::{Held, Holder, Holders, Moment};
pub use modulo::verify_modulo;
pub use multi_loop::{MultiLoopViolation, RejectedLoops, verify_multi_loop};
pub use multipliers::{MultiplierError, verify_multipliers};
pub use pipeline::verify_pipeline;
pub use rejected::Rejected;
pub use verified::{Verified, verify};
pub use violation::Violation;
pub use wavefront::{WavefrontError, verify_wavefront};
