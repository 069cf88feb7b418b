//! Multiplications outside the pipeline's own MMAs: how each is done, in which layout, and its text.

use super::expression::Names;
use super::in_order::coalesced;
use super::layout::Layout;
use super::names::dtype;
use super::opaque::{list, own, unknown};
use twill_codegen::ir::{Expression, ExpressionKind, Group, Op, Opaque, VariableId, visit};
use twill_triton::mlir::{FloatKind, Type};

/// How a multiplication is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dot {
    /// By `wgmma`, in elements of this many bits.
    Wgmma(u32),
    /// By `mma.sync`.
    Mma,
    /// Without the tensor core.
    Fma,
}

impl Dot {
    /// The layout of its result.
    pub fn layout(self, shape: &[u64], warps: u32) -> Layout {
        match self {
            Dot::Wgmma(bits) => Layout::Mma { version: 3, shape: shape.to_vec(), bits, warps },
            Dot::Mma => Layout::Mma { version: 2, shape: shape.to_vec(), bits: 16, warps },
            Dot::Fma => coalesced(shape, shape.len().saturating_sub(1), 32, warps),
        }
    }
}

/// How a `tt.dot` is done; none where its operands are not what they must be.
pub(super) fn dot(operation: &Opaque, operands: &[Expression], warps: u32) -> Option<Dot> {
    let [a, b, sum, ..] = operands else { return None };
    let precision = operation.attribute("inputPrecision").unwrap_or("ieee");
    let bits = a.element.scalar_bits()?;
    let is_8_bits = |e: &Type| matches!(e, Type::Float(_)) && e.scalar_bits() == Some(8);
    let on_tensor_core = match (&a.element, &b.element) {
        (Type::Float(FloatKind::F16), Type::Float(FloatKind::F16))
        | (Type::Float(FloatKind::BF16), Type::Float(FloatKind::BF16))
        | (Type::Integer(8), Type::Integer(8)) => true,
        (Type::Float(FloatKind::F32), Type::Float(FloatKind::F32)) => precision == "tf32",
        (a, b) => is_8_bits(a) && is_8_bits(b),
    };
    let [.., rows, depth] = a.shape.as_slice() else { return None };
    let columns = b.shape.last()?;
    let is_deep = depth * u64::from(bits) >= 256;
    if !on_tensor_core || !is_deep || sum.element == Type::Float(FloatKind::F64) {
        return Some(Dot::Fma);
    }
    let is_fnuz = |e: &Type| is_8_bits(e) && !matches!(e, Type::Float(FloatKind::F8E4M3FN | FloatKind::F8E5M2));
    let spread = warps == 4 || *rows >= 128 || *columns >= 16;
    if a.shape.len() == 2
        && *rows >= 64
        && columns * u64::from(bits) >= 128
        && *columns >= 8
        && spread
        && !is_fnuz(&a.element)
        && !is_fnuz(&b.element)
    {
        return Some(Dot::Wgmma(bits));
    }
    if *rows >= 16 && *columns >= 8 { Some(Dot::Mma) } else { Some(Dot::Fma) }
}

/// How a `tt.dot` is done here: beside a pipeline not by `wgmma`, which the pipeline's own passes do.
fn multiplied_by(in_order: bool, operation: &Opaque, operands: &[Expression], warps: u32) -> Option<Dot> {
    match dot(operation, operands, warps)? {
        Dot::Wgmma(_) if !in_order => Some(Dot::Mma),
        how => Some(how),
    }
}

/// The layouts of the results of multiplications beside a pipeline.
pub(super) fn results(group: &Group) -> Vec<Option<Layout>> {
    let mut layouts = vec![None; group.variables.len()];
    for nodes in [&group.begin, &group.body, &group.end] {
        visit(nodes, &mut |op| {
            if let Op::Opaque { operation, operands, results } = op
                && let ("tt.dot", [.., sum], [to]) = (operation.name.as_str(), operands.as_slice(), results.as_slice())
                && let Some(how) = multiplied_by(false, operation, operands, group.warps)
            {
                layouts[to.index()] = Some(how.layout(&sum.shape, group.warps));
            }
        });
    }
    layouts
}

