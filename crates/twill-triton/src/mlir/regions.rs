//! Reads what all operations have in common: the top of the file, regions, blocks, and the frame of an operation.

use std::collections::HashMap;

use super::ast::{BlockId, OperationId, RegionId, ValueId};
use super::attributes::Attributes;
use super::error::ParseError;
use super::lexer::{LONGEST, Token, TokenKind, unescape};
use super::parser::{Parsed, Parser};
use super::read_locations::Alias;
use super::scope::{Label, Labels};
use super::types::Type;

/// The parts of an operation, but for its regions, which are added as they are read.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) operands: Vec<ValueId>,
    pub(super) attributes: Attributes,
    pub(super) successors: Vec<BlockId>,
    pub(super) result_types: Vec<Type>,
}

/// A name on the left of an operation, and how many results it names.
#[derive(Debug)]
struct ResultName<'text> {
    token: Token<'text>,
    count: usize,
}

/// An argument of a block, as it is written.
#[derive(Debug)]
pub(super) struct Argument<'text> {
    pub(super) token: Token<'text>,
    pub(super) kind: Type,
    pub(super) attributes: Attributes,
}

/// How a region is read.
#[derive(Debug, Default)]
pub(super) struct RegionForm<'text> {
    /// True if there is an entry block whatever is written; a label may be missing.
    pub(super) has_entry: bool,
    /// Arguments of the entry block that stand before the region.
    pub(super) arguments: Vec<Argument<'text>>,
    /// True if values from outside are hidden.
    pub(super) isolated: bool,
}

impl<'text> Parser<'text> {
    /// The whole text: aliases, and a module or operations without one.
    pub(super) fn read_top(&mut self) -> Parsed<()> {
        let mut operations = 0;
        let mut implicit_body = None;
        self.scopes.enter(true);
        loop {
            match self.token.kind {
                TokenKind::End => break,
                TokenKind::Hash | TokenKind::Exclamation => self.read_alias()?,
                // `{-# … #-}` holds resources that no kernel needs.
                TokenKind::Punctuation('{') => {
                    self.advance();
                    self.skip_past_closing('{', "file metadata")?;
                }
                _ => {
                    let is_module = self.token.is_word("module")
                        || self.token.is_word("builtin.module")
                        || self.token.text == "\"builtin.module\"";
                    if operations == 0 && !is_module {
                        let top = self.module.add_operation(None, 1, 1);
                        self.module.operations[top.index()].name = "builtin.module".to_owned();
                        let region = self.module.add_region(top);
                        let block = self.module.add_block(region);
                        self.module.regions[region.index()].blocks.push(block);
                        implicit_body = Some(block);
                    }
                    if operations > 0 && implicit_body.is_none() {
                        return Err(self.unexpected("the end of the text after the module"));
                    }
                    self.read_operation(implicit_body)?;
                    operations += 1;
                }
            }
        }
        if operations == 0 {
            return Err(self.unexpected("a module"));
        }
        self.scopes.leave();
        Ok(())
    }

    /// `#loc1 = loc(…)`, `#blocked = #ttg.blocked<…>`, `!name = type`.
    fn read_alias(&mut self) -> Parsed<()> {
        self.begin("the definition of an alias", self.token.line)?;
        let name = self.advance();
        let place = self.place(&name);
        self.expect('=')?;
        let duplicate = if self.token.is_word("loc") && self.peek().is('(') {
            let location = self.read_location_attribute()?;
            let alias = Alias { location, place: place.clone() };
            self.aliases.insert(name.text, alias).is_some()
        } else {
            let start = self.token.offset;
            if name.kind == TokenKind::Exclamation {
                self.read_type()?;
            } else {
                self.read_attribute()?;
            }
            let text = self.text_since(start);
            self.module.attribute_aliases.insert(name.text.to_owned(), text).is_some()
        };
        if duplicate {
            return Err(ParseError::DuplicateName { place, name: name.text.to_owned() });
        }
        self.end();
        Ok(())
    }

