//! What a program declares: its parameters, descriptors and loops.

use crate::builder::kernel::KernelBuilder;
use crate::builder::source::LoopFacts;
use crate::error::Error;
use crate::ir::*;
use twill_triton::Kernel;
use twill_triton::mlir::{Definition, Module, OperationId, Type, ValueId};
use twill_triton::retile_loop::{AT_LEAST, SOURCE_STEP};

impl KernelBuilder<'_> {
    /// The descriptor of a parameter for blocks of a shape.
    pub fn descriptor(&mut self, value: ValueId, block: &[u64], id: OperationId) -> Result<DescriptorId, Error> {
        let Definition::Argument { block: of, .. } = self.module.definition(value) else {
            return Err(self.unsupported(
                id,
                "tensor descriptors that are made inside the kernel",
                "pass the descriptor as an argument",
            ));
        };
        debug_assert_eq!(of, self.block);
        let parameter = self.module.value(value).name.clone();
        let element = match self.module.type_of(value) {
            Type::TensorDescriptor(block) => block.element().clone(),
            other => other.clone(),
        };
        Ok(self.described(parameter, block, element, None))
    }

    /// The descriptor of a matrix behind a pointer for blocks of a shape.
    pub fn matrix_descriptor(&mut self, tile: &twill_triton::kernel::MatrixTile, block: &[u64]) -> DescriptorId {
        use twill_triton::kernel::Amount as Known;
        let matrix = &tile.matrix;
        let name = |value: ValueId| self.module.value(value).name.clone();
        let amount = |known: Known| match known {
            Known::Argument(value) => Amount::Parameter(name(value)),
            Known::Constant(number) => Amount::Constant(number),
        };
        let element = match self.module.type_of(matrix.base) {
            Type::Pointer { pointee, .. } => (**pointee).clone(),
            other => other.clone(),
        };
        let (parameter, extents) = (name(matrix.base), matrix.extents.map(amount));
        let natural = tile.natural.iter().map(|value| name(*value)).collect();
        let matrix = Matrix { extents, stride: amount(matrix.stride), natural };
        self.described(parameter, block, element, Some(matrix))
    }

    fn described(&mut self, parameter: String, block: &[u64], element: Type, matrix: Option<Matrix>) -> DescriptorId {
        let alike = |d: &Descriptor| d.parameter == parameter && d.block == block;
        let found = self.program.descriptors.iter().position(|d| alike(d) && d.matrix == matrix);
        let others = self.program.descriptors.iter().filter(|d| alike(d)).count();
        let position = found.unwrap_or_else(|| {
            let extents: Vec<String> = block.iter().map(u64::to_string).collect();
            let mut name = format!("{parameter}_{}", extents.join("x"));
            if others > 0 {
                // The same tensor seen as another matrix.
                name = format!("{name}_{others}");
            }
            self.program.descriptors.push(Descriptor { name, parameter, block: block.to_vec(), element, matrix });
            self.program.descriptors.len() - 1
        });
        DescriptorId::at(position)
    }
}

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
pub(super) fn parameters(kernel: &Kernel) -> Vec<Parameter> {
    let module = kernel.module();
    let mut parameters: Vec<Parameter> = Vec::new();
    let mut skip = 0;
    for (index, value) in module.arguments(kernel.function()).iter().enumerate() {
        if skip > 0 {
            skip -= 1;
            continue;
        }
        let kind = module.type_of(*value).clone();
        if let Type::TensorDescriptor(block) = &kind {
            skip = 2 * block.shape().map_or(0, <[_]>::len);
        }
        let attributes = module.argument_attributes(kernel.function(), index);
        let divisible_by_16 = attributes.and_then(|a| a.integer("tt.divisibility")).is_some_and(|d| d % 16 == 0);
        let at_least = attributes.and_then(|a| a.integer(AT_LEAST));
        parameters.push(Parameter { name: module.value(*value).name.clone(), kind, divisible_by_16, at_least });
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
