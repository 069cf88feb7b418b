//! What `twill collect` recorded of a kernel: how often it was launched, and how long that took.

use serde_json::Value;
use std::fmt;
use std::path::Path;
use twill_graph::grouped;

/// Launches of a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Collected {
    /// How many.
    pub(crate) launches: u64,
    /// Their time on the GPU, as far as it was measured.
    pub(crate) milliseconds: Option<f64>,
}

impl Collected {
    /// What the record beside a kernel's TTIR says, if there is one.
    pub(crate) fn of(ttir: &Path) -> Option<Collected> {
        let text = std::fs::read_to_string(ttir.with_extension("json")).ok()?;
        let record: Value = serde_json::from_str(&text).ok()?;
        let launches = record["launches"].as_array().filter(|_| record["format"] == "twill-collected")?;
        let count = |one: &Value| one["count"].as_u64().unwrap_or(0);
        let time = |one: &Value| Some(count(one) as f64 * one["milliseconds"].as_f64()?);
        let times: Vec<f64> = launches.iter().filter_map(time).collect();
        let milliseconds = (!times.is_empty()).then(|| times.iter().sum());
        Some(Collected { launches: launches.iter().map(count).sum(), milliseconds })
    }
}

impl fmt::Display for Collected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = if self.launches == 1 { "time" } else { "times" };
        write!(f, "{} {times}", grouped(self.launches))?;
        match self.milliseconds {
            Some(milliseconds) => write!(f, ", {milliseconds:.1} ms on the GPU"),
            None => write!(f, ", not timed"),
        }
    }
}
