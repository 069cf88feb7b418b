//! The contents of a machine file, table by table; the tensor core and the cost rules are in [`crate::read_rules`].

use crate::document::Node;
use crate::error::MachineError;
use crate::extends::{Origin, Resolved, resolve};
use crate::machine::{Chip, Machine, Power, Synchronization};
use crate::reader::{Allowed, Reader, Section};
use twill_graph::{Bytes, Columns, ComputePool, Cycles, FixedGroup, RegisterFile, Resources, Unit};

/// Graphs hold no larger numbers.
pub(crate) const LARGEST_CYCLES: u64 = 1 << 40;
const LARGEST_MEMORY: u64 = 1 << 40;

/// Reads a machine and reports all that is wrong with it.
pub(crate) fn machine(text: &str, origin: &Origin) -> Result<Machine, Vec<MachineError>> {
    let Resolved { document, incomplete } = resolve(text, origin)?;
    let mut reader = Reader::default();
    let parts = reader.parts(&document);
    let mut errors = reader.errors;
    if let Some(incomplete) = incomplete {
        // Keys that the file lacks may stand in the file that it extends.
        errors.retain(|e| !matches!(e, MachineError::Missing { .. } | MachineError::UnknownUnit { .. }));
        errors.push(incomplete);
    }
    errors.sort_by(|a, b| a.place().cmp(&b.place()));
    match parts {
        Some(machine) if errors.is_empty() => {
            let machine = Machine { rows: reader.rows, document, ..machine };
            match machine.resources.check() {
                Ok(()) => Ok(machine),
                Err(error) => Err(vec![MachineError::Resources { file: origin.shown(), error }]),
            }
        }
        _ => Err(errors),
    }
}

/// The names by which tables refer to each other.
pub(crate) struct Declared {
    /// Names of the units; `None` without `[units]`, when there is nothing to check against.
    pub units: Option<Vec<String>>,
    pub variable_latency_group: Option<FixedGroup>,
}

impl Reader {
    fn parts(&mut self, document: &Node) -> Option<Machine> {
        let mut root = Section::root(document);
        let name = self.text(&mut root, "name");
        let description = self.optional_text(&mut root, "description").unwrap_or_default();
        let architecture = self.text(&mut root, "architecture");
        let chip = self.section(&mut root, "chip").and_then(|s| self.chip(s));
        let units = self.section(&mut root, "units");
        let unit_names = units.as_ref().map(|s| s.present().map(str::to_owned).collect());
        let units = units.and_then(|s| self.units(s));
        let memory = self.section(&mut root, "memory").and_then(|s| self.memory(s));
        let registers = self.section(&mut root, "registers").and_then(|s| self.registers(s));
        let groups = self.section(&mut root, "groups").and_then(|s| self.groups(s));
        let declared = Declared { units: unit_names, variable_latency_group: groups.and_then(|g| g.variable_latency) };
        let tensor_core = self.section(&mut root, "tensor_core").and_then(|s| self.tensor_core(s, &declared));
        let tiles = self.section(&mut root, "tiles").and_then(|s| self.tiles(s));
        let latency = self.section(&mut root, "latency").and_then(|s| self.latency(s));
        let synchronization = match self.optional_section(&mut root, "synchronization") {
            Some(s) => self.synchronization(s),
            None => Synchronization::default(),
        };
        // A table that is wrong has reported itself, so there is no machine then.
        let power = self.optional_section(&mut root, "power").and_then(|s| self.power(s));
        let rules = self.section(&mut root, "costs").and_then(|s| self.rules(s, &declared));
        self.finish(root);
        let (name, groups, memory, tiles, latency) = (name?, groups?, memory?, tiles?, latency?);
        Some(Machine {
            resources: Resources {
                name: name.clone(),
                units: units?,
                shared_memory: memory.shared,
                tensor_memory: memory.tensor,
                shared_bytes_per_cycle: memory.shared_per_cycle,
                registers: registers?,
                variable_latency_group: groups.variable_latency,
                issue_group: groups.issue,
                compute_groups: groups.compute,
            },
            name,
            description,
            architecture: architecture?,
            chip: chip?,
            tensor_lanes: memory.tensor_lanes,
            shared_transfer_share: memory.shared_transfer_share,
            tensor_core: tensor_core?,
            sub_tile_rows: tiles.sub_tile_rows,
            row_statistic_copies: tiles.row_statistic_copies,
            handoff: latency.handoff,
            handoff_per_kb: latency.handoff_per_kb,
            transfer_latency: latency.transfer,
            synchronization,
            power,
            rules: rules?,
            rows: Vec::new(),
            document: document.clone(),
        })
    }

