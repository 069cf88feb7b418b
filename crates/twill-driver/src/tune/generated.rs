//! A generated kernel: its files, and what is known of it.

use super::candidate::Candidate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use twill_backend::package::{Assembly, Finding};
use twill_codegen::WarpProgram;
use twill_codegen::ir::{Expression, ExpressionKind, Op, visit};
use twill_graph::grouped;

/// A generated kernel: its files, and what is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneratedKernel {
    /// The kernel function.
    pub name: String,
    /// The machine that it is for.
    pub machine: String,
    /// Its loops, in the order of the text.
    pub loops: Vec<GeneratedLoop>,
    /// Combinations of trip counts for which its barriers were proved.
    pub cases: usize,
    /// Seconds that this took.
    pub checking: f64,
    /// What the assembler made of it, in a line; `None` where it was not requested.
    pub machine_code: Option<String>,
    /// What assembled it, with its version.
    #[serde(default)]
    pub assembler: Option<String>,
    /// Where the machine code is not what the schedule was made for.
    pub findings: Vec<Finding>,
    /// Why it has no pipeline, if one group executes one operation after the other.
    #[serde(default)]
    pub in_order: Option<String>,
    /// How it loads and multiplies.
    #[serde(default)]
    pub operations: OperationCounts,
    /// Whether estimates of its iterations tell its speed: TMA alone loads tiles, which no estimate of groups that compute shows, and a
    /// CTA has a multiprocessor of its own.
    #[serde(default)]
    pub is_told_by_estimates: bool,
    /// What a CTA of it takes.
    #[serde(default)]
    pub room: Room,
    /// The files of its folder, by their names.
    pub files: BTreeMap<String, String>,
    /// Its warp program, as text that is read back; none of a kernel from the cache.
    #[serde(skip)]
    pub warp_program: String,
}

/// A loop of a generated kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneratedLoop {
    /// Its name.
    pub name: String,
    /// Initiation interval, in cycles.
    pub interval: i64,
    /// Overlapped iterations.
    pub stages: u32,
    /// Cycles of an iteration as a simulation of the warp programs has them; none where they are not simulated.
    pub simulated: Option<u32>,
    /// The same of the machine code, where it is known.
    #[serde(default)]
    pub sass_estimate: Option<u32>,
    /// What is known of its schedule, in words.
    pub status: String,
}

/// What a CTA of a kernel takes, as its warp program has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Room {
    /// Bytes of shared memory.
    pub shared_memory: u64,
    /// Columns of tensor memory.
    pub tensor_memory: u64,
}

impl Room {
    fn of(program: &WarpProgram) -> Room {
        Room { shared_memory: program.shared_bytes(), tensor_memory: program.tensor_columns() }
    }
}

/// How a kernel loads tiles and multiplies them: operations in its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationCounts {
    /// Asynchronous copies by TMA.
    pub tma_loads: u32,
    /// Asynchronous copies by threads (`cp.async`).
    pub cp_async: u32,
    /// Loads that threads wait for.
    pub loads: u32,
    /// Asynchronous MMAs: `wgmma`, `tcgen05.mma`.
    pub async_mmas: u32,
    /// MMAs and dots that threads wait for.
    pub dots: u32,
}

impl OperationCounts {
    fn of(program: &WarpProgram) -> OperationCounts {
        let mut counts = OperationCounts::default();
        let mut loads = |e: &Expression| {
            e.walk(&mut |e| counts.loads += u32::from(matches!(e.kind, ExpressionKind::Load { .. })));
        };
        let nodes = || program.groups.iter().flat_map(|g| [&g.begin, &g.body, &g.end]);
        for nodes in nodes() {
            visit(nodes, &mut |op| match op {
                Op::Let { value, .. } => loads(value),
                Op::Opaque { operands, .. } => operands.iter().for_each(&mut loads),
                _ => {}
            });
        }
        for nodes in nodes() {
            visit(nodes, &mut |op| match op {
                Op::TmaLoad { .. } => counts.tma_loads += 1,
                Op::CpAsync { .. } => counts.cp_async += 1,
                Op::Wgmma { .. } | Op::Tcgen05Mma(_) => counts.async_mmas += 1,
                Op::Opaque { operation, .. } => match operation.name.as_str() {
                    "tt.load" | "tt.descriptor_load" => counts.loads += 1,
                    "tt.dot" => counts.dots += 1,
                    _ => {}
                },
                _ => {}
            });
        }
        counts
    }
}

