//! The files of a generated kernel, in each language.

use super::Language;
use crate::LoopProblem;
use twill_backend::cuda;
use twill_backend::package::{self, CodeLine, Signature};
use twill_backend::{Header, Listing, gluon};
use twill_codegen::Checked;
use twill_graph::LoopOperation;

/// Files by their names.
pub(super) type Files = Vec<(&'static str, String)>;

impl Language {
    /// The file that the kernel is in.
    pub(super) fn file(self) -> &'static str {
        match self {
            Language::Gluon => "kernel.py",
            Language::Cuda => "kernel.cu",
        }
    }
}

/// How the kernel is called.
pub(super) fn signature(
    language: Language,
    program: &Checked,
    header: &Header,
) -> Result<Signature, twill_codegen::Error> {
    let signature = Signature::new(program, header);
    Ok(match language {
        Language::Gluon => signature,
        Language::Cuda => signature.in_cuda(&cuda::launch(program)?),
    })
}

/// The kernel in a language, and the files that this needs.
pub(super) fn written(
    language: Language,
    program: &Checked,
    header: &Header,
) -> Result<(Listing, Files), twill_codegen::Error> {
    Ok(match language {
        Language::Gluon => {
            gluon::check(program)?;
            let companions = vec![
                ("plan.py", package::GLUON_PLAN.to_owned()),
                ("assemble.py", package::GLUON_ASSEMBLER.to_owned()),
                ("ptxas.py", package::GLUON_PTXAS.to_owned()),
            ];
            (gluon::listing(program, header), companions)
        }
        Language::Cuda => {
            let mut companions = vec![
                ("kernel.h", cuda::header(program)?),
                ("plan.py", package::CUDA_PLAN.to_owned()),
                ("assemble.py", package::CUDA_ASSEMBLER.to_owned()),
            ];
            companions.extend(cuda::headers(program)?.into_iter().map(|(name, text)| (name, text.to_owned())));
            (cuda::listing(program, header)?, companions)
        }
    })
}

/// The names of a loop's operations.
pub(super) fn names(one: &LoopProblem) -> Vec<String> {
    one.problem.graph().operations().iter().map(|o| o.name.clone()).collect()
}

/// The lines of a kernel that run operations, by the names of each loop's.
pub(super) fn lines(listing: &Listing, operations: &[Vec<String>]) -> Vec<CodeLine> {
    let named = |(line, operation): &(usize, LoopOperation)| {
        let name = operations.get(operation.index)?.get(operation.op.index())?;
        Some(CodeLine { index: operation.index, operation: name.clone(), line: *line })
    };
    listing.lines.iter().filter_map(named).collect()
}
