//! Reads `[tensor_core]` and `[costs.*]`.

use crate::error::MachineError;
use crate::machine::{Memory, Sharing, TensorCore};
use crate::nearest::nearest;
use crate::operation::Element;
use crate::read::{Declared, LARGEST_CYCLES};
use crate::reader::{Allowed, Reader, Section};
use crate::rule::{Rule, RuleKind, RuleName};
use std::collections::BTreeMap;
use twill_graph::{Cycles, Execution};

/// Warps of a warp group.
const WARP_GROUP: u32 = 4;
const EXECUTION: [(&str, Execution); 2] =
    [("synchronous", Execution::Synchronous), ("asynchronous", Execution::Asynchronous)];
const ISSUE: [(&str, u32); 2] = [("warp", 1), ("warp_group", WARP_GROUP)];
const MEMORY: [(&str, Memory); 3] = [
    (Memory::Registers.key(), Memory::Registers),
    (Memory::Shared.key(), Memory::Shared),
    (Memory::Tensor.key(), Memory::Tensor),
];
const SHARING: [(&str, Sharing); 2] =
    [(Sharing::InOrder.key(), Sharing::InOrder), (Sharing::Interleaved.key(), Sharing::Interleaved)];
const NO_ADDITIONAL_LATENCY: (f64, &str) = (0.0, "default: latency = occupancy, as in the published results");

impl Reader {
    pub(crate) fn tensor_core(&mut self, mut s: Section<'_>, declared: &Declared) -> Option<TensorCore> {
        let unit = self.unit(&mut s, declared);
        let execution = self.word(&mut s, "execution", &EXECUTION);
        let issue_width = self.word(&mut s, "issue", &ISSUE);
        let accumulator = self.word(&mut s, "accumulator", &MEMORY);
        let left_operand = self.words(&mut s, "left_operand", &MEMORY);
        let right_operand = self.words(&mut s, "right_operand", &MEMORY);
        let rows = self.whole(&mut s, "instruction_rows", "rows", 1, 1 << 16);
        let columns = self.whole(&mut s, "instruction_columns", "columns", 1, 1 << 16);
        let columns_maximum = self.whole(&mut s, "instruction_columns_maximum", "columns", 1, 1 << 16);
        let depth_bytes = self.whole(&mut s, "instruction_depth_bytes", "bytes", 1, 1 << 16);
        let additional_latency = self.additional_latency(&mut s);
        let wait_latency = self.optional_cycles(&mut s, "wait_latency");
        let sharing = self.optional_word(&mut s, "sharing", &SHARING);
        let rates = self.section(&mut s, "flop_per_cycle").map(|mut s| {
            let mut rates = BTreeMap::new();
            for element in Element::ALL {
                if let Some(rate) = self.optional_number(&mut s, element.key(), "FLOP/cycle", Allowed::Positive) {
                    rates.insert(element, rate);
                }
            }
            self.finish(s);
            rates
        });
        self.finish(s);
        Some(TensorCore {
            unit: unit?,
            execution: execution?,
            issue_width: issue_width?,
            accumulator: accumulator?,
            left_operand: left_operand?,
            right_operand: right_operand?,
            instruction_rows: rows?,
            instruction_columns: columns?,
            instruction_columns_maximum: columns_maximum?,
            instruction_depth_bytes: depth_bytes?,
            additional_latency: additional_latency?,
            wait_latency,
            sharing,
            rates: rates?,
        })
    }

    pub(crate) fn rules(&mut self, mut s: Section<'_>, declared: &Declared) -> Option<BTreeMap<RuleName, Rule>> {
        let mut rules = Some(BTreeMap::new());
        for name in RuleName::ALL {
            let section = if name.is_required() {
                match self.section(&mut s, name.key()) {
                    Some(section) => section,
                    None => {
                        rules = None;
                        continue;
                    }
                }
            } else {
                match self.optional_section(&mut s, name.key()) {
                    Some(section) => section,
                    None => continue,
                }
            };
            match (self.rule(section, name.kind(), declared), &mut rules) {
                (Some(rule), Some(rules)) => _ = rules.insert(name, rule),
                _ => rules = None,
            }
        }
        self.finish(s);
        rules
    }

    fn rule(&mut self, mut s: Section<'_>, kind: RuleKind, declared: &Declared) -> Option<Rule> {
        let unit = self.unit(&mut s, declared);
        let (key, per) = kind.rate();
        let rate = self.number(&mut s, key, per, Allowed::Positive);
        let narrow_rate = match kind {
            RuleKind::Elements => self.optional_number(&mut s, "narrow_elements_per_cycle", per, Allowed::Positive),
            RuleKind::Transfer | RuleKind::Shared | RuleKind::Tensor => None,
        };
        let additional_latency = self.additional_latency(&mut s);
        let (execution, issue_width) = match kind {
            RuleKind::Transfer => (self.word(&mut s, "execution", &EXECUTION), self.transfer_issue(&mut s, declared)),
            RuleKind::Elements | RuleKind::Shared | RuleKind::Tensor => {
                (Some(Execution::Synchronous), Some(WARP_GROUP))
            }
        };
        self.finish(s);
        Some(Rule {
            unit: unit?,
            rate: rate?,
            narrow_rate,
            additional_latency: additional_latency?,
            execution: execution?,
            issue_width: issue_width?,
        })
    }

    /// The issuer of global memory traffic: where there is a variable-latency group, that one must be wide enough.
    fn transfer_issue(&mut self, s: &mut Section<'_>, declared: &Declared) -> Option<u32> {
        let width = self.word(s, "issue", &ISSUE)?;
        match declared.variable_latency_group {
            Some(group) if group.warps < width => {
                self.errors.push(MachineError::IssueWidth {
                    place: s.place_of("issue"),
                    key: s.key("issue"),
                    warps: group.warps,
                });
                None
            }
            _ => Some(width),
        }
    }

    /// The unit of a rule, which must be declared.
    fn unit(&mut self, s: &mut Section<'_>, declared: &Declared) -> Option<String> {
        let unit = self.text(s, "unit")?;
        match &declared.units {
            Some(declared) if !declared.contains(&unit) => {
                self.errors.push(MachineError::UnknownUnit {
                    place: s.place_of("unit"),
                    key: s.key("unit"),
                    nearest: nearest(&unit, declared),
                    unit,
                    declared: declared.clone(),
                });
                None
            }
            _ => Some(unit),
        }
    }

    fn additional_latency(&mut self, s: &mut Section<'_>) -> Option<Cycles> {
        let allowed = Allowed::Whole(0, LARGEST_CYCLES);
        let cycles = self.number_or(s, "additional_latency", "cycles", allowed, NO_ADDITIONAL_LATENCY)?;
        Some(Cycles(cycles as i64))
    }
}
