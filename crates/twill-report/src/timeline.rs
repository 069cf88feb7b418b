//! Bars on a scaled time axis.

use crate::ink::{Ink, Line, Page, columns, cut};
use crate::words;
use std::ops::AddAssign;
use twill_graph::saturate;

/// Maps cycles to columns: a whole number of cycles a column, or of columns a cycle, so that
/// lengths on the page are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    span: i64,
    cycles_per_column: i64,
    columns_per_cycle: i64,
}

/// More columns than this a cycle do not make a short interval clearer.
const MOST_COLUMNS_PER_CYCLE: i64 = 12;

/// Scales that are tried for an even one.
const MOST_TRIED: usize = 4096;

impl Axis {
    /// The axis for `[0, span)` on at most `columns` columns; if that costs little, a multiple of
    /// `unit` cycles begins with a column.
    pub(crate) fn new(span: i64, columns: usize, unit: i64) -> Axis {
        let span = span.max(1);
        let columns = saturate::<i64>(columns.max(1));
        if span <= columns {
            let columns_per_cycle = (columns / span).clamp(1, MOST_COLUMNS_PER_CYCLE);
            Axis { span, cycles_per_column: 1, columns_per_cycle }
        } else {
            let least = (span - 1) / columns + 1;
            let even = (least..=least.saturating_add(least / 6)).take(MOST_TRIED).find(|c| unit % c == 0);
            Axis { span, cycles_per_column: even.unwrap_or(least), columns_per_cycle: 1 }
        }
    }

    /// The column in which a cycle of `[0, span]` begins.
    pub(crate) fn column(&self, cycle: i64) -> usize {
        if cycle >= self.span {
            return self.columns();
        }
        let cycle = cycle.max(0);
        saturate::<usize>(cycle / self.cycles_per_column * self.columns_per_cycle)
    }

    /// Columns in all.
    pub(crate) fn columns(&self) -> usize {
        let columns = (self.span - 1) / self.cycles_per_column + 1;
        saturate::<usize>(columns * self.columns_per_cycle)
    }

    /// The scale in words.
    pub(crate) fn scale(&self) -> String {
        if self.cycles_per_column > 1 {
            format!("1 column = {} cycles", words::grouped(self.cycles_per_column))
        } else {
            format!("{} = 1 cycle", words::count(self.columns_per_cycle, "column"))
        }
    }

    /// A ruler: a number where each multiple of the step begins.
    pub(crate) fn ruler(&self, label: usize, step: i64) -> Line {
        let mut line = Line::new();
        line.pad(label);
        let mut tick = 0;
        while tick < self.span {
            let at = label + self.column(tick);
            let text = words::grouped(tick);
            if line.columns() <= at && at + columns(&text) <= label + self.columns() + 1 {
                line.pad(at);
                line.push(&text, Ink::Dim);
                line.push(" ", Ink::Dim);
            }
            tick = tick.saturating_add(step.max(1));
        }
        line
    }

    /// A step for the ruler: a part of `unit` if it divides well, or a round number.
    pub(crate) fn step(&self, unit: i64) -> i64 {
        let room = columns(&words::grouped(self.span)) as i64 + 3;
        let wide = |step: i64| step * self.columns_per_cycle / self.cycles_per_column >= room;
        for parts in [16, 8, 4, 2] {
            if unit % parts == 0 && wide(unit / parts) {
                return unit / parts;
            }
        }
        let mut round = 1_i64;
        while round < i64::MAX / 100 {
            for step in [round, 2 * round, 5 * round] {
                if wide(step) {
                    return step;
                }
            }
            round *= 10;
        }
        self.span
    }
}

/// The beginning of a bar.
#[derive(Clone, Debug, Default)]
pub(crate) struct Label {
    /// Before the name; left out where there is no room for it.
    pub prefix: String,
    /// Name of the operation; nothing for a bar that has its name elsewhere.
    pub name: String,
    /// After the name.
    pub suffix: String,
}

impl Label {
    /// The label in at most `room` columns, its name shortened where that still tells it from all `names`.
    fn within(&self, room: usize, names: &[&str]) -> Option<String> {
        let Label { prefix, name, suffix } = self;
        let whole = format!("{prefix}{name}{suffix}");
        if columns(&whole) <= room {
            return Some(whole);
        }
        let short = shortened(name, room.checked_sub(columns(suffix))?, names)?;
        Some(short + suffix)
    }
}

