//! Constants in registers: numbers, addresses in shared memory, and addresses of parameters.
//!
//! What an instruction does that is not in the list of [`Constants::result`] is unknown, so that a value that is known is right
//! on every way. The result of a guarded instruction is known to instructions of the same guard alone.

mod value;

use crate::flow::{Analysis, solve, visit};
use crate::program::Program;
use crate::sass::{Instruction, number};
use std::collections::HashMap;
use std::ops::Range;
pub use value::{Origin, Value};

/// Ordinary registers, then uniform ones.
const REGISTERS: usize = UNIFORM + UNIFORM_REGISTERS;
const UNIFORM: usize = 256;
/// Uniform registers, `URZ` among them.
pub(crate) const UNIFORM_REGISTERS: usize = 64;
/// Instructions of the uniform datapath that write no uniform register.
const NO_UNIFORM_RESULT: [&str; 5] = ["UISETP", "UPLOP3", "UTMALDG", "UTMASTG", "UBLKCP"];

/// A value and the guard under which it holds; 0 is none.
type Slot = (Value, u16);

/// Values of registers.
pub type Known = Box<[Slot; REGISTERS]>;

/// The analysis.
pub struct Constants<'a> {
    program: &'a Program,
    guards: HashMap<&'a str, u16>,
}

impl<'a> Constants<'a> {
    /// The analysis of a program.
    pub fn of(program: &'a Program) -> Constants<'a> {
        let mut guards = HashMap::new();
        for guard in program.listing.code.iter().filter_map(|instruction| instruction.guard.as_deref()) {
            let number = u16::try_from(guards.len() + 1).unwrap_or(u16::MAX);
            guards.entry(guard).or_insert(number);
        }
        Constants { program, guards }
    }

    /// Shows the values in front of each instruction.
    pub fn visit(&self, look: impl FnMut(&Known, usize)) {
        let states = solve(self, &self.program.graph);
        visit(self, &self.program.graph, &states, look);
    }

    fn guard(&self, instruction: &Instruction) -> u16 {
        instruction.guard.as_deref().and_then(|guard| self.guards.get(guard)).copied().unwrap_or(0)
    }

    /// The value of an operand: a register, a number, or a word of a constant bank.
    pub fn operand(&self, known: &Known, instruction: &Instruction, operand: &str) -> Value {
        let text = operand.trim();
        if let Some(rest) = text.strip_prefix('-')
            && number(text).is_none()
        {
            return self.operand(known, instruction, rest).negated();
        }
        if matches!(text, "RZ" | "URZ" | "SRZ") {
            return Value::number(0);
        }
        if let Some(value) = number(text) {
            return Value::number(value);
        }
        if let Some(address) = constant(text) {
            return Value::Known(Origin::Constant(address), 0);
        }
        match register(text) {
            Some(register) => match known[register] {
                (value, guard) if guard == 0 || guard == self.guard(instruction) => value,
                _ => Value::Unknown,
            },
            None => Value::Unknown,
        }
    }

    /// The value of an address such as `[R3+UR31+0x30]`.
    pub fn address(&self, known: &Known, instruction: &Instruction, operand: &str) -> Value {
        let Some(inner) = operand.strip_prefix('[').and_then(|text| text.split(']').next()) else {
            return Value::Unknown;
        };
        inner.split('+').map(|term| self.operand(known, instruction, term)).fold(Value::number(0), Value::plus)
    }

    /// The uniform register this many places after the one that an operand names.
    pub fn uniform(&self, known: &Known, instruction: &Instruction, operand: &str, after: usize) -> Value {
        let name = operand.trim_matches(['[', ']']);
        match register(name).map(|register| register + after) {
            Some(register) if (UNIFORM..REGISTERS).contains(&register) => match known[register] {
                (value, guard) if guard == 0 || guard == self.guard(instruction) => value,
                _ => Value::Unknown,
            },
            _ => Value::Unknown,
        }
    }

    /// Values of the result, one for each of its registers that is known.
    fn result(&self, known: &Known, instruction: &Instruction) -> Vec<Value> {
        let value = |index: usize| self.operand(known, instruction, instruction.operand(index));
        let count = instruction.operands.len();
        let is_plain = instruction.operands.iter().all(|operand| !operand.contains('P'));
        let has = |suffix: &str| instruction.has(suffix);
        let one = match instruction.base() {
            "MOV" | "UMOV" | "R2UR" => value(1),
            "S2R" | "S2UR" if instruction.operand(1) == "SR_CgaCtaId" => Value::Known(Origin::CtaId, 0),
            "LDC" | "ULDC" if has("64") => {
                let Some(address) = constant(instruction.operand(1)) else { return Vec::new() };
                return vec![
                    Value::Known(Origin::Constant(address), 0),
                    Value::Known(Origin::Constant(address + 4), 0),
                ];
            }
            "LDC" | "ULDC" if instruction.name.len() == 1 => value(1),
            "CS2R" if instruction.operand(1) == "SRZ" => return vec![value(1); 2],
            "IMAD" if !has("WIDE") && !has("HI") && !has("X") && is_plain && count == 4 => {
                match (value(1), value(2).as_number()) {
                    (index, Some(8)) => index.scaled_plus(3, value(3)),
                    _ => value(1).times(value(2)).plus(value(3)),
                }
            }
            "UIMAD" if instruction.name.len() == 1 && count == 4 => value(1).times(value(2)).plus(value(3)),
            "VIADD" if count == 3 => value(1).plus(value(2)),
            // A carry out is a predicate after the result.
            "IADD3" | "UIADD3" if instruction.name.len() == 1 => {
                let terms = instruction.operands.iter().skip(1).filter(|operand| !operand.contains('P'));
                terms.map(|term| self.operand(known, instruction, term)).fold(Value::number(0), Value::plus)
            }
            "LEA" | "ULEA" if instruction.name.len() == 1 && is_plain && count == 4 => match value(3).as_number() {
                Some(bits) => value(1).scaled_plus(bits, value(2)),
                None => Value::Unknown,
            },
            "SHF" | "USHF" if has("L") && has("U32") && count == 4 => match value(2).as_number() {
                Some(bits) => value(1).times(Value::number(1u32.checked_shl(bits).unwrap_or(0))),
                None => Value::Unknown,
            },
            _ => return Vec::new(),
        };
        vec![one]
    }
}

impl Analysis for Constants<'_> {
    type State = Known;

