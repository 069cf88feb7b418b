//! Text of an SVG document.

use crate::ink::{columns, cut};
use crate::markup::escape;
use std::fmt::Write;

/// The styles that do not depend on light and dark.
const SHAPE: &str = "
.twill { color-scheme: light dark; }
.twill text { font-family: ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; font-size: 11px; }
.twill .title { font-size: 14px; font-weight: 600; }
.twill .section { font-weight: 600; }
.twill .end { text-anchor: end; }
.twill .middle { text-anchor: middle; }
.twill .rule { fill: none; }
.twill .flight rect { stroke-dasharray: 3 2; }
.twill .edge path { stroke-width: 1.2; fill: none; }
.twill .order path { stroke-dasharray: 1 3; }
.twill .carried path { stroke-dasharray: 5 3; }
.twill .carried text { paint-order: stroke; stroke-width: 4px; }
";

/// The colours: selector, property, light, dark. Text stands out from what it is written on by a contrast of
/// at least 4.5 (WCAG 2.2, success criterion 1.4.3). Without CSS variables: converters to PDF and PNG do not know them.
const COLOURS: [(&str, &str, &str, &str); 12] = [
    ("text", "fill", "#1f2328", "#f0f3f6"),
    (".faint", "fill", "#59636e", "#9aa4af"),
    (".paper", "fill", "#ffffff", "#0d1117"),
    (".row", "fill", "#f6f8fa", "#151b23"),
    (".steady", "fill", "#e3ecf9", "#1a2a42"),
    (".rule", "stroke", "#c3ccd5", "#434c57"),
    (".edge path", "stroke", "#59636e", "#9aa4af"),
    (".edge polygon", "fill", "#59636e", "#9aa4af"),
    (".carried path", "stroke", "#b3261e", "#ff8a80"),
    (".carried polygon", "fill", "#b3261e", "#ff8a80"),
    (".carried text", "fill", "#b3261e", "#ff8a80"),
    (".carried text", "stroke", "#ffffff", "#0d1117"),
];

/// Colours that tell things of one kind apart: fill and edge, light and dark. More things than that share them.
const PALETTE: [[&str; 4]; HUES] = [
    ["#b6d4fe", "#3b76c4", "#1b4a86", "#7fb2f5"],
    ["#ffd8a8", "#b8741a", "#774712", "#e6a95c"],
    ["#b7e4c7", "#35865a", "#1f5c3c", "#74cf9c"],
    ["#f5c2e7", "#ad4a93", "#743162", "#e592cf"],
    ["#d5ccff", "#6f5bd0", "#4a3d96", "#ab9cff"],
    ["#f9e79f", "#8f7a10", "#5f5208", "#d9c24a"],
    ["#a5e3e0", "#1d8580", "#125a57", "#5fcfc9"],
    ["#dfd3c3", "#8a7252", "#574834", "#cbb393"],
];

/// How many colours there are.
pub(crate) const HUES: usize = 8;

/// The colours of a light or a dark picture as CSS.
fn colours(dark: bool) -> String {
    let mut out = String::new();
    for (selector, property, light, other) in COLOURS {
        let _ = writeln!(out, ".twill {selector} {{ {property}: {}; }}", if dark { other } else { light });
    }
    for (k, [fill, edge, dark_fill, dark_edge]) in PALETTE.iter().enumerate() {
        let (fill, edge) = if dark { (dark_fill, dark_edge) } else { (fill, edge) };
        let _ = writeln!(out, ".twill .hue{k} rect, .twill rect.hue{k} {{ fill: {fill}; stroke: {edge}; }}");
    }
    out
}

/// Fill of a colour in a light picture.
pub(crate) fn fill(hue: usize) -> &'static str {
    PALETTE[hue % HUES][0]
}

/// Width of a character of text in pixels.
pub(crate) const CHARACTER: f64 = 6.65;

