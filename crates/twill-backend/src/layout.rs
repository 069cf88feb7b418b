//! How the threads of a group hold a tile, and which layout every variable of a group has.

use std::collections::HashMap;
use twill_codegen::ir::{Expression, ExpressionKind};
use twill_codegen::ir::{Form, Group, VariableId};
use twill_codegen::ir::{Node, Op, Opaque, visit};

/// A layout, as Triton tells them apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layout {
    /// Of an MMA's result with this many columns.
    Accumulator {
        /// Columns.
        columns: u64,
        /// Bits of an element of the operands.
        bits: u32,
    },
    /// Of a left operand in elements of this many bits, for a result with this many columns.
    LeftOperand { columns: u64, bits: u32 },
    /// Of what is left when a dimension is taken out.
    Slice(usize, Box<Layout>),
    /// Of a tile with these rows and columns that a group takes from tensor memory.
    Tensor { rows: u64, columns: u64, warps: u32 },
    /// That of this variable.
    Like(String),
    /// Rows over warps, columns over lanes.
    Blocked { rank: usize, warps: u32 },
    /// Of a tile of this shape, whose neighbours along a dimension are one thread's, this many.
    Coalesced { shape: Vec<u64>, dimension: usize, vector: u64, warps: u32 },
    /// Of the result of an MMA of all warps: `wgmma` (3) or `mma.sync` (2), in elements of this many bits.
    Mma { version: u32, shape: Vec<u64>, bits: u32, warps: u32 },
    /// Of an operand of an MMA, 0 for the left one, in elements of this many bits, for a result of this layout.
    Operand { index: u32, bits: u32, parent: Box<Layout> },
    /// Of a tile whose elements stay where they are in one of this shape and layout.
    View { of: View, shape: Vec<u64>, parent: Box<Layout> },
}

/// How a tile is seen in another shape.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum View {
    /// With its dimensions in this order.
    Permuted(Vec<usize>),
    /// In these extents, row after row.
    Reshaped(Vec<u64>),
    /// With another one beside it, along a new last dimension.
    Joined,
}

impl View {
    /// The extents of what is seen of a tile.
    pub fn extents(&self, shape: &[u64]) -> Vec<u64> {
        match self {
            View::Permuted(order) => order.iter().filter_map(|d| shape.get(*d).copied()).collect(),
            View::Reshaped(extents) => extents.clone(),
            View::Joined => shape.iter().copied().chain([2]).collect(),
        }
    }

    /// How a tile of this shape is seen in what is seen of it, if it is one.
    pub fn inverse(&self, shape: &[u64]) -> Option<View> {
        match self {
            View::Permuted(order) => {
                let at = |d: usize| order.iter().position(|from| *from == d);
                (0..order.len()).map(at).collect::<Option<_>>().map(View::Permuted)
            }
            View::Reshaped(_) => Some(View::Reshaped(shape.to_vec())),
            View::Joined => None,
        }
    }
}

impl Layout {
    /// The variable whose layout it is made of.
    fn like(&self) -> Option<&str> {
        match self {
            Layout::Like(name) => Some(name),
            Layout::Slice(_, of) => of.like(),
            _ => None,
        }
    }

    /// Of the result of an MMA of elements of 16 bits.
    pub fn accumulator(columns: u64) -> Layout {
        Layout::Accumulator { columns, bits: 16 }
    }

    /// For a tile that nothing else decides about.
    pub fn blocked(rank: usize, warps: u32) -> Layout {
        Layout::Blocked { rank, warps }
    }

    /// For a tile of this shape that nothing else decides about.
    pub fn of_shape(shape: &[u64], warps: u32) -> Layout {
        match shape.len() {
            0..=2 => Layout::blocked(shape.len(), warps),
            _ => Layout::neighbours(shape, 4, warps),
        }
    }

    /// Of what is seen of a tile of this shape and layout.
    pub fn viewed(self, of: &View, shape: &[u64]) -> Layout {
        match (self, of) {
            // Both ways are none.
            (Layout::View { of: before, shape: from, parent }, of) if before.inverse(&from).as_ref() == Some(of) => {
                *parent
            }
            (Layout::Coalesced { shape, dimension, vector, warps }, View::Permuted(order)) if order == &[1, 0] => {
                let shape = shape.into_iter().rev().collect();
                Layout::Coalesced { shape, dimension: 1 - dimension.min(1), vector, warps }
            }
            (parent, of) => Layout::View { of: of.clone(), shape: shape.to_vec(), parent: Box::new(parent) },
        }
    }

    /// A thread has neighbours along the last dimension.
    pub fn neighbours(shape: &[u64], elements: u64, warps: u32) -> Layout {
        Layout::Coalesced { shape: shape.to_vec(), dimension: shape.len().saturating_sub(1), vector: elements, warps }
    }
}

