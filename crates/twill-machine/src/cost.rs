//! The cost of a tile operation: `occupancy = ⌈amount / rate⌉`, `latency = occupancy + additional latency`.
//!
//! With the additional latencies at their default of 0, latency is occupancy at documented throughput: the convention
//! of the published results.

use crate::Machine;
use crate::operation::{Element, ElementwiseClass, Mechanism, Reduction, TileWork};
use crate::rule::RuleName;
use thiserror::Error;
use twill_graph::{Bytes, Cycles, Execution, Reservation, Traffic};

/// The cost of one tile operation, in the terms of [`twill_graph::Operation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// When it holds which functional unit, relative to its issue.
    pub reservations: Vec<Reservation>,
    /// Rows of its reservation table, at least 1.
    pub occupancy: Cycles,
    /// Cycles from issue until its result can be read.
    pub latency: Cycles,
    /// Its execution: by the issuing warps, or not.
    pub execution: Execution,
    /// Warps that issue it together: 1 or 4.
    pub issue_width: u32,
    /// Its latency is not known statically (global-memory traffic). Cycles that a ring must hide are
    /// [`Machine::transfer_latency`].
    pub variable_latency: bool,
    /// Its bytes and FLOP; for an MMA without its operands, which the machine does not see.
    pub traffic: Traffic,
}

impl Cost {
    /// `self` and afterwards `next`, by the same warps: occupancies add, and `next`'s reservations start when `self`'s
    /// occupancy ends.
    pub fn then(mut self, next: &Cost) -> Cost {
        self.reservations.extend(next.reservations.iter().map(|r| Reservation {
            unit: r.unit.clone(),
            start: self.occupancy + r.start,
            cycles: r.cycles,
        }));
        self.latency = self.latency.max(self.occupancy + next.latency);
        self.occupancy += next.occupancy;
        self.joined(next)
    }

    /// `self` and `other` element by element, pipelined in the same warps on different units: both start at issue and
    /// the slower one decides. On a shared unit use [`then`](Cost::then).
    pub fn alongside(mut self, other: &Cost) -> Cost {
        self.reservations.extend(other.reservations.iter().cloned());
        self.occupancy = self.occupancy.max(other.occupancy);
        self.latency = self.latency.max(other.latency);
        self.joined(other)
    }

    /// The common part of both ways of combining: synchronous, wide or of variable latency if either is.
    fn joined(mut self, other: &Cost) -> Cost {
        if other.execution == Execution::Synchronous {
            self.execution = Execution::Synchronous;
        }
        self.issue_width = self.issue_width.max(other.issue_width);
        self.variable_latency |= other.variable_latency;
        self.traffic += other.traffic;
        self
    }
}

/// The error for an operation without a cost on a machine.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CostError {
    /// The machine cannot do it.
    #[error("machine `{machine}` has no cost for a {operation}: its file has no [costs.{rule}]")]
    NoRule {
        /// The machine.
        machine: String,
        /// The operation.
        operation: &'static str,
        /// The table of the file that would say it.
        rule: &'static str,
    },
    /// The tensor core does not take this type.
    #[error("the tensor core of machine `{machine}` does not multiply {element}; it multiplies {}", keys(known))]
    Element {
        /// The machine.
        machine: String,
        /// The request.
        element: Element,
        /// Its cost.
        known: Vec<Element>,
    },
    /// More cycles than a graph can hold.
    #[error("a {operation} of this size takes more than 2^40 cycles on machine `{machine}`; choose smaller tiles")]
    TooLarge {
        /// The machine.
        machine: String,
        /// The operation.
        operation: &'static str,
    },
}

fn keys(elements: &[Element]) -> String {
    elements.iter().map(|e| e.key()).collect::<Vec<_>>().join(", ")
}

/// Single numbers of a graph end here; beyond it sums would not be exact.
const LARGEST_CYCLES: f64 = (1_u64 << 40) as f64;

/// `⌈amount / rate⌉`, at least 1; `None` beyond what a graph can hold.
fn cycles(amount: f64, rate: f64) -> Option<Cycles> {
    let exact = (amount / rate).ceil().max(1.0);
    (exact <= LARGEST_CYCLES).then_some(Cycles(exact as i64))
}

fn round_up(value: u64, multiple: u64) -> f64 {
    value.div_ceil(multiple.max(1)) as f64 * multiple.max(1) as f64
}

