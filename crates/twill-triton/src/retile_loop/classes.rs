//! Classes of dimensions of values that are the same.

use std::collections::HashMap;
use twill_graph::saturate;

use super::{extents, is_constant};
use crate::mlir::{Module, OperationId, ValueId};
use crate::operations::is_conversion;

/// A dimension of a value; of constants, of one use, as one constant may be several tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Node {
    Value(ValueId, usize),
    Use(OperationId, usize, usize),
}

/// Classes of dimensions.
#[derive(Default)]
pub(super) struct Classes {
    parents: HashMap<Node, Node>,
    /// Dimensions that must stay as they are, with the operation that says so.
    pub fixed: Vec<(Node, OperationId)>,
}

impl Classes {
    /// Those of all values of a function.
    pub fn of(module: &Module, function: OperationId) -> Classes {
        let mut classes = Classes::default();
        for id in module.walk(function) {
            join(module, id, &mut classes);
        }
        classes
    }

    pub fn root(&self, mut node: Node) -> Node {
        while let Some(parent) = self.parents.get(&node) {
            node = *parent;
        }
        node
    }

    fn join(&mut self, a: Node, b: Node) {
        let (roots, nodes) = ([self.root(a), self.root(b)], [a, b]);
        let root = roots[0].min(roots[1]);
        // All four, for short ways to it.
        for node in roots.into_iter().chain(nodes).filter(|node| *node != root) {
            self.parents.insert(node, root);
        }
    }
}

/// Dimensions of an operation's operands and results that are the same.
fn join(module: &Module, id: OperationId, classes: &mut Classes) {
    let operation = module.operation(id);
    let node = |index: usize, d: usize| match operation.operands.get(index) {
        Some(value) if !is_constant(module, *value) => Node::Value(*value, d),
        _ => Node::Use(id, index, d),
    };
    let rank = |index: usize| operation.operands.get(index).map_or(0, |v| extents(module, *v).len());
    let result = operation.results.first().copied();
    let to = |d: usize| result.map_or(Node::Use(id, usize::MAX, d), |value| Node::Value(value, d));
    let axis = || operation.attributes.axis();
    match operation.name.as_str() {
        "scf.for" => {
            let Some(parts) = module.for_loop(id) else { return };
            for k in 0..parts.carried.len() {
                let of = |value: ValueId, user: OperationId, index: usize, d: usize| {
                    if is_constant(module, value) { Node::Use(user, index, d) } else { Node::Value(value, d) }
                };
                for d in 0..extents(module, parts.carried[k]).len() {
                    let carried = Node::Value(parts.carried[k], d);
                    classes.join(carried, of(parts.initial[k], id, 3 + k, d));
                    classes.join(carried, of(parts.yielded[k], parts.terminator, k, d));
                    classes.join(carried, Node::Value(parts.results[k], d));
                }
            }
        }
        "scf.yield" | "tt.splat" | "tt.make_range" | "arith.constant" | "tt.reduce.return" => {}
        "tt.trans" => {
            let order = operation.attributes.integers("order").unwrap_or_default();
            for (d, from) in order.iter().enumerate() {
                classes.join(to(d), node(0, saturate::<usize>(*from)));
            }
        }
        "tt.expand_dims" => {
            for d in 0..rank(0) {
                classes.join(node(0, d), to(if d < axis() { d } else { d + 1 }));
            }
        }
        "tt.broadcast" => {
            let from = operation.operands.first().map(|v| extents(module, *v)).unwrap_or_default();
            let wide = result.map(|v| extents(module, v)).unwrap_or_default();
            for d in (0..from.len()).filter(|d| from.get(*d) == wide.get(*d)) {
                classes.join(node(0, d), to(d));
            }
        }
        "tt.reduce" if operation.results.len() == 1 => {
            for d in (0..rank(0)).filter(|d| *d != axis()) {
                classes.join(node(0, d), to(if d < axis() { d } else { d - 1 }));
            }
        }
        "tt.dot" if (0..3).all(|k| rank(k) == 2) => {
            classes.join(node(0, 1), node(1, 0));
            for d in 0..2 {
                classes.join(node(d, d), node(2, d));
                classes.join(node(2, d), to(d));
            }
        }
        "tt.descriptor_load" if result.map(|v| extents(module, v).len()) == Some(rank(0)) => {
            (0..rank(0)).for_each(|d| classes.join(node(0, d), to(d)));
        }
        "tt.descriptor_store" | "tt.descriptor_reduce" if rank(0) == rank(1) => {
            (0..rank(0)).for_each(|d| classes.join(node(0, d), node(1, d)));
        }
        name => {
            let shapes = (0..operation.operands.len()).map(|k| extents(module, operation.operands[k]));
            let shapes: Vec<Vec<u64>> = shapes.chain(operation.results.iter().map(|v| extents(module, *v))).collect();
            let all = |k: usize, d: usize| {
                let results = k.checked_sub(operation.operands.len());
                results.map_or_else(|| node(k, d), |r| Node::Value(operation.results[r], d))
            };
            let tiles: Vec<usize> = (0..shapes.len()).filter(|k| !shapes[*k].is_empty()).collect();
            let alike = tiles.iter().all(|k| shapes[*k] == shapes[tiles[0]]);
            let by_element = name.starts_with("arith.") || name.starts_with("math.") || is_conversion(name);
            for k in &tiles {
                for d in 0..shapes[*k].len() {
                    if alike && by_element {
                        classes.join(all(tiles[0], d), all(*k, d));
                    } else {
                        classes.fixed.push((all(*k, d), id));
                    }
                }
            }
        }
    }
}
