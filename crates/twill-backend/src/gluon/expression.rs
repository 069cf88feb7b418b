//! Expressions as Gluon source.

use super::ahead::{Ahead, Invariant, without_zeros};
use super::layout::{Layout, View, infer};
use super::load::load;
use super::names::dtype;
use super::names::parameter;
use super::opaque::list;
use super::operation::{apply, is_number};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use twill_codegen::Iteration;
use twill_codegen::ir::Group;
use twill_codegen::ir::{Buffer, Elementwise};
use twill_codegen::ir::{Expression, ExpressionKind, IterationNumber};
use twill_codegen::ir::{Slot, VariableId, WarpProgram};
use twill_triton::mlir::Type;

/// What is needed to print a group's expressions.
pub(super) struct Names<'a> {
    pub kernel: &'a WarpProgram,
    pub group: &'a Group,
    pub layouts: Vec<Option<Layout>>,
    /// Tiles that are computed anew where they are used.
    pub inlined: HashMap<VariableId, Expression>,
    /// Tiles of indices that are computed anew where they are wanted in another layout than their own.
    pub recomputed: HashMap<VariableId, Expression>,
    /// One operation after the other is executed as the TTIR has it: numbers have its types.
    pub in_order: bool,
    /// Layouts that were named.
    pub used: RefCell<BTreeSet<Layout>>,
    /// Operands of MMAs that shared memory holds while a loop runs: by variable, and whether it is a left one.
    pub held: RefCell<HashMap<(VariableId, bool), String>>,
    /// What the innermost loop surely changes; none outside of loops.
    pub changing: RefCell<Option<HashSet<VariableId>>>,
    /// What goes ahead of the loop whose body is written.
    pub ahead: RefCell<Option<Ahead>>,
}

