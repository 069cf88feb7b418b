//! One random kernel from bytes to numbers: what the fuzz target and the long run do.

use crate::compare::{Tolerance, difference, tolerance};
use crate::compiled::{Compiled, Question, Refusal, Way};
use crate::fault::Fault;
use crate::memory::{Launch, Memory};
use crate::random::Recipe;
use crate::value::Arithmetic;
use crate::warps::{Choice, Figures, Habit};
use crate::{sequential, warps};
use arbitrary::{Arbitrary, Unstructured};
use std::fmt;
use twill_codegen::ir::WarpProgram;
use twill_graph::WarpAssignment;
use twill_machine::Machine;

/// The machines that random kernels are scheduled for.
#[derive(Debug)]
pub struct Machines {
    hopper: Machine,
    blackwell: Machine,
}

impl Machines {
    /// Reads their files.
    ///
    /// # Errors
    /// When one of them is not right.
    pub fn load() -> Result<Machines, twill_machine::MachineError> {
        Ok(Machines { hopper: Machine::load("h200")?, blackwell: Machine::load("b200")? })
    }
}

/// A random kernel, how it is compiled, and how it is called.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The kernel.
    pub recipe: Recipe,
    /// True if it is for a machine with tensor memory.
    pub has_tensor_memory: bool,
    /// How its loops are cut.
    pub sub_tiles: Option<u32>,
    /// True if the scheduler chooses groups.
    pub is_free: bool,
    /// How its code is made.
    pub way: Way,
    /// Trips of its loops, for each call.
    pub calls: Vec<[u32; 2]>,
    /// Programs of the grid.
    pub programs: u32,
    /// For the numbers in memory, and the choices.
    pub seed: u64,
}

impl<'b> Arbitrary<'b> for Trial {
    fn arbitrary(from: &mut Unstructured<'b>) -> arbitrary::Result<Trial> {
        let has_tensor_memory = from.ratio(1, 5)?;
        let way = Way {
            persistent: from.ratio(1, 3)?,
            ring_depth: from.int_in_range(1..=3)?,
            handoff_depth: from.int_in_range(1..=2)?,
            pingpong: from.ratio(1, 3)?,
            // With rings of one slot a group may wait for ever: no batches of MMAs.
            ..Way::default()
        };
        let sub_tiles = if from.ratio(1, 4)? { Some(1) } else { None };
        let is_free = from.ratio(1, 3)?;
        let programs = from.int_in_range(1..=2)?;
        let mut calls = vec![[0, 1], [1, 0], [2, 2], [3, 1]];
        calls.push([from.int_in_range(4..=7)?, from.int_in_range(0..=4)?]);
        let seed = from.arbitrary()?;
        let recipe = Recipe::arbitrary(from)?;
        Ok(Trial { recipe, has_tensor_memory, sub_tiles, is_free, way, calls, programs, seed })
    }
}

/// The outcome of a trial without a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is no program: the reason, in the words of the stage that refused.
    Refused(String),
    /// All interleavings computed what the source says.
    Agreed {
        /// How many.
        interleavings: u64,
        /// Their cost.
        figures: Figures,
    },
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// Twill calls it a defect of its own.
    Defect(String),
    /// The kernel of a recipe cannot be executed as it stands.
    Sequential(Fault),
    /// The protocol checker rejects what was generated.
    Rejected(String),
    /// An execution of the warp programs went wrong.
    Fault {
        /// Which execution.
        run: String,
        /// How it went wrong.
        fault: Fault,
    },
    /// An execution of the warp programs computed something else.
    Wrong {
        /// Which execution.
        run: String,
        /// Its results.
        what: String,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Defect(error) => write!(f, "{error}"),
            Finding::Sequential(fault) => write!(f, "one operation after the other: {fault}"),
            Finding::Rejected(error) => write!(f, "the protocol checker rejects it: {error}"),
            Finding::Fault { run, fault } => write!(f, "{run}: {fault}"),
            Finding::Wrong { run, what } => write!(f, "{run}: {what}"),
        }
    }
}

impl std::error::Error for Finding {}

/// Work that is spent on a schedule.
const WORK: u64 = 60_000;

/// A trial from a fuzzer's bytes: the kernel that they make is compiled, checked and executed in every habit. `None`
/// where they make none.
///
/// # Errors
/// A failure: a defect, a program that the check rejects, or one that computes something else than its source.
pub fn fuzz(bytes: &[u8]) -> Result<Option<Outcome>, Finding> {
    let machines = Machines::load().map_err(|error| Finding::Defect(error.to_string()))?;
    Trial::of_bytes(bytes).map(|trial| trial.run(&machines, 1)).transpose()
}

