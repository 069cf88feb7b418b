//! Schedulers of the textbooks, to compare with and to start from. Each is deterministic, and every answer is legal.
//!
//! | name | what | for |
//! |---|---|---|
//! | `asap`, `alap` | every operation as early, or as late, as dependences and the latency bound let it | anything; limits are not looked at |
//! | `list` | list scheduling; with a latency bound and no limits, with as few units or as little storage as it can | no interval |
//! | `force-directed` | Paulin and Knight 1989: balances resources within mobility windows | anything; limits are not looked at |
//! | `spans` | Cong and Zhang 2006: the least sum of lifetimes or, for resources, communication, by a system of difference constraints | anything; limits are not looked at |
//! | `ims` | iterative modulo scheduling, Rau 1994 | loops with limits |
//! | `sdc` | modulo scheduling with difference constraints, Zhang and Liu 2013, Canis et al. 2014 | loops with limits |

mod force;
mod iterative;
mod list;
mod sdc;
mod table;
#[cfg(test)]
mod tests;

use crate::bounds::{bounded, least_spans};
use crate::control::{Clock, Control};
use crate::measure::keeps;
use crate::{Mobility, MobilityError, Precedence};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use twill_graph::{Dataflow, DataflowObjective, DataflowProblem, StartSteps};

/// A scheduler of the textbooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Baseline {
    /// As soon as possible.
    Asap,
    /// As late as possible.
    Alap,
    /// List scheduling.
    List,
    /// Force-directed scheduling.
    ForceDirected,
    /// Difference constraints solved for the least sum of spans.
    LeastSpans,
    /// Iterative modulo scheduling.
    IterativeModulo,
    /// Modulo scheduling with a system of difference constraints.
    SdcModulo,
}

/// Why a baseline has no schedule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BaselineError {
    /// There is none.
    #[error(transparent)]
    Mobility(#[from] MobilityError),
    /// Another kind of problem.
    #[error("`{baseline}` {why}")]
    Unfit {
        /// The operation.
        baseline: Baseline,
        /// Its demand, and the alternatives.
        why: &'static str,
    },
    /// It found none, which does not mean that there is none.
    #[error("`{baseline}` found no schedule: {why}")]
    NotFound {
        /// The operation.
        baseline: Baseline,
        /// The obstacles.
        why: String,
    },
}

/// No baseline of this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no baseline is named `{name}`; known: {}", Baseline::ALL.map(Baseline::name).join(", "))]
pub struct UnknownBaseline {
    /// The name.
    pub name: String,
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Baseline {
    type Err = UnknownBaseline;

    fn from_str(name: &str) -> Result<Baseline, UnknownBaseline> {
        Self::ALL.into_iter().find(|b| b.name() == name).ok_or_else(|| UnknownBaseline { name: name.to_owned() })
    }
}

/// Longest table of steps that is kept for all resources together.
const MOST_STEPS: u64 = 1 << 27;

impl Baseline {
    /// All of them.
    pub const ALL: [Baseline; 7] = [
        Baseline::Asap,
        Baseline::Alap,
        Baseline::List,
        Baseline::ForceDirected,
        Baseline::LeastSpans,
        Baseline::IterativeModulo,
        Baseline::SdcModulo,
    ];

    /// Its name in text.
    pub fn name(self) -> &'static str {
        match self {
            Baseline::Asap => "asap",
            Baseline::Alap => "alap",
            Baseline::List => "list",
            Baseline::ForceDirected => "force-directed",
            Baseline::LeastSpans => "spans",
            Baseline::IterativeModulo => "ims",
            Baseline::SdcModulo => "sdc",
        }
    }

    /// Schedules `problem` as it stands: at its interval, within its latency bound and limits.
    ///
    /// ```
    /// use twill_gaus::Baseline;
    /// use twill_graph::{DataflowObjective, DataflowProblem, Random};
    ///
    /// let graph = "nodes=200,density=0.02,seed=7".parse::<Random>().unwrap().graph().unwrap();
    /// let objective = DataflowObjective::Resources { peak: 1, communication: 0 };
    /// let problem = DataflowProblem { graph, latency_bound: Some(40), interval: None, objective };
    /// let steps = Baseline::List.schedule(&problem).unwrap();
    /// assert_eq!(steps.steps.len(), 200);
    /// ```
    ///
    /// # Errors
    /// When there is no schedule, when it found none, or when the problem is not of its kind.
    pub fn schedule(self, problem: &DataflowProblem) -> Result<StartSteps, BaselineError> {
        self.schedule_within(problem, Control::default())
    }

