//! The tile scheduler: which CTA works on which tiles, and what groups do around them.
//!
//! Before: groups have the code of one tile. After: where CTAs are persistent, groups wait until their stores of the tile before
//! have read what they write anew; each group begins and ends as a CTA must.

use crate::builder::kernel::KernelBuilder;
use crate::error::Error;
use crate::ir::{Node, Note, Op, any};

/// The pass.
pub(crate) fn run(builder: &mut KernelBuilder<'_>) -> Result<(), Error> {
    for number in 0..builder.groups.len() {
        begin(builder, number);
        end(builder, number);
    }
    Ok(())
}

fn begin(builder: &mut KernelBuilder<'_>, number: usize) {
    let (id, stages_in_place) = (builder.groups[number].id, builder.groups[number].stages_in_place);
    let give = |barrier| {
        let note = Note { text: "opens the first ping-pong slot".into(), ..Note::default() };
        Node::Op(Op::NamedBarrierArrive(barrier), note)
    };
    let begin = builder.first_slot(id).map(give);
    let group = &mut builder.program.groups[number];
    group.begin.extend(begin);
    if stages_in_place && builder.options.persistent {
        // The stores of the tile before read what the loop writes.
        let wait = [Op::TmaStoreWait(0), Op::GroupSync].map(|op| Node::Op(op, Note::default()));
        group.body.splice(0..0, wait);
    }
}

fn end(builder: &mut KernelBuilder<'_>, number: usize) {
    let note = |text: &str| Note { text: text.to_owned(), ..Note::default() };
    let mut end = Vec::new();
    if any(&builder.program.groups[number].body, |op| matches!(op, Op::TmaStore { .. })) {
        end.push(Node::Op(Op::TmaStoreWait(0), note("shared memory must outlive its copies")));
    }
    let id = builder.groups[number].id;
    if let Some(barrier) = builder.end_of_mmas.filter(|_| builder.is_issuer(id)) {
        let name = builder.program.barriers[barrier.index()].name.clone();
        let group = &mut builder.groups[number];
        let at = group.cursor(&name, 1);
        group.cursors[at.index()].phase = true;
        let commit = Op::Tcgen05Commit(vec![(barrier, at)]);
        end.push(Node::Op(commit, note("shared memory must outlive what is signalled in it")));
        end.push(Node::Op(Op::MbarrierWait { barrier, at, previous: false }, Note::default()));
        builder.program.groups[number].cursors.clone_from(&builder.groups[number].cursors);
    }
    builder.program.groups[number].end = end;
}
