//! A schedule of a large graph: what was found, how far it can be from the least, and what it uses.

use crate::ink::{Ink, Page};
use crate::table::{Align, Table};
use crate::{TextOptions, words};
use twill_graph::format::DataflowSummary;

/// A summary as text, no line of it wider than `options.width` (or 40, if that is more).
pub fn dataflow_text(summary: &DataflowSummary, options: TextOptions) -> String {
    let mut page = Page::new(options.width.max(crate::LEAST_WIDTH), options.color);
    let count = |number: usize, one| words::count(number as i128, one);
    let title = format!(
        "{}: {}, {}, by {}",
        summary.graph,
        count(summary.operations, "operation"),
        count(summary.dependences, "dependence"),
        summary.engine
    );
    page.paragraph(0, &title, Ink::Plain);
    page.paragraph(0, &headline(summary), Ink::Bold);
    if let Some(interval) = summary.interval {
        let least = summary.least_interval.unwrap_or(1);
        let found = summary.objective.value.is_some();
        let proved =
            if interval == least && found { "the least: proved".to_owned() } else { format!("at least {least}") };
        page.paragraph(0, &format!("II = {} steps ({proved})", words::grouped(interval)), Ink::Plain);
    }
    if let (None, Some(least)) = (summary.interval, summary.least_interval) {
        page.paragraph(0, &format!("II >= {} steps", words::grouped(least)), Ink::Plain);
    }
    let known = [
        ("latency", summary.latency),
        ("latency bound", summary.latency_bound.map(i128::from)),
        ("communication", summary.communication),
        ("peak storage", summary.storage),
    ];
    let known: Vec<String> =
        known.iter().filter_map(|(name, value)| Some(format!("{name} {}", words::grouped((*value)?)))).collect();
    if !known.is_empty() {
        page.paragraph(0, &format!("{}.", known.join(", ")), Ink::Plain);
    }
    if !summary.peaks.is_empty() {
        page.heading("Resources");
        let mut table = Table::new().column("resource", Align::Left, 0).column("peak", Align::Right, 0);
        for (name, peak) in &summary.peaks {
            table.row(vec![name.clone(), words::grouped(*peak)]);
        }
        table.write(&mut page);
    }
    let seconds = &summary.seconds;
    let parts = [
        ("reading", seconds.reading),
        ("search", seconds.search),
        ("bound", seconds.bound),
        ("replay", seconds.replay),
    ];
    let parts: Vec<String> = parts.iter().map(|(name, time)| format!("{name} {}", words::seconds(*time))).collect();
    page.heading("Search");
    let on = summary.gpu.as_ref().map(|gpu| format!(" on {gpu}")).unwrap_or_default();
    let gradients = words::count(i128::from(summary.gradients), "gradient") + &on;
    let found =
        summary.found.as_ref().map(|found| format!("Found by {} after {}. ", found.by, words::seconds(found.seconds)));
    let found = found.unwrap_or_default();
    page.paragraph(0, &format!("{found}{gradients}, seed {}; {}.", summary.seed, parts.join(", ")), Ink::Plain);
    page.finish()
}

/// The objective versus its bound.
pub(crate) fn headline(summary: &DataflowSummary) -> String {
    let (kind, bound) = (&summary.objective.kind, summary.objective.lower_bound);
    match summary.objective.value {
        None => format!("no schedule found ({kind} >= {})", words::grouped(bound)),
        Some(value) if value == bound => format!("{kind} = {} (optimal: proved)", words::grouped(value)),
        Some(value) if bound > 0 => {
            let gap = words::percent(value - bound, bound);
            format!("{kind} = {} (at least {}: {gap} above)", words::grouped(value), words::grouped(bound))
        }
        Some(value) => format!("{kind} = {} (at least {})", words::grouped(value), words::grouped(bound)),
    }
}
