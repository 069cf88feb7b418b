//! Reads the custom forms of `builtin.module` and of functions.

use super::ast::OperationId;
use super::attributes::{Attribute, Attributes};
use super::lexer::TokenKind;
use super::parser::{Parsed, Parser};
use super::read_attributes::symbol_name;
use super::regions::{Parts, RegionForm};
use super::types::Type;

impl Parser<'_> {
    /// `module @name attributes {…} { … }`.
    pub(super) fn read_module(&mut self, id: OperationId) -> Parsed<Parts> {
        let mut parts = Parts::default();
        if self.token.kind == TokenKind::Symbol {
            let name = symbol_name(self.advance().text);
            parts.attributes.insert("sym_name".to_owned(), Attribute::String(name));
        }
        if self.accept_word("attributes") {
            parts.attributes.extend(self.read_dictionary()?);
        }
        self.read_region(id, RegionForm { has_entry: true, isolated: true, ..RegionForm::default() })?;
        Ok(parts)
    }

    /// `tt.func public @name(%a: type {…}, …) -> (types) attributes {…} { … }`; a declaration has no body.
    pub(super) fn read_function(&mut self, id: OperationId) -> Parsed<Parts> {
        let mut parts = Parts::default();
        if self.token.kind == TokenKind::Word {
            let visibility = self.advance().text.to_owned();
            parts.attributes.insert("sym_visibility".to_owned(), Attribute::String(visibility));
        }
        let name = symbol_name(self.expect_kind(TokenKind::Symbol, "the name of a function")?.text);
        parts.attributes.insert("sym_name".to_owned(), Attribute::String(name));

        let mut arguments = Vec::new();
        let mut inputs = Vec::new();
        let mut input_attributes = Vec::new();
        self.expect('(')?;
        self.comma_separated_until(')', |parser| {
            if parser.token.kind == TokenKind::Value {
                let mut argument = parser.read_argument()?;
                inputs.push(argument.kind.clone());
                input_attributes.push(std::mem::take(&mut argument.attributes));
                arguments.push(argument);
            } else {
                let (kind, attributes) = parser.read_type_with_attributes()?;
                inputs.push(kind);
                input_attributes.push(attributes);
            }
            Ok(())
        })?;

        let mut results = Vec::new();
        let mut result_attributes = Vec::new();
        if self.accept_arrow() {
            if self.accept('(') {
                self.comma_separated_until(')', |parser| {
                    let (kind, attributes) = parser.read_type_with_attributes()?;
                    results.push(kind);
                    result_attributes.push(attributes);
                    Ok(())
                })?;
            } else {
                results.push(self.read_type()?);
            }
        }
        let kind = Attribute::Type(Type::Function { inputs, results });
        parts.attributes.insert("function_type".to_owned(), kind);
        let list =
            |attributes: Vec<Attributes>| Attribute::Array(attributes.into_iter().map(Attribute::Dictionary).collect());
        parts.attributes.insert("arg_attrs".to_owned(), list(input_attributes));
        parts.attributes.insert("res_attrs".to_owned(), list(result_attributes));
        if self.accept_word("attributes") {
            parts.attributes.extend(self.read_dictionary()?);
        }
        if self.token.is('{') {
            self.read_region(id, RegionForm { has_entry: true, arguments, isolated: true })?;
        } else {
            self.module.add_region(id);
        }
        Ok(parts)
    }

    fn read_type_with_attributes(&mut self) -> Parsed<(Type, Attributes)> {
        let kind = self.read_type()?;
        let attributes = if self.token.is('{') { self.read_dictionary()? } else { Attributes::default() };
        self.accept_location()?;
        Ok((kind, attributes))
    }
}
