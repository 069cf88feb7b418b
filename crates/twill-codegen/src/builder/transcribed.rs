//! Loops and branches next to the pipelined loops: who needs what they make executes them, one operation after another, as the
//! source has them.

use crate::builder::kernel::KernelBuilder;
use crate::builder::reader::Reader;
use crate::error::{Error, ONE_SUB_TILE};
use crate::in_order;
use crate::ir::{Expression, Region};
use crate::passes::epilogue::stores::is_store;
use std::collections::{BTreeSet, HashMap};
use twill_triton::mlir::{Definition, OperationId, ValueId};

/// Whether an operation holds others that are executed in their order.
pub(crate) fn is_structured(name: &str) -> bool {
    matches!(name, "scf.for" | "scf.while" | "scf.if")
}

impl KernelBuilder<'_> {
    /// Whether a group can execute an operation next to the pipelined loops as it stands: none of these is in it, and nothing that
    /// orders threads or programs, but in a critical section.
    pub fn is_transcribed(&self, id: OperationId) -> bool {
        if self.kernel.critical_section() == Some(id) {
            return true;
        }
        let orders = |name: &str| name.contains("atomic") || name.contains("barrier") || name == "tt.return";
        let has_loop = |inner: OperationId| self.loops.iter().any(|l| l.parts.operation == inner);
        let mut all = self.module.walk(id);
        is_structured(&self.module.operation(id).name)
            && all.all(|inner| !has_loop(inner) && !orders(&self.module.operation(inner).name))
    }

    /// Whether it stores.
    pub fn has_stores(&self, id: OperationId) -> bool {
        self.module.walk(id).any(|inner| is_store(&self.module.operation(inner).name))
    }

    /// Values of outside that are read in an operation.
    fn read_in(&self, id: OperationId) -> Vec<ValueId> {
        let inner: BTreeSet<OperationId> = self.module.walk(id).collect();
        let is_inside = |value: ValueId| match self.module.definition(value) {
            Definition::Result { operation, .. } => operation != id && inner.contains(&operation),
            Definition::Argument { block, .. } => {
                inner.contains(&self.module.region(self.module.block(block).region).operation)
            }
        };
        let read = inner.iter().flat_map(|inner| &self.module.operation(*inner).operands).copied();
        let outer: BTreeSet<ValueId> = read.filter(|value| !is_inside(*value)).collect();
        outer.into_iter().collect()
    }
}

impl Reader<'_, '_> {
    /// A result of a loop or a branch next to the pipelined loops.
    pub fn transcribed(&mut self, id: OperationId, value: ValueId, region: &Region) -> Result<Expression, Error> {
        let whole = Region::whole(&self.lowering.shape(value));
        if *region != whole {
            return Err(self.lowering.unsupported(id, "a part of what a loop or a branch makes", ONE_SUB_TILE));
        }
        if self.group.known(&(value, whole.clone(), None)).is_none() {
            self.transcribe(id)?;
        }
        match self.group.known(&(value, whole, None)) {
            Some(variable) => Ok(self.group.read(variable)),
            None => Err(self.lowering.defect(id, "a loop's result")),
        }
    }

    /// Executes a loop or a branch in the group.
    pub fn transcribe(&mut self, id: OperationId) -> Result<(), Error> {
        let module = self.lowering.module;
        let mut values = HashMap::new();
        for value in self.lowering.read_in(id) {
            let expression = self.value(value, &Region::whole(&self.lowering.shape(value)), None, None)?;
            values.insert(value, expression);
        }
        let found = values.values().map(|value| self.group.section_of(value)).max().unwrap_or(0);
        let section = if self.group.late || self.group.ending { self.group.last() } else { found };
        let function = self.lowering.kernel.function();
        let made = in_order::transcribe(module, function, id, values, &self.group.variables)?;
        for variable in made.variables {
            self.group.adopt(variable, section);
        }
        for node in made.nodes {
            self.group.place(section, node);
        }
        for (value, variable) in module.operation(id).results.iter().zip(made.results) {
            self.group.remember((*value, Region::whole(&self.lowering.shape(*value)), None), variable);
        }
        Ok(())
    }
}
