//! A machine for people: who executes what, and numbers as they are written.

use crate::machine::{Machine, Memory};
use crate::provenance::Row;
use std::collections::BTreeMap;
use twill_graph::Execution;

impl Row {
    /// The number for people: no fraction where it has none.
    pub fn number(&self) -> String {
        twill_graph::grouped_real(self.value, None)
    }
}

impl Machine {
    /// The executors, a sentence on each line.
    pub fn summary(&self) -> String {
        let mut lines = vec![match self.description.as_str() {
            "" => format!("{} ({})", self.name, self.architecture),
            description => format!("{} ({}): {description}", self.name, self.architecture),
        }];
        let core = &self.tensor_core;
        let places = |memories: &[Memory]| memories.iter().map(|m| m.label()).collect::<Vec<_>>().join(" or ");
        let issued = who(core.issue_width, core.execution);
        let (accumulator, left, right) =
            (core.accumulator.label(), places(&core.left_operand), places(&core.right_operand));
        lines.push(format!("MMAs hold `{}`, issued {issued}:", core.unit));
        lines.push(format!("accumulators in {accumulator}, left operands in {left}, right operands in {right}."));
        let mut rules: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
        for (name, rule) in &self.rules {
            let kind = (rule.unit.as_str(), who(rule.issue_width, rule.execution));
            rules.entry(kind).or_default().push(name.key());
        }
        let rule = |((unit, issued), names): ((&str, String), Vec<&str>)| {
            format!("`{unit}` is held by {}, issued {issued}.", names.join(", "))
        };
        lines.extend(rules.into_iter().map(rule));
        lines.join("\n") + "\n"
    }
}

impl Memory {
    /// Its name in a sentence.
    fn label(self) -> &'static str {
        match self {
            Memory::Registers => "registers",
            Memory::Shared => "shared memory",
            Memory::Tensor => "tensor memory",
        }
    }
}

fn who(issue_width: u32, execution: Execution) -> String {
    let warps = if issue_width == 1 { "by one warp" } else { "by a warp group" };
    match execution {
        Execution::Synchronous => format!("and executed {warps}"),
        Execution::Asynchronous => format!("asynchronously {warps}"),
    }
}
