//! Guesses what a text is that could not be read as MLIR, for a better error message.

use super::error::Lookalike;

/// How many lines are looked at.
const LINES: usize = 200;

/// The format of the text, if it is plainly something else than MLIR text.
pub(super) fn lookalike(text: &str) -> Option<Lookalike> {
    if text.starts_with("\u{7f}ELF") {
        return Some(Lookalike::Elf);
    }
    if text.starts_with("ML") && text.chars().nth(2).is_some_and(|character| !character.is_ascii()) {
        return Some(Lookalike::MlirBytecode);
    }
    let lines = || text.lines().take(LINES).map(str::trim_start);
    let any = |prefixes: &[&str]| lines().any(|line| prefixes.iter().any(|prefix| line.starts_with(prefix)));
    if any(&["module", "\"builtin.module\"", "tt.func", "\"tt.func\"", "#loc"]) {
        return None;
    }
    let trimmed = text.trim_start();
    if trimmed.starts_with('[')
        || trimmed.strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with(['"', '}']))
    {
        return Some(Lookalike::Json);
    }
    if any(&[".version ", ".target sm_"]) {
        return Some(Lookalike::Ptx);
    }
    if any(&["; ModuleID", "source_filename", "target datalayout", "target triple", "define "]) {
        return Some(Lookalike::LlvmIr);
    }
    if any(&["#include", "#pragma", "__global__", "extern \"C\"", "template <", "template<"]) {
        return Some(Lookalike::Cuda);
    }
    if any(&["import ", "from ", "def ", "class ", "@triton.jit", "#!/usr/bin/env python", "if __name__"]) {
        return Some(Lookalike::Python);
    }
    None
}
