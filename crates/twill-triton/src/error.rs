//! Errors on the way from a kernel's text to a loop graph, with place and way out.

use std::fmt;

use thiserror::Error;
use twill_graph::{GraphError, Source};
use twill_machine::CostError;

use crate::grid::{Axis, Split};
use crate::mlir::{Attribute, Module, OperationId, ParseError};

/// An operation of a kernel: its place in the TTIR and in the Python source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationLocation {
    /// The file of the TTIR.
    pub file: String,
    /// The line in it, from one.
    pub line: u32,
    /// The operation, such as `tt.scan`.
    pub operation: String,
    /// Where it stands in the kernel's Python source.
    pub source: Option<Source>,
}

impl fmt::Display for OperationLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: `{}`", self.file, self.line, self.operation)?;
        match &self.source {
            Some(source) => write!(f, " (line {} of {})", source.line, source.file),
            None => Ok(()),
        }
    }
}

impl OperationLocation {
    /// The place of an operation.
    pub fn of(module: &Module, id: OperationId) -> Box<OperationLocation> {
        let operation = module.operation(id);
        Box::new(OperationLocation {
            file: module.file().to_owned(),
            line: operation.line,
            operation: describe(module, id),
            source: source_of(module, id),
        })
    }
}

/// An operation's name, and for calls into libraries what it calls.
fn describe(module: &Module, id: OperationId) -> String {
    let operation = module.operation(id);
    match operation.attributes.get("symbol").or_else(|| operation.attributes.get("callee")) {
        Some(Attribute::String(text) | Attribute::Symbol(text)) => format!("{} {text}", operation.name),
        _ => operation.name.clone(),
    }
}

/// Where an operation stands in the kernel's own source file: the innermost place in that file, so that an operation
/// of a helper function next to the kernel points at its own line and one of Triton's library at the call of it.
pub(crate) fn source_of(module: &Module, id: OperationId) -> Option<Source> {
    let location = module.operation(id).location.as_deref()?;
    let file = &location.in_kernel().file;
    let position = std::iter::once(&location.position).chain(&location.called_from).find(|p| p.file == *file)?;
    Some(Source {
        file: position.file.clone(),
        line: position.line,
        // Triton counts columns from 0.
        column: position.column.checked_add(1),
    })
}

