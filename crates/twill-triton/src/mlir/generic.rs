//! Reads the generic form, which is the same for every operation:
//!
//! ```text
//! "name"(operands)[successors] <{properties}> (regions) {attributes} : (operand types) -> result types
//! ```

use super::ast::OperationId;
use super::attributes::Attributes;
use super::error::ParseError;
use super::lexer::Token;
use super::parser::{Parsed, Parser};
use super::regions::{Parts, RegionForm};

impl<'text> Parser<'text> {
    /// An operation after its name.
    pub(super) fn read_generic(&mut self, id: OperationId, first: &Token<'text>) -> Parsed<Parts> {
        let mut parts = Parts::default();
        self.expect('(')?;
        self.comma_separated_until(')', |parser| {
            parts.operands.push(parser.read_value()?);
            Ok(())
        })?;
        if self.accept('[') {
            self.comma_separated_until(']', |parser| {
                parts.successors.push(parser.read_successor()?);
                Ok(())
            })?;
        }
        if self.token.is('<') {
            parts.attributes.extend(self.read_properties()?);
        }
        let isolated = matches!(self.module.operation(id).name.as_str(), "tt.func" | "func.func" | "builtin.module");
        if self.accept('(') {
            self.comma_separated_until(')', |parser| {
                parser.read_region(id, RegionForm { isolated, ..RegionForm::default() })?;
                Ok(())
            })?;
        }
        if self.token.is('{') {
            parts.attributes.extend(self.read_dictionary()?);
        }
        self.expect(':')?;
        let types = self.read_type_list()?;
        self.expect_arrow()?;
        parts.result_types = self.read_one_or_more_types()?;
        if types.len() != parts.operands.len() {
            return Err(ParseError::OperandCount {
                place: self.place(first),
                operation: self.module.operation(id).name.clone(),
                operands: parts.operands.len(),
                types: types.len(),
            });
        }
        for (value, kind) in parts.operands.iter().zip(&types) {
            let defined_as = self.module.type_of(*value);
            if defined_as != kind {
                return Err(ParseError::TypeMismatch {
                    place: self.place(first),
                    value: format!("%{}", self.module.value(*value).name),
                    used_as: kind.to_string(),
                    defined_as: defined_as.to_string(),
                });
            }
        }
        Ok(parts)
    }

    /// `<{a = b}>`.
    pub(super) fn read_properties(&mut self) -> Parsed<Attributes> {
        self.expect('<')?;
        let properties = self.read_dictionary()?;
        self.expect('>')?;
        Ok(properties)
    }
}
