//! The names of values and blocks in scope at a place in the text.

use std::collections::HashMap;

use super::ast::{BlockId, RegionId, ValueId};
use super::error::FileLineColumn;

/// The meaning of a value's name: the results of an operation, or one argument.
#[derive(Debug, Clone)]
struct Named {
    values: Vec<ValueId>,
    line: u32,
}

/// The names that one region introduces.
#[derive(Debug, Default)]
struct Scope<'text> {
    values: HashMap<&'text str, Named>,
    /// True if names from outside are hidden, as they are in a function.
    isolated: bool,
}

/// The names that are known at a place, innermost region last.
#[derive(Debug, Default)]
pub(super) struct Scopes<'text>(Vec<Scope<'text>>);

impl<'text> Scopes<'text> {
    pub(super) fn enter(&mut self, isolated: bool) {
        self.0.push(Scope { values: HashMap::new(), isolated });
    }

    pub(super) fn leave(&mut self) {
        self.0.pop();
    }

    fn find(&self, name: &str) -> Option<&Named> {
        for scope in self.0.iter().rev() {
            if let Some(named) = scope.values.get(name) {
                return Some(named);
            }
            if scope.isolated {
                return None;
            }
        }
        None
    }

    /// Names values; an `Err` is the line in which the name was given already.
    pub(super) fn define(&mut self, name: &'text str, values: Vec<ValueId>, line: u32) -> Result<(), u32> {
        if let Some(first) = self.find(name) {
            return Err(first.line);
        }
        if let Some(scope) = self.0.last_mut() {
            scope.values.insert(name, Named { values, line });
        }
        Ok(())
    }

    /// The value of a name such as `%0` or `%0#1`.
    pub(super) fn value(&self, text: &str) -> Option<ValueId> {
        let (name, number) = match text.split_once('#') {
            Some((name, number)) => (name, number.parse().ok()?),
            None => (text, 0_usize),
        };
        self.find(name)?.values.get(number).copied()
    }
}

/// A label of a block.
#[derive(Debug)]
pub(super) struct Label {
    pub(super) block: BlockId,
    pub(super) defined: bool,
    /// Where it was first named.
    pub(super) place: FileLineColumn,
}

/// The labels of one region.
#[derive(Debug)]
pub(super) struct Labels<'text> {
    pub(super) region: RegionId,
    pub(super) names: HashMap<&'text str, Label>,
}
