//! Layouts of a program that executes one operation after the other.
//!
//! Tiles that are combined element by element have one layout. It is that of the MMA whose result is among them, else one that
//! reads memory along the dimension in which it is contiguous, else one that fits their shape. Rows and columns have a slice
//! of the layout of the tiles that they are broadcast to or reduced from. Where two meet, the printer converts.

use super::dot::{Dot, dot};
use super::layout::Layout;
use std::collections::BTreeMap;
use twill_codegen::ir::{Expression, ExpressionKind, Form, Group, Op, VariableId, visit};

/// Bytes that a thread reads at once.
const VECTOR_BYTES: u64 = 16;

/// How the layout of a tile follows from that of another.
enum Relation {
    /// The first with a dimension put in is the second.
    Expand(VariableId, usize, VariableId),
    /// The first with a dimension combined is the second.
    Reduce(VariableId, usize, VariableId),
    /// The first repeated is the second.
    Broadcast(VariableId, VariableId),
    /// What memory is accessed by the second, if nothing else decides about it.
    Accessed(VariableId, VariableId),
}

/// Sets of variables with one layout.
struct Classes {
    parents: Vec<usize>,
    layouts: BTreeMap<usize, Layout>,
}

impl Classes {
    fn root(&self, id: VariableId) -> usize {
        let mut at = id.index();
        while self.parents[at] != at {
            at = self.parents[at];
        }
        at
    }

    fn join(&mut self, a: VariableId, b: VariableId) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b)] = a.min(b);
    }

    fn layout(&self, id: VariableId) -> Option<&Layout> {
        self.layouts.get(&self.root(id))
    }

    fn set(&mut self, id: VariableId, layout: Layout) {
        let root = self.root(id);
        self.layouts.entry(root).or_insert(layout);
    }
}

