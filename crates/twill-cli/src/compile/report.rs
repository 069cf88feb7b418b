//! What `twill compile` says when it is done.

use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use twill_driver::tune::{GeneratedKernel, GeneratedLoop};
use twill_driver::{LoopProblem, Request, Session, wider_bound};
use twill_graph::{Cycles, grouped};
use twill_report::folded;

/// From this many times the interval on, what stands in the way is said.
const FAR: f64 = 1.3;

/// The report on the kernel that was written; `space` says which schedules were searched.
pub(super) fn text(kernel: &GeneratedKernel, space: Option<&str>, folder: &Path, width: usize) -> String {
    let mut out = format!("{} for {}\n", kernel.name, kernel.machine);
    for one in &kernel.loops {
        let stages = counted(one.stages, "stage");
        let _ = writeln!(out, "{}: I = {} cycles, {stages} ({})", one.name, grouped(one.interval), one.status);
        let simulated = one.simulated.map(|cycles| format!("{} cycles simulated", grouped(cycles)));
        let sass_estimate = one.sass_estimate.map(|cycles| format!("{} cycles by SASS estimate", grouped(cycles)));
        let estimates: Vec<String> = simulated.into_iter().chain(sass_estimate).collect();
        if !estimates.is_empty() {
            let _ = writeln!(out, "an iteration: {}", estimates.join(", "));
        }
        if let Some(warning) = warning(kernel, one) {
            let _ = writeln!(out, "warning: {warning}");
        }
    }
    if let Some(space) = space {
        let _ = writeln!(out, "searched: {space}");
    }
    let _ =
        writeln!(out, "barriers: proved for {} combinations of trip counts in {:.2} s", kernel.cases, kernel.checking);
    match &kernel.machine_code {
        Some(machine_code) => {
            let _ = writeln!(out, "machine code: {machine_code}");
            if let Some(assembler) = &kernel.assembler {
                let _ = writeln!(out, "assembled by {assembler}");
            }
            for finding in &kernel.findings {
                let _ = writeln!(out, "  {}: {}", finding.kind, finding.message);
            }
        }
        None => out.push_str("machine code: not looked at (run assemble.py there)\n"),
    }
    let _ = writeln!(out, "written to {}", folder.display());
    folded(&out, width)
}

/// Which schedules were searched for a kernel, and what bounds all others.
pub(super) fn space(kernel: &GeneratedKernel, request: &Request, session: &mut Session<'_>) -> Option<String> {
    let file: Value = serde_json::from_str(kernel.files.get("schedule.json")?).ok()?;
    let assignment = ["/problem", "/loops/0/problem", "/0/problem"]
        .iter()
        .find_map(|at| file.pointer(&format!("{at}/options/warp_assignment"))?.as_str())?;
    if assignment == "free" {
        return Some("any assignment of operations to warp groups".to_owned());
    }
    let problems = twill_driver::problems(request).ok()?.loops;
    let bound = |(one, own): (&LoopProblem, &GeneratedLoop)| wider_bound(one, Some(Cycles(own.interval)), session);
    let bounds: Option<Vec<Cycles>> = problems.iter().zip(&kernel.loops).map(bound).collect();
    let bounds: Vec<String> = bounds?.iter().map(|bound| format!("I >= {}", grouped(bound.0))).collect();
    Some(format!("each sub-tile on one warp group; for any assignment {} is proved", bounds.join(" + ")))
}

/// What stands between a loop's interval and its estimate, where they are far apart.
fn warning(kernel: &GeneratedKernel, one: &GeneratedLoop) -> Option<String> {
    let (cycles, of) = match (one.sass_estimate, one.simulated) {
        (Some(cycles), _) => (cycles, "SASS estimate"),
        (None, Some(cycles)) => (cycles, "simulation"),
        (None, None) => return None,
    };
    let times = f64::from(cycles) / one.interval.max(1) as f64;
    if times <= FAR {
        return None;
    }
    let spilled = kernel.findings.iter().find(|finding| finding.kind == "spilled");
    let why = match spilled.or(kernel.findings.first()) {
        Some(finding) => format!("{}: {}", finding.kind, finding.message),
        None => "work of threads between MMAs and waits at barriers, which the interval does not count".to_owned(),
    };
    Some(format!("the {of} is {times:.2} times the interval: {why}"))
}

fn counted(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
