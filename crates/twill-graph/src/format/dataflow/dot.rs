//! Graphs of EXPRESS (MediaBench) in DOT.
//!
//! Read of DOT: one `digraph` of node statements with a `label`, the operation's kind; edge statements, chains of `->`
//! included; attributes of the graph and of `node`, `edge`, `graph`, which mean nothing here; comments. Every node is
//! declared before or after its edges. Not read: `graph`, subgraphs, ports, HTML texts.
//!
//! `mul` and `div` run on a multiplier, take 2 steps and hold it for both; all else takes 1 step on an ALU. A value takes 1
//! of storage, an edge 1 of communication a step.

use super::super::FormatError;
use super::Names;
use super::text::{Lexicon, Source, Token, Tokens};
use crate::names::legible;
use crate::{Dataflow, DataflowDependence, DataflowOperation, DataflowResource, OpId, ResourceUse, UnitId};

const LEXICON: Lexicon = Lexicon { word: |c| c == '.', slashes: true, hashes: true };

pub(super) fn read(source: Source, stem: &str) -> Result<Dataflow, FormatError> {
    let mut tokens = Tokens::new(source, LEXICON)?;
    if tokens.next == Token::Word("strict") {
        tokens.take()?;
    }
    if tokens.next == Token::Word("graph") {
        return Err(source.error(tokens.at, "an undirected graph; dependences have a direction: `digraph` with `->`"));
    }
    tokens.word("digraph")?;
    let name = if tokens.next == Token::Mark('{') { stem } else { tokens.name("the graph's name or `{`")? };
    tokens.expect('{')?;
    let mut body = Body::default();
    while !tokens.skip('}')? {
        body.statement(&mut tokens)?;
    }
    if tokens.next != Token::End {
        return Err(tokens.unexpected("the end of the file; a file holds one graph"));
    }
    body.finish(source, name)
}

#[derive(Default)]
struct Body<'a> {
    names: Names<'a>,
    operations: Vec<DataflowOperation>,
    /// Names and places of both ends.
    edges: Vec<[(&'a str, usize); 2]>,
}

impl<'a> Body<'a> {
    fn statement(&mut self, tokens: &mut Tokens<'a>) -> Result<(), FormatError> {
        let at = tokens.at;
        if matches!(tokens.next, Token::Word("subgraph") | Token::Mark('{')) {
            return Err(tokens.source.error(at, "subgraphs are not read; write their nodes and edges into the graph"));
        }
        let defaults = matches!(tokens.next, Token::Word("node" | "edge" | "graph"));
        let name = tokens.name("a node, an edge or `}`")?;
        if defaults {
            attributes(tokens)?;
        } else if tokens.skip('=')? {
            tokens.name("a value")?;
        } else if tokens.next == Token::Mark('-') {
            let mut from = (name, at);
            while tokens.skip('-')? {
                if !tokens.skip('>')? {
                    return Err(tokens.unexpected("`->`; dependences have a direction"));
                }
                let to = (tokens.at, tokens.name("a node")?);
                let to = (to.1, to.0);
                self.edges.push([from, to]);
                from = to;
            }
            attributes(tokens)?;
        } else {
            let label = attributes(tokens)?;
            self.names.declare(&tokens.source, "node", name, at)?;
            let missing = || {
                let way_out = format!("node `{name}` has no label; write what it does: {name} [label = add]");
                tokens.source.error(at, way_out)
            };
            self.operations.push(operation(name, label.ok_or_else(missing)?));
        }
        tokens.skip(';')?;
        Ok(())
    }

    fn finish(self, source: Source, name: &str) -> Result<Dataflow, FormatError> {
        let end = |(name, at): (&str, usize)| {
            let undeclared =
                || source.error(at, format!("node `{name}` is not declared; say what it does: {name} [label = add];"));
            self.names.find(name).ok_or_else(undeclared)
        };
        let dependence = |&[from, to]: &[(&str, usize); 2]| {
            let (from, to) = (end(from)?, end(to)?);
            let delay = i64::from(self.operations[from].latency);
            let (from, to) = (OpId::new(from), OpId::new(to));
            Ok(DataflowDependence { from, to, delay, distance: 0, communication: 1 })
        };
        let dependences: Result<Vec<_>, FormatError> = self.edges.iter().map(dependence).collect();
        let dependences = dependences?;
        let resources = ["multiplier", "alu"].map(|name| DataflowResource { name: name.into(), limit: None });
        Dataflow::new(legible(name), self.operations, dependences, resources.into())
            .map_err(|error| source.graph(error))
    }
}

fn operation(name: &str, kind: &str) -> DataflowOperation {
    let multiplies = ["mul", "div"].iter().any(|k| kind.eq_ignore_ascii_case(k));
    let (unit, steps) = if multiplies { (0, 2) } else { (1, 1) };
    let uses = vec![ResourceUse { resource: UnitId::new(unit), offset: 0, steps, amount: 1 }];
    DataflowOperation { name: legible(name), latency: steps, uses, storage: 1 }
}

/// Any number of `[key = value, …]`; the label among them.
fn attributes<'a>(tokens: &mut Tokens<'a>) -> Result<Option<&'a str>, FormatError> {
    let mut label = None;
    while tokens.skip('[')? {
        while !tokens.skip(']')? {
            let key = tokens.name("an attribute or `]`")?;
            if tokens.skip('=')? {
                let value = tokens.name("a value")?;
                if key.eq_ignore_ascii_case("label") {
                    label = Some(value);
                }
            }
            if !tokens.skip(',')? {
                tokens.skip(';')?;
            }
        }
    }
    Ok(label)
}
