//! Target: files of graphs, schedules and certificates, all of them JSON.

use crate::change::{changed, renumbered};
use crate::sample;
use crate::tape::Tape;
use twill_exact::{Budget, SearchOptions, certify, schedule};
use twill_graph::format::{
    CertificateFile, DataflowFile, DataflowScheduleFile, GraphFile, KernelScheduleFile, MachineReference, PipelineFile,
    ScheduleFile, TraceFile,
};
use twill_graph::{Cycles, Problem, builtin};

const FILE: &str = "fuzz.json";

const WORDS: [&str; 24] = [
    "null",
    "true",
    "false",
    "{}",
    "[]",
    "\"\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"name\":",
    "\"cycles\":",
    "\"units\":",
    "\"distance\":",
    "\"latency\":",
    "\"machine\":",
    "\"operations\":",
    "\"registers\":",
    "\"h100\"",
    "\"source\":",
    "\"format\":",
    "-",
];

/// Reads, writes and reads again what the bytes make of files, most of them nearly right.
///
/// # Panics
/// When something written is not read as what it was.
pub fn check(bytes: &[u8]) {
    let mut tape = Tape::new(bytes);
    let kind = [0, 1, 2, 2, 2, 3, 4, 5][tape.index(8)];
    let text = match kind {
        0 => return read_all(&String::from_utf8_lossy(tape.rest())),
        1 => match tape.pick(&builtin::names().collect::<Vec<_>>()).and_then(|name| builtin::text(name)) {
            Some(text) => text.to_owned(),
            None => return,
        },
        _ => match sample::problem(&mut tape) {
            Some(problem) => written(&problem, kind),
            None => return,
        },
    };
    read_all(&text);
    if kind == 2 {
        return read_all(&renumbered(&mut tape, &text));
    }
    read_all(&changed(&mut tape, &text, &WORDS));
}

/// A file about a problem, as Twill writes it.
fn written(problem: &Problem, kind: u64) -> String {
    let graph = || {
        let mut file = GraphFile::from_graph(problem.graph());
        file.machine = Some(MachineReference::Resources(Box::new(problem.resources().clone())));
        file.to_json()
    };
    let budget = Budget { work: Some(20_000), ..Budget::default() };
    let options =
        SearchOptions { budget: budget.clone(), largest_interval: Some(Cycles(6)), ..SearchOptions::default() };
    match kind {
        2 => graph(),
        3 => PipelineFile::new(problem, &twill_exact::pipeline(problem, &options, &mut |_| {})).to_json(),
        4 => {
            let report = schedule(problem, &options, &mut |_| {});
            certify(problem, &report, &budget).map_or_else(|_| graph(), |c| CertificateFile::new(problem, &c).to_json())
        }
        _ => ScheduleFile::new(problem, &schedule(problem, &options, &mut |_| {})).to_json(),
    }
}

/// For all numbers, a search keeps to its budget; its result is a schedule.
fn solved(problem: &Problem) {
    let budget = Budget { work: Some(20_000), ..Budget::default() };
    let report = schedule(problem, &SearchOptions { budget, ..SearchOptions::default() }, &mut |_| {});
    if let Some(found) = report.outcome.schedule() {
        let rejected = twill_check::verify(problem, found.clone()).err();
        assert!(rejected.is_none(), "{rejected:?}: {found:#?}\n{problem:#?}");
    }
}

/// Every reader of JSON sees the text.
fn read_all(text: &str) {
    if let Ok(file) = GraphFile::from_json(text, FILE) {
        let again = GraphFile::from_json(&file.to_json(), FILE);
        assert_eq!(again.ok().as_ref(), Some(&file), "{text}");
        if let Ok(graph) = file.graph() {
            let written = GraphFile::from_graph(&graph).to_json();
            let again = GraphFile::from_json(&written, FILE).and_then(|file| file.graph());
            assert_eq!(again.ok().as_ref(), Some(&graph), "{written}");
            if let Some(MachineReference::Resources(machine)) = file.machine {
                Problem::new(graph, *machine, Default::default()).iter().for_each(solved);
            }
        }
    }
    if let Ok(file) = ScheduleFile::from_json(text, FILE) {
        assert_eq!(ScheduleFile::from_json(&file.to_json(), FILE).ok().as_ref(), Some(&file), "{text}");
        if let Ok(problem) = file.problem() {
            if let Ok(schedule) = file.schedule(&problem) {
                let _ = twill_check::verify(&problem, schedule);
            }
            if let Ok(report) = file.report(&problem) {
                let again = ScheduleFile::new(&problem, &report);
                assert_eq!(again.report(&problem).ok(), Some(report), "{text}");
            }
        }
    }
    if let Ok(file) = PipelineFile::from_json(text, FILE) {
        assert_eq!(PipelineFile::from_json(&file.to_json(), FILE).ok().as_ref(), Some(&file), "{text}");
        if let Ok(problem) = file.problem()
            && let Ok(pipeline) = file.pipeline(&problem)
        {
            let _ = twill_check::verify_pipeline(&problem, pipeline);
        }
    }
    if let Ok(file) = CertificateFile::from_json(text, FILE) {
        assert_eq!(CertificateFile::from_json(&file.to_json(), FILE).ok().as_ref(), Some(&file), "{text}");
    }
    if let Ok(file) = KernelScheduleFile::from_json(text, FILE) {
        assert_eq!(KernelScheduleFile::from_json(&file.to_json(), FILE).ok().as_ref(), Some(&file), "{text}");
        if let Ok(problem) = file.problem() {
            let _ = file.report(&problem);
        }
    }
    if let Ok(file) = TraceFile::from_json(text, FILE) {
        assert_eq!(TraceFile::from_json(&file.to_json(), FILE).ok().as_ref(), Some(&file), "{text}");
    }
    if let Ok(file) = DataflowFile::from_json(text, FILE) {
        let _ = file.graph();
    }
    if let Ok(file) = DataflowScheduleFile::from_json(text, FILE) {
        let _ = file.problem().map(|problem| twill_check::verify_dataflow(&problem, file.start_steps()));
    }
}
