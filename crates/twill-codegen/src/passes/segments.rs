//! Operations that threads do one after the other as one to who looks at the time: fewer timestamps, over which nothing is moved.

use crate::ir::{Moment, Stamp};
use crate::ir::{Node, Op, within};

/// Moves the timestamps within runs of operations to the ends of the runs.
pub(crate) fn join(nodes: &mut Vec<Node>) {
    within(nodes, join);
    let mut run = Run::default();
    for k in 0..nodes.len() {
        if !goes_on(&nodes[k]) {
            run.end(nodes);
            continue;
        }
        for stamp in take(&mut nodes[k]) {
            match stamp.moment {
                Moment::Issue if is_within(&nodes[k + 1..], &stamp) => {
                    let first = *run.first.get_or_insert(k);
                    put(&mut nodes[first], stamp);
                }
                Moment::End if run.first.is_some() => {
                    run.last = k;
                    run.ends.push(stamp);
                }
                // A wait, or something that goes on by itself: where it stands counts.
                _ => {
                    if run.first != Some(k) {
                        run.end(nodes);
                    }
                    put(&mut nodes[k], stamp);
                }
            }
        }
    }
    run.end(nodes);
    nodes.retain(|node| !matches!(node, Node::Op(Op::Timestamp(stamps), _) if stamps.is_empty()));
}

/// Operations next to each other.
#[derive(Default)]
struct Run {
    /// Where the first begins.
    first: Option<usize>,
    /// Where the last that is known ends.
    last: usize,
    /// Their ends.
    ends: Vec<Stamp>,
}

impl Run {
    fn end(&mut self, nodes: &mut [Node]) {
        for stamp in self.ends.drain(..) {
            put(&mut nodes[self.last], stamp);
        }
        self.first = None;
    }
}

/// Whether a run goes on over a node: nobody waits there.
fn goes_on(node: &Node) -> bool {
    let Node::Op(op, _) = node else { return false };
    matches!(
        op,
        Op::Timestamp(_)
            | Op::Let { .. }
            | Op::Copy { .. }
            | Op::MbarrierArrive { .. }
            | Op::AdvanceCursor(_)
            | Op::CopyCursor { .. }
    )
}

/// Whether an operation that begins before these nodes ends before the run does.
fn is_within(rest: &[Node], begin: &Stamp) -> bool {
    let ends =
        |stamp: &Stamp| stamp.moment == Moment::End && stamp.operation == begin.operation && stamp.at == begin.at;
    rest.iter().take_while(|node| goes_on(node)).any(|node| match node {
        Node::Op(Op::Timestamp(stamps), _) => stamps.iter().any(ends),
        _ => false,
    })
}

fn take(node: &mut Node) -> Vec<Stamp> {
    match node {
        Node::Op(Op::Timestamp(stamps), _) => std::mem::take(stamps),
        _ => Vec::new(),
    }
}

fn put(node: &mut Node, stamp: Stamp) {
    if let Node::Op(Op::Timestamp(stamps), _) = node {
        stamps.push(stamp);
    }
}