impl Machine {
    /// The cost of a tile operation.
    ///
    /// # Errors
    /// When the machine cannot do it, or not in 2^40 cycles.
    pub fn cost(&self, operation: &TileWork) -> Result<Cost, CostError> {
        let transfer = |bytes: Bytes, mechanism, tma, pointer| match self.mechanism(mechanism) {
            Mechanism::Tma => self.by_rule(operation, tma, bytes.0 as f64),
            Mechanism::Pointer => self.by_rule(operation, pointer, bytes.0 as f64),
        };
        match *operation {
            TileWork::Mma { rows, columns, depth, element } => {
                self.by_tensor_core(operation, [rows, columns, depth], element)
            }
            TileWork::Elementwise { class, elements, element_bits } => {
                let instructions = elements as f64 * f64::from(element_bits.div_ceil(32).max(1));
                let rule = match class {
                    ElementwiseClass::Fma => RuleName::Fma,
                    ElementwiseClass::Alu => RuleName::Alu,
                    ElementwiseClass::SpecialFunction => RuleName::SpecialFunction,
                    ElementwiseClass::Convert => RuleName::Convert,
                };
                self.by_rule(operation, rule, instructions)
            }
            TileWork::Reduce { kind, rows, columns } => {
                let rule = match kind {
                    Reduction::Maximum => RuleName::ReduceMaximum,
                    Reduction::Sum => RuleName::ReduceSum,
                };
                self.by_rule(operation, rule, rows as f64 * columns as f64)
            }
            TileWork::Load { bytes, mechanism } => transfer(bytes, mechanism, RuleName::TmaLoad, RuleName::PointerLoad),
            TileWork::Store { bytes, mechanism } => {
                transfer(bytes, mechanism, RuleName::TmaStore, RuleName::PointerStore)
            }
            TileWork::AtomicReduce { bytes, mechanism } => {
                transfer(bytes, mechanism, RuleName::TmaReduce, RuleName::PointerReduce)
            }
            TileWork::ToShared { bytes } => self.by_rule(operation, RuleName::SharedStore, bytes.0 as f64),
            TileWork::FromShared { bytes } => self.by_rule(operation, RuleName::SharedLoad, bytes.0 as f64),
            TileWork::TensorLoad { words } => self.by_rule(operation, RuleName::TensorLoad, words.0 as f64),
            TileWork::TensorStore { words } => self.by_rule(operation, RuleName::TensorStore, words.0 as f64),
        }
    }

    /// The unit that moves the data for a request of `wanted`: the TMA only where there is one.
    pub fn mechanism(&self, wanted: Mechanism) -> Mechanism {
        match wanted {
            Mechanism::Tma if self.rule(RuleName::TmaLoad).is_some() => Mechanism::Tma,
            Mechanism::Tma | Mechanism::Pointer => Mechanism::Pointer,
        }
    }

    /// `2 · rows · columns · depth / rate`, the shape rounded up to whole instructions.
    fn by_tensor_core(&self, operation: &TileWork, shape: [u64; 3], element: Element) -> Result<Cost, CostError> {
        let core = self.tensor_core();
        let rate = core.flop_per_cycle(element).ok_or_else(|| CostError::Element {
            machine: self.name().to_owned(),
            element,
            known: core.elements().collect(),
        })?;
        let [rows, columns, depth] = shape;
        let flop = 2.0
            * round_up(rows, core.instruction_rows)
            * round_up(columns, core.instruction_columns)
            * round_up(depth, core.instruction_depth(element));
        let occupancy = cycles(flop, rate).ok_or_else(|| self.too_large(operation))?;
        Ok(Cost {
            reservations: whole(&core.unit, occupancy),
            occupancy,
            latency: occupancy + core.additional_latency,
            execution: core.execution,
            issue_width: core.issue_width,
            variable_latency: false,
            traffic: Traffic { flop: flop as u64, ..Traffic::default() },
        })
    }

    /// `amount / rate` on the unit of the rule.
    fn by_rule(&self, operation: &TileWork, name: RuleName, amount: f64) -> Result<Cost, CostError> {
        let rule = self.rule(name).ok_or_else(|| CostError::NoRule {
            machine: self.name().to_owned(),
            operation: operation.name(),
            rule: name.key(),
        })?;
        let rate = match operation {
            TileWork::Elementwise { element_bits, .. } => rule.rate_for(*element_bits),
            _ => rule.rate,
        };
        let occupancy = cycles(amount, rate).ok_or_else(|| self.too_large(operation))?;
        Ok(Cost {
            reservations: whole(&rule.unit, occupancy),
            occupancy,
            latency: occupancy + rule.additional_latency,
            execution: rule.execution,
            issue_width: rule.issue_width,
            variable_latency: operation.has_variable_latency(),
            traffic: self.traffic(operation),
        })
    }

    /// The bytes of an operation by a rule.
    fn traffic(&self, operation: &TileWork) -> Traffic {
        let transfer = |bytes: Bytes, through_shared: bool| {
            let share = if through_shared { self.shared_transfer_share } else { 0.0 };
            Traffic { shared: Bytes((bytes.0 as f64 * share) as u64), global: bytes, flop: 0 }
        };
        match *operation {
            TileWork::ToShared { bytes } | TileWork::FromShared { bytes } => {
                Traffic { shared: bytes, ..Traffic::default() }
            }
            TileWork::Load { bytes, .. } => transfer(bytes, true),
            TileWork::Store { bytes, mechanism } | TileWork::AtomicReduce { bytes, mechanism } => {
                transfer(bytes, self.mechanism(mechanism) == Mechanism::Tma)
            }
            TileWork::Mma { .. }
            | TileWork::Elementwise { .. }
            | TileWork::Reduce { .. }
            | TileWork::TensorLoad { .. }
            | TileWork::TensorStore { .. } => Traffic::default(),
        }
    }

    fn too_large(&self, operation: &TileWork) -> CostError {
        CostError::TooLarge { machine: self.name().to_owned(), operation: operation.name() }
    }
}

fn whole(unit: &str, occupancy: Cycles) -> Vec<Reservation> {
    vec![Reservation { unit: unit.to_owned(), start: Cycles::ZERO, cycles: occupancy }]
}
