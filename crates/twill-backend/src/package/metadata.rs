//! How a generated kernel is called: `kernel.json`, format `twill-kernel` (docs/formats.md).

use super::Assembly;
use super::example::{Constant, constants};
use super::trace::TraceEntry;
use crate::gluon::arguments;
use crate::header::Header;
use serde::Serialize;
use std::collections::BTreeMap;
use twill_codegen::Checked;
use twill_codegen::ir::{Amount, CtaCount, Descriptor, Formula, Parameter, WarpProgram};
use twill_triton::mlir::{FloatKind, Type};

/// The signature of a kernel.
#[derive(Clone, Debug, Serialize)]
pub struct Signature {
    format: &'static str,
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'static str>,
    name: String,
    function: String,
    architecture: String,
    num_warps: u32,
    parameters: Vec<ParameterEntry>,
    arguments: Vec<String>,
    constants: BTreeMap<String, Constant>,
    barriers_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry_registers: Option<u32>,
    #[serde(skip_serializing_if = "is_false")]
    dependent_launch: bool,
    grid: Grid,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shared_memory: Option<u64>,
    groups: Vec<String>,
    schedule: Schedule,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated: Option<Simulated>,
    registers: BTreeMap<String, u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<TraceEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    assembly: Option<Assembly>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lines: Vec<CodeLine>,
}

/// Cycles of a thread block by a simulation of the warp programs: `start`, and for each of its tiles `tile` and the iterations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Simulated {
    /// An iteration in the steady state, by loop.
    pub iterations: Vec<u32>,
    /// A tile without its iterations.
    pub tile: u32,
    /// The first tile more than the others.
    pub start: u32,
    /// An iteration of the machine code, by loop, where it is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sass: Vec<u32>,
    /// Bytes and MMAs of an iteration, by loop.
    pub traffic: Vec<LoopTraffic>,
}

/// What an iteration of a loop takes: bytes through shared memory, bytes from and to the second-level cache,
/// of these the bytes that neighbouring programs load alike, and floating-point operations of the tensor core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct LoopTraffic {
    pub shared: u64,
    pub global: u64,
    pub common: u64,
    pub flop: u64,
}

/// A line of the kernel that runs an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CodeLine {
    /// Position of the loop, from 0.
    #[serde(rename = "loop")]
    pub index: usize,
    /// Name in its graph.
    pub operation: String,
    /// The line, from 1.
    pub line: usize,
}

#[derive(Clone, Debug, Serialize)]
struct ParameterEntry {
    name: String,
    kind: &'static str,
    element: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<Vec<Block>>,
    #[serde(skip_serializing_if = "is_false")]
    divisible_by_16: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least: Option<i64>,
    #[serde(skip_serializing_if = "is_false")]
    not_zero: bool,
    #[serde(skip_serializing_if = "is_false")]
    positive: bool,
    #[serde(skip_serializing_if = "is_false")]
    read_only: bool,
}

#[derive(Clone, Debug, Serialize)]
struct Block {
    argument: String,
    shape: Vec<u64>,
    #[serde(rename = "box", skip_serializing_if = "Option::is_none")]
    extents_copied: Option<Vec<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    swizzle: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extents: Option<Vec<AmountEntry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strides: Option<Vec<AmountEntry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_before: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_negative: Vec<Formula>,
}

/// A number, or the name of the parameter that is it.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum AmountEntry {
    Parameter(String),
    Constant(u64),
}

#[derive(Clone, Debug, Serialize)]
struct Grid {
    kind: &'static str,
    cta_coarsening: [u32; 3],
    ctas_per_sm: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    serpentine: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ctas: Vec<CtaCount>,
}

#[derive(Clone, Debug, Serialize)]
struct Schedule {
    interval: i64,
    stages: u32,
    status: String,
    loops: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Registers a thread at entry, where CTAs share a multiprocessor: Triton would give all of its registers to one.
fn entry_registers(kernel: &WarpProgram) -> Option<u32> {
    let groups = kernel.groups.iter().map(|group| group.warps.div_ceil(4)).sum();
    let ctas = Some(kernel.tile_scheduler.ctas_per_sm).filter(|ctas| *ctas > 1)?;
    Some(twill_codegen::entry_registers(groups, ctas))
}

impl Signature {
    /// The signature of a kernel's Gluon function.
    pub fn new(kernel: &Checked, header: &Header) -> Signature {
        let sum = |f: fn(&twill_codegen::ir::LoopMetadata) -> i64| kernel.loops.iter().map(f).sum::<i64>();
        Signature {
            format: "twill-kernel",
            version: 1,
            language: None,
            name: kernel.name.clone(),
            function: kernel.name.clone(),
            architecture: header.architecture.clone(),
            num_warps: kernel.groups.first().map_or(4, |g| g.warps),
            parameters: kernel.parameters.iter().map(|p| parameter(kernel, p)).collect(),
            arguments: arguments(kernel),
            constants: constants(kernel),
            barriers_at: -1,
            entry_registers: entry_registers(kernel),
            dependent_launch: kernel.dependent_launch,
            grid: Grid {
                kind: if kernel.tile_scheduler.persistent { "persistent" } else { "one_per_program" },
                cta_coarsening: kernel.tile_scheduler.cta_coarsening,
                ctas_per_sm: kernel.tile_scheduler.ctas_per_sm,
                cluster: Some(kernel.ctas_per_cluster()).filter(|ctas| *ctas > 1),
                serpentine: kernel.tile_scheduler.serpentine(),
                ctas: kernel.tile_scheduler.cta_counts(),
            },
            threads: None,
            shared_memory: None,
            groups: kernel.groups.iter().map(|g| g.name.clone()).collect(),
            schedule: Schedule {
                interval: sum(|l| l.interval),
                stages: kernel.loops.iter().map(|l| l.stages).max().unwrap_or(1),
                status: header.statuses.join("; "),
                loops: kernel.loops.len(),
            },
            simulated: None,
            registers: kernel.groups.iter().map(|g| (g.name.clone(), g.registers)).collect(),
            trace: TraceEntry::of(kernel),
            assembly: None,
            lines: Vec::new(),
        }
    }

