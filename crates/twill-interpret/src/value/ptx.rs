//! Inline PTX on elements of f32 (PTX ISA, "Floating Point Instructions", "Comparison and Selection Instructions"): instructions
//! one after another, with registers of their own and predicates.

use super::number::Arithmetic;
use super::tile::{Data, Tile};
use crate::fault::Fault;
use std::rc::Rc;
use twill_triton::mlir::{FloatKind, Type};

/// What `tt.elementwise_inline_asm` makes of its operands, tiles of one shape.
pub(crate) fn inline_ptx(
    text: &str,
    given: &[Rc<Tile>],
    element: &Type,
    arithmetic: Arithmetic,
) -> Result<Tile, Fault> {
    let unknown = || Fault::Unknown { what: format!("inline PTX `{text}`") };
    let shape = given.first().ok_or_else(unknown)?.shape.clone();
    let columns: Option<Vec<&[f64]>> = given.iter().map(|tile| tile.floats().filter(|_| tile.shape == shape)).collect();
    let columns = columns.ok_or_else(unknown)?;
    let code = Code::of(text, given.len()).ok_or_else(unknown)?;
    let row = |at: usize| code.result(columns.iter().map(|column| column[at]), arithmetic);
    let mut numbers: Vec<f64> = (0..shape.iter().product()).map(row).collect();
    arithmetic.round_all(&mut numbers, element);
    Ok(Tile { shape, data: Data::Floats(numbers) })
}

/// Instructions. Register 0 is `$0`, the result; then come the operands; then those that are named in the text. A predicate
/// is 0 or 1.
struct Code {
    steps: Vec<Step>,
    registers: usize,
}

/// An instruction.
struct Step {
    /// A predicate, and what it is where the instruction is executed.
    guard: Option<(usize, bool)>,
    instruction: Instruction,
    operands: Vec<Operand>,
    to: usize,
}

#[derive(Clone, Copy)]
enum Instruction {
    One(fn(f64) -> f64),
    Two(fn(f64, f64) -> f64),
    Three(fn(f64, f64, f64) -> f64),
}

/// An operand.
#[derive(Clone, Copy)]
enum Operand {
    Register(usize),
    Number(f64),
}

impl Code {
    /// Reads a text of instructions on `given` operands; `None` if one of them is not known.
    fn of(text: &str, given: usize) -> Option<Code> {
        let lines: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
        let text = lines.join(" ");
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
        let mut names = Names { given, declared: Vec::new() };
        let mut steps = Vec::new();
        for line in text.split(';').map(str::trim).filter(|line| !line.is_empty()) {
            match line.strip_prefix(".reg") {
                Some(declared) => {
                    let (_, all) = declared.trim().split_once(char::is_whitespace)?;
                    names.declared.extend(all.split(',').map(|name| name.trim().to_owned()));
                }
                None => steps.push(Step::of(line, &names)?),
            }
        }
        Some(Code { steps, registers: 1 + given + names.declared.len() })
    }

    /// What is in `$0` at the end.
    fn result(&self, given: impl Iterator<Item = f64>, arithmetic: Arithmetic) -> f64 {
        let mut registers: Vec<f64> = std::iter::once(0.0).chain(given).collect();
        registers.resize(self.registers, 0.0);
        for step in &self.steps {
            if step.guard.is_some_and(|(predicate, wanted)| (registers[predicate] != 0.0) != wanted) {
                continue;
            }
            let at = |k: usize| match step.operands[k] {
                Operand::Register(register) => registers[register],
                Operand::Number(number) => number,
            };
            let found = match step.instruction {
                Instruction::One(of) => of(at(0)),
                Instruction::Two(of) => of(at(0), at(1)),
                Instruction::Three(of) => of(at(0), at(1), at(2)),
            };
            registers[step.to] = arithmetic.round(found, &Type::Float(FloatKind::F32));
        }
        registers[0]
    }
}

/// The names of registers.
struct Names {
    given: usize,
    declared: Vec<String>,
}

impl Names {
    fn register(&self, name: &str) -> Option<usize> {
        match name.strip_prefix('$') {
            Some(index) => index.parse().ok().filter(|index| *index <= self.given),
            None => self.declared.iter().position(|one| one == name).map(|index| 1 + self.given + index),
        }
    }

    fn operand(&self, text: &str) -> Option<Operand> {
        if let Some(register) = self.register(text) {
            return Some(Operand::Register(register));
        }
        let number = match text.strip_prefix("0f").or_else(|| text.strip_prefix("0F")) {
            Some(bits) => f64::from(f32::from_bits(u32::from_str_radix(bits, 16).ok()?)),
            None => text.parse().ok()?,
        };
        Some(Operand::Number(number))
    }
}

