//! What is known in addition to a proof, and what is kept of a search that is stopped.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use twill_driver::{
    Answer, Input, Limits, LoweringParameters, Request, Session, SiblingOptions, Silent, answer_or_relaxed, problems,
};
use twill_exact::{Budget, SearchOptions};
use twill_graph::{Cycles, GroupRole, Status, WarpAssignment};

fn request(example: &str, limits: Limits) -> Request {
    let path = format!("{}/../../examples/{example}.ttir", env!("CARGO_MANIFEST_DIR"));
    Request {
        input: Input::kernel(example, std::fs::read_to_string(path).unwrap()),
        lowering: LoweringParameters::default(),
        limits,
        siblings: SiblingOptions::default(),
    }
}

fn answered(request: &Request, budget: Budget) -> Answer {
    let mut nobody = Silent;
    let mut session = Session::new(SearchOptions { budget, ..SearchOptions::default() }, &mut nobody);
    answer_or_relaxed(request, problems(request).unwrap(), &mut session, 0.0).unwrap().1
}

fn interval(answer: &Answer) -> Cycles {
    answer.loops()[0].outcome.schedule().unwrap().as_ref().interval
}

#[test]
fn the_bound_of_any_assignment_is_one_of_the_free_search() {
    for example in ["attention_forward_d64_m64", "attention_forward", "gemm_tma", "swiglu"] {
        let fixed = answered(&request(example, Limits::default()), Budget::default());
        let free = Limits { warp_assignment: Some(WarpAssignment::Free), ..Limits::default() };
        let free = answered(&request(example, free), Budget::default());
        let bound = fixed.loops()[0].wider_bound.unwrap();
        assert_eq!(free.loops()[0].outcome.status(), Status::Optimal, "{example}");
        assert!(bound <= interval(&free) && interval(&free) <= interval(&fixed), "{example}: {bound}");
        assert!(free.loops()[0].wider_bound.is_none(), "{example}: everything was searched");
        let simulated = fixed.loops()[0].simulated.unwrap();
        assert!(simulated.copies_and_mmas <= simulated.cycles, "{example}: {simulated:?}");
    }
}

#[test]
fn a_search_that_is_interrupted_at_once_has_a_schedule_and_its_bound() {
    let stopped = || Budget { interrupt: Some(Arc::new(AtomicBool::new(true))), ..Budget::default() };
    let unrolled = Limits { unroll: 2, ..Limits::default() };
    for (example, limits) in [
        ("attention_forward", Limits::default()),
        ("attention_forward_causal", Limits::default()),
        ("gemm_tma", unrolled),
    ] {
        let answer = answered(&request(example, limits), stopped());
        for own in answer.loops() {
            assert_eq!(own.outcome.status(), Status::Feasible, "{example}");
            assert!(own.outcome.schedule().unwrap().as_ref().interval >= own.lower_bound.interval, "{example}");
        }
    }
}

/// Registers that a thread of the compute groups of a schedule has, and warps of each.
fn shares(answer: &Answer) -> Vec<(u32, u32)> {
    let groups = answer.loops()[0].outcome.schedule().unwrap().as_ref().groups.iter();
    groups.filter(|g| g.role == GroupRole::Compute).map(|g| (g.warps, g.registers_per_thread)).collect()
}

#[test]
fn what_four_warps_do_not_hold_is_scheduled_for_eight() {
    let wide = "fixtures/pointers/wide";
    let found = answered(&request(wide, Limits::default()), Budget::default());
    // Nothing is proved of the machine's own groups but that they have no schedule.
    assert_eq!(found.status(), Status::Feasible);
    let [(8, registers)] = shares(&found)[..] else { panic!("{:?}", shares(&found)) };
    assert!(registers <= 255, "{registers}");
    // What the user limits stays as it is.
    let limited = Limits { compute_groups: Some(3), ..Limits::default() };
    assert_eq!(answered(&request(wide, limited), Budget::default()).status(), Status::Infeasible);
}

#[test]
fn what_eight_warps_do_not_hold_either_counts_on_more_registers() {
    let mut request = request("fixtures/pointers/wide", Limits::default());
    let text = twill_machine::builtin_text("h100").unwrap();
    let few = text.replace("maximum_per_thread = { specified = 255", "maximum_per_thread = { specified = 128");
    request.lowering.machine = Some(twill_machine::check(&few, "few.toml").unwrap());
    let found = answered(&request, Budget::default());
    assert_eq!(found.status(), Status::Feasible);
    assert!(shares(&found).iter().any(|(warps, registers)| *warps == 8 && *registers > 128), "{:?}", shares(&found));
}