/// How far a layout reaches from a tile to what it is combined with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// To tiles of its shape.
    Tiles,
    /// Also to rows and columns of numbers that are broadcast over it, so that nothing has to change its layout.
    Slices,
}

/// The layouts of a group's variables; none for scalars and for tiles that are computed anew where they are used.
pub(crate) fn of_variables(group: &Group, reach: Reach) -> Vec<Option<Layout>> {
    of_other_variables(group, reach, &vec![None; group.variables.len()])
}

/// The same where some variables' layouts are chosen.
pub(crate) fn of_other_variables(group: &Group, reach: Reach, chosen: &[Option<Layout>]) -> Vec<Option<Layout>> {
    let fixed = |v: &twill_codegen::ir::Variable| match v.form {
        Form::Any | Form::Pointers { .. } => None,
        Form::Neighbours { elements } => Some(Layout::neighbours(&v.shape, elements, group.warps)),
        Form::Accumulator { columns, bits } => Some(Layout::Accumulator { columns, bits }),
        Form::LeftOperand { columns } => {
            Some(Layout::LeftOperand { columns, bits: v.element.scalar_bits().unwrap_or(16) })
        }
    };
    let each = group.variables.iter().zip(chosen);
    let mut layouts: Vec<Option<Layout>> = each.map(|(v, chosen)| fixed(v).or(chosen.clone())).collect();
    loop {
        let before = layouts.clone();
        visit(&group.body, &mut |op| match op {
            Op::Let { to, value } if matches!(value.kind, ExpressionKind::PartialSums(_)) => {
                layouts[to.index()] = Some(Layout::Like(group.variables[to.index()].name.clone()));
            }
            Op::Let { to, value } if !value.shape.is_empty() && layouts[to.index()].is_none() => {
                layouts[to.index()] = infer(value, &layouts);
            }
            Op::Opaque { operation, operands, results } => {
                let layout = of_opaque(operation, operands, &layouts);
                for to in results.iter().filter(|to| !group.variables[to.index()].shape.is_empty()) {
                    let known = &mut layouts[to.index()];
                    *known = known.clone().or(layout.clone());
                }
            }
            Op::Copy { to, from } if layouts[to.index()].is_none() => {
                layouts[to.index()] = layouts[from.index()].clone();
            }
            _ => {}
        });
        if layouts == before {
            // What has no layout of itself takes that of what it is combined with.
            visit(&group.body, &mut |op| {
                if let Op::Copy { to, from } = op
                    && layouts[from.index()].is_none()
                {
                    layouts[from.index()] = layouts[to.index()].clone();
                }
                if let Op::Let { value: Expression { kind: ExpressionKind::PartialSums(tile), .. }, .. } = op {
                    of_summed(tile, &mut layouts);
                } else if let Op::Let { to, value } = op {
                    let wanted = layouts[to.index()].clone();
                    from_use(value, wanted.as_ref(), &mut layouts);
                    if let ExpressionKind::Variable(from) = value.kind
                        && let Some(operand @ Layout::LeftOperand { .. }) = &wanted
                        && reach == Reach::Tiles
                    {
                        // Computed as the tensor core reads it, it is exchanged between no threads.
                        layouts[from.index()].get_or_insert_with(|| operand.clone());
                    }
                    if reach == Reach::Slices
                        && let Some(wanted) = wanted.or_else(|| infer(value, &layouts))
                    {
                        broadcast_to(value, &wanted, &mut layouts);
                    }
                }
            });
        }
        if layouts == before && !place_opaque(group, reach, &mut layouts) {
            return known_in_time(group, hold_changing(group, block_loads(group, layouts)));
        }
    }
}

/// Tiles that are made once, of nothing that has a layout: they are computed anew where they are used.
pub(crate) fn inlined(group: &Group, layouts: &[Option<Layout>]) -> HashMap<VariableId, Expression> {
    let mut inlined = HashMap::new();
    let mut made: HashMap<VariableId, usize> = HashMap::new();
    visit(&group.body, &mut |op| {
        if let Op::Let { to, value } = op {
            *made.entry(*to).or_default() += 1;
            if layouts[to.index()].is_none() && !value.shape.is_empty() {
                inlined.insert(*to, value.clone());
            }
        }
    });
    inlined.retain(|v, _| made.get(v) == Some(&1));
    inlined
}

