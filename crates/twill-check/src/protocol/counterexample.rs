//! How something goes wrong, as a table.

use super::cases::Named;
use super::fault::{Fault, FaultKind};
use super::machine::{Machine, Step};
use super::program::Action;
use std::fmt;

/// One step of a [`Counterexample`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Its column; asynchronous units have the last one.
    pub column: usize,
    /// What is done.
    pub text: String,
    /// It touches the slot or barrier that is at fault, or is among the last.
    pub matters: bool,
}

/// A way from the start to something that must not happen. [`Display`](fmt::Display) makes a table, one row a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// What goes wrong.
    pub kind: FaultKind,
    /// The same in a sentence.
    pub fault: String,
    /// Trip counts.
    pub case: String,
    /// The names of the warp groups, and `asynchronous`.
    pub columns: Vec<String>,
    /// The steps; the last one leads to the fault.
    pub steps: Vec<Moment>,
    /// No fault takes fewer steps with these trip counts: all shorter ways were tried.
    pub shortest: bool,
}

/// So many last steps always matter.
const LAST: usize = 6;

impl Counterexample {
    pub(super) fn new(machine: &Machine<'_>, steps: &[Step], fault: &Fault, shortest: bool) -> Counterexample {
        let program = machine.program;
        let concerns = Concern::of(machine, fault);
        let mut state = machine.start();
        let mut moments = Vec::new();
        for (at, &step) in steps.iter().enumerate() {
            let (column, text) = program.step_name(machine, &state, step);
            let touches =
                program.action_of(machine, &state, step).is_some_and(|(_, action)| concerns.touched_by(action));
            moments.push(Moment {
                column: column.unwrap_or(program.actions.len()),
                text,
                matters: touches || at + LAST >= steps.len(),
            });
            // The last step is the one that fails.
            let _ = machine.take(&mut state, step);
        }
        let names = program.system.processes.iter().map(|p| p.name.clone());
        Counterexample {
            kind: fault.kind(),
            fault: program.fault_name(machine, &state, fault),
            case: Named(program.system, program.case).to_string(),
            columns: names.chain(["asynchronous".to_owned()]).collect(),
            steps: moments,
            shortest,
        }
    }
}

/// The slot, the barriers or the named barriers at fault.
#[derive(Default)]
struct Concern {
    slot: Option<usize>,
    barriers: Vec<usize>,
    named: Vec<usize>,
}

impl Concern {
    fn of(machine: &Machine<'_>, fault: &Fault) -> Concern {
        let mut concern = Concern::default();
        match fault {
            Fault::WrongValue { slot, .. }
            | Fault::InUse { slot, .. }
            | Fault::Race { slot, .. }
            | Fault::Unfenced { slot, .. } => concern.slot = Some(*slot),
            Fault::PhaseSlip { barrier, .. } => concern.barriers.push(*barrier),
            Fault::TwiceAtNamed { named, .. } => concern.named.push(*named),
            Fault::Deadlock { .. } | Fault::Unfinished { .. } => {}
        }
        if let Some(slot) = concern.slot {
            // Barriers on which loads into the slot arrive tell when it is full.
            for &(p, at) in &machine.program.loads {
                if let Action::Load { writes, barrier, .. } = &machine.program.actions[p][at]
                    && writes.slot == slot
                    && !concern.barriers.contains(barrier)
                {
                    concern.barriers.push(*barrier);
                }
            }
        }
        concern
    }

    fn touched_by(&self, action: &Action) -> bool {
        let slot = |place: &super::program::Place| self.slot == Some(place.slot);
        let barrier = match action {
            Action::Wait { barrier, .. } | Action::Arrive { barrier } => self.barriers.contains(barrier),
            Action::Sync(named) | Action::Signal(named) => self.named.contains(named),
            Action::Load { barrier, .. } => self.barriers.contains(barrier),
            Action::Multiply { signals, .. } => signals.iter().any(|b| self.barriers.contains(b)),
            _ => false,
        };
        barrier || action.reads().iter().chain(action.writes()).any(slot)
    }
}

/// Columns are at most so wide; longer texts take several lines.
const WIDTH: usize = 28;

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.fault)?;
        let how = if self.shortest { "shortest way" } else { "a way, not the shortest" };
        writeln!(f, "with {}; {how}, {} steps:", self.case, self.steps.len())?;
        let shown = |step: &&Moment| step.matters || self.steps.len() <= 4 * LAST;
        let width = |column: usize| {
            let texts = self.steps.iter().filter(shown).filter(|s| s.column == column).map(|s| s.text.len());
            texts.max().unwrap_or(0).min(WIDTH).max(self.columns[column].len())
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let row = |f: &mut fmt::Formatter<'_>, number: &str, column: usize, text: &str| {
            let indent: usize = widths[..column].iter().map(|w| w + 2).sum();
            writeln!(f, "{number:>4}  {:indent$}{text}", "")
        };
        write!(f, "step")?;
        for (name, &width) in self.columns.iter().zip(&widths) {
            write!(f, "  {name:width$}")?;
        }
        writeln!(f)?;
        let mut hidden = 0;
        for (at, step) in self.steps.iter().enumerate() {
            if !shown(&step) {
                hidden += 1;
                continue;
            }
            if hidden > 0 {
                row(f, "...", 0, &format!("({hidden} other steps)"))?;
                hidden = 0;
            }
            for (line, text) in wrapped(&step.text).iter().enumerate() {
                let number = if line == 0 { (at + 1).to_string() } else { String::new() };
                row(f, &number, step.column, text)?;
            }
        }
        Ok(())
    }
}

/// Lines of at most [`WIDTH`] characters, if words allow.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("  {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}
