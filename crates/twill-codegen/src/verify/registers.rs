//! What a group's threads find in their registers: every value that they use was made, and every MMA's result was waited
//! for. Other groups have no part in this, so each group's code is gone through by itself, with all small trip counts.

use crate::error::Error;
use crate::ir::{Expression, ExpressionKind};
use crate::ir::{Group, Operand, VariableId, WarpProgram};
use crate::ir::{Node, Op};

/// What is in a variable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Nothing,
    Value,
    /// The result of the how-many-th MMA, which may still run.
    InFlight(u64),
}

/// Loops of which all combinations of trip counts are tried.
const MOST_COMBINED: usize = 2;

/// Looks at all groups.
///
/// # Errors
/// [`Error::Protocol`] with the group, what it uses too early, and the trip counts.
pub(crate) fn check(program: &WarpProgram) -> Result<(), Error> {
    for group in &program.groups {
        // After these all iterations are alike: one more, and one to follow it.
        let most = i64::from(farthest(&group.body)) + 2;
        for trips in combinations(program.loops.len(), most) {
            let mut walk = Walk { group, trips: &trips, held: vec![Held::Nothing; group.variables.len()], started: 0 };
            walk.nodes(&group.body)?;
        }
    }
    Ok(())
}

/// The largest number of iterations that code tells apart.
fn farthest(nodes: &[Node]) -> u32 {
    let of = |node: &Node| {
        let own = match node {
            Node::PipelinedLoop { first, .. } => *first,
            Node::TripSwitch { at_least, .. } => *at_least,
            _ => 0,
        };
        node.blocks().into_iter().map(|block| farthest(block)).max().unwrap_or(0).max(own)
    };
    nodes.iter().map(of).max().unwrap_or(0)
}

/// Trip counts of all loops up to a number; of many loops, the same for all.
fn combinations(loops: usize, most: i64) -> Vec<Vec<i64>> {
    if loops > MOST_COMBINED {
        return (0..=most).map(|trips| vec![trips; loops]).collect();
    }
    let more = |all: Vec<Vec<i64>>| -> Vec<Vec<i64>> {
        all.iter().flat_map(|some| (0..=most).map(move |trips| [some.as_slice(), &[trips]].concat())).collect()
    };
    (0..loops).fold(vec![Vec::new()], |all, _| more(all))
}

struct Walk<'a> {
    group: &'a Group,
    trips: &'a [i64],
    held: Vec<Held>,
    /// MMAs so far.
    started: u64,
}

