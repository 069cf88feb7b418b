//! What makes a loop graph well-formed.

use super::*;
use crate::saturate;

/// Times are added and multiplied in 64 bits; this bound on every single number keeps sums exact.
const LARGEST_CYCLES: i64 = 1 << 40;
const LARGEST_AMOUNT: u64 = 1 << 40;
const LARGEST_DISTANCE: u32 = 1 << 20;
const LARGEST_TABLE: usize = 1 << 24;
pub(super) const LARGEST_SUM: u64 = 1 << 58;

impl LoopGraph {
    pub(super) fn check_operations(&self) -> Result<(), GraphError> {
        if self.operations.is_empty() {
            return Err(GraphError::Empty);
        }
        for (what, count) in [("operations", self.operations.len()), ("dependences", self.dependences.len())] {
            if count > LARGEST_TABLE {
                return Err(GraphError::TooLarge { what, count, limit: LARGEST_TABLE });
            }
        }
        names::check([("the loop", self.name.as_str())])?;
        let mut names = HashSet::new();
        for op in &self.operations {
            names::check(op.names())?;
            if !names.insert(op.name.as_str()) {
                return Err(GraphError::DuplicateName { name: op.name.clone() });
            }
            op.check()?;
        }
        Ok(())
    }

    pub(super) fn check_dependences(&self) -> Result<(), GraphError> {
        let mut seen = HashSet::new();
        for d in &self.dependences {
            let (from, to) = (self.operation(d.from), self.operation(d.to));
            let wrong = |why: String| GraphError::Dependence {
                from: from.name.clone(),
                to: to.name.clone(),
                distance: d.distance,
                why,
            };
            if d.distance > LARGEST_DISTANCE {
                return Err(wrong(format!("a distance of more than {LARGEST_DISTANCE} iterations is not supported")));
            }
            for (what, cycles) in [("delay", d.delay), ("hold", d.hold)] {
                if cycles.0 < 0 || cycles.0 > LARGEST_CYCLES {
                    return Err(wrong(format!("{what} is {cycles}; it must be from 0 to {LARGEST_CYCLES}")));
                }
            }
            if d.carries_value && from.storage == Storage::None {
                return Err(wrong(format!(
                    "it carries a value, but `{}` has no result; give it a storage or make it an order",
                    from.name
                )));
            }
            if d.tied && !d.carries_value {
                return Err(wrong("it is tied but carries no value".into()));
            }
            if d.carries_value && to.streaming {
                return Err(GraphError::NotStreaming {
                    operation: to.name.clone(),
                    why: format!("it reads the result of `{}`", from.name),
                });
            }
            if !seen.insert((d.from, d.to, d.distance)) {
                return Err(wrong("it is given twice; merge the two".into()));
            }
        }
        Ok(())
    }

    /// No interval above the sum of all cycles says anything new, and at it every path must fit.
    pub(super) fn check_sums(&self) -> Result<(), GraphError> {
        let operation = |op: &Operation| {
            let cycles = [op.occupancy, op.latency, op.handoff, op.transfer_latency, Cycles(1)];
            cycles.iter().map(|c| 2 * i128::from(c.0)).sum::<i128>() + i128::from(op.traffic.shared.0)
        };
        let operations = self.operations.iter().map(operation).sum::<i128>();
        let dependence = |d: &Dependence| {
            i128::from(d.delay.0) + i128::from(d.hold.0) + i128::from(self.operation(d.from).handoff.0)
        };
        let (cycles, most) =
            (operations + self.dependences.iter().map(dependence).sum::<i128>(), self.largest_interval());
        if cycles <= i128::from(most) {
            return Ok(());
        }
        Err(GraphError::TooLong { cycles: saturate::<u64>(cycles), distances: self.distances(), most })
    }

