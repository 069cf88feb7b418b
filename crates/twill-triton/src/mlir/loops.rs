//! `scf.for` by its parts.

use super::ast::{BlockId, Module, OperationId, ValueId};

/// The parts of an `scf.for`. The parser accepts no loop for which they do not fit together: `initial`, `carried`, `yielded`
/// and `results` have the same length and, place by place, the same types.
#[derive(Debug, Clone, Copy)]
pub struct ForLoop<'module> {
    /// The loop.
    pub operation: OperationId,
    /// The first value of the induction variable.
    pub lower: ValueId,
    /// The bound that the induction variable stays below.
    pub upper: ValueId,
    /// The addend.
    pub step: ValueId,
    /// The induction variable.
    pub induction: ValueId,
    /// The carried values before the first iteration.
    pub initial: &'module [ValueId],
    /// The carried values within an iteration: arguments of the body.
    pub carried: &'module [ValueId],
    /// The carried values in the next iteration: operands of the terminator.
    pub yielded: &'module [ValueId],
    /// The carried values after the last iteration.
    pub results: &'module [ValueId],
    /// The body.
    pub body: BlockId,
    /// The `scf.yield` that ends the body.
    pub terminator: OperationId,
}

impl Module {
    /// The head of an `scf.while`, which decides whether it goes on, and its body; `None` for other operations.
    pub fn while_blocks(&self, id: OperationId) -> Option<(BlockId, BlockId)> {
        let operation = self.operation(id);
        let blocks: Vec<BlockId> =
            operation.regions.iter().flat_map(|region| &self.region(*region).blocks).copied().collect();
        match blocks.as_slice() {
            [head, tail] if operation.name == "scf.while" => Some((*head, *tail)),
            _ => None,
        }
    }

    /// The parts of the operation, if it is an `scf.for`.
    pub fn for_loop(&self, id: OperationId) -> Option<ForLoop<'_>> {
        let operation = self.operation(id);
        if operation.name != "scf.for" {
            return None;
        }
        let ([lower, upper, step], initial) = operation.operands.split_first_chunk::<3>()?;
        let body = self.body(id)?;
        let (induction, carried) = self.block(body).arguments.split_first()?;
        let terminator = self.terminator(body)?;
        Some(ForLoop {
            operation: id,
            lower: *lower,
            upper: *upper,
            step: *step,
            induction: *induction,
            initial,
            carried,
            yielded: &self.operation(terminator).operands,
            results: &operation.results,
            body,
            terminator,
        })
    }

    /// Every `scf.for` within an operation, outer loops before the loops in them.
    pub fn for_loops(&self, root: OperationId) -> impl Iterator<Item = ForLoop<'_>> {
        self.walk(root).filter_map(|id| self.for_loop(id))
    }

    /// The `scf.for` loops within an operation that hold no further loop, in the order of the text.
    pub fn innermost_loops(&self, root: OperationId) -> impl Iterator<Item = ForLoop<'_>> {
        self.for_loops(root).filter(|candidate| {
            let is_loop = |id: OperationId| matches!(self.operation(id).name.as_str(), "scf.for" | "scf.while");
            !self.walk(candidate.operation).skip(1).any(is_loop)
        })
    }

    /// The error in an operation that must be an `scf.for`.
    pub(super) fn loop_defect(&self, id: OperationId) -> Option<&'static str> {
        let operation = self.operation(id);
        if operation.operands.len() < 3 {
            return Some("a loop has a lower bound, an upper bound and a step");
        }
        let blocks = operation.regions.first().map_or(0, |region| self.region(*region).blocks.len());
        if operation.regions.len() != 1 || blocks != 1 {
            return Some("a loop has one body of one block");
        }
        let Some(parts) = self.for_loop(id) else {
            return Some("the body of a loop has an induction variable and ends in scf.yield");
        };
        if self.operation(parts.terminator).name != "scf.yield" {
            return Some("the body of a loop ends in scf.yield");
        }
        let types = |values: &[ValueId]| values.iter().map(|value| self.type_of(*value).clone()).collect::<Vec<_>>();
        let expected = types(parts.initial);
        if types(parts.carried) != expected || types(parts.yielded) != expected || types(parts.results) != expected {
            return Some("initial, carried, yielded and resulting values of a loop have different types or numbers");
        }
        None
    }
}