/// Gives variables that are operands of an elementwise operation its layout.
fn from_use(value: &Expression, wanted: Option<&Layout>, layouts: &mut [Option<Layout>]) {
    let ExpressionKind::Apply { operands, .. } = &value.kind else { return };
    let Some(layout) = wanted.cloned().or_else(|| infer(value, layouts)) else { return };
    for operand in operands.iter().filter(|o| o.shape == value.shape && !o.shape.is_empty()) {
        match operand.kind {
            ExpressionKind::Variable(VariableId(k)) if layouts[k as usize].is_none() => {
                layouts[k as usize] = Some(layout.clone());
            }
            _ => from_use(operand, Some(&layout), layouts),
        }
    }
}

/// Gives variables of which threads sum up their own columns the layout of the sums, so that nothing has to change its layout.
fn of_summed(tile: &Expression, layouts: &mut [Option<Layout>]) {
    let columns = tile.shape.get(1).copied().unwrap_or(8);
    let wanted = infer(tile, layouts).unwrap_or(Layout::accumulator(columns));
    match tile.kind {
        ExpressionKind::Variable(VariableId(k)) => {
            layouts[k as usize].get_or_insert(wanted);
        }
        _ => from_use(tile, Some(&wanted), layouts),
    }
}

/// Gives variables that an expression of this layout broadcasts their part of it.
fn broadcast_to(value: &Expression, wanted: &Layout, layouts: &mut [Option<Layout>]) {
    match &value.kind {
        ExpressionKind::Variable(VariableId(k)) if layouts[*k as usize].is_none() && !value.shape.is_empty() => {
            layouts[*k as usize] = Some(wanted.clone());
        }
        ExpressionKind::Broadcast(x) if x.shape.len() == value.shape.len() => broadcast_to(x, wanted, layouts),
        ExpressionKind::ExpandDims(axis, x) => {
            broadcast_to(x, &Layout::Slice(*axis, Box::new(wanted.clone())), layouts);
        }
        ExpressionKind::Apply { operands, .. } => operands.iter().for_each(|o| broadcast_to(o, wanted, layouts)),
        _ => {}
    }
}

/// The layout of the results of an operation that no pass has a rule for, if it follows from those of its operands.
fn of_opaque(operation: &Opaque, operands: &[Expression], layouts: &[Option<Layout>]) -> Option<Layout> {
    let known = || operands.iter().find_map(|operand| infer(operand, layouts));
    match operation.name.as_str() {
        "tt.elementwise_inline_asm" | "tt.scan" => known(),
        "tt.reduce" => {
            let axis = operation.attribute("axis").and_then(|axis| axis.parse().ok()).unwrap_or(0);
            Some(Layout::Slice(axis, Box::new(known()?)))
        }
        _ => None,
    }
}

/// Gives what operations make which no pass has a rule for, and nothing else decides about, a layout; whether any had none.
fn place_opaque(group: &Group, reach: Reach, layouts: &mut [Option<Layout>]) -> bool {
    let variable = |id: &VariableId| &group.variables[id.index()];
    let mut changed = false;
    let mut place = |results: &[VariableId], layout: &dyn Fn(&VariableId) -> Layout| {
        for to in results.iter().filter(|to| !variable(to).shape.is_empty()) {
            changed |= layouts[to.index()].is_none();
            layouts[to.index()].get_or_insert_with(|| layout(to));
        }
    };
    // Outside of loops what is only seen in another shape stays where it is.
    for node in &group.body {
        if let Node::Op(Op::Opaque { operation, results, .. }, _) = node
            && reach == Reach::Tiles
            && matches!(operation.name.as_str(), "tt.reshape" | "tt.join" | "tt.split")
        {
            place(results, &|to| Layout::Like(variable(to).name.clone()));
        }
    }
    visit(&group.body, &mut |op| {
        if let Op::Opaque { results, .. } = op {
            place(results, &|to| Layout::of_shape(&variable(to).shape, group.warps));
        }
    });
    changed
}

/// Tiles that change, and those that are computed of what changes, are held: computed anew where they are used, they would be
/// others.
fn hold_changing(group: &Group, mut layouts: Vec<Option<Layout>>) -> Vec<Option<Layout>> {
    let mut made = vec![0; group.variables.len()];
    visit(&group.body, &mut |op| {
        if let Op::Let { to, .. } | Op::Copy { to, .. } = op {
            made[to.index()] += 1;
        }
    });
    let mut changing = vec![false; group.variables.len()];
    visit_pipelined(&group.body, &mut |op| {
        if let Op::Let { to, .. } | Op::Copy { to, .. } = op {
            changing[to.index()] |= made[to.index()] > 1;
        }
    });
    loop {
        let before = changing.clone();
        visit_pipelined(&group.body, &mut |op| {
            if let Op::Let { to, value } = op {
                let mut reads = false;
                value.walk(&mut |e| reads |= matches!(e.kind, ExpressionKind::Variable(id) if changing[id.index()]));
                changing[to.index()] |= reads;
            }
        });
        if changing == before {
            break;
        }
    }
    for (k, variable) in group.variables.iter().enumerate() {
        if changing[k] && layouts[k].is_none() && !variable.shape.is_empty() {
            layouts[k] = Some(Layout::of_shape(&variable.shape, group.warps));
        }
    }
    layouts
}

