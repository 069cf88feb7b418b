//! A text with places in it.

use super::super::{FormatError, NamedText};
use crate::DataflowError;

/// A text under the name by which errors call it.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl<'a> Source<'a> {
    pub fn of(NamedText { file, text }: NamedText<'a>) -> Source<'a> {
        Source { file, text }
    }

    /// The error at byte `at`; its line and column, in characters, are worked out only here.
    pub fn error(&self, at: usize, message: impl Into<String>) -> FormatError {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &self.text[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        FormatError::Syntax { file: self.file.to_owned(), line, column, message: message.into() }
    }

    /// The error in a graph as a whole.
    pub fn graph(&self, error: DataflowError) -> FormatError {
        FormatError::Dataflow { file: self.file.to_owned(), error }
    }

    /// A whole number from `least` to `most`.
    pub fn number(&self, at: usize, what: &str, text: &str, least: i64, most: i64) -> Result<i64, FormatError> {
        let value = text.parse().ok().filter(|value| (least..=most).contains(value));
        value.ok_or_else(|| {
            self.error(at, format!("{what} is `{}`; it must be a whole number from {least} to {most}", shown(text)))
        })
    }
}

/// The beginning of what was found, for a message.
pub(super) fn shown(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        None => text.escape_debug().to_string(),
        Some((end, _)) => format!("{}…", text[..end].escape_debug()),
    }
}

/// A word, a quoted text, or a single mark.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// Letters, digits and the characters that the language counts as such.
    Word(&'a str),
    /// Without its quotes; escapes are left as they are.
    Quoted(&'a str),
    /// Anything else.
    Mark(char),
    /// The text is over.
    End,
}

impl std::fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Word(text) | Token::Quoted(text) => write!(f, "`{}`", shown(text)),
            Token::Mark(mark) => write!(f, "`{}`", mark.escape_debug()),
            Token::End => f.write_str("the end of the file"),
        }
    }
}

/// The lexical rules that differ between languages.
#[derive(Clone, Copy)]
pub(super) struct Lexicon {
    /// Beyond letters, digits and `_`.
    pub word: fn(char) -> bool,
    /// `//` and `/* */` are comments.
    pub slashes: bool,
    /// A line that begins with `#` is a comment.
    pub hashes: bool,
}

/// The words of a text, one ahead.
pub(super) struct Tokens<'a> {
    pub source: Source<'a>,
    lexicon: Lexicon,
    end: usize,
    /// The token ahead and where it begins.
    pub next: Token<'a>,
    pub at: usize,
}

impl<'a> Tokens<'a> {
    pub fn new(source: Source<'a>, lexicon: Lexicon) -> Result<Tokens<'a>, FormatError> {
        let mut tokens = Tokens { source, lexicon, end: 0, next: Token::End, at: 0 };
        tokens.read()?;
        Ok(tokens)
    }

    /// Takes the token ahead.
    pub fn take(&mut self) -> Result<Token<'a>, FormatError> {
        let taken = self.next;
        self.read()?;
        Ok(taken)
    }

    /// Takes the token ahead if it is this mark.
    pub fn skip(&mut self, mark: char) -> Result<bool, FormatError> {
        let there = self.next == Token::Mark(mark);
        if there {
            self.read()?;
        }
        Ok(there)
    }

    /// Takes this mark.
    pub fn expect(&mut self, mark: char) -> Result<(), FormatError> {
        if self.skip(mark)? { Ok(()) } else { Err(self.unexpected(&format!("`{mark}`"))) }
    }

    /// Takes a word or a quoted text.
    pub fn name(&mut self, what: &str) -> Result<&'a str, FormatError> {
        match self.next {
            Token::Word(text) | Token::Quoted(text) => {
                self.read()?;
                Ok(text)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    /// Takes this word.
    pub fn word(&mut self, word: &str) -> Result<(), FormatError> {
        if self.next != Token::Word(word) {
            return Err(self.unexpected(&format!("`{word}`")));
        }
        self.read()
    }

    pub fn unexpected(&self, expected: &str) -> FormatError {
        self.source.error(self.at, format!("expected {expected}, found {}", self.next))
    }

    fn read(&mut self) -> Result<(), FormatError> {
        self.skip_blanks()?;
        let rest = &self.source.text[self.end..];
        self.at = self.end;
        let Some(first) = rest.chars().next() else {
            self.next = Token::End;
            return Ok(());
        };
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || (self.lexicon.word)(c);
        if first == '"' {
            let inside = &rest[1..];
            let mut escaped = false;
            let close = inside.find(|c| {
                let closes = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                closes
            });
            let Some(close) = close else {
                return Err(self.source.error(self.at, "this text has no closing quote"));
            };
            self.next = Token::Quoted(&inside[..close]);
            self.end += close + 2;
        } else if is_word(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            self.next = Token::Word(&rest[..length]);
            self.end += length;
        } else {
            self.next = Token::Mark(first);
            self.end += first.len_utf8();
        }
        Ok(())
    }

    fn skip_blanks(&mut self) -> Result<(), FormatError> {
        loop {
            let text = self.source.text;
            let rest = text[self.end..].trim_start();
            self.end = text.len() - rest.len();
            let line = || rest.find('\n').unwrap_or(rest.len());
            // Only blanks are looked back over: a line may be long and full of marks.
            let blank = |c: char| c.is_whitespace() && c != '\n';
            let before = || text[..self.end].trim_end_matches(blank);
            let begins_line = || before().is_empty() || before().ends_with('\n');
            if self.lexicon.slashes && rest.starts_with("//") {
                self.end += line();
            } else if self.lexicon.slashes && rest.starts_with("/*") {
                match rest.find("*/") {
                    Some(close) => self.end += close + 2,
                    None => return Err(self.source.error(self.end, "this comment has no end")),
                }
            } else if self.lexicon.hashes && rest.starts_with('#') && begins_line() {
                self.end += line();
            } else {
                return Ok(());
            }
        }
    }
}
