//! Where control goes after an instruction.

use crate::sass::{Listing, number};

/// What an instruction does with the flow of control.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Where it may jump to.
    pub targets: Vec<usize>,
    /// The subroutine that it calls.
    pub call: Option<usize>,
    /// True if the next instruction may follow.
    pub falls: bool,
    /// True if it returns to its caller.
    pub returns: bool,
    /// True if it goes where the text does not say.
    pub is_unknown: bool,
}

impl Flow {
    /// True if nothing but the next instruction follows.
    pub fn is_plain(&self) -> bool {
        self.falls && self.targets.is_empty() && self.call.is_none() && !self.returns
    }
}

/// The flow after the instruction at a place.
pub fn flow_of(listing: &Listing, at: usize) -> Flow {
    let instruction = &listing.code[at];
    let next = Flow { falls: true, ..Flow::default() };
    let is_guarded = instruction.guard.is_some();
    match instruction.base() {
        "BRA" | "JMP" => {
            let targets = targets(listing, at);
            // `BRA P0, target` and `BRA.DIV UR4, target` have a condition of their own.
            let falls = is_guarded || instruction.operands.len() > 1;
            Flow { is_unknown: targets.is_empty(), targets, falls, ..Flow::default() }
        }
        "BRX" | "JMX" | "BRXU" | "JMXU" => {
            let targets = targets(listing, at);
            Flow { is_unknown: targets.is_empty(), targets, falls: is_guarded, ..Flow::default() }
        }
        "CALL" => {
            let call = targets(listing, at).first().copied();
            Flow { call, is_unknown: call.is_none(), ..next }
        }
        "RET" => Flow { returns: true, falls: is_guarded, ..Flow::default() },
        "EXIT" | "KILL" | "RTT" => Flow { falls: is_guarded, ..Flow::default() },
        "BSYNC" => after_reconvergence(listing, at).unwrap_or(next),
        _ => next,
    }
}

/// What the text names: labels, or an offset as cuobjdump prints it.
fn targets(listing: &Listing, at: usize) -> Vec<usize> {
    let instruction = &listing.code[at];
    let mut found: Vec<usize> =
        instruction.labels.iter().filter_map(|label| listing.labels.get(label)).copied().collect();
    found.retain(|target| *target < listing.code.len());
    if found.is_empty() && instruction.labels.is_empty() && !instruction.is(&["BRX", "JMX", "BRXU", "JMXU"]) {
        let offset = instruction.operands.last().and_then(|text| number(text));
        found.extend(offset.and_then(|offset| listing.at_offset(at, u64::from(offset))));
    }
    found
}

/// After `BSYNC B0` threads go on where `BSSY B0, target` said, which is the next instruction unless the assembler moved code.
fn after_reconvergence(listing: &Listing, at: usize) -> Option<Flow> {
    let barrier = listing.code[at].operand(0);
    let function = listing.function_of(at)?;
    let begins = (function.start..function.end)
        .filter(|begin| listing.code[*begin].base() == "BSSY" && listing.code[*begin].operand(0) == barrier);
    let found: Vec<usize> = begins.flat_map(|begin| targets(listing, begin)).collect();
    if found.is_empty() || found.contains(&(at + 1)) {
        return None;
    }
    Some(Flow { targets: found, falls: true, ..Flow::default() })
}
