//! What is asked.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use twill_driver::{Input, Options, Request};
use twill_machine::{Changes, Machine};

/// An input, a machine with changes, and options.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Question {
    /// What errors call the input.
    pub name: String,
    /// TTIR, or a loop graph's JSON (`docs/formats.md`).
    pub text: String,
    /// A built-in machine; empty: the graph's own, or the default for kernels.
    pub machine: String,
    /// What is changed of it.
    pub changes: MachineChanges,
    /// Options by keywords, as the Python package has them.
    pub options: Map<String, Value>,
    /// Whether it is to be explained why the schedule is no faster.
    pub explain: bool,
}

/// What is changed of a machine ([`Changes`]).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MachineChanges {
    /// Factors of the units' rates, by unit.
    pub rates: BTreeMap<String, f64>,
    /// Factor of the latencies.
    pub latencies: Option<f64>,
    /// Shared memory of a thread block in bytes.
    pub shared_bytes: Option<u64>,
}

impl MachineChanges {
    fn changes(&self) -> Option<Changes> {
        let MachineChanges { rates, latencies, shared_bytes } = self.clone();
        let changes = Changes { rates, latencies, shared_bytes };
        (changes != Changes::default()).then_some(changes)
    }
}

/// The name of a loop graph's machine, where its file names one.
fn own_machine(text: &str) -> Option<String> {
    let file: Value = serde_json::from_str(text).ok()?;
    let machine = &file["machine"];
    machine.as_str().or_else(|| machine["name"].as_str()).map(str::to_owned)
}

impl Question {
    /// Whether the input is a loop graph: JSON begins with a brace, and TTIR does not.
    fn is_graph(&self) -> bool {
        self.text.trim_start().starts_with('{')
    }

    /// The name of the machine that is meant.
    fn base(&self) -> String {
        if !self.machine.is_empty() {
            return self.machine.clone();
        }
        let own = self.is_graph().then(|| own_machine(&self.text)).flatten();
        own.unwrap_or_else(|| twill_driver::DEFAULT_MACHINE.to_owned())
    }

    /// The machine file that is meant: `None` where nothing is changed.
    ///
    /// # Errors
    /// When there is no such machine.
    pub fn machine_file(&self) -> Result<Option<String>, String> {
        let Some(changes) = self.changes.changes() else { return Ok(None) };
        let base = self.base();
        let machine = Machine::builtin(&base).map_err(|error| error.to_string())?;
        Ok(Some(machine.changed(&base, &changes)))
    }

    /// What the schedule depends on, and the options that say how hard to search.
    ///
    /// # Errors
    /// When the input, the machine or an option is wrong.
    pub fn request(&self) -> Result<(Request, Options), String> {
        if self.text.trim().is_empty() {
            return Err("there is no input: paste TTIR or a loop graph, or take an example".to_owned());
        }
        let options = Options::from_keywords(&self.options).map_err(|error| error.to_string())?;
        let input = match self.is_graph() {
            true => Input::graph(&self.name, &self.text).map_err(|error| error.to_string())?,
            false => Input::kernel(&self.name, &self.text),
        };
        let machine = match self.machine_file()? {
            Some(text) => {
                let several = |errors: Vec<twill_machine::MachineError>| {
                    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
                };
                Some(twill_machine::check(&text, "changed machine").map_err(several)?)
            }
            None if self.machine.is_empty() => None,
            None => Some(Machine::builtin(&self.machine).map_err(|error| error.to_string())?),
        };
        let request = options.request(input, machine).map_err(|error| error.to_string())?;
        Ok((request, options))
    }
}
