//! Combinational circuits in BLIF, as the EPFL suite has them.
//!
//! Operations are the primary inputs and the `.names`, called by their signals, in the order of the file; each takes one
//! step, one `gate` and 1 of storage. Read: one `.model` with `.inputs`, `.outputs`, `.names` with their covers, `.end`,
//! comments, lines continued by `\`. What is in a cover plays no part.

use super::super::FormatError;
use super::Names;
use super::text::{Source, shown};
use crate::names::legible;
use crate::{Dataflow, DataflowDependence, DataflowOperation, DataflowResource, OpId, ResourceUse, UnitId};

/// A word and where it stands.
type Word<'a> = (&'a str, usize);

pub(super) fn read(source: Source, stem: &str, chaining: bool) -> Result<Dataflow, FormatError> {
    let mut circuit = Circuit { source, model: None, names: Names::default(), reads: Vec::new(), outputs: Vec::new() };
    let mut lines = Lines { text: source.text, at: 0 };
    let (mut line, mut ended) = (Vec::new(), false);
    while lines.next(&mut line) {
        let (command, at) = line[0];
        if ended {
            return Err(source.error(at, "something follows `.end`; a file holds one circuit"));
        }
        ended = circuit.line(command, at, &line[1..])?;
    }
    circuit.finish(stem, chaining)
}

struct Circuit<'a> {
    source: Source<'a>,
    model: Option<&'a str>,
    names: Names<'a>,
    /// The value that is read, and the reader.
    reads: Vec<(Word<'a>, usize)>,
    outputs: Vec<Word<'a>>,
}

impl<'a> Circuit<'a> {
    /// Returns whether this line ends the circuit.
    fn line(&mut self, command: &'a str, at: usize, words: &[Word<'a>]) -> Result<bool, FormatError> {
        match command {
            ".model" => {
                if self.model.replace(words.first().map_or("", |w| w.0)).is_some() {
                    return Err(self.source.error(at, "a second `.model`; flatten the circuit into one"));
                }
            }
            ".inputs" => {
                for &(name, at) in words {
                    self.names.declare(&self.source, "signal", name, at)?;
                }
            }
            ".outputs" => self.outputs.extend(words),
            ".names" => {
                let Some((&(name, at), inputs)) = words.split_last() else {
                    return Err(self.source.error(at, "`.names` without a signal; its last word is what it drives"));
                };
                let gate = self.names.declare(&self.source, "driver of signal", name, at)?;
                self.reads.extend(inputs.iter().map(|&input| (input, gate)));
            }
            ".end" => return Ok(true),
            ".latch" | ".mlatch" => {
                let way_out =
                    "a register; only combinational circuits are read: make its ends inputs and outputs (abc: `comb`)";
                return Err(self.source.error(at, way_out));
            }
            ".gate" | ".subckt" | ".search" | ".exdc" => {
                let way_out =
                    format!("`{command}` is not read; flatten the circuit to `.names` (abc: `strash; write_blif`)");
                return Err(self.source.error(at, way_out));
            }
            cover if cover.bytes().all(|b| matches!(b, b'0' | b'1' | b'-')) && words.len() <= 1 => {}
            _ => {
                let expected = "expected .model, .inputs, .outputs, .names, a cover of 0, 1 and -, or .end";
                return Err(self.source.error(at, format!("{expected}; found `{}`", shown(command))));
            }
        }
        Ok(false)
    }

    fn finish(self, stem: &str, chaining: bool) -> Result<Dataflow, FormatError> {
        let driver = |(name, at): Word| {
            let way_out = || format!("nothing drives the signal `{}`; declare it in .inputs or by .names", shown(name));
            self.names.find(name).ok_or_else(|| self.source.error(at, way_out()))
        };
        for &output in &self.outputs {
            driver(output)?;
        }
        let dependence = |&(input, gate): &(Word, usize)| {
            let (from, to) = (OpId::new(driver(input)?), OpId::new(gate));
            Ok(DataflowDependence { from, to, delay: i64::from(!chaining), distance: 0, communication: 1 })
        };
        let dependences: Result<Vec<_>, FormatError> = self.reads.iter().map(dependence).collect();
        let dependences = dependences?;
        let mut names: Vec<(&str, usize)> = self.names.0.into_iter().collect();
        names.sort_unstable_by_key(|&(_, index)| index);
        let operation = |(name, _): (&str, usize)| {
            let uses = vec![ResourceUse { resource: UnitId::new(0), offset: 0, steps: 1, amount: 1 }];
            DataflowOperation { name: legible(name), latency: 1, uses, storage: 1 }
        };
        let operations = names.into_iter().map(operation).collect();
        let name = self.model.filter(|name| !name.is_empty() && *name != "top").unwrap_or(stem);
        let gates = vec![DataflowResource { name: "gate".into(), limit: None }];
        Dataflow::new(legible(name), operations, dependences, gates).map_err(|error| self.source.graph(error))
    }
}

/// Lines of words; a `\` at the end of a line joins the next, `#` begins a comment.
struct Lines<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lines<'a> {
    /// The next line that is not blank; false when there is none.
    fn next(&mut self, words: &mut Vec<Word<'a>>) -> bool {
        words.clear();
        while self.at < self.text.len() {
            let rest = &self.text[self.at..];
            let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
            let start = self.at;
            self.at += line.len() + 1;
            let code = &line[..line.find('#').unwrap_or(line.len())];
            let joined = code.trim_end().strip_suffix('\\');
            let code = joined.unwrap_or(code);
            let place = |word: &'a str| (word, start + (word.as_ptr() as usize - line.as_ptr() as usize));
            words.extend(code.split_whitespace().map(place));
            if joined.is_none() && !words.is_empty() {
                return true;
            }
        }
        !words.is_empty()
    }
}
