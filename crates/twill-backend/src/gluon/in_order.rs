//! Layouts of a program that executes one operation after the other.
//!
//! Tiles that are combined element by element have one layout. It is that of the MMA whose result is among them, else one that
//! reads memory along the dimension in which it is contiguous, else one that fits their shape. Rows and columns have a slice
//! of the layout of the tiles that they are broadcast to or reduced from. Where two meet, the printer converts.

use super::dot::{Dot, are_held_by_mma, dot};
use super::layout::{Layout, View};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use twill_codegen::ir::{Expression, ExpressionKind, Form, Group, Op, Variable, VariableId, visit};
use twill_triton::mlir::Type;

/// Bytes that a thread reads at once.
const VECTOR_BYTES: u64 = 16;

/// Numbers that a thread may hold of an accumulator and of a left operand that it computes; else the operand goes through shared memory.
const MOST_HELD: u64 = 144;

/// How the layout of a tile follows from that of another.
enum Relation {
    /// The first with a dimension put in is the second.
    Expand(VariableId, usize, VariableId),
    /// The first with a dimension combined is the second.
    Reduce(VariableId, usize, VariableId),
    /// The first is seen as the second in another shape.
    Viewed(VariableId, View, VariableId),
    /// The first repeated is the second.
    Broadcast(VariableId, VariableId),
    /// What memory is accessed by the second, if nothing else decides about it.
    Accessed(VariableId, VariableId),
    /// The first points to what the second, a row or a column, is loaded from: threads load what they need of it.
    Loaded(VariableId, VariableId),
}

