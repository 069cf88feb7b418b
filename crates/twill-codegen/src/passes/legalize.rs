//! Refuses kernels that no later pass lowers.
//!
//! Before: nothing. After: every operation at the kernel's top level is one that the passes know, and no load must see what the
//! kernel itself has stored: groups load ahead, and nothing orders the two. Different arguments are taken to be different memory.

use crate::builder::bases::{Base, bases, may_meet};
use crate::builder::carried::begin_differently;
use crate::builder::early_returns::is_early_return;
use crate::builder::kernel::KernelBuilder;
use crate::error::{Error, ONE_SUB_TILE};
use crate::passes::epilogue::stores::is_store;
use std::collections::BTreeSet;
use twill_graph::{GroupRole, OpId};
use twill_triton::kernel::is_pure;
use twill_triton::mlir::OperationId;
use twill_triton::tile::TileOpKind;

/// Pure operations that make no tile that a group could hold.
const NOT_LOWERED: &[&str] = &["tt.make_tensor_descriptor", "tt.make_tensor_ptr", "tt.advance"];

/// The way out of what no pipelined kernel does.
const IN_ORDER: &str = "use a kernel in order (--schedule in-order)";

/// The pass.
pub(crate) fn run(builder: &mut KernelBuilder<'_>) -> Result<(), Error> {
    check_top_level(builder)?;
    check_critical_section(builder)?;
    check_order(builder)?;
    check_thread_barriers(builder)
}

/// An access of memory: its place in the text, its operation, and what its address may be counted from.
type Access = (usize, OperationId, BTreeSet<Base>);

/// The accesses of memory by operations of these names, in the order of the text.
fn accesses(lowering: &KernelBuilder<'_>, wanted: &dyn Fn(&str) -> bool) -> Vec<Access> {
    let module = lowering.module;
    let access = |(k, id): (usize, OperationId)| {
        let operation = module.operation(id);
        let address = operation.operands.first().copied().filter(|_| wanted(&operation.name))?;
        Some((k, id, bases(module, lowering.kernel.function(), address)))
    };
    module.walk(lowering.kernel.function()).enumerate().filter_map(access).collect()
}

fn is_load(name: &str) -> bool {
    matches!(name, "tt.load" | "tt.descriptor_load")
}

/// A barrier of the program's threads orders accesses of the same memory, of which one writes. It is left out where there are none.
fn check_thread_barriers(lowering: &KernelBuilder<'_>) -> Result<(), Error> {
    let module = lowering.module;
    let section = lowering.kernel.critical_section();
    let is_enclosed = |id: OperationId| section.is_some_and(|section| module.is_nested_in(id, section));
    let is_barrier = |id: &OperationId| module.operation(*id).name == "gpu.barrier" && !is_enclosed(*id);
    let Some(barrier) = module.walk(lowering.kernel.function()).find(is_barrier) else { return Ok(()) };
    let is_atomic =
        |id: OperationId| matches!(module.operation(id).name.as_str(), "tt.atomic_rmw" | "tt.descriptor_reduce");
    let stores = accesses(lowering, &is_store);
    let loads = accesses(lowering, &is_load);
    let is_ordered = stores.iter().enumerate().any(|(k, (_, store, written))| {
        // The same statement in another iteration of a loop that was unrolled is one store, as it was before.
        let place = |id: OperationId| module.operation(id).location.as_ref();
        let is_same = |other: OperationId| place(*store).is_some() && place(other) == place(*store);
        let others = stores
            .iter()
            .skip(k + 1)
            .filter(|(_, other, _)| !(is_same(*other) || is_atomic(*other) && is_atomic(*store)));
        others.chain(&loads).any(|(_, _, other)| may_meet(written, other))
    });
    if is_ordered {
        return Err(lowering.unsupported(
            barrier,
            "a barrier between accesses of the same argument",
            "keep the value in a variable, or use two kernels",
        ));
    }
    Ok(())
}

/// A critical section is executed by the only group that computes, and what is stored before it is stored by the threads of that group.
fn check_critical_section(lowering: &KernelBuilder<'_>) -> Result<(), Error> {
    let Some(section) = lowering.kernel.critical_section() else { return Ok(()) };
    let module = lowering.module;
    let computing = lowering.group_ids().into_iter().filter(|id| lowering.role(*id) == GroupRole::Compute);
    if computing.count() > 1 {
        return Err(lowering.unsupported(section, "a critical section of several warp groups", ONE_SUB_TILE));
    }
    let is_tma = |id| matches!(module.operation(id).name.as_str(), "tt.descriptor_store" | "tt.descriptor_reduce");
    let own = lowering.first_compute_group();
    let stores_elsewhere = lowering.loops.iter().any(|l| {
        let stores = |op: &OpId| {
            let kind = l.tile_operation(*op).map(|tile| &tile.kind);
            matches!(kind, Some(TileOpKind::Store(_) | TileOpKind::AtomicReduce(_))) && l.group(*op) != own
        };
        l.problem.graph().op_ids().any(|op| stores(&op))
    });
    let refused = [
        (
            lowering.options.persistent,
            "a critical section of a persistent CTA's tile",
            "give each tile a CTA of its own (--persistent off)",
        ),
        (
            lowering.programs.is_some(),
            "a critical section of programs that share a CTA",
            "let each have a CTA of its own (without --cta-coarsening)",
        ),
        (lowering.has_tensor_memory(), "a critical section after MMAs in tensor memory", IN_ORDER),
        (module.walk(lowering.kernel.function()).any(is_tma), "a critical section after stores by TMA", IN_ORDER),
        (stores_elsewhere, "a critical section after stores of another warp group", IN_ORDER),
    ];
    match refused.into_iter().find(|(holds, ..)| *holds) {
        Some((_, what, way_out)) => Err(lowering.unsupported(section, what, way_out)),
        None => Ok(()),
    }
}

