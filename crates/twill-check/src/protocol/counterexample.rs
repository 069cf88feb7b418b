//! Counterexamples as tables.

use super::cases::Named;
use super::fault::{Fault, FaultKind};
use super::machine::{Machine, State, Step};
use super::program::Action;
use std::fmt;

/// One step of a [`Counterexample`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Its column; asynchronous units have the last one.
    pub column: usize,
    /// The action.
    pub text: String,
    /// It is among the last, or among the last that touch the slot or barrier at fault.
    pub matters: bool,
}

/// A way from the start to something that must not happen. [`Display`](fmt::Display) makes a table, one row a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// The fault.
    pub kind: FaultKind,
    /// The same in a sentence.
    pub fault: String,
    /// Trip counts.
    pub case: String,
    /// The names of the warp groups, and `asynchronous`.
    pub columns: Vec<String>,
    /// The steps; the last one leads to the fault.
    pub steps: Vec<Moment>,
    /// No fault takes fewer steps with these trip counts, satisfied waits for MMAs and stores and arrivals not counted:
    /// all shorter ways were tried. Otherwise, no step of this one can be left out.
    pub shortest: bool,
}

/// This many last steps always matter.
const LAST: usize = 6;

impl Counterexample {
    pub(super) fn new(machine: &Machine<'_>, steps: &[Step], fault: &Fault, shortest: bool) -> Counterexample {
        let program = machine.program;
        let mut state = machine.start();
        let mut moments = Vec::new();
        let mut actions = Vec::new();
        for &step in steps {
            let (column, text) = program.step_name(machine, &state, step);
            actions.push(program.action_of(machine, &state, step));
            moments.push(Moment { column: column.unwrap_or(program.actions.len()), text, matters: false });
            // The last step is the one that fails.
            let _ = machine.take(&mut state, step);
        }
        let concerns = Concern::of(machine, &state, fault, &actions);
        let touched = |at: &usize| actions[*at].is_some_and(|(_, action)| concerns.touched_by(action));
        let matter: Vec<usize> = (0..steps.len()).rev().filter(touched).take(2 * LAST).collect();
        for at in matter.into_iter().chain(steps.len().saturating_sub(LAST)..steps.len()) {
            moments[at].matters = true;
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
    fn of(machine: &Machine<'_>, end: &State, fault: &Fault, actions: &[Option<(usize, &Action)>]) -> Concern {
        let mut concern = Concern::default();
        match fault {
            Fault::WrongValue { slot, .. }
            | Fault::InUse { slot, .. }
            | Fault::Race { slot, .. }
            | Fault::Unfenced { slot, .. } => concern.slot = Some(*slot),
            Fault::PhaseSlip { barrier, .. } => concern.barriers.push(*barrier),
            Fault::TwiceAtNamed { named, .. } => concern.named.push(*named),
            Fault::Deadlock { processes } => {
                for &p in processes {
                    match machine.next(end, p) {
                        Some(Action::Wait { barrier, .. }) => concern.barriers.push(*barrier),
                        Some(Action::NamedBarrierSync(named)) => concern.named.push(*named),
                        _ => {}
                    }
                }
            }
            Fault::Unfinished { .. } => {}
        }
        // The earlier waits of the processes that touch the slot.
        let mut waited = vec![None; machine.program.actions.len()];
        for (p, action) in actions.iter().copied().flatten() {
            match action {
                Action::Wait { barrier, .. } => waited[p] = Some(*barrier),
                _ if concern.at_slot(action) => concern.barriers.extend(waited[p].take()),
                _ => {}
            }
        }
        concern
    }

    fn at_slot(&self, action: &Action) -> bool {
        action.reads().iter().chain(action.writes()).any(|place| self.slot == Some(place.slot))
    }

    fn touched_by(&self, action: &Action) -> bool {
        let barrier = match action {
            Action::Wait { barrier, .. } | Action::Arrive { barrier } => self.barriers.contains(barrier),
            Action::NamedBarrierSync(named) | Action::NamedBarrierArrive(named) => self.named.contains(named),
            Action::Load { barrier, .. } => self.barriers.contains(barrier),
            Action::Mma { signals, .. } => signals.iter().any(|b| self.barriers.contains(b)),
            _ => false,
        };
        barrier || self.at_slot(action)
    }
}

/// Columns are at most so wide; longer texts take several lines.
const WIDTH: usize = 28;

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.fault)?;
        let how = if self.shortest { "shortest way" } else { "a way, not the shortest" };
        writeln!(
            f,
            "with {}; {how}, {} step{}:",
            self.case,
            self.steps.len(),
            if self.steps.len() == 1 { "" } else { "s" }
        )?;
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
        let names = self.columns.iter().zip(&widths).map(|(name, &width)| format!("  {name:width$}"));
        writeln!(f, "step{}", names.collect::<String>().trim_end())?;
        let mut hidden = 0;
        for (at, step) in self.steps.iter().enumerate() {
            if !shown(&step) {
                hidden += 1;
                continue;
            }
            if hidden > 0 {
                row(f, "...", 0, &format!("({hidden} other{})", if hidden == 1 { "" } else { "s" }))?;
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
