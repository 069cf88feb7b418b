//! A kernel's warp programs as a file of CUDA C++.

use super::group::{Printer, is_one_thread};
use super::names::{self, missing};
use super::{host, instruction, tensor_memory, tiles, trace, wave_sync};
use crate::gluon::Header;
use std::fmt::Write as _;
use twill_codegen::Error;
use twill_codegen::ir::BarrierId;
use twill_codegen::ir::{Arrival, Buffer, Group, WarpProgram};
use twill_codegen::passes::multicast::CTAS;
use twill_graph::narrow;
use twill_triton::mlir::Type;

/// Warps whose registers change by one `setmaxnreg`.
const WARP_GROUP: u32 = 4;
/// Registers of a multiprocessor.
const REGISTERS: u32 = 65536;
/// Most registers of a thread, and the steps they are allotted in (`setmaxnreg`).
const MOST_REGISTERS: u32 = 255;
const GRANULE: u32 = 8;
/// Barriers of the kernel's own: 0 is everybody's, and pingpong begin at 8.
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
    /// The barriers.
    pub barriers: u64,
    /// Where tensor memory begins, if there is any.
    pub tensor: u64,
    /// All of it.
    pub total: u64,
}

impl Storage {
    /// Tiles begin where their pattern of swizzling does.
    pub fn of(kernel: &WarpProgram) -> Storage {
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
        let barriers = at.next_multiple_of(8);
        let tensor = barriers + kernel.barrier_bytes();
        Storage { buffers, barriers, tensor, total: tensor + tensor_memory::shared_bytes(kernel) }
    }
}

