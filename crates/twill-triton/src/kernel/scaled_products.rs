//! Products of operands with scales (`tl.dot_scaled`: mxfp8, mxfp4, nvfp4's shapes with e8m0 scales) as products of 16-bit floats:
//! no tensor core of Hopper knows scales.
//!
//! As Triton's own `DecomposeScaledBlocked` has it: operands are converted to bf16, or to f16 where one of them is f16, and
//! multiplied by their scales there. A scale is a power of two, of the exponent that a byte is (OCP Microscaling Formats 1.0, 5.4.1);
//! 255 is no number. A scale that is always 1 is left out.

use crate::mlir::{Attribute, Dimension, FloatKind, FloatValue, Module, NewOperation, OperationId, Type, ValueId};

/// The module with all products of a function without scales, but those of formats that this does not convert.
pub(crate) fn without_scales(mut module: Module, function: OperationId) -> Module {
    let scaled: Vec<OperationId> =
        module.walk(function).filter(|id| module.operation(*id).name == "tt.dot_scaled").collect();
    for id in &scaled {
        if let Some(product) = Product::of(&module, *id) {
            multiply(&mut module, *id, &product);
        }
    }
    if !scaled.is_empty() {
        module.number_uses();
    }
    module
}

/// A product that can be converted.
struct Product {
    sides: [Side; 2],
    sum: ValueId,
    /// The type of operands of the product without scales.
    element: FloatKind,
    /// Scales are taken for numbers.
    is_fast: bool,
}

/// An operand.
struct Side {
    value: ValueId,
    format: Format,
    scale: Option<ValueId>,
    /// The dimension that the product sums over.
    depth: usize,
    /// The dimension along which a byte has two elements.
    packed: usize,
}

/// What an operand's elements are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    /// Floats of a type of their own.
    Float,
    /// Two floats in a byte, of a sign, two bits of the exponent and one of the mantissa, the first in the lower bits.
    E2m1,
}

impl Product {
    fn of(module: &Module, id: OperationId) -> Option<Product> {
        let operation = module.operation(id);
        let Some(Attribute::Integers(segments)) = operation.attributes.get("operandSegmentSizes") else { return None };
        let &[1, 1, 1, with_a, with_b] = segments.as_slice() else { return None };
        let (&[a, b, sum], mut scales) = (operation.operands.first_chunk()?, operation.operands.iter().skip(3));
        let mut scale = |given: i64| if given == 0 { None } else { scales.next().copied() };
        let (scale_a, scale_b) = (scale(with_a), scale(with_b));
        let rank = module.type_of(a).known_shape()?.len();
        let is_of_rank = |value: ValueId| module.type_of(value).known_shape().is_some_and(|shape| shape.len() == rank);
        if ![Some(b), scale_a, scale_b].into_iter().flatten().all(is_of_rank) {
            return None;
        }
        let (rows, columns) = (rank.checked_sub(2)?, rank - 1);
        let along_depth = |name| !matches!(operation.attributes.get(name), Some(Attribute::Bool(false)));
        let side = |value, name, scale: Option<ValueId>, depth, other, packed| {
            let format = match operation.attributes.text(name)? {
                "e4m3" | "e5m2" | "bf16" | "fp16" => Format::Float,
                "e2m1" => Format::E2m1,
                _ => return None,
            };
            let packed = if along_depth(packed) { depth } else { other };
            Some(Side { value, format, scale: scale.filter(|s| !is_one(module, *s)), depth, packed })
        };
        let sides = [
            side(a, "a_elem_type", scale_a, columns, rows, "lhs_k_pack")?,
            side(b, "b_elem_type", scale_b, rows, columns, "rhs_k_pack")?,
        ];
        let of = |side: &Side| module.type_of(side.value).element().clone();
        let is_half = sides.iter().any(|side| of(side) == Type::Float(FloatKind::F16));
        let element = if is_half { FloatKind::F16 } else { FloatKind::BF16 };
        let is_known = |side: &Side| {
            let is_read = match side.format {
                Format::E2m1 => of(side) == Type::Integer(8),
                Format::Float => match of(side) {
                    Type::Float(FloatKind::F8E4M3FN | FloatKind::F8E5M2) => true,
                    other => other == Type::Float(element),
                },
            };
            is_read && side.scale.is_none_or(|scale| *module.type_of(scale).element() == Type::Integer(8))
        };
        let is_fast = operation.attributes.flag("fastMath");
        sides.iter().all(is_known).then_some(Product { sides, sum, element, is_fast })
    }
}

