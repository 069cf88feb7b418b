//! The resources of a machine for one loop: functional units, memories, registers, warp groups.

use crate::names::{self, NameFault};
use crate::{Bytes, Columns, UnitId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use thiserror::Error;

/// The resources of one streaming multiprocessor, as far as scheduling needs them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// Name of the machine.
    pub name: String,
    /// Functional units.
    pub units: Vec<Unit>,
    /// Shared memory of one thread block, in bytes.
    pub shared_memory: Bytes,
    /// Tensor memory of one thread block, in columns; 0 where there is none.
    #[serde(default)]
    pub tensor_memory: Columns,
    /// Bytes of shared memory that the tensor core and threads together read or write in a cycle; where it is not
    /// given, bandwidth bounds nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_bytes_per_cycle: Option<Bytes>,
    /// The register file.
    pub registers: RegisterFile,
    /// The group that runs all variable-latency operations and nothing else; absent on machines
    /// without warp specialisation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable_latency_group: Option<FixedGroup>,
    /// The warp that issues tensor operations issued by one warp; absent where a whole warp group
    /// issues them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue_group: Option<FixedGroup>,
    /// The compute groups, whose number is minimised.
    pub compute_groups: ComputePool,
}

/// A kind of functional unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// Name, as Nsight Compute has it.
    pub name: String,
    /// Instances that can be held in the same cycle.
    #[serde(default = "one")]
    pub capacity: u32,
}

/// A warp group that is always there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FixedGroup {
    /// Warps that work.
    pub warps: u32,
    /// Warps whose registers are paid for (registers are granted to four warps at a time).
    pub allocated_warps: u32,
    /// Registers of each of its threads.
    pub registers_per_thread: u32,
}

/// The pool of compute groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComputePool {
    /// Warps of each compute group.
    pub warps: u32,
    /// Most groups that a schedule may use.
    pub maximum: u32,
}

/// The register file and its allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterFile {
    /// 32-bit registers shared by all threads of the block.
    pub words: u64,
    /// Least registers a thread can be given.
    pub minimum_per_thread: u32,
    /// Most registers a thread can address.
    pub maximum_per_thread: u32,
    /// Registers are allocated in multiples of this.
    pub granularity: u32,
    /// Registers of each thread that hold addresses and temporaries, not tiles.
    pub reserve_per_thread: u32,
}

fn one() -> u32 {
    1
}

/// Threads of a warp.
pub(crate) const WARP_THREADS: u64 = 32;

/// Why a description of resources makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ResourcesError {
    /// A number is out of range.
    #[error("machine `{machine}`: `{field}` is {value}; it must be {expected}")]
    Number {
        /// The machine.
        machine: String,
        /// The field.
        field: String,
        /// The given value.
        value: u64,
        /// The allowed values.
        expected: &'static str,
    },
    /// The register file does not hold what groups have in every schedule.
    #[error(
        "machine `{machine}`: `registers.words` is {words}; it must be at least {fixed}, 32 · allocated_warps · \
         registers_per_thread of variable_latency_group and issue_group together"
    )]
    RegisterFile {
        /// The machine.
        machine: String,
        /// Words of the file.
        words: u64,
        /// Words that are always taken.
        fixed: u64,
    },
    /// A name that cannot be shown.
    #[error("{what} is named {name}: {fault}")]
    Name {
        /// The kind of thing that has the name.
        what: &'static str,
        /// The name in quotes, or its beginning.
        name: String,
        /// The fault.
        fault: NameFault,
    },
    /// Two units share a name.
    #[error("machine `{machine}` declares the unit `{unit}` twice")]
    DuplicateUnit {
        /// The machine.
        machine: String,
        /// The unit.
        unit: String,
    },
}

impl Resources {
    /// The unit with this name.
    pub fn unit(&self, name: &str) -> Option<UnitId> {
        self.units.iter().position(|u| u.name == name).map(UnitId::new)
    }

    /// Most tile words that a thread group of `warps` warps holds with `registers` registers a
    /// thread: `32 · warps · (min(registers, maximum) − reserve)`.
    pub fn tile_words(&self, warps: u32, registers: u32) -> u64 {
        let usable = registers.min(self.registers.maximum_per_thread).saturating_sub(self.registers.reserve_per_thread);
        WARP_THREADS * u64::from(warps) * u64::from(usable)
    }

    /// Registers a thread, in whole granules, that hold `words` tile words on a compute
    /// group; `None` when no thread can address that many.
    pub fn registers_for(&self, words: u64) -> Option<u32> {
        let file = &self.registers;
        let threads = WARP_THREADS * u64::from(self.compute_groups.warps);
        let needed = words.div_ceil(threads) + u64::from(file.reserve_per_thread);
        if needed > u64::from(file.maximum_per_thread) {
            return None;
        }
        let granule = u64::from(file.granularity);
        let granted = needed.div_ceil(granule) * granule;
        u32::try_from(granted).ok().map(|r| r.max(file.minimum_per_thread))
    }