/// Sets of variables with one layout.
struct Classes {
    parents: Vec<usize>,
    /// What is computed anew in any layout: it is bound to nothing.
    free: Vec<bool>,
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
        if self.free[a.index()] || self.free[b.index()] {
            return;
        }
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
    let free = recomputed(group);
    let free = (0..variables.len()).map(|k| free.contains_key(&VariableId::at(k))).collect();
    let mut classes = Classes { parents: (0..variables.len()).collect(), free, layouts: BTreeMap::new() };
    let mut relations = Vec::new();
    let tile = |e: &Expression| match e.kind {
        ExpressionKind::Variable(id) if !e.shape.is_empty() => Some(id),
        _ => None,
    };
    let mut accumulators: Vec<(VariableId, Dot)> = Vec::new();
    let mut multiplied: Vec<(VariableId, Layout)> = Vec::new();
    let mut loaded: Vec<VariableId> = Vec::new();
    let mut in_memory: Vec<VariableId> = Vec::new();
    let mut by_columns: Vec<VariableId> = Vec::new();
    let mut copied: Vec<(VariableId, Layout)> = Vec::new();
    visit(&group.body, &mut |op| match op {
        Op::Let { to, value } => match &value.kind {
            ExpressionKind::Variable(from) if !value.shape.is_empty() => classes.join(*to, *from),
            ExpressionKind::Apply { operands, .. } => {
                operands.iter().filter(|o| o.shape == value.shape).filter_map(tile).for_each(|o| classes.join(*to, o));
            }
            ExpressionKind::Load { pointers, mask, other } => {
                loaded.push(*to);
                if let Some(p) = tile(pointers) {
                    let others = mask.iter().chain(other).filter_map(|e| tile(e));
                    relations.extend(others.chain([*to]).map(|accessed| Relation::Accessed(accessed, p)));
                    relations.extend(is_row(&value.shape).then_some(Relation::Loaded(p, *to)));
                    in_memory.push(p);
                }
            }
            ExpressionKind::FromShared(slot) if slot.transposed => by_columns.push(*to),
            ExpressionKind::Broadcast(x) => relations.extend(tile(x).map(|x| Relation::Broadcast(x, *to))),
            ExpressionKind::ExpandDims(axis, x) => {
                relations.extend(tile(x).map(|x| Relation::Expand(x, *axis, *to)));
            }
            ExpressionKind::Transpose(order, x) => {
                relations.extend(tile(x).map(|x| Relation::Viewed(x, View::Permuted(order.clone()), *to)));
            }
            _ => {}
        },
        Op::GlobalStore { pointers, mask, .. } | Op::AtomicAdd { pointers, mask, .. } => {
            if let (Some(p), Some(m)) = (tile(pointers), mask.as_ref().and_then(tile)) {
                relations.push(Relation::Accessed(m, p));
            }
            in_memory.extend(tile(pointers));
        }
        Op::CpAsync { pointers, mask, elements, .. } => {
            let (is_turned, shape) = match &pointers.kind {
                ExpressionKind::Transpose(_, x) => (true, &x.shape),
                _ => (false, &pointers.shape),
            };
            let dimension = if is_turned { 0 } else { shape.len().saturating_sub(1) };
            let layout = Layout::Coalesced { shape: shape.clone(), dimension, vector: *elements, warps: group.warps };
            let all = tiles_in(pointers).into_iter().chain(mask.iter().flat_map(tiles_in));
            copied.extend(all.map(|id| (id, layout.clone())));
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
                multiplied.extend(computed_operands(how, operands, group.warps));
            }
            "tt.reduce" => {
                let axis = operation.attribute("axis").and_then(|a| a.parse().ok()).unwrap_or(0);
                let pairs = operands.iter().zip(results).filter_map(|(o, r)| Some((tile(o)?, *r)));
                relations.extend(pairs.map(|(o, r)| Relation::Reduce(o, axis, r)));
            }
            "tt.reshape" | "tt.join" => {
                if let (Some(x), Some(to)) = (operands.first().and_then(tile), results.first()) {
                    let extents = &variables[to.index()].shape;
                    let is_join = operation.name == "tt.join";
                    let view = if is_join { View::Joined } else { View::Reshaped(extents.clone()) };
                    relations.push(Relation::Viewed(x, view, *to));
                }
            }
            "tt.descriptor_load" | "tt.descriptor_store" | "tt.descriptor_reduce" | "tt.split" => {}
            _ => {
                let all: Vec<VariableId> = operands.iter().filter_map(tile).chain(results.iter().copied()).collect();
                let alike = |a: &VariableId, b: &VariableId| variables[a.index()].shape == variables[b.index()].shape;
                let bound: Vec<VariableId> = all.iter().copied().filter(|id| !classes.free[id.index()]).collect();
                for pair in bound.windows(2).filter(|pair| alike(&pair[0], &pair[1])) {
                    classes.join(pair[0], pair[1]);
                }
                if operation.name == "tt.load" {
                    loaded.extend(results);
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
    // What threads compute for an MMA they compute as it reads it, unless memory is read so.
    let mut loaded: BTreeSet<usize> = loaded.into_iter().map(|id| classes.root(id)).collect();
    loop {
        let before = loaded.len();
        for relation in &relations {
            if let Relation::Viewed(x, view, to) = relation
                && (*view == View::Joined || loaded.contains(&classes.root(*x)))
            {
                loaded.insert(classes.root(*to));
            }
        }
        if loaded.len() == before {
            break;
        }
    }
    for (id, layout) in multiplied {
        if !loaded.contains(&classes.root(id)) {
            classes.set(id, layout);
        }
    }
    propagate(&mut classes, &relations, variables);
    for (id, layout) in copied {
        classes.set(id, layout);
    }
    let bits_of = |variable: &Variable| match &variable.element {
        Type::Pointer { pointee, .. } => u64::from(pointee.scalar_bits().unwrap_or(8)),
        other => u64::from(other.scalar_bits().unwrap_or(32).max(8)),
    };
    // What rows and columns point to is loaded as it is needed. Tiles of one shape have one layout, so that what is loaded of
    // one is combined with another: as wide as the smallest elements ask for.
    let mut tiles: Vec<(VariableId, usize, u64)> = Vec::new();
    for id in in_memory {
        let variable = &variables[id.index()];
        if let Form::Pointers { dimension } = &variable.form
            && !is_row(&variable.shape)
        {
            tiles.push((id, *dimension, bits_of(variable)));
        }
    }
    for (id, dimension, bits) in &tiles {
        let shape = &variables[id.index()].shape;
        let alike = tiles.iter().filter(|one| one.1 == *dimension && variables[one.0.index()].shape == *shape);
        let bits = alike.map(|one| one.2).min().unwrap_or(*bits);
        classes.set(*id, coalesced(shape, *dimension, bits, group.warps));
    }
    propagate(&mut classes, &relations, variables);
    let by_columns: BTreeSet<usize> = by_columns.into_iter().map(|id| classes.root(id)).collect();
    let along = |classes: &Classes, id: VariableId, variable: &Variable| {
        if by_columns.contains(&classes.root(id)) { 0 } else { variable.shape.len().saturating_sub(1) }
    };
    // What is joined follows from the parts, which do not follow from it.
    for relation in &relations {
        if let Relation::Viewed(x, View::Joined, _) = *relation {
            let variable = &variables[x.index()];
            let along = along(&classes, x, variable);
            classes.set(x, coalesced(&variable.shape, along, bits_of(variable), group.warps));
            propagate(&mut classes, &relations, variables);
        }
    }
    // Rows and columns come after the tiles that they are parts of, and are broadcast to.
    let size = |variable: &Variable| (variable.shape.len(), variable.shape.iter().product::<u64>());
    let sizes: BTreeSet<(usize, u64)> = variables.iter().map(size).filter(|(rank, _)| *rank > 0).collect();
    for one in sizes.into_iter().rev() {
        for relation in &relations {
            let before = classes.layouts.len();
            access(&mut classes, relation, |id| size(&variables[id.index()]) == one);
            if classes.layouts.len() > before {
                propagate(&mut classes, &relations, variables);
            }
        }
        for (k, variable) in variables.iter().enumerate().filter(|(_, v)| size(v) == one) {
            let along = along(&classes, VariableId::at(k), variable);
            classes.set(VariableId::at(k), coalesced(&variable.shape, along, bits_of(variable), group.warps));
        }
        propagate(&mut classes, &relations, variables);
    }
    let of = |k: usize| classes.layout(VariableId::at(k)).cloned();
    (0..variables.len()).map(|k| of(k).filter(|_| !variables[k].shape.is_empty())).collect()
}

/// Whether a tile has elements along one dimension at most.
fn is_row(shape: &[u64]) -> bool {
    shape.iter().filter(|extent| **extent > 1).count() < 2
}

/// The operands of a multiplication that registers hold, in the layouts in which it reads them.
fn computed_operands(how: Dot, operands: &[Expression], warps: u32) -> Vec<(VariableId, Layout)> {
    let [a, b, sum, ..] = operands else { return Vec::new() };
    let parent = Box::new(how.layout(&sum.shape, warps));
    let elements = |e: &Expression| e.shape.iter().product::<u64>();
    let layout = |index: u32, e: &Expression| match e.kind {
        ExpressionKind::Variable(id) => match e.element.scalar_bits()? {
            bits @ (16 | 32) => Some((id, Layout::Operand { index, bits, parent: parent.clone() })),
            _ => None,
        },
        _ => None,
    };
    match how {
        Dot::Wgmma(16) if elements(sum) + elements(a) <= MOST_HELD * 32 * u64::from(warps) => {
            layout(0, a).into_iter().collect()
        }
        Dot::Wgmma(_) => Vec::new(),
        Dot::Mma if a.element.scalar_bits() == Some(32) && !are_held_by_mma(a, b, warps) => Vec::new(),
        Dot::Mma => [layout(0, a), layout(1, b)].into_iter().flatten().collect(),
        Dot::Fma => Vec::new(),
    }
}

/// The tiles that an expression combines element by element.
fn tiles_in(e: &Expression) -> Vec<VariableId> {
    match &e.kind {
        ExpressionKind::Variable(id) if !e.shape.is_empty() => vec![*id],
        ExpressionKind::Transpose(_, x) => tiles_in(x),
        ExpressionKind::Apply { operands, .. } => operands.iter().flat_map(tiles_in).collect(),
        _ => Vec::new(),
    }
}

/// Most operations by which a tile is computed anew rather than exchanged between threads.
const MOST_RECOMPUTED: usize = 40;

/// Tiles of indices, addresses and masks with what they are made of: ranges and numbers that do not change.
///
/// A variable that is given the same expression wherever it is given one changes only together with what is computed of it.
pub(super) fn recomputed(group: &Group) -> HashMap<VariableId, Expression> {
    let mut given: HashMap<VariableId, Option<&Expression>> = HashMap::new();
    visit(&group.body, &mut |op| match op {
        Op::Let { to, value } => {
            given.entry(*to).and_modify(|one| *one = one.filter(|one| *one == value)).or_insert(Some(value));
        }
        Op::Copy { to, .. } => {
            given.insert(*to, None);
        }
        Op::Opaque { results, .. } => results.iter().for_each(|to| {
            given.insert(*to, None);
        }),
        _ => {}
    });
    // Of how many operations each is made, as far as that is known.
    let mut sizes: HashMap<VariableId, Option<usize>> = HashMap::new();
    let all: Vec<VariableId> =
        given.keys().copied().filter(|id| !group.variables[id.index()].shape.is_empty()).collect();
    all.into_iter()
        .filter(|id| size_of(*id, group, &given, &mut sizes).is_some_and(|size| size <= MOST_RECOMPUTED))
        .filter_map(|id| Some((id, given.get(&id).copied().flatten()?.clone())))
        .collect()
}

fn size_of(
    id: VariableId,
    group: &Group,
    given: &HashMap<VariableId, Option<&Expression>>,
    sizes: &mut HashMap<VariableId, Option<usize>>,
) -> Option<usize> {
    if let Some(known) = sizes.get(&id) {
        return *known;
    }
    sizes.insert(id, None);
    let size = given.get(&id).copied().flatten().and_then(|value| expression_size(value, group, given, sizes));
    sizes.insert(id, size);
    size
}

fn expression_size(
    e: &Expression,
    group: &Group,
    given: &HashMap<VariableId, Option<&Expression>>,
    sizes: &mut HashMap<VariableId, Option<usize>>,
) -> Option<usize> {
    let is_index = matches!(e.element, Type::Integer(_) | Type::Pointer { .. });
    match &e.kind {
        ExpressionKind::Variable(id) if e.shape.is_empty() => {
            // A loop's own counter is given no expression.
            given.get(id).is_none_or(Option::is_some).then_some(0)
        }
        ExpressionKind::Variable(id) => size_of(*id, group, given, sizes),
        ExpressionKind::Parameter(_)
        | ExpressionKind::ProgramId { .. }
        | ExpressionKind::ProgramCount(_)
        | ExpressionKind::Integer(_)
        | ExpressionKind::Range(..) => Some(1),
        ExpressionKind::Broadcast(x) | ExpressionKind::ExpandDims(_, x) => {
            Some(1 + expression_size(x, group, given, sizes)?)
        }
        ExpressionKind::Apply { operands, .. } if is_index => {
            operands.iter().try_fold(1, |sum, operand| Some(sum + expression_size(operand, group, given, sizes)?))
        }
        _ => None,
    }
}

/// A layout in which neighbours in memory are one thread's.
pub(super) fn coalesced(shape: &[u64], dimension: usize, bits: u64, warps: u32) -> Layout {
    let each = shape.iter().product::<u64>() / (32 * u64::from(warps));
    let vector = (VECTOR_BYTES * 8 / bits.max(8)).min(each.max(1)).max(1);
    Layout::Coalesced { shape: shape.to_vec(), dimension, vector, warps }
}

/// Whether a thread holds a quarter of a row in it, as of an MMA's result: too much to load for each row.
fn is_of_columns(layout: &Layout) -> bool {
    fn is_of_memory(layout: &Layout) -> bool {
        match layout {
            Layout::Coalesced { .. } | Layout::Blocked { .. } => true,
            Layout::View { parent, .. } => is_of_memory(parent),
            _ => false,
        }
    }
    match layout {
        Layout::Slice(0, parent) => !is_of_memory(parent),
        Layout::Operand { .. } | Layout::Mma { .. } => true,
        _ => false,
    }
}

fn propagate(classes: &mut Classes, relations: &[Relation], variables: &[Variable]) {
    loop {
        let before = classes.layouts.len();
        relations.iter().for_each(|relation| relate(classes, relation, variables));
        if classes.layouts.len() == before {
            return;
        }
    }
}

fn relate(classes: &mut Classes, relation: &Relation, variables: &[Variable]) {
    match *relation {
        Relation::Viewed(x, ref view, to) => {
            let shape = &variables[x.index()].shape;
            if let Some(layout) = classes.layout(x).cloned() {
                classes.set(to, layout.viewed(view, shape));
            } else if let (Some(layout), Some(back)) = (classes.layout(to).cloned(), view.inverse(shape)) {
                classes.set(x, layout.viewed(&back, &view.extents(shape)));
            }
        }
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
        Relation::Broadcast(x, to) => {
            if let Some(layout) = classes.layout(to).cloned() {
                classes.set(x, layout);
            }
        }
        Relation::Reduce(..) | Relation::Accessed(..) | Relation::Loaded(..) => {}
    }
}

/// What memory is accessed by decides about a tile where nothing else does; and the tile about what a row is loaded by.
fn access(classes: &mut Classes, relation: &Relation, is_of_size: impl Fn(VariableId) -> bool) {
    match *relation {
        Relation::Accessed(x, by) if is_of_size(x) => {
            if let Some(layout) = classes.layout(by).cloned() {
                classes.set(x, layout);
            }
        }
        Relation::Loaded(pointers, to) if is_of_size(pointers) => {
            if let Some(layout) = classes.layout(to).filter(|layout| !is_of_columns(layout)).cloned() {
                classes.set(pointers, layout);
            }
        }
        _ => {}
    }
}
