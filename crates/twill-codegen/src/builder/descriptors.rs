//! The descriptors of TMA that a program declares.

use crate::builder::kernel::KernelBuilder;
use crate::error::Error;
use crate::ir::{Amount, Descriptor, DescriptorId, Formula, Matrix, Operator};
use twill_triton::kernel::{LaunchNumber, LaunchOperator};
use twill_triton::mlir::{Definition, Module, OperationId, Type, ValueId};

impl KernelBuilder<'_> {
    /// The descriptor of a parameter for blocks of a shape.
    pub fn descriptor(&mut self, value: ValueId, block: &[u64], id: OperationId) -> Result<DescriptorId, Error> {
        let of = match self.module.definition(value) {
            Definition::Argument { block, .. } => block,
            Definition::Result { operation, .. } => return self.made_descriptor(operation, block, id),
        };
        if self.depth_of(Some(of)) != Some(0) {
            return Err(self.unsupported(id, "a descriptor that a loop carries", "pass the descriptor as an argument"));
        }
        let parameter = self.module.value(value).name.clone();
        let (element, rank) = match self.module.type_of(value) {
            Type::TensorDescriptor(of) => (of.element().clone(), of.known_shape().unwrap_or_default().len()),
            other => (other.clone(), block.len()),
        };
        // A tile may lack the dimensions of one that come first.
        let block = [vec![1; rank.saturating_sub(block.len())].as_slice(), block].concat();
        Ok(self.described(parameter, &block, element, None))
    }

    /// A descriptor that the kernel makes of what its caller knows as well: the caller makes it.
    fn made_descriptor(&mut self, made: OperationId, block: &[u64], id: OperationId) -> Result<DescriptorId, Error> {
        let module = self.module;
        let operation = module.operation(made);
        let refused = |this: &Self| {
            this.unsupported(
                id,
                "a tensor descriptor that is made in the kernel of more than arguments and constants, or not of two dimensions",
                "pass the descriptor as an argument",
            )
        };
        let &[base, rows, columns, stride, step] = operation.operands.as_slice() else { return Err(refused(self)) };
        let known = operation.name == "tt.make_tensor_descriptor" && module.integer_constant(step) == Some(1);
        let is_argument = |value: ValueId| match module.definition(value) {
            Definition::Argument { block, .. } => self.depth_of(Some(block)) == Some(0),
            Definition::Result { .. } => false,
        };
        let Type::Pointer { pointee, .. } = module.type_of(base).clone() else { return Err(refused(self)) };
        let amount = |mut value: ValueId| loop {
            if let Some(number) = module.integer_constant(value) {
                return u64::try_from(number).ok().map(Amount::Constant);
            }
            if is_argument(value) {
                return Some(Amount::Parameter(module.value(value).name.clone()));
            }
            // The same number in other bits.
            let inner = module.operation(module.defining_operation(value)?);
            value = match (inner.name.as_str(), inner.operands.as_slice()) {
                ("arith.extsi" | "arith.extui" | "arith.trunci", [inner]) => *inner,
                _ => return None,
            };
        };
        let amounts = [rows, columns, stride].map(amount);
        match amounts {
            [Some(rows), Some(columns), Some(stride)] if known && is_argument(base) => {
                let (batches, natural) = (Vec::new(), Vec::new());
                let matrix = Matrix { batches, extents: [rows, columns], stride, rows_before: 0, natural };
                let parameter = module.value(base).name.clone();
                Ok(self.described(parameter, block, *pointee, Some(matrix)))
            }
            _ => Err(refused(self)),
        }
    }

    /// The descriptor of the matrices behind a pointer for blocks of a shape, each of one of them.
    pub fn matrix_descriptor(&mut self, tile: &twill_triton::kernel::MatrixTile, block: &[u64]) -> DescriptorId {
        use twill_triton::kernel::Amount as Known;
        let matrix = &tile.matrix;
        let name = |value: ValueId| self.module.value(value).name.clone();
        let amount = |known: &Known| match known {
            Known::Argument(value) => Amount::Parameter(name(*value)),
            Known::Constant(number) => Amount::Constant(*number),
        };
        let element = match self.module.type_of(matrix.base) {
            Type::Pointer { pointee, .. } => (**pointee).clone(),
            other => other.clone(),
        };
        let (parameter, extents) = (name(matrix.base), matrix.extents.each_ref().map(amount));
        let batches: Vec<Amount> = matrix.batches.iter().map(amount).collect();
        let block = [vec![1; batches.len()].as_slice(), block].concat();
        let natural = tile.natural.iter().map(|number| formula(number, &name)).collect();
        let (stride, rows_before) = (amount(&matrix.stride), matrix.rows_before);
        let matrix = Matrix { batches, extents, stride, rows_before, natural };
        self.described(parameter, &block, element, Some(matrix))
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

/// A number of the launch, with the names of parameters.
fn formula(number: &LaunchNumber, name: &dyn Fn(ValueId) -> String) -> Formula {
    match number {
        LaunchNumber::Argument(value) => Formula::Name(name(*value).into()),
        LaunchNumber::Constant(number) => Formula::Number(*number),
        LaunchNumber::Programs(axis) => Formula::Name(format!("programs_{axis}").into()),
        LaunchNumber::Of(operator, a, b) => {
            let operator = match operator {
                LaunchOperator::Plus => Operator::Add,
                LaunchOperator::Minus => Operator::Sub,
                LaunchOperator::Times => Operator::Mul,
                LaunchOperator::Over => Operator::Div,
                LaunchOperator::Min => Operator::Min,
                LaunchOperator::Max => Operator::Max,
            };
            Formula::Binary(operator, Box::new(formula(a, name)), Box::new(formula(b, name)))
        }
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