/// What is made before the variable whose layout it was to have gets a layout of its own.
fn known_in_time(group: &Group, mut layouts: Vec<Option<Layout>>) -> Vec<Option<Layout>> {
    let mut made: Vec<bool> = vec![false; group.variables.len()];
    let mut make = |to: VariableId| {
        made[to.index()] = true;
        let is_known = |name: &str| group.variables.iter().zip(&made).any(|(one, made)| *made && one.name == name);
        if layouts[to.index()].as_ref().and_then(Layout::like).is_some_and(|name| !is_known(name)) {
            layouts[to.index()] = Some(Layout::of_shape(&group.variables[to.index()].shape, group.warps));
        }
    };
    visit(&group.body, &mut |op| match op {
        Op::Let { to, .. } | Op::Copy { to, .. } => make(*to),
        Op::Opaque { results, .. } => results.iter().for_each(|to| make(*to)),
        _ => {}
    });
    // Another name of a tile is no other layout.
    loop {
        let before = layouts.clone();
        visit(&group.body, &mut |op| {
            if let Op::Copy { to, from } = op
                && layouts[to.index()].as_ref().and_then(Layout::like).is_some()
            {
                layouts[to.index()] = layouts[from.index()].clone();
            }
        });
        if layouts == before {
            return layouts;
        }
    }
}

/// Calls it for every operation in pipelined loops.
fn visit_pipelined(nodes: &[Node], f: &mut impl FnMut(&Op)) {
    for node in nodes {
        match node {
            Node::PipelinedLoop { body, .. } => visit(body, f),
            _ => node.blocks().into_iter().for_each(|block| visit_pipelined(block, f)),
        }
    }
}

/// Tiles that are loaded through pointers and have no other layout get a blocked one.
fn block_loads(group: &Group, mut layouts: Vec<Option<Layout>>) -> Vec<Option<Layout>> {
    visit(&group.body, &mut |op| {
        if let Op::Let { to, value } = op
            && layouts[to.index()].is_none()
            && !value.shape.is_empty()
            && has_load(value)
        {
            layouts[to.index()] = Some(Layout::of_shape(&value.shape, group.warps));
        }
    });
    layouts
}

fn has_load(value: &Expression) -> bool {
    let mut found = false;
    value.walk(&mut |e| {
        found |= matches!(
            e.kind,
            ExpressionKind::Load { .. } | ExpressionKind::FromShared(_) | ExpressionKind::Reduce { .. }
        );
    });
    found
}

/// The layout that an expression has of itself.
pub(crate) fn infer(value: &Expression, layouts: &[Option<Layout>]) -> Option<Layout> {
    if value.shape.is_empty() {
        return None;
    }
    match &value.kind {
        ExpressionKind::Variable(VariableId(k)) => layouts[*k as usize].clone(),
        ExpressionKind::Apply { operands, .. } => {
            let whole = operands.iter().filter(|o| o.shape == value.shape && !is_view(o));
            let views = operands.iter().filter(|o| o.shape == value.shape && is_view(o));
            whole.chain(views).find_map(|o| infer(o, layouts))
        }
        ExpressionKind::Broadcast(x) => infer(x, layouts),
        ExpressionKind::Columns(_, x) => match infer(x, layouts)? {
            Layout::Accumulator { bits, .. } => Some(Layout::Accumulator { columns: *value.shape.get(1)?, bits }),
            _ => None,
        },
        ExpressionKind::ExpandDims(axis, x) => match infer(x, layouts)? {
            Layout::Slice(at, parent) if at == *axis => Some(*parent),
            _ => None,
        },
        ExpressionKind::Reduce { axis, operand, .. } => {
            infer(operand, layouts).map(|l| Layout::Slice(*axis, Box::new(l)))
        }
        ExpressionKind::Load { pointers, .. } => infer(pointers, layouts),
        // Groups of four warps reach all of tensor memory.
        ExpressionKind::FromTensor(_) => match value.shape.as_slice() {
            [rows, columns] => Some(Layout::Tensor { rows: *rows, columns: *columns, warps: 4 }),
            _ => None,
        },
        _ => None,
    }
}

fn is_view(value: &Expression) -> bool {
    matches!(value.kind, ExpressionKind::Broadcast(_) | ExpressionKind::ExpandDims(..))
}
