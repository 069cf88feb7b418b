//! What is proved of a kernel, and what it needs.

use crate::options::OptionError;
use crate::tune::{CompileOptions, Compiled, compile};
use crate::{DEFAULT_MACHINE, Error, Input, Options, Session};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use thiserror::Error as ThisError;
use twill_graph::{Cycles, Status};
use twill_machine::{Machine, MachineError};

/// What is proved of a kernel, and what it needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Performance {
    /// The kernel function.
    pub kernel: String,
    /// The machine that it is for.
    pub machine: MachineStamp,
    /// Options that differ from their defaults, by keyword.
    #[serde(default)]
    pub options: Map<String, Value>,
    /// Its loops, in the order of the text.
    pub loops: Vec<LoopPerformance>,
    /// Registers a thread that the schedule needs, of the warp group that needs most.
    pub registers: u32,
    /// Bytes of shared memory of a CTA.
    pub shared_memory: u64,
    /// Columns of tensor memory of a CTA.
    #[serde(default)]
    pub tensor_memory: u64,
}

/// A machine, as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MachineStamp {
    /// Its name.
    pub name: String,
    /// The first 16 digits of the SHA-256 hash of its description.
    pub digest: String,
}

/// What is proved of a loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoopPerformance {
    /// Its name.
    pub name: String,
    /// Initiation interval of its schedule.
    pub interval: Cycles,
    /// No shorter interval exists; proved.
    pub bound: Cycles,
    /// Whether the two are proved to be the same.
    pub optimal: bool,
}

/// Why there is nothing to compare.
#[derive(Debug, ThisError)]
pub enum PerformanceError {
    /// The kernel cannot be read, scheduled or generated.
    #[error(transparent)]
    Kernel(#[from] Error),
    /// The machine does not read.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// Options of a baseline.
    #[error("{input}: the options in the baseline do not read: {error}; write it again with --write")]
    Options {
        /// The kernel.
        input: String,
        /// Why.
        error: OptionError,
    },
    /// It has no pipeline.
    #[error("{input}: there is no pipeline whose bound could be compared: {why} (twill coverage says more)")]
    NoPipeline {
        /// The kernel.
        input: String,
        /// Why.
        why: String,
    },
    /// The search was interrupted.
    #[error("{input}: interrupted")]
    Interrupted {
        /// The kernel.
        input: String,
    },
}

impl MachineStamp {
    /// The stamp of a machine.
    pub fn of(machine: &Machine) -> MachineStamp {
        let hash = Sha256::digest(machine.to_toml().as_bytes());
        let digest = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        MachineStamp { name: machine.name().to_owned(), digest }
    }

    /// The stamp of the machine of these options.
    ///
    /// # Errors
    /// When it does not read.
    pub fn of_options(options: &Options) -> Result<MachineStamp, MachineError> {
        Machine::load(options.lowering.machine.as_deref().unwrap_or(DEFAULT_MACHINE)).map(|machine| Self::of(&machine))
    }
}

/// Schedules and generates a kernel, and looks at both. Nothing is assembled.
///
/// # Errors
/// When the kernel does not read or has no pipeline, or the machine does not read.
pub fn measure(input: Input, options: &Options, session: &mut Session<'_>) -> Result<Performance, PerformanceError> {
    let name = input.name.clone();
    let machine = MachineStamp::of_options(options)?;
    let request = options.request(input, None)?;
    let code = CompileOptions { in_order: false, command: String::new(), ..options.code.clone() };
    let no_pipeline = |why: &str| PerformanceError::NoPipeline { input: name.clone(), why: why.to_owned() };
    let kernel = match compile(&request, &code, None, session)? {
        Compiled::Kernel(kernel) => kernel,
        Compiled::NoSchedule(Status::Infeasible) => return Err(no_pipeline("no schedule exists, which is proved")),
        Compiled::NoSchedule(_) => return Err(no_pipeline("no schedule was found within the limits")),
        Compiled::Stopped => return Err(PerformanceError::Interrupted { input: name }),
    };
    if let Some(why) = &kernel.in_order {
        return Err(no_pipeline(why));
    }
    let schedules = kernel.files.get("schedule.json").and_then(|text| serde_json::from_str(text).ok());
    let schedules: Value = schedules.unwrap_or_default();
    let proved = |index: usize| proved(&schedules, index);
    let loops = kernel.loops.iter().enumerate().map(|(index, one)| {
        let interval = Cycles(one.interval);
        let (bound, optimal) = proved(index).unwrap_or((Cycles(0), false));
        LoopPerformance { name: one.name.clone(), interval, bound, optimal }
    });
    Ok(Performance {
        kernel: kernel.name.clone(),
        machine,
        options: options.to_keywords(),
        loops: loops.collect(),
        registers: registers(&schedules),
        shared_memory: kernel.room.shared_memory,
        tensor_memory: kernel.room.tensor_memory,
    })
}

/// Registers that the schedules ask for a thread, of the group with most. Code gets more: the file is shared out.
fn registers(file: &Value) -> u32 {
    let of_one = |one: &Value| one["groups"].as_array().cloned().unwrap_or_default();
    let loops = file.as_array().or_else(|| file["loops"].as_array());
    let groups = of_one(file).into_iter().chain(loops.into_iter().flatten().flat_map(of_one));
    let most = groups.filter_map(|group| group["registers_per_thread"].as_u64()).max();
    most.and_then(|most| u32::try_from(most).ok()).unwrap_or(0)
}

/// The bound of a loop and whether its schedule meets it, from the file of one loop, of loops one by one, or of sibling loops.
fn proved(file: &Value, index: usize) -> Option<(Cycles, bool)> {
    let one = [format!("/loops/{index}"), format!("/{index}")].iter().find_map(|at| file.pointer(at));
    let one = one.or_else(|| (index == 0).then_some(file))?;
    let bound = one.pointer("/lower_bound/interval")?.as_i64()?;
    Some((Cycles(bound), one["status"] == "optimal"))
}
