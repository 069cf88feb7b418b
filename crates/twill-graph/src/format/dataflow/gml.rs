//! Graphs of GS-Schedule in GML.
//!
//! A node's `parameter` is its weight: what it takes of `memory` in its step, and what its value takes of storage. An edge
//! whose `parameter` is above 0 costs 1 of communication a step. Operations are called by their `label`, or by their `id`
//! where they have none. As these graphs are scored, a consumer may share its producer's step (chaining, delay 0).
//! Keys that are not named here play no part.

use super::super::FormatError;
use super::Names;
use super::text::{Lexicon, Source, Token, Tokens};
use crate::names::legible;
use crate::{Dataflow, DataflowDependence, DataflowOperation, DataflowResource, OpId, ResourceUse, UnitId};

const LEXICON: Lexicon = Lexicon { word: |c| matches!(c, '.' | '+' | '-'), slashes: false, hashes: true };

/// Largest weight of a node.
const LARGEST: i64 = Dataflow::LARGEST;

pub(super) fn read(source: Source, stem: &str, chaining: bool) -> Result<Dataflow, FormatError> {
    let mut tokens = Tokens::new(source, LEXICON)?;
    let mut graph = None;
    while let Some((key, at)) = key(&mut tokens)? {
        if key != "graph" {
            skip_value(&mut tokens)?;
        } else if graph.is_some() {
            return Err(source.error(at, "a second `graph`; a file holds one"));
        } else {
            graph = Some(Body::read(&mut tokens, at)?);
        }
    }
    if tokens.next != Token::End {
        return Err(tokens.unexpected("a key"));
    }
    let graph = graph.ok_or_else(|| source.error(0, "there is no `graph [ … ]`"))?;
    graph.finish(source, stem, chaining)
}

#[derive(Default)]
struct Body<'a> {
    ids: Names<'a>,
    labels: Names<'a>,
    operations: Vec<DataflowOperation>,
    /// Source and target with their places; communication.
    edges: Vec<([(&'a str, usize); 2], u64)>,
}

impl<'a> Body<'a> {
    fn read(tokens: &mut Tokens<'a>, start: usize) -> Result<Body<'a>, FormatError> {
        let (mut body, mut directed) = (Body::default(), false);
        tokens.expect('[')?;
        while let Some((key, at)) = key(tokens)? {
            match key {
                "directed" => directed = tokens.name("0 or 1")? == "1",
                "node" => body.node(tokens, at)?,
                "edge" => body.edge(tokens, at)?,
                _ => skip_value(tokens)?,
            }
        }
        tokens.expect(']')?;
        if directed {
            return Ok(body);
        }
        Err(tokens.source.error(start, "the graph is undirected; dependences have a direction: write `directed 1`"))
    }

    fn node(&mut self, tokens: &mut Tokens<'a>, at: usize) -> Result<(), FormatError> {
        let (mut id, mut label, mut weight) = (None, None, 0);
        tokens.expect('[')?;
        while let Some((key, _)) = key(tokens)? {
            let at = tokens.at;
            match key {
                "id" => id = Some((tokens.name("an id")?, at)),
                "label" => label = Some((tokens.name("a label")?, at)),
                "parameter" => weight = parameter(tokens)?,
                _ => skip_value(tokens)?,
            }
        }
        tokens.expect(']')?;
        let Some(id) = id else { return Err(tokens.source.error(at, "this node has no `id`")) };
        self.ids.declare(&tokens.source, "node with id", id.0, id.1)?;
        let (name, at) = label.unwrap_or(id);
        self.labels.declare(&tokens.source, "node", name, at)?;
        let weight = weight.unsigned_abs();
        let taken = ResourceUse { resource: UnitId::new(0), offset: 0, steps: 1, amount: weight };
        let uses = if weight == 0 { Vec::new() } else { vec![taken] };
        self.operations.push(DataflowOperation { name: legible(name), latency: 1, uses, storage: weight });
        Ok(())
    }

    fn edge(&mut self, tokens: &mut Tokens<'a>, at: usize) -> Result<(), FormatError> {
        let (mut from, mut to, mut weight) = (None, None, 0);
        tokens.expect('[')?;
        while let Some((key, _)) = key(tokens)? {
            let at = tokens.at;
            match key {
                "source" => from = Some((tokens.name("an id")?, at)),
                "target" => to = Some((tokens.name("an id")?, at)),
                "parameter" => weight = parameter(tokens)?,
                _ => skip_value(tokens)?,
            }
        }
        tokens.expect(']')?;
        let (Some(from), Some(to)) = (from, to) else {
            return Err(tokens.source.error(at, "an edge needs a `source` and a `target`"));
        };
        self.edges.push(([from, to], u64::from(weight > 0)));
        Ok(())
    }

    fn finish(self, source: Source, stem: &str, chaining: bool) -> Result<Dataflow, FormatError> {
        let end = |(id, at): (&str, usize)| {
            let missing = || source.error(at, format!("no node has the id `{id}`"));
            self.ids.find(id).map(OpId::new).ok_or_else(missing)
        };
        let dependence = |&([from, to], communication): &([(&str, usize); 2], u64)| {
            let delay = i64::from(!chaining);
            Ok(DataflowDependence { from: end(from)?, to: end(to)?, delay, distance: 0, communication })
        };
        let dependences: Result<Vec<_>, FormatError> = self.edges.iter().map(dependence).collect();
        let dependences = dependences?;
        let memory = vec![DataflowResource { name: "memory".into(), limit: None }];
        Dataflow::new(stem, self.operations, dependences, memory).map_err(|error| source.graph(error))
    }
}

/// A weight.
fn parameter(tokens: &mut Tokens) -> Result<i64, FormatError> {
    let (at, text) = (tokens.at, tokens.name("a number")?);
    tokens.source.number(at, "`parameter`", text, 0, LARGEST)
}

/// The key ahead, if there is one before the end of the list.
fn key<'a>(tokens: &mut Tokens<'a>) -> Result<Option<(&'a str, usize)>, FormatError> {
    let at = tokens.at;
    match tokens.next {
        Token::Mark(']') | Token::End => Ok(None),
        _ => Ok(Some((tokens.name("a key or `]`")?, at))),
    }
}

/// A number, a text or a whole list.
fn skip_value(tokens: &mut Tokens) -> Result<(), FormatError> {
    let (start, mut depth) = (tokens.at, 0_usize);
    loop {
        match tokens.take()? {
            Token::Mark('[') => depth += 1,
            Token::Mark(']') if depth > 0 => depth -= 1,
            Token::Word(_) | Token::Quoted(_) => {}
            Token::Mark(_) | Token::End => return Err(tokens.source.error(start, "expected a value")),
        }
        if depth == 0 {
            return Ok(());
        }
    }
}