/// Refuses loads after stores to the same argument, in the text or around a loop; loads of numbers also before them, since each
/// group loads a number when it needs it.
fn check_order(lowering: &KernelBuilder<'_>) -> Result<(), Error> {
    let module = lowering.module;
    let stores = accesses(lowering, &is_store);
    let section = lowering.kernel.critical_section();
    for (place, id, read) in accesses(lowering, &is_load) {
        // One group executes it after its stores.
        if section.is_some_and(|section| module.is_nested_in(id, section)) {
            continue;
        }
        let block = |id: OperationId| module.operation(id).block;
        let around = |id: OperationId| lowering.loops.iter().position(|l| block(id) == Some(l.parts.body));
        let enclosed = |id: OperationId| {
            let outermost = lowering.enclosing.first().map(|l| l.operation);
            outermost.is_some_and(|outer| module.walk(outer).any(|inner| inner == id))
        };
        let is_number = module.operation(id).results.iter().all(|value| !module.type_of(*value).is_tensor());
        let after = |(stored, store, written): &Access| {
            let repeated = (around(id).is_some() && around(id) == around(*store)) || (enclosed(id) && enclosed(*store));
            may_meet(&read, written) && (is_number || *stored < place || repeated)
        };
        if stores.iter().any(after) {
            return Err(lowering.unsupported(
                id,
                "a load of what the kernel itself has stored",
                "keep the value in a variable, or use two kernels",
            ));
        }
    }
    Ok(())
}

/// What loops around the pipelined ones exclude.
fn check_enclosing(lowering: &KernelBuilder<'_>) -> Result<(), Error> {
    let refused = [
        (lowering.options.persistent, "a loop around the pipelined one in a persistent CTA", "use --persistent off"),
        (
            lowering.programs.is_some(),
            "a loop around the pipelined one of programs that share a CTA",
            "let each have a CTA of its own (without --cta-coarsening)",
        ),
        (
            lowering.has_tensor_memory(),
            "a loop around the pipelined one, whose MMAs write tensor memory",
            "let the grid, or the persistent tile scheduler (--persistent), go over the tiles",
        ),
    ];
    for head in lowering.enclosing.iter().filter_map(|l| l.head()) {
        let stores = |id: &&OperationId| is_store(&lowering.module.operation(**id).name);
        if let Some(store) = lowering.module.block(head).operations.iter().find(stores) {
            return Err(lowering.unsupported(*store, "a store in a loop's condition", "store in its body"));
        }
    }
    match refused.into_iter().find(|(holds, ..)| *holds) {
        Some((_, what, way_out)) => Err(lowering.unsupported(lowering.enclosing[0].operation, what, way_out)),
        None => Ok(()),
    }
}

/// Nothing at the kernel's top level may be left out silently.
fn check_top_level(lowering: &KernelBuilder<'_>) -> Result<(), Error> {
    if lowering.programs.is_some_and(|(_, axis)| axis != 0) {
        return Err(lowering.unsupported(
            lowering.kernel.function(),
            "programs that share a CTA along another axis than the first",
            "let them follow each other along x (--coarsening-axis x)",
        ));
    }
    if !lowering.enclosing.is_empty() {
        check_enclosing(lowering)?;
    }
    let heads = lowering.enclosing.iter().filter_map(|l| l.head());
    let blocks: Vec<_> = lowering.blocks().into_iter().chain(heads).collect();
    for id in blocks.iter().flat_map(|block| &lowering.module.block(*block).operations) {
        let operation = lowering.module.operation(*id);
        let loops = lowering.loops.iter().map(|l| l.parts.operation);
        let scheduled = loops.chain(lowering.enclosing.iter().map(|l| l.operation)).any(|l| l == *id);
        let name = operation.name.as_str();
        let known = scheduled || lowering.is_transcribed(*id);
        if !operation.regions.is_empty() && !known && !is_pure(operation) {
            return Err(lowering.unsupported(
                *id,
                "branches and other loops next to the pipelined ones",
                "make the pipelined loops loops of the kernel's top level",
            ));
        }
        let known = known
            || is_store(name)
            || is_early_return(name)
            || is_pure(operation) && !NOT_LOWERED.contains(&name)
            || matches!(
                name,
                "tt.descriptor_load"
                    | "tt.load"
                    | "tt.make_tensor_descriptor"
                    | "tt.return"
                    | "scf.yield"
                    | "scf.condition"
                    | "llvm.intr.assume"
                    | "gpu.barrier"
            );
        if !known {
            return Err(lowering.unsupported(
                *id,
                format!("`{name}`"),
                "move it out of the kernel, or schedule without generating code",
            ));
        }
    }
    for l in &lowering.loops {
        let of = lowering.module.operation(l.parts.operation).block;
        if of != Some(lowering.block) {
            return Err(lowering.unsupported(
                l.parts.operation,
                "a pipelined loop inside another loop or branch",
                "let the grid, or the persistent tile scheduler (--persistent), go over the tiles",
            ));
        }
        if begin_differently(lowering.module, l) {
            return Err(lowering.unsupported(
                l.parts.operation,
                "two carried values that become the same and begin differently",
                "carry one of them, and choose by the loop's index in the first iteration (tl.where)",
            ));
        }
    }
    Ok(())
}