    /// The same within a budget: it is given up when that is used up.
    ///
    /// # Errors
    /// As for [`schedule`](Self::schedule).
    pub fn schedule_within(self, problem: &DataflowProblem, control: Control<'_>) -> Result<StartSteps, BaselineError> {
        let precedence = Precedence::new(&problem.graph, problem.interval);
        let mobility = Mobility::within(&problem.graph, &precedence, problem.latency_bound, problem.interval)?;
        let clock = Clock::start(control);
        let (graph, precedence, mobility) = (&problem.graph, &precedence, &mobility);
        let task = Task { baseline: self, problem, graph, precedence, mobility, clock };
        let unfit = |why| Err(BaselineError::Unfit { baseline: self, why });
        let steps = match (self, problem.interval) {
            (Baseline::Asap, _) => mobility.earliest.clone(),
            (Baseline::Alap, _) => mobility.latest.clone(),
            (Baseline::List, None) => match (problem.latency_bound, problem.objective) {
                (Some(_), DataflowObjective::Resources { .. }) => list::fewest_units(&task)?,
                (Some(_), DataflowObjective::Storage) if task.unlimited() => list::least_storage(&task)?,
                _ => list::within_limits(&task)?,
            },
            (Baseline::List, Some(_)) => return unfit("knows no interval; `ims` and `sdc` schedule loops"),
            (Baseline::ForceDirected, _) => force::balance(&task)?,
            (Baseline::LeastSpans, _) => {
                let storage = problem.objective == DataflowObjective::Storage;
                let found = least_spans(graph, precedence, mobility, problem.interval, storage, &clock);
                found.ok_or_else(|| task.not_found("it was too much work"))?
            }
            (Baseline::IterativeModulo, Some(interval)) => iterative::schedule(&task, interval)?,
            (Baseline::SdcModulo, Some(interval)) => sdc::schedule(&task, interval)?,
            (Baseline::IterativeModulo | Baseline::SdcModulo, None) => {
                return unfit("schedules loops at an interval; without one, `list` does");
            }
        };
        task.checked(steps)
    }

    /// Schedules a loop at the smallest interval at which it finds a schedule, from `MII` on; at most `tries` intervals,
    /// while the budget lasts.
    ///
    /// # Errors
    /// As for [`schedule`](Self::schedule), at the last interval that was tried.
    pub fn smallest_interval(
        self,
        graph: &Dataflow,
        latency_bound: Option<u64>,
        tries: u64,
        control: Control<'_>,
    ) -> Result<StartSteps, BaselineError> {
        let clock = Clock::start(control);
        let least = bounded(graph, &clock.share(0.5)).least();
        let objective = DataflowObjective::Latency;
        let mut problem = DataflowProblem { graph: graph.clone(), latency_bound, interval: Some(least), objective };
        let mut found = self.schedule_within(&problem, clock.rest());
        for interval in (least..least.saturating_add(tries)).skip(1) {
            if matches!(found, Ok(_) | Err(BaselineError::Unfit { .. })) || clock.is_over() {
                break;
            }
            problem.interval = Some(interval);
            found = self.schedule_within(&problem, clock.rest());
        }
        found
    }
}

/// The data that all of them share.
struct Task<'a> {
    baseline: Baseline,
    problem: &'a DataflowProblem,
    graph: &'a Dataflow,
    precedence: &'a Precedence,
    mobility: &'a Mobility,
    clock: Clock<'a>,
}

impl Task<'_> {
    fn not_found(&self, why: impl Into<String>) -> BaselineError {
        BaselineError::NotFound { baseline: self.baseline, why: why.into() }
    }

    fn out_of_time(&self) -> BaselineError {
        self.not_found("there was no more time")
    }

    fn unlimited(&self) -> bool {
        self.graph.resources().iter().all(|r| r.limit.is_none())
    }

    /// Refuses tables that would not fit memory.
    fn table_of(&self, steps: u64) -> Result<(), BaselineError> {
        if steps.saturating_mul(self.graph.resources().len().max(1) as u64) <= MOST_STEPS {
            return Ok(());
        }
        Err(self.not_found(format!("{steps} steps are more than it keeps a table of; scale the delays down")))
    }

    /// The schedule, if it is legal.
    fn checked(&self, steps: Vec<u64>) -> Result<StartSteps, BaselineError> {
        let measure = crate::Measure::with(self.graph, self.precedence, self.problem.interval, &steps);
        let above =
            self.graph.resources().iter().zip(&measure.peaks).find(|(r, peak)| r.limit.is_some_and(|l| **peak > l));
        if let Some((resource, peak)) = above {
            let limit = resource.limit.unwrap_or(0);
            return Err(
                self.not_found(format!("it uses {peak} of `{}` in a step, and there are {limit}", resource.name))
            );
        }
        if let Some(bound) = self.problem.latency_bound.filter(|&bound| measure.latency > bound) {
            return Err(self.not_found(format!("it takes {} steps, and the latency bound is {bound}", measure.latency)));
        }
        if !keeps(self.problem, self.precedence, &steps, &measure) {
            return Err(self.not_found("dependences are broken"));
        }
        Ok(StartSteps { interval: self.problem.interval, steps })
    }
}