impl Walk<'_> {
    /// Goes through code; whether it ends the group's work on its tile.
    fn nodes(&mut self, nodes: &[Node]) -> Result<bool, Error> {
        for node in nodes {
            if self.node(node)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn node(&mut self, node: &Node) -> Result<bool, Error> {
        match node {
            Node::Op(op, _) => self.op(op)?,
            Node::PipelinedLoop { index, first, body } => {
                for _ in i64::from(*first)..self.trips(*index)? {
                    if self.nodes(body)? {
                        return Ok(true);
                    }
                }
            }
            Node::TripSwitch { index, .. } => {
                let trips = u64::try_from(self.trips(*index)?).unwrap_or(0);
                return self.nodes(node.of_trips(trips).unwrap_or_default());
            }
            Node::If { condition, then, otherwise } => {
                self.reads([condition])?;
                let before = (self.held.clone(), self.started);
                let returns = self.nodes(then)?;
                let after =
                    (std::mem::replace(&mut self.held, before.0), std::mem::replace(&mut self.started, before.1));
                let other_returns = self.nodes(otherwise)?;
                match (returns, other_returns) {
                    (true, true) => return Ok(true),
                    (true, false) => {}
                    (false, true) => (self.held, self.started) = after,
                    (false, false) => self.meet(after),
                }
            }
            Node::For { variable, lower, upper, step, body } => {
                self.reads([lower, upper, step])?;
                let before = (self.held.clone(), self.started);
                self.set(*variable, Held::Value);
                // After the second iteration all are alike.
                for _ in 0..2 {
                    self.nodes(body)?;
                }
                self.meet(before);
            }
            Node::While { before, condition, body } => {
                self.nodes(before)?;
                self.reads([condition])?;
                let first = (self.held.clone(), self.started);
                for _ in 0..2 {
                    self.nodes(body)?;
                    self.nodes(before)?;
                    self.reads([condition])?;
                }
                self.meet(first);
            }
            Node::Return => return Ok(true),
        }
        Ok(false)
    }

    /// What is held whichever of two ways was taken here.
    fn meet(&mut self, (other, started): (Vec<Held>, u64)) {
        self.started = self.started.max(started);
        for (own, other) in self.held.iter_mut().zip(other) {
            *own = match (*own, other) {
                (Held::Nothing, _) | (_, Held::Nothing) => Held::Nothing,
                (Held::InFlight(a), Held::InFlight(b)) => Held::InFlight(a.max(b)),
                (Held::InFlight(a), Held::Value) | (Held::Value, Held::InFlight(a)) => Held::InFlight(a),
                (Held::Value, Held::Value) => Held::Value,
            };
        }
    }

    fn trips(&mut self, index: usize) -> Result<i64, Error> {
        if let Some(variable) = self.group.trips.get(index).copied().flatten() {
            self.uses(variable)?;
        }
        Ok(self.trips.get(index).copied().unwrap_or(0))
    }

    fn fault(&self, id: VariableId, what: &str) -> Error {
        let name = self.group.variables.get(id.index()).map_or("?", |v| v.name.as_str());
        let trips: Vec<String> = self.trips.iter().map(i64::to_string).collect();
        let counterexample = format!("{} {what}: {name}, with trips {}", self.group.name, trips.join(", "));
        Error::Protocol { counterexample }
    }

    /// The threads use a variable.
    fn uses(&self, id: VariableId) -> Result<(), Error> {
        match self.held.get(id.index()) {
            Some(Held::Value) => Ok(()),
            Some(Held::InFlight(_)) => Err(self.fault(id, "uses the result of an MMA that may still run")),
            Some(Held::Nothing) | None => Err(self.fault(id, "uses what nobody has made")),
        }
    }

    fn reads<'e>(&self, expressions: impl IntoIterator<Item = &'e Expression>) -> Result<(), Error> {
        let mut variables = Vec::new();
        for expression in expressions {
            expression.walk(&mut |e| {
                if let ExpressionKind::Variable(id) = e.kind {
                    variables.push(id);
                }
            });
        }
        variables.into_iter().try_for_each(|id| self.uses(id))
    }

    fn set(&mut self, id: VariableId, held: Held) {
        if let Some(place) = self.held.get_mut(id.index()) {
            *place = held;
        }
    }

    fn op(&mut self, op: &Op) -> Result<(), Error> {
        match op {
            Op::Let { to, value } => {
                self.reads([value])?;
                self.set(*to, Held::Value);
            }
            Op::Copy { to, from } => {
                let held = self.held.get(from.index()).copied().unwrap_or(Held::Nothing);
                self.set(*to, held);
            }
            Op::Wgmma { to, left, right, accumulator } => {
                for operand in [left, right] {
                    if let Operand::Registers(id) = operand {
                        self.uses(*id)?;
                    }
                }
                // MMAs of a group are done in order, so one may add to the result of another that runs.
                if let Some(id) = accumulator.filter(|id| self.held.get(id.index()) == Some(&Held::Nothing)) {
                    self.uses(id)?;
                }
                self.started += 1;
                self.set(*to, Held::InFlight(self.started));
            }
            Op::WgmmaWait { pending, completed, .. } => {
                let done = self.started.saturating_sub(u64::from(*pending));
                for id in completed {
                    match self.held.get(id.index()) {
                        Some(Held::InFlight(number)) if *number <= done => self.set(*id, Held::Value),
                        Some(Held::InFlight(_)) => return Err(self.fault(*id, "has not waited for a result")),
                        _ => {}
                    }
                }
            }
            Op::TmaLoad { .. }
            | Op::TmaStore { .. }
            | Op::CpAsync { .. }
            | Op::LocalStore { .. }
            | Op::GlobalStore { .. }
            | Op::AtomicAdd { .. } => self.reads(op.expressions())?,
            Op::Opaque { operands, results, .. } => {
                self.reads(operands)?;
                results.iter().for_each(|id| self.set(*id, Held::Value));
            }
            Op::Tcgen05Mma(_)
            | Op::Tcgen05Commit(_)
            | Op::WgmmaInit(_)
            | Op::CpAsyncCommit
            | Op::CpAsyncWait(_)
            | Op::FenceProxyAsync
            | Op::GroupSync
            | Op::TmaStoreWait(_)
            | Op::MbarrierWait { .. }
            | Op::MbarrierArrive { .. }
            | Op::AdvanceCursor(_)
            | Op::CopyCursor { .. }
            | Op::NamedBarrierSync(_)
            | Op::NamedBarrierArrive(_)
            | Op::Timestamp(_) => {}
        }
        Ok(())
    }
}
