//! A kernel's source, and which of its lines run which operation.
//!
//! A printer ends such a line with a marker, which no source has; [`Listing::new`] takes the markers out.

use twill_graph::{LoopOperation, OpId};

/// Begins a marker.
const MARKER: char = '\u{1f}';

/// A kernel's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The text.
    pub text: String,
    /// Lines, from 1, that run an operation of a loop, ascending.
    pub lines: Vec<(usize, LoopOperation)>,
}

impl Listing {
    /// A text with markers.
    pub(crate) fn new(marked: &str) -> Listing {
        let mut listing = Listing { text: String::with_capacity(marked.len()), lines: Vec::new() };
        for (number, line) in (1..).zip(marked.split_inclusive('\n')) {
            match line.trim_end_matches('\n').split_once(MARKER) {
                Some((code, marker)) => {
                    listing.text.push_str(code);
                    listing.text.push('\n');
                    listing.lines.extend(operation(marker).map(|operation| (number, operation)));
                }
                None => listing.text.push_str(line),
            }
        }
        listing
    }
}

/// Ends the last line of a text with the marker of its operation.
pub(crate) fn end_with_marker(text: &mut String, operation: Option<LoopOperation>) {
    if let Some(LoopOperation { index, op }) = operation
        && text.ends_with('\n')
    {
        text.pop();
        text.push_str(&format!("{MARKER}{index} {}\n", op.index()));
    }
}

fn operation(marker: &str) -> Option<LoopOperation> {
    let (index, op) = marker.split_once(' ')?;
    Some(LoopOperation { index: index.parse().ok()?, op: OpId::new(op.parse().ok()?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_taken_out_and_counted() {
        let of = |index, op| LoopOperation { index, op: OpId::new(op) };
        let mut text = "head\n".to_owned();
        for (line, operation) in
            [("a = 1  # cycle 0\n", Some(of(0, 7))), ("b = 2\n", None), ("c = 3\n", Some(of(1, 0)))]
        {
            text.push_str(line);
            end_with_marker(&mut text, operation);
        }
        text.push_str("tail");
        let listing = Listing::new(&text);
        assert_eq!(listing.text, "head\na = 1  # cycle 0\nb = 2\nc = 3\ntail");
        assert_eq!(listing.lines, [(2, of(0, 7)), (4, of(1, 0))]);
    }
}
