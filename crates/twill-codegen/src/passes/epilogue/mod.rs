//! What groups do before and after the loops: loads of tiles that loops read whole, stores of results, and giving back what
//! was held.

mod exports;
pub(crate) mod stores;
mod subtiles;
pub(crate) mod tensor_memory;

use crate::builder::enclosing::Scope;
use crate::builder::group::GroupBuilder;
use crate::builder::kernel::KernelBuilder;
use crate::builder::reader::Reader;
use crate::error::Error;
use crate::ir::CursorId;
use crate::ir::ExpressionKind;
use crate::ir::names;
use crate::ir::{MemoryValue, Slot, SlotValue};
use crate::ir::{Node, Note, Op};
use twill_graph::GroupRole;
use twill_graph::narrow;
use twill_triton::mlir::BlockId;

/// The pass: what the groups that compute do after the loops.
///
/// Before: these groups have the code of their loops. After: every store after the loops has a group for each part of it, and what
/// the loops held is released.
pub(crate) fn run(builder: &mut KernelBuilder<'_>) -> Result<(), Error> {
    for number in 0..builder.groups.len() {
        if builder.role(builder.groups[number].id) == GroupRole::Compute {
            let placeholder = builder.new_group(builder.groups[number].id);
            let mut group = std::mem::replace(&mut builder.groups[number], placeholder);
            stores_and_releases(builder, &mut group)?;
            builder.groups[number] = group;
        }
    }
    builder.show_groups();
    Ok(())
}

/// The loads that stand before the loops, for the groups that read them.
pub(crate) fn load_invariant_tiles(lowering: &mut KernelBuilder<'_>, builder: &mut GroupBuilder) -> Result<(), Error> {
    let mut order: Vec<usize> = (0..lowering.invariant_tiles.len()).collect();
    order.sort_by_key(|k| (lowering.invariant_tiles[*k].load.index(), *k));
    for k in order {
        let tile = lowering.invariant_tiles[k].clone();
        let operation = lowering.module.operation(tile.load);
        let name = lowering.program.buffers[tile.buffer.index()].name.trim_end_matches("_buffer").to_owned();
        let cursor = builder.cursor(&name, 1);
        let mut reader = Reader { lowering, group: builder };
        let coordinates = reader.coordinates(&operation.operands[1..], &tile.region, tile.program, None)?;
        let descriptor = reader.lowering.descriptor(operation.operands[0], &tile.region.extents, tile.load)?;
        let line = names::line(reader.lowering.module, tile.load);
        if reader.lowering.repeats() {
            builder.act(Op::MbarrierWait { barrier: tile.empty, at: cursor, previous: true });
        }
        builder.note = Note { line, ..Note::default() };
        let slot = Slot {
            buffer: tile.buffer,
            at: Some(cursor),
            slice: None,
            transposed: false,
            value: SlotValue::outside(MemoryValue::Invariant(narrow(k))),
        };
        builder.act(Op::TmaLoad { descriptor, coordinates, to: slot, full: tile.full });
        builder.act(Op::AdvanceCursor(cursor));
    }
    let mut nodes = std::mem::take(&mut builder.out);
    builder.sections[0].append(&mut nodes);
    Ok(())
}

