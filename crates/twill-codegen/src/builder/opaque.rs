//! Operations that no pass has a rule for: whoever reads the result executes them as they are, where it reads it.

use crate::builder::reader::{LoopScope, Reader};
use crate::error::{Error, ONE_SUB_TILE};
use crate::in_order::{combine_region, opaque};
use crate::ir::names;
use crate::ir::{Form, Node, Note, Op, Opaque, Region, VariableId};
use twill_triton::kernel::{axis_of, is_pure};
use twill_triton::mlir::{OperationId, ValueId};

impl Reader<'_, '_> {
    /// Executes an operation; the variable that holds this part of its result.
    pub(super) fn opaque(
        &mut self,
        id: OperationId,
        region: &Region,
        program: Option<u32>,
        at: LoopScope,
    ) -> Result<VariableId, Error> {
        let module = self.lowering.module;
        let operation = module.operation(id);
        if !is_pure(operation) {
            let way_out = "move it out of the kernel, or schedule without generating code";
            return Err(self.lowering.unsupported(id, format!("`{}`", operation.name), way_out));
        }
        let mut operands = Vec::new();
        for (place, operand) in operation.operands.iter().enumerate() {
            let part = self.operand_region(id, place, *operand, region)?;
            operands.push(self.value(*operand, &part, program, at)?);
        }
        let lowering = &self.lowering;
        let outside =
            |_: ValueId| Err(lowering.unsupported(id, "a reduction by a number of around it", "use constants"));
        let combine = combine_region(module, id, &outside)?;
        let read = module.read_result(id);
        let found = operands.iter().map(|operand| self.group.section_of(operand)).max().unwrap_or(0);
        let section = if self.group.late { self.group.last() } else { found };
        let mut results = Vec::new();
        for value in &operation.results {
            let stem = names::of_value(module, *value);
            let wish = if Some(*value) == read { stem } else { format!("{stem}_unused") };
            let element = self.lowering.element(*value);
            results.push(self.group.variable(&wish, &region.extents, element, Form::Any));
        }
        let place = operation.results.iter().position(|value| Some(*value) == read).unwrap_or(0);
        let Some(variable) = results.get(place).copied() else {
            return Err(self.lowering.defect(id, "what this operation makes"));
        };
        let operation = Box::new(Opaque { combine, ..opaque(operation) });
        let op = Op::Opaque { operation, operands, results: results.clone() };
        match at {
            Some((index, _)) => {
                results.iter().for_each(|result| self.group.define(*result, index + 1));
                // What is said about the operation that reads it stays with that.
                let note = std::mem::take(&mut self.group.note);
                self.group.act(op);
                self.group.note = note;
            }
            None => {
                results.iter().for_each(|result| self.group.define(*result, section));
                let note = Note { line: names::line(module, id), ..Note::default() };
                self.group.place(section, Node::Op(op, note));
            }
        }
        Ok(variable)
    }

    /// The part of an operand that a part of the result is made of.
    fn operand_region(
        &self,
        id: OperationId,
        place: usize,
        operand: ValueId,
        region: &Region,
    ) -> Result<Region, Error> {
        let module = self.lowering.module;
        let own = self.lowering.shape(operand);
        let result = module.read_result(id).map(|value| self.lowering.shape(value)).unwrap_or_default();
        if *region == Region::whole(&result) {
            return Ok(Region::whole(&own));
        }
        let refused = || self.lowering.unsupported(id, "a part of what this operation makes", ONE_SUB_TILE);
        let (rank, along) = (result.len(), axis_of(module, id));
        match (module.operation(id).name.as_str(), along) {
            // Rows × depth, depth × columns, and what the product is added to.
            ("tt.dot", _) if own.len() == 2 => Ok(match place {
                0 | 1 => region.all_along(1 - place, own[1 - place]),
                _ => region.clone(),
            }),
            _ if own.is_empty() => Ok(Region::whole(&own)),
            (_, Some(axis)) if own.len() == rank && region.is_all_along(axis, &result) => {
                Ok(region.all_along(axis, own.get(axis).copied().unwrap_or(1)))
            }
            (_, Some(axis)) if own.len() == rank + 1 => Ok(region.with(axis, own.get(axis).copied().unwrap_or(1))),
            (_, Some(axis)) if own.len() + 1 == rank && region.is_all_along(axis, &result) => Ok(region.without(axis)),
            ("tt.reshape", _) => self.before_reshape(id, &own, &result, region).ok_or_else(refused),
            _ => Err(refused()),
        }
    }

    /// The part of a tensor that a part of it in another shape is, if that is cut along dimensions which the two have in common.
    fn before_reshape(&self, id: OperationId, own: &[u64], result: &[u64], region: &Region) -> Option<Region> {
        let sources = twill_triton::kernel::view_dimensions(self.lowering.module, id);
        let mut part = Region::whole(own);
        for (d, extent) in result.iter().enumerate().filter(|(d, extent)| region.extents[*d] != **extent) {
            let source = sources.get(d).copied().flatten().filter(|source| own.get(*source) == Some(extent))?;
            (part.starts[source], part.extents[source]) = (region.starts[d], region.extents[d]);
        }
        Some(part)
    }
}
