//! From an input and a machine to scheduling problems.

use crate::arguments::{
    AxisArgument, LivenessArgument, Model, ModelArguments, SearchArguments, SourceArguments, StageWindowArgument,
    Switch, WarpAssignmentArgument, Window,
};
use crate::error::Error;
use crate::files;
use std::collections::BTreeSet;
use std::path::Path;
use twill_graph::format::{GraphFile, MachineReference, NormalisationEntry};
use twill_graph::{
    ConcurrencyWindow, Liveness, LoopGraph, ModelOptions, Problem, Resources, StageWindow, Tie, WarpAssignment, builtin,
};
use twill_machine::Machine;
use twill_triton::Gang;
use twill_triton::tile::{Axis, Split, TileLoop};

/// The machine for kernels when none is asked for.
const DEFAULT_MACHINE: &str = "h100";

/// A loop to schedule.
pub(crate) struct Posed {
    pub(crate) problem: Problem,
    /// What normalising the costs cost, if it was asked for.
    pub(crate) normalisation: Option<NormalisationEntry>,
    /// The loop before it was unrolled, if it was: its schedule is one of the unrolled loop.
    pub(crate) rolled: Option<Problem>,
    /// Into how many sub-tiles it was cut, if it comes from a kernel and no programs share a CTA.
    pub(crate) sub_tiles: Option<u32>,
}

/// A loop graph with the machine it is for, and the tile loop that it comes from, if any.
pub(crate) struct Lowered {
    pub(crate) graph: LoopGraph,
    pub(crate) resources: Resources,
    pub(crate) tiles: Option<TileLoop>,
}

/// A kernel that is read, and how its loops are lowered.
pub(crate) struct Source {
    pub(crate) kernel: twill_triton::Kernel,
    pub(crate) machine: Machine,
    pub(crate) options: twill_triton::Options,
}

/// The kernel that the arguments name; `None` if the input is a loop graph.
pub(crate) fn source(arguments: &SourceArguments) -> Result<Option<Source>, Error> {
    let path = Path::new(&arguments.input);
    if !path.exists() && builtin::find(&arguments.input).is_some() {
        return Ok(None);
    }
    let text = files::read(path)?;
    if is_graph(path, &text) { Ok(None) } else { read_kernel(arguments, &text).map(Some) }
}

fn read_kernel(arguments: &SourceArguments, text: &str) -> Result<Source, Error> {
    let machine = Machine::load(arguments.machine.as_deref().unwrap_or(DEFAULT_MACHINE))?;
    let kernel = match &arguments.kernel {
        Some(name) => twill_triton::read_kernel(text, &arguments.input, name)?,
        None => twill_triton::read(text, &arguments.input)?,
    };
    let axis = match arguments.programs_axis {
        AxisArgument::X => Axis::X,
        AxisArgument::Y => Axis::Y,
        AxisArgument::Z => Axis::Z,
    };
    let options = twill_triton::Options {
        sub_tiles: arguments.sub_tiles,
        programs: arguments.programs_per_cta.map(|count| Gang { count, axis }),
        contract: !arguments.no_contract,
    };
    Ok(Source { kernel, machine, options })
}

/// All loops of the input that are asked for, and what they have to do with each other.
pub(crate) struct Loops<L> {
    pub(crate) loops: Vec<L>,
    /// `None` for a single loop.
    pub(crate) siblings: Option<Siblings>,
}

/// What several loops of a kernel have to do with each other.
pub(crate) struct Siblings {
    pub(crate) kernel: String,
    pub(crate) ties: Vec<Tie>,
    /// How often each runs, as far as the kernel says.
    pub(crate) trip_counts: Vec<Option<u64>>,
}

/// All loops that the arguments ask for, as problems.
pub(crate) fn problems(arguments: &SearchArguments) -> Result<Loops<Posed>, Error> {
    let Loops { loops, siblings } = lowered(&arguments.source)?;
    let loops: Result<Vec<Posed>, Error> = loops.into_iter().map(|l| pose(arguments, l)).collect();
    Ok(Loops { loops: loops?, siblings })
}

/// All loops that the arguments ask for, as graphs.
pub(crate) fn lowered(arguments: &SourceArguments) -> Result<Loops<Lowered>, Error> {
    let single = |lowered| Loops { loops: vec![lowered], siblings: None };
    let path = Path::new(&arguments.input);
    if path.exists() {
        let text = files::read(path)?;
        if !is_graph(path, &text) {
            return from_kernel(arguments, &text);
        }
        let file = GraphFile::from_json(&text, &arguments.input)?;
        Ok(single(from_graph(arguments, file.graph()?, file.machine)?))
    } else if let Some(found) = builtin::find(&arguments.input) {
        Ok(single(from_graph(arguments, found.graph, found.machine)?))
    } else if path.extension().is_some() || path.components().count() > 1 {
        // It looks like a path: say why it cannot be read.
        files::read(path).map(|_| Loops { loops: Vec::new(), siblings: None })
    } else {
        Err(Error::UnknownInput { input: arguments.input.clone(), known: known() })
    }
}

/// Names of the built-in graphs.
pub(crate) fn known() -> String {
    builtin::names().collect::<Vec<_>>().join(", ")
}

fn is_graph(path: &Path, text: &str) -> bool {
    let named = |extension| path.extension().is_some_and(|e| e == extension);
    named("json") || (!named("ttir") && text.trim_start().starts_with('{'))
}

