//! Where numbers come from.

use std::fmt;
use std::sync::Arc;

/// How a number became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provenance {
    /// On the device itself; the source says by whom.
    Measured,
    /// By the vendor.
    Specified,
    /// From other numbers, or assumed; the source says how.
    Derived,
}

impl Provenance {
    /// All of them.
    pub const ALL: [Provenance; 3] = [Provenance::Measured, Provenance::Specified, Provenance::Derived];

    /// Its name in machine files.
    pub fn key(self) -> &'static str {
        match self {
            Provenance::Measured => "measured",
            Provenance::Specified => "specified",
            Provenance::Derived => "derived",
        }
    }
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.key())
    }
}

/// One number of a machine with all that is known about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Where it stands in the file: `costs.tma_load.bytes_per_cycle`.
    pub key: String,
    /// The number.
    pub value: f64,
    /// Its unit, for people.
    pub unit: &'static str,
    /// How it became known.
    pub provenance: Provenance,
    /// Its source.
    pub source: String,
    /// The file that states it, which for inherited numbers is another than the machine's own; `None` for a default.
    pub file: Option<Arc<str>>,
}
