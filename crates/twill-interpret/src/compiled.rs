//! From the text of a kernel to its warp programs, in whatever way is asked for.

use twill_check::{Verified, verify, verify_multi_loop};
use twill_codegen::ir::{TileOrder, WarpProgram};
use twill_codegen::{GroupShares, Options, ScheduledLoop, lower};
use twill_exact::{Budget, Naive, SearchOptions, naive, naive_multi_loop};
use twill_graph::{LoopGraph, ModelOptions, MultiLoopProblem, Problem, Schedule, Tie, WarpAssignment};
use twill_machine::Machine;
use twill_triton::{Kernel, Lowered, lower_parts, read};

/// Why there are no warp programs.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The text is no kernel that Twill reads.
    #[error(transparent)]
    Text(#[from] twill_triton::Error),
    /// The loop makes no problem for the machine.
    #[error("no problem: {0}")]
    Problem(String),
    /// No schedule was found within the budget.
    #[error("no schedule was found within the budget")]
    NoSchedule,
    /// The checker does not accept the schedule.
    #[error("the checker rejects the engine's schedule: {0}")]
    Rejected(String),
    /// No code can be generated.
    #[error(transparent)]
    Code(#[from] twill_codegen::Error),
}

/// How code is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// A CTA works on one tile after another.
    pub persistent: bool,
    /// In which order.
    pub order: TileOrder,
    /// Least number of slots of the rings of loads.
    pub ring_depth: u32,
    /// Least number of slots of buffers between groups.
    pub handoff_depth: u32,
    /// Groups alternate on the tensor core (ping-pong), and hold left operands in registers.
    pub pingpong: bool,
    /// MMAs start in batches, and small tiles are read while they run.
    pub mma_batches: bool,
    /// Warps and registers of groups, and what saves registers.
    pub shares: GroupShares,
}

/// A CTA for each tile, rings of two slots, and nothing that makes kernels faster.
impl Default for Way {
    fn default() -> Way {
        Way {
            persistent: false,
            order: TileOrder::Linear,
            ring_depth: 2,
            handoff_depth: 1,
            pingpong: false,
            mma_batches: false,
            shares: GroupShares::default(),
        }
    }
}

/// How a schedule is searched for.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// How loops are lowered.
    pub lowering: twill_triton::Options,
    /// How operations come to groups.
    pub assignment: WarpAssignment,
    /// Units of work.
    pub work: u64,
}

impl Question<'_> {
    /// Loops as they are lowered by default, each sub-tile on one group, within so many units of work.
    pub fn new(machine: &Machine, work: u64) -> Question<'_> {
        let lowering = twill_triton::Options::default();
        Question { machine, lowering, assignment: WarpAssignment::BySubTile, work }
    }
}

/// A kernel whose loops have schedules.
#[derive(Debug)]
pub struct Compiled {
    kernel: Kernel,
    lowered: Vec<Lowered>,
    problems: Vec<Problem>,
    schedules: Vec<Verified<Schedule>>,
    programs: Option<(u32, u32)>,
    shared_bytes: u64,
    tensor_columns: Option<u64>,
}

impl Compiled {
    /// Schedules the loops of a kernel; without pipelining where nothing else is found.
    ///
    /// # Errors
    /// When the text is not read or lowered, or no schedule is found.
    pub fn new(text: &str, question: &Question<'_>) -> Result<Compiled, Refusal> {
        Compiled::of(read(text, "kernel.ttir")?, question)
    }

