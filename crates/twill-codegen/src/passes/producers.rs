//! Lowers the groups that load: invariant tiles once, tiles of the loops in their rings.
//!
//! Before: which invariant tiles are read, and by whom, is known. After: the groups are complete but for what later passes move
//! and add, compute groups first; who arrives at the barriers of invariant tiles and of results is settled.

use crate::builder::kernel::KernelBuilder;
use crate::builder::reader::Reader;
use crate::error::Error;
use crate::passes::epilogue::load_invariant_tiles;
use crate::passes::loops::add_loop;
use twill_graph::GroupRole;

/// The pass.
pub(crate) fn run(builder: &mut KernelBuilder<'_>) -> Result<(), Error> {
    for id in builder.group_ids().into_iter().filter(|id| !builder.is_consumer(*id)).collect::<Vec<_>>() {
        let mut group = builder.new_group(id);
        builder.add_early_returns(&mut group)?;
        load_invariant_tiles(builder, &mut group)?;
        for index in 0..builder.loops.len() {
            add_loop(builder, &mut group, index)?;
        }
        Reader { lowering: builder, group: &mut group }.close_enclosing()?;
        builder.groups.push(group);
    }
    let mut groups = std::mem::take(&mut builder.groups);
    groups.sort_by_key(|group| match builder.role(group.id) {
        GroupRole::Compute => 0,
        GroupRole::Issue => 1,
        GroupRole::VariableLatency => 2,
    });
    for group in &mut groups {
        builder.add_exports(group)?;
    }
    builder.groups = groups;
    builder.show_groups();
    for tile in &builder.invariant_tiles {
        let arrivals = tile.readers.iter().map(|g| builder.releasing(*g)).collect();
        builder.program.barriers[tile.empty.index()].arrivals = arrivals;
    }
    for results in builder.result_barriers.values() {
        let Some(drained) = results.drained else { continue };
        let arrivals = results.readers.iter().map(|g| builder.releasing(*g)).collect();
        builder.program.barriers[drained.index()].arrivals = arrivals;
    }
    Ok(())
}
