//! Lowers the loops of the groups that read tiles: those that compute, and those that issue MMAs.
//!
//! Before: buffers have their barriers. After: these groups have the operations of all loops; which parts of invariant tiles
//! they read is known.

use crate::builder::kernel::KernelBuilder;
use crate::builder::reader::Reader;
use crate::error::Error;
use crate::passes::loops::add_loop;
use twill_graph::GroupRole;

/// The pass.
pub(crate) fn run(builder: &mut KernelBuilder<'_>) -> Result<(), Error> {
    for id in builder.group_ids().into_iter().filter(|id| builder.is_consumer(*id)).collect::<Vec<_>>() {
        let mut group = builder.new_group(id);
        builder.add_early_returns(&mut group)?;
        for index in 0..builder.loops.len() {
            add_loop(builder, &mut group, index)?;
            if builder.is_issuer(id) {
                builder.end_of_mmas(&mut group, index);
            }
        }
        if builder.role(id) != GroupRole::Compute {
            Reader { lowering: builder, group: &mut group }.close_enclosing()?;
        }
        builder.groups.push(group);
    }
    builder.show_groups();
    Ok(())
}
