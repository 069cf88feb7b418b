//! What changed of a kernel, and whether that is worse.

use super::{LoopPerformance, Performance};
use serde::Serialize;
use std::fmt;
use twill_graph::grouped;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Initiation interval of a loop, in cycles.
    Interval,
    /// Its bound, in cycles.
    Bound,
    /// Cycles between the two that no proof excludes.
    Gap,
    /// Loops that are pipelined.
    Loops,
    /// Registers a thread.
    Registers,
    /// Bytes of shared memory.
    SharedMemory,
    /// Columns of tensor memory.
    TensorMemory,
}

impl Quantity {
    fn unit(self) -> &'static str {
        match self {
            Quantity::Interval | Quantity::Bound | Quantity::Gap => "cycles",
            Quantity::Loops => "loops",
            Quantity::Registers => "registers a thread",
            Quantity::SharedMemory => "bytes",
            Quantity::TensorMemory => "columns",
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Quantity::Interval => "initiation interval",
            Quantity::Bound => "proved bound",
            Quantity::Gap => "gap to the bound",
            Quantity::Loops => "pipelined loops",
            Quantity::Registers => "registers",
            Quantity::SharedMemory => "shared memory",
            Quantity::TensorMemory => "tensor memory",
        })
    }
}

/// A value that is another one now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What.
    pub quantity: Quantity,
    /// Of which loop, if of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_loop: Option<String>,
    /// In the baseline.
    pub before: i64,
    /// Now.
    pub now: i64,
    /// Whether that fails the check.
    pub worse: bool,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change { quantity, of_loop, before, now, .. } = self;
        write!(f, "{quantity}")?;
        if let Some(name) = of_loop {
            write!(f, " of {name}")?;
        }
        let (unit, by) = (quantity.unit(), now - before);
        let sign = if by < 0 { "-" } else { "+" };
        write!(f, ": {} -> {} {unit} ({sign}{}", grouped(*before), grouped(*now), grouped(by.abs()))?;
        if *before > 0 {
            write!(f, ", {:+.1} %", 100.0 * by as f64 / *before as f64)?;
        }
        write!(f, ")")
    }
}

/// What changed, worse or not, in a fixed order.
pub fn changes(before: &Performance, now: &Performance) -> Vec<Change> {
    let mut all = Vec::new();
    let mut compare = |quantity, of_loop: Option<&str>, before: i64, now: i64, worse: bool| {
        if before != now {
            all.push(Change { quantity, of_loop: of_loop.map(str::to_owned), before, now, worse });
        }
    };
    let (old, new) = (count(before.loops.len() as u64), count(now.loops.len() as u64));
    compare(Quantity::Loops, None, old, new, true);
    // Of others than before, nobody knows which is which.
    for (old, new) in before.loops.iter().zip(&now.loops).filter(|_| old == new) {
        let name = Some(new.name.as_str());
        let slower = new.interval > old.interval;
        compare(Quantity::Interval, name, old.interval.0, new.interval.0, slower);
        // A higher bound of an interval that did not grow is a better proof.
        compare(Quantity::Bound, name, old.bound.0, new.bound.0, slower && new.bound > old.bound);
        let (before, now) = (old.gap(), new.gap());
        compare(Quantity::Gap, name, before, now, now > before && new.interval >= old.interval);
    }
    let mut more = |quantity, before: u64, now: u64| compare(quantity, None, count(before), count(now), now > before);
    more(Quantity::Registers, before.registers.into(), now.registers.into());
    more(Quantity::SharedMemory, before.shared_memory, now.shared_memory);
    more(Quantity::TensorMemory, before.tensor_memory, now.tensor_memory);
    all
}

fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl LoopPerformance {
    /// Cycles that no proof excludes.
    fn gap(&self) -> i64 {
        if self.optimal { 0 } else { self.interval.0 - self.bound.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::{Quantity, changes};
    use crate::performance::{LoopPerformance, MachineStamp, Performance};
    use serde_json::Map;
    use twill_graph::Cycles;

    fn performance() -> Performance {
        let one = LoopPerformance { name: "main".into(), interval: Cycles(2048), bound: Cycles(2048), optimal: true };
        Performance {
            kernel: "attention".into(),
            machine: MachineStamp { name: "h200".into(), digest: "0".into() },
            options: Map::new(),
            loops: vec![one],
            registers: 168,
            shared_memory: 196_888,
            tensor_memory: 0,
        }
    }

    #[test]
    fn more_is_worse_and_less_is_only_told() {
        let before = performance();
        assert_eq!(changes(&before, &before), []);
        let mut now = before.clone();
        now.registers = 240;
        now.shared_memory = 131_072;
        now.loops[0].interval = Cycles(2568);
        let found = changes(&before, &now);
        let told: Vec<(Quantity, bool)> = found.iter().map(|change| (change.quantity, change.worse)).collect();
        let expected = [(Quantity::Interval, true), (Quantity::Registers, true), (Quantity::SharedMemory, false)];
        assert_eq!(told, expected);
        assert_eq!(found[0].to_string(), "initiation interval of main: 2048 -> 2568 cycles (+520, +25.4 %)");
        assert_eq!(found[2].to_string(), "shared memory: 196,888 -> 131,072 bytes (-65,816, -33.4 %)");
    }

    #[test]
    fn a_proof_that_is_lost_is_worse_at_the_same_interval() {
        let before = performance();
        let mut now = before.clone();
        now.loops[0] = LoopPerformance { bound: Cycles(2000), optimal: false, ..now.loops[0].clone() };
        let found = changes(&before, &now);
        let worse: Vec<Quantity> = found.iter().filter(|change| change.worse).map(|change| change.quantity).collect();
        assert_eq!(worse, [Quantity::Gap], "{found:?}");
        assert!(changes(&now, &before).iter().all(|change| !change.worse), "a better proof");
    }

    #[test]
    fn another_number_of_loops_is_worse_either_way() {
        let before = performance();
        let mut now = before.clone();
        now.loops.clear();
        assert!(changes(&before, &now)[0].worse);
        assert!(changes(&now, &before)[0].worse);
    }
}
