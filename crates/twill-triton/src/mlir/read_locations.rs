//! Reads `loc(…)`, and resolves it when all aliases are known: Triton prints most of them after the module.

use std::collections::HashMap;
use std::sync::Arc;

use super::error::{FileLineColumn, ParseError};
use super::lexer::TokenKind;
use super::location::{FilePosition, SourceLocation};
use super::parser::{NESTING_LIMIT, Parsed, Parser};

/// A location as it is written.
#[derive(Debug)]
pub(super) enum PendingLocation<'text> {
    /// `unknown`, or a kind of location that says nothing about files.
    Unknown,
    /// `"file":12:3`.
    File(FilePosition),
    /// `"name"(location)`.
    Named(String, Option<Box<PendingLocation<'text>>>),
    /// `callsite(callee at caller)`.
    CallSite(Box<PendingLocation<'text>>, Box<PendingLocation<'text>>),
    /// `fused[…]`.
    Fused(Vec<PendingLocation<'text>>),
    /// `#loc7`.
    Alias(&'text str, FileLineColumn),
}

/// The definition of a location alias.
#[derive(Debug)]
pub(super) struct Alias<'text> {
    pub(super) location: PendingLocation<'text>,
    pub(super) place: FileLineColumn,
}

impl<'text> Parser<'text> {
    /// Reads a trailing `loc(…)` if there is one.
    pub(super) fn accept_location(&mut self) -> Parsed<Option<PendingLocation<'text>>> {
        if !self.token.is_word("loc") || !self.peek().is('(') {
            return Ok(None);
        }
        self.read_location_attribute().map(Some)
    }

    /// `loc(…)`.
    pub(super) fn read_location_attribute(&mut self) -> Parsed<PendingLocation<'text>> {
        self.begin("a location", self.token.line)?;
        self.expect_word("loc")?;
        self.expect('(')?;
        let location = self.read_location()?;
        self.expect(')')?;
        self.end();
        Ok(location)
    }

    fn read_location(&mut self) -> Parsed<PendingLocation<'text>> {
        self.begin("a location", self.token.line)?;
        let location = match self.token.kind {
            TokenKind::Hash => {
                let place = self.here();
                PendingLocation::Alias(self.advance().text, place)
            }
            TokenKind::String => self.read_file_or_name()?,
            TokenKind::Word => match self.token.text {
                "callsite" => self.read_call_site()?,
                "fused" => self.read_fused()?,
                "loc" => self.read_location_attribute()?,
                _ => {
                    self.advance();
                    if self.accept('<') {
                        self.skip_past_closing('<', "a location")?;
                    }
                    PendingLocation::Unknown
                }
            },
            _ => return Err(self.unexpected("a location")),
        };
        self.end();
        Ok(location)
    }

    /// `"file":12:3`, `"file":12:3 to 13:4`, `"name"` or `"name"(location)`.
    fn read_file_or_name(&mut self) -> Parsed<PendingLocation<'text>> {
        let text = self.read_name_in_quotes()?;
        if self.accept('(') {
            let inner = self.read_location()?;
            self.expect(')')?;
            return Ok(PendingLocation::Named(text, Some(Box::new(inner))));
        }
        if !self.accept(':') {
            return Ok(PendingLocation::Named(text, None));
        }
        let line = self.read_integer()?;
        let column = if self.accept(':') { self.read_integer()? } else { 0 };
        if self.accept_word("to") {
            if !self.token.is(':') {
                self.read_integer::<u32>()?;
            }
            self.expect(':')?;
            self.read_integer::<u32>()?;
        }
        Ok(PendingLocation::File(FilePosition { file: text, line, column }))
    }

    fn read_call_site(&mut self) -> Parsed<PendingLocation<'text>> {
        self.advance();
        self.expect('(')?;
        let callee = self.read_location()?;
        self.expect_word("at")?;
        let caller = self.read_location()?;
        self.expect(')')?;
        Ok(PendingLocation::CallSite(Box::new(callee), Box::new(caller)))
    }

    fn read_fused(&mut self) -> Parsed<PendingLocation<'text>> {
        self.advance();
        if self.accept('<') {
            self.skip_past_closing('<', "a location")?;
        }
        self.expect('[')?;
        let mut parts = Vec::new();
        self.comma_separated_until(']', |parser| {
            parts.push(parser.read_location()?);
            Ok(())
        })?;
        Ok(PendingLocation::Fused(parts))
    }

    /// Gives every operation its location.
    pub(super) fn resolve_locations(&mut self) -> Parsed<()> {
        let mut resolver = Resolver { aliases: &self.aliases, known: HashMap::new() };
        for (operation, pending) in &self.pending_locations {
            let location = resolver.resolve(pending, 0)?;
            self.module.operations[operation.index()].location = location;
        }
        Ok(())
    }
}

