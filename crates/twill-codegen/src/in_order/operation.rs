//! One operation of the TTIR.

use super::{Builder, constant};
use crate::builder::views::{order, program_axis};
use crate::error::Error;
use crate::ir::names;
use crate::ir::{Elementwise, Expression, ExpressionKind, Node, Note, Op, Opaque};
use twill_graph::saturate;
use twill_triton::mlir::{Attribute, Module, Operation, OperationId};

/// Attributes that say nothing about what an operation computes.
const HINTS: &[&str] = &["tt.divisibility", "tt.contiguity", "tt.constancy", "operandSegmentSizes"];

impl Builder<'_> {
    pub(super) fn operation(&mut self, id: OperationId, nodes: &mut Vec<Node>) -> Result<(), Error> {
        let module = self.module;
        let line = names::line(module, id);
        if self.barriers.contains(&id) {
            nodes.push(Node::Op(Op::GroupSync, Note { line, ..Note::default() }));
        }
        if self.structured(id, nodes)? || self.is_turned_slot(id) {
            return Ok(());
        }
        let operation = module.operation(id);
        match operation.name.as_str() {
            "tt.call" | "func.call" => {
                return Err(self.unsupported(id, "a call of a function", "let it be inlined (leave noinline out)"));
            }
            "llvm.intr.assume" | "ub.poison" if operation.results.is_empty() => return Ok(()),
            "tt.store" if !has_modifiers(operation) => {
                if let [pointers, value, mask @ ..] = operation.operands.as_slice() {
                    let mask = mask.first().map(|m| self.value(*m)).transpose()?;
                    let (pointers, value) = (self.value(*pointers)?, self.value(*value)?);
                    let store = Op::GlobalStore { pointers, value, mask };
                    nodes.push(Node::Op(store, Note { line, ..Note::default() }));
                    return Ok(());
                }
            }
            _ => {}
        }
        if let [result] = operation.results.as_slice() {
            if let Some(constant) = constant(module, *result) {
                self.values.insert(*result, constant);
                return Ok(());
            }
            if let Some(kind) = self.simple(id)? {
                let of = module.type_of(*result);
                let shape = of.known_shape().unwrap_or_default();
                let value = Expression { kind, shape, element: of.element().clone() };
                self.bind(*result, value, line, nodes);
                return Ok(());
            }
        }
        if operation.name == "arith.constant" {
            return Err(self.unsupported(id, "a constant of different numbers", "compute it with tl.arange"));
        }
        let opaque = Opaque { combine: self.combine_region(id)?, ..opaque(operation) };
        let operands = self.values(&operation.operands)?;
        let results: Vec<_> = operation.results.iter().map(|v| self.variable_of(*v)).collect();
        for (value, variable) in operation.results.iter().zip(&results) {
            let read = self.read(*variable);
            self.values.insert(*value, read);
        }
        let op = Op::Opaque { operation: Box::new(opaque), operands, results };
        nodes.push(Node::Op(op, Note { line, ..Note::default() }));
        Ok(())
    }

    /// An operation as an expression; none where it is more than one.
    fn simple(&self, id: OperationId) -> Result<Option<ExpressionKind>, Error> {
        let module = self.module;
        let operation = module.operation(id);
        let boxed = |v| self.value(v).map(Box::new);
        Ok(Some(match (operation.name.as_str(), operation.operands.as_slice()) {
            ("tt.get_program_id", _) => ExpressionKind::ProgramId { axis: program_axis(operation), instance: None },
            ("tt.get_num_programs", _) => ExpressionKind::ProgramCount(program_axis(operation)),
            ("tt.make_range", _) => {
                let number = |name: &str| operation.attributes.integer(name).map_or(0, saturate::<u64>);
                ExpressionKind::Range(number("start"), number("end"))
            }
            ("tt.splat" | "tt.broadcast", [x]) => ExpressionKind::Broadcast(boxed(*x)?),
            ("tt.expand_dims", [x]) => ExpressionKind::ExpandDims(operation.attributes.axis(), boxed(*x)?),
            ("tt.trans", [x]) => ExpressionKind::Transpose(order(operation), boxed(*x)?),
            ("tt.load", [pointers, rest @ ..]) if !has_modifiers(operation) => {
                let mut rest = rest.iter().map(|v| boxed(*v));
                let (mask, other) = (rest.next().transpose()?, rest.next().transpose()?);
                ExpressionKind::Load { pointers: boxed(*pointers)?, mask, other }
            }
            (_, operands) => match elementwise(module, id) {
                Some(operation) => ExpressionKind::Apply { operation, operands: self.values(operands)? },
                None => return Ok(None),
            },
        }))
    }
}

