//! The dependence graph in Graphviz's DOT language.

use super::graph::{hue, legend};
use super::svg::fill;
use crate::words;
use std::fmt::Write;
use twill_graph::{OpId, Problem, Schedule};

/// A loop's dependence graph in DOT, for `dot -Tsvg`: with a schedule coloured by warp group; dependences between
/// iterations are dashed, with their distance. The same arguments give the same text.
pub fn graph_dot(problem: &Problem, schedule: Option<&Schedule>) -> String {
    let graph = problem.graph();
    let mut out = format!("digraph {} {{\n", quoted(graph.name()));
    out.push_str("  graph [rankdir=TB, fontname=\"Helvetica\", fontsize=11, labelloc=t, label=");
    let _ = writeln!(out, "{}];", quoted(&format!("{} on {}", graph.name(), problem.resources().name)));
    out.push_str("  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=10, ");
    out.push_str("fillcolor=\"#f6f8fa\", color=\"#59636e\"];\n");
    out.push_str("  edge [fontname=\"Helvetica\", fontsize=9, color=\"#59636e\"];\n");
    for op in graph.op_ids() {
        node(&mut out, problem, schedule, op);
    }
    for d in graph.dependences() {
        let mut attributes = vec![format!("tooltip={}", quoted(&format!("delay {} cycles", d.delay)))];
        if d.distance > 0 {
            let label = quoted(&d.distance.to_string());
            attributes.push(format!(
                "style=dashed, color=\"#b3261e\", fontcolor=\"#b3261e\", constraint=false, label={label}"
            ));
        } else if !d.carries_value {
            attributes.push("style=dotted".to_owned());
        }
        let _ = writeln!(out, "  n{} -> n{} [{}];", d.from.index(), d.to.index(), attributes.join(", "));
    }
    for (id, name) in schedule.into_iter().flat_map(legend) {
        let _ = writeln!(
            out,
            "  group{id} [shape=plaintext, style=filled, fillcolor={}, label={}];",
            quoted(fill(id)),
            quoted(&name)
        );
    }
    out + "}\n"
}

fn node(out: &mut String, problem: &Problem, schedule: Option<&Schedule>, op: OpId) {
    let operation = problem.graph().operation(op);
    let mut label = operation.name.clone();
    let mut attributes = Vec::new();
    if let Some(schedule) = schedule {
        let cycle = words::grouped(schedule.placement(op).cycle.0);
        let _ = write!(label, "\ncycle {cycle}, stage {}", schedule.stage(op));
        attributes.push(format!("fillcolor={}", quoted(fill(hue(schedule, op)))));
    }
    let source = operation.source.as_ref().map_or_else(String::new, |source| format!(", {source}"));
    attributes.push(format!("label={}", quoted(&label)));
    attributes.push(format!("tooltip={}", quoted(&format!("{}{source}", operation.kind))));
    let _ = writeln!(out, "  n{} [{}];", op.index(), attributes.join(", "));
}

/// A quoted string of DOT; line ends are kept. A backslash would begin an escape such as `\N`, and Graphviz reads
/// entities such as `&lt;` in strings too.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '&' => out.push_str("&amp;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out + "\""
}
