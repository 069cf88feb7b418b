//! From a request to scheduling problems.

use crate::Error;
use crate::request::{Content, DEFAULT_MACHINE, GraphInput, Input, Limits, LoweringParameters, Request};
use std::collections::BTreeSet;
use twill_graph::format::{MachineReference, NormalisationEntry};
use twill_graph::saturate;
use twill_graph::{LoopGraph, Problem, Resources, Tie, WarpAssignment};
use twill_machine::Machine;
use twill_triton::tile::{Split, TileLoop};

/// A loop to schedule.
#[derive(Clone, Debug)]
pub struct LoopProblem {
    /// The question.
    pub problem: Problem,
    /// What normalising the costs cost, if it was asked for.
    pub normalisation: Option<NormalisationEntry>,
    /// The loop before it was unrolled, if it was, and how often: its schedule is one of the unrolled loop.
    pub rolled: Option<(Problem, u32)>,
    /// Into how many sub-tiles it was cut, if it comes from a kernel and no programs share a CTA.
    pub sub_tiles: Option<u32>,
}

/// A loop graph with the machine it is for, and the tile loop that it comes from, if any.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The loop.
    pub graph: LoopGraph,
    /// What the machine offers.
    pub resources: Resources,
    /// The tile operations.
    pub tiles: Option<TileLoop>,
    /// How its operations come to their warp groups, unless another assignment is asked for.
    pub warp_assignment: WarpAssignment,
}

/// How the operations of kernels come to their warp groups unless another assignment is asked for: on Hopper a sub-tile stays on
/// one group, since what passes between groups costs more than the model says (docs/codegen.md). With tensor memory MMAs are
/// handed over in any case, and the scheduler chooses.
pub fn default_assignment(machine: &Machine) -> WarpAssignment {
    if machine.has_tensor_memory() { WarpAssignment::Free } else { WarpAssignment::BySubTile }
}

/// A kernel that is read, and its loops as they are lowered.
pub struct Source {
    /// The kernel.
    pub kernel: twill_triton::Kernel,
    /// The machine that it is for.
    pub machine: Machine,
    /// Sub-tiles, programs, contraction.
    pub options: twill_triton::Options,
    /// The loops that are asked for, in the order of the text.
    pub lowered: Vec<twill_triton::Lowered>,
}

/// The kernel of a request; `None` if its input is a loop graph.
///
/// # Errors
/// When it does not read or cannot be lowered, or the machine is not known.
pub fn source(request: &Request) -> Result<Option<Source>, Error> {
    match &request.input.content {
        Content::Graph(..) => Ok(None),
        Content::Kernel(text) => read_kernel(&request.input.name, text, &request.lowering).map(Some),
    }
}

/// The kernel of a request for which code is to be generated.
///
/// # Errors
/// As [`source`]; and where the input is a loop graph, or there is no generator for the machine.
pub(crate) fn generated_source(request: &Request) -> Result<Source, Error> {
    let input = || request.input.name.clone();
    let source = source(request)?.ok_or_else(|| Error::NoSource { input: input() })?;
    if request.limits.unroll > 1 {
        return Err(Error::Unrolled { input: input() });
    }
    let architecture = source.machine.architecture();
    if !["sm_90", "sm_100"].iter().any(|known| architecture.trim_end_matches(['a', 'f']) == *known) {
        let (machine, architecture) = (source.machine.name().to_owned(), architecture.to_owned());
        return Err(Error::NoGenerator { input: input(), machine, architecture });
    }
    Ok(source)
}

fn read_kernel(name: &str, text: &str, lowering: &LoweringParameters) -> Result<Source, Error> {
    let machine = match &lowering.machine {
        Some(machine) => machine.clone(),
        None => Machine::builtin(DEFAULT_MACHINE)?,
    };
    if lowering.retile_loop.is_some() && machine.has_tensor_memory() {
        return Err(Error::RetiledInTensorMemory { input: name.to_owned(), machine: machine.name().to_owned() });
    }
    let module = twill_triton::mlir::parse(text, name).map_err(twill_triton::Error::from)?;
    let kernel = twill_triton::Kernel::with_step(module, lowering.kernel.as_deref(), lowering.retile_loop)?;
    let options = twill_triton::Options {
        sub_tiles: lowering.sub_tiles,
        programs: lowering.programs,
        contract: lowering.contract,
    };
    let lower = |l| twill_triton::lower_parts(l, &machine, &options);
    let lowered = chosen(name, &kernel, lowering)?.iter().map(lower).collect::<Result<_, twill_triton::Error>>()?;
    Ok(Source { kernel, machine, options, lowered })
}

