//! Reads types.

use super::error::ParseError;
use super::lexer::TokenKind;
use super::parser::{Parsed, Parser};
use super::types::{FloatKind, Type};

/// The builtin types that are kept as text.
const OPAQUE_WORDS: [&str; 6] = ["none", "tuple", "vector", "memref", "complex", "token"];

/// The bits of `i32`, `si32` or `ui32`, and whether a sign is written.
fn integer_bits(word: &str) -> Option<(u32, bool)> {
    let (digits, signed) = match word.strip_prefix("si").or_else(|| word.strip_prefix("ui")) {
        Some(digits) => (digits, true),
        None => (word.strip_prefix('i')?, false),
    };
    let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| digits.parse().ok()).flatten().map(|bits| (bits, signed))
}

/// Returns whether the word begins a type.
pub(super) fn is_type_word(word: &str) -> bool {
    matches!(word, "tensor" | "index")
        || integer_bits(word).is_some()
        || FloatKind::from_name(word).is_some()
        || OPAQUE_WORDS.contains(&word)
}

impl Parser<'_> {
    /// A type.
    pub(super) fn read_type(&mut self) -> Parsed<Type> {
        self.begin("a type", self.token.line)?;
        let result = match self.token.kind {
            TokenKind::Punctuation('(') => self.read_function_type(),
            TokenKind::Exclamation => self.read_dialect_type(),
            TokenKind::Word => self.read_builtin_type(),
            _ => Err(self.unexpected("a type")),
        }?;
        self.end();
        Ok(result)
    }

    /// Types with commas between them, in parentheses.
    pub(super) fn read_type_list(&mut self) -> Parsed<Vec<Type>> {
        self.expect('(')?;
        let mut types = Vec::new();
        self.comma_separated_until(')', |parser| {
            types.push(parser.read_type()?);
            Ok(())
        })?;
        Ok(types)
    }

    /// One type, or several in parentheses.
    pub(super) fn read_one_or_more_types(&mut self) -> Parsed<Vec<Type>> {
        if self.token.is('(') { self.read_type_list() } else { Ok(vec![self.read_type()?]) }
    }

    fn read_function_type(&mut self) -> Parsed<Type> {
        let inputs = self.read_type_list()?;
        self.expect_arrow()?;
        let results = self.read_one_or_more_types()?;
        Ok(Type::Function { inputs, results })
    }

    fn read_builtin_type(&mut self) -> Parsed<Type> {
        let word = self.token.text;
        if let Some(kind) = FloatKind::from_name(word) {
            self.advance();
            return Ok(Type::Float(kind));
        }
        match integer_bits(word) {
            Some((bits, false)) => {
                self.advance();
                return Ok(Type::Integer(bits));
            }
            Some((_, true)) => {
                self.advance();
                return Ok(Type::Opaque(word.to_owned()));
            }
            None => {}
        }
        match word {
            "index" => {
                self.advance();
                Ok(Type::Index)
            }
            "tensor" => {
                self.advance();
                self.expect('<')?;
                self.read_tensor_contents()
            }
            _ if OPAQUE_WORDS.contains(&word) => {
                let start = self.token.offset;
                self.advance();
                self.opaque_since(start)
            }
            _ => Err(self.unexpected("a type")),
        }
    }

    /// The rest of a type that is kept as text: its parameters, if it has any.
    fn opaque_since(&mut self, start: usize) -> Parsed<Type> {
        if self.accept('<') {
            self.skip_past_closing('<', "a type")?;
        }
        Ok(Type::Opaque(self.text_since(start)))
    }

    /// `128x64xf16, #blocked>`: a tensor after its `<`.
    fn read_tensor_contents(&mut self) -> Parsed<Type> {
        let place = self.here();
        let start = self.token.offset;
        if self.token.is('*') {
            self.skip_past_closing('<', "a type")?;
            return Ok(Type::Opaque(format!("tensor<{}", self.text_since(start))));
        }
        let shape = self
            .with_lexer(|lexer| lexer.dimensions())
            .map_err(|text| ParseError::NumberOutOfRange { place, text: text.to_owned() })?;
        let element = Box::new(self.read_type()?);
        let encoding = if self.accept(',') {
            let start = self.token.offset;
            self.skip_past_closing('<', "a type")?;
            let text = self.text_since(start);
            Some(text.strip_suffix('>').unwrap_or(&text).to_owned())
        } else {
            self.expect('>')?;
            None
        };
        Ok(Type::Tensor { shape, element, encoding })
    }

    fn read_dialect_type(&mut self) -> Parsed<Type> {
        let token = self.advance();
        match token.text {
            "!tt.ptr" => {
                self.expect('<')?;
                self.read_pointer_contents()
            }
            "!tt.tensordesc" => {
                self.expect('<')?;
                self.read_descriptor_contents()
            }
            _ => self.opaque_since(token.offset),
        }
    }

    /// `f16, 3>`: a pointer after its `<`.
    pub(super) fn read_pointer_contents(&mut self) -> Parsed<Type> {
        let pointee = Box::new(self.read_type()?);
        let address_space = if self.accept(',') { self.read_integer()? } else { 1 };
        self.expect('>')?;
        Ok(Type::Pointer { pointee, address_space })
    }

    /// `tensor<128x64xf16>>`: a descriptor after its `<`. Later versions of Triton omit the `tensor<` within; so may this.
    ///
    /// Integers of a descriptor have signs (`si8`), those of the tiles that it copies have none; copies do not ask.
    pub(super) fn read_descriptor_contents(&mut self) -> Parsed<Type> {
        let mut block = if self.token.kind == TokenKind::Integer || self.token.is('?') {
            self.read_tensor_contents()?
        } else {
            let block = self.read_type()?;
            self.expect('>')?;
            block
        };
        if let Type::Tensor { element, .. } = &mut block
            && let Type::Opaque(text) = &**element
            && let Some((bits, _)) = integer_bits(text)
        {
            **element = Type::Integer(bits);
        }
        Ok(Type::TensorDescriptor(Box::new(block)))
    }
}

impl std::str::FromStr for Type {
    type Err = ParseError;

    /// A type alone, such as `!tt.ptr<f16>`.
    fn from_str(text: &str) -> Result<Type, ParseError> {
        let mut parser = Parser::new(text, "type");
        let read = parser.read_type()?;
        if parser.token.kind == TokenKind::End { Ok(read) } else { Err(parser.unexpected("the end of a type")) }
    }
}