fn from_graph(
    arguments: &SourceArguments,
    graph: LoopGraph,
    machine: Option<MachineReference>,
) -> Result<Lowered, Error> {
    let given = [
        ("sub-tiles", arguments.sub_tiles.is_some()),
        ("programs-per-cta", arguments.programs_per_cta.is_some()),
        ("no-contract", arguments.no_contract),
        ("kernel", arguments.kernel.is_some()),
        ("loop", arguments.loop_index.is_some()),
    ];
    if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
        return Err(Error::OnlyForKernels { input: arguments.input.clone(), option });
    }
    let resources = match (&arguments.machine, machine) {
        (Some(name), _) => Machine::load(name)?.resources(),
        (None, Some(MachineReference::Name(name))) => Machine::load(&name)?.resources(),
        (None, Some(MachineReference::Resources(resources))) => *resources,
        (None, None) => return Err(Error::NoMachine { input: arguments.input.clone() }),
    };
    Ok(Lowered { graph, resources, tiles: None })
}

fn from_kernel(arguments: &SourceArguments, text: &str) -> Result<Loops<Lowered>, Error> {
    let Source { kernel, machine, options } = read_kernel(arguments, text)?;
    let loops = kernel.loops();
    let chosen = match arguments.loop_index {
        None => loops,
        Some(index) => {
            let one = loops.get(index).ok_or_else(|| Error::NoSuchLoop {
                input: arguments.input.clone(),
                index,
                count: loops.len(),
            })?;
            std::slice::from_ref(one)
        }
    };
    let lower = |l: &TileLoop| {
        let lowered = twill_triton::lower_parts(l, &machine, &options)?;
        Ok((lowered.graph, lowered.tiles))
    };
    let lowered: Result<Vec<(LoopGraph, TileLoop)>, Error> = chosen.iter().map(lower).collect();
    let (graphs, tiles): (Vec<LoopGraph>, Vec<TileLoop>) = lowered?.into_iter().unzip();
    let siblings = (graphs.len() > 1).then(|| Siblings {
        kernel: kernel.name().to_owned(),
        ties: kernel.ties(&tiles, &graphs.iter().collect::<Vec<_>>()),
        trip_counts: (0..graphs.len()).map(|index| kernel.trip_count(index)).collect(),
    });
    let resources = machine.resources();
    let each = graphs.into_iter().zip(tiles);
    let loops = each.map(|(graph, tiles)| Lowered { graph, resources: resources.clone(), tiles: Some(tiles) });
    Ok(Loops { loops: loops.collect(), siblings })
}

fn pose(arguments: &SearchArguments, lowered: Lowered) -> Result<Posed, Error> {
    let Lowered { graph, mut resources, tiles } = lowered;
    let numbers: BTreeSet<u32> = graph.operations().iter().filter_map(|op| op.sub_tile).collect();
    let one_program = tiles.filter(|l| !matches!(l.split(), Split::Programs { .. }));
    let sub_tiles = one_program.map(|_| u32::try_from(numbers.len()).unwrap_or(u32::MAX).max(1));
    let input = || arguments.source.input.clone();
    if let Some(groups) = arguments.compute_groups {
        resources.compute_groups.maximum = groups;
    }
    if let Some(registers) = arguments.registers_per_thread {
        limit_registers(&mut resources, registers)?;
    }
    let (graph, normalisation) = match arguments.normalise {
        0 => (graph, None),
        limit => {
            let n =
                twill_exact::normalise(&graph, limit).map_err(|error| Error::Normalise { input: input(), error })?;
            (n.graph, Some(NormalisationEntry { limit, error: n.error, distortion: n.distortion }))
        }
    };
    let pose = |graph| {
        Problem::new(graph, resources.clone(), model(&arguments.model))
            .map_err(|error| Error::Problem { input: input(), error })
    };
    if arguments.unroll == 1 {
        return Ok(Posed { problem: pose(graph)?, normalisation, rolled: None, sub_tiles });
    }
    let unrolled = graph.unrolled(arguments.unroll).map_err(|error| Error::Unroll { input: input(), error })?;
    Ok(Posed { problem: pose(unrolled)?, normalisation, rolled: Some(pose(graph)?), sub_tiles })
}

/// Takes registers from the threads of compute groups. Whole granules are dealt out, so another number would be paid for
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

fn model(arguments: &ModelArguments) -> ModelOptions {
    let mut options = match arguments.model {
        Model::Twill => ModelOptions::default(),
        Model::Paper => ModelOptions::paper(),
    };
    let set = |option: &mut bool, switch: Option<Switch>| {
        if let Some(switch) = switch {
            *option = switch == Switch::On;
        }
    };
    set(&mut options.exclusive_issue, arguments.exclusive_issue);
    set(&mut options.consumer_registers, arguments.consumer_registers);
    set(&mut options.cross_group_registers, arguments.cross_group_registers);
    if let Some(window) = arguments.concurrency_window {
        options.concurrency_window = match window {
            Window::Issue => ConcurrencyWindow::Issue,
            Window::Literal => ConcurrencyWindow::Literal,
        };
    }
    if let Some(liveness) = arguments.liveness {
        options.liveness = match liveness {
            LivenessArgument::Folded => Liveness::Folded,
            LivenessArgument::Paper => Liveness::Paper,
        };
    }
    if let Some(window) = arguments.stage_window {
        options.stage_window = match window {
            StageWindowArgument::Complete => StageWindow::Complete,
            StageWindowArgument::Paper => StageWindow::Paper,
        };
    }
    if let Some(assignment) = arguments.warp_assignment {
        options.warp_assignment = match assignment {
            WarpAssignmentArgument::Free => WarpAssignment::Free,
            WarpAssignmentArgument::BySubTile => WarpAssignment::BySubTile,
        };
    }
    options
}
