//! The first iterations by warp group and by functional unit.

use super::TimelineOptions;
use super::svg::{Drawing, HUES, fitting, number, rectangle, text, width};
use super::timeline_iterations;
use crate::markup::escape;
use crate::run::{Event, Run, first_fit};
use crate::words;
use std::fmt::Write;
use twill_graph::{OpId, Problem, Schedule, UnitId, WarpGroup};

const WIDTH: u32 = 1200;
const NARROWEST: u32 = 600;
const WIDEST: u32 = 20_000;
const MARGIN: f64 = 12.0;
const BAR: f64 = 16.0;
const LANE: f64 = 20.0;
const SECTION: f64 = 24.0;
/// Where the rows begin.
const TOP: f64 = 84.0;
/// Between the numbers of the axis.
const TICK: f64 = 64.0;
/// No bar is narrower.
const THINNEST: f64 = 1.0;

/// A row with its lanes.
struct Row {
    label: String,
    lanes: Vec<Vec<Event>>,
    /// Class of its bars.
    class: &'static str,
}

struct Picture<'a> {
    run: &'a Run<'a>,
    title: &'a str,
    left: f64,
    right: f64,
    span: i64,
    out: String,
}

/// What is drawn of one loop.
struct Part<'a> {
    title: String,
    run: Run<'a>,
    sections: [(&'static str, Vec<Row>); 2],
}

impl<'a> Part<'a> {
    fn new(title: String, problem: &'a Problem, schedule: &'a Schedule, iterations: u32) -> Part<'a> {
        let run = Run::new(problem, schedule, iterations);
        let sections = [("Warp groups", groups(&run)), ("Functional units", units(&run))];
        Part { title, run, sections }
    }

    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.sections.iter().flat_map(|(_, rows)| rows)
    }

    /// Pixels of the longest label.
    fn labels(&self) -> f64 {
        self.rows().map(|row| width(&row.label)).fold(0.0, f64::max)
    }

    /// The drawing, `full` pixels wide, its labels within `labels` of them, on an axis of `span` cycles.
    fn draw(&self, full: f64, labels: f64, span: i64) -> Drawing {
        let left = MARGIN + labels.min(full / 4.0) + 14.0;
        let right = full - MARGIN - 8.0;
        let mut picture = Picture { run: &self.run, title: &self.title, left, right, span, out: String::new() };
        let lanes: usize = self.rows().map(|row| row.lanes.len()).sum();
        let bottom = TOP + SECTION * self.sections.len() as f64 + LANE * lanes as f64 + 4.0;
        picture.head(bottom);
        let mut at = TOP;
        for (name, rows) in &self.sections {
            text(&mut picture.out, (MARGIN, at + SECTION - 9.0), "section", name);
            at += SECTION;
            for row in rows {
                picture.row(row, at);
                at += LANE * row.lanes.len() as f64;
            }
        }
        picture.legend(bottom + 22.0);
        let (title, description) = (self.title.clone(), describe(&self.run));
        Drawing { width: full, height: bottom + 40.0, title, description, body: picture.out }
    }
}

/// The timeline of one loop.
pub(super) fn draw(problem: &Problem, schedule: &Schedule, options: TimelineOptions) -> Drawing {
    let iterations = options.iterations.unwrap_or_else(|| timeline_iterations(schedule));
    let title = format!("Timeline of {} on {}", problem.graph().name(), problem.resources().name);
    let part = Part::new(title, problem, schedule, iterations);
    part.draw(full(options), part.labels(), part.run.end().max(1))
}

/// The timelines of several schedules on one axis, as many iterations of each.
pub(super) fn compared(schedules: &[(&str, &Problem, &Schedule)], options: TimelineOptions) -> Vec<Drawing> {
    let most = || schedules.iter().map(|(_, _, schedule)| timeline_iterations(schedule)).max().unwrap_or(1);
    let iterations = options.iterations.unwrap_or_else(most);
    let part = |(title, problem, schedule)| Part::new(str::to_owned(title), problem, schedule, iterations);
    let parts: Vec<Part<'_>> = schedules.iter().copied().map(part).collect();
    let labels = parts.iter().map(Part::labels).fold(0.0, f64::max);
    let span = parts.iter().map(|part| part.run.end()).max().unwrap_or(1).max(1);
    parts.iter().map(|part| part.draw(full(options), labels, span)).collect()
}

