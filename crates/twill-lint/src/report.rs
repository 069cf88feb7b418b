//! What is found in one listing, and what could not be read off.

use crate::finding::{Finding, Place};
use crate::program::Program;
use crate::rules::{self, Use, UseKind};
use crate::sass::ListingError;
use serde::Serialize;
use std::fmt::Write;

/// A function that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FunctionReport {
    /// Its name.
    pub name: String,
    /// Its instructions.
    pub instructions: usize,
    /// Those that are a `wgmma`.
    pub wgmmas: usize,
}

/// How many of something the text says, of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReadOff {
    /// Those that are known.
    pub known: usize,
    /// All of them.
    pub all: usize,
}

impl ReadOff {
    fn count(&mut self, is_known: bool) {
        self.known += usize::from(is_known);
        self.all += 1;
    }

    /// Those of both.
    #[must_use]
    pub fn plus(self, other: ReadOff) -> ReadOff {
        ReadOff { known: self.known + other.known, all: self.all + other.all }
    }

    /// `3 of 7`.
    fn text(self) -> String {
        format!("{} of {}", self.known, self.all)
    }
}

/// What the rules had to go by: rules about barriers hold where addresses and operands are constants in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// Addresses of barriers.
    pub barriers: ReadOff,
    /// Counts that barriers are initialised with.
    pub counts: ReadOff,
    /// Bytes that barriers expect.
    pub bytes: ReadOff,
    /// Branches and calls whose target is in the text.
    pub branches: ReadOff,
    /// Lines that read as instructions.
    pub lines: ReadOff,
}

impl Coverage {
    /// Those of both.
    #[must_use]
    pub fn plus(self, other: Coverage) -> Coverage {
        Coverage {
            barriers: self.barriers.plus(other.barriers),
            counts: self.counts.plus(other.counts),
            bytes: self.bytes.plus(other.bytes),
            branches: self.branches.plus(other.branches),
            lines: self.lines.plus(other.lines),
        }
    }

    fn of(program: &Program, uses: impl Iterator<Item = Use>) -> Coverage {
        let mut coverage = Coverage::default();
        for used in uses {
            coverage.barriers.count(used.offset().is_some());
            let is_known = used.operand.as_number().is_some();
            match used.kind {
                UseKind::Init => coverage.counts.count(is_known),
                UseKind::Expect => coverage.bytes.count(is_known),
                _ => {}
            }
        }
        let instructions = program.listing.code.len();
        let jumps = program.listing.code.iter().filter(|i| i.is(&["BRA", "BRX", "JMP", "JMX", "CALL"])).count();
        coverage.branches = ReadOff { known: jumps.saturating_sub(program.graph.unknown.len()), all: jumps };
        coverage.lines = ReadOff { known: instructions, all: instructions + program.listing.unread };
        coverage
    }
}

/// What is found in one listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Functions in it.
    pub functions: Vec<FunctionReport>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// What the rules had to go by.
    pub read_off: Coverage,
}

/// Checks a listing of nvdisasm or cuobjdump.
///
/// # Errors
/// [`ListingError`] if it holds no machine code of Hopper.
pub fn lint(text: &str) -> Result<Report, ListingError> {
    let program = Program::read(text)?;
    let (findings, facts) = rules::check(&program);
    let function = |function: &crate::sass::Function| FunctionReport {
        name: function.name.clone(),
        instructions: function.end - function.start,
        wgmmas: program.wgmmas[function.start..function.end].iter().flatten().count(),
    };
    let functions = program.listing.functions.iter().map(function).collect();
    let read_off = Coverage::of(&program, facts.uses.values().copied());
    Ok(Report { functions, findings, read_off })
}

impl Finding {
    /// It in a line, for a note.
    pub fn line(&self) -> String {
        let place = |place: &Place| format!("{:#x} `{}`", place.offset, place.instruction);
        let earlier = self.earlier.as_ref().map(|earlier| format!(" (with {})", place(earlier))).unwrap_or_default();
        format!("{}: {} at {}: {}{earlier}", self.rule.name(), self.function, place(&self.at), self.why)
    }

    /// It in some lines, for people.
    pub fn text(&self) -> String {
        let mut text = format!("{}: {}+{:#x}: {}\n", self.rule.name(), self.function, self.at.offset, self.why);
        place(&mut text, "at", &self.at);
        if let Some(earlier) = &self.earlier {
            place(&mut text, "with", earlier);
        }
        if self.path.len() > 1 {
            let blocks: Vec<String> = self.path.iter().map(|offset| format!("{offset:#x}")).collect();
            let _ = writeln!(text, "    by the blocks {}", blocks.join(" -> "));
        }
        if self.more > 0 {
            let _ = writeln!(text, "    and {} more of the kind", self.more);
        }
        text
    }
}

fn place(text: &mut String, word: &str, place: &Place) {
    let _ = write!(text, "    {word:<4} {:#06x}  {}", place.offset, place.instruction);
    if let (Some(file), Some(line)) = (&place.file, place.line) {
        let _ = write!(text, "  ({file}:{line})");
    }
    text.push('\n');
}

impl Coverage {
    /// It in a line, for people.
    pub fn text(&self) -> String {
        let named = [
            ("barrier addresses", self.barriers),
            ("initial counts", self.counts),
            ("expected bytes", self.bytes),
            ("branches", self.branches),
        ];
        let parts: Vec<String> = named
            .iter()
            .filter(|(_, part)| part.all > 0)
            .map(|(name, part)| format!("{} {name}", part.text()))
            .collect();
        let unread = self.lines.all - self.lines.known;
        let unread = if unread > 0 { format!("; {unread} lines do not read as instructions") } else { String::new() };
        format!("read off: {}{unread}", if parts.is_empty() { "no barriers".to_owned() } else { parts.join(", ") })
    }
}
