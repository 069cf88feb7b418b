//! Functions of numbers that are mapped over tiles (`tl.map_elementwise`) as operations on tiles.
//!
//! Where a function branches, both ways are taken for every element, and one is selected: what has no effect may be done in vain.

use crate::mlir::{Attribute, BlockId, Copies, Module, NewOperation, OperationId, Type, ValueId};
use crate::operations::is_pure;

/// The module with every function that is mapped over single elements of tiles written out, but those with loops.
pub(crate) fn written_out(mut module: Module, function: OperationId) -> Module {
    let mapped: Vec<OperationId> =
        module.walk(function).filter(|id| module.operation(*id).name == "tt.map_elementwise").collect();
    for id in &mapped {
        let operation = module.operation(*id);
        let is_of_single_elements = operation.attributes.integer("pack").unwrap_or(1) == 1;
        let (operands, results) = (operation.operands.clone(), operation.results.clone());
        let Some(body) = module.body(*id).filter(|body| is_of_single_elements && can_be_written_out(&module, *body))
        else {
            continue;
        };
        let Some(tile) = operands.first().map(|first| module.type_of(*first).clone()) else { continue };
        let mut copies: Copies = module.block(body).arguments.iter().copied().zip(operands).collect();
        let values = Writer { module: &mut module, before: *id, tile }.block(body, &mut copies);
        for (old, new) in results.into_iter().zip(values) {
            module.replace_uses(old, new);
        }
        module.remove(*id);
    }
    if !mapped.is_empty() {
        module.number_uses();
    }
    module
}

/// Whether nothing of a function, or of a branch in it, has an effect or repeats.
fn can_be_written_out(module: &Module, block: BlockId) -> bool {
    module.block(block).operations.iter().all(|id| {
        let operation = module.operation(*id);
        match operation.name.as_str() {
            "tt.map_elementwise.return" | "scf.yield" => true,
            "scf.if" if operation.operands.len() != 1 => false,
            "scf.if" => operation.regions.iter().all(|region| match module.region(*region).blocks.as_slice() {
                [way] => can_be_written_out(module, *way),
                ways => ways.is_empty() && operation.results.is_empty(),
            }),
            _ => operation.regions.is_empty() && operation.successors.is_empty() && is_pure(operation),
        }
    })
}

/// Writes operations on tiles before an operation.
struct Writer<'m> {
    module: &'m mut Module,
    before: OperationId,
    /// The type of a tile that the function is mapped over.
    tile: Type,
}

impl Writer<'_> {
    /// What a block of numbers gives back, of tiles.
    fn block(&mut self, block: BlockId, copies: &mut Copies) -> Vec<ValueId> {
        for id in self.module.block(block).operations.clone() {
            let operation = self.module.operation(id).clone();
            let (name, operands, results) = (operation.name, operation.operands, operation.results);
            if matches!(name.as_str(), "tt.map_elementwise.return" | "scf.yield") {
                return operands.iter().map(|value| self.tile_of(*value, copies)).collect();
            }
            for value in &operands {
                let tile = self.tile_of(*value, copies);
                copies.insert(*value, tile);
            }
            if name == "scf.if" {
                let [then, otherwise] = [0, 1].map(|way| {
                    let region = operation.regions.get(way).map(|region| self.module.region(*region).blocks.clone());
                    let way = region.and_then(|blocks| blocks.first().copied());
                    way.map(|way| self.block(way, copies)).unwrap_or_default()
                });
                for ((result, then), otherwise) in results.into_iter().zip(then).zip(otherwise) {
                    let kind = self.module.type_of(then).clone();
                    let operands = vec![copies[&operands[0]], then, otherwise];
                    let selected = self.add("arith.select", operands, Vec::new(), kind);
                    copies.insert(result, selected);
                }
                continue;
            }
            self.module.clone_before(id, self.before, copies, "");
            for result in results {
                let Some(copy) = copies.get(&result).copied() else { continue };
                let kind = self.tile.with_element(self.module.type_of(result).clone());
                self.module.set_type(copy, kind.clone());
                let constant = self.module.constant(copy).cloned();
                if let (Some(constant), Some(id)) = (constant, self.module.defining_operation(copy)) {
                    self.module.set_attribute(id, "value", Attribute::Splat { value: Box::new(constant), kind });
                }
            }
        }
        Vec::new()
    }

    /// The tile of a number: of the function's own, or of one around it in every element.
    fn tile_of(&mut self, value: ValueId, copies: &Copies) -> ValueId {
        if let Some(copy) = copies.get(&value) {
            return *copy;
        }
        let kind = self.tile.with_element(self.module.type_of(value).clone());
        match self.module.constant(value).cloned() {
            Some(constant) => {
                let splat = Attribute::Splat { value: Box::new(constant), kind: kind.clone() };
                self.add("arith.constant", Vec::new(), vec![("value", splat)], kind)
            }
            None => self.add("tt.splat", vec![value], Vec::new(), kind),
        }
    }

    fn add(&mut self, name: &str, operands: Vec<ValueId>, attributes: Vec<(&str, Attribute)>, kind: Type) -> ValueId {
        let new = NewOperation { name, operands, attributes, result: (kind, "mapped"), like: self.before };
        self.module.insert_before(self.before, new)
    }
}
