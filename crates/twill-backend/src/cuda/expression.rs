//! Expressions as C++: a tile is made element by element, so that no operation on tiles needs a name of its own.

use super::fragment::{Axis, Fragment};
use super::names::{self, missing};
use super::operation::{apply, bare};
use super::scratch::combination;
use super::{rows, tensor_memory};
use crate::layout::{Layout, infer};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use twill_codegen::Error;
use twill_codegen::Iteration;
use twill_codegen::ir::Elementwise;
use twill_codegen::ir::{Expression, ExpressionKind};
use twill_codegen::ir::{Group, Slot, VariableId, WarpProgram};
use twill_triton::mlir::{FloatKind, Type};

/// What is needed to print a group's expressions.
pub(super) struct Expressions<'a> {
    pub kernel: &'a WarpProgram,
    pub group: &'a Group,
    pub layouts: Vec<Option<Layout>>,
    /// Tiles that are computed anew where they are used.
    pub inlined: HashMap<VariableId, Expression>,
    /// Statements that must stand before the one that is being printed.
    pub before: RefCell<Vec<String>>,
    /// Names given so far to what such statements make.
    pub made: Cell<usize>,
    /// Bytes of scratch memory without which the group cannot do what was printed; none if it needs no scratch memory.
    pub scratch: Cell<Option<u64>>,
}

