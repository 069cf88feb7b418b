//! Where a group is in its code.

use twill_emit::kernel::op::{Node, Op};

/// A block of code that a group is in the middle of.
#[derive(Clone, Debug)]
struct Frame<'p> {
    nodes: &'p [Node],
    /// The next node.
    at: usize,
    /// Where the block is a loop's body: its number, iteration and trip count.
    around: Option<(usize, i64, i64)>,
}

/// A place in a group's code.
#[derive(Clone, Debug, Default)]
pub(super) struct Place<'p> {
    frames: Vec<Frame<'p>>,
}

impl<'p> Place<'p> {
    /// The beginning of a list of nodes.
    pub fn of(nodes: &'p [Node]) -> Place<'p> {
        Place { frames: vec![Frame { nodes, at: 0, around: None }] }
    }

    /// The iteration of the loop around.
    pub fn iteration(&self) -> Option<i64> {
        self.frames.iter().rev().find_map(|f| f.around).map(|(_, i, _)| i)
    }

    /// After the action that stands here.
    pub fn step(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.at += 1;
        }
    }

    /// Goes through loops and branches to the next action; none at the end. `trips`: the trip count of a loop.
    pub fn next<E>(&mut self, mut trips: impl FnMut(usize) -> Result<i64, E>) -> Result<Option<&'p Op>, E> {
        while let Some(frame) = self.frames.last_mut() {
            let Some(node) = frame.nodes.get(frame.at) else {
                match &mut frame.around {
                    Some((_, i, count)) if *i + 1 < *count => {
                        *i += 1;
                        frame.at = 0;
                    }
                    _ => {
                        self.frames.pop();
                        self.step();
                    }
                }
                continue;
            };
            let inner = match node {
                Node::Do(action, _) => return Ok(Some(action)),
                Node::Loop { index, first, body } => {
                    let count = trips(*index)?;
                    let first = i64::from(*first);
                    (first < count).then_some(Frame { nodes: body, at: 0, around: Some((*index, first, count)) })
                }
                Node::When { index, at_least, then, exactly } => {
                    let count = trips(*index)?;
                    let branch = match count >= i64::from(*at_least) {
                        true => Some(then),
                        false => exactly.iter().find(|(n, _)| i64::from(*n) == count).map(|(_, nodes)| nodes),
                    };
                    branch.map(|nodes| Frame { nodes, at: 0, around: None })
                }
            };
            match inner {
                Some(frame) => self.frames.push(frame),
                None => self.step(),
            }
        }
        Ok(None)
    }
}
