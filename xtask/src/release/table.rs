//! What became of each part of a release, as a table.

/// What became of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds, with what was looked at.
    Passed(String),
    /// It does not hold.
    Failed(String),
    /// Nobody looked, and why.
    Skipped(String),
    /// It stops a release, and someone has to decide.
    ToDo(String),
}

impl Verdict {
    /// Passed or failed.
    pub fn of(result: Result<String, String>) -> Self {
        match result {
            Ok(said) => Self::Passed(said),
            Err(why) => Self::Failed(why),
        }
    }

    fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Passed(said) => ("passed", said),
            Self::Failed(why) => ("FAILED", why),
            Self::Skipped(why) => ("skipped", why),
            Self::ToDo(what) => ("to do", what),
        }
    }
}

/// A row for each part.
#[derive(Default)]
pub struct Table {
    rows: Vec<(String, Verdict)>,
}

impl Table {
    /// Adds a row, and says at once if something failed.
    pub fn row(&mut self, name: &str, verdict: Verdict) {
        if let Verdict::Failed(why) = &verdict {
            eprintln!("xtask: {name}: FAILED: {why}");
        }
        self.rows.push((name.to_owned(), verdict));
    }

    /// The table, and a line that counts.
    pub fn text(&self) -> String {
        let width = self.rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for (name, verdict) in &self.rows {
            let (word, said) = verdict.parts();
            let mut lines = said.lines();
            text += format!("{name:width$}  {word:7}  {}", lines.next().unwrap_or_default()).trim_end();
            text.push('\n');
            for more in lines {
                text += &format!("{:width$}           {more}\n", "");
            }
        }
        let count = |word| self.rows.iter().filter(|(_, verdict)| verdict.parts().0 == word).count();
        let counts = ["passed", "FAILED", "skipped", "to do"].map(|word| format!("{} {word}", count(word)));
        text + &format!("release: {}\n", counts.join(", "))
    }

    /// # Errors
    ///
    /// That parts failed.
    pub fn result(&self) -> Result<(), String> {
        let failed = self.rows.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Failed(_)));
        let names: Vec<&str> = failed.map(|(name, _)| name.as_str()).collect();
        if names.is_empty() { Ok(()) } else { Err(format!("this is no release yet: {}", names.join(", "))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_fail() {
        let mut table = Table::default();
        table.row("versions", Verdict::of(Ok("0.1.0".into())));
        table.row("deny", Verdict::Skipped("not installed".into()));
        table.row("crates", Verdict::ToDo("publish = false\nof all".into()));
        assert_eq!(table.result(), Ok(()));
        table.row("links", Verdict::of(Err("one is broken".into())));
        assert!(table.result().unwrap_err().ends_with(": links"));
        let expected = "\
versions  passed   0.1.0
deny      skipped  not installed
crates    to do    publish = false
                   of all
links     FAILED   one is broken
release: 1 passed, 1 FAILED, 1 skipped, 1 to do
";
        assert_eq!(table.text(), expected);
    }
}
