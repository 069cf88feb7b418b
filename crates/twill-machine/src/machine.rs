//! A machine, and the amounts that follow from it directly.

use crate::document::Node;
use crate::error::MachineError;
use crate::nearest::nearest;
use crate::operation::Element;
use crate::provenance::Row;
use crate::rule::{Rule, RuleName};
use crate::{builtin, extends, read};
use std::collections::BTreeMap;
use std::path::Path;
use twill_graph::{Bytes, Columns, Cycles, Execution, Resources, Words, shortened};

/// A machine description.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) architecture: String,
    pub(crate) chip: Chip,
    pub(crate) resources: Resources,
    pub(crate) tensor_lanes: Option<u64>,
    pub(crate) shared_transfer_share: f64,
    pub(crate) tensor_core: TensorCore,
    pub(crate) sub_tile_rows: u64,
    pub(crate) row_statistic_copies: u64,
    pub(crate) handoff: f64,
    pub(crate) handoff_per_kb: f64,
    pub(crate) transfer_latency: Cycles,
    pub(crate) synchronization: Synchronization,
    pub(crate) power: Option<Power>,
    pub(crate) rules: BTreeMap<RuleName, Rule>,
    pub(crate) rows: Vec<Row>,
    pub(crate) document: Node,
}

/// Facts about the whole chip, and limits of a thread block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chip {
    /// Streaming multiprocessors.
    pub streaming_multiprocessors: u64,
    /// Clock of the streaming multiprocessors under load.
    pub clock_mhz: f64,
    /// Global memory.
    pub memory_gb: f64,
    /// Bandwidth of the global memory.
    pub memory_gb_per_s: f64,
    /// Second-level cache.
    pub l2_mb: f64,
    /// Bytes that each streaming multiprocessor loads from it in a cycle when all do, and those next to each other load
    /// different ones. `None` where the file does not say.
    pub l2_bytes_per_cycle: Option<f64>,
    /// Most warps that are resident on one streaming multiprocessor.
    pub warps: u64,
    /// Most threads of a thread block.
    pub threads_per_block: u64,
    /// Named barriers of a thread block.
    pub named_barriers: u64,
}

/// The power limits of the clock under load. At the clock `f` the chip draws
/// `(base_watts + FLOP/s · pJ + bytes/s · pJ) · (f / clock_mhz)²`, where the rates are those at `clock_mhz`: an operation takes
/// energy in proportion to the clock, as voltage falls with it. It runs at the highest clock up to `clock_mhz` at which that
/// is not above the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    /// Highest clock of the streaming multiprocessors under load, in MHz.
    pub clock_mhz: f64,
    /// The sustained power limit.
    pub limit_watts: f64,
    /// The power limit in the first milliseconds after a rest.
    pub burst_watts: f64,
    /// The power at `clock_mhz` besides the following.
    pub base_watts: f64,
    /// Energy of a floating-point operation of the tensor core on 16-bit operands at `clock_mhz`, in picojoules.
    pub tensor_pj_per_flop: f64,
    /// Energy of a byte from the second-level cache to a streaming multiprocessor at `clock_mhz`, in picojoules.
    pub l2_pj_per_byte: f64,
}

/// A memory that tile operations read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// The register file.
    Registers,
    /// Shared memory.
    Shared,
    /// Tensor memory.
    Tensor,
}

impl Memory {
    /// All of them.
    pub const ALL: [Memory; 3] = [Memory::Registers, Memory::Shared, Memory::Tensor];

    /// Its name in machine files.
    pub const fn key(self) -> &'static str {
        match self {
            Memory::Registers => "registers",
            Memory::Shared => "shared_memory",
            Memory::Tensor => "tensor_memory",
        }
    }
}

/// How the tensor core serves several warp groups that have MMAs in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// In the order of their instructions' issue: an MMA waits for all that was issued before it.
    InOrder,
    /// Interleaved, instruction by instruction.
    Interleaved,
}

impl Sharing {
    /// Its name in machine files.
    pub const fn key(self) -> &'static str {
        match self {
            Sharing::InOrder => "in_order",
            Sharing::Interleaved => "interleaved",
        }
    }
}

