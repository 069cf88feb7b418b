//! The entry from C: it checks its arguments, makes tensor maps and launches.

use super::names::{self, missing};
use super::storage::{Storage, Warps};
use super::tiles;
use std::fmt::Write as _;
use twill_codegen::Error;
use twill_codegen::ir::{Amount, Descriptor, MulticastRing, Parameter, Syntax, WarpProgram};
use twill_codegen::passes::multicast::CTAS;
use twill_triton::mlir::{FloatKind, Type};

/// Most elements of a box along one dimension ("cuTensorMapEncodeTiled").
const LONGEST_BOX: u64 = 256;

/// What `kernel.h` says of tensors.
const TENSORS: &str =
    "/* A tensor in the memory of the GPU: shape and strides in elements, the last dimension contiguous. */
#ifndef TWILL_TENSOR
#define TWILL_TENSOR
typedef struct {
  void *data;
  long long shape[5];
  long long strides[5];
} twill_tensor;
#endif
";

/// The header for callers in C or C++.
pub(super) fn header(kernel: &WarpProgram) -> Result<String, Error> {
    let guard = format!("TWILL_{}_H", kernel.name.to_uppercase());
    Ok(format!(
        "#ifndef {guard}
#define {guard}

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern \"C\" {{
#endif

{TENSORS}
/* Launches on a stream, for a grid of the Triton kernel's programs. NULL, or why not: a text until the thread's next call. */
const char *{}({});

#ifdef __cplusplus
}}
#endif
#endif
",
        entry_name(kernel),
        taken(kernel)?
    ))
}

fn entry_name(kernel: &WarpProgram) -> String {
    format!("{}_launch", kernel.name)
}

/// A parameter of the entry: what the entry itself calls things gets an underscore after it.
fn own(text: &str) -> String {
    const RESERVED: [&str; 13] = [
        "cta_count",
        "ctas",
        "describe",
        "device",
        "failed",
        "grid",
        "multiprocessors",
        "refuse",
        "restrict",
        "stream",
        "unfit",
        "why",
        "zeros",
    ];
    if RESERVED.contains(&text) { format!("{text}_") } else { names::name(text) }
}

/// The parameters of the entry.
fn taken(kernel: &WarpProgram) -> Result<String, Error> {
    let mut all = Vec::new();
    for parameter in &kernel.parameters {
        let name = own(&parameter.name);
        all.push(match &parameter.kind {
            Type::TensorDescriptor(_) => format!("const twill_tensor *{name}"),
            Type::Pointer { .. } => format!("void *{name}"),
            Type::Integer(64) => format!("long long {name}"),
            Type::Integer(8) => format!("signed char {name}"),
            other => {
                let kind = names::element(other)?;
                if kind.starts_with("__") || kind == "bool" {
                    return Err(missing(format!("a parameter of type {other}")));
                }
                format!("{kind} {name}")
            }
        });
    }
    all.extend(["x", "y", "z"].map(|axis| format!("int programs_{axis}")));
    all.push("cudaStream_t stream".into());
    Ok(all.join(", "))
}

/// How TMA copies the tiles of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boxes {
    /// Extents of a box.
    pub extents: Vec<u64>,
    /// Bytes of a swizzled line: 128, 64, 32, or 0.
    pub swizzle: u64,
}

