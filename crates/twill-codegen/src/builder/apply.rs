//! Operations of the TTIR as expressions, and which of them the printers know.

use crate::builder::reader::{LoopScope, Reader};
use crate::builder::views::program_axis;
use crate::error::Error;
use crate::in_order::keeps_nan;
use crate::ir::Elementwise;
use crate::ir::Region;
use crate::ir::{Expression, ExpressionKind};
use crate::passes::steps::program::Iteration;
use twill_graph::saturate;
use twill_triton::mlir::{Attribute, FloatKind, OperationId, Type};
use twill_triton::retile_loop::FIRST_ITERATION;

const FLOAT: Type = Type::Float(FloatKind::F32);

impl Reader<'_, '_> {
    /// An operation whose result is not held by anybody, computed where it is used.
    pub fn apply(
        &mut self,
        id: OperationId,
        region: &Region,
        program: Option<u32>,
        at: LoopScope,
    ) -> Result<Expression, Error> {
        let module = self.lowering.module;
        let operation = module.operation(id);
        let Some(value) = module.read_result(id) else {
            return Err(self.lowering.defect(id, "what this operation makes"));
        };
        let element = self.lowering.element(value);
        let shape = region.extents.clone();
        let of = |kind| Ok(Expression { kind, shape: shape.clone(), element: element.clone() });
        let operands = operation.operands.as_slice();
        match (operation.name.as_str(), operands) {
            ("tt.get_program_id", _) => {
                let axis = program_axis(operation);
                let instance = match self.lowering.programs {
                    Some((_, shared)) if shared == axis => Some(
                        program
                            .ok_or_else(|| self.lowering.defect(id, "for which of the programs of the CTA this is"))?,
                    ),
                    _ => None,
                };
                of(ExpressionKind::ProgramId { axis, instance })
            }
            ("tt.get_num_programs", _) => of(ExpressionKind::ProgramCount(program_axis(operation))),
            ("tt.make_range", _) => {
                let start = operation.attributes.integer("start").map_or(0, saturate::<u64>);
                let first = start + region.starts.first().copied().unwrap_or(0);
                of(ExpressionKind::Range(first, first + region.extents.first().copied().unwrap_or(1)))
            }
            ("tt.splat", [x]) => {
                let x = self.scalar(*x, program, at)?;
                of(ExpressionKind::Broadcast(Box::new(x)))
            }
            ("tt.broadcast", [x]) => {
                let x = self.value(*x, &region.before_broadcast(&self.lowering.shape(*x)), program, at)?;
                of(ExpressionKind::Broadcast(Box::new(x)))
            }
            ("tt.expand_dims", [x]) => {
                let axis = self.axis(id);
                let x = self.value(*x, &region.without(axis), program, at)?;
                of(ExpressionKind::ExpandDims(axis, Box::new(x)))
            }
            ("tt.trans", [x]) => {
                let order = crate::builder::views::order(operation);
                let x = self.value(*x, &region.before_transposition(&order), program, at)?;
                of(ExpressionKind::Transpose(order, Box::new(x)))
            }
            ("tt.reduce", [x]) if self.combination(id).is_some() => {
                let axis = self.axis(id);
                let extent = self.lowering.shape(*x).get(axis).copied().unwrap_or(1);
                let Some(combine) = self.combination(id) else {
                    return Err(self.lowering.defect(id, "how a reduction combines"));
                };
                let operand = Box::new(self.value(*x, &region.with(axis, extent), program, at)?);
                of(ExpressionKind::Reduce { axis, combine, operand })
            }
            ("tt.load", [pointers, rest @ ..]) => {
                let pointers = Box::new(self.value(*pointers, region, program, at)?);
                let mut rest = rest.iter();
                let mask = rest.next().map(|m| self.value(*m, region, program, at)).transpose()?.map(Box::new);
                let other = rest.next().map(|o| self.value(*o, region, program, at)).transpose()?.map(Box::new);
                of(ExpressionKind::Load { pointers, mask, other })
            }
            ("tt.extern_elementwise", operands) => {
                let symbol = self.libdevice_symbol(id)?;
                let mut made = Vec::new();
                for operand in operands {
                    made.push(self.value(*operand, region, program, at)?);
                }
                of(ExpressionKind::Apply { operation: Elementwise::Libdevice(symbol), operands: made })
            }
            // Where the condition is known to hold; elsewhere it is asked.
            ("arith.select", [_, x, _]) if operation.attributes.flag(FIRST_ITERATION) && self.is_later(at) => {
                self.value(*x, region, program, at)
            }
            (name, _) if Elementwise::is_known(name) => {
                let predicate = operation.attributes.text("predicate").map(str::to_owned).or_else(|| {
                    match operation.attributes.get("predicate") {
                        Some(Attribute::Enumeration(name) | Attribute::Other(name)) => Some(name.clone()),
                        _ => None,
                    }
                });
                let known = Elementwise::of(name, predicate.as_deref());
                // A constant operand is printed with 32 bits.
                let is_unsigned = known.as_ref().is_some_and(Elementwise::is_unsigned);
                let has_32_bits = || operands.iter().all(|o| self.lowering.element(*o) == Type::Integer(32));
                if name == "tt.mulhiui" && !has_32_bits() {
                    return Err(self.lowering.unsupported(id, "`tt.mulhiui` of other than 32 bits", "use 32 bits"));
                }
                // Unsigned numbers of other widths, unordered comparisons, bounds of what is not a number: by the name that MLIR
                // has for them.
                let is_plain = name != "tt.clampf" || !keeps_nan(operation);
                let known = known.filter(|_| is_plain && (!is_unsigned || has_32_bits()));
                let known = known.unwrap_or_else(|| Elementwise::Opaque(Box::new(crate::in_order::opaque(operation))));
                let mut made = Vec::new();
                for operand in operands {
                    // A select may have one condition for all elements.
                    let is_scalar = !self.lowering.module.type_of(*operand).is_tensor();
                    let whole = Region::whole(&[]);
                    made.push(self.value(*operand, if is_scalar { &whole } else { region }, program, at)?);
                }
                of(ExpressionKind::Apply { operation: known, operands: made })
            }
            ("tt.bitcast" | "arith.bitcast" | "tt.int_to_ptr" | "tt.ptr_to_int", [x]) => {
                let operation = Elementwise::Opaque(Box::new(crate::in_order::opaque(operation)));
                of(ExpressionKind::Apply { operation, operands: vec![self.value(*x, region, program, at)?] })
            }
            (name, operands) if name.starts_with("arith.") || name.starts_with("math.") => {
                let Some(operation) = crate::in_order::elementwise(module, id) else {
                    return Err(self.lowering.unsupported(id, format!("`{name}`"), "compute it with other operations"));
                };
                let mut made = Vec::new();
                for operand in operands {
                    made.push(self.value(*operand, region, program, at)?);
                }
                of(ExpressionKind::Apply { operation, operands: made })
            }
            _ => {
                let variable = self.opaque(id, region, program, at)?;
                Ok(self.group.read(variable))
            }
        }
    }

