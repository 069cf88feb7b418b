//! What is known of a configuration before it is compiled, as plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use twill_graph::{IterationTraffic, LowerBound, Source, grouped};

/// Whether a kernel fits a machine, and what it needs there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// What errors call the input: a path.
    pub input: String,
    /// The kernel function.
    pub kernel: String,
    /// The machine that it is for.
    pub machine: String,
    /// Whether it fits.
    pub verdict: Verdict,
    /// What it needs of each resource, for the schedule that needs least as far as is easily known.
    pub needs: Vec<Need>,
    /// Its loops, in the order of the text.
    pub loops: Vec<LoopBound>,
    /// Why it does not fit, or why that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misfit: Option<Misfit>,
}

impl Fit {
    /// Whether it is known to fit.
    pub fn fits(&self) -> bool {
        self.verdict == Verdict::Fits
    }

    /// What it needs of a resource, if that is known.
    pub fn need(&self, resource: Resource) -> Option<&Need> {
        self.needs.iter().find(|need| need.resource == resource)
    }
}

/// Whether a kernel fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// [`compile`](crate::tune::compile) generates a kernel that Triton's compiler has room for.
    Fits,
    /// No schedule fits; proved.
    DoesNotFit,
    /// Neither: the schedule at hand does not fit, and it is not proved that none does.
    Unknown,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Fits => "fits",
            Verdict::DoesNotFit => "does not fit",
            Verdict::Unknown => "unknown",
        })
    }
}

/// What a kernel can need too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Bytes of shared memory of a CTA.
    SharedMemory,
    /// Columns of tensor memory of a CTA.
    TensorMemory,
    /// Registers of a thread of the group that needs most.
    Registers,
    /// Registers of all threads of a CTA.
    RegisterFile,
    /// Warps of a CTA, those included whose registers are paid for and that do nothing.
    Warps,
}

impl Resource {
    /// What its amounts count.
    pub fn unit(self) -> &'static str {
        match self {
            Resource::SharedMemory => "bytes",
            Resource::TensorMemory => "columns",
            Resource::Registers => "registers a thread",
            Resource::RegisterFile => "registers",
            Resource::Warps => "warps",
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Resource::SharedMemory => "shared memory",
            Resource::TensorMemory => "tensor memory",
            Resource::Registers => "registers",
            Resource::RegisterFile => "register file",
            Resource::Warps => "warps",
        })
    }
}

/// What a kernel needs of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// Of what.
    pub resource: Resource,
    /// Needed, in the resource's unit.
    pub required: u64,
    /// At hand.
    pub available: u64,
    /// What takes most of it, the largest first.
    pub largest: Vec<Holder>,
}

/// A buffer or a value that takes part of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Holder {
    /// Its name.
    pub name: String,
    /// All that it takes, in the resource's unit; of registers, words of 32 bits in a thread.
    pub amount: u64,
    /// Slots among which that is divided.
    pub slots: u32,
    /// Where the Python source makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, grouped(self.amount))?;
        if self.slots > 1 {
            write!(f, " in {} slots", self.slots)?;
        }
        self.source.as_ref().map_or(Ok(()), |source| write!(f, " (line {})", source.line))
    }
}

/// The most that a loop can achieve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopBound {
    /// Its name.
    pub name: String,
    /// No shorter initiation interval exists, and why; without search.
    pub bound: LowerBound,
    /// Floating-point operations of the MMAs of an iteration (of all that are scheduled as one).
    pub flop: u64,
    /// What an iteration moves (of all that are scheduled as one); nothing for machines whose traffic is not counted.
    #[serde(default)]
    pub traffic: IterationTraffic,
    /// The most TFLOP/s of one multiprocessor at the machine's clock; absent where costs are normalised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teraflops_per_multiprocessor: Option<f64>,
    /// The same of all multiprocessors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teraflops: Option<f64>,
}

/// Why a kernel does not fit, or why that is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Misfit {
    /// What there is too little of, where it is that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<Resource>,
    /// The buffer, value or operation to blame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub culprit: Option<String>,
    /// In words.
    pub reason: String,
    /// What to change.
    pub way_out: String,
}