/// Rows and columns of a buffer's tile; one row where it has one dimension.
pub(super) fn extents(buffer: &Buffer) -> [u64; 2] {
    match buffer.shape.as_slice() {
        [rows @ .., columns] => [rows.iter().product(), *columns],
        [] => [0, 0],
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

/// The source.
pub(super) fn print(kernel: &WarpProgram, header: &Header) -> Result<String, Error> {
    wave_sync::check(kernel)?;
    let warps = Warps::of(kernel)?;
    let storage = Storage::of(kernel);
    let mut out = String::new();
    for line in header.text(kernel).trim_end().lines() {
        // A backslash at the end, also before blanks, would join the next line.
        let ends = |c: char| c.is_whitespace() || c == '\\';
        let _ = writeln!(out, "{}", format!("// {line}").trim_end_matches(ends));
    }
    let _ = write!(
        out,
        "//\n// nvcc -std=c++17 -O3 -gencode=arch=compute_{},code={} -c kernel.cu\n\n{}#include \"twill.cuh\"\n",
        header.architecture.trim_start_matches("sm_"),
        header.architecture,
        if kernel.cluster.is_some() { "#define TWILL_CLUSTER\n" } else { "" }
    );
    let has_tensor_memory = tensor_memory::is_used(kernel);
    if has_tensor_memory {
        out.push_str("#include \"twill_tcgen05.cuh\"\n");
    }
    if kernel.cluster.is_some() {
        out.push_str("#include \"twill_cluster.cuh\"\n");
    }
    if kernel.tiling.wave_sync {
        out.push_str("#include \"twill_wave_sync.cuh\"\n");
    }
    out.push_str("#ifndef __CUDACC_RTC__\n#include \"kernel.h\"\n#endif\n\nnamespace twill {\n");
    if !has_tensor_memory {
        out.push_str("\n// The MMAs of this kernel.\n");
        out.push_str(&instruction::definitions(kernel)?);
    }
    out.push_str("\nnamespace {\n\n// Shared memory.\nextern __shared__ __align__(1024) unsigned char shared[];\n");
    out.push_str("TWILL u32 shared_at(u32 byte) { return u32(__cvta_generic_to_shared(shared)) + byte; }\n\n");
    let shared = |b: &Buffer| !b.shape.is_empty() && !b.is_tensor();
    for (buffer, at) in kernel.buffers.iter().zip(&storage.buffers).filter(|(b, _)| shared(b)) {
        out.push_str(&smem_tile(buffer, *at)?);
    }
    if has_tensor_memory {
        out.push_str(&tensor_memory::tmem_tiles(kernel, storage.tensor)?);
    }
    out.push_str("\n// Barriers: where those of each kind begin.\n");
    let _ = writeln!(out, "TWILL u32 bars(u32 number) {{ return shared_at({} + 8 * number); }}", storage.barriers);
    for (k, barriers) in kernel.barriers.iter().enumerate() {
        let _ = writeln!(out, "constexpr u32 {} = {};", barriers.name.to_uppercase(), first_barrier(kernel, k));
    }
    out.push_str(&tiles::order(kernel));
    if let Some(traced) = &kernel.trace {
        out.push_str(&trace::definitions(traced));
    }
    for (k, group) in kernel.groups.iter().enumerate() {
        let _ = write!(out, "\n{}", Printer::new(kernel, group, k).group()?);
    }
    out.push_str("\n}  // namespace\n\n");
    out.push_str(&entry(kernel, &warps, &storage)?);
    out.push_str("\n}  // namespace twill\n");
    out.push_str(&host::entry(kernel, &warps, &storage)?);
    Ok(out)
}

/// A buffer as a function from a slot to its tile in shared memory.
fn smem_tile(buffer: &Buffer, at: u64) -> Result<String, Error> {
    let [rows, columns] = extents(buffer);
    let kind = format!("smem_tile<{}, {rows}, {columns}>", names::element(&buffer.element)?);
    let bytes = buffer.bytes() / u64::from(buffer.slots.max(1));
    let name = names::name(&buffer.name);
    Ok(if buffer.slots > 1 {
        format!("TWILL {kind} {name}(u32 slot) {{ return {{shared_at({at}) + slot * {bytes}}}; }}\n")
    } else {
        format!("TWILL {kind} {name}() {{ return {{shared_at({at})}}; }}\n")
    })
}

fn first_barrier(kernel: &WarpProgram, index: usize) -> u32 {
    kernel.barriers[..index].iter().map(|b| b.slots).sum()
}

/// The kernel: barriers, then every warp to its group.
fn entry(kernel: &WarpProgram, warps: &Warps, storage: &Storage) -> Result<String, Error> {
    let parameters = parameters(kernel)?;
    let declared: Vec<&str> = parameters.iter().map(|p| p.declared.as_str()).collect();
    let cluster = kernel.cluster.as_ref().map_or(String::new(), |_| format!("__cluster_dims__({CTAS}, 1, 1) "));
    let mut out = format!(
        "extern \"C\" __global__ void {cluster}__launch_bounds__({}, 1) {}(\n    {}) {{\n",
        warps.threads(),
        names::name(&kernel.name),
        declared.join(",\n    ")
    );
    out.push_str("  if (threadIdx.x == 0) {\n");
    for descriptor in &kernel.descriptors {
        let _ = writeln!(out, "    prefetch({});", names::name(&descriptor.name));
    }
    for (k, barriers) in kernel.barriers.iter().enumerate() {
        let id = BarrierId::at(k);
        let ctas = if kernel.has_arrivals_of_both_ctas(id) { CTAS } else { 1 };
        let arrivals: u32 = barriers
            .arrivals
            .iter()
            .map(|a| match a {
                Arrival::Unit => 1,
                Arrival::Threads { warps } => *warps,
                Arrival::EachThread { warps } => 32 * warps,
            })
            .sum();
        let name = barriers.name.to_uppercase();
        let _ = writeln!(
            out,
            "    for (int k = 0; k < {}; k++) mbarrier_init(bars({name} + k), {});",
            barriers.slots,
            arrivals.max(1) * ctas
        );
    }
    let has_tensor_memory = tensor_memory::is_used(kernel);
    if has_tensor_memory {
        out.push_str("    mbarrier_init(last_mma(), 1);\n");
    }
    out.push_str("    fence_mbarrier_init();\n  }\n");
    if has_tensor_memory {
        out.push_str(&tensor_memory::begin(kernel, storage.tensor));
    } else if kernel.cluster.is_some() {
        out.push_str("  cluster_sync();\n");
    } else {
        out.push_str("  __syncthreads();\n");
    }
    let passed = parameters.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(", ");
    out.push_str("  const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);\n");
    for (number, (registers, groups)) in warps.warp_groups.iter().enumerate() {
        let keyword = if number == 0 { "  if" } else { " else if" };
        let _ = writeln!(out, "{keyword} (warp / 4 == {number}) {{");
        if *registers != warps.first_registers {
            let more = if *registers > warps.first_registers { "inc" } else { "dec" };
            let _ = writeln!(out, "    setmaxnreg_{more}<{registers}>();");
        }
        for (k, first) in groups {
            let group = &kernel.groups[*k];
            let call = format!("{}({passed});", names::name(&group.name));
            if group.warps >= WARP_GROUP {
                let _ = writeln!(out, "    {call}");
            } else if group.warps == 1 {
                let elected = if is_one_thread(kernel, group) { " && elected()" } else { "" };
                let _ = writeln!(out, "    if (warp == {first}{elected}) {call}");
            } else {
                let last = first + group.warps;
                let _ = writeln!(out, "    if (warp >= {first} && warp < {last}) {call}");
            }
        }
        out.push_str("  }");
    }
    out.push('\n');
    if has_tensor_memory {
        out.push_str(&tensor_memory::end(kernel, storage.tensor));
    }
    if kernel.cluster.is_some() {
        out.push_str("  cluster_sync();\n");
    }
    out.push_str("}\n");
    Ok(out)
}
