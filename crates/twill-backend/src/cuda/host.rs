//! The entry from C: it checks its arguments, makes tensor maps and launches.

use super::names::{self, missing};
use super::storage::{Storage, Warps};
use super::tensor_map::{MAPS, element_bytes, tensor_map, tensor_of};
use super::tiles;
use std::fmt::Write as _;
use twill_codegen::Error;
use twill_codegen::ir::{Amount, Descriptor, Parameter, Syntax, WarpProgram};
use twill_codegen::passes::multicast::CTAS;
use twill_triton::mlir::Type;

/// How the entry writes formulas.
const HOST: Syntax = Syntax { minimum: "std::min<long long>", maximum: "std::max<long long>", ..tiles::SYNTAX };

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

/// The parameters of the entry.
fn taken(kernel: &WarpProgram) -> Result<String, Error> {
    let mut all = Vec::new();
    for parameter in &kernel.parameters {
        let name = names::parameter_of_entry(&parameter.name);
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
        body.push_str(&tensor_map(kernel, descriptor)?);
    }
    let name = names::name(&kernel.name);
    let passed: Vec<String> = super::storage::parameters(kernel)?
        .into_iter()
        .map(|p| match kernel.parameters.iter().find(|q| names::name(&q.name) == p.name) {
            Some(Parameter { name, kind: Type::Pointer { pointee, .. }, .. }) => names::element(pointee)
                .map(|kind| format!("static_cast<{kind} *>({})", names::parameter_of_entry(name))),
            Some(Parameter { name, .. }) => Ok(names::parameter_of_entry(name)),
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
    let (name, said) = (names::parameter_of_entry(&parameter.name), &parameter.name);
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
    let (name, said) = (names::parameter_of_entry(&parameter.name), &parameter.name);
    if parameter.not_zero {
        let _ = writeln!(
            body,
            "  if ({name} == 0) return refuse(\"{said}\", \"must not be 0: the kernel divides by it\");"
        );
    }
    if parameter.positive {
        let _ = writeln!(
            body,
            "  if (!({name} >= 0x1p-32 && {name} <= 0x1p32)) return refuse(\"{said}\", \"must be from 2^-32 to 2^32: the kernel takes maxima before it multiplies by it\");"
        );
    }
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
            let said = natural.print(Syntax { minimum: "min", maximum: "max", ..HOST });
            let wide = |name: &str| format!("static_cast<long long>({})", names::parameter_of_entry(name));
            let number = natural.renamed(&wide).print(HOST);
            let _ = writeln!(body, "  if ({number} < 0) return refuse(\"{said}\", \"must not be negative\");");
        }
        let amount = |a: &Amount| match a {
            Amount::Parameter(p) => names::parameter_of_entry(p),
            Amount::Constant(n) => n.to_string(),
        };
        let pointer = names::parameter_of_entry(&descriptor.parameter);
        let mut data = pointer.clone();
        if matrix.rows_before > 0 {
            let bytes = format!("{}ULL", descriptor.bytes_before());
            let is_before = format!("reinterpret_cast<uintptr_t>({pointer}) <= {bytes}");
            let _ = writeln!(
                body,
                "  if ({pointer} && {is_before}) return refuse(\"{}\", \"is at too low an address for tiles that may lie before it\");",
                descriptor.parameter
            );
            data = format!(
                "{pointer} ? reinterpret_cast<void *>(reinterpret_cast<uintptr_t>({pointer}) - {bytes}) : nullptr"
            );
        }
        let list = |amounts: Vec<Amount>| amounts.iter().map(amount).collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            body,
            "  const twill_tensor {} = {{{}, {{{}}}, {{{}}}}};",
            tensor_of(descriptor),
            data,
            list(matrix.all_extents()),
            list(matrix.all_strides())
        );
    }
    let _ = writeln!(
        body,
        "  if (const char *why = unfit<{}>({}, {}, {})) return refuse(\"{}\", why);",
        descriptor.block.len(),
        tensor_of(descriptor),
        element_bytes(descriptor),
        descriptor.matrix.is_some(),
        descriptor.parameter
    );
}

/// The function for the number of CTAs of a persistent kernel (`TileScheduler::cta_counts`).
fn cta_count(kernel: &WarpProgram) -> String {
    let mut lines = String::new();
    for (at, count) in kernel.tile_scheduler.cta_counts().iter().enumerate() {
        let (start, ctas) = (if at == 0 { "long long waves" } else { "waves" }, count.ctas.print(HOST));
        let _ = writeln!(lines, "  {start} = {};", count.waves.print(HOST));
        let _ = match &count.condition {
            Some(condition) => writeln!(lines, "  if ({}) return {ctas};", condition.print(HOST)),
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
/// CTAs that work on this many tiles, `resident` of which run at once.
long long cta_count(long long tiles, long long resident, [[maybe_unused]] long long columns, [[maybe_unused]] long long rows) {{
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
