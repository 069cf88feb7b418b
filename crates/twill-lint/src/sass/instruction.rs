//! One instruction as nvdisasm prints it: its guard, its name and its operands.

use std::rc::Rc;

/// Where an instruction comes from in the source, if the cubin says (`-lineinfo`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file.
    pub file: Rc<str>,
    /// Its line, from 1 on.
    pub line: u32,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Bytes from the beginning of its section.
    pub offset: u64,
    /// Its line in the listing, from 1 on; 0 if it was read by itself.
    pub listing_line: u32,
    /// The text without its semicolon and encoding.
    pub text: String,
    /// The predicate that guards it, as in `!P0`.
    pub guard: Option<String>,
    /// Its name and the suffixes of that: `HGMMA`, `64x128x16`, `F32`.
    pub name: Vec<String>,
    /// Its operands.
    pub operands: Vec<String>,
    /// Labels in its text, without quotes.
    pub labels: Vec<String>,
    /// Where it comes from.
    pub line: Option<SourceLine>,
}

impl Instruction {
    /// Reads the text of an instruction, as in `@!P0 BRA `(.L_x_0)`; none if it has no name.
    pub fn read(offset: u64, text: &str, line: Option<SourceLine>) -> Option<Instruction> {
        let text = text.trim();
        let (guard, rest) = match text.strip_prefix('@') {
            Some(guarded) => {
                let (guard, rest) = guarded.split_once(char::is_whitespace)?;
                (Some(guard).filter(|guard| !matches!(*guard, "PT" | "UPT")).map(str::to_owned), rest.trim())
            }
            None => (None, text),
        };
        let (name, operands) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
        if !name.starts_with(|c: char| c.is_ascii_uppercase()) || !name.chars().all(is_name) {
            return None;
        }
        Some(Instruction {
            offset,
            listing_line: 0,
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
            guard,
            name: name.split('.').map(str::to_owned).collect(),
            operands: split(operands),
            labels: labels(operands),
            line,
        })
    }

    /// Its name without suffixes.
    pub fn base(&self) -> &str {
        self.name.first().map_or("", String::as_str)
    }

    /// True if its name has this suffix.
    pub fn has(&self, suffix: &str) -> bool {
        self.name.iter().skip(1).any(|part| part == suffix)
    }

    /// True if its base is one of these.
    pub fn is(&self, bases: &[&str]) -> bool {
        bases.contains(&self.base())
    }

    /// An operand; empty where there is none.
    pub fn operand(&self, index: usize) -> &str {
        self.operands.get(index).map_or("", String::as_str)
    }
}

/// Operands at commas that no bracket holds.
fn split(text: &str) -> Vec<String> {
    let (mut parts, mut depth, mut part) = (Vec::new(), 0i32, String::new());
    for c in text.chars() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth <= 0 => {
                parts.push(part.trim().to_owned());
                part.clear();
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    if !part.trim().is_empty() {
        parts.push(part.trim().to_owned());
    }
    parts
}

/// What stands between a backquote and a bracket, and after `BRANCH_TARGETS`.
fn labels(text: &str) -> Vec<String> {
    let mut found: Vec<String> =
        text.split("`(").skip(1).filter_map(|rest| rest.split_once(')')).map(|(label, _)| label.to_owned()).collect();
    if let Some((_, targets)) = text.split_once("BRANCH_TARGETS") {
        let targets = targets.split(['"', '*']).next().unwrap_or_default();
        found.extend(targets.split(',').map(str::trim).filter(|target| !target.is_empty()).map(str::to_owned));
    }
    found
}

/// A number in hexadecimal or decimal, of either sign, in 32 bits.
pub fn number(text: &str) -> Option<u32> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok()?,
        None => return None,
    };
    let value = u32::try_from(value).ok()?;
    Some(if negative { value.wrapping_neg() } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_names_operands_and_labels_are_read() {
        let read = |text: &str| Instruction::read(0x40, text, None).unwrap();
        let branch = read("@!P0 BRA `(.L_x_0)");
        assert_eq!((branch.guard.as_deref(), branch.base()), (Some("!P0"), "BRA"));
        assert_eq!(branch.labels, [".L_x_0"]);
        let mma = read("HGMMA.64x128x16.F32 R24, R180, gdesc[UR8].tnspB, R24, gsb0");
        assert_eq!(mma.operands, ["R24", "R180", "gdesc[UR8].tnspB", "R24", "gsb0"]);
        assert!(mma.has("F32") && !mma.has("F16"));
        let table = read("BRX R4 -0x160 (*\"BRANCH_TARGETS .L_x_2,.L_x_73\"*)");
        assert_eq!(table.labels, [".L_x_2", ".L_x_73"]);
        assert_eq!(Instruction::read(0, "@P0", None), None);
        assert_eq!(Instruction::read(0, "%%%", None), None);
    }

    #[test]
    fn numbers_have_either_sign_and_base() {
        assert_eq!(number("0x10"), Some(16));
        assert_eq!(number("-0x1"), Some(u32::MAX));
        assert_eq!(number("-0x80000000"), Some(0x8000_0000));
        assert_eq!(number("R4"), None);
    }
}
