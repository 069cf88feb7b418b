//! Bars on a scaled time axis.

use crate::ink::{Ink, Line, Page, columns, cut};
use crate::words;

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
        let columns = i64::try_from(columns.max(1)).unwrap_or(i64::MAX);
        if span <= columns {
            let columns_per_cycle = (columns / span).clamp(1, MOST_COLUMNS_PER_CYCLE);
            Axis { span, cycles_per_column: 1, columns_per_cycle }
        } else {
            let least = (span - 1) / columns + 1;
            let even = (least..=least.saturating_add(least / 3)).take(MOST_TRIED).find(|c| unit % c == 0);
            Axis { span, cycles_per_column: even.unwrap_or(least), columns_per_cycle: 1 }
        }
    }

    /// The column in which a cycle of `[0, span]` begins.
    pub(crate) fn column(&self, cycle: i64) -> usize {
        if cycle >= self.span {
            return self.columns();
        }
        let cycle = cycle.max(0);
        usize::try_from(cycle / self.cycles_per_column * self.columns_per_cycle).unwrap_or(0)
    }

    /// Columns in all.
    pub(crate) fn columns(&self) -> usize {
        let columns = (self.span - 1) / self.cycles_per_column + 1;
        usize::try_from(columns * self.columns_per_cycle).unwrap_or(1)
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

/// Something that takes time.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    /// First cycle.
    pub start: i64,
    /// Cycle after the last.
    pub end: i64,
    /// Text at its beginning.
    pub label: String,
    /// What the rest is filled with.
    pub fill: char,
    /// Colour.
    pub ink: Ink,
    /// Where there is little room, only the first character of the label is shown.
    pub short: bool,
    /// It began before the row does.
    pub from_left: bool,
    /// It goes on after the row's end.
    pub to_right: bool,
}

/// Bars that do not overlap in time, on as few rows as a first fit finds.
pub(crate) fn lanes(mut bars: Vec<Bar>) -> Vec<Vec<Bar>> {
    bars.sort_by(|a, b| (a.start, a.end, &a.label).cmp(&(b.start, b.end, &b.label)));
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

/// One row of a timeline, and how many of its bars were too short to be seen.
pub(crate) fn row(axis: &Axis, bars: &[Bar], marks: &[i64]) -> (Line, usize) {
    let width = axis.columns();
    let mut cells: Vec<(String, Ink)> = vec![("·".into(), Ink::Dim); width];
    for &mark in marks.iter().filter(|m| (0..axis.span).contains(*m)) {
        cells[axis.column(mark)] = ("|".into(), Ink::Dim);
    }
    let mut free = 0;
    let mut hidden = 0;
    for bar in bars {
        let first = axis.column(bar.start);
        let last = axis.column(bar.end).max(first + 1).min(width);
        let first = first.max(free);
        if first >= last {
            hidden += 1;
            continue;
        }
        free = last;
        for (cell, text) in cells[first..last].iter_mut().zip(draw(bar, last - first)) {
            *cell = (text, bar.ink);
        }
    }
    let mut line = Line::new();
    for (text, ink) in &cells {
        line.push(text, *ink);
    }
    (line, hidden)
}

/// A bar in exactly `width` cells; a cell behind a wide character is empty.
fn draw(bar: &Bar, width: usize) -> Vec<String> {
    let mut cells: Vec<String> = Vec::with_capacity(width);
    if bar.from_left && width > 1 {
        cells.push("<".into());
    }
    let end = usize::from(bar.to_right && width > columns(&bar.label) + cells.len());
    let room = width - cells.len();
    // Of a name that hardly fits, its first character says as much as any other part.
    let room = if bar.short && room < 4 && columns(&bar.label) > room { 1 } else { room };
    for c in cut(&bar.label, room).chars() {
        cells.push(c.into());
        cells.extend(std::iter::repeat_n(String::new(), columns(c.encode_utf8(&mut [0; 4])).saturating_sub(1)));
    }
    while cells.len() + end < width {
        cells.push(bar.fill.into());
    }
    if end == 1 {
        cells.push(">".into());
    }
    cells
}

/// A timeline's rows of one subject, the first with its label.
pub(crate) fn write(page: &mut Page, axis: &Axis, label: (&str, usize), bars: Vec<Bar>, marks: &[i64]) -> usize {
    const MOST_LANES: usize = 6;
    let (name, room) = label;
    let lanes = lanes(bars);
    let mut hidden = 0;
    for (k, lane) in lanes.iter().take(MOST_LANES).enumerate() {
        let mut line = Line::of(if k == 0 { name } else { "" }, Ink::Plain);
        line.pad(room.saturating_sub(1));
        line.push("|", Ink::Dim);
        let (bars, too_short) = row(axis, lane, marks);
        hidden += too_short;
        line.append(bars);
        line.push("|", Ink::Dim);
        page.line(&line);
    }
    hidden + lanes.iter().skip(MOST_LANES).map(Vec::len).sum::<usize>()
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
            label: String::new(),
            fill: '-',
            ink: Ink::Plain,
            short: false,
            from_left: false,
            to_right: false,
        };
        let lanes = lanes(vec![bar(0, 2), bar(1, 3), bar(2, 4)]);
        assert_eq!(lanes.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
    }
}
