//! A question is asked: constraints are encoded at once, or where a candidate breaks them.

use crate::constraints;
use crate::encoding::{Encoding, Question, Reply, Stages};
use crate::engine::{Engine, SatResult};
use crate::limits::Meter;
use crate::proof_log::Log;
use crate::variables::variables;
use batsat::Lit;
use std::rc::Rc;
use twill_graph::{Family, Problem};

impl<'p> Encoding<'p> {
    /// Encodes a question; `None` when dependences alone rule it out, or bandwidth.
    pub(crate) fn new(problem: &'p Problem, question: Question, meter: &Meter) -> Option<Encoding<'p>> {
        Self::logged(problem, question, meter, Log::default())
    }

    /// The same, writing down what a proof takes (unbounded form).
    pub(crate) fn logged(problem: &'p Problem, question: Question, meter: &Meter, log: Log) -> Option<Encoding<'p>> {
        let (nodes, bounds) = variables(problem, question)?;
        let engine = Engine::new(&[nodes], bounds, meter, log)?;
        let mut encoding = Encoding::within(problem, question, engine, 0);
        encoding.encode();
        Some(encoding)
    }

    /// The same as [`Encoding::new`], with interchangeable sub-tiles in any order.
    pub(crate) fn in_any_order(problem: &'p Problem, question: Question, meter: &Meter) -> Option<Encoding<'p>> {
        let (nodes, bounds) = variables(problem, question)?;
        let engine = Engine::new(&[nodes], bounds, meter, Log::default())?;
        let mut encoding = Encoding::within(problem, question, engine, 0);
        encoding.sub_tiles_in_order = false;
        encoding.encode();
        Some(encoding)
    }

    /// Encodes what is encoded at once.
    pub(crate) fn encode(&mut self) {
        if self.question.stages == Stages::Any && self.has(Family::Dependence) {
            constraints::dependence::encode(self);
        }
        constraints::encode(self);
    }

    /// Searches for a schedule under `assumptions`, adding constraints that candidates break until
    /// one breaks none.
    pub(crate) fn solve(&mut self, assumptions: &[Lit]) -> Reply {
        loop {
            match self.engine.solve(assumptions) {
                SatResult::Unsatisfiable => return Reply::None,
                SatResult::Stopped => return Reply::Stopped,
                SatResult::Satisfiable(assignment) => {
                    let candidate = self.candidate(Rc::new(assignment));
                    if !constraints::refine(self, &candidate) {
                        return Reply::Found(candidate);
                    }
                }
            }
        }
    }
}