impl Expressions<'_> {
    /// A variable's name.
    pub fn variable(&self, id: VariableId) -> String {
        names::name(&self.group.variables[id.index()].name)
    }

    /// How a variable is held; none for a scalar and for what is computed anew.
    pub fn fragment_of(&self, id: VariableId) -> Option<Fragment> {
        let variable = &self.group.variables[id.index()];
        let layout = self.layouts[id.index()].as_ref().filter(|_| !variable.shape.is_empty())?;
        Some(Fragment::of(layout, &variable.shape, self.group.warps))
    }

    /// How a tile is held if nobody says.
    pub fn fragment(&self, value: &Expression) -> Fragment {
        let layout = infer(value, &self.layouts).unwrap_or_else(|| self.open(&value.shape));
        Fragment::of(&layout, &value.shape, self.group.warps)
    }

    /// The layout of a tile that nothing decides about.
    pub fn open(&self, shape: &[u64]) -> Layout {
        let in_rows = tensor_memory::is_used(self.kernel).then(|| rows::of_shape(self.group, shape)).flatten();
        in_rows.unwrap_or_else(|| Layout::blocked(shape.len(), self.group.warps))
    }

    /// A tile in shared memory.
    pub fn smem_tile(&self, slot: &Slot) -> Result<String, Error> {
        let buffer = &self.kernel.buffers[slot.buffer.index()];
        if buffer.is_tensor() {
            return Err(missing("tensor memory".into()));
        }
        let name = names::name(&buffer.name);
        let mut text = match slot.at {
            Some(at) if buffer.slots > 1 => format!("{name}({})", names::name(&self.group.cursors[at.index()].name)),
            _ => format!("{name}()"),
        };
        if let Some((dimension, first, count)) = slot.slice {
            let part = if dimension + 1 < buffer.shape.len() { "row_part" } else { "column_part" };
            let step = if part == "row_part" { 8 } else { 1 };
            if first % step != 0 {
                return Err(missing(format!("a part of a tile that begins at row {first}")));
            }
            text = format!("{text}.{part}<{first}, {count}>()");
        }
        Ok(text)
    }

    /// A statement before the one that is being printed, which gives a value this name.
    pub fn first(&self, stem: &str, value: &str) -> String {
        self.made.set(self.made.get() + 1);
        let name = format!("{stem}_{}_", self.made.get());
        self.before.borrow_mut().push(format!("const auto {name} = {value};"));
        name
    }

    /// The iteration's number.
    pub fn iteration(&self, index: usize, iteration: Iteration) -> String {
        let trips = self.group.trips.get(index).copied().flatten().map_or("trips".into(), |v| self.variable(v));
        let with = |base: &str, n: i64| match n {
            0 => base.to_owned(),
            n if n < 0 => format!("({base} - {})", -n),
            n => format!("({base} + {n})"),
        };
        match iteration {
            Iteration::Absolute(n) => n.to_string(),
            Iteration::Current(n) => with("i", n),
            Iteration::End(n) => with(&trips, n),
        }
    }

    /// A scalar.
    pub fn scalar(&self, value: &Expression) -> Result<String, Error> {
        let axis = |axis: u32| ["x", "y", "z"].get(axis as usize).copied().unwrap_or("x");
        Ok(match &value.kind {
            ExpressionKind::Variable(id) => self.variable(*id),
            ExpressionKind::Parameter(name) => names::name(name),
            ExpressionKind::ProgramId { axis: a, instance: Some(p) } => format!("program_{}_{p}", axis(*a)),
            ExpressionKind::ProgramId { axis: a, instance: None } => format!("program_{}", axis(*a)),
            ExpressionKind::ProgramCount(a) => format!("programs_{}", axis(*a)),
            ExpressionKind::Iteration(number) => self.iteration(number.index, number.iteration),
            ExpressionKind::UnknownZero => "unknown_zero()".into(),
            ExpressionKind::Integer(n) => integer(*n, &value.element),
            ExpressionKind::Float(x) => float(*x, &value.element)?,
            ExpressionKind::Apply { operation, operands } => {
                let texts: Result<Vec<String>, Error> = operands.iter().map(|o| self.scalar(o)).collect();
                apply(operation, &texts?, operands, &value.element)?
            }
            ExpressionKind::Load { pointers, mask, other } => {
                let part = |e: &Expression| self.scalar(e);
                loaded(&value.element, pointers, mask.as_deref(), other.as_deref(), part)?
            }
            ExpressionKind::Broadcast(x) if x.shape.is_empty() => self.scalar(x)?,
            ExpressionKind::Reduce { axis, combine, operand } => {
                let have = self.fragment(operand);
                let (combine, whole) = (combination(combine, &value.element)?, self.held(operand, &have)?);
                let one = Fragment::Linear { shape: Vec::new(), warps: self.group.warps };
                let reduced = self.reduced(*axis, &combine, &whole, operand, &one, "0");
                format!("{}.held[0]", self.first("whole", &reduced))
            }
            ExpressionKind::FromShared(slot) => {
                let element = names::element(&self.kernel.buffers[slot.buffer.index()].element)?;
                let text = format!("ld_shared_element<{element}>({}.address(0, 0))", self.smem_tile(slot)?);
                self.first("read", &text)
            }
            _ => return Err(missing("this expression as a number".into())),
        })
    }

    /// A tile.
    pub fn tile(&self, value: &Expression, want: &Fragment) -> Result<String, Error> {
        match &value.kind {
            ExpressionKind::Variable(id) if self.fragment_of(*id).as_ref() == Some(want) => {
                return Ok(self.variable(*id));
            }
            ExpressionKind::Reduce { .. }
            | ExpressionKind::PartialSums(_)
            | ExpressionKind::FromShared(_)
            | ExpressionKind::FromTensor(_) => {
                let (text, have) = self.whole(value, want, &want.axes(value.shape.len()))?;
                if have == *want {
                    return Ok(text);
                }
                let name = self.first("whole", &text);
                return Ok(self.converted(&name, &value.shape, want, &want.axes(value.shape.len())));
            }
            _ => {}
        }
        let element = names::element(&value.element)?;
        let of = self.rounded_last(value, want);
        let text = self.element(of, want, &want.axes(value.shape.len()))?;
        Ok(format!("each<{element}, {}>([&](auto e) {{ return {}; }})", want.name(), bare(&text)))
    }

    /// Without its last step, if that rounds to 16 bits, which `each` does two by two.
    fn rounded_last<'e>(&self, value: &'e Expression, want: &Fragment) -> &'e Expression {
        let is_half = matches!(value.element, Type::Float(FloatKind::F16 | FloatKind::BF16));
        match &value.kind {
            ExpressionKind::Apply { operation, operands, .. }
                if is_half && want.is_paired() && matches!(operation, Elementwise::TruncF | Elementwise::FpToFp) =>
            {
                match operands.as_slice() {
                    [one] if one.element == Type::Float(FloatKind::F32) => one,
                    _ => value,
                }
            }
            _ => value,
        }
    }

    /// What is made as a whole, in the fragment `want`, along whose indices its dimensions run: a reduction, or a tile from
    /// shared memory; and the layout it has.
    fn whole(&self, value: &Expression, want: &Fragment, axes: &[Option<Axis>]) -> Result<(String, Fragment), Error> {
        match &value.kind {
            ExpressionKind::Reduce { axis, combine, operand } => {
                let have = self.fragment(operand);
                let result = match have {
                    Fragment::Accumulator { rows, .. } | Fragment::PartialSums { rows } => {
                        Some(Fragment::Rows { rows })
                    }
                    Fragment::Tensor { rows, .. } => Some(Fragment::TensorRows { rows }),
                    _ => None,
                };
                if let Some(result) = result.filter(|_| *axis == 1) {
                    let text = self.held(operand, &have)?;
                    return Ok((format!("quad_all_reduce({text}, {})", combination(combine, &value.element)?), result));
                }
                let combine = combination(combine, &value.element)?;
                let whole = self.held(operand, &have)?;
                let text = self.reduced(*axis, &combine, &whole, operand, want, &flat_index(axes, &value.shape));
                Ok((text, want.clone()))
            }
            ExpressionKind::PartialSums(operand) => {
                let columns = operand.shape.get(1).copied().unwrap_or(8);
                let layout = infer(operand, &self.layouts).unwrap_or(Layout::accumulator(columns));
                let have = Fragment::of(&layout, &operand.shape, self.group.warps);
                let Fragment::Accumulator { rows, .. } = have else {
                    return Err(missing(format!("row sums of a tile in the layout {}", have.name())));
                };
                let partials = Fragment::PartialSums { rows };
                Ok((format!("row_partials({}, add{{}})", self.held(operand, &have)?), partials))
            }
            ExpressionKind::FromShared(slot) => {
                let tile = self.smem_tile(slot)?;
                let element = names::element(&self.kernel.buffers[slot.buffer.index()].element)?;
                let is_bit = value.element == Type::Integer(1);
                let load = if want.is_in_vectors() { "ld_shared_v4" } else { "ld_shared" };
                let mut each = axes.iter().zip(want.axes(axes.len())).zip(&value.shape);
                let is_as_it_stands = !slot.transposed
                    && each.all(|((have, want), extent)| *have == want || have.is_none() && *extent == 1)
                    && !matches!(want, Fragment::Linear { .. })
                    && value.shape.len() <= 2;
                if !is_as_it_stands {
                    let (row, column) = self.place_in_shared(slot, &value.shape, axes);
                    let get = format!("ld_shared_element<{element}>(from.address({row}, {column}))");
                    let name = want.name();
                    let text = format!("each<{element}, {name}>([from = {tile}](auto e) {{ return {get}; }})");
                    return Ok((text, want.clone()));
                }
                if is_bit {
                    let whole = self.first("read", &format!("{load}<{element}, {}>({tile})", want.name()));
                    let text = format!("each<bool, {}>([&](auto e) {{ return {whole}[e] != 0; }})", want.name());
                    return Ok((text, want.clone()));
                }
                let is_half = matches!(value.element, Type::Float(FloatKind::F16 | FloatKind::BF16));
                let is_whole =
                    matches!(want, Fragment::Accumulator { rows, columns } if rows % 64 == 0 && columns % 16 == 0);
                let text = if is_half && is_whole {
                    format!("ldmatrix({tile})")
                } else {
                    format!("{load}<{element}, {}>({tile})", want.name())
                };
                Ok((text, want.clone()))
            }
            ExpressionKind::FromTensor(slot) => {
                Ok((format!("tmem_load({})", tensor_memory::tmem_tile(self, slot)?), self.fragment(value)))
            }
            _ => Err(missing("this tile".into())),
        }
    }

    /// Row and column in shared memory of an element whose dimensions run along these indices: of more dimensions than two,
    /// all but the last one are rows.
    pub fn place_in_shared(&self, slot: &Slot, shape: &[u64], axes: &[Option<Axis>]) -> (String, String) {
        let mut at: Vec<Option<Axis>> = axes.to_vec();
        let mut shape = shape.to_vec();
        if slot.transposed && at.len() == 2 {
            at.swap(0, 1);
            shape.swap(0, 1);
        }
        match at.split_last() {
            Some((last, rows)) => (flat_index(rows, &shape), flat_index(&[*last], &shape[rows.len()..])),
            None => ("0".into(), "0".into()),
        }
    }

    /// A tile with a name.
    pub fn held(&self, value: &Expression, want: &Fragment) -> Result<String, Error> {
        let text = self.tile(value, want)?;
        let is_variable = matches!(&value.kind, ExpressionKind::Variable(id) if !self.inlined.contains_key(id));
        Ok(if is_variable && !text.contains('(') { text } else { self.first("part", &text) })
    }

    /// One element of a tile whose dimensions run along these indices of the element `e` of `want`.
    pub fn element(&self, value: &Expression, want: &Fragment, axes: &[Option<Axis>]) -> Result<String, Error> {
        if value.shape.is_empty() {
            return self.scalar(value);
        }
        let of = |x: &Expression| {
            // What is one wide is the same along that dimension.
            let axes: Vec<_> = axes.iter().zip(&x.shape).map(|(a, n)| a.filter(|_| *n != 1)).collect();
            self.element(x, want, &axes)
        };
        match &value.kind {
            ExpressionKind::Variable(id) => {
                if let Some(expression) = self.inlined.get(id) {
                    return self.element(expression, want, axes);
                }
                let Some(have) = self.fragment_of(*id) else { return Err(missing("a tile without a layout".into())) };
                let name = self.variable(*id);
                Ok(self.of_held(&name, &have, &value.shape, want, axes))
            }
            ExpressionKind::Integer(n) => Ok(integer(*n, &value.element)),
            ExpressionKind::Float(x) => float(*x, &value.element),
            ExpressionKind::Range(start, _) => {
                let index = axes.first().copied().flatten().map_or_else(|| "0".into(), Axis::index);
                Ok(if *start == 0 { index } else { format!("({index} + {start})") })
            }
            ExpressionKind::Broadcast(x) if x.shape.is_empty() => self.scalar(x),
            ExpressionKind::Broadcast(x) => of(x),
            ExpressionKind::ExpandDims(dimension, x) => {
                let mut axes = axes.to_vec();
                if *dimension < axes.len() {
                    axes.remove(*dimension);
                }
                self.element(x, want, &axes)
            }
            ExpressionKind::Transpose(order, x) => {
                let mut inner = vec![None; x.shape.len()];
                for (d, from) in order.iter().enumerate() {
                    if let (Some(index), Some(axis)) = (inner.get_mut(*from), axes.get(d)) {
                        *index = *axis;
                    }
                }
                self.element(x, want, &inner)
            }
            ExpressionKind::Apply { operation, operands } => {
                let texts: Result<Vec<String>, Error> = operands.iter().map(|o| self.element(o, want, axes)).collect();
                apply(operation, &texts?, operands, &value.element)
            }
            ExpressionKind::Load { pointers, mask, other } => {
                loaded(&value.element, pointers, mask.as_deref(), other.as_deref(), |e| self.element(e, want, axes))
            }
            // A tile of one element is the same everywhere.
            ExpressionKind::FromShared(slot) if value.shape.iter().all(|extent| *extent == 1) => {
                let element = names::element(&self.kernel.buffers[slot.buffer.index()].element)?;
                let one = format!("ld_shared_element<{element}>({}.address(0, 0))", self.smem_tile(slot)?);
                let is_bit = value.element == Type::Integer(1);
                Ok(self.first("one", &if is_bit { format!("({one} != 0)") } else { one }))
            }
            ExpressionKind::Reduce { .. }
            | ExpressionKind::PartialSums(_)
            | ExpressionKind::FromShared(_)
            | ExpressionKind::FromTensor(_) => {
                let part = want.part(axes);
                let (text, have) = self.whole(value, &part, axes)?;
                let name = self.first("whole", &text);
                // What was made for this part is held as it.
                if have == part {
                    return Ok(format!("{name}[e]"));
                }
                Ok(self.of_held(&name, &have, &value.shape, want, axes))
            }
            _ => Err(missing("this expression".into())),
        }
    }

    /// An element of a tile of this shape that is held, brought to where it is wanted if that is elsewhere.
    fn of_held(&self, name: &str, have: &Fragment, shape: &[u64], want: &Fragment, axes: &[Option<Axis>]) -> String {
        let part = want.part(axes);
        let is_straight = axes.iter().flatten().is_sorted_by_key(|a| match a {
            Axis::Row => 0,
            Axis::Column => 1,
            Axis::Dimension(d) => *d,
        });
        if have.is_held_as(&part) && is_straight {
            return format!("{name}[e]");
        }
        let converted = self.converted(name, shape, &part, axes);
        format!("{}[e]", self.first("moved", &converted))
    }
}