/// Something that takes time.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    /// First cycle.
    pub start: i64,
    /// Cycle after the last.
    pub end: i64,
    /// Its first character, so that neighbours are told apart.
    pub edge: char,
    /// Its kind.
    pub label: Label,
    /// The fill of the rest.
    pub fill: char,
    /// Colour.
    pub ink: Ink,
    /// It began before the row does.
    pub from_left: bool,
    /// It goes on after the row's end.
    pub to_right: bool,
}

/// The first character of a bar; half a character, so that two of them leave a gap.
pub(crate) const EDGE: char = '▌';

/// Bars that do not show all that they could.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Short {
    /// Bars too short for their labels, those that are not drawn included.
    pub unlabelled: usize,
    /// Bars too short to be drawn.
    pub hidden: usize,
}

impl AddAssign for Short {
    fn add_assign(&mut self, other: Short) {
        self.unlabelled += other.unlabelled;
        self.hidden += other.hidden;
    }
}

impl Short {
    /// The same in words for a legend, or nothing.
    pub(crate) fn told(self) -> String {
        let Short { unlabelled, hidden } = self;
        let are = if unlabelled == 1 { "is" } else { "are" };
        let drawn = match hidden {
            0 => String::new(),
            n => format!(", {} of them to be drawn", words::grouped(n as i128)),
        };
        match unlabelled {
            0 => String::new(),
            n => format!("; {} {are} too short to be labelled{drawn}", words::count(n as i128, "bar")),
        }
    }
}

/// Fewer characters than this of a name say nothing.
const LEAST_NAME: usize = 7;

/// A name in at most `room` columns, with `…` within, if no other of `names` could be meant.
pub(crate) fn shortened(name: &str, room: usize, names: &[&str]) -> Option<String> {
    if columns(name) <= room {
        return Some(name.to_owned());
    }
    let kept = room.checked_sub(1).filter(|_| room >= LEAST_NAME)?;
    let backwards = |text: &str| text.chars().rev().collect::<String>();
    // Both ends of a name say what it is; the end often more than the beginning.
    let mut tails: Vec<usize> = (2..kept.saturating_sub(1)).collect();
    tails.sort_by_key(|&tail| (tail.abs_diff(kept.div_ceil(2)), tail));
    tails.into_iter().find_map(|tail| {
        let (head, tail) = (cut(name, kept - tail), backwards(&cut(&backwards(name), tail)));
        let meant = |other: &&&str| other.starts_with(&head) && other.ends_with(&tail);
        (names.iter().filter(meant).take(2).count() < 2).then(|| format!("{head}…{tail}"))
    })
}

/// Bars that do not overlap in time, on as few rows as a first fit finds.
pub(crate) fn lanes(mut bars: Vec<Bar>) -> Vec<Vec<Bar>> {
    bars.sort_by(|a, b| (a.start, a.end, &a.label.name).cmp(&(b.start, b.end, &b.label.name)));
    let mut lanes: Vec<Vec<Bar>> = Vec::new();
    for bar in bars {
        let free = |lane: &&mut Vec<Bar>| lane.last().is_none_or(|last| last.end <= bar.start);
        match lanes.iter_mut().find(free) {
            Some(lane) => lane.push(bar),
            None => lanes.push(vec![bar]),
        }
    }
    lanes
}

/// One row of a timeline, and which of its bars are too short.
fn row(axis: &Axis, bars: &[Bar], names: &[&str], marks: &[i64]) -> (Line, Short) {
    let width = axis.columns();
    let mut cells: Vec<(String, Ink)> = vec![("·".into(), Ink::Dim); width];
    for &mark in marks.iter().filter(|m| (0..axis.span).contains(*m)) {
        cells[axis.column(mark)] = ("|".into(), Ink::Dim);
    }
    let mut free = 0;
    let mut short = Short::default();
    for bar in bars {
        let first = axis.column(bar.start);
        let last = axis.column(bar.end).max(first + 1).min(width);
        let first = first.max(free);
        if first >= last {
            short += Short { unlabelled: 1, hidden: 1 };
            continue;
        }
        free = last;
        let (drawn, is_labelled) = draw(bar, last - first, names);
        short.unlabelled += usize::from(!is_labelled);
        for (cell, text) in cells[first..last].iter_mut().zip(drawn) {
            *cell = (text, bar.ink);
        }
    }
    let mut line = Line::new();
    for (text, ink) in &cells {
        line.push(text, *ink);
    }
    (line, short)
}