    fn start(&self, _: usize) -> Known {
        Box::new([(Value::Unknown, 0); REGISTERS])
    }

    fn join(&self, state: &mut Known, other: &Known) -> bool {
        let mut is_new = false;
        for (known, other) in state.iter_mut().zip(other.iter()) {
            let value = if known.1 == other.1 { known.0.joined(other.0) } else { Value::Unknown };
            let joined = (value, if value == Value::Unknown { 0 } else { known.1 });
            is_new |= joined != *known;
            *known = joined;
        }
        is_new
    }

    fn step(&self, state: &mut Known, at: usize) {
        let instruction = &self.program.listing.code[at];
        let guard = self.guard(instruction);
        let result = self.result(state, instruction);
        for register in self.program.effects[at].writes.iter() {
            state[usize::from(register)] = (Value::Unknown, 0);
        }
        if let Some(mma) = &self.program.wgmmas[at] {
            mma.accumulator.iter().for_each(|register| state[usize::from(register)] = (Value::Unknown, 0));
        }
        let uniform = uniform_results(instruction);
        for register in uniform.clone() {
            state[UNIFORM + register] = (Value::Unknown, 0);
        }
        let uniform = uniform.map(|register| UNIFORM + register).next();
        let first = uniform.or_else(|| self.program.effects[at].writes.iter().next().map(usize::from));
        if let Some(first) = first {
            for (value, slot) in result.into_iter().zip(state.iter_mut().skip(first)) {
                *slot = (value, if value == Value::Unknown { 0 } else { guard });
            }
        }
    }
}

/// The place of a register in the state.
fn register(operand: &str) -> Option<usize> {
    let (digits, first, most) = match operand.strip_prefix("UR") {
        Some(digits) => (digits, UNIFORM, 63),
        None => (operand.strip_prefix('R')?, 0, 255),
    };
    let digits = digits.strip_suffix(".reuse").unwrap_or(digits);
    digits.parse::<usize>().ok().filter(|number| *number < most).map(|number| first + number)
}

/// The address of `c[0x0][0x210]`, the bank in its upper half.
fn constant(operand: &str) -> Option<u32> {
    let (bank, offset) = operand.strip_prefix("c[")?.split_once("][")?;
    Some(number(bank)? << 16 | number(offset.strip_suffix(']')?)?)
}

/// The number of the uniform register that an operand is.
pub(crate) fn uniform_operand(operand: &str) -> Option<usize> {
    register(operand)?.checked_sub(UNIFORM)
}

/// Numbers of the uniform registers that an instruction writes: from the first operand after predicates on.
pub(crate) fn uniform_results(instruction: &Instruction) -> Range<usize> {
    if instruction.is(&NO_UNIFORM_RESULT) || instruction.base().ends_with("SETP") {
        return 0..0;
    }
    let is_predicate = |operand: &&String| operand.trim_start_matches(['!', 'U']).starts_with('P');
    let first = instruction.operands.iter().find(|operand| !is_predicate(operand));
    let Some(first) = first.and_then(|operand| uniform_operand(operand)) else { return 0..0 };
    let width = if ["64", "WIDE"].iter().any(|suffix| instruction.has(suffix)) { 2 } else { 1 };
    first..(first + width).min(UNIFORM_REGISTERS)
}