    /// Registers left for compute groups after the fixed groups have theirs.
    pub fn compute_register_budget(&self) -> u64 {
        self.registers.words.saturating_sub(self.fixed_registers())
    }

    /// Registers that the fixed groups take from the file.
    fn fixed_registers(&self) -> u64 {
        let fixed = [self.variable_latency_group, self.issue_group].into_iter().flatten();
        fixed.map(|g| WARP_THREADS * u64::from(g.allocated_warps) * u64::from(g.registers_per_thread)).sum()
    }

    /// Registers that one compute group takes from the file with `registers` a thread.
    pub fn compute_group_cost(&self, registers: u32) -> u64 {
        WARP_THREADS * u64::from(self.compute_groups.warps) * u64::from(registers)
    }

    /// Refuses numbers that no machine has and no formula can use.
    ///
    /// # Errors
    /// Names the machine and the field.
    pub fn check(&self) -> Result<(), ResourcesError> {
        let number = |field: &str, value: u64, low: u64, high: u64, expected: &'static str| {
            if (low..=high).contains(&value) {
                return Ok(());
            }
            Err(ResourcesError::Number { machine: self.name.clone(), field: field.into(), value, expected })
        };
        let named = [("a machine", &self.name)].into_iter().chain(self.units.iter().map(|u| ("a unit", &u.name)));
        for (what, name) in named {
            if let Some(fault) = names::fault(name) {
                return Err(ResourcesError::Name { what, name: names::quoted(name), fault });
            }
        }
        let mut seen = HashSet::new();
        for unit in &self.units {
            if !seen.insert(unit.name.as_str()) {
                return Err(ResourcesError::DuplicateUnit { machine: self.name.clone(), unit: unit.name.clone() });
            }
            number(&format!("units.{}.capacity", unit.name), unit.capacity.into(), 1, 1 << 16, "from 1 to 65536")?;
        }
        let memory = "at most 2^40";
        number("shared_memory", self.shared_memory.0, 0, 1 << 40, memory)?;
        number("tensor_memory", self.tensor_memory.0, 0, 1 << 40, memory)?;
        if let Some(rate) = self.shared_bytes_per_cycle {
            number("shared_bytes_per_cycle", rate.0, 1, 1 << 40, "from 1 to 2^40")?;
        }
        number("registers.words", self.registers.words, 1, 1 << 40, "from 1 to 2^40")?;
        let r = &self.registers;
        let small = "from 1 to 65536";
        number("registers.granularity", r.granularity.into(), 1, 1 << 16, small)?;
        number("registers.maximum_per_thread", r.maximum_per_thread.into(), 1, 1 << 16, small)?;
        // Whole granules are allocated, which can be more than a thread can address (256 for 255).
        let granted = u64::from(r.maximum_per_thread).next_multiple_of(r.granularity.into());
        let at_most = "at most registers.maximum_per_thread in whole granules";
        number("registers.minimum_per_thread", r.minimum_per_thread.into(), 0, granted, at_most)?;
        if !r.minimum_per_thread.is_multiple_of(r.granularity) {
            // An empty range: no value but a multiple will do.
            let multiple = "a multiple of registers.granularity";
            number("registers.minimum_per_thread", r.minimum_per_thread.into(), 1, 0, multiple)?;
        }
        number(
            "registers.reserve_per_thread",
            r.reserve_per_thread.into(),
            0,
            r.maximum_per_thread.into(),
            "at most registers.maximum_per_thread",
        )?;
        number("compute_groups.warps", self.compute_groups.warps.into(), 1, 64, "from 1 to 64")?;
        number("compute_groups.maximum", self.compute_groups.maximum.into(), 1, 16, "from 1 to 16")?;
        for (field, group) in
            [("variable_latency_group", self.variable_latency_group), ("issue_group", self.issue_group)]
        {
            if let Some(g) = group {
                number(&format!("{field}.warps"), g.warps.into(), 1, 64, "from 1 to 64")?;
                number(
                    &format!("{field}.allocated_warps"),
                    g.allocated_warps.into(),
                    g.warps.into(),
                    64,
                    "from its `warps` to 64",
                )?;
                number(
                    &format!("{field}.registers_per_thread"),
                    g.registers_per_thread.into(),
                    0,
                    1 << 16,
                    "at most 65536",
                )?;
            }
        }
        let (machine, words, fixed) = (self.name.clone(), r.words, self.fixed_registers());
        if words < fixed { Err(ResourcesError::RegisterFile { machine, words, fixed }) } else { Ok(()) }
    }
}
