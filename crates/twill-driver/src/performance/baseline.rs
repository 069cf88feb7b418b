//! The file of a baseline.

use super::Performance;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

const FORMAT: &str = "twill-performance";
const VERSION: u32 = 1;

/// What was proved of kernels, and what they needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Always `twill-performance`.
    pub format: String,
    /// Always 1.
    pub version: u32,
    /// Kernels by their input: a path as it was given.
    pub kernels: BTreeMap<String, Performance>,
}

/// Why a baseline does not read.
#[derive(Debug, Error)]
pub enum BaselineError {
    /// It is not JSON, or not this JSON.
    #[error("{path}: it is no baseline of twill check-perf: {error}; write one with --write")]
    Json {
        /// The file.
        path: String,
        /// Why.
        error: serde_json::Error,
    },
    /// It is of another format or version.
    #[error(
        "{path}: it is `{format}` of version {version}, and a baseline is `{FORMAT}` of version {VERSION}; write one with --write"
    )]
    Other {
        /// The file.
        path: String,
        /// Its format.
        format: String,
        /// Its version.
        version: u32,
    },
}

impl Default for Baseline {
    fn default() -> Baseline {
        Baseline { format: FORMAT.into(), version: VERSION, kernels: BTreeMap::new() }
    }
}

impl Baseline {
    /// Reads a baseline.
    ///
    /// # Errors
    /// When the text is none.
    pub fn from_json(text: &str, path: &str) -> Result<Baseline, BaselineError> {
        let path = || path.to_owned();
        let read: Baseline = serde_json::from_str(text).map_err(|error| BaselineError::Json { path: path(), error })?;
        match (read.format.as_str(), read.version) {
            (FORMAT, VERSION) => Ok(read),
            _ => Err(BaselineError::Other { path: path(), format: read.format, version: read.version }),
        }
    }

    /// Itself as JSON, one kernel after the other in the order of their names: a change of one is a change of its lines.
    pub fn to_json(&self) -> String {
        // Plain data always serialises.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}
