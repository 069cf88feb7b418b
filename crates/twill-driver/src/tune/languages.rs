//! The language of a kernel where nobody asked for one: Gluon, or CUDA C++ where its machine code is clearly faster.
//!
//! On an H200 the estimates of ten kernels of attention had the faster language each time one was ahead by [`THRESHOLDS`]`.ahead`:
//! the backward pass takes 3566 cycles an iteration in CUDA and 4815 in Gluon, and is 1.12 times as fast.

use super::thresholds::THRESHOLDS;
use super::{Assembler, Compiled, GeneratedKernel, Language, Which, compile};
use crate::observe::Silent;
use crate::options::CompileOptions;
use crate::{Error, Request, Session};

/// As [`compile`], in the language that is faster by an estimate of the machine code, where none was asked for.
///
/// # Errors
/// Those of [`compile`].
pub fn compile_fastest(
    request: &Request,
    options: &CompileOptions,
    assembler: Option<&Assembler>,
    session: &mut Session<'_>,
) -> Result<Compiled, Error> {
    let compiled = compile(request, options, assembler, session)?;
    let Compiled::Kernel(gluon) = &compiled else { return Ok(compiled) };
    let (Some(assembler), Some(cycles)) = (assembler, cycles(gluon)) else { return Ok(compiled) };
    let intervals: f64 =
        gluon.loops.iter().filter(|one| one.sass_estimate.is_some()).map(|one| one.interval as f64).sum();
    if !is_open(options) || cycles <= THRESHOLDS.far_in_gluon * intervals || session.is_over() {
        return Ok(compiled);
    }
    session.observer.say("a kernel in CUDA C++, as the one in Gluon is far from its interval");
    let in_cuda = CompileOptions { emit: Some(Language::Cuda), in_order: false, ..options.clone() };
    let mut silent = Silent;
    let mut other = Session { search: session.search.clone(), cache: session.cache.clone(), observer: &mut silent };
    // It is no error of this kernel that the other one cannot be made.
    let made = assembler.apart(".cuda", |apart| compile(request, &in_cuda, Some(apart), &mut other))?;
    let Ok(Compiled::Kernel(cuda)) = made else { return Ok(compiled) };
    if !is_clearly_faster(&cuda, gluon) {
        return Ok(compiled);
    }
    assembler.remove(gluon.files.keys().filter(|name| !cuda.files.contains_key(*name)));
    Ok(Compiled::Kernel(cuda))
}

/// Whether the language is left open, and no option is of one language alone.
fn is_open(options: &CompileOptions) -> bool {
    let CompileOptions { emit, schedule, ctas_per_sm, num_warps, num_stages, epilogue_subtile, .. } = options;
    let of_gluon = [ctas_per_sm, num_warps, num_stages, epilogue_subtile];
    emit.is_none() && *schedule == Which::Optimal && of_gluon.iter().all(|option| option.is_none())
}

/// Cycles of an iteration of each loop whose machine code is estimated, together; none without a pipeline or an estimate.
fn cycles(kernel: &GeneratedKernel) -> Option<f64> {
    let estimates: Vec<u32> = kernel.loops.iter().filter_map(|one| one.sass_estimate).collect();
    (kernel.in_order.is_none() && !estimates.is_empty()).then(|| estimates.iter().map(|one| f64::from(*one)).sum())
}

/// Whether machine code in CUDA is ahead of that in Gluon, loop by loop together, and spills no more.
fn is_clearly_faster(cuda: &GeneratedKernel, gluon: &GeneratedKernel) -> bool {
    let known = |kernel: &GeneratedKernel| -> Vec<bool> {
        kernel.loops.iter().map(|one| one.sass_estimate.is_some()).collect()
    };
    let spills = |kernel: &GeneratedKernel| kernel.findings.iter().any(|finding| finding.kind == "spilled");
    let ahead = cycles(cuda).zip(cycles(gluon)).is_some_and(|(cuda, gluon)| cuda < gluon * (1.0 - THRESHOLDS.ahead));
    ahead && known(cuda) == known(gluon) && (spills(gluon) || !spills(cuda))
}