/// Pixels from side to side.
fn full(options: TimelineOptions) -> f64 {
    f64::from(options.width.unwrap_or(WIDTH).clamp(NARROWEST, WIDEST))
}

/// The figures of a schedule.
fn figures(run: &Run<'_>) -> String {
    let schedule = run.schedule;
    format!(
        "I = {} cycles, L = {}, {}, {} drawn",
        words::grouped(schedule.interval.0),
        words::grouped(schedule.length.0),
        words::count(schedule.stages(), "stage"),
        words::count(run.iterations, "iteration"),
    )
}

fn describe(run: &Run<'_>) -> String {
    let mut said = format!("{}.", figures(run));
    if let Some((from, to)) = run.steady() {
        let (from, to) = (words::grouped(from), words::grouped(to));
        let _ = write!(said, " The steady state runs from cycle {from} to cycle {to}.");
    }
    for group in &run.schedule.groups {
        let mut here: Vec<OpId> = run.problem.graph().op_ids().filter(|op| run.group(*op) == group.id).collect();
        here.sort_by_key(|op| run.schedule.placement(*op).cycle);
        let name =
            |op: &OpId| format!("{} at {}", run.problem.graph().operation(*op).name, run.schedule.placement(*op).cycle);
        let names: Vec<String> = here.iter().map(name).collect();
        let _ = write!(said, " {}: {}.", group_name(group), names.join(", "));
    }
    said
}

fn group_name(group: &WarpGroup) -> String {
    format!("group {} {}", group.id.index(), group.role)
}

/// Two rows for each group: what it executes, and what it started.
fn groups(run: &Run<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for group in &run.schedule.groups {
        let of = |synchronous: bool| {
            let here = |event: &Event| {
                run.group(event.op) == group.id
                    && run.problem.graph().operation(event.op).is_synchronous() == synchronous
            };
            first_fit(run.events().filter(here).collect(), |bar| (bar.start, bar.end))
        };
        let (work, flight) = (of(true), of(false));
        let name = group_name(group);
        let below = if work.is_empty() { format!("{name}, in flight") } else { "in flight".to_owned() };
        let both = [(name, work, "work"), (below, flight, "flight")];
        rows.extend(both.into_iter().filter(|row| !row.1.is_empty()).map(|(label, lanes, class)| Row {
            label,
            lanes,
            class,
        }));
    }
    rows
}

/// A row for each unit in use, a lane for each of its instances.
fn units(run: &Run<'_>) -> Vec<Row> {
    let units = run.problem.resources().units.iter().enumerate();
    let rows = units.map(|(index, unit)| Row {
        label: unit.name.clone(),
        lanes: run.holdings(UnitId::new(index)),
        class: "unit",
    });
    rows.filter(|row| !row.lanes.is_empty()).collect()
}