impl Trial {
    /// A trial from the bytes of a fuzzer; none where they are too few.
    pub fn of_bytes(bytes: &[u8]) -> Option<Trial> {
        Trial::arbitrary(&mut Unstructured::new(bytes)).ok()
    }

    /// The trial of a seed.
    pub fn of_seed(seed: u64) -> Option<Trial> {
        let mut random = twill_graph::SplitMix64::new(seed);
        let bytes: Vec<u8> = (0..64).flat_map(|_| random.next_number().to_le_bytes()).collect();
        Trial::of_bytes(&bytes)
    }

    /// Its warp programs, not yet checked.
    ///
    /// # Errors
    /// When there are none.
    pub fn compile(&self, machines: &Machines) -> Result<(Compiled, WarpProgram), Refusal> {
        let machine = if self.has_tensor_memory { &machines.blackwell } else { &machines.hopper };
        let lowering = twill_triton::Options { sub_tiles: self.sub_tiles, ..twill_triton::Options::default() };
        let assignment = if self.is_free { WarpAssignment::Free } else { WarpAssignment::BySubTile };
        let compiled = Compiled::new(&self.recipe.text(), &Question { machine, lowering, assignment, work: WORK })?;
        let program = compiled.program(self.way)?;
        Ok((compiled, program))
    }

    /// Compiles it, has its barriers proved, and executes it with every habit, `seeds` times each.
    ///
    /// # Errors
    /// The failure.
    pub fn run(&self, machines: &Machines, seeds: u64) -> Result<Outcome, Finding> {
        let (compiled, program) = match self.compile(machines) {
            Ok(made) => made,
            Err(Refusal::Code(error @ twill_codegen::Error::Defect { .. })) => {
                return Err(Finding::Defect(error.to_string()));
            }
            Err(error @ Refusal::Rejected(_)) => return Err(Finding::Defect(error.to_string())),
            Err(error) => return Ok(Outcome::Refused(error.to_string())),
        };
        match twill_codegen::check(program.clone()) {
            Ok(_) => {}
            Err(error @ twill_codegen::Error::NotProved { .. }) => return Ok(Outcome::Refused(error.to_string())),
            Err(error) => return Err(Finding::Rejected(error.to_string())),
        }
        let (mut interleavings, mut figures) = (0, Figures::default());
        for call in 0..self.calls.len() {
            let expected = self.expected(&compiled, &program, call)?;
            for (k, habit) in (0..seeds).flat_map(|k| Habit::ALL.map(|habit| (k, habit))) {
                let run = expected.execute(&program, &mut Choice::new(habit, self.seed ^ k))?;
                interleavings += 1;
                figures.steps += run.steps;
                figures.events += run.events;
            }
        }
        Ok(Outcome::Agreed { interleavings, figures })
    }

    /// The memory that a call must leave.
    ///
    /// # Errors
    /// [`Finding::Sequential`] when the kernel itself is wrong.
    pub fn expected(&self, compiled: &Compiled, program: &WarpProgram, call: usize) -> Result<Expected, Finding> {
        let tolerance = tolerance(program);
        let arithmetic = if tolerance == Tolerance::Exact { Arithmetic::Rounded } else { Arithmetic::Double };
        let trips = self.calls.get(call).copied().unwrap_or([1, 1]);
        let (launch, before) = self.recipe.call(trips, self.programs, arithmetic, self.seed);
        let mut after = before.clone();
        sequential::run(compiled.kernel(), &launch, &mut after).map_err(Finding::Sequential)?;
        Ok(Expected { trips, launch, before, after, tolerance })
    }
}

/// A call, and the memory that it must leave.
#[derive(Clone, Debug)]
pub struct Expected {
    trips: [u32; 2],
    launch: Launch,
    before: Memory,
    after: Memory,
    tolerance: Tolerance,
}

impl Expected {
    /// Executes warp programs once and compares the memory that they leave.
    ///
    /// # Errors
    /// [`Finding::Fault`] or [`Finding::Wrong`].
    pub fn execute(&self, program: &WarpProgram, choice: &mut Choice) -> Result<Figures, Finding> {
        let run = || format!("{} and {} trips, {choice}", self.trips[0], self.trips[1]);
        let named = run();
        let mut memory = self.before.clone();
        let figures = warps::run(program, &self.launch, 1, &mut memory, choice)
            .map_err(|fault| Finding::Fault { run: named.clone(), fault })?;
        match difference(&self.after, &memory, self.tolerance) {
            None => Ok(figures),
            Some(difference) => Err(Finding::Wrong { run: named, what: difference.to_string() }),
        }
    }
}
