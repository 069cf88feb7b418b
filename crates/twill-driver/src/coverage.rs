//! What becomes of a kernel, in both languages: whether its loops have a schedule, and whether code realises it.

use crate::tune::{self, Assembler, CompileOptions, Compiled, Language, OperationCounts};
use crate::{Error, Request, Session};
use serde::Serialize;
use twill_graph::Status;

/// What becomes of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// The input.
    pub input: String,
    /// Whether its loops are scheduled.
    pub schedule: ScheduleCoverage,
    /// Its kernel in Gluon.
    pub gluon: CodeCoverage,
    /// Its kernel in CUDA C++.
    pub cuda: CodeCoverage,
}

/// Whether the loops of a kernel are scheduled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleCoverage {
    /// Each has an optimal schedule, proved.
    Optimal,
    /// Each has a schedule.
    Feasible,
    /// One has none, for this reason.
    None(String),
}

/// What a kernel's code is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeCoverage {
    /// It realises the schedule: loads are asynchronous in rings, MMAs where their types allow it.
    Realised {
        /// How it loads and multiplies.
        operations: OperationCounts,
        /// In one line, if it was assembled.
        machine_code: Option<String>,
        /// Its machine code spills registers in a group.
        spills: bool,
    },
    /// One group executes one operation after the other, because of what is said.
    InOrder {
        /// How it loads and multiplies.
        operations: OperationCounts,
        /// In one line, if it was assembled.
        machine_code: Option<String>,
        /// Why there is no pipeline.
        why: String,
    },
    /// There is none, for this reason.
    None(String),
}

impl CodeCoverage {
    /// Whether there is a kernel.
    pub fn is_generated(&self) -> bool {
        !matches!(self, CodeCoverage::None(_))
    }

    /// Whether it realises the schedule, without spills as far as that is known.
    pub fn is_realised(&self) -> bool {
        matches!(self, CodeCoverage::Realised { spills: false, .. })
    }
}

/// What becomes of a kernel; with an assembler also its machine code. What cannot be done is part of the answer.
///
/// # Errors
/// When its text cannot be read, or the machine is not known.
pub fn coverage(
    request: &Request,
    options: &CompileOptions,
    assembler: Option<&Assembler>,
    session: &mut Session<'_>,
) -> Result<Coverage, Error> {
    let schedule = match scheduled(request, session) {
        Ok(schedule) => schedule,
        Err(Error::Triton(error)) if matches!(*error, twill_triton::Error::Parse(_)) => {
            return Err(Error::Triton(error));
        }
        Err(error @ Error::Machine(_)) => return Err(error),
        Err(error) => ScheduleCoverage::None(first_line(&error.to_string())),
    };
    let mut of = |language: Language| {
        let options = CompileOptions { emit: Some(language), in_order: true, ..options.clone() };
        // Each language has the time that is given for a kernel.
        let mut search = session.search.clone();
        search.budget.until = search.budget.time.and_then(|time| search.budget.clock.now().checked_add(time));
        match tune::compile(request, &options, assembler, &mut session.with(search)) {
            Ok(Compiled::Kernel(kernel)) => {
                let (operations, machine_code) = (kernel.operations, kernel.machine_code.clone());
                match kernel.in_order {
                    Some(why) => CodeCoverage::InOrder { operations, machine_code, why: first_line(&why) },
                    None => {
                        let spills = kernel.findings.iter().any(|finding| finding.kind == "spilled");
                        CodeCoverage::Realised { operations, machine_code, spills }
                    }
                }
            }
            Ok(Compiled::NoSchedule(_)) => CodeCoverage::None("no schedule".into()),
            Ok(Compiled::Stopped) => CodeCoverage::None("interrupted".into()),
            Err(error) => CodeCoverage::None(first_line(&error.to_string())),
        }
    };
    let (gluon, cuda) = (of(Language::Gluon), of(Language::Cuda));
    Ok(Coverage { input: request.input.name.clone(), schedule, gluon, cuda })
}

fn scheduled(request: &Request, session: &mut Session<'_>) -> Result<ScheduleCoverage, Error> {
    let (_, answer) = crate::answer_or_relaxed(request, crate::problems(request)?, session, 0.0)?;
    Ok(match answer.status() {
        Status::Optimal => ScheduleCoverage::Optimal,
        Status::Feasible => ScheduleCoverage::Feasible,
        Status::Infeasible => ScheduleCoverage::None("no schedule exists: proved".into()),
        Status::Unknown => ScheduleCoverage::None("no schedule was found in time".into()),
    })
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
