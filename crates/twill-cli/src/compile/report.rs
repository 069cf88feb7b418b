//! What `twill compile` says when it is done.

use std::fmt::Write as _;
use std::path::Path;
use twill_driver::compile::{GeneratedKernel, GeneratedLoop};
use twill_graph::grouped;

/// From so many times the interval on, what stands in the way is said.
const FAR: f64 = 1.3;

/// The report on the kernel that was written.
pub(super) fn text(kernel: &GeneratedKernel, folder: &Path) -> String {
    let mut out = format!("{} for {}\n", kernel.name, kernel.machine);
    for one in &kernel.loops {
        let stages = counted(one.stages, "stage");
        let simulated = one.simulated.map_or_else(String::new, |cycles| format!("; {} simulated", grouped(cycles)));
        let assembled = one.assembled.map_or_else(String::new, |cycles| format!(", {} SASS estimate", grouped(cycles)));
        let interval = grouped(one.interval);
        let _ = writeln!(out, "{}: I = {interval} cycles, {stages} ({}){simulated}{assembled}", one.name, one.status);
        if let Some(warning) = warning(kernel, one) {
            let _ = writeln!(out, "warning: {warning}");
        }
    }
    let _ =
        writeln!(out, "barriers: proved for {} combinations of trip counts in {:.2} s", kernel.cases, kernel.checking);
    match &kernel.machine_code {
        Some(machine_code) => {
            let _ = writeln!(out, "machine code: {machine_code}");
            for finding in &kernel.findings {
                let _ = writeln!(out, "  {}: {}", finding.kind, finding.message);
            }
        }
        None => out.push_str("machine code: not looked at (run assemble.py there)\n"),
    }
    let _ = writeln!(out, "written to {}", folder.display());
    out
}

/// What stands between a loop's interval and its estimate, where they are far apart.
fn warning(kernel: &GeneratedKernel, one: &GeneratedLoop) -> Option<String> {
    let (cycles, of) = match (one.assembled, one.simulated) {
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
