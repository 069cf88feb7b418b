//! Operations that no pass has a rule for.

use super::evaluate::extents;
use super::machine::Machine;
use super::units::Held;
use crate::fault::Fault;
use crate::memory::{Argument, Atomic, Combination, Tensor};
use crate::value::{Elementwise, Tile, apply, dot, gather, histogram, inline_ptx, join, reduce_by, scan_by, split};
use std::collections::HashMap;
use std::rc::Rc;
use twill_codegen::ir::{CombineRegion, Expression, ExpressionKind, Opaque, VariableId};

impl Machine<'_, '_> {
    /// Executes one; threads wait for it.
    pub(super) fn opaque(
        &mut self,
        g: usize,
        operation: &Opaque,
        operands: &[Expression],
        results: &[VariableId],
    ) -> Result<(), Fault> {
        let unfit = || Fault::Shapes { what: format!("`{}`", operation.name) };
        let unknown = || Fault::Unknown { what: format!("`{}`", operation.name) };
        let arithmetic = self.launch.arithmetic;
        let variables = &self.groups[g].group.variables;
        let result = results.first().map(|v| &variables[v.index()]);
        let axis = || operation.attribute("axis").and_then(|a| a.parse().ok()).unwrap_or(0);
        let found: Vec<Tile> = match (operation.name.as_str(), operands) {
            ("gpu.barrier" | "tt.print" | "tt.assert", _) => Vec::new(),
            ("tt.make_tensor_descriptor", [base, sizes @ ..]) => {
                let tensor = Tensor::made(&*self.evaluate(g, base)?, &self.numbers(g, sizes)?).ok_or_else(unfit)?;
                self.hold(g, *results.first().ok_or_else(unfit)?, Some(Held::Tensor(Rc::new(tensor))));
                return Ok(());
            }
            ("tt.descriptor_load", [tensor, coordinates @ ..]) => {
                let (tensor, origin) = (self.described(g, tensor)?, self.numbers(g, coordinates)?);
                let variable = result.ok_or_else(unfit)?;
                let shape = extents(&variable.shape);
                vec![self.memory.load_block(&tensor, &origin, &shape, &variable.element)?]
            }
            ("tt.descriptor_store" | "tt.descriptor_reduce", [tensor, value, coordinates @ ..]) => {
                let how = match operation.attribute("kind") {
                    None => Combination::Overwrite,
                    Some("add" | "1") => Combination::Add,
                    Some(_) => return Err(unknown()),
                };
                let (tensor, origin) = (self.described(g, tensor)?, self.numbers(g, coordinates)?);
                let value = self.evaluate(g, value)?;
                self.memory.store_block(&tensor, &origin, &value, how, arithmetic)?;
                Vec::new()
            }
            (name, operands) => {
                let tiles: Vec<Rc<Tile>> = operands.iter().map(|o| self.evaluate(g, o)).collect::<Result<_, _>>()?;
                match (name, tiles.as_slice()) {
                    ("tt.dot", [a, b, c]) => {
                        vec![dot(a, b, Some(&**c), &result.ok_or_else(unfit)?.element, arithmetic)?]
                    }
                    ("tt.load", [pointers, rest @ ..]) => {
                        let (mask, other) = (rest.first().map(|t| &**t), rest.get(1).map(|t| &**t));
                        vec![self.memory.load(pointers, mask, other, &result.ok_or_else(unfit)?.element)?]
                    }
                    ("tt.store", [pointers, value, mask @ ..]) => {
                        let mask = mask.first().map(|t| &**t);
                        self.memory.store(pointers, value, mask, Combination::Overwrite, arithmetic)?;
                        Vec::new()
                    }
                    ("tt.atomic_rmw", [pointers, value, mask @ ..]) => {
                        let how = operation.attribute("atomic_rmw_op").map_or(Some(Combination::Add), Combination::of);
                        let how = Atomic::Combine(how.ok_or_else(unknown)?);
                        let (mask, element) = (mask.first().map(|t| &**t), &result.ok_or_else(unfit)?.element);
                        vec![self.memory.atomic(pointers, value, mask, how, element, arithmetic)?]
                    }
                    ("tt.atomic_cas", [pointers, expected, value]) => {
                        let element = &result.ok_or_else(unfit)?.element;
                        let how = Atomic::CompareAndSwap(expected);
                        vec![self.memory.atomic(pointers, value, None, how, element, arithmetic)?]
                    }
                    ("tt.gather", [x, places]) => vec![gather(x, places, axis())?],
                    ("tt.histogram", [x, mask @ ..]) => {
                        let bins = extents(&result.ok_or_else(unfit)?.shape).first().copied().unwrap_or(0);
                        vec![histogram(x, mask.first().map(|t| &**t), bins)?]
                    }
                    ("tt.reshape", [x]) => {
                        vec![x.reshape(extents(&result.ok_or_else(unfit)?.shape)).ok_or_else(unfit)?]
                    }
                    ("tt.elementwise_inline_asm", tiles) => {
                        let text = operation.attribute("asm_string").ok_or_else(unfit)?;
                        vec![inline_ptx(text, tiles, &result.ok_or_else(unfit)?.element, arithmetic)?]
                    }
                    ("tt.join", [a, b]) => vec![join(a, b)?],
                    ("tt.split", [x]) => split(x)?.into(),
                    ("tt.reduce" | "tt.scan", tiles) => {
                        let region = operation.combine.as_ref().ok_or_else(unfit)?;
                        let mut combine = |given| combined(region, given, arithmetic);
                        match name {
                            "tt.reduce" => reduce_by(tiles, axis(), &mut combine)?,
                            _ => {
                                let reverse = operation.attribute("reverse") == Some("true");
                                scan_by(tiles, axis(), reverse, &mut combine)?
                            }
                        }
                    }
                    _ => return Err(unknown()),
                }
            }
        };
        for (id, tile) in results.iter().zip(found) {
            self.hold(g, *id, Some(Held::Tile(tile.shared())));
        }
        Ok(())
    }

