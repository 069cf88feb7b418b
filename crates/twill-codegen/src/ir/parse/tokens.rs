//! Words, punctuation, numbers, strings, lists, types and names.

use super::{NameKind, Read, ReadError, Reader};
use std::str::FromStr;
use twill_triton::mlir::Type;

impl<'t> Reader<'t> {
    pub(super) fn error(&self, what: impl Into<String>) -> ReadError {
        ReadError { line: 1 + self.text[..self.at].matches('\n').count(), what: what.into() }
    }

    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Passes blanks and comments.
    pub(super) fn blank(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with("//") {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    pub(super) fn accept(&mut self, punctuation: &str) -> bool {
        self.blank();
        let found = self.rest().starts_with(punctuation);
        if found {
            self.at += punctuation.len();
        }
        found
    }

    pub(super) fn expect(&mut self, punctuation: &str) -> Read<()> {
        if self.accept(punctuation) { Ok(()) } else { Err(self.error(format!("`{punctuation}` is expected"))) }
    }

    pub(super) fn word_ahead(&mut self) -> &'t str {
        self.blank();
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '#' | '$');
        &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]
    }

    pub(super) fn word(&mut self) -> Read<&'t str> {
        let word = self.word_ahead();
        if word.is_empty() {
            return Err(self.error("a word is expected"));
        }
        self.at += word.len();
        Ok(word)
    }

    pub(super) fn accept_word(&mut self, wanted: &str) -> bool {
        let found = self.word_ahead() == wanted;
        if found {
            self.at += wanted.len();
        }
        found
    }

    pub(super) fn expect_word(&mut self, wanted: &str) -> Read<()> {
        if self.accept_word(wanted) { Ok(()) } else { Err(self.error(format!("`{wanted}` is expected"))) }
    }

    pub(super) fn number<T: FromStr>(&mut self) -> Read<T> {
        self.blank();
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
        let digits = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        let number = digits.parse().map_err(|_| self.error(format!("a number is expected, not `{digits}`")))?;
        self.at += digits.len();
        Ok(number)
    }

    pub(super) fn string(&mut self) -> Read<String> {
        self.expect("\"")?;
        let mut text = String::new();
        let mut rest = self.rest().char_indices();
        while let Some((k, c)) = rest.next() {
            match c {
                '"' => {
                    self.at += k + 1;
                    return Ok(text);
                }
                '\\' => match rest.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, '0')) => text.push('\0'),
                    Some((_, 'u')) => {
                        let code: String = rest.by_ref().map(|(_, c)| c).skip(1).take_while(|c| *c != '}').collect();
                        let code = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                        text.push(code.ok_or_else(|| self.error("an escape is wrong"))?);
                    }
                    Some((_, c)) => text.push(c),
                    None => break,
                },
                _ => text.push(c),
            }
        }
        Err(self.error("a string does not end"))
    }

    /// `[a, b]`
    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        self.expect("[")?;
        let mut all = Vec::new();
        while !self.accept("]") {
            if !all.is_empty() {
                self.expect(",")?;
            }
            all.push(item(self)?);
        }
        Ok(all)
    }

    pub(super) fn array<T, const N: usize>(&mut self, item: impl FnMut(&mut Self) -> Read<T>) -> Read<[T; N]> {
        let all = self.list(item)?;
        let count = all.len();
        all.try_into().map_err(|_| self.error(format!("{N} items are expected, not {count}")))
    }

    /// `{name, name = value}`: calls the function with each name, which reads the value.
    pub(super) fn attributes(&mut self, mut each: impl FnMut(&mut Self, &str) -> Read<()>) -> Read<()> {
        if !self.accept("{") {
            return Ok(());
        }
        let mut is_first = true;
        while !self.accept("}") {
            if !is_first {
                self.expect(",")?;
            }
            is_first = false;
            let name = self.word()?;
            self.accept("=");
            each(self, name)?;
        }
        Ok(())
    }

    pub(super) fn unknown(&self, what: &str, name: &str) -> ReadError {
        self.error(format!("`{name}` is no {what}"))
    }

    /// A type: up to the end of its brackets.
    pub(super) fn element(&mut self) -> Read<Type> {
        self.blank();
        let rest = self.rest();
        let mut depth = 0_i32;
        let end = rest.find(|c: char| {
            match c {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ => {}
            }
            depth == 0 && c != '>' && !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '!'))
        });
        let text = &rest[..end.unwrap_or(rest.len())];
        let found = text.parse().map_err(|error| self.error(format!("a type is expected, not `{text}`: {error}")))?;
        self.at += text.len();
        Ok(found)
    }

    pub(super) fn define(&mut self, kind: NameKind, name: &str, number: usize) {
        self.names.insert((kind, name.to_owned()), twill_graph::narrow(number));
    }

    pub(super) fn find(&self, kind: NameKind, name: &str) -> Read<u32> {
        let found = self.names.get(&(kind, name.to_owned())).copied();
        found.ok_or_else(|| self.error(format!("there is no {kind:?} `{name}`").to_lowercase()))
    }

    pub(super) fn name(&mut self, kind: NameKind) -> Read<u32> {
        let name = self.word()?;
        self.find(kind, name)
    }
}
