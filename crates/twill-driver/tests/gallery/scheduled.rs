//! The loops of a kernel before and after, on the machine that kernels are for by default.

use crate::kernels::Kernel;
use crate::root;
use twill_check::Verified;
use twill_driver::{Input, Limits, LoweringParameters, Request, Session, SiblingOptions, Silent, answer, problems};
use twill_exact::{Budget, Naive, SearchOptions};
use twill_graph::{Cycles, LowerBound, Outcome, Problem, Schedule};

/// A loop with both of its schedules. The checker has replayed them.
pub struct Loop {
    pub problem: Problem,
    /// As `twill compile --schedule no-swp` has it: one iteration after another.
    pub before: Verified<Schedule>,
    /// The optimum.
    pub after: Verified<Schedule>,
    /// What is proved of schedules that keep each sub-tile on one warp group, as generated code does.
    pub bound: LowerBound,
    /// What is proved of all schedules.
    pub wider_bound: Cycles,
}

/// The loops of a kernel, in their order.
pub fn scheduled(kernel: &Kernel) -> Vec<Loop> {
    let text = std::fs::read_to_string(root().join("examples").join(format!("{}.ttir", kernel.file))).unwrap();
    let request = Request {
        input: Input::kernel(kernel.file, text),
        lowering: LoweringParameters::default(),
        limits: Limits::default(),
        siblings: SiblingOptions::default(),
    };
    let problems = problems(&request).unwrap();
    // In work, not in seconds: the same on every machine.
    let budget = || Budget { work: Some(20_000_000), ..Budget::default() };
    let search = || SearchOptions { budget: budget(), ..SearchOptions::default() };
    let answer = answer(&request, &problems, &mut Session::new(search(), &mut Silent), 0.0).unwrap();
    let each = problems.loops.into_iter().zip(answer.loops());
    let both = |(one, report): (twill_driver::LoopProblem, &twill_graph::Report<Verified<Schedule>>)| {
        let problem = one.problem;
        let Outcome::Optimal { schedule: after } = &report.outcome else {
            panic!("{}: the optimum is not proved", kernel.file)
        };
        let naive = twill_exact::naive(&problem, Naive::NoPipelining, &search(), &mut |_| ());
        let before = naive.outcome.schedule().unwrap().clone();
        let before = twill_check::verify(&problem, before).unwrap();
        Loop {
            problem,
            before,
            after: after.clone(),
            bound: report.lower_bound.clone(),
            wider_bound: report.wider_bound.unwrap(),
        }
    };
    each.map(both).collect()
}
