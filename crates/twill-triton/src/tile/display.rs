//! A loop of tile operations as a listing.
//!
//! ```text
//! loop gemm_tma, 128 rows (line 38 of examples/gemm_tma.py)
//!   a   = load tma                         : 128x64xf16
//!   b   = load tma                         : 128x64xf16
//!   acc = dot a, b^T, acc[-1]              : 128x128xf32
//! ```
//! `^T` is a transposed operand, `[-1]` one from an iteration before, `'` one that stays the same in all iterations.

use std::fmt;

use super::{Operand, Origin, Role, Split, TileLoop, TileOpKind, TileOperation, Transfer};

impl fmt::Display for TileLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "loop {}", self.name)?;
        if let Some(rows) = self.rows {
            write!(f, ", {rows} rows")?;
        }
        match self.split {
            Split::Whole => {}
            Split::Rows(count) => write!(f, " in {count} sub-tiles")?,
            Split::Programs { count, axis } => write!(f, ", {count} programs along {axis}")?,
        }
        match self.source() {
            Some(source) => writeln!(f, " (line {} of {})", source.line, source.file)?,
            None => writeln!(f)?,
        }
        let names = self.operation_names();
        let left = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let middles: Vec<String> = self.operations.iter().map(|op| self.expression(op, &names)).collect();
        let middle = middles.iter().map(|text| text.chars().count()).max().unwrap_or(0);
        for ((op, name), text) in self.operations.iter().zip(&names).zip(&middles) {
            match op.result {
                Some(result) => {
                    let tile = self.tile(result);
                    write!(f, "  {name:left$} = {text:middle$} : ")?;
                    tile.shape.iter().try_for_each(|extent| write!(f, "{extent}x"))?;
                    writeln!(f, "{}", tile.element)?;
                }
                None => writeln!(f, "  {name:left$}   {text}")?,
            }
        }
        Ok(())
    }
}

impl TileLoop {
    fn expression(&self, op: &TileOperation, names: &[String]) -> String {
        let mut text = op.label().to_owned();
        match op.kind {
            TileOpKind::Load(transfer) | TileOpKind::Store(transfer) | TileOpKind::AtomicReduce(transfer) => text
                .push_str(match transfer {
                    Transfer::Tma => " tma",
                    Transfer::Pointer => " pointer",
                }),
            TileOpKind::Reduce { axis, .. } => text.push_str(&format!(" axis {axis}")),
            TileOpKind::Dot { .. }
            | TileOpKind::Elementwise { .. }
            | TileOpKind::Convert
            | TileOpKind::Opaque { .. } => {}
        }
        let operands: Vec<String> = op.operands.iter().map(|operand| self.operand_text(operand, names)).collect();
        if !operands.is_empty() {
            text.push(' ');
            text.push_str(&operands.join(", "));
        }
        text
    }

    fn operand_text(&self, operand: &Operand, names: &[String]) -> String {
        let tiles: Vec<String> = operand
            .tiles
            .iter()
            .map(|id| match (&self.tile(*id).origin, self.tile(*id).part) {
                (Origin::Operation(producer), _) => names[producer.index()].clone(),
                (Origin::Invariant { name, .. }, None) => format!("{name}'"),
                (Origin::Invariant { name, .. }, Some(part)) => format!("{name}.{part}'"),
            })
            .collect();
        let mut text = if tiles.len() == 1 { tiles.concat() } else { format!("{{{}}}", tiles.join(", ")) };
        if operand.distance > 0 {
            text.push_str(&format!("[-{}]", operand.distance));
        }
        if operand.is_transposed() {
            text.push_str("^T");
        }
        if operand.role == Role::Address {
            text = format!("at {text}");
        }
        text
    }
}