impl Picture<'_> {
    fn x(&self, cycle: i64) -> f64 {
        self.left + cycle as f64 * self.scale()
    }

    /// Pixels of a cycle.
    fn scale(&self) -> f64 {
        (self.right - self.left) / self.span as f64
    }

    /// Title, steady state and axis.
    fn head(&mut self, bottom: f64) {
        text(&mut self.out, (MARGIN, 22.0), "title", self.title);
        text(&mut self.out, (MARGIN, 40.0), "faint", &figures(self.run));
        if let Some((from, to)) = self.run.steady() {
            let (from, to) = (self.x(from), self.x(to));
            rectangle(&mut self.out, (from, TOP - 32.0), (to - from, bottom - TOP + 32.0), "class=\"steady\"");
            let label = fitting("steady state", to - from);
            text(&mut self.out, (f64::midpoint(from, to), TOP - 20.0), "middle", &label);
        }
        let step = self.step();
        let interval = self.run.schedule.interval.0.max(1);
        let mut cycle = 0;
        while cycle <= self.span {
            let x = self.x(cycle);
            if cycle % interval == 0 {
                let line = format!("M{} {}V{}", number(x), number(TOP - 2.0), number(bottom));
                let _ = writeln!(self.out, "<path class=\"rule\" d=\"{line}\"/>");
            }
            text(&mut self.out, (x, TOP - 6.0), "faint middle", &words::grouped(cycle));
            cycle = cycle.saturating_add(step);
        }
    }

    /// Cycles between the numbers of the axis: a part of the interval, or a multiple.
    fn step(&self) -> i64 {
        let interval = self.run.schedule.interval.0.max(1);
        let room = TICK.max(width(&words::grouped(self.span)) + 12.0);
        let wide = |step: &i64| *step as f64 * self.scale() >= room;
        let parts = [8, 4, 2, 1].into_iter().filter(|part| interval % part == 0).map(|part| interval / part);
        let multiples = (0..40).map(|power| interval.saturating_mul(1 << power));
        parts.chain(multiples).find(wide).unwrap_or(self.span.max(1))
    }

    fn row(&mut self, row: &Row, top: f64) {
        let label = fitting(&row.label, self.left - MARGIN - 12.0);
        text(&mut self.out, (self.left - 8.0, top + 13.0), "end", &label);
        for (lane, bars) in row.lanes.iter().enumerate() {
            let y = top + LANE * lane as f64;
            let size = (self.right - self.left, BAR);
            rectangle(&mut self.out, (self.left, y + 1.0), size, "class=\"row\" opacity=\"0.6\"");
            for bar in bars {
                self.bar(bar, y + 1.0, row.class);
            }
        }
    }

    fn bar(&mut self, bar: &Event, y: f64, class: &str) {
        let operation = self.run.problem.graph().operation(bar.op);
        let x = self.x(bar.start);
        let room = (self.x(bar.end) - x).max(THINNEST);
        let hue = bar.iteration as usize % HUES;
        let name = escape(&operation.name);
        let _ = write!(
            self.out,
            "<g class=\"{class} hue{hue}\" data-operation=\"{name}\" data-iteration=\"{}\" data-cycle=\"{}\">",
            bar.iteration, bar.start
        );
        let source = operation.source.as_ref().map_or_else(String::new, |s| format!(", {}:{}", s.file, s.line));
        let tooltip = format!(
            "{}, iteration {}: cycles {} to {}{source}",
            operation.name,
            bar.iteration,
            words::grouped(bar.start),
            words::grouped(bar.end)
        );
        let _ = write!(self.out, "<title>{}</title>", escape(&tooltip));
        rectangle(&mut self.out, (x, y), (room, BAR), "rx=\"2\"");
        let label = fitting(&operation.name, room - 6.0);
        if !label.is_empty() {
            text(&mut self.out, (x + 3.0, y + 12.0), "", &label);
        }
        self.out.push_str("</g>\n");
    }

    fn legend(&mut self, y: f64) {
        let mut x = self.left;
        for k in 0..(self.run.iterations as usize).min(HUES) {
            rectangle(&mut self.out, (x, y - 9.0), (11.0, 11.0), &format!("class=\"hue{k}\" rx=\"2\""));
            let label = if k == 0 { "iteration 0".to_owned() } else { k.to_string() };
            text(&mut self.out, (x + 16.0, y), "", &label);
            x += 16.0 + width(&label) + 14.0;
        }
        let mut notes = Vec::new();
        if self.run.iterations as usize > HUES {
            notes.push("colours come again after 8 iterations");
        }
        if self.run.problem.graph().operations().iter().any(|op| !op.is_synchronous()) {
            notes.push("dashed: runs by itself until its result is there");
        }
        if self.run.problem.graph().operations().iter().any(|op| op.streaming) {
            notes.push("loads at their latest: they run ahead");
        }
        text(&mut self.out, (x + 6.0, y), "faint", &fitting(&notes.join("; "), self.right - x - 6.0));
    }
}