/// The layout of each variable; none for scalars.
pub(super) fn layouts(group: &Group) -> Vec<Option<Layout>> {
    let variables = &group.variables;
    let mut classes = Classes { parents: (0..variables.len()).collect(), layouts: BTreeMap::new() };
    let mut relations = Vec::new();
    let tile = |e: &Expression| match e.kind {
        ExpressionKind::Variable(id) if !e.shape.is_empty() => Some(id),
        _ => None,
    };
    let mut accumulators: Vec<(VariableId, Dot)> = Vec::new();
    let mut in_memory: Vec<VariableId> = Vec::new();
    visit(&group.body, &mut |op| match op {
        Op::Let { to, value } => match &value.kind {
            ExpressionKind::Variable(from) if !value.shape.is_empty() => classes.join(*to, *from),
            ExpressionKind::Apply { operands, .. } => {
                operands.iter().filter(|o| o.shape == value.shape).filter_map(tile).for_each(|o| classes.join(*to, o));
            }
            ExpressionKind::Load { pointers, mask, other } => {
                if let Some(p) = tile(pointers) {
                    let others = mask.iter().chain(other).filter_map(|e| tile(e));
                    relations.extend(others.chain([*to]).map(|accessed| Relation::Accessed(accessed, p)));
                    in_memory.push(p);
                }
            }
            ExpressionKind::Broadcast(x) => relations.extend(tile(x).map(|x| Relation::Broadcast(x, *to))),
            ExpressionKind::ExpandDims(axis, x) => {
                relations.extend(tile(x).map(|x| Relation::Expand(x, *axis, *to)));
            }
            _ => {}
        },
        Op::GlobalStore { pointers, mask, .. } | Op::AtomicAdd { pointers, mask, .. } => {
            if let (Some(p), Some(m)) = (tile(pointers), mask.as_ref().and_then(tile)) {
                relations.push(Relation::Accessed(m, p));
            }
            in_memory.extend(tile(pointers));
        }
        Op::Opaque { operation, operands, results } => match operation.name.as_str() {
            "tt.dot" => {
                let (Some(result), Some(how)) = (results.first(), dot(operation, operands, group.warps)) else {
                    return;
                };
                if let Some(sum) = operands.get(2).and_then(tile) {
                    classes.join(*result, sum);
                }
                accumulators.push((*result, how));
            }
            "tt.reduce" => {
                let axis = operation.attribute("axis").and_then(|a| a.parse().ok()).unwrap_or(0);
                let pairs = operands.iter().zip(results).filter_map(|(o, r)| Some((tile(o)?, *r)));
                relations.extend(pairs.map(|(o, r)| Relation::Reduce(o, axis, r)));
            }
            "tt.descriptor_load" | "tt.descriptor_store" | "tt.descriptor_reduce" | "tt.split" | "tt.join" => {}
            _ => {
                let all: Vec<VariableId> = operands.iter().filter_map(tile).chain(results.iter().copied()).collect();
                let alike = |a: &VariableId, b: &VariableId| variables[a.index()].shape == variables[b.index()].shape;
                for pair in all.windows(2).filter(|pair| alike(&pair[0], &pair[1])) {
                    classes.join(pair[0], pair[1]);
                }
                in_memory.extend(all.iter().find(|v| matches!(variables[v.index()].form, Form::Pointers { .. })));
            }
        },
        _ => {}
    });
    for (id, how) in accumulators {
        classes.set(id, how.layout(&variables[id.index()].shape, group.warps));
    }
    propagate(&mut classes, &relations, variables);
    for id in in_memory {
        let Form::Pointers { dimension } = variables[id.index()].form else { continue };
        let bits = match &variables[id.index()].element {
            twill_triton::mlir::Type::Pointer { pointee, .. } => pointee.scalar_bits().unwrap_or(8),
            _ => 32,
        };
        classes.set(id, coalesced(&variables[id.index()].shape, dimension, u64::from(bits), group.warps));
    }
    propagate(&mut classes, &relations, variables);
    // Rows and columns come after the tiles that they are parts of.
    for rank in (1..=8).rev() {
        for (k, variable) in variables.iter().enumerate().filter(|(_, v)| v.shape.len() == rank) {
            let bits = u64::from(variable.element.scalar_bits().unwrap_or(32).max(8));
            classes.set(VariableId::at(k), coalesced(&variable.shape, rank - 1, bits, group.warps));
        }
        propagate(&mut classes, &relations, variables);
    }
    let of = |k: usize| classes.layout(VariableId::at(k)).cloned();
    (0..variables.len()).map(|k| of(k).filter(|_| !variables[k].shape.is_empty())).collect()
}

/// A layout in which neighbours in memory are one thread's.
pub(super) fn coalesced(shape: &[u64], dimension: usize, bits: u64, warps: u32) -> Layout {
    let each = shape.iter().product::<u64>() / (32 * u64::from(warps));
    let vector = (VECTOR_BYTES * 8 / bits.max(8)).min(each.max(1)).max(1);
    Layout::Coalesced { shape: shape.to_vec(), dimension, vector, warps }
}

fn propagate(classes: &mut Classes, relations: &[Relation], variables: &[twill_codegen::ir::Variable]) {
    loop {
        let before = classes.layouts.len();
        for relation in relations {
            match *relation {
                Relation::Expand(x, axis, to) => {
                    if let Some(layout) = classes.layout(to).cloned() {
                        classes.set(x, Layout::Slice(axis, Box::new(layout)));
                    }
                }
                Relation::Reduce(x, axis, to) if !variables[to.index()].shape.is_empty() => {
                    if let Some(layout) = classes.layout(x).cloned() {
                        classes.set(to, Layout::Slice(axis, Box::new(layout)));
                    }
                }
                Relation::Broadcast(x, to) | Relation::Accessed(x, to) => {
                    if let Some(layout) = classes.layout(to).cloned() {
                        classes.set(x, layout);
                    }
                }
                Relation::Reduce(..) => {}
            }
        }
        if classes.layouts.len() == before {
            return;
        }
    }
}