/// The cost of synchronisation for a warp group, in cycles; `None` where the file does not say. No cost of an operation
/// has any of it: it is for models of what stands between operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Synchronization {
    /// An arrival of each of its warps at a barrier in shared memory (mbarrier).
    pub arrive: Option<Cycles>,
    /// A wait for a phase of such a barrier that is over.
    pub wait: Option<Cycles>,
    /// From its arrival until another warp group returns from its wait.
    pub handoff: Option<Cycles>,
    /// A named barrier sync of two warp groups, both of which are there.
    pub named_barrier: Option<Cycles>,
    /// From its stores to shared memory until the tensor core and TMA see them (proxy fence).
    pub fence: Option<Cycles>,
    /// A change of its number of registers (`setmaxnreg`) that need not wait for others.
    pub set_registers: Option<Cycles>,
}

/// The tensor core and its instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorCore {
    /// The functional unit it is.
    pub unit: String,
    /// The execution of an MMA: the issuing warps execute it (`mma.sync`), or only start it (`wgmma`, `tcgen05.mma`).
    pub execution: Execution,
    /// Warps that issue it together: 1 or 4.
    pub issue_width: u32,
    /// Where the accumulator stands.
    pub accumulator: Memory,
    /// Where the left operand (rows × depth) may stand.
    pub left_operand: Vec<Memory>,
    /// Where the right operand (depth × columns) may stand.
    pub right_operand: Vec<Memory>,
    /// Rows of one instruction.
    pub instruction_rows: u64,
    /// Columns of one instruction are a multiple of this.
    pub instruction_columns: u64,
    /// Most columns of one instruction.
    pub instruction_columns_maximum: u64,
    /// Bytes of one instruction along the depth.
    pub instruction_depth_bytes: u64,
    /// Cycles from the end of the occupancy until the result can be read.
    pub additional_latency: Cycles,
    /// Cycles from the end of an MMA until the warp group that waits for it can issue the next, without any barrier: a
    /// part of `additional_latency`. `None` where the file does not say.
    pub wait_latency: Option<Cycles>,
    /// How it serves several warp groups at once. `None` where the file does not say.
    pub sharing: Option<Sharing>,
    pub(crate) rates: BTreeMap<Element, f64>,
}

impl TensorCore {
    /// Floating-point operations (two a product) a cycle; `None` for types that it does not multiply.
    pub fn flop_per_cycle(&self, element: Element) -> Option<f64> {
        self.rates.get(&element).copied()
    }

    /// The types that it multiplies.
    pub fn elements(&self) -> impl Iterator<Item = Element> + '_ {
        self.rates.keys().copied()
    }

    /// Depth of one instruction: 16 for 16-bit types.
    pub fn instruction_depth(&self, element: Element) -> u64 {
        (self.instruction_depth_bytes * 8 / u64::from(element.bits())).max(1)
    }
}

/// Returns whether it is a path rather than the name of a built-in machine.
pub(crate) fn is_path(name: &str) -> bool {
    name.contains(['/', '\\']) || Path::new(name).extension().is_some_and(|e| e == "toml")
}

impl Machine {
    /// A built-in machine by its name, or a file by its path (which ends in `.toml` or contains a `/`).
    ///
    /// # Errors
    /// The first that [`check`](crate::check) would report.
    pub fn load(name_or_path: &str) -> Result<Machine, MachineError> {
        if !is_path(name_or_path) {
            return Machine::builtin(name_or_path);
        }
        let text = extends::read_text(Path::new(name_or_path))
            .map_err(|e| MachineError::Unreadable { file: shortened(name_or_path), kind: e.kind() })?;
        first(read::machine(&text, &extends::Origin::file(name_or_path)), name_or_path)
    }

