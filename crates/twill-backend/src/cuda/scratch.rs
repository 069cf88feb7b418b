//! What threads exchange through scratch memory: tiles brought to another layout, and elements combined along any dimension.
//!
//! Every group that does any of this has a piece of shared memory of its own. Tiles that are larger go through it piece by piece.

use super::expression::Expressions;
use super::fragment::{Axis, Fragment};
use super::names;
use super::operation::apply;
use crate::cuda::expression::flat_index;
use twill_codegen::Error;
use twill_codegen::ir::{Elementwise, Expression, ExpressionKind};
use twill_triton::mlir::Type;

/// Bytes that a group gets where there are as many.
const ENOUGH: u64 = 16 << 10;
/// Bytes that it gets in any case.
const LEAST: u64 = 1024;
/// Shared memory of a CTA on Hopper.
const AVAILABLE: u64 = 227 << 10;

/// Bytes of scratch memory of each group, where each needs at least so much and other things take `taken` bytes.
pub(super) fn sizes(least: &[Option<u64>], taken: u64) -> Vec<u64> {
    let count = least.iter().flatten().count() as u64;
    let free = AVAILABLE.saturating_sub(taken) / count.max(1);
    let fits = if free.is_power_of_two() { free } else { free.next_power_of_two() / 2 };
    let size = |least: &Option<u64>| least.map_or(0, |least| fits.clamp(LEAST, ENOUGH).max(least.next_power_of_two()));
    least.iter().map(size).collect()
}

/// What a group calls its scratch memory.
pub(super) fn name(group: &str) -> String {
    format!("scratch_of_{}", names::name(group))
}

impl Expressions<'_> {
    /// The group's scratch memory, of which it needs so many bytes.
    pub fn scratch(&self, bytes: u64) -> String {
        self.scratch.set(Some(self.scratch.get().unwrap_or(0).max(bytes)));
        format!("{}()", name(&self.group.name))
    }

    /// A tile of this shape that is held, brought to the fragment `want`, along whose indices its dimensions run.
    pub fn converted(&self, name: &str, shape: &[u64], want: &Fragment, axes: &[Option<Axis>]) -> String {
        self.moved(name, shape, want, &flat_index(axes, shape))
    }

    /// The same where the element that belongs at `e` is this one of the tile, counted row by row.
    pub fn moved(&self, name: &str, shape: &[u64], want: &Fragment, place: &str) -> String {
        let count: u64 = shape.iter().product();
        let scratch = self.scratch(8);
        format!("convert_layout<{count}, {}>({scratch}, {name}, [&](auto e) {{ return {place}; }})", want.name())
    }

    /// Elements of a held tile combined along an axis; `place` is which line's result belongs at `e`.
    pub fn reduced(
        &self,
        axis: usize,
        combine: &str,
        whole: &str,
        operand: &Expression,
        want: &Fragment,
        place: &str,
    ) -> String {
        let (count, extent, inner) = extents_along(&operand.shape, axis);
        let scratch = self.scratch(16 * extent);
        format!(
            "reduce<{count}, {extent}, {inner}, {}>({scratch}, {whole}, {combine}, [&](auto e) {{ return {place}; }})",
            want.name()
        )
    }
}

/// Elements of a tile, of a line along an axis, and between two neighbours along it.
pub(super) fn extents_along(shape: &[u64], axis: usize) -> (u64, u64, u64) {
    let inner: u64 = shape.get(axis + 1..).unwrap_or_default().iter().product();
    (shape.iter().product(), shape.get(axis).copied().unwrap_or(1), inner)
}

/// A function of two elements.
///
/// # Errors
/// For operations that are not written.
pub(super) fn combination(combine: &Elementwise, element: &Type) -> Result<String, Error> {
    Ok(match combine {
        Elementwise::AddF | Elementwise::AddI => "add{}".into(),
        Elementwise::MinNumF | Elementwise::MinSI => "min{}".into(),
        Elementwise::MaxNumF | Elementwise::MaxSI => "max{}".into(),
        other => {
            let kind = names::element(element)?;
            let one = |name: &str| Expression {
                kind: ExpressionKind::Parameter(name.into()),
                shape: Vec::new(),
                element: element.clone(),
            };
            let text = apply(other, &["a".into(), "b".into()], &[one("a"), one("b")], element)?;
            format!("[]({kind} a, {kind} b) {{ return {kind}({text}); }}")
        }
    })
}