/// Whether a load or store says how it is cached, or that it may not be left out.
fn has_modifiers(operation: &Operation) -> bool {
    ["cache", "evict", "isVolatile"].iter().any(|name| operation.attributes.get(name).is_some())
}

/// An operation that computes each element of its result from the same elements of its operands.
pub(crate) fn elementwise(module: &Module, id: OperationId) -> Option<Elementwise> {
    let operation = module.operation(id);
    let name = operation.name.as_str();
    let is_arithmetic = name.starts_with("arith.") || name.starts_with("math.");
    let others = [
        "tt.addptr",
        "tt.bitcast",
        "tt.int_to_ptr",
        "tt.ptr_to_int",
        "tt.fp_to_fp",
        "tt.mulhiui",
        "tt.precise_sqrt",
        "tt.precise_divf",
        "tt.clampf",
        "tt.extern_elementwise",
    ];
    if !(is_arithmetic || others.contains(&name)) || operation.results.len() != 1 || name == "arith.constant" {
        return None;
    }
    let predicate = match operation.attributes.get("predicate") {
        Some(Attribute::Enumeration(word) | Attribute::Other(word) | Attribute::String(word)) => Some(word.clone()),
        _ => None,
    };
    let is_exact = match name {
        // Without a sign, and of any width.
        "arith.divui" | "arith.remui" | "arith.shrui" | "tt.mulhiui" | "tt.extern_elementwise" => false,
        // Two constants are divided by Python, in another way.
        "arith.divsi" | "arith.remsi" => true,
        "tt.clampf" => !keeps_nan(operation),
        "tt.fp_to_fp" => operation.attributes.iter().all(|(name, _)| HINTS.contains(&name)),
        "arith.extui" | "arith.uitofp" | "arith.fptoui" => true,
        "arith.cmpi" => !predicate.as_deref().is_some_and(|p| p.starts_with('u')),
        // Numbers with 8 bits have no arithmetic of their own in Python.
        _ => true,
    };
    let known = Elementwise::of(name, predicate.as_deref()).filter(|_| is_exact);
    known.or_else(|| Some(Elementwise::Opaque(Box::new(opaque(operation)))))
}

/// Whether `tt.clampf` leaves what is not a number as it is; else that becomes the lower bound.
pub(crate) fn keeps_nan(operation: &Operation) -> bool {
    match operation.attributes.get("propagateNan") {
        Some(Attribute::Enumeration(word) | Attribute::Other(word)) => word != "none",
        Some(Attribute::Integer { value, .. }) => *value != 0,
        _ => false,
    }
}

/// An operation with its attributes as text.
pub(crate) fn opaque(operation: &Operation) -> Opaque {
    let attributes = operation.attributes.iter().filter(|(name, _)| !HINTS.contains(name) && !name.starts_with("ttg."));
    let text = |attribute: &Attribute| match attribute {
        Attribute::Integer { value, .. } => value.to_string(),
        Attribute::Bool(value) => value.to_string(),
        Attribute::Unit => "true".into(),
        Attribute::String(word) | Attribute::Enumeration(word) | Attribute::Other(word) => word.clone(),
        Attribute::Integers(all) => all.iter().map(i64::to_string).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    let attributes = attributes.map(|(name, attribute)| (name.to_owned(), text(attribute))).collect();
    Opaque { name: operation.name.clone(), attributes, combine: None }
}