pub(super) fn multiplication(
    names: &Names<'_>,
    operation: &Opaque,
    operands: &[Expression],
    results: &[VariableId],
) -> String {
    let ([a, b, sum, ..], Some(to)) = (operands, results.first()) else { return unknown(operation) };
    let Some(how) = multiplied_by(names.in_order, operation, operands, names.group.warps) else {
        return unknown(operation);
    };
    let want = how.layout(&sum.shape, names.group.warps);
    let sum = names.tile(sum, &want);
    let precision = match operation.attribute("inputPrecision").unwrap_or("ieee") {
        "tf32" => "\"tf32\"",
        _ => "\"ieee\"",
    };
    let text = match how {
        Dot::Wgmma(bits) => {
            // Other elements than those of 16 bits must be contiguous along the depth, and short rows are wrong otherwise
            // (Triton 3.6: rows of less than 128 bytes, found by comparison with stock on an H100).
            let row_bits = b.shape.last().map_or(0, |columns| columns * u64::from(bits));
            let right = if bits == 16 && row_bits >= 1024 { "" } else { ", transposed=True" };
            let shared = |e: &Expression, more: &str| {
                format!("gl.NVMMASharedLayout.get_default_for({}, {}{more})", list(&e.shape), dtype(&e.element))
            };
            let depth = a.shape.last().copied().unwrap_or(0);
            let imprecise = operation.attribute("maxNumImpreciseAcc").and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
            let imprecise = imprecise.min(depth);
            format!(
                "dot_wgmma({}, {}, {sum}, {}, {}, {precision}, {imprecise})",
                own(names, a),
                own(names, b),
                shared(a, ""),
                shared(b, right)
            )
        }
        // Elements of 32 bits take as many registers.
        Dot::Mma if let (Some(32), Some(parts)) = (a.element.scalar_bits(), depth_at_a_time(a, b)) => {
            format!("dot_mma_shared({}, {sum}, {}, {precision})", in_shared(names, a, b), parts.text())
        }
        Dot::Mma => {
            let operand = |index: usize, e: &Expression| {
                let is_quarter = matches!(e.element, Type::Float(kind) if kind.bits() == 8);
                let bits = if is_quarter { 16 } else { u64::from(e.element.scalar_bits().unwrap_or(16)) };
                let text = match &e.kind {
                    // It comes from shared memory as it is needed.
                    ExpressionKind::FromShared(slot) => format!(
                        "{}.load(gl.DotOperandLayout({index}, {}, {}))",
                        names.slot(slot),
                        names.layout(&want),
                        32 / bits.max(1)
                    ),
                    _ => own(names, e),
                };
                if is_quarter { format!("{text}.to(gl.float16)") } else { text }
            };
            format!("dot_mma({}, {}, {sum}, {precision})", operand(0, a), operand(1, b))
        }
        Dot::Fma => match depth_at_a_time(a, b) {
            Some(parts) => format!("dot_fma_shared({}, {sum}, {})", in_shared(names, a, b), parts.text()),
            None => format!("dot_fma({}, {}, {sum})", own(names, a), own(names, b)),
        },
    };
    match &names.layouts[to.index()] {
        Some(have) if *have != want => {
            format!("{} = gl.convert_layout({text}, {})", names.variable(*to), names.layout(have))
        }
        _ => format!("{} = {text}", names.variable(*to)),
    }
}

/// The depth of operands, and how much of it is multiplied at a time, so that threads hold no more of them; none if that is all. What
/// is contiguous along the depth in shared memory is cut where a swizzle begins again, at 128 bytes.
fn depth_at_a_time(a: &Expression, b: &Expression) -> Option<Parts> {
    // Triton multiplies no less.
    const ROWS: u64 = 16;
    let [_, depth] = *a.shape.as_slice() else { return None };
    let step = |e: &Expression, is_right: bool| match &e.kind {
        ExpressionKind::FromShared(slot) if slot.transposed == is_right => {
            1024 / u64::from(e.element.scalar_bits().unwrap_or(8).max(1))
        }
        _ => ROWS,
    };
    let step = step(a, false).max(step(b, true));
    // Both stand there at once.
    const MOST_BYTES: u64 = 64 << 10;
    let put = |e: &Expression| match &e.kind {
        ExpressionKind::FromShared(_) => 0,
        _ => e.shape.iter().product::<u64>() * u64::from(e.element.scalar_bits().unwrap_or(8)) / 8,
    };
    let fits = put(a) + put(b) <= MOST_BYTES;
    (depth > step && depth % step == 0 && fits).then_some(Parts { depth, at_a_time: step })
}

/// Parts of the depth of a multiplication.
struct Parts {
    depth: u64,
    at_a_time: u64,
}

impl Parts {
    fn text(&self) -> String {
        format!("{}, {}", self.depth, self.at_a_time)
    }
}

/// Operands as tiles in shared memory, put there where they are not.
fn in_shared(names: &Names<'_>, a: &Expression, b: &Expression) -> String {
    let each = [(a, "in_columns"), (b, "in_rows")].map(|(operand, stored_by)| match &operand.kind {
        ExpressionKind::FromShared(slot) => names.slot(slot),
        _ => format!("{stored_by}({})", own(names, operand)),
    });
    each.join(", ")
}
