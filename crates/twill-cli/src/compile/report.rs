//! What `twill compile` says when it is done.

use super::candidate::Candidate;
use std::fmt::Write as _;
use std::path::Path;
use twill_emit::gluon::Assembly;

/// The report on the kernel that was written.
pub(super) fn text(best: &Candidate, machine: &str, folder: &Path) -> String {
    let program = &best.program;
    let mut out = format!("{} for {machine}\n", program.name);
    for (one, status) in program.loops.iter().zip(&best.statuses) {
        let (interval, stages) = (one.interval, one.stages);
        let _ = writeln!(out, "{}: I = {interval} cycles, {} ({status})", one.name, counted(stages, "stage"));
    }
    let cases = program.proof().cases;
    let _ = writeln!(out, "barriers: proved for {cases} combinations of trip counts in {:.2} s", best.checking);
    match &best.assembly {
        Some(assembly) => {
            let _ = writeln!(out, "machine code: {}", machine_code(assembly));
            for finding in &assembly.findings {
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

/// One line on machine code.
pub(super) fn machine_code(assembly: &Assembly) -> String {
    let mut words = vec![format!("{} registers a thread at entry", assembly.registers)];
    words.push(match (assembly.spill_stores, assembly.spill_loads) {
        (0, 0) => "no spills".into(),
        (stores, loads) => format!("{stores} bytes of spill stores, {loads} of spill loads"),
    });
    if assembly.count("serialised") > 0 {
        words.push("multiplies one by one".into());
    }
    words.push(format!("{} bytes of shared memory", assembly.shared_memory));
    words.join(", ")
}
