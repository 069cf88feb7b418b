//! What a program declares of its source: parameters and loops.

use crate::builder::source::LoopFacts;
use crate::builder::written::written;
use crate::ir::{LoopMetadata, Parameter};
use twill_triton::Kernel;
use twill_triton::kernel::{NOT_ZERO, POSITIVE};
use twill_triton::mlir::{Module, OperationId, Type};
use twill_triton::retile_loop::{AT_LEAST, SOURCE_STEP};

/// The step of a loop's source, if the loop has another.
fn source_step(module: &Module, of: OperationId) -> Option<u64> {
    module.operation(of).attributes.integer(SOURCE_STEP).and_then(|step| u64::try_from(step).ok())
}

/// Rows, columns and depth of the first dot in a loop.
fn first_dot(module: &Module, of: OperationId) -> Option<[u64; 3]> {
    let dot = module.walk(of).find(|id| module.operation(*id).name == "tt.dot")?;
    let shape = |operand: usize| {
        let value = module.operation(dot).operands.get(operand)?;
        <[u64; 2]>::try_from(module.type_of(*value).known_shape()?).ok()
    };
    let ([rows, depth], [_, columns]) = (shape(0)?, shape(1)?);
    Some([rows, columns, depth])
}

/// The parameters of the source; a descriptor's extents and strides belong to it.
pub(crate) fn parameters(module: &Module, function: OperationId) -> Vec<Parameter> {
    let mut parameters: Vec<Parameter> = Vec::new();
    let written = written(module, function);
    let mut skip = 0;
    for (index, value) in module.arguments(function).iter().enumerate() {
        if skip > 0 {
            skip -= 1;
            continue;
        }
        let kind = module.type_of(*value).clone();
        if let Type::TensorDescriptor(block) = &kind {
            skip = 2 * block.shape().map_or(0, <[_]>::len);
        }
        let attributes = module.argument_attributes(function, index);
        let divisible_by_16 = attributes.and_then(|a| a.integer("tt.divisibility")).is_some_and(|d| d % 16 == 0);
        let at_least = attributes.and_then(|a| a.integer(AT_LEAST));
        let [not_zero, positive] = [NOT_ZERO, POSITIVE].map(|it| attributes.and_then(|a| a.integer(it)).is_some());
        let name = module.value(*value).name.clone();
        let is_memory = matches!(kind, Type::Pointer { .. } | Type::TensorDescriptor(_));
        let read_only = is_memory && written.as_ref().is_some_and(|written| !written.contains(value));
        parameters.push(Parameter { name, kind, divisible_by_16, at_least, not_zero, positive, read_only });
    }
    parameters
}

pub(super) fn loop_of_program(kernel: &Kernel, index: usize, facts: &LoopFacts<'_>) -> LoopMetadata {
    LoopMetadata {
        name: facts.tiles.name().to_owned(),
        interval: facts.schedule.interval.0,
        stages: facts.schedule.stages(),
        dot: first_dot(kernel.module(), facts.parts.operation),
        trip_count: kernel.trip_count(index),
        source_step: source_step(kernel.module(), facts.parts.operation),
    }
}