    fn numbers(&self, g: usize, all: &[Expression]) -> Result<Vec<i64>, Fault> {
        all.iter().map(|e| self.integer(g, e)).collect()
    }

    /// The tensor of a descriptor.
    fn described(&self, g: usize, value: &Expression) -> Result<Tensor, Fault> {
        let unfit = || Fault::Unknown { what: "a descriptor of several".into() };
        if let ExpressionKind::Variable(id) = &value.kind
            && let Some(Some(Held::Tensor(tensor))) = self.groups[g].variables.get(id.index())
        {
            return Ok((**tensor).clone());
        }
        let ExpressionKind::Parameter(name) = &value.kind else { return Err(unfit()) };
        let descriptor = self.program.descriptors.iter().find(|d| d.name == *name).ok_or_else(unfit)?;
        match self.launch.argument(&descriptor.parameter)? {
            Argument::Tensor(tensor) => Ok(tensor.clone()),
            Argument::Scalar(_) => Err(unfit()),
        }
    }
}

/// What a region does to elements.
fn combined(
    region: &CombineRegion,
    given: Vec<Rc<Tile>>,
    arithmetic: crate::Arithmetic,
) -> Result<Vec<Rc<Tile>>, Fault> {
    let names = region.arguments.iter().map(|(name, _)| name.as_str());
    let mut values: HashMap<&str, Rc<Tile>> = names.zip(given).collect();
    for (name, value) in &region.body {
        let tile = scalar(value, &values, arithmetic)?;
        values.insert(name, tile);
    }
    region.results.iter().map(|value| scalar(value, &values, arithmetic)).collect()
}

fn scalar(
    value: &Expression,
    values: &HashMap<&str, Rc<Tile>>,
    arithmetic: crate::Arithmetic,
) -> Result<Rc<Tile>, Fault> {
    let unfit = || Fault::Undefined { what: "a value of a region".into() };
    match &value.kind {
        ExpressionKind::Parameter(name) => values.get(name.as_str()).cloned().ok_or_else(unfit),
        ExpressionKind::Integer(n) => Ok(Tile::integer(i64::try_from(*n).map_err(|_| unfit())?).shared()),
        ExpressionKind::Float(x) => Ok(Tile::float(arithmetic.round(*x, &value.element)).shared()),
        ExpressionKind::Apply { operation, operands } => {
            let tiles: Vec<Rc<Tile>> =
                operands.iter().map(|o| scalar(o, values, arithmetic)).collect::<Result<_, _>>()?;
            let from = operands.first().map_or(&value.element, |o| &o.element);
            let (operation, predicate) = (operation.name(), operation.predicate());
            let (element, divides_by_zero) = (&value.element, true);
            let one = Elementwise { operation, predicate, shape: &[], element, from, arithmetic, divides_by_zero };
            Ok(apply(one, &tiles)?.shared())
        }
        _ => Err(unfit()),
    }
}