/// An alias that is being resolved, or has been.
enum Known {
    InProgress,
    Done(Option<Arc<SourceLocation>>),
}

/// Turns locations as written into positions; every alias once.
struct Resolver<'parser, 'text> {
    aliases: &'parser HashMap<&'text str, Alias<'text>>,
    known: HashMap<&'text str, Known>,
}

impl<'text> Resolver<'_, 'text> {
    fn resolve(&mut self, pending: &PendingLocation<'text>, depth: usize) -> Parsed<Option<Arc<SourceLocation>>> {
        match pending {
            PendingLocation::Unknown => Ok(None),
            PendingLocation::File(position) => {
                let location = SourceLocation { position: position.clone(), name: None, called_from: Vec::new() };
                Ok(Some(Arc::new(location)))
            }
            PendingLocation::Named(_, None) => Ok(None),
            PendingLocation::Named(name, Some(inner)) => {
                let inner = self.resolve(inner, depth)?;
                Ok(inner.map(|inner| Arc::new(SourceLocation { name: Some(name.clone()), ..(*inner).clone() })))
            }
            PendingLocation::CallSite(callee, caller) => {
                let callee = self.resolve(callee, depth)?;
                let caller = self.resolve(caller, depth)?;
                Ok(match (callee, caller) {
                    (Some(callee), Some(caller)) => Some(Arc::new(called(&callee, &caller))),
                    (callee, caller) => callee.or(caller),
                })
            }
            PendingLocation::Fused(parts) => {
                for part in parts {
                    let location = self.resolve(part, depth)?;
                    if location.is_some() {
                        return Ok(location);
                    }
                }
                Ok(None)
            }
            PendingLocation::Alias(name, place) => self.resolve_alias(name, place, depth + 1),
        }
    }

    fn resolve_alias(
        &mut self,
        name: &'text str,
        place: &FileLineColumn,
        depth: usize,
    ) -> Parsed<Option<Arc<SourceLocation>>> {
        match self.known.get(name) {
            Some(Known::Done(location)) => return Ok(location.clone()),
            Some(Known::InProgress) => {
                return Err(ParseError::CyclicLocation { place: place.clone(), alias: name.to_owned() });
            }
            None => {}
        }
        let aliases = self.aliases;
        let Some(alias) = aliases.get(name) else {
            return Err(ParseError::UndefinedLocation { place: place.clone(), alias: name.to_owned() });
        };
        if depth > NESTING_LIMIT {
            return Err(ParseError::NestingTooDeep { place: alias.place.clone(), limit: NESTING_LIMIT });
        }
        self.known.insert(name, Known::InProgress);
        let location = self.resolve(&alias.location, depth)?;
        self.known.insert(name, Known::Done(location.clone()));
        Ok(location)
    }
}

/// The location of something in `callee` that was inlined at `caller`.
fn called(callee: &SourceLocation, caller: &SourceLocation) -> SourceLocation {
    let mut called_from = callee.called_from.clone();
    called_from.push(caller.position.clone());
    called_from.extend(caller.called_from.iter().cloned());
    if called_from.len() > SourceLocation::LONGEST_CALL_CHAIN {
        // The outermost call is in the kernel itself; of the others the inner ones say more.
        let outermost = called_from.pop();
        called_from.truncate(SourceLocation::LONGEST_CALL_CHAIN - 1);
        called_from.extend(outermost);
    }
    SourceLocation {
        position: callee.position.clone(),
        name: callee.name.clone().or_else(|| caller.name.clone()),
        called_from,
    }
}