    /// An operation with its results and its location.
    pub(super) fn read_operation(&mut self, block: Option<BlockId>) -> Parsed<OperationId> {
        let first = self.token;
        let names = self.read_result_names()?;
        let id = self.module.add_operation(block, first.line, first.column);
        let (name, is_generic) = match self.token.kind {
            TokenKind::String if self.token.text.len() > LONGEST => return Err(self.too_long()),
            TokenKind::String => (unescape(self.token.text), true),
            TokenKind::Word if self.token.text == "module" => ("builtin.module".to_owned(), false),
            TokenKind::Word if self.token.text.contains('.') => (self.token.text.to_owned(), false),
            _ => return Err(self.unexpected("an operation")),
        };
        self.begin(&format!("`{name}`"), first.line)?;
        self.advance();
        // As Triton writes them since 3.7 and 3.9: a barrier of all threads, a quotient that may be rounded less well.
        self.module.operations[id.index()].name = match name.as_str() {
            "ttg.barrier" => "gpu.barrier".into(),
            "tt.approx_divf" => "arith.divf".into(),
            _ => name.clone(),
        };
        let parts = if is_generic {
            self.read_generic(id, &first)?
        } else {
            let named = names.iter().fold(0_usize, |sum, name| sum.saturating_add(name.count));
            self.read_custom(id, &name, named, &first)?
        };
        let location = self.accept_location()?;
        self.end();
        self.finish_operation(id, parts, &names, &first)?;
        if let Some(location) = location {
            self.pending_locations.push((id, location));
        }
        Ok(id)
    }

