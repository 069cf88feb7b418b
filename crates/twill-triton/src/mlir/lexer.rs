//! Cuts MLIR text into tokens, on demand.
//!
//! The lexer is a small value that can be copied, so looking ahead is lexing with a copy. Token text borrows the input.

use super::types::Dimension;
use twill_graph::saturate;

/// The kinds of tokens; the names of sigils follow what they introduce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// The end of the text.
    End,
    /// `%name`, or `%name#2` for one of several results.
    Value,
    /// `^name`.
    Block,
    /// `@name` or `@"name"`.
    Symbol,
    /// `#name`.
    Hash,
    /// `!name`.
    Exclamation,
    /// A bare word with dots, such as `arith.addf`.
    Word,
    /// A decimal or hexadecimal integer without sign.
    Integer,
    /// A decimal number with a point, without sign.
    Float,
    /// A string literal, with its quotation marks.
    String,
    /// A string literal that does not end in its line.
    UnterminatedString,
    /// `->`.
    Arrow,
    /// `::`.
    DoubleColon,
    /// One character of ASCII punctuation.
    Punctuation(char),
    /// A name or a number of more than [`LONGEST`] bytes.
    TooLong,
    /// A character that MLIR does not use.
    Unknown,
}

/// Longest name or number in bytes. Names go into errors, schedules and pages, many times each.
pub(super) const LONGEST: usize = 2048;

/// A token of the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'text> {
    pub(super) kind: TokenKind,
    pub(super) text: &'text str,
    pub(super) offset: usize,
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) first_on_line: bool,
}

impl Token<'_> {
    /// Returns whether this is the punctuation character.
    pub(super) fn is(&self, character: char) -> bool {
        self.kind == TokenKind::Punctuation(character)
    }

    /// Returns whether this is the bare word.
    pub(super) fn is_word(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text == word
    }
}

/// The lexer's place in the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lexer<'text> {
    text: &'text str,
    offset: usize,
    line: u32,
    column: u32,
}

impl<'text> Lexer<'text> {
    pub(super) fn new(text: &'text str) -> Self {
        Self { text, offset: 0, line: 1, column: 1 }
    }

    /// Steps back to the beginning of a token.
    pub(super) fn rewind(&mut self, token: &Token<'text>) {
        (self.offset, self.line, self.column) = (token.offset, token.line, token.column);
    }

