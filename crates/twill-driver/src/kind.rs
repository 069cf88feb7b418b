//! What an input is: by its content, and by its ending only where the content does not tell.

use std::path::Path;
use twill_graph::format::DataflowFile;

/// Standard input as a path.
pub const STANDARD_INPUT: &str = "-";

/// What an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// TTIR, as Triton prints it.
    Kernel,
    /// JSON of a loop graph, or JSON of which reading says what is wrong.
    LoopGraph,
    /// A loop of HatScheT.
    Hatschet,
    /// Another graph of operations without warps.
    Dataflow,
}

impl InputKind {
    /// What a text is that stands in this file. TTIR has a function of Triton's dialect, whatever the file is called.
    pub fn of(path: &Path, text: &str) -> InputKind {
        let is_object = text.trim_start().starts_with('{');
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        match ending.as_str() {
            _ if is_object && DataflowFile::is_named_in(text) => InputKind::Dataflow,
            "json" => InputKind::LoopGraph,
            _ if is_object && ending != "ttir" => InputKind::LoopGraph,
            _ if text.contains("tt.func") => InputKind::Kernel,
            "graphml" => InputKind::Hatschet,
            "dot" | "gv" | "blif" | "gml" | "mlir" => InputKind::Dataflow,
            _ => InputKind::Kernel,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides_before_the_ending() {
        let of = |name: &str, text: &str| InputKind::of(Path::new(name), text);
        let ttir = "#loc = loc(unknown)\nmodule {\n  tt.func public @k() {\n    tt.return\n  }\n}\n";
        for name in ["k.ttir", "k.mlir", "k.txt", "k", "-", "k.TTIR", "k.dot"] {
            assert_eq!(of(name, ttir), InputKind::Kernel, "{name}");
        }
        let graph = r#"{"format": "twill-graph", "version": 1}"#;
        let dataflow = r#"{"format": "twill-dataflow", "version": 1}"#;
        for name in ["g.json", "g.txt", "-"] {
            assert_eq!(of(name, graph), InputKind::LoopGraph, "{name}");
            assert_eq!(of(name, dataflow), InputKind::Dataflow, "{name}");
        }
        assert_eq!(of("g.mlir", "ssp.instance @x {}"), InputKind::Dataflow);
        assert_eq!(of("g.graphml", "<graphml/>"), InputKind::Hatschet);
        assert_eq!(of("g.txt", "nothing"), InputKind::Kernel);
    }
}
