//! Writes a module as text that says everything but places: two texts of one kernel, in whichever forms, give the same.

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use super::ast::{BlockId, Module, OperationId, RegionId, ValueId};

impl fmt::Display for Module {
    /// The module in a form close to MLIR's generic form, with values and blocks numbered in order, one operation a line.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer { module: self, values: HashMap::new(), blocks: HashMap::new() };
        let mut text = String::new();
        printer.operation(&mut text, self.top(), 0)?;
        formatter.write_str(&text)
    }
}

struct Printer<'module> {
    module: &'module Module,
    values: HashMap<ValueId, usize>,
    blocks: HashMap<BlockId, usize>,
}

impl Printer<'_> {
    fn value(&mut self, id: ValueId) -> String {
        let next = self.values.len();
        format!("%{}", self.values.entry(id).or_insert(next))
    }

    fn block(&mut self, id: BlockId) -> String {
        let next = self.blocks.len();
        format!("^{}", self.blocks.entry(id).or_insert(next))
    }

    fn values(&mut self, ids: &[ValueId]) -> String {
        ids.iter().map(|id| self.value(*id)).collect::<Vec<_>>().join(", ")
    }

    fn typed_values(&mut self, ids: &[ValueId]) -> String {
        let typed = |id: &ValueId| format!("{}: {}", self.value(*id), self.module.type_of(*id));
        ids.iter().map(typed).collect::<Vec<_>>().join(", ")
    }

    fn operation(&mut self, text: &mut String, id: OperationId, depth: usize) -> fmt::Result {
        let operation = self.module.operation(id);
        write!(text, "{:indent$}", "", indent = 2 * depth)?;
        // Operands first, so that values are numbered by their definitions even where a body stands before the results.
        let operands = self.values(&operation.operands);
        if !operation.results.is_empty() {
            write!(text, "{} = ", self.typed_values(&operation.results))?;
        }
        write!(text, "{}({operands})", operation.name)?;
        if !operation.successors.is_empty() {
            let successors: Vec<_> = operation.successors.iter().map(|block| self.block(*block)).collect();
            write!(text, "[{}]", successors.join(", "))?;
        }
        if !operation.attributes.is_empty() {
            write!(text, " {}", operation.attributes)?;
        }
        for region in &operation.regions {
            self.region(text, *region, depth)?;
        }
        text.push('\n');
        Ok(())
    }

    fn region(&mut self, text: &mut String, id: RegionId, depth: usize) -> fmt::Result {
        text.push_str(" {\n");
        for block in &self.module.region(id).blocks {
            let arguments = self.typed_values(&self.module.block(*block).arguments);
            writeln!(text, "{:indent$}{}({arguments}):", "", self.block(*block), indent = 2 * depth)?;
            for operation in &self.module.block(*block).operations {
                self.operation(text, *operation, depth + 1)?;
            }
        }
        write!(text, "{:indent$}}}", "", indent = 2 * depth)
    }
}
