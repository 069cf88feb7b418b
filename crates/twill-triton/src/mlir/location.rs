//! Where in the kernel's source an operation comes from.

use std::fmt;

/// A position in a source file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FilePosition {
    /// The path as the compiler wrote it.
    pub file: String,
    /// The line, from one.
    pub line: u32,
    /// The column; Triton counts from one, zero where it knows none.
    pub column: u32,
}

impl fmt::Display for FilePosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// The source of an operation: the innermost position, and the calls through which it was inlined.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourceLocation {
    /// The innermost position, in the function that was inlined last.
    pub position: FilePosition,
    /// The name of the Python variable that the result was assigned to.
    pub name: Option<String>,
    /// The call sites, innermost first; empty for an operation of the kernel itself. At most
    /// [`SourceLocation::LONGEST_CALL_CHAIN`] are kept.
    pub called_from: Vec<FilePosition>,
}

impl SourceLocation {
    /// How many call sites a location keeps.
    pub const LONGEST_CALL_CHAIN: usize = 32;

    /// The position in the kernel itself: the outermost call site, or the position if nothing was inlined.
    pub fn in_kernel(&self) -> &FilePosition {
        self.called_from.last().unwrap_or(&self.position)
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.position)?;
        for call in &self.called_from {
            write!(formatter, " called from {call}")?;
        }
        Ok(())
    }
}