/// What a computing group does after the loops.
fn stores_and_releases(lowering: &mut KernelBuilder<'_>, builder: &mut GroupBuilder) -> Result<(), Error> {
    (builder.late, builder.ending) = (lowering.has_tensor_memory(), true);
    let mut stores = stores_of(lowering, builder, lowering.block)?;
    // After each enclosing loop, what stands in the block around it.
    for (at, block) in lowering.blocks().into_iter().take(lowering.enclosing.len()).enumerate() {
        builder.scope = Scope::After(at);
        for node in stores_of(lowering, builder, block)? {
            builder.place_around(node);
        }
        builder.scope = Scope::Body;
    }
    Reader { lowering, group: builder }.close_enclosing()?;
    // Who waited until results were read is one of those who say so, or phases might run ahead of it.
    for index in builder.drained.clone() {
        Reader { lowering, group: builder }.wait_for_results(index)?;
        stores.append(&mut builder.out);
    }
    lowering.end_of_results(builder, &mut stores);
    (builder.late, builder.ending) = (false, false);
    // After the last loop every MMA has read what it reads; what was only loaded to registers is free at once.
    for (tile, cursor) in builder.invariant_tiles.clone() {
        let empty = lowering.invariant_tiles[tile].empty;
        if lowering.repeats() {
            builder.act(Op::MbarrierArrive { barrier: empty, at: cursor });
        }
        builder.act(Op::AdvanceCursor(cursor));
        if let Some(place) = only_load(builder, cursor) {
            let release = std::mem::take(&mut builder.out);
            builder.sections[0].splice(place + 1..place + 1, release);
        }
    }
    let releases = std::mem::take(&mut builder.out);
    let last = builder.sections.len() - 1;
    // After the loop, before what is computed from its results.
    let at = builder.sections[last].iter().rposition(|n| !matches!(n, Node::Op(..))).map_or(0, |k| k + 1);
    let reads_late = builder.sections[last][at..].iter().any(reads_shared);
    let section = &mut builder.sections[last];
    if reads_late {
        section.extend(releases);
    } else {
        section.splice(at..at, releases);
    }
    section.extend(stores);
    Ok(())
}

/// A group's parts of the stores of a block.
fn stores_of(lowering: &mut KernelBuilder<'_>, builder: &mut GroupBuilder, block: BlockId) -> Result<Vec<Node>, Error> {
    let mut stores = Vec::new();
    for id in lowering.module.block(block).operations.clone() {
        let own = builder.id;
        let is_section = lowering.kernel.critical_section() == Some(id);
        let stores_here = lowering.is_transcribed(id) && (is_section || lowering.has_stores(id));
        if stores_here && lowering.first_compute_group() == own {
            if is_section {
                // What is stored before it.
                for node in stores.drain(..) {
                    builder.place(builder.last(), node);
                }
            }
            Reader { lowering, group: builder }.transcribe(id)?;
        }
        if !stores::is_store(&lowering.module.operation(id).name) {
            continue;
        }
        for part in lowering.parts(id).into_iter().filter(|p| p.group == own) {
            let line = names::line(lowering.module, id);
            let mut reader = Reader { lowering, group: builder };
            reader.store(id, &part.region, part.program, None)?;
            for node in &mut builder.out {
                if let Node::Op(_, note) = node
                    && note.line.is_none()
                {
                    note.line = line;
                }
            }
            match lowering.options.shares.epilogue_subtile {
                // One sub-tile is done with before the next one is computed.
                Some(_) if builder.scope == Scope::Body && !lowering.has_tensor_memory() => {
                    for node in stores.drain(..).chain(std::mem::take(&mut builder.out)) {
                        builder.place(builder.last(), node);
                    }
                }
                _ => stores.append(&mut builder.out),
            }
        }
    }
    Ok(stores)
}

/// Where a group loads a tile of before the loops to registers, if it reads it nowhere else.
fn only_load(builder: &GroupBuilder, cursor: CursorId) -> Option<usize> {
    let reads = |node: &Node| slots_in(node).filter(|slot| slot.at == Some(cursor)).count();
    let all: usize = builder.sections.iter().flatten().map(reads).sum();
    let place = builder.sections[0].iter().position(|n| matches!(n, Node::Op(Op::Let { .. }, _)) && reads(n) == 1)?;
    (all == 1).then_some(place)
}

/// The slots that a part of a program reads.
fn slots_in(node: &Node) -> Box<dyn Iterator<Item = Slot> + '_> {
    match node {
        Node::Op(op, _) => Box::new(op.reads().into_iter()),
        _ => Box::new(node.blocks().into_iter().flatten().flat_map(slots_in)),
    }
}

fn reads_shared(node: &Node) -> bool {
    let Node::Op(Op::Let { value, .. }, _) = node else { return false };
    let mut found = false;
    value.walk(&mut |e| found |= matches!(e.kind, ExpressionKind::FromShared(_)));
    found
}
