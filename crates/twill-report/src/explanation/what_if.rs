//! The table of changes and what they would bring.

use super::Lines;
use crate::ink::Page;
use crate::table::{Align, Table};
use crate::words::{self, count, grouped};
use std::collections::BTreeSet;
use twill_graph::{Change, Explanation, Family, KnownBy, LowerBoundKind, Status, WhatIf};

/// The text where a change leaves no schedule.
const NOTHING: &str = "no schedule exists";

pub(super) fn write(page: &mut Page, explanation: &Explanation, lines: &Lines) {
    if explanation.what_ifs.is_empty() {
        return;
    }
    page.heading("What if");
    let mut table = Table::new()
        .column("change", Align::Left, 0)
        .column("I", Align::Right, 0)
        .column("by", Align::Right, 0)
        .column("why", Align::Left, 0);
    for row in rows(explanation, lines) {
        table.row(row.into());
    }
    table.write(page);
}

/// Each change with its answer on a line.
pub(super) fn sentences(explanation: &Explanation, lines: &Lines) -> Vec<(String, String)> {
    let sentence = |[change, interval, by, why]: [String; 4]| {
        let relation = if interval.starts_with('>') { "I " } else { "I = " };
        let answer = match (interval.as_str(), by.as_str()) {
            ("none", _) if why == NOTHING => why,
            ("none", _) => format!("{NOTHING}: {why}"),
            (_, "") => format!("{relation}{interval}: {why}"),
            _ => format!("{relation}{interval}, {by}: {why}"),
        };
        (change, answer)
    };
    rows(explanation, lines).into_iter().map(sentence).collect()
}

/// Change, interval, by how much that differs, and why.
fn rows(explanation: &Explanation, lines: &Lines) -> Vec<[String; 4]> {
    let last = explanation.rejections.last();
    let conflict: BTreeSet<Family> = last.iter().flat_map(|l| &l.conflict.members).map(|m| m.family).collect();
    let row = |what_if: &WhatIf| {
        let interval = match (what_if.status, what_if.initiation_interval) {
            (Status::Optimal, Some(i)) => grouped(i.0),
            (_, Some(i)) => format!("{}..{}", grouped(what_if.lower_bound.interval.0), grouped(i.0)),
            (Status::Infeasible, None) => "none".into(),
            (_, None) => format!(">= {}", grouped(what_if.lower_bound.interval.0)),
        };
        let by = match what_if.percent {
            Some(p) if p != 0.0 => format!("{}{p:+.1} %", if what_if.status == Status::Optimal { "" } else { "<= " }),
            Some(_) if what_if.status == Status::Optimal => "no change".into(),
            _ => String::new(),
        };
        [change(&what_if.change), interval, by, why(what_if, lines, &conflict)]
    };
    explanation.what_ifs.iter().map(row).collect()
}

fn change(change: &Change) -> String {
    match change {
        Change::ComputeGroups { groups } => count(*groups, "compute group"),
        Change::SharedMemory { bytes } => format!("{} bytes of shared memory", grouped(bytes.0)),
        Change::Registers { per_thread, words } => {
            format!("{per_thread} registers a thread, {} in all", grouped(*words))
        }
        Change::UnitTwiceAsFast { unit } => format!("{unit} twice as fast"),
        Change::SharedBandwidth { bytes_per_cycle } => {
            format!("shared memory twice as fast, {} bytes a cycle", grouped(bytes_per_cycle.0))
        }
        Change::FreeHandoffs => "handoffs take no time".into(),
        Change::AnyAssignment => "any assignment to warp groups".into(),
        Change::SubTiles { sub_tiles } => count(*sub_tiles, "sub-tile"),
    }
}

/// The bound of the interval then, or the reason why nothing changes.
fn why(what_if: &WhatIf, lines: &Lines, conflict: &BTreeSet<Family>) -> String {
    match (what_if.known_by, what_if.status) {
        (KnownBy::Conflict, _) => "takes no part in the conflict".into(),
        (KnownBy::Schedule, _) => "the schedule uses no more".into(),
        (_, Status::Feasible | Status::Unknown) => "not settled".into(),
        (_, Status::Infeasible) => NOTHING.into(),
        (KnownBy::Bound | KnownBy::Search, Status::Optimal) => match &what_if.lower_bound.kind {
            LowerBoundKind::Resource { unit, .. } => format!("bound by unit {unit}"),
            LowerBoundKind::SharedBandwidth { .. } => "bound by shared memory's bandwidth".into(),
            LowerBoundKind::Search { .. } if what_if.conflict.iter().copied().collect::<BTreeSet<_>>() == *conflict => {
                "the same conflict".into()
            }
            LowerBoundKind::Search { .. } => {
                let families: Vec<String> = what_if.conflict.iter().map(ToString::to_string).collect();
                format!("conflict: {}", families.join(", "))
            }
            LowerBoundKind::GroupWork { .. } => "bound by synchronous work".into(),
            LowerBoundKind::Recurrence { .. } => "bound by a recurrence".into(),
            _ => words::bound(&lines.named(&what_if.lower_bound)),
        },
    }
}
