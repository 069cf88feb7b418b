//! Workflow commands of GitHub Actions: a line each, which the log's reader makes an annotation of.

use super::{Annotation, Level, Root};
use std::fmt::Write;

/// One annotation.
pub(super) fn line(annotation: &Annotation, root: &Root) -> String {
    let Annotation { rule, level, message, place, related, .. } = annotation;
    let command = match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "notice",
    };
    let mut out = format!("::{command} file={}", property(&root.name(&place.file)));
    if let Some(line) = place.line {
        let _ = write!(out, ",line={line}");
        if let Some(column) = place.column {
            let _ = write!(out, ",col={column}");
        }
    }
    let mut message = message.clone();
    for (place, what) in related {
        let at = place.line.map_or(String::new(), |line| format!(":{line}"));
        let _ = write!(message, "\n{}{at}: {what}", root.name(&place.file));
    }
    let _ = writeln!(out, ",title={}::{}", property(&format!("twill {}", rule.id)), data(&message));
    out
}

/// A message in one line.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property, which ends at a comma or colon.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::{Level, Root, line};
    use crate::annotate::{Annotation, Place, Rule};

    #[test]
    fn what_would_end_a_command_is_escaped() {
        let rule = Rule { id: "bound", meaning: "", level: Level::Note };
        let place = Place { file: "a,b:c.py".into(), line: Some(7), column: None };
        let one = Annotation::new(rule, place, "50 % of it\nfor: a, b");
        let expected = "::notice file=a%2Cb%3Ac.py,line=7,title=twill bound::50 %25 of it%0Afor: a, b\n";
        assert_eq!(line(&one, &Root::new(None)), expected);
    }
}
