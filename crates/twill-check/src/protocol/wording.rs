//! Words for the numbers of an unrolled system.

use super::fault::{Fault, Use};
use super::machine::{Machine, State, Transition};
use super::unrolled::{ProtocolOp, SlotAccess, UnrolledSystem};

impl UnrolledSystem<'_> {
    pub(super) fn process_name(&self, p: usize) -> &str {
        &self.system.processes[p].name
    }

    pub(super) fn slot_name(&self, slot: usize) -> String {
        let (buffer, at) = self.slots[slot];
        let buffer = &self.system.buffers[buffer.index()];
        if buffer.slots == 1 { buffer.name.clone() } else { format!("{}[{at}]", buffer.name) }
    }

    pub(super) fn barrier_name(&self, barrier: usize) -> String {
        let (array, at) = self.barriers[barrier];
        let array = &self.system.barriers[array.index()];
        if array.slots == 1 { array.name.clone() } else { format!("{}[{at}]", array.name) }
    }

    fn value_name(&self, value: u16) -> String {
        let Some(value) = usize::from(value).checked_sub(1).and_then(|at| self.values.get(at)) else {
            return "nothing".into();
        };
        let tile = if self.case.tiles.len() > 1 { format!(" t{}", value.tile) } else { String::new() };
        format!("v{} i{}{tile}", value.value, value.iteration)
    }

    fn accesses(&self, accesses: &[SlotAccess]) -> String {
        let each = |access: &SlotAccess| format!("{}={}", self.slot_name(access.slot), self.value_name(access.value));
        accesses.iter().map(each).collect::<Vec<_>>().join(" ")
    }

    fn slot_names(&self, accesses: &[SlotAccess]) -> String {
        accesses.iter().map(|access| self.slot_name(access.slot)).collect::<Vec<_>>().join(" ")
    }

    /// The name of an operation: `slot=value` is a slot with the value that is stored or expected there.
    pub(super) fn op_name(&self, op: &ProtocolOp) -> String {
        match op {
            ProtocolOp::Wait { barrier, target: 0 } => format!("wait {} fresh", self.barrier_name(*barrier)),
            ProtocolOp::Wait { barrier, target } => {
                format!("wait {} phase {}", self.barrier_name(*barrier), target - 1)
            }
            ProtocolOp::Arrive { barrier } => format!("arrive {}", self.barrier_name(*barrier)),
            ProtocolOp::Load { writes, .. } => format!("load {}", self.accesses(&[*writes])),
            ProtocolOp::Mma { reads, writes, .. } => {
                let to = if writes.is_empty() { String::new() } else { format!(" to {}", self.accesses(writes)) };
                format!("MMA {}{to}", self.accesses(reads))
            }
            ProtocolOp::MmaWait(most) => format!("wait MMAs <= {most}"),
            ProtocolOp::Write(access) => format!("write {}", self.accesses(&[*access])),
            ProtocolOp::Read(access) => format!("read {}", self.accesses(&[*access])),
            ProtocolOp::Fence => "fence".into(),
            ProtocolOp::Store(access) => format!("store {}", self.accesses(&[*access])),
            ProtocolOp::StoreWait(most) => format!("wait stores <= {most}"),
            ProtocolOp::NamedBarrierSync(named) => format!("sync {}", self.system.named_barriers[*named].name),
            ProtocolOp::NamedBarrierArrive(named) => format!("arrive {}", self.system.named_barriers[*named].name),
        }
    }

    /// Barriers on which an operation arrives sooner or later.
    pub(super) fn signals<'b>(&self, op: &'b ProtocolOp) -> &'b [usize] {
        match op {
            ProtocolOp::Arrive { barrier } | ProtocolOp::Load { barrier, .. } => std::slice::from_ref(barrier),
            ProtocolOp::Mma { signals, .. } => signals,
            _ => &[],
        }
    }

    fn use_name(&self, by: Use) -> String {
        let (what, p) = match by {
            Use::Load(p) => ("a load", p),
            Use::MmaReads(p) | Use::MmaWrites(p) => ("an MMA", p),
            Use::Store(p) => ("a store", p),
        };
        format!("{what} of {}", self.process_name(p))
    }

    /// The fault, in a sentence.
    pub(super) fn fault_name(&self, machine: &Machine<'_>, state: &State, fault: &Fault) -> String {
        let verb = |write: bool| if write { "writes" } else { "reads" };
        match fault {
            Fault::Deadlock { processes } => {
                let stands = |&p: &usize| {
                    let op = machine.next(state, p).map_or_else(String::new, |a| self.op_name(a));
                    format!("{} at `{op}`{}", self.process_name(p), self.progress(machine, state, p))
                };
                let all: Vec<String> = processes.iter().map(stands).collect();
                format!("deadlock: {}", all.join("; "))
            }
            Fault::WrongValue { process, slot, wanted, found } => format!(
                "{} reads {} for {} and finds {}",
                self.process_name(*process),
                self.slot_name(*slot),
                self.value_name(*wanted),
                self.value_name(*found)
            ),
            Fault::InUse { process, slot, write, by } => format!(
                "{} {} {} while {} still {} it",
                self.process_name(*process),
                verb(*write),
                self.slot_name(*slot),
                self.use_name(*by),
                verb(matches!(by, Use::Load(_) | Use::MmaWrites(_)))
            ),
            Fault::Race { process, write, other, other_writes, slot } => format!(
                "{} {} {} and {} {} it, in no order",
                self.process_name(*process),
                verb(*write),
                self.slot_name(*slot),
                self.process_name(*other),
                verb(*other_writes)
            ),
            Fault::Unfenced { process, slot, writer } => format!(
                "an asynchronous unit reads {} for {} without a fence of {}, whose threads wrote it",
                self.slot_name(*slot),
                self.process_name(*process),
                self.process_name(*writer)
            ),
            Fault::UnfencedRead { process, slot, reader } => format!(
                "an asynchronous unit writes {} for {} without a fence of {}, whose threads read it",
                self.slot_name(*slot),
                self.process_name(*process),
                self.process_name(*reader)
            ),
            Fault::PhaseSlip { process, barrier, target, completed } => format!(
                "{} waits for {} of {}, which has completed {completed} phase{}: the parity is that of another phase",
                self.process_name(*process),
                target.checked_sub(1).map_or_else(|| "the start".to_owned(), |phase| format!("phase {phase}")),
                self.barrier_name(*barrier),
                if *completed == 1 { "" } else { "s" }
            ),
            Fault::TwiceAtNamed { process, named } => format!(
                "{} arrives at {} twice before it opens",
                self.process_name(*process),
                self.system.named_barriers[*named].name
            ),
            Fault::Unfinished { by } => format!("all warp groups end while {} is under way", self.use_name(*by)),
        }
    }

    /// The progress of a process's wait.
    fn progress(&self, machine: &Machine<'_>, state: &State, p: usize) -> String {
        match machine.next(state, p) {
            Some(&ProtocolOp::Wait { barrier, .. }) => format!(
                " ({} of {} arrivals in phase {})",
                machine.pending(state, barrier),
                self.arrivals(barrier),
                machine.completed(state, barrier)
            ),
            Some(&ProtocolOp::NamedBarrierSync(named)) => format!(
                " ({} of {} arrived)",
                machine.arrived(state, named).count_ones(),
                self.system.named_barriers[named].participants
            ),
            _ => String::new(),
        }
    }

    /// The process that takes a step, and the step's name; the process of asynchronous units is `None`.
    pub(super) fn step_name(&self, machine: &Machine<'_>, state: &State, step: Transition) -> (Option<usize>, String) {
        let Some((p, op)) = self.op_of(machine, state, step) else { return (None, String::new()) };
        let name = match step {
            Transition::Do(p) => return (Some(p), self.op_name(op)),
            Transition::FinishLoad(slot) => format!("{} is there", self.slot_name(slot)),
            Transition::FinishMma(_) => format!("MMA {} ends", self.slot_names(op.reads())),
            Transition::FinishStore(_) => format!("store {} has read", self.slot_names(op.reads())),
        };
        let signals: Vec<String> = self.signals(op).iter().map(|&b| self.barrier_name(b)).collect();
        let arrives = if signals.is_empty() { String::new() } else { format!(", arrive {}", signals.join(" ")) };
        (None, format!("{}: {name}{arrives}", self.process_name(p)))
    }

    /// Whose operation a step begins or ends.
    pub(super) fn op_of<'b>(
        &'b self,
        machine: &Machine<'_>,
        state: &State,
        step: Transition,
    ) -> Option<(usize, &'b ProtocolOp)> {
        let (p, at) = match step {
            Transition::Do(p) => (p, machine.position(state, p)),
            Transition::FinishLoad(slot) => machine.loading(state, slot)?,
            Transition::FinishMma(p) => (p, *machine.mmas_in_flight(state, p).first()?),
            Transition::FinishStore(p) => (p, *machine.storing(state, p).first()?),
        };
        self.ops[p].get(at).map(|op| (p, op))
    }
}
