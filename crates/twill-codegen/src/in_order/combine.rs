//! The region with which a reduction or a scan combines two elements.

use super::{Builder, constant, elementwise};
use crate::error::Error;
use crate::ir::{CombineRegion, Expression, ExpressionKind};
use std::collections::HashMap;
use twill_triton::OperationLocation;
use twill_triton::mlir::{Module, OperationId, ValueId};

impl Builder<'_> {
    /// The region of a `tt.reduce` or `tt.scan`; none for operations without one.
    pub(super) fn combine_region(&self, id: OperationId) -> Result<Option<CombineRegion>, Error> {
        combine_region(self.module, id, &|value| self.value(value))
    }
}

/// The region of a `tt.reduce` or `tt.scan`; none for operations without one. `outside`: what it reads of around it.
pub(crate) fn combine_region(
    module: &Module,
    id: OperationId,
    outside: &dyn Fn(ValueId) -> Result<Expression, Error>,
) -> Result<Option<CombineRegion>, Error> {
    if module.operation(id).regions.is_empty() {
        return Ok(None);
    }
    let Some(block) = module.body(id) else { return Ok(None) };
    let mut values: HashMap<ValueId, Expression> = HashMap::new();
    let mut region = CombineRegion::default();
    for (k, argument) in module.block(block).arguments.iter().enumerate() {
        let element = module.type_of(*argument).clone();
        let name = format!("x{k}");
        region.arguments.push((name.clone(), element.clone()));
        let kind = ExpressionKind::Parameter(name);
        values.insert(*argument, Expression { kind, shape: Vec::new(), element });
    }
    for inner in &module.block(block).operations {
        let operation = module.operation(*inner);
        let mut operands = Vec::new();
        for operand in &operation.operands {
            let outer = || constant(module, *operand).map_or_else(|| outside(*operand), Ok);
            operands.push(values.get(operand).cloned().map_or_else(outer, Ok)?);
        }
        if operation.name.ends_with(".return") {
            region.results = operands;
            continue;
        }
        let Some(result) = operation.results.first().copied() else { continue };
        if let Some(constant) = constant(module, result) {
            values.insert(result, constant);
            continue;
        }
        let Some(known) = elementwise(module, *inner) else {
            let what = format!("`{}` in what a reduction does to two elements", operation.name);
            let way_out = "use elementwise arithmetic there";
            return Err(Error::Unsupported { place: OperationLocation::of(module, *inner), what, way_out });
        };
        let element = module.type_of(result).clone();
        let value = Expression {
            kind: ExpressionKind::Apply { operation: known, operands },
            shape: Vec::new(),
            element: element.clone(),
        };
        let name = format!("y{}", region.body.len());
        region.body.push((name.clone(), value));
        let kind = ExpressionKind::Parameter(name);
        values.insert(result, Expression { kind, shape: Vec::new(), element });
    }
    Ok(Some(region))
}