/// Whether threads load tiles of two dimensions through pointers, synchronously or not.
fn do_threads_load_tiles(program: &WarpProgram) -> bool {
    let is_tile = |shape: &[u64]| shape.iter().filter(|extent| **extent > 1).count() > 1;
    let mut found = false;
    let mut look = |e: &Expression| {
        e.walk(&mut |e| found |= matches!(e.kind, ExpressionKind::Load { .. }) && is_tile(&e.shape));
    };
    let mut copies = false;
    for nodes in program.groups.iter().flat_map(|g| [&g.begin, &g.body, &g.end]) {
        visit(nodes, &mut |op| match op {
            Op::Let { value, .. } | Op::LocalStore { value, .. } => look(value),
            Op::CpAsync { pointers, .. } => copies |= is_tile(&pointers.shape),
            Op::Opaque { operation, .. } => copies |= operation.name == "tt.load",
            _ => {}
        });
    }
    found || copies
}

impl GeneratedKernel {
    pub(super) fn of(best: &Candidate, machine: &str) -> GeneratedKernel {
        let program = &best.lowered.program;
        let estimates = best.sass_estimate();
        let one = |(k, (l, status)): (usize, (&twill_codegen::ir::LoopMetadata, &String))| {
            let simulated = best.lowered.simulated.as_ref().and_then(|s| s.iterations.get(k).copied());
            // Of some loops there is no machine code.
            let sass_estimate = estimates.get(k).copied().filter(|own| l.repeats() || Some(*own) != simulated);
            let (name, interval, stages, status) = (l.name.clone(), l.interval, l.stages, status.clone());
            GeneratedLoop { name, interval, stages, simulated, sass_estimate, status }
        };
        GeneratedKernel {
            name: program.name.clone(),
            machine: machine.to_owned(),
            loops: program.loops.iter().zip(&best.spec.header.statuses).enumerate().map(one).collect(),
            cases: program.proof().cases,
            checking: program.seconds(),
            machine_code: best.assembly.as_ref().map(|assembly| match program.tile_scheduler.ctas_per_sm {
                1 => machine_code(assembly),
                ctas => format!("{}, {ctas} CTAs a multiprocessor", machine_code(assembly)),
            }),
            assembler: best.assembly.as_ref().and_then(|assembly| assembly.assembler.clone()),
            findings: best.assembly.as_ref().map(|a| a.findings.clone()).unwrap_or_default(),
            in_order: None,
            operations: OperationCounts::of(program),
            is_told_by_estimates: program.tile_scheduler.ctas_per_sm == 1 && !do_threads_load_tiles(program),
            room: Room::of(program),
            files: best.files().into_iter().map(|(name, text)| (name.to_owned(), text)).collect(),
            warp_program: program.to_string(),
        }
    }

    pub(super) fn from_json(text: &str) -> Option<GeneratedKernel> {
        serde_json::from_str(text).ok()
    }

    /// Itself as JSON.
    pub fn to_json(&self) -> String {
        // Plain data always serialises.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// One line on machine code.
pub(super) fn machine_code(assembly: &Assembly) -> String {
    let mut words = vec![format!("{} registers a thread at entry", assembly.registers)];
    words.push(match (assembly.spill_stores, assembly.spill_loads) {
        (0, 0) => "no spills".into(),
        (stores, loads) => {
            format!("{} bytes of spill stores, {} of spill loads", grouped(stores), grouped(loads))
        }
    });
    if assembly.count("serialised") > 0 {
        words.push("MMAs one by one".into());
    }
    words.push(format!("{} bytes of shared memory", grouped(assembly.shared_memory)));
    if let Some(lint) = assembly.lint {
        words.push(match lint.findings {
            0 => "linted".into(),
            found => format!("{found} hazards"),
        });
    }
    words.join(", ")
}
