//! The head of the script: its question, the meaning of an answer, the way to get one.

use crate::names::inert;
use crate::question::{ExpectedStatus, Question};
use crate::script::Script;
use twill_graph::{ConcurrencyWindow, Liveness, Problem};

pub(crate) fn write(script: &mut Script, problem: &Problem, question: &Question) {
    let (graph, interval, stages) = (problem.graph(), question.interval, question.stages_in_words(problem));
    let (name, machine) = (inert(graph.name()), inert(&problem.resources().name));
    script.comment(&format!(
        "Is there a schedule of the loop \"{name}\" on \"{machine}\" with initiation interval I = {interval} and {stages}?\n\
         \n\
         sat:   there is; op_v_t gives the issue cycle t of operation v, warp_v_w its warp group w.\n\
         unsat: there is no schedule at this interval with {stages}.\n\
         Issue cycles have a Boolean each, so the number of stages is bounded; of longer schedules\n\
         unsat says nothing.\n\
         \n\
         The time-indexed formulation of Twill (arXiv 2512.18134) with the formulas of Twill's\n\
         docs/model.md, under whose names the assertions stand. Any solver for QF_LIA reads it:\n\
         \n\
         \x20 z3 FILE      cvc5 FILE      yices-smt2 FILE\n\
         \n\
         For the constraints that exclude each other, uncomment the next line and the one at the end.\n\
         (set-option :produce-unsat-cores true)\n\
         \x20"
    ));
    for note in &question.notes {
        script.comment(note);
    }
    script.comment(&format!("{}\n ", model_variant(problem)));
    for v in graph.op_ids() {
        let op = graph.operation(v);
        script.comment(&format!("operation {}: \"{}\", {} cycles", v.index(), inert(&op.name), op.occupancy));
    }
    for (w, group) in problem.group_ids().zip(problem.groups()) {
        script.comment(&format!("group {}: {}, {} warps", w.index(), group.role, group.warps));
    }
    script.command("(set-info :smt-lib-version 2.6)");
    let status = match question.expected_status {
        Some(ExpectedStatus::Sat) => "sat",
        Some(ExpectedStatus::Unsat) => "unsat",
        None => "unknown",
    };
    script.command(&format!("(set-info :status {status})"));
    script.command("(set-logic QF_LIA)");
}

/// The options of the model.
fn model_variant(problem: &Problem) -> String {
    let options = problem.options();
    let switch = |on| if on { "on" } else { "off" };
    format!(
        "model: exclusive issue {}, concurrency window {}, consumer registers {}, cross-group registers {}, liveness {}",
        switch(options.exclusive_issue),
        match options.concurrency_window {
            ConcurrencyWindow::Issue => "issue",
            ConcurrencyWindow::Literal => "literal",
        },
        switch(options.consumer_registers),
        switch(options.cross_group_registers),
        match options.liveness {
            Liveness::Folded => "folded",
            Liveness::Paper => "paper",
        },
    )
}

pub(crate) fn end(script: &mut Script) {
    script.comment("\n ");
    script.command("(check-sat)");
    script.comment("(get-unsat-core)");
}
