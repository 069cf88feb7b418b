//! Multiplications outside the pipeline's own MMAs: how each is done, in which layout, and its text.

use super::changing::is_changing;
use super::expression::Names;
use super::in_order::coalesced;
use super::layout::Layout;
use super::names::dtype;
use super::opaque::{list, own, unknown};
use std::collections::HashSet;
use twill_codegen::ir::{Expression, ExpressionKind, Group, Node, Op, Opaque, VariableId, visit};
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
    // A warp group is four warps.
    let spread = warps == 4 || (warps > 4 && (*rows >= 128 || *columns >= 16));
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

/// Registers of a thread that hold both operands of a multiplication by `mma.sync` as a whole. It is reckoned; others were not timed.
const MOST_OPERAND_REGISTERS: u64 = 64;

/// Whether threads hold both operands of an `mma.sync` as a whole: each warp those of its part of the result.
pub(super) fn are_held_by_mma(a: &Expression, b: &Expression, warps: u32) -> bool {
    let ([rows, depth], [_, columns]) = (a.shape.as_slice(), b.shape.as_slice()) else { return true };
    let bits = u64::from(a.element.scalar_bits().unwrap_or(32));
    let (along_rows, along_columns) = super::layout::warps_of_mma_sync(*rows, warps);
    let along_columns = along_columns.clamp(1, (columns / 8).max(1));
    let elements = depth * (rows / along_rows + columns / along_columns);
    elements * bits / 32 / 32 <= MOST_OPERAND_REGISTERS
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
        Dot::Wgmma(_) => {
            return by_wgmma(names, operation, operands, *to)
                .map_or_else(|| unknown(operation), |mma| mma.waited_for(names, *to));
        }
        // Elements of 32 bits take as many registers.
        Dot::Mma
            if !are_held_by_mma(a, b, names.group.warps)
                && let (Some(32), Some(parts)) = (a.element.scalar_bits(), depth_at_a_time(a, b)) =>
        {
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

/// A `wgmma` that is started.
pub(super) struct StartedMma {
    /// Its statements.
    pub lines: Vec<String>,
    /// Names of what must stay where it is until it has ended, besides its result.
    pub operands: Vec<String>,
    /// How its operands would be put into shared memory, the left one first, where they are not there: a left one may be in
    /// registers.
    puts: [Option<String>; 2],
    /// The layout that its variable has, where that is another one.
    converted: Option<Layout>,
}

impl StartedMma {
    /// Whether its result may be waited for later.
    pub fn may_run_on(&self) -> bool {
        self.converted.is_none()
    }

    /// Its statements, and those that wait for it.
    pub fn waited_for(self, names: &Names<'_>, to: VariableId) -> String {
        let mut lines = self.lines;
        let to = names.variable(to);
        lines.push(wait(&[to.to_owned()], &self.operands));
        if let Some(layout) = &self.converted {
            lines.push(format!("{to} = gl.convert_layout({to}, {})", names.layout(layout)));
        }
        lines.join("\n")
    }
}

/// The statement that waits for results, and frees operands.
pub(super) fn wait(results: &[String], operands: &[String]) -> String {
    let all: Vec<&str> = results.iter().chain(operands).map(String::as_str).collect();
    let comma = if all.len() == 1 { "," } else { "" };
    let all = all.join(", ");
    format!("{all} = warpgroup_mma_wait(0, deps=({all}{comma}))")
}

/// A multiplication outside the pipeline's own MMAs that `wgmma` does; none for another one.
pub(super) fn by_wgmma(
    names: &Names<'_>,
    operation: &Opaque,
    operands: &[Expression],
    to: VariableId,
) -> Option<StartedMma> {
    let [a, b, sum, ..] = operands else { return None };
    let how = multiplied_by(names.in_order, operation, operands, names.group.warps)?;
    let Dot::Wgmma(bits) = how else { return None };
    let want = how.layout(&sum.shape, names.group.warps);
    let sum = names.tile(sum, &want);
    let precision = if operation.attribute("inputPrecision") == Some("tf32") { "\"tf32\"" } else { "\"ieee\"" };
    // Other elements than those of 16 bits must be contiguous along the depth, and short rows are wrong otherwise
    // (Triton 3.6: rows of less than 128 bytes, found by comparison with stock on an H100).
    let is_read_by_rows = |e: &Expression, dimension: usize| {
        let row_bits = e.shape.get(dimension).map_or(0, |extent| extent * u64::from(bits));
        bits == 16 && row_bits >= 1024
    };
    let (mut lines, mut kept) = (Vec::new(), Vec::new());
    let result = names.variable(to);
    let is_taken = |name: &str| {
        let parameters = names.kernel.parameters.iter().map(|one| &one.name);
        let others = names.kernel.buffers.iter().map(|one| &one.name).chain(parameters);
        names.group.variables.iter().map(|one| &one.name).chain(others).any(|other| other == name)
    };
    let mut named = |mut name: String, text: String| {
        while is_taken(&name) {
            name.push('_');
        }
        lines.push(format!("{name} = {text}"));
        kept.push(name.clone());
        name
    };
    // The depth is the left operand's last dimension, and the right one's first.
    let slot = |e: &Expression, along_depth: bool, across: usize| match &e.kind {
        ExpressionKind::Variable(id) => names.held.borrow().get(&(*id, along_depth)).cloned(),
        ExpressionKind::FromShared(slot)
            if !names.kernel.buffers[slot.buffer.index()].plain
                && (slot.transposed != along_depth || is_read_by_rows(e, across)) =>
        {
            Some(names.slot(slot))
        }
        _ => None,
    };
    // In the order in which threads hold it, where it may be read so.
    let shared = |e: &Expression, is_left: bool| {
        let is_by_columns =
            matches!(super::layout::infer(e, &names.layouts), Some(Layout::Coalesced { dimension: 0, .. }));
        let is_turned = match is_left {
            true => is_by_columns && is_read_by_rows(e, 0),
            false => is_by_columns || !is_read_by_rows(e, 1),
        };
        let more = if is_turned { ", transposed=True" } else { "" };
        let layout = format!("gl.NVMMASharedLayout.get_default_for({}, {}{more})", list(&e.shape), dtype(&e.element));
        format!("put({}, {layout})", own(names, e))
    };
    let mut puts = [None, None];
    // Between more warps than four an operand goes through shared memory, which what looks at machine code cannot tell from others.
    let mut is_exchanged = false;
    let mut is_put = false;
    let left = match slot(a, true, 0) {
        Some(slot) => slot,
        None => {
            let operand = Layout::Operand { index: 0, bits, parent: Box::new(want.clone()) };
            let put = puts[0].insert(shared(a, true)).clone();
            let may_stay = names.changing.borrow().as_ref().is_none_or(|changing| is_changing(a, changing));
            let text = match super::layout::infer(a, &names.layouts) {
                Some(have)
                    if may_stay
                        && bits == 16
                        && (have == operand || matches!(have, Layout::Mma { version: 3, .. })) =>
                {
                    is_exchanged = have != operand && names.group.warps > 4;
                    names.tile(a, &operand)
                }
                _ => {
                    is_put = true;
                    put
                }
            };
            named(format!("{result}_left"), text)
        }
    };
    let right = slot(b, false, 1).unwrap_or_else(|| {
        is_put = true;
        named(format!("{result}_right"), puts[1].insert(shared(b, false)).clone())
    });
    let depth = a.shape.last().copied().unwrap_or(0);
    let imprecise = operation.attribute("maxNumImpreciseAcc").and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    // What copies brought is fenced behind their wait.
    if is_exchanged || is_put {
        lines.push("fence_async_shared()".into());
    }
    lines.push(format!("{result} = start_wgmma({left}, {right}, {sum}, {precision}, {})", imprecise.min(depth)));
    let converted = names.layouts[to.index()].clone().filter(|have| *have != want);
    Some(StartedMma { lines, operands: kept, puts, converted })
}

/// What a loop's MMAs read of what is made before it, and is held in shared memory meanwhile: the variable, whether it is a left
/// operand, and how it is put there.
pub(super) fn held_operands(names: &Names<'_>, body: &[Node]) -> Vec<(VariableId, bool, String)> {
    let (mut made, mut found) = (HashSet::new(), Vec::new());
    made_in(body, &mut made);
    visit(body, &mut |op| {
        let Op::Opaque { operation, operands, results } = op else { return };
        let ("tt.dot", [to]) = (operation.name.as_str(), results.as_slice()) else { return };
        let Some(mma) = by_wgmma(names, operation, operands, *to) else { return };
        for ((operand, is_left), put) in operands.iter().zip([true, false]).zip(mma.puts) {
            if let (ExpressionKind::Variable(id), Some(text)) = (&operand.kind, put)
                && !made.contains(id)
                && !found.iter().any(|(other, left, _)| (other, *left) == (id, is_left))
            {
                found.push((*id, is_left, text));
            }
        }
    });
    found
}

/// The variables that nodes give values.
fn made_in(nodes: &[Node], made: &mut HashSet<VariableId>) {
    for node in nodes {
        match node {
            Node::Op(Op::Let { to, .. } | Op::Copy { to, .. }, _) => {
                made.insert(*to);
            }
            Node::Op(Op::Opaque { results, .. }, _) => made.extend(results),
            Node::For { variable, .. } => {
                made.insert(*variable);
            }
            _ => {}
        }
        node.blocks().into_iter().for_each(|block| made_in(block, made));
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
