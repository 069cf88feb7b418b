//! The MMAs that a kernel uses: `wgmma` has its result's registers one by one in its text.

use super::names::{self, missing};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use twill_codegen::Error;
use twill_codegen::ir::{Group, Operand, Slot, Variable, WarpProgram};
use twill_codegen::ir::{Op, visit};
use twill_triton::mlir::{FloatKind, Type};

/// Most columns of a result.
const WIDEST: u64 = 256;

/// An instruction, for a type of elements.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Instruction {
    /// Columns of its result.
    columns: u64,
    /// Of its left and its right operand.
    kinds: [Kind; 2],
    /// Of its result: numbers of 32 bits, or of 16, two to a register.
    sum: Sum,
    /// The operands' types in C++.
    elements: [String; 2],
    /// Where its left operand is.
    left: Left,
    /// Elements of a row of the right operand are side by side.
    right_along_columns: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sum {
    Single,
    Half,
    Integer,
}

/// Elements of an operand, by PTX's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    F16,
    Bf16,
    Tf32,
    E4m3,
    E5m2,
    S8,
}

impl Kind {
    /// Of a type; `None` of types that no `wgmma` multiplies.
    fn of(element: &Type) -> Option<Self> {
        Some(match element {
            Type::Float(FloatKind::F16) => Self::F16,
            Type::Float(FloatKind::BF16) => Self::Bf16,
            Type::Float(FloatKind::F32) => Self::Tf32,
            Type::Float(FloatKind::F8E4M3FN) => Self::E4m3,
            Type::Float(FloatKind::F8E5M2) => Self::E5m2,
            Type::Integer(8) => Self::S8,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Tf32 => "tf32",
            Self::E4m3 => "e4m3",
            Self::E5m2 => "e5m2",
            Self::S8 => "s8",
        }
    }

    /// Elements along the depth of one instruction: 32 bytes.
    fn depth(self) -> u64 {
        match self {
            Self::F16 | Self::Bf16 => 16,
            Self::Tf32 => 8,
            Self::E4m3 | Self::E5m2 | Self::S8 => 32,
        }
    }

    /// Whether the instruction reads operands in either order ("imm-trans"). Others lie along the depth.
    fn has_transposition(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Left {
    Registers,
    /// In shared memory, elements of a row or of a column side by side.
    Shared {
        along_rows: bool,
    },
}

/// Definitions of the instructions of all groups.
pub(super) fn definitions(kernel: &WarpProgram) -> Result<String, Error> {
    let mut used = BTreeSet::new();
    for group in &kernel.groups {
        let mut error = None;
        visit(&group.body, &mut |op| {
            if let Op::Wgmma { to, left, right, .. } = op {
                match of(kernel, group, &group.variables[to.index()], left, right) {
                    Ok(one) => drop(used.insert(one)),
                    Err(why) => error = Some(why),
                }
            }
        });
        if let Some(error) = error {
            return Err(error);
        }
    }
    let specialisations: BTreeSet<String> = used.iter().map(Instruction::specialisation).collect();
    let mut out = String::new();
    for specialisation in specialisations {
        let _ = writeln!(out, "template <> struct instruction<{specialisation}> {{");
        for one in &used {
            if one.specialisation() == specialisation {
                out.push_str(&one.text());
            }
        }
        out.push_str("};\n");
    }
    Ok(out)
}

fn of(
    kernel: &WarpProgram,
    group: &Group,
    to: &Variable,
    left: &Operand,
    right: &Operand,
) -> Result<Instruction, Error> {
    let Operand::Shared(slot) = right else { return Err(missing("a right operand in registers".into())) };
    let buffer = |slot: &Slot| &kernel.buffers[slot.buffer.index()];
    let columns = to.shape.get(1).copied().map(|c| c.min(WIDEST)).filter(|c| c % 8 == 0);
    let Some(columns) = columns else {
        return Err(missing("an MMA whose result has not a multiple of 8 columns".into()));
    };
    let right_element = &buffer(slot).element;
    let (left, left_element) = match left {
        Operand::Shared(slot) => (Left::Shared { along_rows: slot.transposed }, &buffer(slot).element),
        Operand::Registers(variable) => (Left::Registers, &group.variables[variable.index()].element),
    };
    let kind = |element| Kind::of(element).ok_or_else(|| missing(format!("MMAs of {element}")));
    let kinds = [kind(left_element)?, kind(right_element)?];
    let is_float8 = kinds.map(|kind| matches!(kind, Kind::E4m3 | Kind::E5m2));
    if kinds[0] != kinds[1] && is_float8 != [true; 2] {
        return Err(missing("operands of two types".into()));
    }
    let right_along_columns = !slot.transposed;
    if !kinds[1].has_transposition() {
        if left == Left::Registers {
            return Err(missing(format!("MMAs of {left_element} with the left operand in registers")));
        }
        if left == (Left::Shared { along_rows: true }) || right_along_columns {
            return Err(missing(format!("MMAs of {right_element} whose operands do not lie along the depth")));
        }
    }
    let sum = match to.element {
        Type::Float(FloatKind::F32) if kinds[0] != Kind::S8 => Sum::Single,
        Type::Float(FloatKind::F16) if kinds[0] == Kind::F16 => Sum::Half,
        // Those of fewer columns exist for 8, 16 and 24 ("Matrix Shape").
        Type::Integer(32) if kinds[0] == Kind::S8 && (columns % 16 == 0 || columns < 32) => Sum::Integer,
        ref other => return Err(missing(format!("sums of {other}"))),
    };
    let elements = [names::element(left_element)?, names::element(right_element)?];
    Ok(Instruction { columns, kinds, sum, elements, left, right_along_columns })
}

impl Instruction {
    fn is_left_transposed(&self) -> bool {
        self.left == Left::Shared { along_rows: true }
    }

    /// The arguments of its template.
    fn specialisation(&self) -> String {
        let [left, right] = &self.elements;
        format!("{}, {left}, {right}, {}, {}", self.columns, self.is_left_transposed(), self.right_along_columns)
    }

    fn text(&self) -> String {
        let (registers, constraint, result, sum) = match self.sum {
            Sum::Single => (self.columns / 2, "+f", "float", "f32"),
            Sum::Half => (self.columns / 4, "+r", "u32", "f16"),
            Sum::Integer => (self.columns / 2, "+r", "int", "s32"),
        };
        let join = |mut each: Vec<String>, with: &str| {
            let lines: Vec<String> = each.chunks_mut(16).map(|line| line.join(with)).collect();
            lines.join(&format!("{with}\n          "))
        };
        let results = (0..registers).map(|k| format!("%{k}")).collect::<Vec<_>>().join(", ");
        let outputs = join((0..registers).map(|k| format!("\"{constraint}\"(d[{k}])")).collect(), ", ");
        let (left, taken, inputs, parameter) = match self.left {
            Left::Registers => {
                let names: Vec<String> = (0..4).map(|k| format!("%{}", registers + k)).collect();
                let inputs = "\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3])";
                (format!("{{{}}}", names.join(", ")), 4, inputs, "const u32 *a")
            }
            Left::Shared { .. } => (format!("%{registers}"), 1, "\"l\"(a)", "u64 a"),
        };
        let right = registers + taken;
        let [left_kind, right_kind] = self.kinds;
        // Signs of the operands, which integers have none of, and which lie along rows.
        let mut immediates = if self.sum == Sum::Integer { String::new() } else { ", 1, 1".to_owned() };
        if right_kind.has_transposition() {
            if let Left::Shared { along_rows } = self.left {
                let _ = write!(immediates, ", {}", u32::from(along_rows));
            }
            let _ = write!(immediates, ", {}", u32::from(self.right_along_columns));
        }
        format!(
            "  TWILL static void issue({result} *d, {parameter}, u64 b, bool adds) {{
    asm volatile(\"{{ .reg .pred p; setp.ne.b32 p, %{}, 0; \"
        \"wgmma.mma_async.sync.aligned.m64n{}k{}.{sum}.{}.{} \"
        \"{{{results}}}, \"
        \"{left}, %{right}, p{immediates}; }}\"
        : {outputs}
        : {inputs}, \"l\"(b), \"r\"(int(adds)));
  }}
",
            right + 1,
            self.columns,
            right_kind.depth(),
            left_kind.name(),
            right_kind.name(),
        )
    }
}
