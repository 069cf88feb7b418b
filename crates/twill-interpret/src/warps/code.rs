//! Where a group is in its code.

use twill_codegen::ir::{Expression, Node, Op, VariableId};

/// A block of code that a group is in the middle of.
#[derive(Clone, Debug)]
struct Frame<'p> {
    nodes: &'p [Node],
    /// The next node.
    at: usize,
    around: Around<'p>,
}

/// What a block is the body of.
#[derive(Clone, Debug)]
enum Around<'p> {
    /// A branch, or the code of a tile.
    Nothing,
    /// A pipelined loop: its iteration and its trip count.
    Pipelined(i64, i64),
    /// Any other loop that counts.
    Counting { variable: VariableId, at: i64, upper: i64, step: i64 },
    /// What a loop's condition needs, before an iteration.
    Condition { condition: &'p Expression, body: &'p [Node] },
    /// The iteration itself, with what its condition needs.
    While { before: &'p [Node], condition: &'p Expression },
}

/// What the code asks of the group.
pub(super) trait Values {
    /// What goes wrong.
    type Error;

    /// The trip count of a pipelined loop.
    fn trips(&mut self, index: usize) -> Result<i64, Self::Error>;

    /// A number, in an iteration of the pipelined loop around.
    fn value(&mut self, expression: &Expression, iteration: Option<i64>) -> Result<i64, Self::Error>;

    /// A loop's variable has a new value.
    fn set(&mut self, variable: VariableId, value: i64);
}

/// A position in a group's code: the blocks around the next operation, outermost first.
#[derive(Clone, Debug, Default)]
pub(super) struct ProgramCounter<'p> {
    frames: Vec<Frame<'p>>,
}

impl<'p> ProgramCounter<'p> {
    /// The beginning of a list of nodes.
    pub fn of(nodes: &'p [Node]) -> ProgramCounter<'p> {
        ProgramCounter { frames: vec![Frame { nodes, at: 0, around: Around::Nothing }] }
    }

    /// The iteration of the pipelined loop around.
    pub fn iteration(&self) -> Option<i64> {
        self.frames.iter().rev().find_map(|f| if let Around::Pipelined(i, _) = f.around { Some(i) } else { None })
    }

    /// After the operation that stands here.
    pub fn step(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.at += 1;
        }
    }

    fn enter(&mut self, nodes: &'p [Node], around: Around<'p>) {
        self.frames.push(Frame { nodes, at: 0, around });
    }

    /// At the end of a block: its next iteration, or what follows it.
    fn leave<V: Values>(&mut self, values: &mut V) -> Result<(), V::Error> {
        let iteration = self.iteration();
        let Some(mut frame) = self.frames.pop() else { return Ok(()) };
        match &mut frame.around {
            Around::Pipelined(i, count) if *i + 1 < *count => {
                *i += 1;
                frame.at = 0;
                self.frames.push(frame);
            }
            Around::Counting { variable, at, upper, step } if *at + *step < *upper => {
                *at += *step;
                values.set(*variable, *at);
                frame.at = 0;
                self.frames.push(frame);
            }
            Around::Condition { condition, body } if values.value(condition, iteration)? != 0 => {
                self.enter(body, Around::While { before: frame.nodes, condition });
            }
            Around::While { before, condition } => {
                self.enter(before, Around::Condition { condition, body: frame.nodes });
            }
            _ => self.step(),
        }
        Ok(())
    }

    /// Goes through loops and branches to the next operation; none at the end.
    pub fn next<V: Values>(&mut self, values: &mut V) -> Result<Option<&'p Op>, V::Error> {
        while let Some(frame) = self.frames.last() {
            let Some(node) = frame.nodes.get(frame.at) else {
                self.leave(values)?;
                continue;
            };
            let iteration = self.iteration();
            match node {
                Node::Op(op, _) => return Ok(Some(op)),
                Node::PipelinedLoop { index, first, body } => {
                    let (first, count) = (i64::from(*first), values.trips(*index)?);
                    if first < count {
                        self.enter(body, Around::Pipelined(first, count));
                        continue;
                    }
                }
                Node::TripSwitch { index, .. } => {
                    let count = u64::try_from(values.trips(*index)?).unwrap_or(0);
                    self.enter(node.of_trips(count).unwrap_or_default(), Around::Nothing);
                    continue;
                }
                Node::For { variable, lower, upper, step, body } => {
                    let mut number = |e| values.value(e, iteration);
                    let (lower, upper, step) = (number(lower)?, number(upper)?, number(step)?.max(1));
                    if lower < upper {
                        values.set(*variable, lower);
                        self.enter(body, Around::Counting { variable: *variable, at: lower, upper, step });
                        continue;
                    }
                }
                Node::While { before, condition, body } => {
                    self.enter(before, Around::Condition { condition, body });
                    continue;
                }
                Node::If { condition, then, otherwise } => {
                    let nodes = if values.value(condition, iteration)? != 0 { then } else { otherwise };
                    self.enter(nodes, Around::Nothing);
                    continue;
                }
                Node::Return => {
                    self.frames.clear();
                    continue;
                }
            }
            self.step();
        }
        Ok(None)
    }
}