impl Step {
    fn of(line: &str, names: &Names) -> Option<Step> {
        let (guard, line) = match line.strip_prefix('@') {
            Some(rest) => {
                let (predicate, line) = rest.split_once(char::is_whitespace)?;
                let wanted = !predicate.starts_with('!');
                (Some((names.register(predicate.trim_start_matches('!'))?, wanted)), line.trim())
            }
            None => (None, line),
        };
        let (name, operands) = line.split_once(char::is_whitespace)?;
        let (to, operands) = operands.split_once(',')?;
        let to = names.register(to.trim()).filter(|to| !(1..=names.given).contains(to))?;
        let operands = operands.split(',').map(|text| names.operand(text.trim())).collect::<Option<Vec<_>>>()?;
        let instruction = instruction(name)?;
        (operands.len() == instruction.operands()).then_some(Step { guard, instruction, operands, to })
    }
}

impl Instruction {
    fn operands(self) -> usize {
        match self {
            Instruction::One(_) => 1,
            Instruction::Two(_) => 2,
            Instruction::Three(_) => 3,
        }
    }
}

/// An instruction on f32. What is approximate is exact here; other roundings than to nearest are not known.
fn instruction(name: &str) -> Option<Instruction> {
    let name = name.strip_suffix(".f32")?;
    let name: Vec<&str> = name.split('.').filter(|part| !matches!(*part, "approx" | "ftz" | "rn" | "full")).collect();
    Some(match name.as_slice() {
        ["mov"] => Instruction::One(|x| x),
        ["abs"] => Instruction::One(f64::abs),
        ["neg"] => Instruction::One(|x| -x),
        ["rcp"] => Instruction::One(f64::recip),
        ["sqrt"] => Instruction::One(f64::sqrt),
        ["rsqrt"] => Instruction::One(|x| x.sqrt().recip()),
        ["ex2"] => Instruction::One(f64::exp2),
        ["lg2"] => Instruction::One(f64::log2),
        ["sin"] => Instruction::One(f64::sin),
        ["cos"] => Instruction::One(f64::cos),
        ["tanh"] => Instruction::One(f64::tanh),
        ["add"] => Instruction::Two(|a, b| a + b),
        ["sub"] => Instruction::Two(|a, b| a - b),
        ["mul"] => Instruction::Two(|a, b| a * b),
        ["div"] => Instruction::Two(|a, b| a / b),
        ["max"] => Instruction::Two(f64::max),
        ["min"] => Instruction::Two(f64::min),
        ["fma"] => Instruction::Three(f64::mul_add),
        ["setp", "eq"] => Instruction::Two(|a, b| f64::from(a == b)),
        ["setp", "ne"] => Instruction::Two(|a, b| f64::from(a.partial_cmp(&b).is_some_and(std::cmp::Ordering::is_ne))),
        ["setp", "lt"] => Instruction::Two(|a, b| f64::from(a < b)),
        ["setp", "le"] => Instruction::Two(|a, b| f64::from(a <= b)),
        ["setp", "gt"] => Instruction::Two(|a, b| f64::from(a > b)),
        ["setp", "ge"] => Instruction::Two(|a, b| f64::from(a >= b)),
        ["selp"] => Instruction::Three(|a, b, predicate| if predicate == 0.0 { b } else { a }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, given: &[f64]) -> Option<Vec<f64>> {
        let tile = Tile { shape: vec![given.len()], data: Data::Floats(given.to_vec()) };
        let result = inline_ptx(text, &[Rc::new(tile)], &Type::Float(FloatKind::F32), Arithmetic::Rounded).ok()?;
        match result.data {
            Data::Floats(x) => Some(x),
            _ => None,
        }
    }

    #[test]
    fn one_instruction_is_executed_and_others_are_unknown() {
        assert_eq!(of("max.f32 $0, $1, 0fBF800000;", &[-3.0, 2.0, f64::NAN]), Some(vec![-1.0, 2.0, -1.0]));
        assert_eq!(of("abs.f32 $0, $1;", &[-3.0]), Some(vec![3.0]));
        assert_eq!(of("fma.rn.f32 $0, $1, $1, 0f3F800000;", &[3.0]), Some(vec![10.0]));
        for text in [
            "max.f32 $0, $1, $2;",
            "add.rz.f32 $0, $1, $1;",
            "max.f32 $1, $0, $0;",
            "max.f32 $0, $1;",
            "max.f16 $0, $1, $1;",
        ] {
            assert_eq!(of(text, &[1.0]), None, "{text}");
        }
    }

    #[test]
    fn instructions_have_registers_and_predicates() {
        // log₂(1 + 2ˣ), and x where that is as much (fla, stick-breaking attention).
        let text = "{ .reg .pred p; // of large ones
            setp.gt.f32 p, $1, 15.; @p mov.f32 $0, $1; @!p ex2.approx.ftz.f32 $0, $1;
            @!p add.f32 $0, $0, 1.0; @!p lg2.approx.ftz.f32 $0, $0; }";
        assert_eq!(of(text, &[0.0, 16.0, -200.0]), Some(vec![1.0, 16.0, 0.0]));
        let least = "{ .reg .f32 a, b; .reg .pred p; mul.f32 a, $1, 0.5; mov.f32 b, 2.0; setp.lt.f32 p, a, b; selp.f32 $0, a, b, p; }";
        assert_eq!(of(least, &[3.0, 8.0]), Some(vec![1.5, 2.0]));
    }
}