    /// `%a, %b:2 =`.
    fn read_result_names(&mut self) -> Parsed<Vec<ResultName<'text>>> {
        let mut names = Vec::new();
        if self.token.kind != TokenKind::Value {
            return Ok(names);
        }
        self.begin("the results of an operation", self.token.line)?;
        loop {
            let token = self.expect_kind(TokenKind::Value, "the name of a result")?;
            let count = if self.accept(':') { self.read_integer()? } else { 1 };
            names.push(ResultName { token, count });
            if !self.accept(',') {
                break;
            }
        }
        self.expect('=')?;
        self.end();
        Ok(names)
    }

    fn finish_operation(
        &mut self,
        id: OperationId,
        parts: Parts,
        names: &[ResultName<'text>],
        first: &Token<'text>,
    ) -> Parsed<()> {
        let named = names.iter().fold(0_usize, |sum, name| sum.saturating_add(name.count));
        if !names.is_empty() && named != parts.result_types.len() {
            return Err(ParseError::ResultCount {
                place: self.place(first),
                operation: self.module.operation(id).name.clone(),
                has: parts.result_types.len(),
                named,
            });
        }
        let mut types = parts.result_types.into_iter();
        for name in names {
            let text = name.token.text.trim_start_matches('%');
            let mut values = Vec::with_capacity(name.count);
            for (number, kind) in types.by_ref().take(name.count).enumerate() {
                let value = match name.count {
                    1 => self.module.add_result(id, kind, text),
                    _ => self.module.add_result(id, kind, &format!("{text}#{number}")),
                };
                values.push(value);
            }
            self.define(&name.token, values)?;
        }
        for kind in types {
            self.module.add_result(id, kind, "");
        }
        self.module.set_operands(id, parts.operands);
        let operation = &mut self.module.operations[id.index()];
        operation.attributes = parts.attributes;
        operation.successors = parts.successors;
        self.complete(id, first)
    }

    /// Names values.
    fn define(&mut self, name: &Token<'text>, values: Vec<ValueId>) -> Parsed<()> {
        self.scopes.define(name.text, values, name.line).map_err(|line| ParseError::DuplicateValue {
            place: self.place(name),
            name: name.text.to_owned(),
            first: line,
        })
    }

    /// The use of a value.
    pub(super) fn read_value(&mut self) -> Parsed<ValueId> {
        let token = self.expect_kind(TokenKind::Value, "a value")?;
        self.scopes
            .value(token.text)
            .ok_or_else(|| ParseError::UndefinedValue { place: self.place(&token), name: token.text.to_owned() })
    }

    /// `%name: type {attributes} loc(…)`.
    pub(super) fn read_argument(&mut self) -> Parsed<Argument<'text>> {
        let token = self.expect_kind(TokenKind::Value, "an argument")?;
        self.expect(':')?;
        let kind = self.read_type()?;
        let attributes = if self.token.is('{') { self.read_dictionary()? } else { Attributes::default() };
        self.accept_location()?;
        Ok(Argument { token, kind, attributes })
    }

    /// `{ … }` as a region of the operation.
    pub(super) fn read_region(&mut self, operation: OperationId, form: RegionForm<'text>) -> Parsed<RegionId> {
        let what = format!("the body of `{}`", self.module.operation(operation).name);
        self.begin(&what, self.token.line)?;
        let region = self.module.add_region(operation);
        self.scopes.enter(form.isolated);
        self.labels.push(Labels { region, names: HashMap::new() });
        self.expect('{')?;
        let at_operation = self.token.kind != TokenKind::Block && !self.token.is('}');
        let labelled_entry = form.has_entry && form.arguments.is_empty() && self.token.kind == TokenKind::Block;
        if at_operation || (form.has_entry && !labelled_entry) {
            let block = self.module.add_block(region);
            self.fill_block(region, block, form.arguments)?;
        }
        while self.token.kind == TokenKind::Block {
            self.read_labelled_block(region)?;
        }
        if !self.accept('}') {
            return Err(self.unexpected("an operation, a block, or the `}` that ends the region"));
        }
        self.end();
        self.scopes.leave();
        let labels = self.labels.pop().map(|labels| labels.names).unwrap_or_default();
        let undefined = labels.into_iter().filter(|(_, label)| !label.defined);
        if let Some((name, label)) = undefined.min_by_key(|(_, label)| (label.place.line, label.place.column)) {
            return Err(ParseError::UndefinedBlock { place: label.place, name: name.to_owned() });
        }
        Ok(region)
    }

    /// `^name(%a: type, …):` and the operations after it.
    fn read_labelled_block(&mut self, region: RegionId) -> Parsed<()> {
        let name = self.token;
        let block = self.read_successor()?;
        let duplicate = self.label(&name).is_some_and(|label| std::mem::replace(&mut label.defined, true));
        if duplicate {
            return Err(ParseError::DuplicateBlock { place: self.place(&name), name: name.text.to_owned() });
        }
        let mut arguments = Vec::new();
        if self.accept('(') {
            self.comma_separated_until(')', |parser| {
                arguments.push(parser.read_argument()?);
                Ok(())
            })?;
        }
        self.expect(':')?;
        self.fill_block(region, block, arguments)
    }

    fn fill_block(&mut self, region: RegionId, block: BlockId, arguments: Vec<Argument<'text>>) -> Parsed<()> {
        self.module.regions[region.index()].blocks.push(block);
        for argument in arguments {
            let name = argument.token.text.trim_start_matches('%');
            let value = self.module.add_argument(block, argument.kind, name);
            self.define(&argument.token, vec![value])?;
        }
        while matches!(self.token.kind, TokenKind::Value | TokenKind::Word | TokenKind::String) {
            self.read_operation(Some(block))?;
        }
        Ok(())
    }

    /// The use of a block's label.
    pub(super) fn read_successor(&mut self) -> Parsed<BlockId> {
        let name = self.token;
        let block = match name.kind {
            TokenKind::Block => self.label(&name).map(|label| label.block),
            _ => None,
        };
        let block = block.ok_or_else(|| self.unexpected("a block of this region"))?;
        self.advance();
        Ok(block)
    }

    /// The block that a label in the innermost region names, from now on if not before; `None` outside of regions.
    fn label(&mut self, name: &Token<'text>) -> Option<&mut Label> {
        let place = self.place(name);
        let module = &mut self.module;
        let labels = self.labels.last_mut()?;
        let region = labels.region;
        let new = || Label { block: module.add_block(region), defined: false, place };
        Some(labels.names.entry(name.text).or_insert_with(new))
    }
}