impl Names<'_> {
    pub fn layout(&self, layout: &Layout) -> String {
        layout.roots(&mut self.used.borrow_mut());
        layout.name()
    }

    pub fn variable(&self, id: VariableId) -> &str {
        &self.group.variables[id.index()].name
    }

    /// A layout for a tile that nothing else decides about.
    fn default_layout(&self, value: &Expression) -> Layout {
        let rank = value.shape.len();
        match self.in_order {
            true => super::in_order::coalesced(&value.shape, rank.saturating_sub(1), 32, self.group.warps),
            false => Layout::of_shape(&value.shape, self.group.warps),
        }
    }

    /// The iteration's number.
    pub fn iteration(&self, index: usize, iteration: Iteration) -> String {
        let trips = self.group.trips.get(index).copied().flatten().map_or("trips", |v| self.variable(v));
        let with = |base: &str, n: i64| match n {
            0 => base.to_owned(),
            n if n < 0 => format!("({base} - {})", -n),
            n => format!("({base} + {n})"),
        };
        match iteration {
            Iteration::Absolute(n) => n.to_string(),
            Iteration::Current(n) => with(&super::names::induction(index), n),
            Iteration::End(n) => with(trips, n),
        }
    }

    /// A tile in shared memory.
    pub fn slot(&self, slot: &Slot) -> String {
        let buffer = &self.kernel.buffers[slot.buffer.index()];
        let mut text = format!("{}.index({})", buffer.name, self.slot_index(slot));
        if buffer.is_tensor() {
            return text + &super::tensor_memory::part(slot);
        }
        let is_seen_anew = slot.transposed && is_in_rows(buffer);
        if is_seen_anew {
            let shape: Vec<u64> = buffer.shape.iter().rev().copied().collect();
            let layout = "gl.SwizzledSharedLayout(1, 1, 1, [0, 1])";
            text = format!("{text}._reinterpret({}, {}, {layout})", dtype(&buffer.element), list(&shape));
        }
        if let Some((dimension, start, extent)) = slot.slice {
            let dimension = if is_seen_anew { 1 - dimension } else { dimension };
            text = format!("{text}.slice({start}, {extent}, dim={dimension})");
        }
        if slot.transposed && !is_seen_anew {
            text.push_str(".permute((1, 0))");
        }
        text
    }

    /// The number of a slot.
    pub fn slot_index(&self, slot: &Slot) -> String {
        match slot.at {
            Some(at) if self.group.cursors[at.index()].slots > 1 => self.group.cursors[at.index()].name.clone(),
            _ => "0".into(),
        }
    }

    /// A scalar.
    pub fn scalar(&self, value: &Expression) -> String {
        match &value.kind {
            ExpressionKind::Variable(id) => self.variable(*id).to_owned(),
            ExpressionKind::Parameter(name) => parameter(self.kernel, name),
            ExpressionKind::ProgramId { axis, instance } => {
                let name = ["x", "y", "z"].get(*axis as usize).copied().unwrap_or("x");
                match instance {
                    Some(p) => format!("program_{name}_{p}"),
                    None => format!("program_{name}"),
                }
            }
            ExpressionKind::ProgramCount(axis) => {
                format!("programs_{}", ["x", "y", "z"].get(*axis as usize).copied().unwrap_or("x"))
            }
            // The trip count may be a number of Python's, which has no type.
            ExpressionKind::Iteration(IterationNumber { index, iteration: iteration @ Iteration::End(_) }) => {
                format!("gl.to_tensor({})", self.iteration(*index, *iteration))
            }
            ExpressionKind::Iteration(number) => self.iteration(number.index, number.iteration),
            ExpressionKind::UnknownZero => "unknown_zero()".into(),
            ExpressionKind::Integer(n) if self.in_order => {
                format!("scalar({}, {})", integer(*n, &value.element), dtype(&value.element))
            }
            ExpressionKind::Float(x) if self.in_order => format!("scalar({}, {})", float(*x), dtype(&value.element)),
            ExpressionKind::Integer(n) => integer(*n, &value.element),
            ExpressionKind::Float(x) => float(*x),
            ExpressionKind::Apply { operation, operands } => {
                // An operation by MLIR's name takes no numbers of Python's.
                let is_opaque = matches!(operation, Elementwise::Opaque(_)) && !self.in_order;
                let typed = |o: &Expression| match self.scalar(o) {
                    text if is_opaque && is_number(&text) => format!("gl.to_tensor({text}).to({})", dtype(&o.element)),
                    text => text,
                };
                let operands: Vec<String> = operands.iter().map(typed).collect();
                apply(operation, &operands, &value.element)
            }
            ExpressionKind::Load { pointers, mask, other } => {
                let mask = mask.as_deref().map(|mask| self.scalar(mask));
                let other = other.as_deref().map(|other| (self.scalar(other), other));
                let other = other.as_ref().map(|(text, other)| (text.as_str(), *other));
                load(&value.element, &self.scalar(pointers), mask.as_deref(), other, "")
            }
            ExpressionKind::Broadcast(x) => self.scalar(x),
            ExpressionKind::FromShared(slot) => {
                let layout = self.layout(&Layout::blocked(1, self.group.warps));
                let text = format!("unsplat({}.load({layout}))", self.slot(slot));
                if value.element == Type::Integer(1) { format!("({text} != 0)") } else { text }
            }
            ExpressionKind::Reduce { axis, combine, operand } => {
                let layout = infer(operand, &self.layouts).unwrap_or_else(|| self.default_layout(operand));
                format!("{}({}, {axis})", reduction(combine), self.tile(operand, &layout))
            }
            // A name that nobody defines stops the compiler: nothing wrong is computed.
            _ => "undefined_scalar".into(),
        }
    }

    /// A tile in a layout.
    pub fn tile(&self, value: &Expression, want: &Layout) -> String {
        self.part(value, want, false)
    }

    /// A tile in a layout; `broadcasts`: where a smaller one does, for the operation around it broadcasts it.
    fn part(&self, value: &Expression, want: &Layout, broadcasts: bool) -> String {
        if value.shape.is_empty() {
            return self.scalar(value);
        }
        let shape = || {
            let extents: Vec<String> = value.shape.iter().map(u64::to_string).collect();
            format!("[{}]", extents.join(", "))
        };
        let full = |scalar: String| {
            format!("gl.full({}, {scalar}, {}, {})", shape(), dtype(&value.element), self.layout(want))
        };
        let invariant = self.ahead.borrow().as_ref().and_then(|ahead| ahead.takes(value));
        if let Some(invariant) = invariant {
            return self.invariant(value, want, invariant);
        }
        match &value.kind {
            ExpressionKind::Variable(id) => {
                if let Some(expression) = self.inlined.get(id) {
                    return self.part(expression, want, broadcasts);
                }
                match (&self.layouts[id.index()], self.recomputed.get(id)) {
                    (Some(have), _) if have == want => self.variable(*id).to_owned(),
                    (_, Some(expression)) => self.part(expression, want, false),
                    _ => format!("gl.convert_layout({}, {})", self.variable(*id), self.layout(want)),
                }
            }
            ExpressionKind::Integer(n) if broadcasts => integer(*n, &value.element),
            ExpressionKind::Float(x) if broadcasts => float(*x),
            ExpressionKind::Integer(n) => full(integer(*n, &value.element)),
            ExpressionKind::Float(x) => full(float(*x)),
            ExpressionKind::Range(start, end) => format!("gl.arange({start}, {end}, layout={})", self.layout(want)),
            ExpressionKind::Broadcast(x) if self.in_order && x.shape.is_empty() => {
                format!("splat({}, {}, {})", self.scalar(x), shape(), self.layout(want))
            }
            ExpressionKind::Broadcast(x) if self.in_order => {
                format!("broadcast_to({}, {})", self.part(x, want, false), shape())
            }
            ExpressionKind::Broadcast(x) if broadcasts => self.part(x, want, true),
            ExpressionKind::Broadcast(x) if x.shape.is_empty() => full(self.scalar(x)),
            ExpressionKind::Broadcast(x) if x.shape == value.shape => self.part(x, want, broadcasts),
            ExpressionKind::Broadcast(x) if matches!(value.element, Type::Pointer { .. }) => {
                let zeros = format!("gl.full({}, 0, gl.int32, {})", shape(), self.layout(want));
                format!("(({}) + {zeros})", self.part(x, want, false))
            }
            ExpressionKind::Broadcast(x) => {
                // Added to -0.0, every number stays what it is.
                let zero = if matches!(value.element, Type::Float(_)) { "-0.0" } else { "0" };
                format!("({} + {})", full(zero.into()), self.part(x, want, false))
            }
            ExpressionKind::ExpandDims(axis, x) => {
                let inner = Layout::Slice(*axis, Box::new(want.clone()));
                let is_of_tile = matches!(&x.kind, ExpressionKind::Broadcast(of) if !of.shape.is_empty());
                format!("gl.expand_dims({}, {axis})", self.part(x, &inner, broadcasts && is_of_tile))
            }
            ExpressionKind::Transpose(order, x) => {
                // Where no thread has to exchange anything.
                let turned = match want {
                    Layout::Coalesced { .. } if order == &[1, 0] => {
                        Some(want.clone().viewed(&View::Permuted(order.clone()), &value.shape))
                    }
                    _ => None,
                };
                let inner = infer(x, &self.layouts).or(turned).unwrap_or_else(|| self.default_layout(x));
                format!(
                    "gl.convert_layout(gl.permute({}, {order:?}), {})",
                    self.part(x, &inner, false),
                    self.layout(want)
                )
            }
            ExpressionKind::Apply { operation, operands } => {
                let is_typed = self.in_order || matches!(operation, Elementwise::Opaque(_));
                let covered = !is_typed && covers(operands, &value.shape);
                if !covered && !is_typed && operands.iter().all(is_single) {
                    let operands: Vec<String> = operands.iter().map(|o| self.single(o)).collect();
                    return full(apply(operation, &operands, &value.element));
                }
                let operands: Vec<String> = operands.iter().map(|o| self.part(o, want, covered)).collect();
                apply(operation, &operands, &value.element)
            }
            ExpressionKind::Columns(start, x) => {
                let inner = infer(x, &self.layouts).unwrap_or_else(|| self.default_layout(x));
                let extent = value.shape.get(1).copied().unwrap_or(1);
                let columns = format!("columns_of({}, {start}, {extent})", self.part(x, &inner, false));
                format!("gl.convert_layout({columns}, {})", self.layout(want))
            }
            ExpressionKind::Reduce { axis, combine, operand } => {
                let inner = infer(operand, &self.layouts).unwrap_or_else(|| self.default_layout(operand));
                let reduced = format!("{}({}, {axis})", reduction(combine), self.part(operand, &inner, false));
                if Layout::Slice(*axis, Box::new(inner)) == *want {
                    reduced
                } else {
                    format!("gl.convert_layout({reduced}, {})", self.layout(want))
                }
            }
            ExpressionKind::PartialSums(_) => {
                format!("gl.convert_layout({}, {})", self.partials(value), self.layout(want))
            }
            ExpressionKind::Load { pointers, .. }
                if self.in_order && infer(pointers, &self.layouts).is_some_and(|l| l != *want) =>
            {
                let have = infer(pointers, &self.layouts).unwrap_or_else(|| want.clone());
                format!("gl.convert_layout({}, {})", self.part(value, &have, false), self.layout(want))
            }
            ExpressionKind::Load { pointers, mask, other } => {
                let mask = mask.as_deref().map(|mask| self.part(mask, want, false));
                let other = other.as_deref().map(|other| (self.part(other, want, !self.in_order), other));
                let other = other.as_ref().map(|(text, other)| (text.as_str(), *other));
                load(&value.element, &self.part(pointers, want, false), mask.as_deref(), other, "")
            }
            ExpressionKind::FromShared(slot) => {
                let text = format!("{}.load({})", self.slot(slot), self.layout(want));
                let is_bit = value.element == Type::Integer(1);
                if is_bit { format!("({text} != 0)") } else { text }
            }
            ExpressionKind::FromTensor(slot) => {
                let have = infer(value, &self.layouts).unwrap_or_else(|| want.clone());
                let text = format!("{}.load({})", self.slot(slot), self.layout(&have));
                if have == *want { text } else { format!("gl.convert_layout({text}, {})", self.layout(want)) }
            }
            _ => full(self.scalar(value)),
        }
    }

    /// A tile that goes ahead of the loop whose body is written.
    fn invariant(&self, value: &Expression, want: &Layout, invariant: Invariant) -> String {
        let text = match invariant {
            Invariant::Quotient => {
                // It is written without going ahead of itself.
                let ahead = self.ahead.take();
                let text = self.part(&without_zeros(value), want, false);
                self.ahead.replace(ahead);
                text
            }
            Invariant::Vector => {
                self.ahead.replace_with(|ahead| ahead.take().map(|ahead| ahead.within(true)));
                let text = self.part(value, want, false);
                self.ahead.replace_with(|ahead| ahead.take().map(|ahead| ahead.within(false)));
                text
            }
        };
        let mut ahead = self.ahead.borrow_mut();
        ahead.as_mut().map_or(text.clone(), |ahead| ahead.name(text))
    }

    /// Per-thread partials of row sums, in the layout of their tile.
    pub fn partials(&self, value: &Expression) -> String {
        let ExpressionKind::PartialSums(tile) = &value.kind else { return self.scalar(value) };
        let columns = tile.shape.get(1).copied().unwrap_or(8);
        let inner = infer(tile, &self.layouts).unwrap_or(Layout::accumulator(columns));
        format!("row_partials({})", self.part(tile, &inner, false))
    }

    /// A tile with the same value everywhere, as a scalar.
    fn single(&self, value: &Expression) -> String {
        match &value.kind {
            ExpressionKind::Broadcast(x) => self.single(x),
            ExpressionKind::Apply { operation, operands } if !value.shape.is_empty() => {
                let operands: Vec<String> = operands.iter().map(|o| self.single(o)).collect();
                apply(operation, &operands, &value.element)
            }
            ExpressionKind::Integer(n) => integer(*n, &value.element),
            ExpressionKind::Float(x) => float(*x),
            _ => self.scalar(value),
        }
    }
}

