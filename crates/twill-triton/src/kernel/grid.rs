//! The axes of the grid along which programs differ in the values of a kernel.
//!
//! Programs differ in what is computed from `tl.program_id`, in what branches and trip counts that depend on it decide,
//! and in what atomics and inline assembly give. Two programs may be said to differ where they do not, never the other way
//! round.

use crate::mlir::{ForLoop, Module, OperationId, ValueId};
use crate::tile::{Axes, Axis};

use super::early_returns::is_early_return;

/// For every value of a module the axes along which programs differ in it.
#[derive(Clone, Debug)]
pub(super) struct Differences {
    axes: Vec<Axes>,
    /// Where programs part ways between blocks, or one of them returns.
    branches: Axes,
}

impl Differences {
    pub fn new(module: &Module, function: OperationId) -> Differences {
        let mut found = Differences { axes: vec![Axes::NONE; module.value_count()], branches: Axes::NONE };
        // The body of the function, not the function: what is nested in an operation counts as its operands.
        while module.walk(function).skip(1).fold(false, |changed, id| found.update(module, id) | changed) {}
        found
    }

    /// The axes along which programs differ in a value.
    pub fn of(&self, value: ValueId) -> Axes {
        self.axes[value.index()]
    }

    /// The axes along which programs differ in whether and how often a loop runs.
    pub fn of_trips(&self, module: &Module, parts: &ForLoop<'_>) -> Axes {
        let around = module.ancestors(parts.operation).map(|id| match module.for_loop(id) {
            Some(outer) => self.of_bounds(&outer),
            None if module.operation(id).name == "scf.while" => self.of_operands(module, id),
            None => self.of_all(&module.operation(id).operands),
        });
        around.collect::<Axes>().union(self.of_bounds(parts)).union(self.branches)
    }

    fn of_bounds(&self, parts: &ForLoop<'_>) -> Axes {
        self.of_all(&[parts.lower, parts.upper, parts.step])
    }

    fn of_all(&self, values: &[ValueId]) -> Axes {
        values.iter().map(|value| self.of(*value)).collect()
    }

    /// The operands of an operation and of all that is nested in it.
    fn of_operands(&self, module: &Module, id: OperationId) -> Axes {
        module.walk(id).map(|inner| self.of_all(&module.operation(inner).operands)).collect()
    }

    fn update(&mut self, module: &Module, id: OperationId) -> bool {
        if let Some(parts) = module.for_loop(id) {
            return self.update_loop(&parts);
        }
        let operation = module.operation(id);
        let axes = asks_for(module, id).union(self.of_operands(module, id));
        let mut changed = self.add_all(&operation.results, axes);
        for region in &operation.regions {
            for block in &module.region(*region).blocks {
                changed |= self.add_all(&module.block(*block).arguments, axes);
            }
        }
        for block in &operation.successors {
            changed |= self.add_all(&module.block(*block).arguments, axes);
        }
        if operation.successors.len() > 1 {
            // Where control flow joins again, a value depends on the way that was taken.
            let region = operation.block.map(|block| module.block(block).region);
            for block in region.into_iter().flat_map(|region| module.region(region).blocks.iter().skip(1)) {
                changed |= self.add_all(&module.block(*block).arguments, axes);
            }
        }
        if operation.successors.len() > 1 || is_early_return(&operation.name) {
            self.branches = self.branches.union(axes);
        }
        changed
    }

    fn update_loop(&mut self, parts: &ForLoop<'_>) -> bool {
        let mut changed = self.add(parts.induction, self.of_all(&[parts.lower, parts.step]));
        for (index, carried) in parts.carried.iter().enumerate() {
            // A carried value has one place: programs that differ in its start have a place each for all of it.
            let same = [parts.initial[index], *carried, parts.yielded[index]];
            let axes = self.of_all(&same);
            changed |= self.add_all(&same[1..], axes);
            changed |= self.add(parts.results[index], axes.union(self.of_bounds(parts)));
        }
        changed
    }

    fn add_all(&mut self, values: &[ValueId], axes: Axes) -> bool {
        values.iter().fold(false, |changed, value| self.add(*value, axes) | changed)
    }

    fn add(&mut self, value: ValueId, axes: Axes) -> bool {
        let known = &mut self.axes[value.index()];
        let now = known.union(axes);
        std::mem::replace(known, now) != now
    }
}

/// The axes that an operation asks for by itself.
fn asks_for(module: &Module, id: OperationId) -> Axes {
    let operation = module.operation(id);
    match operation.name.as_str() {
        "tt.get_program_id" => match operation.attributes.text("axis") {
            Some("x") => Axis::X.into(),
            Some("y") => Axis::Y.into(),
            Some("z") => Axis::Z.into(),
            _ => Axes::ALL,
        },
        // Each program has an answer of its own.
        "tt.atomic_rmw" | "tt.atomic_cas" | "tt.elementwise_inline_asm" => Axes::ALL,
        name if crate::operations::is_synchronization(name) => Axes::ALL,
        "tt.extern_elementwise" if !operation.attributes.flag("pure") => Axes::ALL,
        "tt.call" | "func.call" => called(module),
        _ => Axes::NONE,
    }
}

/// The requests of any function.
fn called(module: &Module) -> Axes {
    let is_call = |id: &OperationId| matches!(module.operation(*id).name.as_str(), "tt.call" | "func.call");
    module.walk(module.top()).filter(|id| !is_call(id)).map(|id| asks_for(module, id)).collect()
}
