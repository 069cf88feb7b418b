//! Values that are known at compile time, and what the caller promises about arguments.

use super::ast::{Module, OperationId, ValueId};
use super::attributes::{Attribute, Attributes};

impl Module {
    /// The constant that a value is, if an `arith.constant` defines it.
    pub fn constant(&self, id: ValueId) -> Option<&Attribute> {
        let operation = self.operation(self.defining_operation(id)?);
        if operation.name == "arith.constant" { operation.attributes.get("value") } else { None }
    }

    /// The integer that a value is, or that every element of it is.
    pub fn integer_constant(&self, id: ValueId) -> Option<i128> {
        match self.constant(id)?.number()? {
            Attribute::Integer { value, .. } => Some(*value),
            Attribute::Bool(value) => Some(i128::from(*value)),
            _ => None,
        }
    }

    /// The number that a value is, or that every element of it is, if its type is one of floating point.
    pub fn float_constant(&self, id: ValueId) -> Option<f64> {
        match self.constant(id)?.number()? {
            Attribute::Float { value, .. } => Some(value.0),
            _ => None,
        }
    }

    /// The attributes of a function's argument, such as `tt.divisibility`; `None` if no argument has any.
    pub fn argument_attributes(&self, function: OperationId, index: usize) -> Option<&Attributes> {
        match self.operation(function).attributes.get("arg_attrs")? {
            Attribute::Array(items) => match items.get(index)? {
                Attribute::Dictionary(attributes) => Some(attributes),
                _ => None,
            },
            _ => None,
        }
    }
}