impl Boxes {
    /// A tile is copied panel by panel, as `smem_tile` of the primitives has them; of what both CTAs of a cluster load, each copies
    /// one half of the rows.
    pub(super) fn of(kernel: &WarpProgram, descriptor: &Descriptor) -> Result<Boxes, Error> {
        let size = u64::from(descriptor.element.scalar_bits().unwrap_or(32) / 8);
        let columns = descriptor.block.last().copied().unwrap_or(1);
        let bytes = columns * size;
        let line = [128, 64, 32].into_iter().find(|line| bytes % line == 0).unwrap_or(bytes);
        let rows: u64 = descriptor.block.iter().rev().skip(1).product();
        let mut extents = descriptor.block.clone();
        if let Some(last) = extents.last_mut() {
            *last = line / size.max(1);
        }
        let is_half = |ring: &MulticastRing| kernel.descriptors[ring.descriptor.index()] == *descriptor;
        if kernel.cluster.as_ref().is_some_and(|cluster| cluster.rings.iter().any(is_half)) {
            extents[0] /= u64::from(CTAS);
        }
        if extents.len() > 4 || extents.iter().any(|n| *n > LONGEST_BOX) {
            return Err(missing(format!("copies of blocks of {:?}", descriptor.block)));
        }
        Ok(Boxes { extents, swizzle: if rows > 1 && (32..=128).contains(&line) { line } else { 0 } })
    }
}

/// CUDA's name of an element in a tensor map.
fn data_type(kind: &Type) -> Result<&'static str, Error> {
    Ok(match kind {
        Type::Float(FloatKind::F16) => "CU_TENSOR_MAP_DATA_TYPE_FLOAT16",
        Type::Float(FloatKind::BF16) => "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16",
        Type::Float(FloatKind::F32) => "CU_TENSOR_MAP_DATA_TYPE_FLOAT32",
        Type::Float(FloatKind::F64) => "CU_TENSOR_MAP_DATA_TYPE_FLOAT64",
        Type::Integer(8) => "CU_TENSOR_MAP_DATA_TYPE_UINT8",
        Type::Integer(16) => "CU_TENSOR_MAP_DATA_TYPE_UINT16",
        Type::Integer(32) => "CU_TENSOR_MAP_DATA_TYPE_INT32",
        Type::Integer(64) => "CU_TENSOR_MAP_DATA_TYPE_INT64",
        other => return Err(missing(format!("copies of {other}"))),
    })
}