/// Whether all elements of a tile are the same.
fn is_single(value: &Expression) -> bool {
    match &value.kind {
        ExpressionKind::Broadcast(x) => is_single(x),
        ExpressionKind::Integer(_) | ExpressionKind::Float(_) => true,
        ExpressionKind::Apply { operands, .. } => operands.iter().all(is_single),
        _ => value.shape.is_empty(),
    }
}

/// Whether operands make the whole shape when each is broadcast by the operation itself.
fn covers(operands: &[Expression], shape: &[u64]) -> bool {
    fn own(value: &Expression) -> Vec<u64> {
        match &value.kind {
            ExpressionKind::Broadcast(x) => own(x),
            ExpressionKind::Integer(_) | ExpressionKind::Float(_) => Vec::new(),
            _ => value.shape.clone(),
        }
    }
    let shapes: Vec<Vec<u64>> = operands.iter().map(own).filter(|s| s.len() == shape.len()).collect();
    (0..shape.len()).all(|d| shapes.iter().any(|s| s[d] == shape[d]))
}

pub(super) fn integer(value: i128, element: &Type) -> String {
    if matches!(element, Type::Integer(1)) {
        return if value == 0 { "False" } else { "True" }.into();
    }
    value.to_string()
}

pub(super) fn float(value: f64) -> String {
    if value.is_nan() {
        "float(\"nan\")".into()
    } else if value.is_infinite() {
        format!("float(\"{}inf\")", if value < 0.0 { "-" } else { "" })
    } else {
        format!("{value:?}")
    }
}

fn reduction(combine: &Elementwise) -> &'static str {
    match combine {
        Elementwise::AddF | Elementwise::AddI => "gl.sum",
        Elementwise::MinNumF | Elementwise::MinimumF | Elementwise::MinSI => "gl.min",
        _ => "gl.max",
    }
}

/// Whether a tile that TMA copies lies in shared memory row after row: no swizzle is as narrow as its rows. Triton takes such a
/// layout for the same when it is transposed (3.6 to 3.9), and would read rows for columns.
fn is_in_rows(buffer: &Buffer) -> bool {
    /// Bytes of the narrowest swizzle, and rows of one.
    const SWIZZLE: [u64; 2] = [32, 8];
    let [rows, columns] = *buffer.shape.as_slice() else { return false };
    let bytes = columns * u64::from(buffer.element.scalar_bits().unwrap_or(8)) / 8;
    !buffer.plain && (bytes % SWIZZLE[0] != 0 || rows < SWIZZLE[1])
}
