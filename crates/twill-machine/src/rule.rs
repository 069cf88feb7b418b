//! Cost rules: the tables `[costs.*]` of a machine file.

use twill_graph::{Cycles, Execution};

/// An operation's price: a unit, a rate on it, and who is busy meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    /// The unit it holds.
    pub unit: String,
    /// Amount a cycle.
    pub rate: f64,
    /// Amount a cycle for elements of at most 16 bits, where it differs.
    pub narrow_rate: Option<f64>,
    /// Cycles from the end of its occupancy until the result can be read.
    pub additional_latency: Cycles,
    /// Its execution: by warps, or not.
    pub execution: Execution,
    /// Warps that issue it together.
    pub issue_width: u32,
}

impl Rule {
    /// The rate for elements of this width.
    pub fn rate_for(&self, element_bits: u32) -> f64 {
        self.narrow_rate.filter(|_| element_bits <= 16).unwrap_or(self.rate)
    }
}

/// The rules that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum RuleName {
    Fma,
    Alu,
    SpecialFunction,
    Convert,
    ReduceMaximum,
    ReduceSum,
    SharedLoad,
    SharedStore,
    PointerLoad,
    PointerStore,
    PointerReduce,
    TmaLoad,
    TmaStore,
    TmaReduce,
    TensorLoad,
    TensorStore,
}

/// The unit of a rule's rate; it also decides which further keys the rule has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleKind {
    /// Arithmetic on registers: executed by the issuing warp group, with an optional rate for narrow elements.
    Elements,
    /// Global memory traffic: the file says who issues and who executes.
    Transfer,
    /// Registers to and from shared memory, by a warp group.
    Shared,
    /// Registers to and from tensor memory, by a warp group.
    Tensor,
}

impl RuleName {
    /// All of them, in the order in which they are shown.
    pub const ALL: [RuleName; 16] = [
        RuleName::Fma,
        RuleName::Alu,
        RuleName::SpecialFunction,
        RuleName::Convert,
        RuleName::ReduceMaximum,
        RuleName::ReduceSum,
        RuleName::SharedLoad,
        RuleName::SharedStore,
        RuleName::PointerLoad,
        RuleName::PointerStore,
        RuleName::PointerReduce,
        RuleName::TmaLoad,
        RuleName::TmaStore,
        RuleName::TmaReduce,
        RuleName::TensorLoad,
        RuleName::TensorStore,
    ];

    /// Its table under `[costs]`.
    pub fn key(self) -> &'static str {
        match self {
            RuleName::Fma => "fma",
            RuleName::Alu => "alu",
            RuleName::SpecialFunction => "special_function",
            RuleName::Convert => "convert",
            RuleName::ReduceMaximum => "reduce_maximum",
            RuleName::ReduceSum => "reduce_sum",
            RuleName::SharedLoad => "shared_load",
            RuleName::SharedStore => "shared_store",
            RuleName::PointerLoad => "pointer_load",
            RuleName::PointerStore => "pointer_store",
            RuleName::PointerReduce => "pointer_reduce",
            RuleName::TmaLoad => "tma_load",
            RuleName::TmaStore => "tma_store",
            RuleName::TmaReduce => "tma_reduce",
            RuleName::TensorLoad => "tensor_load",
            RuleName::TensorStore => "tensor_store",
        }
    }

    /// The unit that it counts.
    pub fn kind(self) -> RuleKind {
        match self {
            RuleName::Fma
            | RuleName::Alu
            | RuleName::SpecialFunction
            | RuleName::Convert
            | RuleName::ReduceMaximum
            | RuleName::ReduceSum => RuleKind::Elements,
            RuleName::SharedLoad | RuleName::SharedStore => RuleKind::Shared,
            RuleName::PointerLoad
            | RuleName::PointerStore
            | RuleName::PointerReduce
            | RuleName::TmaLoad
            | RuleName::TmaStore
            | RuleName::TmaReduce => RuleKind::Transfer,
            RuleName::TensorLoad | RuleName::TensorStore => RuleKind::Tensor,
        }
    }

    /// Returns whether every machine must have it. The TMA and tensor memory are capabilities that a machine may lack.
    pub fn is_required(self) -> bool {
        match self {
            RuleName::TmaLoad
            | RuleName::TmaStore
            | RuleName::TmaReduce
            | RuleName::TensorLoad
            | RuleName::TensorStore => false,
            RuleName::Fma
            | RuleName::Alu
            | RuleName::SpecialFunction
            | RuleName::Convert
            | RuleName::ReduceMaximum
            | RuleName::ReduceSum
            | RuleName::SharedLoad
            | RuleName::SharedStore
            | RuleName::PointerLoad
            | RuleName::PointerStore
            | RuleName::PointerReduce => true,
        }
    }
}

impl RuleKind {
    /// The key of the rate, and its unit.
    pub fn rate(self) -> (&'static str, &'static str) {
        match self {
            RuleKind::Elements => ("elements_per_cycle", "elements/cycle"),
            RuleKind::Transfer | RuleKind::Shared => ("bytes_per_cycle", "bytes/cycle"),
            RuleKind::Tensor => ("words_per_cycle", "words/cycle"),
        }
    }
}
