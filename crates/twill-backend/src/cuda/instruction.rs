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
    /// Of its operands, such as `f16`.
    kind: &'static str,
    /// Of its result: numbers of 32 bits, or of 16, two to a register.
    sum: Sum,
    /// The type in C++.
    element: String,
    /// Where its left operand is.
    left: Left,
    /// Elements of a row of the right operand are side by side.
    right_along_columns: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sum {
    Single,
    Half,
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
    let kinds: BTreeSet<(u64, &str, &String, bool, bool)> =
        used.iter().map(|i| (i.columns, i.kind, &i.element, i.is_left_transposed(), i.right_along_columns)).collect();
    let mut out = String::new();
    for (columns, kind, element, left_along_rows, right_along_columns) in kinds {
        let _ = writeln!(
            out,
            "template <> struct instruction<{columns}, {element}, {left_along_rows}, {right_along_columns}> {{"
        );
        for one in &used {
            let is_this = one.columns == columns
                && one.kind == kind
                && one.is_left_transposed() == left_along_rows
                && one.right_along_columns == right_along_columns;
            if is_this {
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
    let element = &buffer(slot).element;
    let kind = match element {
        Type::Float(FloatKind::F16) => "f16",
        Type::Float(FloatKind::BF16) => "bf16",
        other => return Err(missing(format!("MMAs of {other}"))),
    };
    let left = match left {
        Operand::Shared(slot) => Left::Shared { along_rows: slot.transposed },
        Operand::Registers(variable) if group.variables[variable.index()].element == *element => Left::Registers,
        Operand::Registers(_) => return Err(missing("operands of two types".into())),
    };
    let sum = match to.element {
        Type::Float(FloatKind::F32) => Sum::Single,
        Type::Float(FloatKind::F16) if kind == "f16" => Sum::Half,
        ref other => return Err(missing(format!("sums of {other}"))),
    };
    Ok(Instruction {
        columns,
        kind,
        sum,
        element: names::element(element)?,
        left,
        right_along_columns: !slot.transposed,
    })
}

impl Instruction {
    fn is_left_transposed(&self) -> bool {
        self.left == Left::Shared { along_rows: true }
    }

    fn text(&self) -> String {
        let (registers, constraint, result, sum) = match self.sum {
            Sum::Single => (self.columns / 2, "+f", "float", "f32"),
            Sum::Half => (self.columns / 4, "+r", "u32", "f16"),
        };
        let join = |mut each: Vec<String>, with: &str| {
            let lines: Vec<String> = each.chunks_mut(16).map(|line| line.join(with)).collect();
            lines.join(&format!("{with}\n          "))
        };
        let results = (0..registers).map(|k| format!("%{k}")).collect::<Vec<_>>().join(", ");
        let outputs = join((0..registers).map(|k| format!("\"{constraint}\"(d[{k}])")).collect(), ", ");
        let (left, taken, inputs, parameter, transposed) = match self.left {
            Left::Registers => {
                let names: Vec<String> = (0..4).map(|k| format!("%{}", registers + k)).collect();
                let inputs = "\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3])";
                (format!("{{{}}}", names.join(", ")), 4, inputs, "const u32 *a", String::new())
            }
            Left::Shared { along_rows } => {
                (format!("%{registers}"), 1, "\"l\"(a)", "u64 a", format!(" {},", u32::from(along_rows)))
            }
        };
        let right = registers + taken;
        let kind = self.kind;
        format!(
            "  TWILL static void issue({result} *d, {parameter}, u64 b, bool adds) {{
    asm volatile(\"{{ .reg .pred p; setp.ne.b32 p, %{}, 0; \"
        \"wgmma.mma_async.sync.aligned.m64n{}k16.{sum}.{kind}.{kind} \"
        \"{{{results}}}, \"
        \"{left}, %{right}, p, 1, 1,{transposed} {}; }}\"
        : {outputs}
        : {inputs}, \"l\"(b), \"r\"(int(adds)));
  }}
",
            right + 1,
            self.columns,
            u32::from(self.right_along_columns),
        )
    }
}
