//! Reads the custom form.
//!
//! A few operations have forms of their own. All others follow one rule: `%` tokens are operands, bare words and strings
//! are attributes whose names [`super::normalise`] knows, `{…}` holds further attributes, types follow the last `:`, and
//! the types after `->` or `to` are those of the results.

use super::ast::{OperationId, ValueId};
use super::attributes::{Attribute, Attributes};
use super::error::{FileLineColumn, ParseError};
use super::lexer::{Token, TokenKind, unescape};
use super::normalise;
use super::parser::{Parsed, Parser};
use super::read_attributes::symbol_name;
use super::regions::Parts;
use super::result_types::{WrittenTypes, result_types};
use super::types::Type;

/// The text between the name of an operation and its types.
#[derive(Debug, Default)]
struct Pieces<'text> {
    /// Operands outside of brackets.
    plain: Vec<ValueId>,
    /// Operands in `[…]`.
    bracketed: Vec<ValueId>,
    /// Operands after the word `scale`, and how many plain ones stand before.
    scales: Vec<(usize, ValueId)>,
    /// All operands in the order of the text.
    all: Vec<ValueId>,
    words: Vec<Token<'text>>,
    strings: Vec<String>,
    attributes: Attributes,
}

impl Pieces<'_> {
    /// The operands in the order of the generic form.
    fn operands(&mut self, name: &str) -> Vec<ValueId> {
        match name {
            "tt.descriptor_store" | "tt.descriptor_reduce" => {
                self.plain.append(&mut self.bracketed);
                std::mem::take(&mut self.plain)
            }
            "tt.dot_scaled" => {
                let of = |count| self.scales.iter().filter(|(before, _)| *before == count).count();
                let segments = [1, 1, 1, of(1), of(2)].iter().map(|count| i64::from(*count != 0)).collect();
                self.attributes.insert("operandSegmentSizes".to_owned(), Attribute::Integers(segments));
                self.plain.extend(self.scales.iter().map(|(_, value)| *value));
                std::mem::take(&mut self.plain)
            }
            _ => std::mem::take(&mut self.all),
        }
    }
}

/// The error that a custom form is not known.
fn unknown_form(name: &str, place: FileLineColumn, reason: &str) -> ParseError {
    let is_later_stage = ["ttg.", "ttng.", "nvws."].iter().any(|dialect| name.starts_with(dialect));
    let hint =
        if is_later_stage { "; this seems to be TTGIR, pass compiled.asm[\"ttir\"] of the same kernel" } else { "" };
    ParseError::UnknownForm { place, operation: name.to_owned(), reason: format!("{reason}{hint}") }
}

impl<'text> Parser<'text> {
    /// An operation after its name; `named` results are named on its left.
    pub(super) fn read_custom(
        &mut self,
        id: OperationId,
        name: &str,
        named: usize,
        first: &Token<'text>,
    ) -> Parsed<Parts> {
        match name {
            "builtin.module" => self.read_module(id),
            "tt.func" | "func.func" => self.read_function(id),
            "scf.for" => self.read_for(id, first),
            "scf.if" => self.read_if(id),
            "scf.while" => self.read_while(id, first),
            "arith.constant" => self.read_constant(),
            "cf.br" | "cf.cond_br" => self.read_branch(id),
            _ => self.read_by_rule(name, named, first),
        }
    }

    /// `arith.constant {…} 64 : i32`.
    fn read_constant(&mut self) -> Parsed<Parts> {
        let mut parts = Parts::default();
        if self.token.is('{') {
            parts.attributes.extend(self.read_dictionary()?);
        }
        let place = self.here();
        let value = self.read_attribute()?;
        match value.constant_type() {
            Some(kind) => parts.result_types.push(kind),
            None => {
                return Err(ParseError::Unexpected {
                    place,
                    expected: "a constant with its type".to_owned(),
                    found: format!("`{value}`"),
                });
            }
        }
        parts.attributes.insert("value".to_owned(), value);
        Ok(parts)
    }

    fn read_by_rule(&mut self, name: &str, named: usize, first: &Token<'text>) -> Parsed<Parts> {
        let (mut pieces, types) = self.read_pieces(name)?;
        let unknown = |place, reason: &str| unknown_form(name, place, reason);
        let words: Vec<_> = pieces.words.iter().map(|word| word.text).collect();
        if let Err(index) = normalise::name_words(name, &words, &mut pieces.attributes) {
            let word = pieces.words.get(index).unwrap_or(first);
            return Err(unknown(self.place(word), &format!("the word `{}`", word.text)));
        }
        if !normalise::name_strings(name, std::mem::take(&mut pieces.strings), &mut pieces.attributes) {
            return Err(unknown(self.place(first), "a string"));
        }
        let operands = pieces.operands(name);
        let result_types = if named == 0 {
            Vec::new()
        } else {
            result_types(name, named, types).ok_or_else(|| {
                unknown(self.place(first), "the types of its results do not follow from what is written")
            })?
        };
        Ok(Parts { operands, attributes: pieces.attributes, successors: Vec::new(), result_types })
    }

