//! The data of a page.

use super::storage::{GroupRegisters, Memory, memories, registers};
use crate::{TextOptions, dataflow, explanation, headline, kernel, search, words};
use serde::{Deserialize, Serialize};
use twill_check::{MeasuredSteps, Verified};
use twill_graph::format::{
    DataflowScheduleFile, DataflowSummary, ExplanationFile, KernelScheduleFile, NormalisationEntry, ScheduleFile,
    TraceFile,
};
use twill_graph::{DataflowProblem, Explanation, MultiLoopProblem, MultiLoopReport, Problem, Report, Schedule, Status};

/// Everything that a page shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Page {
    format: &'static str,
    version: u32,
    /// Name of the kernel, loop or graph.
    pub name: String,
    /// Name of the machine; none for a graph without warps.
    pub machine: Option<String>,
    /// Version of Twill.
    pub twill: &'static str,
    /// The result, in a sentence.
    pub headline: String,
    /// The innermost loops of the kernel, in the order of the text; none of a graph without warps.
    pub loops: Vec<LoopReport>,
    /// The common part of loops that share their warp groups, without the loops.
    pub kernel: Option<KernelScheduleFile>,
    /// The schedule of a graph without warps.
    pub dataflow: Option<DataflowScheduleFile>,
    /// The generated kernel.
    pub code: Option<Code>,
    /// The measurements.
    pub trace: Option<TraceFile>,
    /// The assembler's result for the generated kernel.
    pub assembly: Option<Assembly>,
    /// The chip, for rates of all of it; none where the machine is not known.
    pub chip: Option<Chip>,
    /// The report for a terminal, for where scripts do not run.
    #[serde(skip)]
    pub text: String,
}

/// A loop with its schedule, or why it has none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoopReport {
    /// The schedule with its problem.
    pub schedule: ScheduleFile,
    /// The bound of the initiation interval, in words.
    pub bound: String,
    /// Why the interval is no smaller; none where that was not asked.
    pub explanation: Option<ExplanationFile>,
    /// Intervals that are excluded, ascending, in words.
    pub rejected: Vec<Excluded>,
    /// The changes of the interval, in words.
    pub what_ifs: Vec<WhatIfAnswer>,
    /// Registers of each warp group in use.
    pub registers: Vec<GroupRegisters>,
    /// Shared memory, and tensor memory where there is any.
    pub memories: Vec<Memory>,
    /// Floating-point operations of an iteration's MMAs; 0 where they are not counted.
    pub flop: u64,
    /// Cycles of an iteration by a simulation of the warp programs, where they were simulated.
    pub simulated: Option<u32>,
    /// Cycles of an iteration by SASS estimate, where the kernel was assembled.
    pub sass_estimate: Option<u32>,
}

/// Excluded intervals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Excluded {
    /// Which: `I = 2567`.
    pub intervals: String,
    /// Why, perhaps in several lines.
    pub why: String,
}

/// The effect of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WhatIfAnswer {
    /// The difference.
    pub change: String,
    /// The interval then, and what bounds it.
    pub answer: String,
}

/// A generated kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Code {
    /// Name of its file.
    pub file: String,
    /// Its language.
    pub language: Language,
    /// The file's text.
    pub text: String,
    /// Which lines run which operation.
    pub lines: Vec<CodeLine>,
}

/// The assembler's result for a generated kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assembly {
    /// Registers a thread at the kernel's entry.
    pub registers: u32,
    /// Bytes of spill stores.
    pub spill_stores: u64,
    /// Bytes of spill loads.
    pub spill_loads: u64,
    /// Where the machine code is not what the schedule was made for.
    #[serde(default)]
    pub findings: Vec<Finding>,
}

/// Something to know about machine code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Such as `spilled`, `serialised`.
    pub kind: String,
    /// In words.
    pub message: String,
}

/// The factors that turn cycles of one multiprocessor into rates of the whole chip.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Chip {
    /// Clock of the multiprocessors.
    pub clock_mhz: f64,
    /// How many there are.
    pub multiprocessors: u64,
}

/// The language of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// Gluon, which is Python.
    Python,
    /// CUDA C++.
    Cuda,
}

/// A line of a generated kernel that runs an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeLine {
    /// Position of the loop, from 0.
    #[serde(rename = "loop")]
    pub index: usize,
    /// Name in its graph.
    pub operation: String,
    /// The line, from 1.
    pub line: usize,
}

