//! Who is told how far a search is.

use twill_exact::Progress;

/// Is told what goes on. Nothing depends on it.
pub trait Observer {
    /// A search has come to this.
    fn progress(&mut self, progress: &Progress);

    /// Work has come to this, in words.
    fn say(&mut self, what: &str) {
        let _ = what;
    }

    /// Something a person wants to know: an attempt, and what came of it.
    fn note(&mut self, text: &str);
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn progress(&mut self, _: &Progress) {}

    fn note(&mut self, _: &str) {}
}