    /// The same of a kernel that is read.
    ///
    /// # Errors
    /// When it is not lowered, or no schedule is found.
    pub fn of(kernel: Kernel, question: &Question<'_>) -> Result<Compiled, Refusal> {
        let Question { machine, lowering, assignment, work } = question;
        let each = kernel.loops().iter();
        let lowered = each.clone().map(|l| lower_parts(l, machine, lowering)).collect::<Result<Vec<_>, _>>()?;
        let prepared = each.map(|l| lowering.prepare(l, machine)).collect::<Result<Vec<_>, _>>()?;
        let options = ModelOptions { warp_assignment: *assignment, ..ModelOptions::default() };
        let problem = |l: &Lowered| Problem::new(l.graph.clone(), machine.resources().clone(), options);
        let problems = lowered.iter().map(problem).collect::<Result<Vec<_>, _>>();
        let problems = problems.map_err(|error| Refusal::Problem(error.to_string()))?;
        let graphs: Vec<&LoopGraph> = lowered.iter().map(|l| &l.graph).collect();
        let ties = kernel.ties(&prepared, &graphs);
        let schedules = schedules(kernel.name(), &problems, ties, *work)?;
        let programs = lowering.programs.map(|coarsening| (coarsening.count, 0));
        let (shared_bytes, columns) = (machine.resources().shared_memory.0, machine.resources().tensor_memory.0);
        let tensor_columns = machine.has_tensor_memory().then_some(columns);
        Ok(Compiled { kernel, lowered, problems, schedules, programs, shared_bytes, tensor_columns })
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Its warp programs, not yet checked.
    ///
    /// # Errors
    /// When no code can be generated in this way.
    pub fn program(&self, way: Way) -> Result<WarpProgram, twill_codegen::Error> {
        let each = self.lowered.iter().zip(&self.problems).zip(&self.schedules);
        let loops: Vec<ScheduledLoop<'_>> =
            each.map(|((lowered, problem), schedule)| ScheduledLoop { lowered, problem, schedule }).collect();
        let options = Options {
            persistent: way.persistent,
            order: way.order,
            ring_depth: way.ring_depth,
            handoff_depth: way.handoff_depth,
            mma_batches: way.mma_batches,
            early_reads: way.mma_batches,
            shared_barriers: true,
            shorter_pipelines: true,
            whole_tiles: true,
            stores_in_rows: true,
            operands_in_registers: way.pingpong,
            cluster: false,
            wave_sync: false,
            pingpong: way.pingpong,
            tf32: true,
            left_of_8_bits: true,
            shared_bytes: self.shared_bytes,
            tensor_columns: self.tensor_columns,
            programs: self.programs,
            shares: way.shares,
        };
        lower(&self.kernel, &loops, &options)
    }
}

fn schedules(name: &str, problems: &[Problem], ties: Vec<Tie>, work: u64) -> Result<Vec<Verified<Schedule>>, Refusal> {
    let budget = Budget { work: Some(work), ..Budget::default() };
    let search = SearchOptions { budget, ..SearchOptions::default() };
    if let [problem] = problems {
        let mut report = twill_exact::schedule(problem, &search, &mut |_| ());
        if report.outcome.schedule().is_none() {
            report = naive(problem, Naive::NoPipelining, &search, &mut |_| ());
        }
        let schedule = report.outcome.schedule().ok_or(Refusal::NoSchedule)?.clone();
        return Ok(vec![verify(problem, schedule).map_err(|error| Refusal::Rejected(format!("{error:?}")))?]);
    }
    let weights = vec![1; problems.len()];
    let together = MultiLoopProblem::new(name.to_owned(), problems.to_vec(), weights, ties);
    let together = together.map_err(|error| Refusal::Problem(error.to_string()))?;
    let mut report = twill_exact::schedule_multi_loop(&together, &search, &mut |_| ());
    if report.outcome.schedule().is_none() {
        report = naive_multi_loop(&together, Naive::NoPipelining, &search, &mut |_| ());
    }
    let groups = report.outcome.schedule().ok_or(Refusal::NoSchedule)?.groups.clone();
    let each: Option<Vec<Schedule>> = report.loops.iter().map(|r| r.outcome.schedule().cloned()).collect();
    verify_multi_loop(&together, &groups, each.ok_or(Refusal::NoSchedule)?)
        .map_err(|error| Refusal::Rejected(format!("{error:?}")))
}
