//! From a kernel to its schedule and its code: the stages of Twill's pipeline, one after the other.
//!
//! The `twill` command and the Python package ask here, with [`Options`]. A [`Request`] says what is looked at and within which limits;
//! [`fit`] says whether it fits, [`problems`] states it as a problem, [`solve`] and [`siblings`] search and replay what was found, [`explanations`] says why it is no
//! faster, [`report`] draws all of it on a page, and [`tune`] generates the kernel. Nothing here reads arguments, writes files where they are to stay, or speaks
//! to a terminal: who wants to know how far a search is passes an [`Observer`].

mod answer;
mod cache;
mod coverage;
mod error;
mod estimate;
mod explain;
pub mod files;
mod fit;
pub mod gaus;
mod input;
mod kind;
mod observe;
pub mod options;
mod owner;
pub mod performance;
mod places;
mod relax;
mod replay;
pub mod report;
mod request;
mod session;
pub mod siblings;
mod solve;
mod top;
mod trace;
pub mod tune;

pub use answer::{Answer, answer, answer_or_relaxed};
pub use cache::{Cache, CacheError, CacheInfo};
pub use coverage::{CodeCoverage, Coverage, ScheduleCoverage, coverage};
pub use error::Error;
pub use estimate::wider_bound;
pub use explain::{Explained, explanations};
pub use fit::{Fit, Holder, LoopBound, Misfit, Need, Resource, Verdict, fit, fit_schema};
pub(crate) use input::problems_of_source;
pub use input::{LoopProblem, Loops, Lowered, Siblings, Source, default_assignment, lowered, problems, source};
pub use kind::{InputKind, STANDARD_INPUT};
pub use observe::{Observer, Silent};
pub use options::{Options, SiblingOptions};
pub use places::{Places, places};
pub use request::{Content, DEFAULT_MACHINE, GraphInput, Input, Limits, LoweringParameters, Request};
pub use session::Session;
pub use solve::{json, pipeline, schedule_file, solve};
pub use top::{Top, TopOptions, TopSchedule, top};
pub use trace::{TraceError, TracedKernel, TracedRun, trace};
pub use twill_exact::Progress;