/// A bar in exactly `width` cells, and whether it has its label; a cell after a wide character is empty.
fn draw(bar: &Bar, width: usize, names: &[&str]) -> (Vec<String>, bool) {
    let mut cells = vec![String::from(if bar.from_left { '<' } else { bar.edge })];
    let end = usize::from(bar.to_right && width > 1);
    let label = bar.label.within(width.saturating_sub(1 + end), names);
    for c in label.as_deref().unwrap_or_default().chars() {
        cells.push(c.into());
        cells.extend(std::iter::repeat_n(String::new(), columns(c.encode_utf8(&mut [0; 4])).saturating_sub(1)));
    }
    while cells.len() + end < width {
        cells.push(bar.fill.into());
    }
    if end == 1 {
        cells.push(">".into());
    }
    (cells, label.is_some())
}

/// A timeline's rows of one subject, the first with its label.
pub(crate) fn write(
    page: &mut Page,
    axis: &Axis,
    label: (&str, usize),
    bars: Vec<Bar>,
    names: &[&str],
    marks: &[i64],
) -> Short {
    const MOST_LANES: usize = 6;
    let (name, room) = label;
    let lanes = lanes(bars);
    let mut short = Short::default();
    for (k, lane) in lanes.iter().take(MOST_LANES).enumerate() {
        let mut line = Line::of(if k == 0 { name } else { "" }, Ink::Plain);
        line.pad(room.saturating_sub(1));
        line.push("|", Ink::Dim);
        let (bars, too_short) = row(axis, lane, names, marks);
        short += too_short;
        line.append(bars);
        line.push("|", Ink::Dim);
        page.line(&line);
    }
    let left_out = lanes.iter().skip(MOST_LANES).map(Vec::len).sum::<usize>();
    short += Short { unlabelled: left_out, hidden: left_out };
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_whole_numbers() {
        let fine = Axis::new(2, 90, 2);
        assert_eq!((fine.column(0), fine.column(1), fine.columns()), (0, 12, 24));
        let coarse = Axis::new(2048, 125, 2048);
        assert_eq!((coarse.cycles_per_column, coarse.columns()), (17, 121));
        let even = Axis::new(2048, 120, 2048);
        assert_eq!((even.cycles_per_column, even.columns()), (18, 114));
        let huge = Axis::new(1_000_000_000, 130, 1_000_000_000);
        assert!(huge.columns() <= 130);
        assert_eq!(Axis::new(0, 0, 1).columns(), 1);
    }

    #[test]
    fn overlapping_bars_take_lanes() {
        let bar = |start, end| Bar {
            start,
            end,
            edge: EDGE,
            label: Label::default(),
            fill: '-',
            ink: Ink::Plain,
            from_left: false,
            to_right: false,
        };
        let lanes = lanes(vec![bar(0, 2), bar(1, 3), bar(2, 4)]);
        assert_eq!(lanes.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn a_short_name_means_one_operation() {
        let names = ["new_max.reduce_max.0", "new_max.multiply.0", "new_max.max.0", "acc.dot.0", "acc.convert.0"];
        assert_eq!(shortened("acc.dot.0", 9, &names).as_deref(), Some("acc.dot.0"));
        assert_eq!(shortened("acc.dot.0", 8, &names).as_deref(), Some("acc…ot.0"));
        assert_eq!(shortened("new_max.multiply.0", 10, &names).as_deref(), Some("new_…ply.0"));
        // `new_…max.0` would be two operations.
        assert_eq!(shortened("new_max.reduce_max.0", 8, &names), None);
        assert_eq!(shortened("acc.convert.0", 5, &names), None);
    }

    #[test]
    fn neighbours_are_told_apart_and_labels_are_whole() {
        let bar = |start, end, name: &str| Bar {
            start,
            end,
            edge: EDGE,
            label: Label { name: name.into(), ..Label::default() },
            fill: '─',
            ink: Ink::Plain,
            from_left: false,
            to_right: false,
        };
        let bars = [bar(0, 6, "load"), bar(6, 8, "scale"), bar(8, 9, "a"), bar(9, 14, "b"), bar(14, 15, "c")];
        let names: Vec<&str> = bars.iter().map(|bar| bar.label.name.as_str()).collect();
        let (line, short) = row(&Axis::new(15, 15, 15), &bars, &names, &[]);
        let mut page = Page::new(80, false);
        page.line(&line);
        assert_eq!(page.finish(), "▌load─▌─▌▌b───▌\n");
        assert_eq!(short, Short { unlabelled: 3, hidden: 0 });
        assert_eq!(short.told(), "; 3 bars are too short to be labelled");
    }
}