/// Whether a scale is 2⁰ for every block.
fn is_one(module: &Module, scale: ValueId) -> bool {
    module.integer_constant(scale) == Some(127)
}

/// Makes an operation the product of its operands with their scales.
fn multiply(module: &mut Module, id: OperationId, product: &Product) {
    let mut code = Code { module, before: id, element: product.element };
    let operands: Option<Vec<ValueId>> = product.sides.iter().map(|side| code.operand(side, product.is_fast)).collect();
    let Some(operands) = operands else { return };
    module.rename(id, "tt.dot");
    for name in ["a_elem_type", "b_elem_type", "fastMath", "lhs_k_pack", "rhs_k_pack"] {
        module.take_attribute(id, name);
    }
    module.replace_operands(id, [operands, vec![product.sum]].concat());
}

/// Operations before another.
struct Code<'m> {
    module: &'m mut Module,
    before: OperationId,
    element: FloatKind,
}

impl Code<'_> {
    fn add(&mut self, name: &str, operands: Vec<ValueId>, attributes: Vec<(&str, Attribute)>, kind: Type) -> ValueId {
        let new = NewOperation { name, operands, attributes, result: (kind, "scaled"), like: self.before };
        self.module.insert_before(self.before, new)
    }

    /// An operation on two tiles of one type, or on a tile and a number.
    fn with(&mut self, name: &str, value: ValueId, number: i128) -> ValueId {
        let kind = self.kind(value);
        let number = self.number(kind.clone(), number);
        self.add(name, vec![value, number], Vec::new(), kind)
    }

    fn number(&mut self, kind: Type, value: i128) -> ValueId {
        let value = Attribute::Integer { value, kind: kind.element().clone() };
        self.constant(kind, value)
    }

    fn float(&mut self, kind: Type, value: f64) -> ValueId {
        let value = Attribute::Float { value: FloatValue(value), kind: kind.element().clone() };
        self.constant(kind, value)
    }

    fn constant(&mut self, kind: Type, value: Attribute) -> ValueId {
        let splat = Attribute::Splat { value: Box::new(value), kind: kind.clone() };
        self.add("arith.constant", Vec::new(), vec![("value", splat)], kind)
    }

    fn kind(&self, value: ValueId) -> Type {
        self.module.type_of(value).clone()
    }

    fn convert(&mut self, name: &str, value: ValueId, element: Type) -> ValueId {
        let kind = self.kind(value).with_element(element);
        self.add(name, vec![value], Vec::new(), kind)
    }

    fn shaped(&mut self, name: &str, value: ValueId, attributes: Vec<(&str, Attribute)>, shape: &[u64]) -> ValueId {
        let shape = shape.iter().map(|extent| Dimension::Known(*extent)).collect();
        let kind = Type::Tensor { shape, element: Box::new(self.kind(value).element().clone()), encoding: None };
        self.add(name, vec![value], attributes, kind)
    }

    fn transposed(&mut self, value: ValueId, order: &[usize]) -> Option<ValueId> {
        let shape = self.kind(value).known_shape()?;
        let to: Vec<u64> = order.iter().map(|d| shape[*d]).collect();
        let order = Attribute::Integers(order.iter().map(|d| i64::try_from(*d).unwrap_or(0)).collect());
        Some(self.shaped("tt.trans", value, vec![("order", order)], &to))
    }

    /// An operand in 16-bit floats, times its scale.
    fn operand(&mut self, side: &Side, is_fast: bool) -> Option<ValueId> {
        let (value, wanted) = match side.format {
            Format::E2m1 => (self.unpacked(side.value, side.packed)?, Type::Float(self.element)),
            Format::Float => (side.value, Type::Float(self.element)),
        };
        let value =
            if *self.kind(value).element() == wanted { value } else { self.convert("tt.fp_to_fp", value, wanted) };
        let Some(scale) = side.scale else { return Some(value) };
        let scale = self.scale(scale, is_fast);
        let scale = self.spread(scale, &self.kind(value).known_shape()?, side.depth)?;
        let kind = self.kind(value);
        Some(self.add("arith.mulf", vec![value, scale], Vec::new(), kind))
    }

    /// The floats that bytes of two are, of each byte the lower one first along a dimension.
    fn unpacked(&mut self, bytes: ValueId, packed: usize) -> Option<ValueId> {
        let mut shape = self.kind(bytes).known_shape()?;
        let rank = shape.len();
        let upper = self.with("arith.shrui", bytes, 4);
        shape.push(2);
        let pair = Type::Tensor {
            shape: shape.iter().map(|extent| Dimension::Known(*extent)).collect(),
            element: Box::new(Type::Integer(8)),
            encoding: None,
        };
        let mut all = self.add("tt.join", vec![bytes, upper], Vec::new(), pair);
        if packed + 1 < rank {
            let order: Vec<usize> = (0..=packed).chain([rank]).chain(packed + 1..rank).collect();
            all = self.transposed(all, &order)?;
        }
        shape.pop();
        shape[packed] *= 2;
        let all = self.shaped("tt.reshape", all, Vec::new(), &shape);
        // Exponent and mantissa in the place that they have in a 16-bit float: with its bias, that is so much too small.
        let (mantissa, bias) = if self.element == FloatKind::F16 { (10, 15) } else { (7, 127) };
        let wide = self.convert("arith.extui", all, Type::Integer(16));
        let magnitude = self.with("arith.andi", wide, 7);
        let magnitude = self.with("arith.shli", magnitude, mantissa - 1);
        let sign = self.with("arith.andi", wide, 8);
        let sign = self.with("arith.shli", sign, 12);
        let kind = self.kind(wide);
        let bits = self.add("arith.ori", vec![magnitude, sign], Vec::new(), kind);
        let small = self.convert("tt.bitcast", bits, Type::Float(self.element));
        let kind = self.kind(small);
        let factor = self.float(kind.clone(), 2_f64.powi(bias - 1));
        Some(self.add("arith.mulf", vec![small, factor], Vec::new(), kind))
    }

    /// The powers of two of which bytes are the exponents.
    fn scale(&mut self, exponents: ValueId, is_fast: bool) -> ValueId {
        // f16 has not enough of them: such a scale is rounded from f32.
        let (wide, bits, mantissa) = match self.element {
            FloatKind::F16 => (FloatKind::F32, 32, 23),
            other => (other, 16, 7),
        };
        let integers = self.convert("arith.extui", exponents, Type::Integer(bits));
        let bits = self.with("arith.shli", integers, mantissa);
        let mut scale = self.convert("tt.bitcast", bits, Type::Float(wide));
        if wide != self.element {
            scale = self.convert("arith.truncf", scale, Type::Float(self.element));
        }
        if is_fast {
            return scale;
        }
        let kind = self.kind(exponents);
        let last = self.number(kind.clone(), -1);
        let equal = vec![("predicate", Attribute::Enumeration("eq".into()))];
        let is_none = self.add("arith.cmpi", vec![exponents, last], equal, kind.with_element(Type::Integer(1)));
        let kind = self.kind(scale);
        let none = self.float(kind.clone(), f64::NAN);
        self.add("arith.select", vec![is_none, none, scale], Vec::new(), kind)
    }

    /// Scales of rows and blocks of the depth for every element of an operand of a shape; `None` if they do not divide it.
    fn spread(&mut self, scale: ValueId, shape: &[u64], depth: usize) -> Option<ValueId> {
        let mut of = self.kind(scale).known_shape()?;
        let rank = of.len();
        let (blocks, depth_extent) = (*of.last()?, *shape.get(depth)?);
        let each = depth_extent.checked_div(blocks).filter(|each| each * blocks == depth_extent)?;
        of.push(1);
        let axis = Attribute::Integer { value: i128::try_from(rank).ok()?, kind: Type::Integer(32) };
        let scale = self.shaped("tt.expand_dims", scale, vec![("axis", axis)], &of);
        of[rank] = each;
        let scale = self.shaped("tt.broadcast", scale, Vec::new(), &of);
        of.pop();
        of[rank - 1] = depth_extent;
        let scale = self.shaped("tt.reshape", scale, Vec::new(), &of);
        if depth + 1 == rank {
            return (of == shape).then_some(scale);
        }
        let order: Vec<usize> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
        let scale = self.transposed(scale, &order)?;
        (self.kind(scale).known_shape()? == shape).then_some(scale)
    }
}