    /// A machine that comes with Twill, in capitals or not.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn builtin(name: &str) -> Result<Machine, MachineError> {
        // A graphics card's name is written in capitals.
        match builtin::find(name).or_else(|| builtin::find(&name.to_lowercase())) {
            Some((name, text)) => first(read::machine(text, &extends::Origin::Builtin(name)), name),
            None => Err(MachineError::UnknownMachine {
                name: shortened(name),
                known: builtin::names().collect(),
                nearest: nearest(name, builtin::names()),
            }),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A one-line description.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The compiler's target: `sm_90a`.
    pub fn architecture(&self) -> &str {
        &self.architecture
    }

    /// Facts about the whole chip.
    pub fn chip(&self) -> &Chip {
        &self.chip
    }

    /// The input of the schedulers.
    pub fn resources(&self) -> Resources {
        self.resources.clone()
    }

    /// The same with this much shared memory for a thread block.
    #[must_use]
    pub fn with_shared_memory(mut self, bytes: Bytes) -> Machine {
        self.resources.shared_memory = bytes;
        self
    }

    /// The tensor core and its instruction.
    pub fn tensor_core(&self) -> &TensorCore {
        &self.tensor_core
    }

    /// Returns whether it has tensor memory.
    pub fn has_tensor_memory(&self) -> bool {
        self.resources.tensor_memory > Columns(0)
    }

    /// Rows of the tile that one warp group works on: what a loop is cut into along M.
    pub fn sub_tile_rows(&self) -> u64 {
        self.sub_tile_rows
    }

    /// Threads that hold a copy of a row's statistic (maximum, sum) because they share the row.
    pub fn row_statistic_copies(&self) -> u64 {
        self.row_statistic_copies
    }

    /// Register words of a tile, narrow elements packed: `⌈elements · element_bits / 32⌉`.
    pub fn register_words(&self, elements: u64, element_bits: u32) -> Words {
        Words(elements.saturating_mul(element_bits.into()).div_ceil(32))
    }

    /// Register words of one 32-bit value a row: every thread that shares the row has a copy.
    pub fn row_statistic_words(&self, rows: u64) -> Words {
        Words(rows.saturating_mul(self.row_statistic_copies))
    }

    /// Bytes of a tile in shared or global memory: `⌈elements · element_bits / 8⌉`.
    pub fn bytes(&self, elements: u64, element_bits: u32) -> Bytes {
        Bytes(elements.saturating_mul(element_bits.into()).div_ceil(8))
    }

    /// Bytes of shared memory that an MMA of `rows` rows and `columns` columns reads, of operands that it finds
    /// there: every instruction reads its part of both, so the right operand is read again for each
    /// [`instruction_rows`](TensorCore::instruction_rows), the left one for each
    /// [`instruction_columns_maximum`](TensorCore::instruction_columns_maximum).
    pub fn operand_reads(&self, (rows, left): (u64, Bytes), (columns, right): (u64, Bytes)) -> Bytes {
        let core = &self.tensor_core;
        let times = |extent: u64, of_instruction: u64| extent.div_ceil(of_instruction.max(1)).max(1);
        left * times(columns, core.instruction_columns_maximum) + right * times(rows, core.instruction_rows)
    }

    /// Columns of a tile in tensor memory: as many 32-bit words as a row takes, for every full set of lanes.
    /// Zero where there is no tensor memory.
    pub fn tensor_columns(&self, rows: u64, columns: u64, element_bits: u32) -> Columns {
        let sets = self.tensor_lanes.map_or(0, |lanes| rows.div_ceil(lanes));
        Columns(columns.saturating_mul(element_bits.into()).div_ceil(32).saturating_mul(sets))
    }

    /// Cycles to pass register words to another warp group through shared memory:
    /// `round(base + per KB · words · 4 / 1024)`.
    pub fn handoff(&self, words: Words) -> Cycles {
        let cycles = self.handoff + self.handoff_per_kb * (words.0 as f64 * 4.0 / 1024.0);
        Cycles(cycles.round() as i64)
    }

    /// Cycles to pass one 32-bit value a row to another warp group: one copy of each goes through shared memory.
    pub fn row_statistic_handoff(&self, rows: u64) -> Cycles {
        self.handoff(Words(rows))
    }

    /// Cycles from the issue of a load from global memory to its arrival, which a ring must hide.
    pub fn transfer_latency(&self) -> Cycles {
        self.transfer_latency
    }

    /// The cost of synchronisation.
    pub fn synchronization(&self) -> &Synchronization {
        &self.synchronization
    }

    /// The power limits of the clock under load. `None` where the file does not say.
    pub fn power(&self) -> Option<&Power> {
        self.power.as_ref()
    }

    /// Every number, with its unit, provenance and source, in the order of the file format.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    pub(crate) fn rule(&self, name: RuleName) -> Option<&Rule> {
        self.rules.get(&name)
    }
}

/// The first of several errors.
fn first(result: Result<Machine, Vec<MachineError>>, file: &str) -> Result<Machine, MachineError> {
    result.map_err(|errors| {
        let none = MachineError::Unreadable { file: file.to_owned(), kind: std::io::ErrorKind::InvalidData };
        errors.into_iter().next().unwrap_or(none)
    })
}
