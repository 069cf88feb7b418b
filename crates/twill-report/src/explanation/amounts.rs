//! Required against available, in words.

use crate::words::{count, grouped};
use twill_graph::{Demand, Quantity};

/// A demand as part of a sentence.
pub(super) fn demand(demand: &Demand) -> String {
    let what = what(demand.quantity);
    let available = grouped(demand.available);
    let Some(required) = demand.required else {
        return match demand.quantity {
            Quantity::HandoffCycles => "even handoffs that take no time are too slow".into(),
            _ => format!("no number of {what} is enough, {available} at hand"),
        };
    };
    match demand.quantity {
        Quantity::UnitCycles => return format!("{} cycles an iteration, {available} at hand", grouped(required)),
        Quantity::SharedTraffic => return format!("{} bytes an iteration, {available} at hand", grouped(required)),
        Quantity::SynchronousCycles => {
            return format!("{} synchronous cycles an iteration, {available} on all compute groups", grouped(required));
        }
        _ => {}
    }
    let least = if demand.suffices { "" } else { "at least " };
    let short = match required.checked_sub(demand.available) {
        Some(short) if short > 0 => format!(" ({} short)", grouped(short)),
        _ => String::new(),
    };
    match (demand.quantity, demand.proved) {
        (Quantity::HandoffCycles, true) => {
            format!("handoffs may take at most {}, they take up to {available}", count(required, "cycle"))
        }
        (Quantity::HandoffCycles, false) => {
            format!("handoffs of {} are fast enough, they take up to {available}", count(required, "cycle"))
        }
        (_, true) => format!("{least}{} {what} needed, {available} at hand{short}", grouped(required)),
        (_, false) => {
            format!("at most {} {what} needed, {available} at hand", grouped(required))
        }
    }
}

fn what(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::UnitCycles => "cycles an iteration",
        Quantity::SharedTraffic => "bytes an iteration",
        Quantity::SynchronousCycles => "cycles of synchronous work on compute groups",
        Quantity::ComputeGroups => "compute groups",
        Quantity::RegistersPerThread => "registers a thread",
        Quantity::RegistersPerThreadAndFile => "registers a thread (and a file to match)",
        Quantity::RegisterFile => "words of the register file",
        Quantity::SharedMemory => "bytes of shared memory",
        Quantity::TensorMemory => "columns of tensor memory",
        Quantity::HandoffCycles => "cycles",
    }
}