    /// Reads the leading dimensions of a shape, each with its `x`: `128x?x` of `128x?xf32`. An `Err` is a dimension that
    /// does not fit. Shapes are not made of tokens: `0x8xf32` has two dimensions and no hexadecimal number.
    pub(super) fn dimensions(&mut self) -> Result<Vec<Dimension>, &'text str> {
        let mut dimensions = Vec::new();
        loop {
            let rest = self.rest();
            if rest.starts_with("?x") {
                dimensions.push(Dimension::Dynamic);
                self.skip(2);
                continue;
            }
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 || rest.as_bytes().get(digits) != Some(&b'x') {
                return Ok(dimensions);
            }
            let text = &rest[..digits];
            dimensions.push(Dimension::Known(text.parse().map_err(|_| text)?));
            self.skip(digits + 1);
        }
    }

    /// The next token.
    pub(super) fn next(&mut self) -> Token<'text> {
        let line_before = self.line;
        let at_start = self.offset == 0;
        self.skip_blank();
        let (offset, line, column) = (self.offset, self.line, self.column);
        let kind = match self.kind() {
            kind @ (TokenKind::String | TokenKind::UnterminatedString) => kind,
            _ if self.offset - offset > LONGEST => TokenKind::TooLong,
            kind => kind,
        };
        Token {
            kind,
            text: &self.text[offset..self.offset],
            offset,
            line,
            column,
            first_on_line: at_start || line != line_before,
        }
    }

    fn rest(&self) -> &'text str {
        &self.text[self.offset..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Steps over ASCII characters that are no line breaks.
    fn skip(&mut self, bytes: usize) {
        self.offset += bytes;
        self.column = self.column.saturating_add(saturate::<u32>(bytes));
    }

    fn bump(&mut self, character: char) {
        self.offset += character.len_utf8();
        if character == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
    }

    fn skip_blank(&mut self) {
        while let Some(character) = self.peek() {
            if character.is_whitespace() {
                self.bump(character);
            } else if self.rest().starts_with("//") {
                while let Some(inside) = self.peek().filter(|inside| *inside != '\n') {
                    self.bump(inside);
                }
            } else {
                break;
            }
        }
    }

    fn skip_while(&mut self, accept: impl Fn(u8) -> bool) -> usize {
        let count = self.rest().bytes().take_while(|byte| byte.is_ascii() && accept(*byte)).count();
        self.skip(count);
        count
    }

    fn kind(&mut self) -> TokenKind {
        let Some(first) = self.peek() else { return TokenKind::End };
        match first {
            '%' => {
                self.skip(1);
                self.name();
                let rest = self.rest().as_bytes();
                if rest.first() == Some(&b'#') && rest.get(1).is_some_and(u8::is_ascii_digit) {
                    self.skip(1);
                    self.skip_while(|byte| byte.is_ascii_digit());
                }
                TokenKind::Value
            }
            '^' => self.sigil(TokenKind::Block),
            '#' => self.sigil(TokenKind::Hash),
            '!' => self.sigil(TokenKind::Exclamation),
            '@' => {
                self.skip(1);
                if self.peek() == Some('"') {
                    match self.string() {
                        TokenKind::String => TokenKind::Symbol,
                        other => other,
                    }
                } else {
                    self.name();
                    TokenKind::Symbol
                }
            }
            '"' => self.string(),
            '0'..='9' => self.number(),
            'a'..='z' | 'A'..='Z' | '_' => {
                self.skip_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.'));
                TokenKind::Word
            }
            _ if self.rest().starts_with("->") => {
                self.skip(2);
                TokenKind::Arrow
            }
            _ if self.rest().starts_with("::") => {
                self.skip(2);
                TokenKind::DoubleColon
            }
            _ if first.is_ascii_punctuation() => {
                self.skip(1);
                TokenKind::Punctuation(first)
            }
            _ => {
                self.bump(first);
                TokenKind::Unknown
            }
        }
    }

    fn sigil(&mut self, kind: TokenKind) -> TokenKind {
        self.skip(1);
        self.name();
        kind
    }

    /// MLIR's suffix identifier: digits, or a letter or `$._-` followed by those and digits.
    fn name(&mut self) {
        if self.peek().is_some_and(|character| character.is_ascii_digit()) {
            self.skip_while(|byte| byte.is_ascii_digit());
        } else {
            self.skip_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'-'));
        }
    }

    fn number(&mut self) -> TokenKind {
        let rest = self.rest().as_bytes();
        if rest.starts_with(b"0x") && rest.get(2).is_some_and(u8::is_ascii_hexdigit) {
            self.skip(2);
            self.skip_while(|byte| byte.is_ascii_hexdigit());
            return TokenKind::Integer;
        }
        self.skip_while(|byte| byte.is_ascii_digit());
        if self.peek() != Some('.') {
            return TokenKind::Integer;
        }
        self.skip(1);
        self.skip_while(|byte| byte.is_ascii_digit());
        let rest = self.rest().as_bytes();
        if matches!(rest.first(), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(rest.get(1), Some(b'+' | b'-')));
            if rest.get(1 + sign).is_some_and(u8::is_ascii_digit) {
                self.skip(1 + sign);
                self.skip_while(|byte| byte.is_ascii_digit());
            }
        }
        TokenKind::Float
    }

    fn string(&mut self) -> TokenKind {
        self.skip(1);
        while let Some(character) = self.peek().filter(|character| *character != '\n') {
            self.bump(character);
            match character {
                '"' => return TokenKind::String,
                '\\' => {
                    if let Some(escaped) = self.peek().filter(|escaped| *escaped != '\n') {
                        self.bump(escaped);
                    }
                }
                _ => {}
            }
        }
        TokenKind::UnterminatedString
    }
}

/// The characters that a string literal stands for; `\n`, `\t`, `\\`, `\"` and two hexadecimal digits are escapes.
/// Bytes that are no UTF-8 become the replacement character.
pub(super) fn unescape(literal: &str) -> String {
    let inner = literal.strip_prefix('"').unwrap_or(literal);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    if !inner.contains('\\') {
        return inner.to_owned();
    }
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.as_bytes();
    let digit = |byte: Option<&u8>| {
        byte.and_then(|byte| char::from(*byte).to_digit(16)).and_then(|digit| u8::try_from(digit).ok())
    };
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'\\' {
            bytes.push(*first);
        } else if let (Some(high), Some(low)) = (digit(tail.first()), digit(tail.get(1))) {
            bytes.push(high * 16 + low);
            rest = &tail[2..];
        } else if let Some((escaped, tail)) = tail.split_first() {
            bytes.push(match escaped {
                b'n' => b'\n',
                b't' => b'\t',
                other => *other,
            });
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