    /// Whether an iteration is known to come after a loop's first.
    fn is_later(&self, at: LoopScope) -> bool {
        let Some((index, iteration)) = at else { return false };
        let warps = &self.lowering.loops[index].program.warps;
        // This many iterations have begun ahead of the steady state, and there is an end only after them.
        let begun = warps.iter().find(|w| w.group == self.group.id).map_or(0, |w| i64::from(w.first));
        match iteration {
            Iteration::Absolute(n) => n > 0,
            Iteration::Current(n) | Iteration::End(n) => begun + n > 0,
        }
    }

    /// The function of CUDA's libdevice that a `tt.extern_elementwise` calls.
    fn libdevice_symbol(&self, id: OperationId) -> Result<String, Error> {
        let operation = self.lowering.module.operation(id);
        let text = |name: &str| operation.attributes.text(name).unwrap_or_default();
        let symbol = text("symbol");
        let values = operation.operands.iter().chain(&operation.results);
        let known = values.map(|v| self.lowering.element(*v)).all(|e| matches!(e, Type::Integer(32) | FLOAT));
        // The symbol stands in generated code as it is.
        let is_name = symbol.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let from_libdevice =
            text("libname").is_empty() && text("libpath").is_empty() && symbol.starts_with("__nv_") && is_name;
        if from_libdevice && known && operation.attributes.flag("pure") {
            return Ok(symbol.to_owned());
        }
        Err(self.lowering.unsupported(
            id,
            format!("`{symbol}`, which is no pure function of libdevice on 32-bit numbers"),
            "convert its operands to float32, or write it with tl.math",
        ))
    }

    fn axis(&self, id: OperationId) -> usize {
        self.lowering.module.operation(id).attributes.axis()
    }

    /// The one operation with which a reduction of one tile combines two elements, if it is one that is known.
    fn combination(&self, id: OperationId) -> Option<Elementwise> {
        let module = self.lowering.module;
        let body = module.body(id).map(|b| module.block(b).operations.as_slice()).unwrap_or_default();
        let [one, _] = body else { return None };
        Elementwise::of(&module.operation(*one).name, None).filter(Elementwise::is_combination)
    }
}