/// A picture without its document.
pub(crate) struct Drawing {
    pub width: f64,
    pub height: f64,
    /// A one-line description.
    pub title: String,
    /// The same in words, for those who do not see it.
    pub description: String,
    pub body: String,
}

/// Pictures below each other as one document.
pub(crate) fn document(drawings: Vec<Drawing>) -> String {
    let width = drawings.iter().map(|d| d.width).fold(0.0, f64::max);
    let height: f64 = drawings.iter().map(|d| d.height).sum();
    let titles: Vec<&str> = drawings.iter().map(|d| d.title.as_str()).collect();
    let descriptions: Vec<&str> = drawings.iter().map(|d| d.description.as_str()).collect();
    let (w, h) = (number(width), number(height));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"twill\" role=\"img\" \
         width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\">\n"
    );
    let _ = writeln!(out, "<title>{}</title>", escape(&titles.join("; ")));
    let _ = writeln!(out, "<desc>{}</desc>", escape(&descriptions.join(" ")));
    let (light, dark) = (colours(false), colours(true));
    let _ = writeln!(out, "<style>{SHAPE}{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n</style>");
    let _ = writeln!(out, "<rect class=\"paper\" width=\"{w}\" height=\"{h}\"/>");
    let mut at = 0.0;
    for drawing in &drawings {
        let _ = writeln!(out, "<g transform=\"translate(0 {})\">\n{}</g>", number(at), drawing.body);
        at += drawing.height;
    }
    out + "</svg>\n"
}

/// A number of pixels, to a hundredth.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Text with its lower left corner at a point.
pub(crate) fn text(out: &mut String, (x, y): (f64, f64), class: &str, text: &str) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let _ = writeln!(out, "<text x=\"{}\" y=\"{}\"{class}>{}</text>", number(x), number(y), escape(text));
}

/// A rectangle from its upper left corner; `more` are attributes.
pub(crate) fn rectangle(out: &mut String, (x, y): (f64, f64), (width, height): (f64, f64), more: &str) {
    let [x, y, width, height] = [x, y, width, height].map(number);
    let _ = writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" {more}/>");
}

/// As much of a text as fits into this many pixels; nothing where that would say nothing. The number of a sub-tile at
/// the end, which tells names apart, stays.
pub(crate) fn fitting(text: &str, pixels: f64) -> String {
    const LEAST: usize = 4;
    let room = (pixels / CHARACTER).max(0.0) as usize;
    if columns(text) <= room {
        return text.to_owned();
    }
    let number = text.rsplit_once('.').filter(|(_, last)| last.parse::<u32>().is_ok());
    let tail = number.map_or(String::new(), |(_, last)| format!(".{last}"));
    let shortened = |text: &str, room: usize| cut(text, room - 1).trim_end_matches('.').to_owned() + "…";
    match (number, room.checked_sub(columns(&tail))) {
        (Some((head, _)), Some(left)) if left >= LEAST => shortened(head, left) + &tail,
        _ if room >= LEAST => shortened(text, room),
        _ => String::new(),
    }
}

/// Pixels that a text takes.
pub(crate) fn width(text: &str) -> f64 {
    columns(text) as f64 * CHARACTER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_before_the_number_of_their_sub_tile() {
        let fit = |name, characters: f64| fitting(name, characters * CHARACTER + 0.1);
        assert_eq!(fit("acc.convert.1", 13.0), "acc.convert.1");
        assert_eq!(fit("acc.convert.1", 12.0), "acc.conve….1");
        assert_eq!(fit("acc.convert.1", 7.0), "acc….1");
        assert_eq!(fit("acc.convert.1", 5.0), "acc…");
        assert_eq!(fit("acc.convert", 6.0), "acc.c…");
        assert_eq!(fit("acc.convert", 3.0), "");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0, 1.5, -2.25, 10.0, 7.654].map(number), ["0", "1.5", "-2.25", "10", "7.65"]);
    }
}