/// The entry.
pub(super) fn entry(kernel: &WarpProgram, warps: &Warps, storage: &Storage) -> Result<String, Error> {
    let mut body = String::new();
    for parameter in &kernel.parameters {
        check(&mut body, parameter);
        check_least(&mut body, parameter);
    }
    for (k, descriptor) in kernel.descriptors.iter().enumerate() {
        let is_first = kernel.descriptors[..k].iter().all(|d| d.parameter != descriptor.parameter);
        // Blocks of one descriptor are of one tensor.
        if is_first || descriptor.matrix.is_some() {
            check_tensor(&mut body, descriptor);
        }
    }
    body.push_str(&grid(kernel));
    for descriptor in &kernel.descriptors {
        body.push_str(&map(kernel, descriptor)?);
    }
    let name = names::name(&kernel.name);
    let passed: Vec<String> = super::storage::parameters(kernel)?
        .into_iter()
        .map(|p| match kernel.parameters.iter().find(|q| names::name(&q.name) == p.name) {
            Some(Parameter { name, kind: Type::Pointer { pointee, .. }, .. }) => {
                names::element(pointee).map(|kind| format!("static_cast<{kind} *>({})", own(name)))
            }
            Some(Parameter { name, .. }) => Ok(own(name)),
            None => Ok(p.name),
        })
        .collect::<Result<_, Error>>()?;
    let _ = write!(
        body,
        "  failed = cudaFuncSetAttribute(twill::{name}, cudaFuncAttributeMaxDynamicSharedMemorySize, {total});
  if (failed != cudaSuccess) return refuse(\"the kernel\", cudaGetErrorString(failed));
  twill::{name}<<<unsigned(ctas), {threads}, {total}, stream>>>({});
  failed = cudaGetLastError();
  return failed == cudaSuccess ? nullptr : refuse(\"the launch\", cudaGetErrorString(failed));\n",
        passed.join(", "),
        total = storage.total,
        threads = warps.threads(),
    );
    let cta_count = cta_count(kernel);
    let (cuda, maps) = if kernel.descriptors.is_empty() { ("", "") } else { ("#include <cuda.h>\n", MAPS) };
    Ok(format!(
        "
#ifndef __CUDACC_RTC__

#include <algorithm>
#include <cstdint>
#include <cstdio>
{cuda}
namespace {{

thread_local char refusal[256];

/// Why something cannot be launched.
const char *refuse(const char *what, const char *why) {{
  std::snprintf(refusal, sizeof refusal, \"{}: %s: %s\", what, why);
  return refusal;
}}
{cta_count}{maps}
}}  // namespace

extern \"C\" const char *{}({}) {{
{body}}}

#endif
",
        kernel.name,
        entry_name(kernel),
        taken(kernel)?
    ))
}

/// What can be said about an argument before it is used.
fn check(body: &mut String, parameter: &Parameter) {
    let (name, said) = (own(&parameter.name), &parameter.name);
    match &parameter.kind {
        Type::TensorDescriptor(_) => {
            let _ = writeln!(body, "  if (!{name}) return refuse(\"{said}\", \"must not be null\");");
        }
        Type::Pointer { .. } if parameter.divisible_by_16 => {
            let _ = writeln!(
                body,
                "  if (reinterpret_cast<uintptr_t>({name}) % 16) return refuse(\"{said}\", \"must begin at a multiple of 16 bytes\");"
            );
        }
        Type::Integer(_) if parameter.divisible_by_16 => {
            let _ = writeln!(body, "  if ({name} % 16) return refuse(\"{said}\", \"must be a multiple of 16\");");
        }
        _ => {}
    }
}

/// What a number must be for the loop's steps.
fn check_least(body: &mut String, parameter: &Parameter) {
    let (name, said) = (own(&parameter.name), &parameter.name);
    if let Some(least) = parameter.at_least {
        let _ = writeln!(
            body,
            "  if ({name} > 0 && {name} < {least}) return refuse(\"{said}\", \"must be 0, or at least {least}: the loop has longer steps than its source\");"
        );
    }
}

/// What has to be so for tensor maps of an argument.
fn check_tensor(body: &mut String, descriptor: &Descriptor) {
    if let Some(matrix) = &descriptor.matrix {
        for natural in &matrix.natural {
            let _ =
                writeln!(body, "  if ({} < 0) return refuse(\"{natural}\", \"must not be negative\");", own(natural));
        }
        let amount = |a: &Amount| match a {
            Amount::Parameter(p) => own(p),
            Amount::Constant(n) => n.to_string(),
        };
        let [rows, columns] = matrix.extents.each_ref().map(amount);
        let _ = writeln!(
            body,
            "  const twill_tensor {} = {{{}, {{{rows}, {columns}}}, {{{}, 1}}}};",
            tensor(descriptor),
            own(&descriptor.parameter),
            amount(&matrix.stride)
        );
    }
    let _ = writeln!(
        body,
        "  if (const char *why = unfit<{}>({}, {}, {})) return refuse(\"{}\", why);",
        descriptor.block.len(),
        tensor(descriptor),
        size(descriptor),
        descriptor.matrix.is_some(),
        descriptor.parameter
    );
}

/// What a descriptor is made of.
fn tensor(descriptor: &Descriptor) -> String {
    match &descriptor.matrix {
        None => format!("*{}", own(&descriptor.parameter)),
        Some(_) => format!("{}_matrix", names::name(&descriptor.name)),
    }
}

/// Bytes of an element.
fn size(descriptor: &Descriptor) -> u32 {
    descriptor.element.scalar_bits().unwrap_or(32) / 8
}

/// The function for the number of CTAs of a persistent kernel (`TileScheduler::cta_counts`).
fn cta_count(kernel: &WarpProgram) -> String {
    let syntax = Syntax { minimum: "std::min<long long>", ..tiles::SYNTAX };
    let mut lines = String::new();
    for (at, count) in kernel.tile_scheduler.cta_counts().iter().enumerate() {
        let (start, ctas) = (if at == 0 { "long long waves" } else { "waves" }, count.ctas.print(syntax));
        let _ = writeln!(lines, "  {start} = {};", count.waves.print(syntax));
        let _ = match &count.condition {
            Some(condition) => writeln!(lines, "  if ({}) return {ctas};", condition.print(syntax)),
            None => writeln!(lines, "  return {ctas};"),
        };
    }
    if lines.is_empty() {
        return lines;
    }
    if kernel.tile_scheduler.serpentine().is_some() {
        lines.push_str("  return tiles;\n");
    }
    format!(
        "
/// CTAs that work on this many tiles, `most` of which run at once.
long long cta_count(long long tiles, long long most, [[maybe_unused]] long long columns, [[maybe_unused]] long long rows) {{
{lines}}}
"
    )
}

/// Thread blocks, and the device that they are for.
fn grid(kernel: &WarpProgram) -> String {
    let [px, py, pz] = kernel.tile_scheduler.cta_coarsening;
    let [x, y, z] = [("x", px), ("y", py), ("z", pz)].map(|(axis, per)| match per {
        1 => format!("programs_{axis}"),
        per => format!("((programs_{axis} - 1) / {per} + 1)"),
    });
    let mut out = format!(
        "  if (programs_x < 0 || programs_y < 0 || programs_z < 0) return refuse(\"the grid\", \"must not be negative\");
  if (programs_x == 0 || programs_y == 0 || programs_z == 0) return nullptr;
  long long ctas = (long long){x} * {y};
  if (ctas <= 0x7fffffff) ctas *= {z};
  if (ctas > 0x7fffffff) return refuse(\"the grid\", \"has more programs than a launch can have\");\n"
    );
    if kernel.cluster.is_some() {
        let _ = writeln!(
            out,
            "  if ({x} % {CTAS}) return refuse(\"the grid\", \"has an odd number of thread blocks along x, and {CTAS} form a cluster; generate the kernel without --cluster for such grids\");"
        );
    }
    out.push_str(
        "  int device = 0;
  cudaError_t failed = cudaGetDevice(&device);
  if (failed != cudaSuccess) return refuse(\"the GPU\", cudaGetErrorString(failed));\n",
    );
    if kernel.tile_scheduler.persistent {
        out.push_str(
            "  int multiprocessors = 0;
  failed = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (failed != cudaSuccess) return refuse(\"the GPU\", cudaGetErrorString(failed));\n",
        );
        // Beyond the last tile a CTA counts one step of the grid, or two in serpentine order.
        let steps = if kernel.tile_scheduler.serpentine().is_some() { "2 * grid" } else { "grid" };
        if kernel.cluster.is_some() {
            let _ = writeln!(
                out,
                "  multiprocessors = multiprocessors < {CTAS} ? {CTAS} : multiprocessors - multiprocessors % {CTAS};"
            );
        }
        let whole = if kernel.cluster.is_some() { format!("\n  grid += grid % {CTAS};") } else { String::new() };
        let _ = writeln!(
            out,
            "  long long grid = cta_count(ctas, multiprocessors, {x}, {y});{whole}
  if (ctas + {steps} > 0x7fffffff) return refuse(\"the grid\", \"has more programs than a launch can have\");
  ctas = grid;"
        );
    }
    out
}

/// A tensor map of an argument.
fn map(kernel: &WarpProgram, descriptor: &Descriptor) -> Result<String, Error> {
    let boxes = Boxes::of(kernel, descriptor)?;
    let name = names::name(&descriptor.name);
    let box_text = boxes.extents.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    Ok(format!(
        "  alignas(CUtensorMap) twill::tensor_map {name};
  if (const char *why = describe<{}>({name}, {}, {}, {}, {{{box_text}}}, {}))
    return refuse(\"{}\", why);\n",
        boxes.extents.len(),
        tensor(descriptor),
        data_type(&descriptor.element)?,
        size(descriptor),
        match boxes.swizzle {
            128 => "CU_TENSOR_MAP_SWIZZLE_128B",
            64 => "CU_TENSOR_MAP_SWIZZLE_64B",
            32 => "CU_TENSOR_MAP_SWIZZLE_32B",
            _ => "CU_TENSOR_MAP_SWIZZLE_NONE",
        },
        descriptor.parameter
    ))
}

/// How a tensor map is made; the driver's function is found when first needed, so that nothing is linked against it. What
/// is asked of tensors is what "cuTensorMapEncodeTiled" asks.
const MAPS: &str = "
/// What is read of a matrix without elements.
__device__ __align__(16) unsigned char zeros[16];

/// Whether a tensor has elements.
template <int RANK> bool is_empty(const twill_tensor &tensor) {
  for (int d = 0; d < RANK; d++)
    if (tensor.shape[d] < 1) return true;
  return false;
}

/// Why TMA cannot copy parts of a tensor, or null.
template <int RANK> const char *unfit(const twill_tensor &tensor, int size, bool may_be_empty) {
  if (is_empty<RANK>(tensor)) return may_be_empty ? nullptr : \"must not be empty\";
  if (!tensor.data) return \"must not be null\";
  if (tensor.strides[RANK - 1] != 1) return \"must be contiguous in its last dimension\";
  if (reinterpret_cast<uintptr_t>(tensor.data) % 16) return \"must begin at a multiple of 16 bytes\";
  for (int d = 0; d + 1 < RANK; d++) {
    if (tensor.strides[d] < 0) return \"strides must not be negative\";
    if (tensor.strides[d] % (16 / size)) return \"strides must be multiples of 16 bytes\";
    if (tensor.strides[d] >= (1LL << 40) / size) return \"strides must be below 2^40 bytes\";
  }
  for (int d = 0; d < RANK; d++)
    if (tensor.shape[d] > 1LL << 32) return \"must have at most 2^32 elements along a dimension\";
  return nullptr;
}

/// Describes a tensor for TMA in boxes; why not, if the driver cannot.
template <int RANK>
const char *describe(twill::tensor_map &map, twill_tensor tensor, CUtensorMapDataType type, int size,
                     const int (&box)[RANK], CUtensorMapSwizzle swizzle) {
  static decltype(&cuTensorMapEncodeTiled) encode = [] {
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
    cudaGetDriverEntryPointByVersion(\"cuTensorMapEncodeTiled\", &found, 12000, cudaEnableDefault, &result);
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
  }();
  if (!encode) return \"the driver makes no tensor maps\";
  if (is_empty<RANK>(tensor)) {
    // Every mask is false: what is read is zero.
    if (cudaGetSymbolAddress(&tensor.data, zeros) != cudaSuccess) return \"is empty, and there are no zeros to read\";
    for (int d = 0; d < RANK; d++) {
      tensor.shape[d] = 1;
      tensor.strides[d] = 16 / size;
    }
    tensor.shape[RANK - 1] = 16 / size;
  }
  cuuint64_t shape[RANK], strides[RANK];
  cuuint32_t extents[RANK], steps[RANK];
  for (int d = 0; d < RANK; d++) {
    const int from_last = RANK - 1 - d;
    shape[from_last] = cuuint64_t(tensor.shape[d]);
    extents[from_last] = cuuint32_t(box[d]);
    steps[from_last] = 1;
    if (d + 1 < RANK) strides[from_last - 1] = cuuint64_t(tensor.strides[d]) * size;
  }
  const CUresult made = encode(reinterpret_cast<CUtensorMap *>(&map), type, RANK, tensor.data, shape, strides, extents, steps,
                               CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return made == CUDA_SUCCESS ? nullptr : \"no tensor map can be made of it\";
}
";
