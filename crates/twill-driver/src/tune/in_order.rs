//! The last rung: where no schedule is found or none is lowered, one warp group executes one operation after the other. In Gluon,
//! loads of its loops run ahead where they can; such a kernel may be asked for, too.

use super::assembler::{Assembled, Assembler};
use super::candidate::{Candidate, CandidateSpec, LoweredKernel};
use super::residency::has_shared_memory;
use super::{CompileOptions, Language, Which};
use crate::{Content, DEFAULT_MACHINE, Error, LoweringParameters, Request, Session};
use std::cell::Cell;
use twill_backend::Header;
use twill_backend::package::MANY_SPILLED;
use twill_codegen::in_order::RunsAhead;
use twill_machine::Machine;

/// Warps that are tried where registers do not suffice.
const MOST_WARPS: u32 = 8;

/// Shared memory of rings of loads that run ahead, in a kernel in order.
const RING_BYTES: u64 = 192 << 10;

/// The part of its registers that a kernel may do with for one more CTA. It is reckoned; others were not timed.
const NEAR: f64 = 0.8;

/// Warps that share out an MMA in CUDA.
const MMA_WARPS: u32 = 4;

/// Whether a kernel may be executed in order where it has no pipeline: nothing was asked for that only a pipeline has.
pub(super) fn is_asked_for(request: &Request, options: &CompileOptions) -> bool {
    let LoweringParameters { loop_index, sub_tiles, programs, retile_loop, .. } = &request.lowering;
    let is_plain = loop_index.is_none() && sub_tiles.is_none() && programs.is_none() && retile_loop.is_none();
    let is_limited = request.limits.compute_groups.is_some() || request.limits.registers_per_thread.is_some();
    let is_optimal = options.schedule == Which::Optimal;
    options.in_order && is_plain && !is_limited && is_optimal && options.ring_depth.is_none()
}

/// Whether what is in the way of a pipeline is the kernel, and neither its text nor what was asked for.
pub(super) fn is_of_kernel(error: &Error) -> bool {
    use twill_triton::Error as Triton;
    match error {
        Error::Triton(error) => !matches!(
            **error,
            Triton::Parse(_) | Triton::NoKernel { .. } | Triton::SeveralKernels { .. } | Triton::NoSuchKernel { .. }
        ),
        Error::Emit { .. } | Error::Kernel { .. } | Error::Problem { .. } | Error::Assembler { .. } => true,
        Error::MachineCode { .. } => true,
        _ => false,
    }
}

/// How many CTAs of a kernel would share a multiprocessor if each had a few registers a thread less: one more than otherwise. None
/// where registers do not decide about that, or it would need many less.
fn one_more_cta(candidate: &Candidate) -> Option<u32> {
    let (assembly, warps) = (candidate.assembly.as_ref()?, candidate.lowered.program.groups.first()?.warps);
    let groups = Some(warps / 4).filter(|groups| *groups > 0)?;
    let has_registers = |ctas: &u32| twill_codegen::entry_registers(groups, *ctas) >= assembly.registers;
    // At least one is there.
    let ctas = (2..).take_while(has_registers).last().unwrap_or(1) + 1;
    let machine = candidate.spec.machine.resources().shared_memory.0;
    let is_near = f64::from(twill_codegen::entry_registers(groups, ctas)) >= NEAR * f64::from(assembly.registers);
    (is_near && has_shared_memory(machine, assembly.shared_memory, ctas)).then_some(ctas)
}