    /// With its time as a simulation of the warp programs has it.
    #[must_use]
    pub fn with_simulated(mut self, simulated: Option<Simulated>) -> Signature {
        self.simulated = simulated;
        self
    }

    /// With the lines that run operations.
    #[must_use]
    pub fn with_lines(self, lines: Vec<CodeLine>) -> Signature {
        Signature { lines, ..self }
    }

    /// Of a kernel in CUDA, with what its launch takes that Triton would find out by itself.
    #[must_use]
    pub fn in_cuda(self, launch: &crate::cuda::Launch) -> Signature {
        let mut signature = Signature {
            language: Some("cuda"),
            function: launch.function.clone(),
            threads: Some(launch.threads),
            shared_memory: Some(launch.shared_memory),
            groups: launch.groups.clone(),
            ..self
        };
        for block in signature.parameters.iter_mut().filter_map(|p| p.blocks.as_mut()).flatten() {
            if let Some(boxes) = launch.boxes.get(&block.argument) {
                block.extents_copied = Some(boxes.extents.clone());
                block.swizzle = Some(boxes.swizzle);
            }
        }
        signature
    }

    /// With what the assembler made of the kernel, where it put the barriers, and cycles of an iteration of that, by loop.
    #[must_use]
    pub fn with_assembly(self, assembly: Assembly, cycles: Vec<u32>) -> Signature {
        let simulated = self.simulated.map(|simulated| Simulated { sass: cycles, ..simulated });
        Signature { barriers_at: assembly.barriers_at, assembly: Some(assembly), simulated, ..self }
    }

    /// With the place where barriers are looked for first: that of a kernel which differs little.
    #[must_use]
    pub fn with_barriers_at(self, barriers_at: i64) -> Signature {
        Signature { barriers_at, ..self }
    }

    /// As JSON, with a line's end.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

fn parameter(kernel: &WarpProgram, parameter: &Parameter) -> ParameterEntry {
    let own = kernel.descriptors.iter().filter(|d| d.parameter == parameter.name);
    let blocks: Vec<Block> = own.map(block).collect();
    let (kind, element, blocks) = match &parameter.kind {
        Type::TensorDescriptor(block) => ("descriptor", element(block.element()), Some(blocks)),
        Type::Pointer { pointee, .. } => ("pointer", element(pointee), Some(blocks).filter(|b| !b.is_empty())),
        other => ("scalar", element(other), None),
    };
    let Parameter { divisible_by_16, at_least, not_zero, positive, read_only, .. } = *parameter;
    let name = parameter.name.clone();
    ParameterEntry { name, kind, element, blocks, divisible_by_16, at_least, not_zero, positive, read_only }
}

fn block(descriptor: &Descriptor) -> Block {
    let amount = |amount: &Amount| match amount {
        Amount::Parameter(name) => AmountEntry::Parameter(name.clone()),
        Amount::Constant(number) => AmountEntry::Constant(*number),
    };
    let matrix = descriptor.matrix.as_ref();
    Block {
        argument: descriptor.name.clone(),
        shape: descriptor.block.clone(),
        extents_copied: None,
        swizzle: None,
        extents: matrix.map(|m| m.all_extents().iter().map(amount).collect()),
        strides: matrix.map(|m| m.all_strides().iter().map(amount).collect()),
        bytes_before: Some(descriptor.bytes_before()).filter(|bytes| *bytes > 0),
        not_negative: matrix.map(|m| m.natural.clone()).unwrap_or_default(),
    }
}

/// Triton's name of a type.
fn element(kind: &Type) -> String {
    match kind {
        Type::Integer(bits) => format!("i{bits}"),
        Type::Float(FloatKind::BF16) => "bf16".into(),
        Type::Float(FloatKind::F8E4M3FN) => "fp8e4nv".into(),
        Type::Float(FloatKind::F8E5M2) => "fp8e5".into(),
        Type::Float(float) => format!("fp{}", float.bits()),
        Type::Pointer { pointee, .. } => element(pointee),
        other => format!("{other:?}"),
    }
}
