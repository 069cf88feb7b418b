//! Whether what is needed is at hand, and if not, why.

use super::data::{Fit, Holder, Misfit, Need, Resource, Verdict};
use super::needs;
use crate::LoopProblem;
use twill_check::{Holders, Rejected, Violation};
use twill_codegen::ir::{Buffer, WarpProgram};
use twill_graph::{ProblemError, RejectionReason, Resources, grouped};

/// What is kept during the whole loop does not fit by itself.
pub(super) fn reserved(fit: &mut Fit, error: &ProblemError) {
    fit.verdict = Verdict::DoesNotFit;
    if let ProblemError::Reserved { what, needed, available, .. } = error {
        let resource = memory(what);
        fit.needs.extend(resource.map(|r| needs::need(r, *needed, *available, Vec::new())));
        let reason = format!(
            "what is loaded before the loop alone needs {} {what}, and there are {}",
            grouped(*needed),
            grouped(*available)
        );
        fit.misfit = Some(Misfit { resource, culprit: None, reason, way_out: way_out(resource).into() });
    }
}

fn memory(words: &str) -> Option<Resource> {
    let kinds = [
        ("shared memory", Resource::SharedMemory),
        ("tensor memory", Resource::TensorMemory),
        ("registers a thread", Resource::Registers),
        ("registers of all", Resource::RegisterFile),
    ];
    kinds.into_iter().find(|(name, _)| words.contains(name)).map(|(_, resource)| resource)
}

fn way_out(resource: Option<Resource>) -> &'static str {
    match resource {
        Some(Resource::SharedMemory) => {
            "choose smaller tiles: a smaller block along the loop halves rings, fewer rows or columns the rest"
        }
        Some(Resource::TensorMemory) => {
            "choose smaller tiles, or let left operands stand in shared memory (--machine b200-left-shared)"
        }
        Some(Resource::Registers | Resource::RegisterFile) => {
            "choose tiles of fewer columns, or cut the rows into more sub-tiles for more warp groups (--sub-tiles)"
        }
        Some(Resource::Warps) => "let fewer warp groups compute (--compute-groups)",
        None => "twill schedule and twill explain say more",
    }
}

/// Whether the kernel that takes least fits; if not, whether every kernel takes as much.
pub(super) fn of_program(fit: &mut Fit, program: &WarpProgram, resources: &Resources) {
    let Some(short) = fit.needs.iter().find(|need| need.required > need.available) else {
        fit.verdict = Verdict::Fits;
        return;
    };
    let of_all = match short.resource {
        Resource::SharedMemory => inevitable_bytes(program) > resources.shared_memory.0,
        _ => false,
    };
    fit.verdict = if of_all { Verdict::DoesNotFit } else { Verdict::Unknown };
    fit.misfit = Some(blame(short, of_all));
}

/// Bytes that the kernel takes with any schedule: of each buffer as many slots as are asked for, at least one, without what
/// passes between groups.
fn inevitable_bytes(program: &WarpProgram) -> u64 {
    let bytes = |buffer: &Buffer| {
        let slots = buffer.slots.max(1);
        buffer.shared_bytes() / u64::from(slots) * u64::from(slots.min(buffer.least_slots.max(1)))
    };
    let handed_off = |buffer: &&Buffer| buffer.name.contains("_handoff") || buffer.name.contains("_for_");
    program.buffers.iter().filter(|buffer| !handed_off(buffer)).map(bytes).sum()
}

fn blame(short: &Need, proved: bool) -> Misfit {
    let Need { resource, required, available, largest } = short;
    let (unit, required, available) = (resource.unit(), grouped(*required), grouped(*available));
    let least = if proved { "at least " } else { "" };
    let reason = match largest.first() {
        Some(largest) => {
            format!("{resource}: {least}{required} {unit} needed, {available} at hand; most for {largest}")
        }
        None => format!("{resource}: {least}{required} {unit} needed, {available} at hand"),
    };
    let culprit = largest.first().map(|holder| holder.name.clone());
    Misfit { resource: Some(*resource), culprit, reason, way_out: way_out(Some(*resource)).into() }
}

/// No schedule exists.
pub(super) fn impossible(fit: &mut Fit, one: &LoopProblem, reason: &RejectionReason) {
    fit.verdict = Verdict::DoesNotFit;
    let reason = &in_registers(one, reason);
    let misfit = of_rejection(one, reason);
    if let (Some(resource), RejectionReason::Storage { required, available, .. }) = (misfit.resource, reason) {
        fit.needs.push(needs::need(resource, *required, *available, holders(one, reason)));
    }
    fit.misfit = Some(misfit);
}