    fn chip(&mut self, mut s: Section<'_>) -> Option<Chip> {
        let streaming_multiprocessors = self.whole(&mut s, "streaming_multiprocessors", "SMs", 1, 1 << 16);
        let clock_mhz = self.number(&mut s, "clock_mhz", "MHz", Allowed::Positive);
        let memory_gb = self.number(&mut s, "memory_gb", "GB", Allowed::Positive);
        let memory_gb_per_s = self.number(&mut s, "memory_gb_per_s", "GB/s", Allowed::Positive);
        let l2_mb = self.number(&mut s, "l2_mb", "MB", Allowed::Positive);
        let l2_bytes_per_cycle = self.optional_number(&mut s, "l2_bytes_per_cycle", "bytes/cycle", Allowed::Positive);
        let warps = self.whole(&mut s, "warps", "warps/SM", 1, 1 << 16);
        let threads_per_block = self.whole(&mut s, "threads_per_block", "threads", 1, 1 << 16);
        let named_barriers = self.whole(&mut s, "named_barriers", "barriers", 0, 1 << 16);
        self.finish(s);
        Some(Chip {
            streaming_multiprocessors: streaming_multiprocessors?,
            clock_mhz: clock_mhz?,
            memory_gb: memory_gb?,
            memory_gb_per_s: memory_gb_per_s?,
            l2_mb: l2_mb?,
            l2_bytes_per_cycle,
            warps: warps?,
            threads_per_block: threads_per_block?,
            named_barriers: named_barriers?,
        })
    }

    fn units(&mut self, mut s: Section<'_>) -> Option<Vec<Unit>> {
        // All are read before any is found wanting.
        let units: Vec<Option<Unit>> = s
            .present()
            .map(|name| {
                Some(Unit { name: name.to_owned(), capacity: self.small(&mut s, name, "instances", 1, 1 << 16)? })
            })
            .collect();
        units.into_iter().collect()
    }

    fn memory(&mut self, mut s: Section<'_>) -> Option<MemoryTable> {
        let shared = self.whole(&mut s, "shared_bytes", "bytes/block", 0, LARGEST_MEMORY);
        let no_tensor_memory = (0.0, "default: no tensor memory");
        let allowed = Allowed::Whole(0, LARGEST_MEMORY);
        let tensor = self.number_or(&mut s, "tensor_columns", "columns/block", allowed, no_tensor_memory);
        let lanes = match tensor {
            Some(columns) if columns > 0.0 => Some(self.whole(&mut s, "tensor_lanes", "lanes", 1, 1 << 16)),
            _ => None,
        };
        let rate = Allowed::Whole(1, LARGEST_MEMORY);
        let rate = self.optional_number(&mut s, "shared_bytes_per_cycle", "bytes/cycle", rate);
        let share = self.optional_number(&mut s, "shared_transfer_share", "of bytes", Allowed::NotNegative);
        self.finish(s);
        Some(MemoryTable {
            shared: Bytes(shared?),
            shared_per_cycle: rate.map(|rate| Bytes(rate as u64)),
            shared_transfer_share: share.unwrap_or(0.0),
            tensor: Columns(tensor? as u64),
            tensor_lanes: present(lanes)?,
        })
    }

    fn registers(&mut self, mut s: Section<'_>) -> Option<RegisterFile> {
        let words = self.whole(&mut s, "words", "32-bit registers", 1, LARGEST_MEMORY);
        let minimum = self.small(&mut s, "minimum_per_thread", "registers", 0, 1 << 16);
        let maximum = self.small(&mut s, "maximum_per_thread", "registers", 1, 1 << 16);
        let granularity = self.small(&mut s, "granularity", "registers", 1, 1 << 16);
        let reserve = self.small(&mut s, "reserve_per_thread", "registers", 0, 1 << 16);
        self.finish(s);
        Some(RegisterFile {
            words: words?,
            minimum_per_thread: minimum?,
            maximum_per_thread: maximum?,
            granularity: granularity?,
            reserve_per_thread: reserve?,
        })
    }

    fn groups(&mut self, mut s: Section<'_>) -> Option<GroupsTable> {
        let variable_latency = self.optional_section(&mut s, "variable_latency").map(|s| self.fixed_group(s));
        let issue = self.optional_section(&mut s, "issue").map(|s| self.fixed_group(s));
        let compute = self.section(&mut s, "compute").and_then(|mut s| {
            let warps = self.small(&mut s, "warps", "warps", 1, 64);
            let maximum = self.small(&mut s, "maximum", "groups", 1, 16);
            self.finish(s);
            Some(ComputePool { warps: warps?, maximum: maximum? })
        });
        self.finish(s);
        Some(GroupsTable { variable_latency: present(variable_latency)?, issue: present(issue)?, compute: compute? })
    }

