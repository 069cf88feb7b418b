//! The certificate format: which intervals are rejected, and what proves it. The proofs by search lie
//! with it as text (`crate::proof`), the problem and its schedule in a schedule file.

use super::{FormatError, VERSION, check_version, parse};
use crate::proof::{BoundWitness, Certificate};
use crate::{Cycles, DependenceId, OpId, Problem};
use serde::{Deserialize, Serialize};

const FORMAT: &str = "twill-certificate";

/// A certificate file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertificateFile {
    /// Always `twill-certificate`.
    pub format: String,
    /// Always 1.
    pub version: u32,
    /// Every initiation interval below this one is rejected.
    pub rejected_below: Cycles,
    /// There is no schedule to go with it.
    pub infeasible: bool,
    /// Changes that need no search.
    pub bound: BoundEntry,
    /// Intervals at which one operation conflicts with itself.
    #[serde(default)]
    pub conflicts: Vec<ConflictEntry>,
    /// Intervals rejected by search; the files `interval-I.cnf`, `.why` and `.drat` prove each.
    #[serde(default)]
    pub proofs: Vec<Cycles>,
    /// Where the file was read from, for errors.
    #[serde(skip)]
    file: String,
}

/// A bound from below, and its witness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundEntry {
    /// Every interval below this one is rejected by it.
    pub interval: Cycles,
    /// Why.
    pub witness: WitnessEntry,
}

/// The proof of a bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum WitnessEntry {
    /// An iteration takes at least a cycle.
    Trivial,
    /// A unit is held this long.
    Resource {
        /// Its name.
        unit: String,
    },
    /// Shared memory moves this many bytes.
    SharedBandwidth,
    /// A cycle of dependences.
    Recurrence {
        /// Their positions in the graph.
        dependences: Vec<usize>,
    },
    /// The synchronous work of all compute groups together, and the issues after waits.
    GroupWork,
    /// One long synchronous operation.
    Operation {
        /// Its name.
        operation: String,
    },
}

/// An operation that conflicts with itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConflictEntry {
    /// At this interval.
    pub interval: Cycles,
    /// Its name.
    pub operation: String,
}

impl CertificateFile {
    /// The file for a certificate.
    pub fn new(problem: &Problem, certificate: &Certificate) -> CertificateFile {
        let name = |v: OpId| problem.graph().operation(v).name.clone();
        let witness = match &certificate.witness {
            BoundWitness::Trivial => WitnessEntry::Trivial,
            BoundWitness::Resource(unit) => {
                WitnessEntry::Resource { unit: problem.resources().units[unit.index()].name.clone() }
            }
            BoundWitness::Recurrence(cycle) => {
                WitnessEntry::Recurrence { dependences: cycle.iter().map(|d| d.index()).collect() }
            }
            BoundWitness::SharedBandwidth => WitnessEntry::SharedBandwidth,
            BoundWitness::GroupWork => WitnessEntry::GroupWork,
            BoundWitness::Operation(v) => WitnessEntry::Operation { operation: name(*v) },
        };
        CertificateFile {
            format: FORMAT.into(),
            version: VERSION,
            rejected_below: certificate.below,
            infeasible: certificate.infeasible,
            bound: BoundEntry { interval: certificate.bound, witness },
            conflicts: certificate
                .conflicts
                .iter()
                .map(|&(interval, v)| ConflictEntry { interval, operation: name(v) })
                .collect(),
            proofs: certificate.proofs.iter().map(|p| Cycles(p.interval)).collect(),
            file: String::new(),
        }
    }

    /// Reads a certificate file; `file` is its name, for errors.
    ///
    /// # Errors
    /// When it is not JSON of this format and version.
    pub fn from_json(text: &str, file: &str) -> Result<CertificateFile, FormatError> {
        let mut read: CertificateFile = parse(text, file)?;
        check_version(file, FORMAT, &read.format, read.version)?;
        file.clone_into(&mut read.file);
        Ok(read)
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        // Maps with string keys and numbers always have a form.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// The certificate without its proofs, in terms of a problem.
    ///
    /// # Errors
    /// When it names what the problem does not have.
    pub fn certificate(&self, problem: &Problem) -> Result<Certificate, FormatError> {
        let find = |name: &str, place: &str| {
            let graph = problem.graph();
            graph.op_ids().find(|&v| graph.operation(v).name == name).ok_or_else(|| FormatError::UnknownOperation {
                file: self.file.clone(),
                place: place.to_owned(),
                operation: name.to_owned(),
            })
        };
        let witness = match &self.bound.witness {
            WitnessEntry::Trivial => BoundWitness::Trivial,
            WitnessEntry::Resource { unit } => match problem.resources().unit(unit) {
                Some(id) => BoundWitness::Resource(id),
                None => {
                    let why = format!("the bound names the unit `{unit}`, which the machine does not have");
                    return Err(FormatError::Schedule { file: self.file.clone(), why });
                }
            },
            WitnessEntry::Recurrence { dependences } => {
                BoundWitness::Recurrence(dependences.iter().map(|&d| DependenceId::new(d)).collect())
            }
            WitnessEntry::SharedBandwidth => BoundWitness::SharedBandwidth,
            WitnessEntry::GroupWork => BoundWitness::GroupWork,
            WitnessEntry::Operation { operation } => BoundWitness::Operation(find(operation, "the bound")?),
        };
        let conflict = |c: &ConflictEntry| Ok((c.interval, find(&c.operation, "a conflict")?));
        Ok(Certificate {
            below: self.rejected_below,
            infeasible: self.infeasible,
            bound: self.bound.interval,
            witness,
            conflicts: self.conflicts.iter().map(conflict).collect::<Result<_, FormatError>>()?,
            proofs: Vec::new(),
        })
    }
}
