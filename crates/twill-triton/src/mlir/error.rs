//! Errors in the text of a kernel, with their places.

use std::fmt;

use thiserror::Error;

/// A place in the text that was read: file, line and column, both counted from one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLineColumn {
    /// The name under which the text was handed to the parser.
    pub file: String,
    /// The line, from one.
    pub line: u32,
    /// The column in characters, from one.
    pub column: u32,
}

impl fmt::Display for FileLineColumn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// The likely format of a text that is no MLIR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookalike {
    /// Python source, probably the kernel itself.
    Python,
    /// A JSON document.
    Json,
    /// PTX, a later stage of the same compilation.
    Ptx,
    /// LLVM IR, a later stage of the same compilation.
    LlvmIr,
    /// C, C++ or CUDA source.
    Cuda,
    /// An ELF object, such as a cubin.
    Elf,
    /// MLIR's binary encoding.
    MlirBytecode,
}

impl fmt::Display for Lookalike {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Python => "Python source; compile the kernel and pass compiled.asm[\"ttir\"]",
            Self::Json => "JSON",
            Self::Ptx => "PTX; pass compiled.asm[\"ttir\"] of the same kernel",
            Self::LlvmIr => "LLVM IR; pass compiled.asm[\"ttir\"] of the same kernel",
            Self::Cuda => "C++ or CUDA source",
            Self::Elf => "an ELF binary (a cubin?); pass compiled.asm[\"ttir\"] of the same kernel",
            Self::MlirBytecode => "MLIR bytecode; pass the textual form",
        })
    }
}

