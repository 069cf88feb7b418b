//! Where a kernel and its loops stand, for annotations: lines of the Python source, or of the TTIR where it has no locations.

use crate::{Error, Request, source};
use twill_graph::Source;
use twill_triton::OperationLocation;
use twill_triton::mlir::FileLineColumn;

/// Where a kernel and its loops stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Name of the kernel function.
    pub name: String,
    /// The kernel function.
    pub kernel: Source,
    /// The loops that are asked for, in the order of the text.
    pub loops: Vec<Source>,
}

/// Where the kernel of a request stands; `None` if its input is a loop graph.
///
/// # Errors
/// When it does not read or cannot be lowered, or the machine is not known.
pub fn places(request: &Request) -> Result<Option<Places>, Error> {
    let Some(source) = source(request)? else { return Ok(None) };
    let function = OperationLocation::of(source.kernel.module(), source.kernel.function());
    Ok(Some(Places {
        name: source.kernel.name().to_owned(),
        kernel: line(&function),
        loops: source.lowered.iter().map(|one| line(one.tiles.place())).collect(),
    }))
}

/// The line of the Python source, or that of the TTIR.
fn line(place: &OperationLocation) -> Source {
    let of_text = || Source { file: place.file.clone(), line: place.line, column: None };
    place.source.clone().unwrap_or_else(of_text)
}

impl Error {
    /// Where it is: the line of the Python source, or that of the TTIR; `None` if it is about no operation.
    pub fn line(&self) -> Option<Source> {
        let place = match self {
            Error::Triton(error) => match &**error {
                twill_triton::Error::Parse(error) => {
                    let FileLineColumn { file, line, column } = error.place()?;
                    return Some(Source { file: file.clone(), line: *line, column: Some(*column) });
                }
                error => error.place(),
            },
            Error::Emit { error, .. } => error.place(),
            _ => None,
        };
        place.map(line)
    }
}
