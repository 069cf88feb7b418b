//! What a kernel in CUDA takes of its CTA: parameters, shared memory, warps and registers.

use super::names::{self, missing};
use super::{scratch, tensor_memory};
use twill_codegen::Error;
use twill_codegen::ir::{Buffer, Group, WarpProgram};
use twill_graph::narrow;
use twill_triton::mlir::Type;

/// Warps whose registers change by one `setmaxnreg`.
pub(super) const WARP_GROUP: u32 = 4;
/// Registers of a multiprocessor.
const REGISTERS: u32 = 65536;
/// Most registers of a thread, and the steps they are allotted in (`setmaxnreg`).
const MOST_REGISTERS: u32 = 255;
const GRANULE: u32 = 8;
/// Barriers of the kernel's own: 0 is everybody's, and those of ping-pong begin at 8.
const MOST_GROUPS: usize = 7;

/// A parameter of the kernel and of its groups.
pub(super) struct Parameter {
    /// As the kernel takes it.
    pub declared: String,
    /// As a group takes it.
    pub borrowed: String,
    /// Its name.
    pub name: String,
}

/// Those of the kernel, in order: descriptors, what the user gave, extents of the grid.
pub(super) fn parameters(kernel: &WarpProgram) -> Result<Vec<Parameter>, Error> {
    let mut all = Vec::new();
    for descriptor in &kernel.descriptors {
        let name = names::name(&descriptor.name);
        let (declared, borrowed) =
            (format!("const __grid_constant__ tensor_map {name}"), format!("const tensor_map &{name}"));
        all.push(Parameter { declared, borrowed, name });
    }
    for parameter in kernel.parameters.iter().filter(|p| !matches!(p.kind, Type::TensorDescriptor(_))) {
        let name = names::name(&parameter.name);
        let text = format!("{} {name}", names::element(&parameter.kind)?).replace("* ", "*");
        all.push(Parameter { declared: text.clone(), borrowed: text, name });
    }
    for axis in ["x", "y", "z"] {
        let (name, text) = (format!("programs_{axis}"), format!("int programs_{axis}"));
        all.push(Parameter { declared: text.clone(), borrowed: text, name });
    }
    Ok(all)
}

/// Where things are in shared memory, in bytes.
pub(super) struct Storage {
    /// By buffer.
    pub buffers: Vec<u64>,
    /// By group, scratch memory: where, and how much; 0 bytes where there is none.
    pub scratch: Vec<(u64, u64)>,
    /// The barriers.
    pub barriers: u64,
    /// Where tensor memory begins, if there is any.
    pub tensor: u64,
    /// All of it.
    pub total: u64,
}

impl Storage {
    /// Tiles begin where their pattern of swizzling does. `scratch` says how much groups need at least.
    pub fn of(kernel: &WarpProgram, scratch: &[Option<u64>]) -> Storage {
        const PATTERN: u64 = 1024;
        const LINE: u64 = 128;
        let mut at = 0;
        let mut buffers = vec![0; kernel.buffers.len()];
        // Those without a pattern stand last, so that nothing is left free between the others.
        for patterned in [true, false] {
            let each = kernel.buffers.iter().enumerate().filter(|(_, b)| (extents(b)[0] > 1) == patterned);
            for (k, buffer) in each {
                at = u64::next_multiple_of(at, if patterned { PATTERN } else { LINE });
                buffers[k] = at;
                at += buffer.shared_bytes();
            }
        }
        at = at.next_multiple_of(LINE);
        let rest = kernel.barrier_bytes() + tensor_memory::shared_bytes(kernel) + LINE;
        let sizes = scratch::sizes(scratch, at + rest);
        let mut scratch = Vec::new();
        for size in sizes {
            scratch.push((at, size));
            at += size;
        }
        let barriers = at.next_multiple_of(8);
        let tensor = barriers + kernel.barrier_bytes();
        Storage { buffers, scratch, barriers, tensor, total: tensor + tensor_memory::shared_bytes(kernel) }
    }
}

/// Rows and columns of a buffer's tile; one row where it has one dimension, and one element of a number.
pub(super) fn extents(buffer: &Buffer) -> [u64; 2] {
    match buffer.shape.as_slice() {
        [rows @ .., columns] => [rows.iter().product(), *columns],
        [] => [1, 1],
    }
}

/// Which warps of the CTA are whose, and how many registers they have.
pub(super) struct Warps {
    /// By warp group: registers, and its groups with the warps at which they begin.
    pub warp_groups: Vec<(u32, Vec<(usize, u32)>)>,
    /// Registers of a thread where the kernel begins.
    pub first_registers: u32,
}

impl Warps {
    /// Whole warp groups first, and what is smaller after them.
    pub fn of(kernel: &WarpProgram) -> Result<Warps, Error> {
        if kernel.groups.len() > MOST_GROUPS {
            return Err(missing(format!("a kernel of {} warp groups", kernel.groups.len())));
        }
        let mut order: Vec<usize> = (0..kernel.groups.len()).collect();
        order.sort_by_key(|k| std::cmp::Reverse(kernel.groups[*k].warps));
        let mut warp_groups: Vec<(u32, Vec<(usize, u32)>)> = Vec::new();
        let mut at = 0;
        for k in order {
            let Group { warps, registers, .. } = &kernel.groups[k];
            if !warps.is_power_of_two() {
                return Err(missing(format!("a group of {warps} warps")));
            }
            at = u32::next_multiple_of(at, (*warps).min(WARP_GROUP));
            for part in 0..warps.div_ceil(WARP_GROUP) {
                let number = (at / WARP_GROUP + part) as usize;
                if warp_groups.len() <= number {
                    warp_groups.push((0, Vec::new()));
                }
                warp_groups[number].0 = warp_groups[number].0.max(registers.next_multiple_of(GRANULE));
                warp_groups[number].1.push((k, at));
            }
            at += warps;
        }
        let threads = 32 * WARP_GROUP * narrow(warp_groups.len());
        let first_registers = (REGISTERS / threads.max(1)).min(MOST_REGISTERS) / GRANULE * GRANULE;
        // Nobody may wait for registers that nobody gives back.
        while warp_groups.iter().map(|(r, _)| r * 32 * WARP_GROUP).sum::<u32>() > REGISTERS {
            let Some(most) = warp_groups.iter_mut().max_by_key(|(r, _)| *r) else { break };
            most.0 -= GRANULE;
        }
        Ok(Warps { warp_groups, first_registers })
    }

    /// Threads of a CTA.
    pub fn threads(&self) -> u32 {
        32 * WARP_GROUP * narrow(self.warp_groups.len())
    }
}