/// Where an element is in a tile of this shape, counted row by row, whose dimensions run along these indices.
pub(super) fn flat_index(axes: &[Option<Axis>], shape: &[u64]) -> String {
    let mut terms = Vec::new();
    for (d, axis) in axes.iter().enumerate() {
        let stride: u64 = shape.get(d + 1..axes.len()).unwrap_or_default().iter().product();
        match axis {
            Some(axis) if stride == 1 => terms.push(axis.index()),
            Some(axis) => terms.push(format!("{} * {stride}", axis.index())),
            None => {}
        }
    }
    if terms.is_empty() { "0".into() } else { terms.join(" + ") }
}

/// A load through a pointer.
fn loaded(
    element: &Type,
    pointers: &Expression,
    mask: Option<&Expression>,
    other: Option<&Expression>,
    print: impl Fn(&Expression) -> Result<String, Error>,
) -> Result<String, Error> {
    let value = format!("*{}", print(pointers)?);
    let Some(mask) = mask else { return Ok(value) };
    let kind = names::element(element)?;
    let other = other.map_or_else(|| Ok(format!("{kind}(0)")), &print)?;
    Ok(format!("({} ? {value} : {other})", print(mask)?))
}

fn integer(value: i128, element: &Type) -> String {
    match element {
        Type::Integer(1) => if value == 0 { "false" } else { "true" }.into(),
        Type::Integer(64) | Type::Index if value == i128::from(i64::MIN) => "(-9223372036854775807ll - 1)".into(),
        Type::Integer(64) | Type::Index => format!("{}ll", value),
        Type::Integer(32) if value == i128::from(i32::MIN) => "(-2147483647 - 1)".into(),
        _ => value.to_string(),
    }
}

fn float(value: f64, element: &Type) -> Result<String, Error> {
    let text = if value.is_nan() {
        "__int_as_float(0x7fffffff)".into()
    } else if value.is_infinite() {
        if value < 0.0 { "__int_as_float(0xff800000)" } else { "__int_as_float(0x7f800000)" }.to_owned()
    } else if *element == Type::Float(FloatKind::F64) {
        format!("{value:?}")
    } else {
        format!("{value:?}f")
    };
    let is_single = matches!(element, Type::Float(FloatKind::F32));
    Ok(if is_single { text } else { format!("{}({text})", names::element(element)?) })
}

/// An operand of an MMA in shared memory.
pub(super) fn operand(print: &Expressions<'_>, slot: &Slot) -> Result<String, Error> {
    let tile = print.smem_tile(slot)?;
    Ok(if slot.transposed { format!("transpose({tile})") } else { tile })
}