/// The kernel in order; `why` there is no other.
///
/// # Errors
/// As [`twill_codegen::in_order::lower`], and where the assembler that was asked for refuses it.
pub(super) fn compile(
    request: &Request,
    options: &CompileOptions,
    why: Option<&str>,
    assembler: Option<&Assembler>,
    session: &mut Session<'_>,
) -> Result<Candidate, Error> {
    let Content::Kernel(text) = &request.input.content else {
        return Err(Error::NoSource { input: request.input.name.clone() });
    };
    let machine = match &request.lowering.machine {
        Some(machine) => machine.clone(),
        None => Machine::builtin(DEFAULT_MACHINE)?,
    };
    let input = request.input.name.clone();
    let architecture = machine.architecture().to_owned();
    if architecture.trim_end_matches(['a', 'f']) != "sm_90" {
        return Err(Error::NotInOrder { input, machine: machine.name().to_owned(), architecture });
    }
    let emitted = |error| Error::Emit { input: input.clone(), error: Box::new(error) };
    let module = twill_triton::mlir::parse(text, &input).map_err(twill_triton::Error::from)?;
    let function = twill_triton::kernel::find(&module, request.lowering.kernel.as_deref())?;
    let module = twill_triton::kernel::expanded(module, function);
    if let Some(why) = why {
        session.observer.note(&format!("{why}\nthe kernel is executed in order instead: one group, no pipeline"));
    }
    let header = Header {
        input: input.clone(),
        machine: machine.name().to_owned(),
        architecture,
        command: options.command.clone(),
        statuses: vec![match options.schedule {
            Which::Multistage => "multistage: no warp specialisation".into(),
            _ => "in order: no pipeline".into(),
        }],
    };
    let spec = CandidateSpec {
        machine,
        language: options.language(),
        header,
        operations: Vec::new(),
        schedule: "[]\n".into(),
        granted: 0,
        preferred: false,
    };
    let lowered = |warps: Option<u32>, ring_bytes: Option<u64>, ctas: u32| {
        let ahead = ring_bytes.map(|ring_bytes| RunsAhead { ring_bytes, stages: options.num_stages });
        let warps = warps.or_else(|| (options.language() == Language::Cuda).then_some(MMA_WARPS));
        let program = twill_codegen::in_order::lower(&module, function, warps, ahead).and_then(|mut program| {
            program.tile_scheduler.ctas_per_sm = ctas;
            twill_codegen::check(program)
        });
        program.and_then(|program| LoweredKernel::new(&spec, program, None)).map_err(emitted)
    };
    let assembled = |warps: Option<u32>, ring_bytes: Option<u64>, ctas: u32| -> Result<Candidate, Error> {
        let mut candidate = Candidate::new(spec.clone(), lowered(warps, ring_bytes, ctas)?);
        if let Some(assembler) = assembler
            && let Assembled::Report(assembly) = assembler.run(&candidate.files(), &input)?
        {
            candidate.assembly = Some(assembly);
        }
        Ok(candidate)
    };
    // Smaller rings need no fewer warps.
    let least_warps = Cell::new(options.num_warps);
    let best = |ring_bytes: Option<u64>| -> Result<Candidate, Error> {
        let mut best = assembled(least_warps.get(), ring_bytes, 1)?;
        let mut warps = best.lowered.program.groups.iter().map(|group| group.warps).max().unwrap_or(MOST_WARPS);
        // In CUDA, only four warps share out an MMA.
        let has_more = || options.language() == Language::Gluon && !session.is_stopped();
        // With spills around wgmma, ptxas 12.8 makes code that reads what is not there (docs/coverage.md). Other kernels of
        // which somebody has chosen the warps may spill a little.
        let is_short = |one: &Candidate| {
            let may_spill = options.num_warps.is_some() && !one.lowered.source.contains("start_wgmma(");
            let spilled = |one: &Candidate| one.assembly.as_ref().map_or(0, |a| a.spill_stores + a.spill_loads);
            one.is_short_of_registers() && (!may_spill || spilled(one) >= MANY_SPILLED)
        };
        // Each thread of more warps holds less.
        while warps < MOST_WARPS && (is_short(&best) || best.unusable().is_some()) && has_more() {
            warps *= 2;
            least_warps.set(Some(warps));
            let next = assembled(Some(warps), ring_bytes, 1).ok();
            best = next.filter(|next| next.cost() < best.cost()).unwrap_or(best);
        }
        let spills = options.schedule == Which::Multistage && is_short(&best);
        if let Some(ctas) = one_more_cta(&best)
            && has_more()
            && options.schedule == Which::Multistage
            && let Ok(more) = assembled(Some(warps), ring_bytes, ctas)
            && more.unusable().is_none()
            && more.assembly.as_ref().is_some_and(|assembly| assembly.spill_stores + assembly.spill_loads == 0)
        {
            best = more;
        }
        match best.unusable().or_else(|| spills.then(|| "it spills registers, with eight warps, too".into())) {
            Some(why) => Err(Error::MachineCode { input: input.clone(), why }),
            None => Ok(best),
        }
    };
    let budgets: &[Option<u64>] = match (options.language(), options.schedule) {
        (Language::Gluon, Which::Multistage) => {
            let all = &[Some(RING_BYTES), Some(RING_BYTES * 3 / 4), Some(RING_BYTES / 2), None];
            // Without a number of stages a loop that loads ahead is what is asked for.
            if options.num_stages.is_some() { all } else { &all[..3] }
        }
        (Language::Gluon, Which::Optimal) => &[Some(RING_BYTES), None],
        _ => &[None],
    };
    // What rings leave may be too little for the rest.
    let mut answer = best(budgets[0]);
    for ring_bytes in &budgets[1..] {
        if answer.is_err() && !session.is_stopped() {
            answer = best(*ring_bytes);
        }
    }
    answer
}