/// All loops of the input that are asked for, and what they have to do with each other.
#[derive(Clone, Debug)]
pub struct Loops<L> {
    /// The loops, in the order of the text.
    pub loops: Vec<L>,
    /// `None` for a single loop.
    pub siblings: Option<Siblings>,
}

/// What several loops of a kernel have to do with each other.
#[derive(Clone, Debug)]
pub struct Siblings {
    /// Name of the kernel.
    pub kernel: String,
    /// Operations that run on the same warp group.
    pub ties: Vec<Tie>,
    /// How often each runs, as far as the kernel says.
    pub trip_counts: Vec<Option<u64>>,
}

/// All loops that are asked for, as problems.
///
/// # Errors
/// When the input does not read, cannot be lowered, or does not go with the machine.
pub fn problems(request: &Request) -> Result<Loops<LoopProblem>, Error> {
    let Loops { loops, siblings } = match lowered(&request.input, &request.lowering) {
        Err(error) if request.lowering.sub_tiles.is_none() && error.asks_for_one_sub_tile() => {
            lowered(&request.input, &LoweringParameters { sub_tiles: Some(1), ..request.lowering.clone() })?
        }
        lowered => lowered?,
    };
    let problem = |l| loop_problem(&request.input.name, &request.limits, l);
    let loops: Result<Vec<LoopProblem>, Error> = loops.into_iter().map(problem).collect();
    Ok(Loops { loops: loops?, siblings })
}

/// All loops that are asked for, as graphs.
///
/// # Errors
/// When the input does not read or cannot be lowered.
pub fn lowered(input: &Input, lowering: &LoweringParameters) -> Result<Loops<Lowered>, Error> {
    match &input.content {
        Content::Kernel(text) => Ok(of_source(&read_kernel(&input.name, text, lowering)?)),
        Content::Graph(graph) => {
            let lowered = from_graph(&input.name, lowering, graph)?;
            Ok(Loops { loops: vec![lowered], siblings: None })
        }
    }
}

fn from_graph(input: &str, lowering: &LoweringParameters, input_graph: &GraphInput) -> Result<Lowered, Error> {
    let GraphInput { graph, machine, warp_assignment } = input_graph;
    let given = [
        ("sub-tiles", lowering.sub_tiles.is_some()),
        ("cta-coarsening", lowering.programs.is_some()),
        ("retile-loop", lowering.retile_loop.is_some()),
        ("no-contract", !lowering.contract),
        ("kernel", lowering.kernel.is_some()),
        ("loop", lowering.loop_index.is_some()),
    ];
    if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
        return Err(Error::OnlyForKernels { input: input.to_owned(), option });
    }
    let resources = match (&lowering.machine, machine) {
        (Some(machine), _) => machine.resources(),
        (None, Some(MachineReference::Name(name))) => Machine::load(name)?.resources(),
        (None, Some(MachineReference::Resources(resources))) => (**resources).clone(),
        (None, None) => return Err(Error::NoMachine { input: input.to_owned() }),
    };
    let warp_assignment = warp_assignment.unwrap_or(WarpAssignment::Free);
    Ok(Lowered { graph: graph.clone(), resources, tiles: None, warp_assignment })
}

/// The loops of a kernel that are asked for.
fn chosen<'a>(
    input: &str,
    kernel: &'a twill_triton::Kernel,
    lowering: &LoweringParameters,
) -> Result<&'a [TileLoop], Error> {
    let loops = kernel.loops();
    Ok(match lowering.loop_index {
        None => loops,
        Some(index) => {
            let one = loops.get(index).ok_or_else(|| Error::NoSuchLoop {
                input: input.to_owned(),
                index,
                count: loops.len(),
            })?;
            std::slice::from_ref(one)
        }
    })
}

