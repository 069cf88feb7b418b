//! Instances of static scheduling problems in the textual form of CIRCT's `ssp` dialect.
//!
//! `ssp.instance @name of "…" { library { … } resource { … } graph { … } }`. Read: `operator_type` with `latency` and
//! `limit`, `resource_type` with `limit` and `ii` (steps for which an operation holds it, 1 when left out), `operation`
//! with its operands, symbols with `dist`, and `uses`. An operator type with a limit is a resource by itself. Other
//! properties, such as known start times, play no part. A value takes 1 of storage, a dependence 1 of communication a step.
//! The dialect: <https://circt.llvm.org/docs/Dialects/SSP/>.

use super::super::FormatError;
use super::Names;
use super::text::{Lexicon, Source, Token, Tokens};
use crate::names::legible;
use crate::{Dataflow, DataflowDependence, DataflowOperation, DataflowResource, OpId, ResourceUse, UnitId};
use std::collections::HashMap;

const LEXICON: Lexicon = Lexicon { word: |c| matches!(c, '.' | '$' | '@' | '%' | '-'), slashes: true, hashes: false };

/// A word and where it stands.
type Word<'a> = (&'a str, usize);

pub(super) fn read(source: Source) -> Result<Dataflow, FormatError> {
    let mut tokens = Tokens::new(source, LEXICON)?;
    tokens.word("ssp.instance")?;
    let named = matches!(tokens.next, Token::Word(word) if word.starts_with('@'));
    let name = if named { tokens.name("a name")? } else { "@instance" };
    tokens.word("of")?;
    tokens.name("the problem's name")?;
    properties(&mut tokens)?;
    tokens.expect('{')?;
    let mut instance = Instance::default();
    while !tokens.skip('}')? {
        let at = tokens.at;
        let part = tokens.name("library, resource, graph or `}`")?;
        if tokens.next != Token::Mark('{') {
            tokens.name("`{`")?;
        }
        tokens.expect('{')?;
        while !tokens.skip('}')? {
            match part {
                "library" => instance.operator(&mut tokens)?,
                "resource" => instance.resource(&mut tokens)?,
                "graph" => instance.operation(&mut tokens)?,
                _ => return Err(source.error(at, format!("expected library, resource or graph, found `{part}`"))),
            }
        }
    }
    if tokens.next != Token::End {
        return Err(tokens.unexpected("the end of the file; a file holds one instance"));
    }
    instance.finish(source, name.trim_start_matches('@'))
}

#[derive(Default)]
struct Instance<'a> {
    /// Latency, and the resource it is itself.
    operators: HashMap<&'a str, (u32, Option<UnitId>)>,
    /// With the steps for which it is held.
    resources_by_name: HashMap<&'a str, (UnitId, u32)>,
    resources: Vec<DataflowResource>,
    symbols: HashMap<&'a str, usize>,
    values: Names<'a>,
    /// Operation that defines each of `values`.
    defined_by: Vec<usize>,
    operations: Vec<DataflowOperation>,
    /// The reads of values, with distances.
    reads: Vec<(Word<'a>, usize, u32)>,
}

impl<'a> Instance<'a> {
    fn operator(&mut self, tokens: &mut Tokens<'a>) -> Result<(), FormatError> {
        tokens.word("operator_type")?;
        let at = tokens.at;
        let name = tokens.name("a symbol")?;
        let mut latency = None;
        let mut limit = None;
        for (key, value, at) in properties(tokens)? {
            match key {
                "latency" => latency = Some(tokens.source.number(at, "`latency`", value, 0, u32::MAX.into())? as u32),
                "limit" => {
                    limit = Some(tokens.source.number(at, "`limit`", value, 0, Dataflow::LARGEST)?.unsigned_abs())
                }
                _ => {}
            }
        }
        let Some(latency) = latency else {
            return Err(tokens.source.error(at, format!("`{name}` has no latency; write [latency<1>]")));
        };
        // A limit of 0 is CIRCT's way to say that there is none.
        let unit = limit.filter(|&limit| limit > 0).map(|limit| self.unit(name, Some(limit)));
        match self.operators.insert(name, (latency, unit)) {
            None => Ok(()),
            Some(_) => Err(tokens.source.error(at, format!("a second operator type `{name}`"))),
        }
    }

    fn unit(&mut self, name: &str, limit: Option<u64>) -> UnitId {
        self.resources.push(DataflowResource { name: legible(name.trim_start_matches('@')), limit });
        UnitId::new(self.resources.len() - 1)
    }

    fn resource(&mut self, tokens: &mut Tokens<'a>) -> Result<(), FormatError> {
        tokens.word("resource_type")?;
        let at = tokens.at;
        let name = tokens.name("a symbol")?;
        let (mut limit, mut held) = (None, 1);
        for (key, value, at) in properties(tokens)? {
            match key {
                "limit" => {
                    limit = Some(tokens.source.number(at, "`limit`", value, 0, Dataflow::LARGEST)?.unsigned_abs())
                }
                "ii" => held = tokens.source.number(at, "`ii`", value, 1, u32::MAX.into())? as u32,
                _ => {}
            }
        }
        let unit = self.unit(name, limit.filter(|&limit| limit > 0));
        match self.resources_by_name.insert(name, (unit, held)) {
            None => Ok(()),
            Some(_) => Err(tokens.source.error(at, format!("a second resource type `{name}`"))),
        }
    }

