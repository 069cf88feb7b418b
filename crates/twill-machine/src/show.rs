//! A machine for people: every number, where it comes from, and who executes what.

use crate::machine::{Machine, Memory};
use crate::provenance::Row;
use std::collections::BTreeMap;
use std::fmt;
use twill_graph::Execution;

impl Row {
    /// The number as people write it: no fraction where it has none.
    pub fn number(&self) -> String {
        self.value.to_string()
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.architecture)?;
        if !self.description.is_empty() {
            write!(f, ": {}", self.description)?;
        }
        let core = &self.tensor_core;
        let places = |memories: &[Memory]| memories.iter().map(|m| m.label()).collect::<Vec<_>>().join(" or ");
        let issued = who(core.issue_width, core.execution);
        writeln!(f, "\nMatrix multiplies hold `{}`, issued {issued}:", core.unit)?;
        let (left, right) = (places(&core.left_operand), places(&core.right_operand));
        writeln!(
            f,
            "accumulators in {}, left operands in {left}, right operands in {right}.",
            core.accumulator.label()
        )?;
        let mut rules: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
        for (name, rule) in &self.rules {
            let kind = (rule.unit.as_str(), who(rule.issue_width, rule.execution));
            rules.entry(kind).or_default().push(name.key());
        }
        for ((unit, issued), names) in rules {
            writeln!(f, "`{unit}` is held by {}, issued {issued}.", names.join(", "))?;
        }
        f.write_str("\n")?;
        let width = |column: fn(&Row) -> String, title: &str| {
            self.rows.iter().map(|r| column(r).chars().count()).chain([title.len()]).max().unwrap_or(0)
        };
        let key = width(|r| r.key.clone(), "number");
        let value = width(Row::number, "value");
        let unit = width(|r| r.unit.to_owned(), "unit");
        writeln!(f, "{:key$}  {:>value$}  {:unit$}  {:10}  source", "number", "value", "unit", "provenance")?;
        for row in &self.rows {
            write!(f, "{:key$}  {:>value$}  ", row.key, row.number())?;
            writeln!(f, "{:unit$}  {:10}  {}", row.unit, row.provenance, row.source)?;
        }
        Ok(())
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