impl LoopReport {
    /// A loop with what a search found, and why that is no faster.
    pub fn new(
        problem: &Problem,
        report: &Report<Verified<Schedule>>,
        normalisation: Option<NormalisationEntry>,
        explained: Option<&Explanation>,
    ) -> LoopReport {
        let schedule = report.outcome.schedule().map(AsRef::as_ref);
        let rejected = match explained {
            Some(explained) => explanation::rejected(problem, explained),
            None => search::excluded(&report.rejections),
        };
        let what_ifs = explained.map(|explained| explanation::what_ifs(problem, explained)).unwrap_or_default();
        let mut file = ScheduleFile::new(problem, report);
        file.normalisation = normalisation;
        LoopReport {
            schedule: file,
            bound: words::bounded(&report.lower_bound),
            explanation: explained.map(|explained| ExplanationFile::new(problem, explained)),
            rejected: rejected.into_iter().map(|(intervals, why)| Excluded { intervals, why }).collect(),
            what_ifs: what_ifs.into_iter().map(|(change, answer)| WhatIfAnswer { change, answer }).collect(),
            registers: schedule.map(|s| registers(problem, s)).unwrap_or_default(),
            memories: schedule.map(|s| memories(problem, s)).unwrap_or_default(),
            flop: problem.graph().traffic().flop,
            simulated: report.simulated.and_then(|simulated| u32::try_from(simulated.cycles.0).ok()),
            sass_estimate: report.simulated.and_then(|simulated| u32::try_from(simulated.sass?.0).ok()),
        }
    }
}

impl Page {
    fn new(name: &str, headline: String, text: String) -> Page {
        Page {
            format: "twill-report",
            version: 1,
            name: name.to_owned(),
            machine: None,
            twill: env!("CARGO_PKG_VERSION"),
            headline,
            loops: Vec::new(),
            kernel: None,
            dataflow: None,
            code: None,
            trace: None,
            assembly: None,
            chip: None,
            text,
        }
    }

    /// A page of loops that were scheduled separately: the outcome for each, next to its part of the page.
    pub fn of_loops(name: &str, loops: Vec<(&Problem, &Report<Verified<Schedule>>, LoopReport)>) -> Page {
        let sentence =
            |problem: &Problem, report: &Report<Verified<Schedule>>| sentence(&headline::known(problem, report));
        let headline = match loops.as_slice() {
            [(problem, report, _)] => sentence(problem, report),
            several => {
                let each = several.iter().map(|(p, r, _)| format!("{}: {}", p.graph().name(), sentence(p, r)));
                each.collect::<Vec<_>>().join(" ")
            }
        };
        let text = |(problem, report, _): &(&Problem, &Report<Verified<Schedule>>, LoopReport)| {
            crate::text(problem, report, TextOptions::default())
        };
        let text = loops.iter().map(text).collect::<Vec<_>>().join("\n");
        let machine = loops.first().map(|(problem, ..)| problem.resources().name.clone());
        let loops = loops.into_iter().map(|(.., one)| one).collect();
        Page { machine, loops, ..Page::new(name, headline, text) }
    }

    /// A page of loops that share their warp groups, and each loop's part of it.
    pub fn of_kernel(
        kernel: &MultiLoopProblem,
        report: &MultiLoopReport<Verified<Schedule>>,
        loops: Vec<LoopReport>,
    ) -> Page {
        let mut file = KernelScheduleFile::new(kernel, report);
        file.loops.clear();
        let text = crate::kernel_text(kernel, report, TextOptions::default());
        let machine = kernel.loops().first().map(|problem| problem.resources().name.clone());
        let headline = sentence(&kernel::known(kernel, report));
        Page { machine, loops, kernel: Some(file), ..Page::new(kernel.name(), headline, text) }
    }

    /// A page of a graph without warps.
    pub fn of_dataflow(problem: &DataflowProblem, found: &Verified<MeasuredSteps>, summary: DataflowSummary) -> Page {
        let headline = format!("{}.", dataflow::headline(&summary));
        let text = crate::dataflow_text(&summary, TextOptions::default());
        let file = DataflowScheduleFile::new(problem, &found.steps, summary);
        Page { dataflow: Some(file), ..Page::new(problem.graph.name(), headline, text) }
    }

    /// Facts about the whole kernel; none for a graph without warps.
    pub fn status(&self) -> Option<Status> {
        let worst = |status: &Status| match status {
            Status::Optimal => 0,
            Status::Infeasible => 1,
            Status::Feasible => 2,
            Status::Unknown => 3,
        };
        match &self.kernel {
            Some(kernel) => Some(kernel.status),
            None => self.loops.iter().map(|one| one.schedule.status).max_by_key(worst),
        }
    }

    /// The data as JSON, without spaces.
    pub fn to_json(&self) -> String {
        // Plain data always serialises.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Lines of a terminal's report as one sentence or two.
fn sentence<K>(lines: &[(String, K)]) -> String {
    let joined = lines.iter().map(|(line, _)| line.as_str());
    let mut text = String::new();
    for line in joined {
        if !text.is_empty() {
            text.push_str(if text.ends_with('.') { " " } else { ", " });
        }
        text.push_str(line);
    }
    if !text.ends_with('.') {
        text.push('.');
    }
    text
}
