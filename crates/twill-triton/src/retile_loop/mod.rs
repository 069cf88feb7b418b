//! Loop re-tiling: a loop over tiles of one size becomes a loop over tiles of another.
//!
//! `for n in range(lower, upper, s)` with tiles of `s` elements along `n` becomes a loop in steps of `t`, where `t` need not
//! divide the span `S = s · ⌈(upper − lower) / s⌉` that the source covers. Its iterations end where the source's do, so the
//! first begins too early, at `lower − (t · ⌈S/t⌉ − S)`; it works on the tile at `lower` instead, of which only what the
//! next iteration does not begin with counts: `t · (1 − ⌈S/t⌉) + S` elements. What is summed, multiplied or compared over
//! the others is 0, or ∓∞ for maxima and minima. So only the first iteration needs a mask, which code generation leaves out
//! where an iteration is known to be another ([`FIRST_ITERATION`]), and a tile reads nothing outside of the span, if that
//! is not shorter than a tile.
//!
//! As of a source whose step is tuned, what the loop computes must not depend on how it is cut; nor may the step occur in
//! it as a number.
//!
//! Which dimensions of which values run along the loop follows from its loads through tensor descriptors by unification, as
//! rows do (`kernel/dimensions.rs`).

mod change;
mod classes;
mod follows;
mod masks;

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::error::{Error, OperationLocation};
use crate::mlir::{ForLoop, Module, OperationId, Type, ValueId};
use classes::{Classes, Node};
use masks::Mask;

/// Marks an `arith.select` whose condition holds for all elements in all iterations but the first.
pub const FIRST_ITERATION: &str = "twill.first_iteration";

/// Marks a parameter of a kernel: the least number but 0 that it may be.
pub const AT_LEAST: &str = "twill.at_least";

/// On a loop that was made one in steps of another size: what its source's step was.
pub const SOURCE_STEP: &str = "twill.source_step";

/// Most columns of an MMA, and most elements that TMA copies along a dimension.
const LONGEST: u64 = 256;

/// The kernel's only loop in steps of another size.
///
/// # Errors
/// When the loop's tiles do not follow it, when something but sums, maxima, minima and products combines them along it, or
/// when its bounds are not constants and parameters.
pub(crate) fn with_step(mut module: Module, function: OperationId, step: u64) -> Result<Module, Error> {
    let plan = Plan::new(&module, function, step)
        .map_err(|(id, why)| Error::RetileLoop { place: OperationLocation::of(&module, id), why: why.into_owned() })?;
    if plan.source != step {
        plan.apply(&mut module);
    }
    Ok(module)
}

