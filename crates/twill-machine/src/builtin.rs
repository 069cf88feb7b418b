//! The machine files of `machines/`, embedded.

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../machines/", $name, ".toml")))),*]
    };
}

const FILES: &[(&str, &str)] = files!["a100", "h100", "h200", "b200", "b200-left-shared"];

/// Their names, oldest first.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The name, for as long as the program runs, and the text of one.
pub(crate) fn find(name: &str) -> Option<(&'static str, &'static str)> {
    FILES.iter().find(|(n, _)| *n == name).copied()
}
