//! Reads the custom forms of `cf.br` and `cf.cond_br`.

use super::ast::OperationId;
use super::attributes::Attribute;
use super::error::ParseError;
use super::lexer::TokenKind;
use super::parser::{Parsed, Parser};
use super::regions::Parts;

impl Parser<'_> {
    /// `cf.br ^a(%x : type)` or `cf.cond_br %condition, ^a(%x : type), ^b`.
    pub(super) fn read_branch(&mut self, id: OperationId) -> Parsed<Parts> {
        let mut parts = Parts::default();
        let is_conditional = self.module.operation(id).name == "cf.cond_br";
        let mut segments = vec![];
        if is_conditional {
            parts.operands.push(self.read_value()?);
            segments.push(1);
            if self.accept_word("weights") {
                self.expect('(')?;
                self.skip_past_closing('(', "`cf.cond_br`")?;
            }
            self.expect(',')?;
        }
        segments.push(self.read_successor_with_values(&mut parts)?);
        if is_conditional {
            self.expect(',')?;
            segments.push(self.read_successor_with_values(&mut parts)?);
            parts.attributes.insert("operandSegmentSizes".to_owned(), Attribute::Integers(segments));
        }
        if self.token.is('{') {
            parts.attributes.extend(self.read_dictionary()?);
        }
        Ok(parts)
    }

    /// `^name(%a, %b : types)`; gives back the number of values.
    fn read_successor_with_values(&mut self, parts: &mut Parts) -> Parsed<i64> {
        let name = self.token;
        parts.successors.push(self.read_successor()?);
        let mut count = 0;
        if !self.accept('(') {
            return Ok(count);
        }
        while self.token.kind == TokenKind::Value {
            parts.operands.push(self.read_value()?);
            count += 1;
            self.accept(',');
        }
        if count > 0 {
            self.expect(':')?;
        }
        let mut types = 0;
        self.comma_separated_until(')', |parser| {
            parser.read_type()?;
            types += 1;
            Ok(())
        })?;
        if types != count {
            return Err(ParseError::Malformed {
                place: self.place(&name),
                operation: "a branch".to_owned(),
                reason: "there are as many types as values",
            });
        }
        Ok(count)
    }
}
