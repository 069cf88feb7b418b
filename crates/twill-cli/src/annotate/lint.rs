//! What `twill lint` found, at the line of the source, or of the listing.

use super::{Annotation, Level, Place, Rule};
use twill_lint::{Finding, Report};

const UNCHECKED: Rule = Rule { id: "not-checked", meaning: "The file cannot be checked.", level: Level::Error };

/// All that there are: the hazards, and files that cannot be checked.
pub(crate) const RULES: [Rule; twill_lint::Rule::ALL.len() + 1] = {
    let mut all = [UNCHECKED; twill_lint::Rule::ALL.len() + 1];
    let mut at = 0;
    while at < twill_lint::Rule::ALL.len() {
        all[at] = hazard(twill_lint::Rule::ALL[at]);
        at += 1;
    }
    all
};

const fn hazard(rule: twill_lint::Rule) -> Rule {
    Rule { id: rule.name(), meaning: rule.meaning(), level: Level::Error }
}

/// Annotations of one file.
pub(crate) fn findings<'a>(path: &'a str, report: &'a Report) -> impl Iterator<Item = Annotation> + 'a {
    report.findings.iter().map(|finding| one(path, finding))
}

fn one(path: &str, finding: &Finding) -> Annotation {
    let (at, more) = (&finding.at, finding.more);
    let also = if more > 0 { format!("; and {more} more of the kind") } else { String::new() };
    let message = format!("{}: {}, at {:#x} `{}`{also}", finding.function, finding.why, at.offset, at.instruction);
    let mut annotation = Annotation::new(hazard(finding.rule), place(path, at), message).of(&finding.function);
    let earlier = |earlier: &twill_lint::Place| {
        let what = format!("conflicts with {:#x} `{}`", earlier.offset, earlier.instruction);
        (place(path, earlier), what)
    };
    annotation.related = finding.earlier.iter().map(earlier).collect();
    annotation
}

/// The line of the source. If the code does not say it, the line of the listing; a cubin has none.
fn place(path: &str, of: &twill_lint::Place) -> Place {
    if let Some(file) = &of.file {
        return Place { file: file.clone(), line: of.line, column: None };
    }
    let is_listing = std::path::Path::new(path).extension().is_none_or(|kind| kind != "cubin");
    let line = Some(of.listing_line).filter(|line| is_listing && *line > 0);
    Place { file: path.to_owned(), line, column: None }
}

/// The annotation of a file that cannot be checked.
pub(crate) fn unchecked(path: &str, why: &str) -> Annotation {
    Annotation::new(UNCHECKED, Place::file(path), why)
}
