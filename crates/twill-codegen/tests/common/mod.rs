//! From an example to its warp programs.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use twill_check::Verified;
use twill_codegen::ir::{TileOrder, WarpProgram};
use twill_codegen::{Checked, GroupShares, Options, ScheduledLoop, lower, lower_checked};
use twill_exact::{Budget, SearchOptions};
use twill_graph::{LoopGraph, ModelOptions, MultiLoopProblem, Problem, Schedule, corresponding};
use twill_machine::Machine;
use twill_triton::tile::Axis;
use twill_triton::{CtaCoarsening, Lowered, lower_parts, read};

/// A kernel with the schedules of its loops, to generate code from in several ways.
pub struct Scheduled {
    kernel: twill_triton::Kernel,
    lowered: Vec<Lowered>,
    problems: Vec<Problem>,
    schedules: Vec<Verified<Schedule>>,
    programs: Option<(u32, u32)>,
    shared_bytes: u64,
    tensor_columns: Option<u64>,
}

impl Scheduled {
    /// Schedules an example for a machine.
    pub fn new(example: &str, machine: &str, options: &twill_triton::Options) -> Scheduled {
        // Some of these take minutes to prove optimal, which is not the matter here; with less work, some do not fit.
        Scheduled::within(3_000_000, example, machine, options)
    }

    /// The same with a tenth of the work, where any schedule will do.
    #[allow(dead_code, reason = "not all tests that share this file ask for it")]
    pub fn soon(example: &str, machine: &str, options: &twill_triton::Options) -> Scheduled {
        Scheduled::within(300_000, example, machine, options)
    }

    fn within(work: u64, example: &str, machine: &str, options: &twill_triton::Options) -> Scheduled {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example).with_extension("ttir");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let kernel = read(&text, example).unwrap();
        let machine = Machine::load(machine).unwrap();
        let lowered: Vec<Lowered> = kernel.loops().iter().map(|l| lower_parts(l, &machine, options).unwrap()).collect();
        let problem =
            |l: &Lowered| Problem::new(l.graph.clone(), machine.resources().clone(), ModelOptions::default()).unwrap();
        let problems: Vec<Problem> = lowered.iter().map(problem).collect();
        let graphs: Vec<&LoopGraph> = lowered.iter().map(|l| &l.graph).collect();
        let schedules = solved_once(&format!("{example} on {}, {options:?}, {work}", machine.name()), || {
            solve(example, &problems, &graphs, work)
        });
        let programs = options.programs.map(|coarsening| (coarsening.count, 0));
        let resources = machine.resources();
        let (shared_bytes, columns) = (resources.shared_memory.0, resources.tensor_memory.0);
        let tensor_columns = machine.has_tensor_memory().then_some(columns);
        Scheduled { kernel, lowered, problems, schedules, programs, shared_bytes, tensor_columns }
    }

    /// The warp programs.
    pub fn program(
        &self,
        persistent: bool,
        ring_depth: u32,
        pingpong: bool,
    ) -> Result<WarpProgram, twill_codegen::Error> {
        self.lower(&self.options(persistent, ring_depth, pingpong))
    }

    /// The same, proved.
    #[allow(dead_code, reason = "not all tests that share this file ask for it")]
    pub fn checked(&self, persistent: bool, ring_depth: u32, pingpong: bool) -> Result<Checked, twill_codegen::Error> {
        lower_checked(&self.kernel, &self.loops(), &self.options(persistent, ring_depth, pingpong))
    }

    /// The warp programs of CTAs that form clusters of two.
    #[allow(dead_code, reason = "not all tests that share this file ask for it")]
    pub fn clusters(&self, persistent: bool, ring_depth: u32) -> Result<WarpProgram, twill_codegen::Error> {
        self.lower(&Options { cluster: true, ..self.options(persistent, ring_depth, false) })
    }

    /// The warp programs of groups of so many warps.
    #[allow(dead_code, reason = "not all tests that share this file ask for it")]
    pub fn with_compute_warps(&self, warps: u32) -> Result<WarpProgram, twill_codegen::Error> {
        let shares = GroupShares { compute_warps: Some(warps), ..GroupShares::default() };
        self.lower(&Options { shares, ..self.options(true, 2, false) })
    }

    fn options(&self, persistent: bool, ring_depth: u32, pingpong: bool) -> Options {
        Options {
            persistent,
            order: TileOrder::Linear,
            ring_depth,
            handoff_depth: if persistent { 2 } else { 1 },
            // Not with all rings: a group that keeps a slot while it waits for another may wait for ever.
            mma_batches: false,
            early_reads: false,
            shared_barriers: false,
            shorter_pipelines: true,
            whole_tiles: true,
            stores_in_rows: true,
            operands_in_registers: pingpong,
            pingpong,
            cluster: false,
            wave_sync: false,
            tf32: true,
            left_of_8_bits: true,
            shared_bytes: self.shared_bytes,
            tensor_columns: self.tensor_columns,
            programs: self.programs,
            shares: GroupShares::default(),
        }
    }

    fn lower(&self, options: &Options) -> Result<WarpProgram, twill_codegen::Error> {
        lower(&self.kernel, &self.loops(), options)
    }

    fn loops(&self) -> Vec<ScheduledLoop<'_>> {
        let each = self.lowered.iter().zip(&self.problems).zip(&self.schedules);
        each.map(|((lowered, problem), schedule)| ScheduledLoop { lowered, problem, schedule }).collect()
    }
}

/// Schedules of this name, searched for by the first of the tests that ask for them.
fn solved_once(name: &str, solve: impl FnOnce() -> Vec<Verified<Schedule>>) -> Vec<Verified<Schedule>> {
    type Known = HashMap<String, Arc<OnceLock<Vec<Verified<Schedule>>>>>;
    static KNOWN: OnceLock<Mutex<Known>> = OnceLock::new();
    let known = KNOWN.get_or_init(Mutex::default);
    // Tests that ask for others go on meanwhile.
    let mine = Arc::clone(known.lock().unwrap_or_else(PoisonError::into_inner).entry(name.to_owned()).or_default());
    mine.get_or_init(solve).clone()
}

fn solve(name: &str, problems: &[Problem], graphs: &[&LoopGraph], work: u64) -> Vec<Verified<Schedule>> {
    let budget = Budget { work: Some(work), ..Budget::default() };
    let search = SearchOptions { budget, ..SearchOptions::default() };
    if let [problem] = problems {
        let report = twill_exact::schedule(problem, &search, &mut |_| ());
        return vec![twill_check::verify(problem, report.outcome.schedule().unwrap().clone()).unwrap()];
    }
    let weights = vec![1; problems.len()];
    let together = MultiLoopProblem::new(name.to_owned(), problems.to_vec(), weights, corresponding(graphs)).unwrap();
    let report = twill_exact::schedule_multi_loop(&together, &search, &mut |_| ());
    let schedules = report.loops.iter().map(|r| r.outcome.schedule().unwrap().clone()).collect();
    twill_check::verify_multi_loop(&together, &report.outcome.schedule().unwrap().groups, schedules).unwrap()
}

/// N sub-tiles.
pub fn sub_tiles(count: u32) -> twill_triton::Options {
    twill_triton::Options { sub_tiles: Some(count), ..twill_triton::Options::default() }
}

/// N programs that share a CTA.
pub fn coarsening(count: u32) -> twill_triton::Options {
    twill_triton::Options { programs: Some(CtaCoarsening { count, axis: Axis::X }), ..twill_triton::Options::default() }
}
