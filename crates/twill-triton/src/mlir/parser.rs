//! The parser's state, and the steps that all its parts share. Each part is an `impl Parser` in a file of its own.

use std::collections::HashMap;

use super::ast::{Module, OperationId};
use super::error::{FileLineColumn, ParseError};
use super::lexer::{LONGEST, Lexer, Token, TokenKind, unescape};
use super::lookalike::lookalike;
use super::read_locations::{Alias, PendingLocation};
use super::scope::{Labels, Scopes};
use twill_graph::showable;

/// How deeply regions, types, attributes and locations may be nested, counted together.
pub const NESTING_LIMIT: usize = 256;

/// How long a text may be in bytes.
const LENGTH_LIMIT: usize = (u32::MAX - 1) as usize;

/// Reads the text of a module. `file` only names it in errors.
pub fn parse(text: &str, file: &str) -> Result<Module, ParseError> {
    if text.len() > LENGTH_LIMIT {
        return Err(ParseError::TooLarge { file: file.to_owned(), bytes: text.len(), limit: LENGTH_LIMIT });
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Parser::new(text, file).read_all().map_err(|error| match lookalike(text) {
        Some(looks_like) => ParseError::NotMlir { file: file.to_owned(), looks_like },
        None => error,
    })
}

/// A construct that has begun and not ended.
#[derive(Debug)]
struct Open {
    what: String,
    line: u32,
}

/// The result of most steps.
pub(super) type Parsed<T> = Result<T, ParseError>;

/// The state of the parser.
#[derive(Debug)]
pub(super) struct Parser<'text> {
    text: &'text str,
    lexer: Lexer<'text>,
    /// The token that is next.
    pub(super) token: Token<'text>,
    /// Where the token before it ends.
    previous_end: usize,
    open: Vec<Open>,
    pub(super) module: Module,
    pub(super) scopes: Scopes<'text>,
    pub(super) labels: Vec<Labels<'text>>,
    pub(super) aliases: HashMap<&'text str, Alias<'text>>,
    pub(super) pending_locations: Vec<(OperationId, PendingLocation<'text>)>,
}

impl<'text> Parser<'text> {
    pub(super) fn new(text: &'text str, file: &str) -> Self {
        let mut lexer = Lexer::new(text);
        let token = lexer.next();
        Self {
            text,
            lexer,
            token,
            previous_end: 0,
            open: Vec::new(),
            module: Module::empty(file),
            scopes: Scopes::default(),
            labels: Vec::new(),
            aliases: HashMap::new(),
            pending_locations: Vec::new(),
        }
    }

    fn read_all(mut self) -> Parsed<Module> {
        if self.token.kind == TokenKind::End {
            return Err(ParseError::Empty { file: self.module.file });
        }
        self.read_top().map_err(|error| self.blame_the_end(error))?;
        self.resolve_locations()?;
        Ok(self.module)
    }

    /// A text that ends while something is open is cut short, whatever its last token was taken for: half of the name of a
    /// value is a value that is not defined.
    fn blame_the_end(&self, error: ParseError) -> ParseError {
        let is_last = self.token.offset + self.token.text.len() == self.text.len();
        let is_blamed = error.place() == Some(&self.here());
        let at_end = self.token.kind == TokenKind::End || (is_last && is_blamed);
        if !at_end || matches!(error, ParseError::NestingTooDeep { .. } | ParseError::UndefinedBlock { .. }) {
            return error;
        }
        match self.open.last() {
            Some(open) => self.unexpected_end(open),
            None => error,
        }
    }

    fn unexpected_end(&self, open: &Open) -> ParseError {
        ParseError::UnexpectedEnd { place: self.here(), inside: open.what.clone(), began: open.line }
    }

    /// Steps to the next token and gives back the one stepped over.
    pub(super) fn advance(&mut self) -> Token<'text> {
        let stepped_over = self.token;
        self.previous_end = stepped_over.offset + stepped_over.text.len();
        self.token = self.lexer.next();
        stepped_over
    }

    /// The token after the next.
    pub(super) fn peek(&self) -> Token<'text> {
        let mut ahead = self.lexer;
        ahead.next()
    }

    /// Reads with the lexer itself from the beginning of the next token.
    pub(super) fn with_lexer<T>(&mut self, read: impl FnOnce(&mut Lexer<'text>) -> T) -> T {
        self.lexer.rewind(&self.token);
        let result = read(&mut self.lexer);
        self.token = self.lexer.next();
        result
    }

    /// The text from `start` to the last token stepped over, with white space made single blanks.
    pub(super) fn text_since(&self, start: usize) -> String {
        self.text.get(start..self.previous_end).unwrap_or("").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Steps over the character if it is next.
    pub(super) fn accept(&mut self, character: char) -> bool {
        let found = self.token.is(character);
        if found {
            self.advance();
        }
        found
    }

    /// Steps over the word if it is next.
    pub(super) fn accept_word(&mut self, word: &str) -> bool {
        let found = self.token.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    /// Steps over the arrow if it is next.
    pub(super) fn accept_arrow(&mut self) -> bool {
        let found = self.token.kind == TokenKind::Arrow;
        if found {
            self.advance();
        }
        found
    }

    /// Steps over the character, which must be next.
    pub(super) fn expect(&mut self, character: char) -> Parsed<()> {
        if self.accept(character) { Ok(()) } else { Err(self.unexpected(&format!("`{character}`"))) }
    }

    /// Steps over the word, which must be next.
    pub(super) fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.accept_word(word) { Ok(()) } else { Err(self.unexpected(&format!("`{word}`"))) }
    }

    /// Steps over the arrow, which must be next.
    pub(super) fn expect_arrow(&mut self) -> Parsed<()> {
        if self.accept_arrow() { Ok(()) } else { Err(self.unexpected("`->`")) }
    }

    /// Steps over a token of the kind, which must be next.
    pub(super) fn expect_kind(&mut self, kind: TokenKind, what: &str) -> Parsed<Token<'text>> {
        if self.token.kind == kind { Ok(self.advance()) } else { Err(self.unexpected(what)) }
    }

    /// Reads items with commas between them until `close`, which is stepped over.
    pub(super) fn comma_separated_until(
        &mut self,
        close: char,
        mut item: impl FnMut(&mut Self) -> Parsed<()>,
    ) -> Parsed<()> {
        if self.accept(close) {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.accept(close) {
                return Ok(());
            }
            if !self.accept(',') {
                return Err(self.unexpected(&format!("`,` or `{close}`")));
            }
        }
    }

    /// Steps over everything up to the bracket that closes one already stepped over, and over it too.
    pub(super) fn skip_past_closing(&mut self, opening: char, what: &str) -> Parsed<()> {
        let line = self.token.line;
        let closing = |opening| match opening {
            '<' => '>',
            '(' => ')',
            '[' => ']',
            _ => '}',
        };
        let mut open = vec![closing(opening)];
        while let Some(innermost) = open.last() {
            match self.token.kind {
                TokenKind::End => {
                    self.begin(what, line)?;
                    return Err(self.unexpected("a closing bracket"));
                }
                TokenKind::UnterminatedString | TokenKind::Unknown => return Err(self.unexpected("a token")),
                TokenKind::Punctuation(bracket @ ('<' | '(' | '[' | '{')) => open.push(closing(bracket)),
                TokenKind::Punctuation(bracket @ ('>' | ')' | ']' | '}')) if bracket != *innermost => {
                    return Err(self.unexpected(&format!("`{innermost}`")));
                }
                TokenKind::Punctuation('>' | ')' | ']' | '}') => {
                    open.pop();
                }
                _ => {}
            }
            self.advance();
        }
        Ok(())
    }

    /// Notes that a construct begins, so that a text which ends in it can say so; it counts as one level of nesting.
    pub(super) fn begin(&mut self, what: &str, line: u32) -> Parsed<()> {
        if self.open.len() >= NESTING_LIMIT {
            return Err(ParseError::NestingTooDeep { place: self.here(), limit: NESTING_LIMIT });
        }
        self.open.push(Open { what: what.to_owned(), line });
        Ok(())
    }

    /// Notes that the innermost construct has ended. Not called on the way out of an error.
    pub(super) fn end(&mut self) {
        self.open.pop();
    }

    /// Where a token stands.
    pub(super) fn place(&self, token: &Token<'_>) -> FileLineColumn {
        FileLineColumn { file: self.module.file.clone(), line: token.line, column: token.column }
    }

    /// Where the next token stands.
    pub(super) fn here(&self) -> FileLineColumn {
        self.place(&self.token)
    }

    /// The error that the next token is longer than [`LONGEST`].
    pub(super) fn too_long(&self) -> ParseError {
        ParseError::TooLong { place: self.here(), bytes: self.token.text.len(), limit: LONGEST }
    }

    /// Steps over a string that names something, and gives back what it stands for, `_` for what cannot be shown.
    pub(super) fn read_name_in_quotes(&mut self) -> Parsed<String> {
        if self.token.text.len() > LONGEST {
            return Err(self.too_long());
        }
        Ok(showable(&unescape(self.advance().text)))
    }

    /// The error that the next token is not what the grammar wants.
    pub(super) fn unexpected(&self, expected: &str) -> ParseError {
        let place = self.here();
        let found = match self.token.kind {
            TokenKind::End => {
                let whole = Open { what: "the text".to_owned(), line: 1 };
                return self.unexpected_end(self.open.last().unwrap_or(&whole));
            }
            TokenKind::UnterminatedString => return ParseError::UnterminatedString { place },
            TokenKind::TooLong => return self.too_long(),
            _ => {
                const LONGEST: usize = 40;
                let mut text: String = self.token.text.chars().take(LONGEST).collect();
                if text.len() < self.token.text.len() {
                    text.push('…');
                }
                format!("`{text}`")
            }
        };
        ParseError::Unexpected { place, expected: expected.to_owned(), found }
    }
}