/// The operation that is in the way, and why.
type Refused = (OperationId, Cow<'static, str>);

/// The operations to change.
struct Plan {
    loop_id: OperationId,
    source: u64,
    step: u64,
    /// Values with the dimensions that run along the loop, and such uses of constants: operation and operand.
    values: Vec<(ValueId, Vec<usize>)>,
    constants: Vec<(OperationId, usize, Vec<usize>)>,
    masks: Vec<Mask>,
    bound: Bound,
    /// Carried values that go on by the source's step in every iteration: which they are.
    followers: Vec<usize>,
}

/// The upper bound of a loop from 0.
#[derive(Clone, Copy)]
enum Bound {
    Constant(u64),
    /// A function, and which of its arguments.
    Parameter(OperationId, usize),
}

impl Plan {
    fn new(module: &Module, function: OperationId, step: u64) -> Result<Plan, Refused> {
        let loops: Vec<ForLoop<'_>> = module.for_loops(function).collect();
        let [parts] = loops.as_slice() else {
            let id = loops.get(1).map_or(function, |second| second.operation);
            return Err((id, "the kernel must have one loop".into()));
        };
        let refuse = |why: &'static str| (parts.operation, Cow::Borrowed(why));
        let source = module.integer_constant(parts.step).and_then(|s| u64::try_from(s).ok()).filter(|s| *s > 0);
        let source = source.ok_or_else(|| refuse("its step must be a constant"))?;
        if step == 0 || !step.is_multiple_of(16) || step > LONGEST {
            return Err(refuse("a step must be a multiple of 16, and at most 256"));
        }
        let bound = bound(module, function, parts)
            .ok_or_else(|| refuse("it must go from 0 to a parameter, or to a constant, in 32 bits"))?;
        let most = u64::from(i32::MAX.unsigned_abs()) - step;
        if source > most || matches!(bound, Bound::Constant(upper) if upper > most - source) {
            return Err(refuse("it goes further than 32 bits count"));
        }
        if matches!(bound, Bound::Constant(upper) if upper.next_multiple_of(source) < step) {
            return Err(refuse("it goes over less than one such step"));
        }
        let followers = follows::carried(module, parts, source);
        if let Some(k) = followers.iter().find(|k| !module.uses(parts.results[**k]).is_empty()) {
            let name = &module.value(parts.carried[*k]).name;
            return Err((parts.operation, format!("%{name}, which goes on by its step, is used after it").into()));
        }
        let follows: Vec<ValueId> = followers.iter().map(|k| parts.carried[*k]).chain([parts.induction]).collect();
        let seeds = follows::tiles(module, parts, &follows, source)?;
        if seeds.is_empty() {
            return Err(refuse("no tile that a tensor descriptor loads follows it"));
        }
        let number = |value: &ValueId| matches!(module.type_of(*value).element(), Type::Float(_));
        let other = |(k, value): &(usize, &ValueId)| {
            !followers.contains(k) && !number(value) && !module.uses(**value).is_empty()
        };
        if let Some((_, value)) = parts.carried.iter().enumerate().find(other) {
            let name = &module.value(*value).name;
            return Err((parts.operation, format!("%{name}, which it carries, goes on by another step").into()));
        }
        let classes = Classes::of(module, function);
        let along: BTreeSet<Node> = seeds.iter().map(|seed| classes.root(*seed)).collect();
        let runs = |node: Node| along.contains(&classes.root(node));
        follows::only_places(module, parts, &follows, &runs)?;
        if let Some((_, id)) = classes.fixed.iter().find(|(node, _)| runs(*node)) {
            return Err((*id, "this operation cannot be made for tiles of another size".into()));
        }
        let mut plan = Plan {
            loop_id: parts.operation,
            source,
            step,
            values: Vec::new(),
            constants: Vec::new(),
            masks: Vec::new(),
            bound,
            followers,
        };
        for id in module.walk(function) {
            plan.look(module, id, &runs, &seeds)?;
        }
        if let Some(carried) = parts.carried.iter().find(|v| plan.values.iter().any(|(value, _)| value == *v)) {
            let name = &module.value(*carried).name;
            return Err((parts.operation, format!("%{name}, which it carries, runs along it").into()));
        }
        plan.masks = masks::needed(module, parts, step, &runs)?;
        Ok(plan)
    }

    /// The dimensions of an operation that run along the loop.
    fn look(
        &mut self,
        module: &Module,
        id: OperationId,
        runs: &dyn Fn(Node) -> bool,
        seeds: &[Node],
    ) -> Result<(), Refused> {
        let operation = module.operation(id);
        let along = |value: ValueId, node: &dyn Fn(usize) -> Node| {
            let shape = extents(module, value);
            let found: Vec<usize> = (0..shape.len()).filter(|d| runs(node(*d))).collect();
            if found.iter().any(|d| shape[*d] != self.source) {
                return Err((id, "not everything that runs along it is as long as its step".into()));
            }
            Ok(found)
        };
        let blocks = operation.regions.iter().flat_map(|r| &module.region(*r).blocks);
        let arguments = blocks.flat_map(|b| &module.block(*b).arguments);
        for value in operation.results.iter().chain(arguments) {
            let found = along(*value, &|d| Node::Value(*value, d))?;
            if operation.name == "tt.descriptor_load" && !found.iter().all(|d| seeds.contains(&Node::Value(*value, *d)))
            {
                return Err((id, "a tile along it must begin at the loop's variable".into()));
            }
            if !found.is_empty() {
                self.values.push((*value, found));
            }
        }
        for (index, value) in operation.operands.iter().enumerate().filter(|(_, v)| is_constant(module, **v)) {
            let found = along(*value, &|d| Node::Use(id, index, d))?;
            if found.is_empty() {
                continue;
            }
            if module.integer_constant(*value).is_none() && module.float_constant(*value).is_none() {
                return Err((id, "this constant cannot be made for tiles of another size".into()));
            }
            self.constants.push((id, index, found));
        }
        Ok(())
    }
}

/// The extents of a tensor, or of the blocks of a descriptor.
fn extents(module: &Module, value: ValueId) -> Vec<u64> {
    let kind = module.type_of(value);
    kind.block().unwrap_or(kind).known_shape().unwrap_or_default()
}

fn is_constant(module: &Module, value: ValueId) -> bool {
    module.defining_operation(value).is_some_and(|id| module.operation(id).name == "arith.constant")
}

/// A loop's upper bound: how many elements it goes over, or the parameter that says so; `None` where the bounds are others.
fn bound(module: &Module, function: OperationId, parts: &ForLoop<'_>) -> Option<Bound> {
    let from_zero = module.integer_constant(parts.lower)? == 0;
    if !from_zero || *module.type_of(parts.induction) != Type::Integer(32) {
        return None;
    }
    if let Some(upper) = module.integer_constant(parts.upper) {
        return u64::try_from(upper).ok().map(Bound::Constant);
    }
    let position = module.arguments(function).iter().position(|value| *value == parts.upper)?;
    Some(Bound::Parameter(function, position))
}