    /// `%a, %b = operation<@type> @symbol(%c, @d [dist<1>]) uses[@r] [t<0>]`
    fn operation(&mut self, tokens: &mut Tokens<'a>) -> Result<(), FormatError> {
        let index = self.operations.len();
        let mut first = None;
        while let Token::Word(value) = tokens.next
            && value.starts_with('%')
        {
            let at = tokens.at;
            tokens.take()?;
            self.values.declare(&tokens.source, "value", value, at)?;
            self.defined_by.push(index);
            first = first.or(Some(value));
            // `%a:3` are %a#0, %a#1, %a#2.
            if tokens.skip(':')? {
                tokens.name("a number of values")?;
            }
            if !tokens.skip(',')? {
                break;
            }
        }
        if first.is_some() {
            tokens.expect('=')?;
        }
        tokens.word("operation")?;
        tokens.expect('<')?;
        let at = tokens.at;
        let kind = tokens.name("an operator type")?;
        tokens.expect('>')?;
        let Some(&(latency, unit)) = self.operators.get(kind) else {
            return Err(tokens.source.error(at, format!("the operator type `{kind}` is not in the library above")));
        };
        let at = tokens.at;
        let mut name = first.map_or_else(|| format!("operation {index}"), str::to_owned);
        if let Token::Word(symbol) = tokens.next {
            tokens.take()?;
            symbol.trim_start_matches('@').clone_into(&mut name);
            if self.symbols.insert(symbol, index).is_some() {
                return Err(tokens.source.error(at, format!("a second operation `{symbol}`")));
            }
        }
        self.operands(tokens, index)?;
        let mut uses: Vec<ResourceUse> = unit.map(|unit| taken(unit, 1)).into_iter().collect();
        if tokens.next == Token::Word("uses") {
            tokens.take()?;
            tokens.expect('[')?;
            while !tokens.skip(']')? {
                let at = tokens.at;
                let name = tokens.name("a resource type or `]`")?;
                let missing = || tokens.source.error(at, format!("the resource type `{name}` is not declared above"));
                let &(unit, held) = self.resources_by_name.get(name).ok_or_else(missing)?;
                uses.push(taken(unit, held));
                tokens.skip(',')?;
            }
        }
        properties(tokens)?;
        self.operations.push(DataflowOperation { name: legible(&name), latency, uses, storage: 1 });
        Ok(())
    }

    fn operands(&mut self, tokens: &mut Tokens<'a>, reader: usize) -> Result<(), FormatError> {
        tokens.expect('(')?;
        while !tokens.skip(')')? {
            let read = (tokens.at, tokens.name("an operand or `)`")?);
            if tokens.skip('#')? {
                tokens.name("the number of a result")?;
            }
            let mut distance = 0;
            for (key, value, at) in properties(tokens)? {
                if key == "dist" {
                    distance = tokens.source.number(at, "`dist`", value, 0, u32::MAX.into())? as u32;
                }
            }
            self.reads.push(((read.1, read.0), reader, distance));
            tokens.skip(',')?;
        }
        Ok(())
    }

    fn finish(self, source: Source, name: &str) -> Result<Dataflow, FormatError> {
        let dependence = |&((read, at), reader, distance): &(Word, usize, u32)| {
            let value = || self.values.find(read).map(|value| self.defined_by[value]);
            let from = self.symbols.get(read).copied().or_else(value);
            let from = from.ok_or_else(|| source.error(at, format!("nothing is called `{read}`")))?;
            let delay = i64::from(self.operations[from].latency);
            let (from, to) = (OpId::new(from), OpId::new(reader));
            Ok(DataflowDependence { from, to, delay, distance, communication: 1 })
        };
        let dependences: Result<Vec<_>, FormatError> = self.reads.iter().map(dependence).collect();
        let dependences = dependences?;
        Dataflow::new(legible(name), self.operations, dependences, self.resources).map_err(|error| source.graph(error))
    }
}

fn taken(resource: UnitId, steps: u32) -> ResourceUse {
    ResourceUse { resource, offset: 0, steps, amount: 1 }
}

/// `[key<value>, …]`, if it is there: keys, values as they stand (the first word), and their places.
fn properties<'a>(tokens: &mut Tokens<'a>) -> Result<Vec<(&'a str, &'a str, usize)>, FormatError> {
    let mut list = Vec::new();
    if !tokens.skip('[')? {
        return Ok(list);
    }
    while !tokens.skip(']')? {
        let key = tokens.name("a property or `]`")?;
        tokens.expect('<')?;
        let at = tokens.at;
        list.push((key, tokens.name("a value")?, at));
        while !tokens.skip('>')? {
            if tokens.take()? == Token::End {
                return Err(tokens.unexpected("`>`"));
            }
        }
        tokens.skip(',')?;
    }
    Ok(list)
}
