//! From the steps to a fault to the counterexample that people read.

use super::cases::Named;
use super::counterexample::{Counterexample, LAST, Moment};
use super::fault::Fault;
use super::machine::{Machine, State, Step};
use super::program::Action;

/// The steps from the start to a fault, as a table.
pub(super) fn counterexample(machine: &Machine<'_>, steps: &[Step], fault: &Fault, shortest: bool) -> Counterexample {
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
        action.reads().iter().chain(action.writes()).any(|access| self.slot == Some(access.slot))
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
