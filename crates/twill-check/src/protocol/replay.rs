//! From the steps to a fault to the counterexample that people read.

use super::cases::Named;
use super::counterexample::{Counterexample, LAST, Moment};
use super::fault::Fault;
use super::machine::{Machine, State, Transition};
use super::unrolled::ProtocolOp;

/// The steps from the start to a fault, as a table.
pub(super) fn counterexample(
    machine: &Machine<'_>,
    steps: &[Transition],
    fault: &Fault,
    shortest: bool,
) -> Counterexample {
    let unrolled = machine.unrolled;
    let mut state = machine.start();
    let mut moments = Vec::new();
    let mut ops = Vec::new();
    for &step in steps {
        let (column, text) = unrolled.step_name(machine, &state, step);
        ops.push(unrolled.op_of(machine, &state, step));
        moments.push(Moment { column: column.unwrap_or(unrolled.ops.len()), text, matters: false });
        // The last step is the one that fails.
        let _ = machine.take(&mut state, step);
    }
    let concerns = Concern::of(machine, &state, fault, &ops);
    let touched = |at: &usize| ops[*at].is_some_and(|(_, op)| concerns.touched_by(op));
    let matter: Vec<usize> = (0..steps.len()).rev().filter(touched).take(2 * LAST).collect();
    for at in matter.into_iter().chain(steps.len().saturating_sub(LAST)..steps.len()) {
        moments[at].matters = true;
    }
    let names = unrolled.system.processes.iter().map(|p| p.name.clone());
    Counterexample {
        kind: fault.kind(),
        fault: unrolled.fault_name(machine, &state, fault),
        case: Named(unrolled.system, unrolled.case).to_string(),
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
    fn of(machine: &Machine<'_>, end: &State, fault: &Fault, ops: &[Option<(usize, &ProtocolOp)>]) -> Concern {
        let mut concern = Concern::default();
        match fault {
            Fault::WrongValue { slot, .. }
            | Fault::InUse { slot, .. }
            | Fault::Race { slot, .. }
            | Fault::Unfenced { slot, .. }
            | Fault::UnfencedRead { slot, .. } => concern.slot = Some(*slot),
            Fault::PhaseSlip { barrier, .. } => concern.barriers.push(*barrier),
            Fault::TwiceAtNamed { named, .. } => concern.named.push(*named),
            Fault::Deadlock { processes } => {
                for &p in processes {
                    match machine.next(end, p) {
                        Some(ProtocolOp::Wait { barrier, .. }) => concern.barriers.push(*barrier),
                        Some(ProtocolOp::NamedBarrierSync(named)) => concern.named.push(*named),
                        _ => {}
                    }
                }
            }
            Fault::Unfinished { .. } => {}
        }
        // The earlier waits of the processes that touch the slot.
        let mut waited = vec![None; machine.unrolled.ops.len()];
        for (p, op) in ops.iter().copied().flatten() {
            match op {
                ProtocolOp::Wait { barrier, .. } => waited[p] = Some(*barrier),
                _ if concern.at_slot(op) => concern.barriers.extend(waited[p].take()),
                _ => {}
            }
        }
        concern
    }

    fn at_slot(&self, op: &ProtocolOp) -> bool {
        op.reads().iter().chain(op.writes()).any(|access| self.slot == Some(access.slot))
    }

    fn touched_by(&self, op: &ProtocolOp) -> bool {
        let barrier = match op {
            ProtocolOp::Wait { barrier, .. } | ProtocolOp::Arrive { barrier } => self.barriers.contains(barrier),
            ProtocolOp::NamedBarrierSync(named) | ProtocolOp::NamedBarrierArrive(named) => self.named.contains(named),
            ProtocolOp::Load { barrier, .. } => self.barriers.contains(barrier),
            ProtocolOp::Mma { signals, .. } => signals.iter().any(|b| self.barriers.contains(b)),
            _ => false,
        };
        barrier || self.at_slot(op)
    }
}