/// The schedule that takes least breaks a constraint, which proves nothing of others.
pub(super) fn broken(fit: &mut Fit, problems: &[LoopProblem], rejected: Option<&Rejected>, resources: &Resources) {
    let storage = rejected.and_then(|r| r.violations.iter().find_map(|v| of_violation(v, resources)));
    let (resource, culprit, reason) = match (storage, rejected.and_then(|r| r.violations.first())) {
        (Some((need, name)), _) => {
            let unit = need.resource.unit();
            let reason = format!(
                "{}: {} {unit} needed, {} at hand",
                need.resource,
                grouped(need.required),
                grouped(need.available)
            );
            let most = name.as_ref().map_or(String::new(), |name| format!("; most for {name}"));
            let resource = need.resource;
            fit.needs.push(need);
            (Some(resource), name, reason + &most)
        }
        (None, Some(violation)) => (None, None, violation.to_string()),
        (None, None) => (None, None, "no such schedule was found".to_owned()),
    };
    let source = culprit.as_ref().and_then(|name| {
        let operations = problems.iter().flat_map(|p| p.problem.graph().operations());
        operations.into_iter().find(|op| op.name == *name)?.source.as_ref()
    });
    let line = source.map_or(String::new(), |source| format!(" (line {})", source.line));
    let reason = format!("one iteration after another does not fit: {reason}{line}");
    let way_out = "twill schedule searches, and proves it if there is no other".into();
    fit.misfit = Some(Misfit { resource, culprit, reason, way_out });
}

/// What is short, and for which value most of it.
fn of_violation(violation: &Violation, resources: &Resources) -> Option<(Need, Option<String>)> {
    let largest = |holders: &Holders| holders.0.first().map(|h| h.operation.clone());
    let need = |resource, required, available| needs::need(resource, required, available, Vec::new());
    let each = |words: u64| a_thread(words, resources);
    match violation {
        Violation::Registers { required, available, holders, .. } => {
            Some((need(Resource::Registers, each(*required), each(*available)), largest(holders)))
        }
        Violation::RegisterFile { required, available } => {
            Some((need(Resource::RegisterFile, *required, *available), None))
        }
        Violation::SharedMemory { required, available, holders, .. } => {
            Some((need(Resource::SharedMemory, *required, *available), largest(holders)))
        }
        Violation::TensorMemory { required, available, holders, .. } => {
            Some((need(Resource::TensorMemory, *required, *available), largest(holders)))
        }
        _ => None,
    }
}

/// Registers a thread of a compute group that holds this many words of values.
fn a_thread(words: u64, resources: &Resources) -> u64 {
    words.div_ceil(threads(resources)) + u64::from(resources.registers.reserve_per_thread)
}

/// Threads of a compute group.
fn threads(resources: &Resources) -> u64 {
    (32 * u64::from(resources.compute_groups.warps)).max(1)
}

/// The same reason, with registers a thread in the place of the words of one warp group, as everywhere else here.
fn in_registers(one: &LoopProblem, reason: &RejectionReason) -> RejectionReason {
    let mut reason = reason.clone();
    if let RejectionReason::Storage { memory, required, available, .. } = &mut reason {
        let resources = one.problem.resources();
        match memory.as_str() {
            "register words of one warp group" => {
                *memory = "registers a thread".into();
                (*required, *available) = (a_thread(*required, resources), a_thread(*available, resources));
            }
            "register words of all warp groups" => *memory = "registers of all warp groups for values".into(),
            _ => {}
        }
    }
    reason
}

fn holders(one: &LoopProblem, reason: &RejectionReason) -> Vec<Holder> {
    let RejectionReason::Storage { memory: what, values, .. } = reason else { return Vec::new() };
    let graph = one.problem.graph();
    let named = graph.operations().iter().filter(|op| values.contains(&op.name));
    let amount = |storage| match storage {
        twill_graph::Storage::None => 0,
        twill_graph::Storage::Registers(words) if memory(what) == Some(Resource::Registers) => {
            words.0.div_ceil(threads(one.problem.resources()))
        }
        twill_graph::Storage::Registers(words) => words.0,
        twill_graph::Storage::Shared(bytes) => bytes.0,
        twill_graph::Storage::Tensor(columns) => columns.0,
    };
    named
        .map(|op| Holder { name: op.name.clone(), amount: amount(op.storage), slots: 1, source: op.source.clone() })
        .collect()
}

fn of_rejection(one: &LoopProblem, reason: &RejectionReason) -> Misfit {
    let (resource, culprit, text) = match reason {
        RejectionReason::Storage { memory: what, required, available, .. } => {
            let holders = holders(one, reason);
            let largest = holders.iter().max_by_key(|holder| holder.amount);
            let most = largest.map_or(String::new(), |holder| format!("; most for {holder}"));
            let text = format!(
                "{what}: at least {} needed at any interval, {} at hand{most}",
                grouped(*required),
                grouped(*available)
            );
            (memory(what), largest.map(|holder| holder.name.clone()), text)
        }
        RejectionReason::NoGroup { operation, why } => {
            (Some(Resource::Warps), Some(operation.clone()), format!("no warp group can run `{operation}`: {why}"))
        }
        RejectionReason::Handoff { from, to, why } => {
            (None, Some(from.clone()), format!("`{from}` cannot be handed to `{to}`: {why}"))
        }
        RejectionReason::SelfConflict { operation, resource } => {
            (None, Some(operation.clone()), format!("`{operation}` meets itself on {resource}"))
        }
        RejectionReason::Throughput { .. }
        | RejectionReason::Search { .. }
        | RejectionReason::Exhausted { .. }
        | RejectionReason::OtherLoops { .. } => (None, None, "there is no schedule".to_owned()),
    };
    Misfit { resource, culprit, reason: text, way_out: way_out(resource).into() }
}
