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
        // Behind these all iterations are alike: one more, and one to follow it.
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
    let of = |node: &Node| match node {
        Node::Do(..) => 0,
        Node::Loop { first, body, .. } => (*first).max(farthest(body)),
        Node::When { at_least, then, exactly, .. } => {
            let inner = exactly.iter().map(|(n, nodes)| (*n).max(farthest(nodes))).max().unwrap_or(0);
            (*at_least).max(farthest(then)).max(inner)
        }
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
    fn nodes(&mut self, nodes: &[Node]) -> Result<(), Error> {
        for node in nodes {
            match node {
                Node::Do(action, _) => self.action(action)?,
                Node::Loop { index, first, body } => {
                    for _ in i64::from(*first)..self.trips(*index)? {
                        self.nodes(body)?;
                    }
                }
                Node::When { index, at_least, then, exactly } => {
                    let trips = self.trips(*index)?;
                    if trips >= i64::from(*at_least) {
                        self.nodes(then)?;
                    } else if let Some((_, nodes)) = exactly.iter().find(|(n, _)| i64::from(*n) == trips) {
                        self.nodes(nodes)?;
                    }
                }
            }
        }
        Ok(())
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

    fn action(&mut self, action: &Op) -> Result<(), Error> {
        match action {
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
            Op::TmaLoad { coordinates, .. } | Op::TmaStore { coordinates, .. } => self.reads(coordinates)?,
            Op::CpAsync { pointers, mask, .. } => self.reads(std::iter::once(pointers).chain(mask))?,
            Op::LocalStore { value, .. } => self.reads([value])?,
            Op::GlobalStore { pointers, value, mask } | Op::AtomicAdd { pointers, value, mask } => {
                self.reads([pointers, value].into_iter().chain(mask))?;
            }
            Op::Tcgen05Mma(_)
            | Op::Tcgen05Commit(_)
            | Op::WgmmaInit(_)
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