/// The loops of a kernel that was read.
fn of_source(source: &Source) -> Loops<Lowered> {
    let (kernel, lowered) = (&source.kernel, &source.lowered);
    let tiles: Vec<TileLoop> = lowered.iter().map(|l| l.tiles.clone()).collect();
    let siblings = (lowered.len() > 1).then(|| Siblings {
        kernel: kernel.name().to_owned(),
        ties: kernel.ties(&tiles, &lowered.iter().map(|l| &l.graph).collect::<Vec<_>>()),
        trip_counts: (0..lowered.len()).map(|index| kernel.trip_count(index)).collect(),
    });
    let resources = source.machine.resources();
    let each = lowered.iter().zip(tiles);
    let loops = each.map(|(l, tiles)| Lowered {
        graph: l.graph.clone(),
        resources: resources.clone(),
        tiles: Some(tiles),
        warp_assignment: default_assignment(&source.machine),
    });
    Loops { loops: loops.collect(), siblings }
}

/// The loops of a kernel that was read, as problems.
pub(crate) fn problems_of_source(request: &Request, source: &Source) -> Result<Loops<LoopProblem>, Error> {
    let Loops { loops, siblings } = of_source(source);
    let problem = |l| loop_problem(&request.input.name, &request.limits, l);
    let loops: Result<Vec<LoopProblem>, Error> = loops.into_iter().map(problem).collect();
    Ok(Loops { loops: loops?, siblings })
}

fn loop_problem(input: &str, limits: &Limits, lowered: Lowered) -> Result<LoopProblem, Error> {
    let Lowered { graph, mut resources, tiles, warp_assignment } = lowered;
    let numbers: BTreeSet<u32> = graph.operations().iter().filter_map(|op| op.sub_tile).collect();
    let one_program = tiles.filter(|l| !matches!(l.split(), Split::Programs { .. }));
    let sub_tiles = one_program.map(|_| saturate::<u32>(numbers.len()).max(1));
    let input = || input.to_owned();
    if let Some(groups) = limits.compute_groups {
        resources.compute_groups.maximum = groups;
    }
    if let Some(warps) = limits.compute_warps {
        resources.compute_groups.warps = warps;
    }
    resources.registers.words *= u64::from(limits.register_multiple);
    resources.registers.maximum_per_thread *= limits.register_multiple;
    if let Some(registers) = limits.registers_per_thread {
        limit_registers(&mut resources, registers)?;
    }
    let (graph, normalisation) = match limits.normalise {
        0 => (graph, None),
        limit => {
            let n = twill_exact::normalise(&graph, limit)
                .map_err(|error| Error::Normalise { input: input(), error: Box::new(error) })?;
            (n.graph, Some(NormalisationEntry { limit, error: n.error, distortion: n.distortion }))
        }
    };
    let mut model = limits.model;
    model.warp_assignment = limits.warp_assignment.unwrap_or(warp_assignment);
    let problem = |graph| {
        Problem::new(graph, resources.clone(), model)
            .map_err(|error| Error::Problem { input: input(), error: Box::new(error) })
    };
    if limits.unroll == 1 {
        return Ok(LoopProblem { problem: problem(graph)?, normalisation, rolled: None, sub_tiles });
    }
    let unrolled =
        graph.unrolled(limits.unroll).map_err(|error| Error::Unroll { input: input(), error: Box::new(error) })?;
    Ok(LoopProblem {
        problem: problem(unrolled)?,
        normalisation,
        rolled: Some((problem(graph)?, limits.unroll)),
        sub_tiles,
    })
}

/// Takes registers from the threads of compute groups. Whole granules are allotted, so another number would be paid for
/// in full and used in part.
fn limit_registers(resources: &mut Resources, given: u32) -> Result<(), Error> {
    let file = &mut resources.registers;
    let least = file.minimum_per_thread.max(file.reserve_per_thread).next_multiple_of(file.granularity);
    let (most, granularity) = (file.maximum_per_thread, file.granularity);
    if given != most && (given < least || given > most || !given.is_multiple_of(granularity)) {
        return Err(Error::RegistersPerThread { machine: resources.name.clone(), given, least, most, granularity });
    }
    file.maximum_per_thread = given;
    Ok(())
}
