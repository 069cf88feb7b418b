//! A kernel's warp programs as a file of CUDA C++.

use super::group::Printer;
use super::names;
use super::one_thread::is_one_thread;
use super::storage::{Storage, WARP_GROUP, Warps, extents, parameters};
use super::{host, instruction, scratch, tensor_memory, tiles, trace, wave_sync};
use crate::header::Header;
use std::fmt::Write as _;
use twill_codegen::Error;
use twill_codegen::ir::BarrierId;
use twill_codegen::ir::{Arrival, Buffer, Group, WarpProgram};
use twill_codegen::passes::multicast::CTAS;
use twill_triton::mlir::{FloatKind, Type};

/// A group's function.
pub(super) struct PrintedGroup {
    /// Its text.
    pub text: String,
    /// Bytes of scratch memory that it needs at least; none if it needs none.
    pub scratch: Option<u64>,
}

impl PrintedGroup {
    /// Whether it calls what is in `twill_scratch.cuh`.
    pub fn uses_scratch_primitives(&self) -> bool {
        self.scratch.is_some() || self.text.contains("mma_with_shared(") || self.text.contains("bits_as<")
    }
}

/// The functions of all groups.
///
/// # Errors
/// For what only the Gluon back end can write.
pub(super) fn groups(kernel: &WarpProgram) -> Result<Vec<PrintedGroup>, Error> {
    let each = kernel.groups.iter().enumerate();
    each.map(|(number, group)| Printer::new(kernel, group, number).group()).collect()
}

/// The source.
pub(super) fn print(kernel: &WarpProgram, header: &Header) -> Result<String, Error> {
    wave_sync::check(kernel)?;
    let warps = Warps::of(kernel)?;
    let groups = groups(kernel)?;
    let scratch: Vec<Option<u64>> = groups.iter().map(|group| group.scratch).collect();
    let storage = Storage::of(kernel, &scratch);
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
    if groups.iter().any(PrintedGroup::uses_scratch_primitives) {
        out.push_str("#include \"twill_scratch.cuh\"\n");
    }
    let has_tensor_memory = tensor_memory::is_used(kernel);
    if has_tensor_memory {
        out.push_str("#include \"twill_tcgen05.cuh\"\n");
    }
    if kernel.cluster.is_some() {
        out.push_str("#include \"twill_cluster.cuh\"\n");
    }
    if kernel.tile_scheduler.wave_sync {
        out.push_str("#include \"twill_wave_sync.cuh\"\n");
    }
    let is_float8 = |element: &Type| matches!(element, Type::Float(FloatKind::F8E4M3FN | FloatKind::F8E5M2));
    if kernel.buffers.iter().any(|buffer| is_float8(&buffer.element))
        || groups.iter().any(|group| group.text.contains("__nv_fp8_"))
    {
        out.push_str("#include <cuda_fp8.h>\n");
    }
    out.push_str("#ifndef __CUDACC_RTC__\n#include \"kernel.h\"\n#endif\n\nnamespace twill {\n");
    if !has_tensor_memory {
        out.push_str("\n// The MMAs of this kernel.\n");
        out.push_str(&instruction::definitions(kernel)?);
    }
    out.push_str("\nnamespace {\n\n// Shared memory.\nextern __shared__ __align__(1024) unsigned char shared[];\n");
    out.push_str("TWILL u32 shared_at(u32 byte) { return u32(__cvta_generic_to_shared(shared)) + byte; }\n\n");
    let shared = |b: &Buffer| !b.is_tensor();
    for (buffer, at) in kernel.buffers.iter().zip(&storage.buffers).filter(|(b, _)| shared(b)) {
        out.push_str(&smem_tile(buffer, *at)?);
    }
    for (k, (at, bytes)) in storage.scratch.iter().enumerate().filter(|(_, (_, bytes))| *bytes > 0) {
        let group = &kernel.groups[k];
        let (kind, name) = (scratch_memory(k, group, *bytes), scratch::name(&group.name));
        let _ = writeln!(out, "TWILL {kind} {name}() {{ return {{shared_at({at})}}; }}");
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
    for group in groups {
        let _ = write!(out, "\n{}", group.text);
    }
    out.push_str("\n}  // namespace\n\n");
    out.push_str(&entry(kernel, &warps, &storage)?);
    out.push_str("\n}  // namespace twill\n");
    out.push_str(&host::entry(kernel, &warps, &storage)?);
    Ok(out)
}

/// The type of a group's scratch memory.
fn scratch_memory(number: usize, group: &Group, bytes: u64) -> String {
    format!("scratch_memory<{}, {}, {bytes}>", number + 1, 32 * group.warps)
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
    if kernel.dependent_launch {
        out.push_str("  // Programmatic dependent launch: the grids before this one may still run.\n");
        out.push_str("  asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n");
    }
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
