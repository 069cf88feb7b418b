//! The gallery as Markdown.

use crate::kernels::{KERNELS, Kernel};
use crate::measured::{Measured, measured};
use crate::scheduled::Loop;
use std::collections::BTreeMap;
use std::fmt::Write;
use twill_graph::{GroupRole, LowerBoundKind, Schedule, grouped};

const HEAD: &str = "# Before and after: a gallery

<!-- Written by `cargo xtask gallery`. -->

This page shows ten well-known kernels before and after Twill: timeline, bound, and measured speed.
It is for those who want to see what a schedule does before they make one. `cargo xtask gallery`
writes page and pictures, and a test fails when a figure is out of date.

- **Before**: the loop as it is written. Iterations run one after another, and in each a warp group
  finishes an operation before it begins the next
  ([`--schedule no-swp`](codegen.md#naive-schedules-to-compare-with)).
- **After**: the schedule that `twill schedule` proves optimal. Both are for the machine `h200`,
  which serves for an H100, too, and the checker has replayed both.
- **Cycles** are those from one iteration to the next in the model of the machine, and **gain** is
  the one number by the other.
- **Measured**: the speed of Twill's kernel over stock Triton's fastest configuration, on the GPU
  that the kernel's section names ([all measurements](../bench/results/gpu.md)). A dash: not
  measured. It is another comparison than the gain: stock Triton loads ahead of its MMAs, which
  *before* does not.

";

/// Columns of text.
const WIDTH: usize = 100;

/// The page.
pub fn page(kernels: &[Vec<Loop>]) -> String {
    let mut page = HEAD.to_owned();
    let measured: Vec<Option<Measured>> =
        KERNELS.iter().map(|kernel| kernel.measured.map(|(row, name)| measured(row, name))).collect();
    page += "| kernel | before | after | gain | bound by | warp groups | stages | measured |\n";
    page += "|---|--:|--:|--:|---|---|--:|--:|\n";
    for ((kernel, loops), measured) in KERNELS.iter().zip(kernels).zip(&measured) {
        let (before, after) = (cycles(loops, |one| &one.before), cycles(loops, |one| &one.after));
        let first = &loops[0];
        let _ = writeln!(
            page,
            "| [{}](#{}) | {} | {} | {:.2} | {} | {} | {} | {} |",
            kernel.title,
            anchor(kernel.title),
            shown(&before),
            shown(&after),
            before.iter().sum::<i64>() as f64 / after.iter().sum::<i64>() as f64,
            bottleneck(first),
            groups(&first.after),
            first.after.stages(),
            measured.as_ref().map_or("–".to_owned(), |one| format!("{:.2}", one.speed[0])),
        );
    }
    page += "\n";
    page += &wrapped(
        "*Stages* is the number of iterations that are in flight at once. Each picture has three iterations of both \
         schedules on one time axis, a colour for each: the shorter timeline is the faster schedule. Rows are warp \
         groups, then functional units. A unit whose row has no gap in the steady state is the bound: nothing can be \
         faster. Loads are drawn where they hold the TMA unit at the latest; they \
         are issued earlier by the time for which data travel, as far as their rings have slots. *Before* has one \
         slot, and waits. A picture that is opened by itself names every bar under the mouse, with its cycles \
         and its line of the source.",
    );
    for ((kernel, loops), measured) in KERNELS.iter().zip(kernels).zip(measured) {
        page += &section(kernel, &loops[0], measured);
    }
    page
}

fn section(kernel: &Kernel, first: &Loop, measured: Option<Measured>) -> String {
    let mut out = format!("\n## {}\n\n{}\n", kernel.title, wrapped(kernel.says));
    let name = kernel.name();
    let _ = writeln!(out, "![Timelines of {name} before and\nafter]({})\n", picture(kernel));
    out += &wrapped(&format!("{}. Rings of loads: {}.", bound(first), rings(first)));
    if let Some(Measured { card, size, date, speed: [speed, least, most], stock }) = measured {
        let (_, contender) = kernel.measured.unwrap();
        out += "\n";
        out += &wrapped(&format!(
            "Measured on an {card}, {date}, {size}: `{contender}` has {speed:.3} times the speed of stock Triton \
             ({stock}), {least:.3} to {most:.3} by round."
        ));
    }
    let _ = write!(out, "\n```sh\ntwill schedule examples/{}.ttir\n```\n", kernel.file);
    out
}

/// Where a kernel's picture is, as seen from docs/.
pub fn picture(kernel: &Kernel) -> String {
    format!("pictures/gallery/{}.svg", kernel.name())
}

fn cycles(loops: &[Loop], of: impl Fn(&Loop) -> &Schedule) -> Vec<i64> {
    loops.iter().map(|one| of(one).interval.0).collect()
}

/// `2048 + 2048`, of several loops.
fn shown(cycles: &[i64]) -> String {
    cycles.iter().map(|&each| grouped(each)).collect::<Vec<_>>().join(" + ")
}

/// What bounds a loop, in as few words as a table has room for.
fn bottleneck(one: &Loop) -> String {
    match &one.bound.kind {
        LowerBoundKind::Resource { unit, .. } => match unit.as_str() {
            "tensor" => "tensor core".into(),
            "xu" => "exponentials".into(),
            other => other.into(),
        },
        LowerBoundKind::SharedBandwidth { .. } => "shared memory".into(),
        LowerBoundKind::GroupWork { .. } => "warps".into(),
        other => panic!("no words for {other:?}"),
    }
}

/// What bounds a loop, with its figures.
fn bound(one: &Loop) -> String {
    let why = match &one.bound.kind {
        LowerBoundKind::Resource { unit, busy, .. } => format!("`{unit}` is busy for {} of them", grouped(busy.0)),
        LowerBoundKind::SharedBandwidth { bytes, bytes_per_cycle, .. } => {
            let bytes = grouped(bytes.0);
            format!("shared memory moves {bytes} bytes an iteration, {} a cycle", bytes_per_cycle.0)
        }
        LowerBoundKind::GroupWork { work, groups: 1, .. } => {
            format!("a warp group works for {} of them", grouped(work.0))
        }
        other => panic!("no words for {other:?}"),
    };
    let (which, else_) = if one.wider_bound < one.bound.interval {
        let any = grouped(one.wider_bound.0);
        (" that keeps each sub-tile on one warp group", format!(" (for any other, at least {any} is proved)"))
    } else {
        ("", String::new())
    };
    format!("No schedule{which} has less than {} cycles: {why}{else_}", grouped(one.bound.interval.0))
}

/// `2 compute, 1 load`.
fn groups(schedule: &Schedule) -> String {
    let mut roles: BTreeMap<&str, usize> = BTreeMap::new();
    for group in &schedule.groups {
        let role = match group.role {
            GroupRole::Compute => "compute",
            GroupRole::VariableLatency => "load",
            GroupRole::Issue => "issue",
        };
        *roles.entry(role).or_default() += 1;
    }
    roles.iter().map(|(role, count)| format!("{count} {role}")).collect::<Vec<_>>().join(", ")
}

/// `k 2 slots, v 2 slots`.
fn rings(one: &Loop) -> String {
    let ring = |ring: &twill_graph::Ring| {
        let slots = if ring.depth == 1 { "slot" } else { "slots" };
        format!("`{}` {} {slots}", one.problem.graph().operation(ring.load).name, ring.depth)
    };
    one.after.rings.iter().map(ring).collect::<Vec<_>>().join(", ")
}

/// The name of a heading in links.
fn anchor(title: &str) -> String {
    title.to_lowercase().replace(' ', "-").replace(|c: char| !c.is_alphanumeric() && c != '-', "")
}

fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last().unwrap();
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(String::new());
        }
        let line = lines.last_mut().unwrap();
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.join("\n") + "\n"
}
