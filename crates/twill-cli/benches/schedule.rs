//! How long the stages of the pipeline take in one process: `cargo bench -p twill-cli`. The command as a whole: bench.schedule.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run should end")]

use divan::Bencher;
use std::fs;
use std::path::Path;
use twill_check::Verified;
use twill_exact::SearchOptions;
use twill_graph::format::MachineReference;
use twill_graph::{Cycles, LoopGraph, ModelOptions, Outcome, Problem, Report, Resources, Schedule, Status, builtin};
use twill_machine::Machine;

fn main() {
    divan::main();
}

fn example(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)).unwrap()
}

/// The loop of a kernel, on an H100.
fn lowered(text: &str) -> (LoopGraph, Resources) {
    let machine = Machine::load("h100").unwrap();
    let kernel = twill_triton::read(text, "kernel.ttir").unwrap();
    let graph = twill_triton::lower(&kernel.loops()[0], &machine, &twill_triton::Options::default()).unwrap();
    (graph, machine.resources())
}

fn problems(graph: LoopGraph, resources: Resources) -> Problem {
    Problem::new(graph, resources, ModelOptions::default()).unwrap()
}

fn built_in(name: &str) -> Problem {
    let found = builtin::find(name).unwrap();
    let resources = match found.machine.unwrap() {
        MachineReference::Name(name) => Machine::load(&name).unwrap().resources(),
        MachineReference::Resources(resources) => *resources,
    };
    problems(found.graph, resources)
}

/// Searches and replays.
fn solved(problem: &Problem, options: &SearchOptions) -> Report<Verified<Schedule>> {
    let report = twill_exact::schedule(problem, options, &mut |_| {});
    report.try_map(|schedule| twill_check::verify(problem, schedule)).unwrap()
}

fn optimal(problem: &Problem) -> Report<Verified<Schedule>> {
    let report = solved(problem, &SearchOptions::default());
    assert_eq!(report.outcome.status(), Status::Optimal);
    report
}

/// Text to module, without the loops and tiles.
#[divan::bench(args = ["gemm_tma", "attention_forward", "attention_backward"])]
fn parse(bencher: Bencher<'_, '_>, name: &str) {
    let text = example(&format!("{name}.ttir"));
    bencher.bench(|| twill_triton::mlir::parse(&text, "kernel.ttir").unwrap());
}

/// Text to loop graph, the machine file included.
#[divan::bench(args = ["gemm_tma", "attention_forward", "attention_backward"])]
fn parse_and_lower(bencher: Bencher<'_, '_>, name: &str) {
    let text = example(&format!("{name}.ttir"));
    bencher.bench(|| lowered(&text));
}

/// Text to verified schedule, with true cycles (0) and with costs normalised to a sum of at most so much.
#[divan::bench(args = [0, 300], sample_count = 20, sample_size = 1)]
fn attention_forward(bencher: Bencher<'_, '_>, normalise: u32) {
    let text = example("attention_forward.ttir");
    bencher.bench(|| {
        let (mut graph, resources) = lowered(&text);
        if normalise > 0 {
            graph = twill_exact::normalise(&graph, normalise).unwrap().graph;
        }
        optimal(&problems(graph, resources))
    });
}

/// Normalisation by itself.
#[divan::bench(sample_count = 20, sample_size = 1)]
fn normalise_attention_forward(bencher: Bencher<'_, '_>) {
    let (graph, _) = lowered(&example("attention_forward.ttir"));
    bencher.bench(|| twill_exact::normalise(&graph, 300).unwrap());
}

/// Loop graph to verified schedule or proof that there is none.
#[divan::bench(args = builtin::names(), sample_count = 20, sample_size = 1)]
fn built_in_graph(bencher: Bencher<'_, '_>, name: &str) {
    let problem = built_in(name);
    // Attention backward on Blackwell is infeasible as it stands.
    bencher.bench(|| {
        let report = solved(&problem, &SearchOptions::default());
        assert!(matches!(report.outcome.status(), Status::Optimal | Status::Infeasible));
        report
    });
}

/// One compute group cannot hold attention forward at the tensor core's pace, with any number of stages.
#[divan::bench(args = ["built-in", "TTIR"], sample_count = 20, sample_size = 1)]
fn one_group_is_infeasible(bencher: Bencher<'_, '_>, from: &str) {
    let (graph, mut resources) = match from {
        "TTIR" => lowered(&example("attention_forward.ttir")),
        _ => {
            let problem = built_in("attention-forward-hopper");
            (problem.graph().clone(), problem.resources().clone())
        }
    };
    resources.compute_groups.maximum = 1;
    let problem = problems(graph, resources);
    let options = SearchOptions { largest_interval: Some(Cycles(2048)), ..SearchOptions::default() };
    bencher.bench(|| {
        let report = solved(&problem, &options);
        assert!(matches!(report.outcome, Outcome::Infeasible { .. }));
        report
    });
}

/// The replay by itself.
#[divan::bench]
fn verify_attention_forward(bencher: Bencher<'_, '_>) {
    let (graph, resources) = lowered(&example("attention_forward.ttir"));
    let problem = problems(graph, resources);
    let report = twill_exact::schedule(&problem, &SearchOptions::default(), &mut |_| {});
    let schedule = report.outcome.schedule().unwrap().clone();
    bencher.with_inputs(|| schedule.clone()).bench_values(|s| twill_check::verify(&problem, s).unwrap());
}
