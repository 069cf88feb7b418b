//! Numbers, lists and reasons in words.

pub(crate) use twill_graph::grouped;
use twill_graph::{LowerBound, LowerBoundKind, Problem, RejectionReason, WarpAssignment};

/// `1 warp`, `4 warps`.
pub(crate) fn count(number: impl Into<i128>, one: &str) -> String {
    let number: i128 = number.into();
    format!("{} {one}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// That there is no schedule at all, of those that were searched.
pub(crate) fn nothing_exists(problem: &Problem) -> String {
    let searched = match problem.options().warp_assignment {
        WarpAssignment::Free => "",
        WarpAssignment::BySubTile => " that keeps each sub-tile on one warp group",
    };
    format!("No schedule{searched} exists at any interval (infeasible: proved)")
}

/// The proof of an optimal schedule, with its model: a model is no GPU.
pub(crate) fn optimal(problem: &Problem) -> String {
    format!("optimal in the model of {}: proved", problem.resources().name)
}

/// Names with commas; a long list is cut.
pub(crate) fn list(names: &[String], most: usize) -> String {
    let shown = names.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(most) {
        0 if names.is_empty() => "nothing".into(),
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// `part` of `whole` in percent.
pub(crate) fn percent(part: i128, whole: i128) -> String {
    if whole <= 0 {
        return "-".into();
    }
    let tenths = (part * 1000 + whole / 2) / whole;
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Seconds in a unit that suits them.
pub(crate) fn seconds(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        "-".into()
    } else if seconds < 1e-3 {
        format!("{:.0} µs", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}

/// `I >= 2048: unit tensor is busy 2048 cycles an iteration: …`.
pub(crate) fn bounded(bound: &LowerBound) -> String {
    format!("I >= {}: {}", grouped(bound.interval.0), self::bound(bound))
}

/// The bound of the initiation interval, with the witness.
pub(crate) fn bound(bound: &LowerBound) -> String {
    match &bound.kind {
        LowerBoundKind::Resource { unit, busy, capacity, operations } => {
            let instances = if *capacity == 1 { String::new() } else { format!(" on {capacity} instances") };
            format!("unit {unit} is busy {} cycles an iteration{instances}: {}", grouped(busy.0), list(operations, 12))
        }
        LowerBoundKind::Recurrence { operations, delay, distance } => {
            let mut round = operations.clone();
            if let (Some(first), Some(last)) = (operations.first(), operations.last())
                && (first != last || operations.len() == 1)
            {
                round.push(first.clone());
            }
            format!(
                "recurrence {}: {} cycles every {}",
                round.join(" → "),
                grouped(delay.0),
                count(*distance, "iteration")
            )
        }
        LowerBoundKind::SharedBandwidth { bytes, bytes_per_cycle, operations } => format!(
            "shared memory moves {} bytes an iteration at {} a cycle, most for {}",
            grouped(bytes.0),
            grouped(bytes_per_cycle.0),
            list(operations, 6)
        ),
        LowerBoundKind::GroupWork { work, issues, groups } => {
            let waits = match issues {
                0 => String::new(),
                n => format!(", and {} after waits,", count(*n, "issue")),
            };
            let (work, groups) = (grouped(work.0), count(*groups, "compute group"));
            format!("synchronous work of {work} cycles{waits} an iteration on {groups}")
        }
        LowerBoundKind::Operation { operation, cycles } => {
            format!("synchronous operation {operation} keeps its warp group busy for {} cycles", grouped(cycles.0))
        }
        LowerBoundKind::Trivial => "an interval has at least one cycle".into(),
        LowerBoundKind::Search { from } if from.0 + 1 >= bound.interval.0 => {
            format!("search excluded I = {}", grouped(from.0))
        }
        LowerBoundKind::Search { from } => {
            format!("search: every interval from {} to {} was excluded", grouped(from.0), grouped(bound.interval.0 - 1))
        }
    }
}

/// Why something cannot be scheduled.
pub(crate) fn rejection(reason: &RejectionReason) -> String {
    let after = |conflicts: u64| match conflicts {
        0 => "by propagation alone".to_owned(),
        n => format!("after {}", count(n, "conflict")),
    };
    match reason {
        RejectionReason::SelfConflict { operation, resource } => {
            format!("{operation} overlaps its own next iteration on {resource}")
        }
        RejectionReason::Throughput { conflicts } => {
            format!("dependences and units alone exclude it, {}", after(*conflicts))
        }
        RejectionReason::Search { conflicts } => format!("joint search exhausted, {}", after(*conflicts)),
        RejectionReason::NoGroup { operation, why } => format!("no warp group may run {operation}: {why}"),
        RejectionReason::Storage { memory, required, available, values } => format!(
            "{memory}: at least {} needed, {} at hand, for {}",
            grouped(*required),
            grouped(*available),
            list(values, 8)
        ),
        RejectionReason::Handoff { from, to, why } => {
            format!("the register value {from} → {to} cannot stay on one group: {why}")
        }
        RejectionReason::OtherLoops { why } => format!("the loops cannot share their warp groups: {why}"),
        RejectionReason::Exhausted { largest, all: false } => {
            format!(
                "every interval up to the largest allowed, {}, is excluded; larger ones were not asked for",
                grouped(largest.0)
            )
        }
        RejectionReason::Exhausted { largest, all: true } => {
            format!("every interval up to {} is excluded, and beyond that nothing new is possible", grouped(largest.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(percent(0, 0), "-");
        assert_eq!(seconds(0.0000042), "4 µs");
        assert_eq!(seconds(0.25), "250.0 ms");
        assert_eq!(seconds(f64::NAN), "-");
    }
}
