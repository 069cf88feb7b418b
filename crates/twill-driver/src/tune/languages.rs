//! The language of a kernel where nobody asked for one: Gluon, or CUDA C++ where its machine code is clearly faster.
//!
//! On an H200 the estimates of ten kernels of attention had the faster language each time one was ahead by [`THRESHOLDS`]`.ahead`:
//! the backward pass takes 3566 cycles an iteration in CUDA and 4815 in Gluon, and is 1.12 times as fast.

use super::thresholds::THRESHOLDS;
use super::{Assembler, Compiled, GeneratedKernel, Language, Which, compile};
use crate::observe::Silent;
use crate::options::CompileOptions;
use crate::{Error, Request, Session};

/// The part of the time limit that the second language has where the first one took all.
const MORE_TIME: u32 = 5;

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
    let (Some(assembler), Some(cycles)) = (assembler, cycles(&estimates(gluon))) else { return Ok(compiled) };
    let intervals: f64 =
        gluon.loops.iter().filter(|one| one.sass_estimate.is_some()).map(|one| one.interval as f64).sum();
    if !is_open(options)
        || !gluon.is_told_by_estimates
        || cycles <= THRESHOLDS.far_in_gluon * intervals
        || session.is_stopped()
    {
        return Ok(compiled);
    }
    session.observer.say("a kernel in CUDA C++, as the one in Gluon is far from its interval");
    let in_cuda = CompileOptions { emit: Some(Language::Cuda), in_order: false, ..options.clone() };
    let mut silent = Silent;
    let mut other = Session { search: session.search.clone(), cache: session.cache.clone(), observer: &mut silent };
    let budget = &mut other.search.budget;
    budget.until = budget.until.zip(budget.time).map(|(until, time)| until.max(budget.clock.now() + time / MORE_TIME));
    // It is no error of this kernel that the other one cannot be made.
    let made = assembler.apart(".cuda", |apart| compile(request, &in_cuda, Some(apart), &mut other));
    let Ok(Ok(Compiled::Kernel(cuda))) = made else { return Ok(compiled) };
    let spills = |kernel: &GeneratedKernel| kernel.findings.iter().any(|finding| finding.kind == "spilled");
    if !cuda.is_told_by_estimates
        || !is_ahead(&estimates(&cuda), &estimates(gluon))
        || (spills(&cuda) && !spills(gluon))
    {
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

/// By loop, cycles of an iteration of its machine code, where they are estimated; none without a pipeline.
fn estimates(kernel: &GeneratedKernel) -> Vec<Option<u32>> {
    let has_pipeline = kernel.in_order.is_none();
    kernel.loops.iter().map(|one| one.sass_estimate.filter(|_| has_pipeline)).collect()
}

/// Of all loops together; none where none is estimated.
fn cycles(estimates: &[Option<u32>]) -> Option<f64> {
    let known = || estimates.iter().flatten();
    (known().count() > 0).then(|| known().map(|one| f64::from(*one)).sum())
}

/// Whether machine code in CUDA is ahead of that in Gluon: estimates are of the same loops, and clearly less.
fn is_ahead(cuda: &[Option<u32>], gluon: &[Option<u32>]) -> bool {
    let is_known = |estimates: &[Option<u32>]| estimates.iter().map(Option::is_some).collect::<Vec<_>>();
    let less = cycles(cuda).zip(cycles(gluon)).is_some_and(|(cuda, gluon)| cuda < gluon * (1.0 - THRESHOLDS.ahead));
    less && is_known(cuda) == is_known(gluon)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faster_language_is_clearly_ahead_on_the_same_loops() {
        assert!(is_ahead(&[Some(3566)], &[Some(4815)]));
        assert!(!is_ahead(&[Some(2210)], &[Some(2233)]), "within what estimates are apart by");
        assert!(!is_ahead(&[Some(4815)], &[Some(3566)]));
        assert!(is_ahead(&[Some(1803), None], &[Some(1977), None]));
        assert!(!is_ahead(&[Some(1803), None], &[Some(1977), Some(2475)]), "a loop that nothing is known of");
        assert!(!is_ahead(&[None], &[Some(4815)]) && !is_ahead(&[], &[]));
    }
}
