//! What `twill compile` says when it is done.

use std::fmt::Write as _;
use std::path::Path;
use twill_driver::compile::GeneratedKernel;

/// The report on the kernel that was written.
pub(super) fn text(kernel: &GeneratedKernel, folder: &Path) -> String {
    let mut out = format!("{} for {}\n", kernel.name, kernel.machine);
    for one in &kernel.loops {
        let stages = counted(one.stages, "stage");
        let simulated = one.simulated.map_or_else(String::new, |cycles| format!("; {cycles} simulated"));
        let assembled = one.assembled.map_or_else(String::new, |cycles| format!(", {cycles} as assembled"));
        let _ =
            writeln!(out, "{}: I = {} cycles, {stages} ({}){simulated}{assembled}", one.name, one.interval, one.status);
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

fn counted(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
