//! Reads attributes.

use super::attributes::{Attribute, Attributes};
use super::error::ParseError;
use super::lexer::{TokenKind, unescape};
use super::parser::{Parsed, Parser};
use super::read_types::is_type_word;
use super::types::Type;

/// The dialect attributes that are enumerations, written `#arith.fastmath<contract>`.
const ENUMERATIONS: [&str; 2] = ["#arith.fastmath", "#arith.overflow"];

/// The name that a symbol or quoted key stands for.
pub(super) fn symbol_name(text: &str) -> String {
    let text = text.strip_prefix('@').unwrap_or(text);
    if text.starts_with('"') { unescape(text) } else { text.to_owned() }
}

impl Parser<'_> {
    /// An attribute with its type, if it has one.
    pub(super) fn read_attribute(&mut self) -> Parsed<Attribute> {
        self.begin("an attribute", self.token.line)?;
        let attribute = self.read_attribute_inner()?;
        self.end();
        Ok(attribute)
    }

    fn read_attribute_inner(&mut self) -> Parsed<Attribute> {
        match self.token.kind {
            _ if self.at_number() => {
                let literal = self.read_literal()?;
                let kind = if self.accept(':') { self.read_type()? } else { literal.default_type() };
                literal.of_type(&kind)
            }
            TokenKind::String => {
                let text = unescape(self.advance().text);
                if self.accept(':') {
                    self.read_type()?;
                }
                Ok(Attribute::String(text))
            }
            TokenKind::Symbol => {
                let mut name = symbol_name(self.advance().text);
                while self.token.kind == TokenKind::DoubleColon {
                    self.advance();
                    let nested = self.expect_kind(TokenKind::Symbol, "a symbol")?;
                    name = format!("{name}::{}", symbol_name(nested.text));
                }
                Ok(Attribute::Symbol(name))
            }
            TokenKind::Punctuation('[') => {
                self.advance();
                let mut items = Vec::new();
                self.comma_separated_until(']', |parser| {
                    items.push(parser.read_attribute()?);
                    Ok(())
                })?;
                Ok(Attribute::Array(items))
            }
            TokenKind::Punctuation('{') => Ok(Attribute::Dictionary(self.read_dictionary()?)),
            TokenKind::Hash => self.read_hash_attribute(),
            TokenKind::Exclamation | TokenKind::Punctuation('(') => Ok(Attribute::Type(self.read_type()?)),
            TokenKind::Word => self.read_word_attribute(),
            _ => Err(self.unexpected("an attribute")),
        }
    }

    fn read_word_attribute(&mut self) -> Parsed<Attribute> {
        let word = self.token.text;
        let has_parameters = self.peek().is('<');
        match word {
            "true" | "false" => {
                self.advance();
                Ok(Attribute::Bool(word == "true"))
            }
            "unit" => {
                self.advance();
                Ok(Attribute::Unit)
            }
            "dense" if has_parameters => self.read_dense(),
            "array" if has_parameters => self.read_array(),
            _ if is_type_word(word) => Ok(Attribute::Type(self.read_type()?)),
            _ if has_parameters || self.peek().is('(') => {
                let start = self.token.offset;
                self.advance();
                let opening = if has_parameters { '<' } else { '(' };
                self.advance();
                self.skip_past_closing(opening, "an attribute")?;
                Ok(Attribute::Other(self.text_since(start)))
            }
            _ => {
                self.advance();
                Ok(Attribute::Enumeration(word.to_owned()))
            }
        }
    }

    /// `#arith.fastmath<contract>`, `#ttg.blocked<{…}>`, or an alias.
    fn read_hash_attribute(&mut self) -> Parsed<Attribute> {
        let token = self.advance();
        if !self.accept('<') {
            return Ok(Attribute::Other(token.text.to_owned()));
        }
        if ENUMERATIONS.contains(&token.text) {
            return Ok(Attribute::Enumeration(self.read_cases()?));
        }
        self.skip_past_closing('<', "an attribute")?;
        Ok(Attribute::Other(self.text_since(token.offset)))
    }

    /// The cases of an enumeration, behind its `<`, as they are written: `nsw, nuw>`.
    pub(super) fn read_cases(&mut self) -> Parsed<String> {
        let start = self.token.offset;
        loop {
            self.expect_kind(TokenKind::Word, "a case of the enumeration")?;
            let text = self.text_since(start);
            if self.accept('>') {
                return Ok(text);
            }
            self.expect(',')?;
        }
    }

    /// `dense<0.0> : tensor<8xf32>`; other elements than a splat are kept as text.
    fn read_dense(&mut self) -> Parsed<Attribute> {
        let start = self.token.offset;
        self.advance();
        self.expect('<')?;
        if self.token.is_word("true") || self.token.is_word("false") {
            let value = Box::new(Attribute::Bool(self.advance().text == "true"));
            self.expect('>')?;
            self.expect(':')?;
            return Ok(Attribute::Splat { value, kind: self.read_type()? });
        }
        if self.at_number() {
            let literal = self.read_literal()?;
            self.expect('>')?;
            self.expect(':')?;
            let kind = self.read_type()?;
            return Ok(Attribute::Splat { value: Box::new(literal.of_type(kind.element())?), kind });
        }
        self.skip_past_closing('<', "an attribute")?;
        let text = self.text_since(start);
        self.expect(':')?;
        Ok(Attribute::Typed { text, kind: self.read_type()? })
    }

    /// `array<i32: 1, 0>`; arrays of other things than integers are kept as text.
    fn read_array(&mut self) -> Parsed<Attribute> {
        let start = self.token.offset;
        self.advance();
        self.expect('<')?;
        let kind = self.read_type()?;
        let mut values = Vec::new();
        if matches!(kind, Type::Integer(2..)) {
            if self.accept('>') {
                return Ok(Attribute::Integers(values));
            }
            self.expect(':')?;
            self.comma_separated_until('>', |parser| {
                values.push(parser.read_integer()?);
                Ok(())
            })?;
            return Ok(Attribute::Integers(values));
        }
        self.skip_past_closing('<', "an attribute")?;
        Ok(Attribute::Other(self.text_since(start)))
    }

    /// `{a = 1 : i32, "b.c-d", e}`.
    pub(super) fn read_dictionary(&mut self) -> Parsed<Attributes> {
        self.begin("a dictionary of attributes", self.token.line)?;
        self.expect('{')?;
        let mut attributes = Attributes::default();
        self.comma_separated_until('}', |parser| {
            let place = parser.here();
            let key = match parser.token.kind {
                TokenKind::Word => parser.advance().text.to_owned(),
                TokenKind::String => unescape(parser.advance().text),
                _ => return Err(parser.unexpected("the name of an attribute")),
            };
            let value = if parser.accept('=') { parser.read_attribute()? } else { Attribute::Unit };
            if attributes.insert(key.clone(), value).is_some() {
                return Err(ParseError::DuplicateName { place, name: key });
            }
            Ok(())
        })?;
        self.end();
        Ok(attributes)
    }
}