/// Why a text could not be read. Every variant but the ones about the whole text carries its [`FileLineColumn`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseError {
    /// There is nothing but white space and comments.
    #[error("{file}: the text is empty; expected a module of Triton IR")]
    Empty {
        /// The file.
        file: String,
    },
    /// The text is longer than the parser counts.
    #[error("{file}: the text has {bytes} bytes; at most {limit} can be read")]
    TooLarge {
        /// The file.
        file: String,
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The text is not MLIR at all.
    #[error("{file}: expected Triton IR as MLIR text, but this looks like {looks_like}")]
    NotMlir {
        /// The file.
        file: String,
        /// Its style.
        looks_like: Lookalike,
    },
    /// Something else stands where the grammar wants `expected`.
    #[error("{place}: expected {expected}, found {found}")]
    Unexpected {
        /// Where.
        place: FileLineColumn,
        /// The tokens that the grammar allows here.
        expected: String,
        /// The token found here.
        found: String,
    },
    /// The text stops too early.
    #[error("{place}: input ends inside {inside}, which began in line {began}; is the file cut short?")]
    UnexpectedEnd {
        /// The end of the text.
        place: FileLineColumn,
        /// The innermost construct that is still open.
        inside: String,
        /// The line in which that construct began.
        began: u32,
    },
    /// A string literal does not end in its line.
    #[error("{place}: this string has no closing quotation mark in its line")]
    UnterminatedString {
        /// Where the string begins.
        place: FileLineColumn,
    },
    /// A name, a path or a number is longer than anybody writes.
    #[error("{place}: a name or number of {bytes} bytes; at most {limit} are supported")]
    TooLong {
        /// Where it begins.
        place: FileLineColumn,
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Regions, types, attributes or locations are nested too deeply.
    #[error("{place}: nested deeper than {limit} levels")]
    NestingTooDeep {
        /// Where the limit was passed.
        place: FileLineColumn,
        /// The limit.
        limit: usize,
    },
    /// A number does not fit.
    #[error("{place}: the number {text} is out of range")]
    NumberOutOfRange {
        /// Where.
        place: FileLineColumn,
        /// The number as written.
        text: String,
    },
    /// A value is used that nothing above defines.
    #[error("{place}: {name} is used but nothing above defines it")]
    UndefinedValue {
        /// Where it is used.
        place: FileLineColumn,
        /// The value, with its `%`.
        name: String,
    },
    /// A value is defined twice.
    #[error("{place}: {name} is already defined in line {first}")]
    DuplicateValue {
        /// The second definition.
        place: FileLineColumn,
        /// The value, with its `%`.
        name: String,
        /// The line of the first definition.
        first: u32,
    },
    /// A branch goes to a block that does not exist.
    #[error("{place}: block {name} is branched to but never defined in this region")]
    UndefinedBlock {
        /// The first branch to it.
        place: FileLineColumn,
        /// The block, with its `^`.
        name: String,
    },
    /// Two blocks of a region have one name.
    #[error("{place}: block {name} is defined twice in this region")]
    DuplicateBlock {
        /// The second definition.
        place: FileLineColumn,
        /// The block, with its `^`.
        name: String,
    },
    /// An attribute dictionary names a key twice, or an alias is defined twice.
    #[error("{place}: {name} is defined twice")]
    DuplicateName {
        /// The second definition.
        place: FileLineColumn,
        /// The key or alias.
        name: String,
    },
    /// A location alias is used and never defined.
    #[error("{place}: location {alias} is never defined; is the end of the file missing?")]
    UndefinedLocation {
        /// Where it is used.
        place: FileLineColumn,
        /// The alias, with its `#`.
        alias: String,
    },
    /// A location alias is defined through itself.
    #[error("{place}: location {alias} is defined through itself")]
    CyclicLocation {
        /// Where it is defined.
        place: FileLineColumn,
        /// The alias, with its `#`.
        alias: String,
    },
    /// The operation has another number of results than names on its left.
    #[error("{place}: `{operation}` has {has} results but {named} are named")]
    ResultCount {
        /// The operation.
        place: FileLineColumn,
        /// Its name.
        operation: String,
        /// How many results its types say it has.
        has: usize,
        /// How many are named.
        named: usize,
    },
    /// The generic form lists another number of operand types than operands.
    #[error("{place}: `{operation}` has {operands} operands but {types} operand types")]
    OperandCount {
        /// The operation.
        place: FileLineColumn,
        /// Its name.
        operation: String,
        /// How many operands.
        operands: usize,
        /// How many types.
        types: usize,
    },
    /// An operand has another type than its definition.
    #[error("{place}: {value} is used as {used_as} but defined as {defined_as}")]
    TypeMismatch {
        /// The operation.
        place: FileLineColumn,
        /// The value, with its `%`.
        value: String,
        /// The type at the use.
        used_as: String,
        /// The type at the definition.
        defined_as: String,
    },
    /// The parser does not know the custom form of an operation.
    #[error(
        "{place}: the custom form of `{operation}` is not understood here ({reason}); TTIR of Triton 3.6 to 3.9 and the generic form of any operation are"
    )]
    UnknownForm {
        /// The operation, or the token in it that was not understood.
        place: FileLineColumn,
        /// Its name.
        operation: String,
        /// The statement about it.
        reason: String,
    },
    /// An operation lacks something that every operation of its kind has.
    #[error("{place}: malformed `{operation}`: {reason}")]
    Malformed {
        /// The operation.
        place: FileLineColumn,
        /// Its name.
        operation: String,
        /// The missing part.
        reason: &'static str,
    },
}

impl ParseError {
    /// Where the error is; `None` for errors about the whole text.
    pub fn place(&self) -> Option<&FileLineColumn> {
        match self {
            Self::Empty { .. } | Self::TooLarge { .. } | Self::NotMlir { .. } => None,
            Self::Unexpected { place, .. }
            | Self::UnexpectedEnd { place, .. }
            | Self::UnterminatedString { place }
            | Self::TooLong { place, .. }
            | Self::NestingTooDeep { place, .. }
            | Self::NumberOutOfRange { place, .. }
            | Self::UndefinedValue { place, .. }
            | Self::DuplicateValue { place, .. }
            | Self::UndefinedBlock { place, .. }
            | Self::DuplicateBlock { place, .. }
            | Self::DuplicateName { place, .. }
            | Self::UndefinedLocation { place, .. }
            | Self::CyclicLocation { place, .. }
            | Self::ResultCount { place, .. }
            | Self::OperandCount { place, .. }
            | Self::TypeMismatch { place, .. }
            | Self::UnknownForm { place, .. }
            | Self::Malformed { place, .. } => Some(place),
        }
    }
}
