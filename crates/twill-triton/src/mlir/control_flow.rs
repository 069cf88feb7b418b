//! Reads the custom forms of `scf.for`, `scf.if` and `scf.while`.

use super::ast::{OperationId, RegionId, ValueId};
use super::attributes::{Attribute, Attributes};
use super::error::ParseError;
use super::lexer::{Token, TokenKind};
use super::parser::{Parsed, Parser};
use super::regions::{Argument, Parts, RegionForm};
use super::types::Type;

impl<'text> Parser<'text> {
    /// `scf.for %i = %lower to %upper step %step iter_args(%a = %b, …) -> (types) : type { … } {…}`.
    pub(super) fn read_for(&mut self, id: OperationId, first: &Token<'text>) -> Parsed<Parts> {
        let mut parts = Parts::default();
        if self.accept_word("unsigned") {
            parts.attributes.insert("unsignedCmp".to_owned(), Attribute::Unit);
        }
        let induction = self.expect_kind(TokenKind::Value, "the induction variable")?;
        self.expect('=')?;
        parts.operands.push(self.read_value()?);
        self.expect_word("to")?;
        parts.operands.push(self.read_value()?);
        self.expect_word("step")?;
        parts.operands.push(self.read_value()?);
        let mut names = Vec::new();
        if self.accept_word("iter_args") {
            names = self.read_assignments(&mut parts.operands)?;
            self.expect_arrow()?;
            parts.result_types = self.read_one_or_more_types()?;
        }
        let kind = if self.accept(':') { self.read_type()? } else { Type::Index };
        let mut arguments = vec![Argument { token: induction, kind, attributes: Attributes::default() }];
        arguments.extend(self.typed(id, first, names, &parts.result_types)?);
        let region = self.read_region(id, RegionForm { has_entry: true, arguments, isolated: false })?;
        self.add_missing_yield(region, &parts);
        self.read_trailing_attributes(&mut parts)?;
        Ok(parts)
    }

    /// `scf.if %condition -> (types) { … } else { … } {…}`.
    pub(super) fn read_if(&mut self, id: OperationId) -> Parsed<Parts> {
        let mut parts = Parts::default();
        parts.operands.push(self.read_value()?);
        if self.accept_arrow() {
            parts.result_types = self.read_one_or_more_types()?;
        }
        let region = self.read_region(id, RegionForm { has_entry: true, ..RegionForm::default() })?;
        self.add_missing_yield(region, &parts);
        if self.accept_word("else") {
            let region = self.read_region(id, RegionForm { has_entry: true, ..RegionForm::default() })?;
            self.add_missing_yield(region, &parts);
        }
        self.read_trailing_attributes(&mut parts)?;
        Ok(parts)
    }

    /// `scf.while (%a = %b, …) : (types) -> types { … } do { … } attributes {…}`.
    pub(super) fn read_while(&mut self, id: OperationId, first: &Token<'text>) -> Parsed<Parts> {
        let mut parts = Parts::default();
        let mut names = Vec::new();
        if self.token.is('(') {
            names = self.read_assignments(&mut parts.operands)?;
        }
        self.expect(':')?;
        let inputs = self.read_type_list()?;
        self.expect_arrow()?;
        parts.result_types = self.read_one_or_more_types()?;
        let arguments = self.typed(id, first, names, &inputs)?;
        self.read_region(id, RegionForm { has_entry: true, arguments, isolated: false })?;
        self.expect_word("do")?;
        let region = self.read_region(id, RegionForm { has_entry: true, ..RegionForm::default() })?;
        if parts.operands.is_empty() {
            self.add_missing_yield(region, &Parts::default());
        }
        if self.accept_word("attributes") {
            parts.attributes.extend(self.read_dictionary()?);
        }
        Ok(parts)
    }

    /// `(%a = %b, …)`: gives back the names of arguments, and adds the values they begin with.
    fn read_assignments(&mut self, initial: &mut Vec<ValueId>) -> Parsed<Vec<Token<'text>>> {
        let mut names = Vec::new();
        self.expect('(')?;
        self.comma_separated_until(')', |parser| {
            names.push(parser.expect_kind(TokenKind::Value, "a carried value")?);
            parser.expect('=')?;
            initial.push(parser.read_value()?);
            Ok(())
        })?;
        Ok(names)
    }

    /// Arguments from names and types, of which there must be as many.
    fn typed(
        &self,
        id: OperationId,
        first: &Token<'text>,
        names: Vec<Token<'text>>,
        types: &[Type],
    ) -> Parsed<Vec<Argument<'text>>> {
        if names.len() != types.len() {
            return Err(ParseError::Malformed {
                place: self.place(first),
                operation: self.module.operation(id).name.clone(),
                reason: "there are as many types as carried values",
            });
        }
        let argument = |(token, kind): (Token<'text>, &Type)| Argument {
            token,
            kind: kind.clone(),
            attributes: Attributes::default(),
        };
        Ok(names.into_iter().zip(types).map(argument).collect())
    }

    /// A body without results may leave out its `scf.yield`.
    fn add_missing_yield(&mut self, region: RegionId, parts: &Parts) {
        let [block] = self.module.region(region).blocks[..] else { return };
        let is_terminator = |id: OperationId| self.module.operation(id).name == "scf.yield";
        if !parts.result_types.is_empty() || self.module.terminator(block).is_some_and(is_terminator) {
            return;
        }
        let yielding = self.module.add_operation(Some(block), self.token.line, self.token.column);
        self.module.operations[yielding.index()].name = "scf.yield".to_owned();
    }

    fn read_trailing_attributes(&mut self, parts: &mut Parts) -> Parsed<()> {
        if self.token.is('{') {
            parts.attributes.extend(self.read_dictionary()?);
        }
        Ok(())
    }
}