/// Why a kernel cannot be read, or one of its loops not be lowered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// The text is not TTIR.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The module has no kernel.
    #[error("{file}: there is no kernel: the module has no public tt.func with a body")]
    NoKernel {
        /// The file.
        file: String,
    },
    /// The module has several kernels and none was named.
    #[error("{file}: there are several kernels: {}; name one of them", names.join(", "))]
    SeveralKernels {
        /// The file.
        file: String,
        /// Their names.
        names: Vec<String>,
    },
    /// The module has no kernel of the name that was asked for.
    #[error("{file}: there is no kernel `{name}`; there is {}", names.join(", "))]
    NoSuchKernel {
        /// The file.
        file: String,
        /// The name that was asked for.
        name: String,
        /// The kernels that there are.
        names: Vec<String>,
    },
    /// There is nothing to pipeline.
    #[error(
        "{file}: kernel `{kernel}` has no loop with tile operations; Twill schedules `for` loops over a range (scf.for) that load, multiply or combine tiles"
    )]
    NoLoop {
        /// The file.
        file: String,
        /// The kernel.
        kernel: String,
    },
    /// The bounds are constants and give no iteration.
    #[error(
        "{place}: the loop never runs: it goes from {lower} to {upper} in steps of {step}; remove it or change its bounds"
    )]
    ZeroTrips {
        /// The loop.
        place: Box<OperationLocation>,
        /// First value.
        lower: i128,
        /// Bound.
        upper: i128,
        /// Step.
        step: i128,
    },
    /// The extent of a tile is not known.
    #[error("{place}: the shape of {kind} is not known at compile time; make every extent of a tile a tl.constexpr")]
    DynamicShape {
        /// The operation.
        place: Box<OperationLocation>,
        /// The type.
        kind: String,
    },
    /// A tile that Triton would not take.
    #[error(
        "{place}: {kind} has more than {limit} elements, the most that Triton allows in a tile; choose a smaller block"
    )]
    TileTooLarge {
        /// The operation.
        place: Box<OperationLocation>,
        /// The type.
        kind: String,
        /// The limit.
        limit: u64,
    },
    /// A tile of something that is no number of a known size.
    #[error(
        "{place}: tiles of {element} are not supported; use floating-point numbers or integers of 1, 8, 16, 32 or 64 bits"
    )]
    ElementType {
        /// The operation.
        place: Box<OperationLocation>,
        /// The element type.
        element: String,
    },
    /// An operation that is not known.
    #[error(
        "{place} is not supported inside a loop that is to be scheduled; use tl.dot, loads, stores, reductions, casts and elementwise arithmetic instead, or move it out of the loop"
    )]
    UnsupportedOperation {
        /// The operation.
        place: Box<OperationLocation>,
    },
    /// Branches around tiles.
    #[error(
        "{place}: control flow around tile operations inside the loop is not supported; select values with tl.where, or split the loop into one loop for each case"
    )]
    ControlFlow {
        /// The operation.
        place: Box<OperationLocation>,
    },
    /// A call of a function that was not inlined.
    #[error("{place}: a call inside the loop is not supported; let Triton inline the function (no noinline=True)")]
    Call {
        /// The call.
        place: Box<OperationLocation>,
    },
    /// The rows of a loop's tiles do not divide.
    #[error(
        "loop `{name}`: {rows} rows cannot be cut into {count} sub-tiles of one size; choose a number that divides {rows}"
    )]
    SubTilesUneven {
        /// The loop.
        name: String,
        /// Rows of the tile.
        rows: u64,
        /// Sub-tiles asked for.
        count: u32,
    },
    /// Sub-tiles smaller than an instruction.
    #[error(
        "loop `{name}`: {count} sub-tiles of {rows} rows leave {each} rows each, but one warp group of machine `{machine}` works on at least {least}; use at most {most} sub-tiles or a larger tile"
    )]
    SubTilesSmall {
        /// The loop.
        name: String,
        /// The machine.
        machine: String,
        /// Rows of the tile.
        rows: u64,
        /// Sub-tiles asked for.
        count: u32,
        /// Rows of each.
        each: u64,
        /// Rows that one warp group works on.
        least: u64,
        /// Sub-tiles that fit.
        most: u64,
    },
    /// There is no dimension to cut.
    #[error("loop `{name}` has no dimension that it can be cut along: {why}; ask for 1 sub-tile")]
    NoRows {
        /// The loop.
        name: String,
        /// The reason against it.
        why: String,
    },
    /// No CTA for that many programs.
    #[error("loop `{name}`: {count} programs cannot share a CTA; ask for 1 to {most}")]
    ProgramsNumber {
        /// The loop.
        name: String,
        /// Programs asked for.
        count: u32,
        /// Programs that there may be.
        most: u32,
    },
    /// Programs that share a CTA, and sub-tiles.
    #[error(
        "loop `{name}`: programs that share a CTA are not cut into sub-tiles as well; ask for one or the other, and choose the rows of a program as those of a sub-tile"
    )]
    ProgramsAndSubTiles {
        /// The loop.
        name: String,
    },
    /// A loop of one program was expected.
    #[error("loop `{name}` is {split} already; let programs share a CTA before anything else splits the loop")]
    ProgramsOfParts {
        /// The loop.
        name: String,
        /// Its kind.
        split: Split,
    },
    /// Programs do not run the same iterations.
    #[error(
        "{place}: loop `{name}` cannot be shared by programs along {axis}: whether or how often it runs depends on tl.program_id({number}); use programs along another axis, bounds that do not depend on it (mask what is too much), or sub-tiles of a larger tile",
        number = axis.number()
    )]
    ProgramsPartWays {
        /// The loop.
        place: Box<OperationLocation>,
        /// Its name.
        name: String,
        /// The axis asked for.
        axis: Axis,
    },
    /// Programs do the same.
    #[error(
        "loop `{name}`: programs along {axis} would all compute the same, no tile of it depends on tl.program_id({number}); use programs along another axis",
        number = axis.number()
    )]
    ProgramsAlike {
        /// The loop.
        name: String,
        /// The axis asked for.
        axis: Axis,
    },
    /// The loop cannot be made one over tiles of another size.
    #[error("{place}: the loop takes no other step: {why}; leave --retile-loop out")]
    RetileLoop {
        /// The operation that is in the way.
        place: Box<OperationLocation>,
        /// Why.
        why: String,
    },
    /// The machine cannot do an operation.
    #[error("{place}: {error}")]
    Cost {
        /// The operation.
        place: Box<OperationLocation>,
        /// Why.
        error: Box<CostError>,
    },
    /// The graph that came out is not well formed.
    #[error("loop `{name}`: {error}")]
    Graph {
        /// The loop.
        name: String,
        /// Why.
        error: Box<GraphError>,
    },
}

impl Error {
    /// The operation that it is about, if it is about one.
    pub fn place(&self) -> Option<&OperationLocation> {
        match self {
            Error::ZeroTrips { place, .. }
            | Error::DynamicShape { place, .. }
            | Error::TileTooLarge { place, .. }
            | Error::ElementType { place, .. }
            | Error::UnsupportedOperation { place, .. }
            | Error::ControlFlow { place, .. }
            | Error::Call { place, .. }
            | Error::ProgramsPartWays { place, .. }
            | Error::RetileLoop { place, .. }
            | Error::Cost { place, .. } => Some(place),
            _ => None,
        }
    }
}