    fn read_pieces(&mut self, name: &str) -> Parsed<(Pieces<'text>, WrittenTypes)> {
        let mut pieces = Pieces::default();
        let mut in_brackets = false;
        let mut after_scale = false;
        // Without types an operation ends with its line, unless the line ends in a comma or the like.
        let mut may_end = true;
        loop {
            let token = self.token;
            if may_end && token.first_on_line && !token.is(':') && token.kind != TokenKind::End {
                return Ok((pieces, WrittenTypes::default()));
            }
            may_end = true;
            match token.kind {
                TokenKind::Value => {
                    let value = self.read_value()?;
                    pieces.all.push(value);
                    match (after_scale, in_brackets) {
                        (true, _) => pieces.scales.push((pieces.plain.len(), value)),
                        (false, true) => pieces.bracketed.push(value),
                        (false, false) => pieces.plain.push(value),
                    }
                    after_scale = false;
                }
                TokenKind::Punctuation('[' | ']') => {
                    in_brackets = token.is('[');
                    may_end = !in_brackets;
                    self.advance();
                }
                TokenKind::Punctuation(',' | '(' | ')') => {
                    may_end = token.is(')');
                    self.advance();
                }
                TokenKind::Punctuation('{') => pieces.attributes.extend(self.read_dictionary()?),
                TokenKind::Punctuation('<') => pieces.attributes.extend(self.read_properties()?),
                TokenKind::Punctuation('}') => return Ok((pieces, WrittenTypes::default())),
                TokenKind::Punctuation(':') => {
                    self.advance();
                    if self.token.kind != TokenKind::Value {
                        return Ok((pieces, self.read_written_types(name)?));
                    }
                }
                TokenKind::Arrow => return Ok((pieces, self.read_written_types(name)?)),
                TokenKind::String => {
                    pieces.strings.push(unescape(token.text));
                    self.advance();
                }
                TokenKind::Symbol => {
                    self.advance();
                    pieces.attributes.insert("callee".to_owned(), Attribute::Symbol(symbol_name(token.text)));
                }
                TokenKind::Word => match self.peek().kind {
                    TokenKind::Punctuation('(') if token.text == "loc" => return Ok((pieces, WrittenTypes::default())),
                    TokenKind::Punctuation('=') => {
                        self.advance();
                        self.advance();
                        let value = self.read_attribute()?;
                        pieces.attributes.insert(normalise::generic_name(token.text).to_owned(), value);
                    }
                    TokenKind::Punctuation('<') => {
                        self.advance();
                        self.advance();
                        let value = Attribute::Enumeration(self.read_cases()?);
                        pieces.attributes.insert(normalise::generic_name(token.text).to_owned(), value);
                    }
                    _ => {
                        self.advance();
                        after_scale = name == "tt.dot_scaled" && token.text == "scale";
                        if !after_scale {
                            pieces.words.push(token);
                        }
                    }
                },
                TokenKind::End | TokenKind::UnterminatedString | TokenKind::Unknown => {
                    return Err(self.unexpected("the rest of the operation"));
                }
                _ => {
                    return Err(unknown_form(name, self.here(), &format!("`{}`", token.text)));
                }
            }
        }
    }

    /// Types with `,`, `*` or parentheses between them, and those after `->` or `to`.
    fn read_written_types(&mut self, name: &str) -> Parsed<WrittenTypes> {
        let mut types = WrittenTypes::default();
        if !self.accept_arrow() {
            types.before = self.read_written_list(name)?;
            if !self.accept_arrow() && !self.accept_word("to") {
                return Ok(types);
            }
        }
        types.after = Some(self.read_written_list(name)?);
        Ok(types)
    }

    fn read_written_list(&mut self, name: &str) -> Parsed<Vec<Type>> {
        let mut types = Vec::new();
        loop {
            if self.token.is('(') {
                types.extend(self.read_type_list()?);
            } else if self.token.is('<') && !name.starts_with("tt.") {
                return Err(unknown_form(name, self.here(), "a type without its name"));
            } else if self.token.is('<') {
                // The dialect and the name of the type follow from the operation and are left out.
                self.advance();
                types.push(match (name, types.len()) {
                    ("tt.make_tensor_descriptor", 1) => self.read_descriptor_contents()?,
                    _ => self.read_pointer_contents()?,
                });
            } else {
                types.push(self.read_type()?);
            }
            if !self.accept(',') && !self.accept('*') {
                return Ok(types);
            }
        }
    }
}
