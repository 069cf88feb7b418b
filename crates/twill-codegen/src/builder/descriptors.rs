//! The descriptors of TMA that a program declares.

use crate::builder::kernel::KernelBuilder;
use crate::error::Error;
use crate::ir::{Amount, Descriptor, DescriptorId, Matrix};
use twill_triton::mlir::{Definition, Module, OperationId, Type, ValueId};

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
        if self.depth_of(Some(of)) != Some(0) {
            return Err(self.unsupported(id, "a descriptor that a loop carries", "pass the descriptor as an argument"));
        }
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
            let mut name = name(&parameter, block);
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

/// A descriptor's name in the code.
pub(crate) fn name(parameter: &str, block: &[u64]) -> String {
    let extents: Vec<String> = block.iter().map(u64::to_string).collect();
    format!("{parameter}_{}", extents.join("x"))
}

/// The descriptors that a kernel is given.
pub(crate) fn of_parameters(module: &Module, function: OperationId) -> Vec<Descriptor> {
    let of = |value: &ValueId| {
        let Type::TensorDescriptor(block) = module.type_of(*value) else { return None };
        let (parameter, extents) = (module.value(*value).name.clone(), block.known_shape()?);
        let name = name(&parameter, &extents);
        Some(Descriptor { name, parameter, block: extents, element: block.element().clone(), matrix: None })
    };
    module.arguments(function).iter().filter_map(of).collect()
}
