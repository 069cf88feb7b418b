//! Annotations at lines of the Python source, for editors, code scanning and pull requests.
//!
//! Commands state what they know as [`Annotation`]s; [`sarif`] and [`github`] print them. A line of a kernel is the one that
//! its TTIR names; of a kernel without locations, it is the line of the TTIR.

mod explain;
mod fit;
mod github;
mod lint;
mod place;
mod sarif;

pub(crate) use explain::{RULES as EXPLAIN_RULES, explained};
pub(crate) use fit::{PERFORMANCE_RULES, RULES as FIT_RULES, fitted, refused, worsened};
pub(crate) use lint::{RULES as LINT_RULES, findings, unchecked};
pub(crate) use place::{Place, Root};

use twill_graph::Source;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// It fails the command.
    Error,
    /// It is not known, or not settled.
    Warning,
    /// Nothing is wrong.
    Note,
}

/// A kind of annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Its name, for filters and suppressions.
    pub(crate) id: &'static str,
    /// What it says, in a sentence.
    pub(crate) meaning: &'static str,
    /// How bad it is as a rule.
    pub(crate) level: Level,
}

/// Something to say about a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Annotation {
    pub(crate) rule: Rule,
    pub(crate) level: Level,
    pub(crate) message: String,
    pub(crate) place: Place,
    /// The kernel or function that it is about.
    pub(crate) function: Option<String>,
    /// Other lines that take part, and how.
    pub(crate) related: Vec<(Place, String)>,
}

impl Annotation {
    /// An annotation as bad as its rule.
    pub(crate) fn new(rule: Rule, place: Place, message: impl Into<String>) -> Annotation {
        let message = message.into();
        Annotation { rule, level: rule.level, message, place, function: None, related: Vec::new() }
    }

    /// The same about a function.
    #[must_use]
    pub(crate) fn of(self, function: &str) -> Annotation {
        Annotation { function: Some(function.to_owned()), ..self }
    }
}

/// How annotations are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnnotationFormat {
    /// SARIF 2.1.0, one document.
    Sarif,
    /// Workflow commands of GitHub Actions, one a line.
    Github,
}

/// Annotations as text; `rules` are all that the command may break.
pub(crate) fn render(format: AnnotationFormat, rules: &[Rule], all: &[Annotation], root: &Root) -> String {
    match format {
        AnnotationFormat::Sarif => sarif::document(rules, all, root),
        AnnotationFormat::Github => all.iter().map(|one| github::line(one, root)).collect(),
    }
}

/// The place of an operation, or the file of its kernel.
fn place_of(source: Option<&Source>, input: &str) -> Place {
    source.map_or_else(|| Place::file(input), Place::of)
}