    fn fixed_group(&mut self, mut s: Section<'_>) -> Option<FixedGroup> {
        let warps = self.small(&mut s, "warps", "warps", 1, 64);
        let allocated_warps = self.small(&mut s, "allocated_warps", "warps", 1, 64);
        let registers_per_thread = self.small(&mut s, "registers_per_thread", "registers", 0, 1 << 16);
        self.finish(s);
        Some(FixedGroup {
            warps: warps?,
            allocated_warps: allocated_warps?,
            registers_per_thread: registers_per_thread?,
        })
    }

    fn tiles(&mut self, mut s: Section<'_>) -> Option<TilesTable> {
        let sub_tile_rows = self.whole(&mut s, "sub_tile_rows", "rows", 1, 1 << 16);
        let row_statistic_copies = self.whole(&mut s, "row_statistic_copies", "words/row", 1, 1 << 10);
        self.finish(s);
        Some(TilesTable { sub_tile_rows: sub_tile_rows?, row_statistic_copies: row_statistic_copies? })
    }

    fn latency(&mut self, mut s: Section<'_>) -> Option<LatencyTable> {
        let handoff = self.number(&mut s, "handoff", "cycles", Allowed::NotNegative);
        let handoff_per_kb = self.number(&mut s, "handoff_per_kb", "cycles/KB", Allowed::NotNegative);
        let transfer = self.cycles(&mut s, "transfer");
        self.finish(s);
        Some(LatencyTable { handoff: handoff?, handoff_per_kb: handoff_per_kb?, transfer: transfer? })
    }

    fn synchronization(&mut self, mut s: Section<'_>) -> Synchronization {
        let read = Synchronization {
            arrive: self.optional_cycles(&mut s, "arrive"),
            wait: self.optional_cycles(&mut s, "wait"),
            handoff: self.optional_cycles(&mut s, "handoff"),
            named_barrier: self.optional_cycles(&mut s, "named_barrier"),
            fence: self.optional_cycles(&mut s, "fence"),
            set_registers: self.optional_cycles(&mut s, "set_registers"),
        };
        self.finish(s);
        read
    }

    fn power(&mut self, mut s: Section<'_>) -> Option<Power> {
        let clock_mhz = self.number(&mut s, "clock_mhz", "MHz", Allowed::Positive);
        let limit_watts = self.number(&mut s, "limit_watts", "W", Allowed::Positive);
        let burst_watts = self.number(&mut s, "burst_watts", "W", Allowed::Positive);
        let base_watts = self.number(&mut s, "base_watts", "W", Allowed::NotNegative);
        let tensor_pj_per_flop = self.number(&mut s, "tensor_pj_per_flop", "pJ/FLOP", Allowed::NotNegative);
        let l2_pj_per_byte = self.number(&mut s, "l2_pj_per_byte", "pJ/byte", Allowed::NotNegative);
        self.finish(s);
        Some(Power {
            clock_mhz: clock_mhz?,
            limit_watts: limit_watts?,
            burst_watts: burst_watts?,
            base_watts: base_watts?,
            tensor_pj_per_flop: tensor_pj_per_flop?,
            l2_pj_per_byte: l2_pj_per_byte?,
        })
    }

    /// A whole number of cycles that may be absent.
    pub(crate) fn optional_cycles(&mut self, s: &mut Section<'_>, key: &str) -> Option<Cycles> {
        let cycles = self.optional_number(s, key, "cycles", Allowed::Whole(0, LARGEST_CYCLES))?;
        Some(Cycles(cycles as i64))
    }

    /// A whole number of cycles.
    fn cycles(&mut self, s: &mut Section<'_>, key: &str) -> Option<Cycles> {
        let cycles = self.whole(s, key, "cycles", 0, LARGEST_CYCLES)?;
        i64::try_from(cycles).ok().map(Cycles)
    }

    /// A whole number of at most 32 bits.
    fn small(&mut self, s: &mut Section<'_>, key: &str, unit: &'static str, low: u32, high: u32) -> Option<u32> {
        self.whole(s, key, unit, low.into(), high.into()).and_then(|value| u32::try_from(value).ok())
    }
}

struct MemoryTable {
    shared: Bytes,
    shared_per_cycle: Option<Bytes>,
    shared_transfer_share: f64,
    tensor: Columns,
    tensor_lanes: Option<u64>,
}

#[derive(Clone, Copy)]
struct GroupsTable {
    variable_latency: Option<FixedGroup>,
    issue: Option<FixedGroup>,
    compute: ComputePool,
}

struct TilesTable {
    sub_tile_rows: u64,
    row_statistic_copies: u64,
}

struct LatencyTable {
    handoff: f64,
    handoff_per_kb: f64,
    transfer: Cycles,
}

/// `None` for a table that is there and wrong; `Some(None)` for one that is not there.
fn present<T>(table: Option<Option<T>>) -> Option<Option<T>> {
    match table {
        None => Some(None),
        Some(None) => None,
        Some(table) => Some(table),
    }
}
