//! Whether what is needed is at hand, and if not, why.

use super::data::{Fit, Holder, Misfit, Need, Resource, Verdict};
use super::needs;
use crate::Posed;
use crate::compile::CompileOptions;
use twill_emit::kernel::program::{Buffer, KernelProgram};
use twill_graph::{ProblemError, RejectionReason, Resources};

/// What is kept during the whole loop does not fit by itself.
pub(super) fn reserved(fit: &mut Fit, error: &ProblemError) {
    fit.verdict = Verdict::DoesNotFit;
    if let ProblemError::Reserved { what, needed, available, .. } = error {
        let resource = memory(what);
        fit.needs.extend(resource.map(|r| needs::need(r, *needed, *available, Vec::new())));
        let reason = format!("what is loaded before the loop alone needs {needed} {what}, and there are {available}");
        fit.misfit = Some(Misfit { resource, culprit: None, reason, way_out: way_out(resource).into() });
    }
}

fn memory(words: &str) -> Option<Resource> {
    let kinds = [
        ("shared memory", Resource::SharedMemory),
        ("tensor memory", Resource::TensorMemory),
        ("register", Resource::Registers),
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
pub(super) fn of_program(fit: &mut Fit, program: &KernelProgram, options: &CompileOptions, resources: &Resources) {
    let Some(short) = fit.needs.iter().find(|need| need.required > need.available) else {
        fit.verdict = Verdict::Fits;
        return;
    };
    let of_all = match short.resource {
        Resource::SharedMemory => inevitable_bytes(program, options) > resources.shared_memory.0,
        _ => false,
    };
    fit.verdict = if of_all { Verdict::DoesNotFit } else { Verdict::Unknown };
    fit.misfit = Some(blame(short, of_all));
}

/// Bytes that the kernel takes with any schedule: a slot of each buffer or what is asked for, without what passes between
/// groups.
fn inevitable_bytes(program: &KernelProgram, options: &CompileOptions) -> u64 {
    let asked = options.ring_depth.unwrap_or(1).min(options.handover_depth.unwrap_or(1));
    let bytes = |buffer: &Buffer| {
        let slots = u64::from(buffer.slots.max(1));
        buffer.shared_bytes() / slots * slots.min(u64::from(asked.max(1)))
    };
    let handed_over = |buffer: &&Buffer| buffer.name.contains("_handoff") || buffer.name.contains("_for_");
    program.buffers.iter().filter(|buffer| !handed_over(buffer)).map(bytes).sum()
}

fn blame(short: &Need, proved: bool) -> Misfit {
    let Need { resource, required, available, largest } = short;
    let unit = resource.unit();
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

/// What can be said without a schedule that fits.
pub(super) fn without_schedule(fit: &mut Fit, asked: &[Posed], resources: &Resources) {
    if let Some((posed, reason)) = asked.iter().find_map(|p| Some((p, twill_exact::impossible(&p.problem)?))) {
        fit.verdict = Verdict::DoesNotFit;
        let misfit = of_rejection(posed, &reason);
        if let (Some(resource), RejectionReason::Storage { required, available, .. }) = (misfit.resource, &reason)
            && fit.need(resource).is_none()
        {
            fit.needs.push(needs::need(resource, *required, *available, holders(posed, &reason)));
        }
        fit.misfit = Some(misfit);
    } else if fit.misfit.is_none() {
        let values = needs::registers(asked, resources, |_, _| true);
        let available = u64::from(resources.registers.maximum_per_thread);
        let culprit = values.iter().max_by_key(|holder| holder.amount).map(|holder| holder.name.clone());
        let reason =
            "one iteration after another breaks a constraint at every interval, most likely for want of registers";
        fit.misfit = Some(Misfit {
            resource: Some(Resource::Registers),
            culprit,
            reason: format!("{reason} ({available} a thread at most)"),
            way_out: "twill schedule searches, and proves it if there is none".into(),
        });
    }
}

fn holders(posed: &Posed, reason: &RejectionReason) -> Vec<Holder> {
    let RejectionReason::Storage { values, .. } = reason else { return Vec::new() };
    let graph = posed.problem.graph();
    let named = graph.operations().iter().filter(|op| values.contains(&op.name));
    let amount = |storage| match storage {
        twill_graph::Storage::None => 0,
        twill_graph::Storage::Registers(words) => words.0,
        twill_graph::Storage::Shared(bytes) => bytes.0,
        twill_graph::Storage::Tensor(columns) => columns.0,
    };
    named
        .map(|op| Holder { name: op.name.clone(), amount: amount(op.storage), slots: 1, source: op.source.clone() })
        .collect()
}

fn of_rejection(posed: &Posed, reason: &RejectionReason) -> Misfit {
    let (resource, culprit, text) = match reason {
        RejectionReason::Storage { memory: what, required, available, .. } => {
            let holders = holders(posed, reason);
            let largest = holders.iter().max_by_key(|holder| holder.amount);
            let most = largest.map_or(String::new(), |holder| format!("; most for {holder}"));
            let text = format!("{what}: at least {required} needed at any interval, {available} at hand{most}");
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
        | RejectionReason::Siblings { .. } => (None, None, "there is no schedule".to_owned()),
    };
    Misfit { resource, culprit, reason: text, way_out: way_out(resource).into() }
}