    /// A cycle of dependences whose distances are all zero, if there is one.
    pub(super) fn zero_distance_cycle(&self) -> Option<Vec<String>> {
        let mut successors: HashMap<OpId, Vec<OpId>> = HashMap::new();
        for d in self.dependences.iter().filter(|d| d.distance == 0) {
            successors.entry(d.from).or_default().push(d.to);
        }
        // Depth-first search with an explicit stack: graphs come from files and may be deep.
        #[derive(Clone, Copy, PartialEq)]
        enum Colour {
            New,
            Open,
            Done,
        }
        let mut colour = vec![Colour::New; self.operations.len()];
        for root in self.op_ids() {
            let mut path: Vec<(OpId, usize)> = vec![(root, 0)];
            if colour[root.index()] != Colour::New {
                continue;
            }
            colour[root.index()] = Colour::Open;
            while let Some((at, next)) = path.last_mut() {
                let at = *at;
                let Some(&to) = successors.get(&at).and_then(|s| s.get(*next)) else {
                    colour[at.index()] = Colour::Done;
                    path.pop();
                    continue;
                };
                *next += 1;
                match colour[to.index()] {
                    Colour::New => {
                        colour[to.index()] = Colour::Open;
                        path.push((to, 0));
                    }
                    Colour::Open => {
                        let start = path.iter().position(|(op, _)| *op == to).unwrap_or(0);
                        let mut cycle: Vec<String> =
                            path[start..].iter().map(|(op, _)| self.operation(*op).name.clone()).collect();
                        cycle.push(self.operation(to).name.clone());
                        return Some(cycle);
                    }
                    Colour::Done => {}
                }
            }
        }
        None
    }

    /// There are at most 2^24 of at most 2^20.
    pub(super) fn distances(&self) -> u64 {
        self.dependences.iter().map(|d| u64::from(d.distance)).sum()
    }
}

impl Operation {
    /// All names that it has or uses, and what they are of.
    fn names(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let own = [(names::OPERATION, self.name.as_str()), ("the kind of an operation", self.kind.as_str())];
        let file = self.source.iter().map(|source| ("the source file of an operation", source.file.as_str()));
        own.into_iter().chain(file).chain(self.reservations.iter().map(|r| ("a unit", r.unit.as_str())))
    }

    fn check(&self) -> Result<(), GraphError> {
        let number =
            |field, value, expected| Err(GraphError::Number { operation: self.name.clone(), field, value, expected });
        for (field, cycles) in [
            ("cycles", self.occupancy),
            ("latency", self.latency),
            ("handoff", self.handoff),
            ("transfer_latency", self.transfer_latency),
        ] {
            if cycles.0 < 0 || cycles.0 > LARGEST_CYCLES {
                return number(field, cycles.0, "from 0 to 2^40");
            }
        }
        let result = match self.storage {
            Storage::None => 0,
            Storage::Registers(Words(amount)) | Storage::Shared(Bytes(amount)) | Storage::Tensor(Columns(amount)) => {
                amount
            }
        };
        let Traffic { shared, global, flop } = self.traffic;
        for (field, amount) in
            [("result", result), ("traffic.shared", shared.0), ("traffic.global", global.0), ("traffic.flop", flop)]
        {
            if amount > LARGEST_AMOUNT {
                return number(field, saturate::<i64>(amount), "at most 2^40");
            }
        }
        if self.issue_width != 1 && self.issue_width != 4 {
            return number("issue_width", i64::from(self.issue_width), "1 (one warp) or 4 (a warp group)");
        }
        for r in &self.reservations {
            if r.start.0 < 0 || r.start.0 > LARGEST_CYCLES {
                return number("start of a reservation", r.start.0, "from 0 to 2^40");
            }
            if r.cycles.0 < 1 || r.cycles.0 > LARGEST_CYCLES {
                return number("cycles of a reservation", r.cycles.0, "from 1 to 2^40");
            }
            if r.start + r.cycles > self.occupancy {
                return Err(GraphError::ReservationOutside {
                    operation: self.name.clone(),
                    unit: r.unit.clone(),
                    end: r.start + r.cycles,
                    cycles: self.occupancy,
                });
            }
        }
        if self.streaming {
            let why = if !self.variable_latency {
                "its latency is not variable"
            } else if !matches!(self.storage, Storage::Shared(_) | Storage::None) {
                "its result does not go to shared memory"
            } else {
                return Ok(());
            };
            return Err(GraphError::NotStreaming { operation: self.name.clone(), why: why.into() });
        }
        Ok(())
    }
}
