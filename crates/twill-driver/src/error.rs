//! What can go wrong between a kernel and its code, in terms of names that the user gave.

use thiserror::Error;
use twill_graph::Source;

/// Why there is no answer. Messages name the input, the place in it, and the way out.
#[derive(Debug, Error)]
pub enum Error {
    /// A loop graph came without a machine.
    #[error("{input}: the graph does not name a machine; choose one with --machine (twill machine list)")]
    NoMachine {
        /// The input.
        input: String,
    },
    /// An option for kernels was given with a loop graph.
    #[error("{input}: --{option} is for kernels in TTIR; a loop graph has its tiles and loop already")]
    OnlyForKernels {
        /// The input.
        input: String,
        /// The option.
        option: &'static str,
    },
    /// There is no such loop.
    #[error("{input}: there is no loop {index}; the kernel has {count}, counted from 0")]
    NoSuchLoop {
        /// The input.
        input: String,
        /// Requested for.
        index: usize,
        /// There are.
        count: usize,
    },
    /// Several schedules were asked for of several loops.
    #[error(
        "{input}: --top is for one loop, and the kernel has {count}; choose one with --loop, which is then scheduled by itself"
    )]
    TopOfLoops {
        /// The input.
        input: String,
        /// Its loops.
        count: usize,
    },
    /// Code was asked for from a loop graph.
    #[error("{input}: it is a loop graph; code is generated from a kernel in TTIR (.ttir)")]
    NoSource {
        /// The input.
        input: String,
    },
    /// There is no code generator for the machine.
    #[error(
        "{input}: kernels are generated for Hopper (sm_90a) and Blackwell (sm_100a), and {machine} is {architecture}"
    )]
    NoGenerator {
        /// The input.
        input: String,
        /// The machine.
        machine: String,
        /// Its architecture.
        architecture: String,
    },
    /// Kernels that are executed in order are not written for the machine.
    #[error(
        "{input}: kernels are executed in order on Hopper (sm_90a), and {machine} is {architecture}; leave --schedule out"
    )]
    NotInOrder {
        /// The input.
        input: String,
        /// The machine.
        machine: String,
        /// Its architecture.
        architecture: String,
    },
    /// A multistage kernel was asked for, and nothing of it can be loaded ahead.
    #[error(
        "{input}: no tile that a loop loads can be copied ahead by cp.async (in Gluon, from 4 bytes of known contiguity on, \
         through pointers); leave --schedule out"
    )]
    NoLoadsAhead {
        /// The input.
        input: String,
    },
    /// Code was asked for iterations that are scheduled as one.
    #[error("{input}: code is generated for a loop as it stands; leave --unroll out")]
    Unrolled {
        /// The input.
        input: String,
    },
    /// Python cannot assemble the kernel.
    #[error(
        "{input}: {python} does not assemble the kernel: {why}\nNothing was written; --no-assemble writes it as it is"
    )]
    Assembler {
        /// The input.
        input: String,
        /// The interpreter.
        python: String,
        /// What it said.
        why: String,
    },
    /// The machine code of every kernel that was tried is unusable.
    #[error(
        "{input}: no machine code of the kernel can run: {why}\nNothing was written; ask for another schedule (--schedule, --sub-tiles)"
    )]
    MachineCode {
        /// The input.
        input: String,
        /// What is wrong with it.
        why: String,
    },
    /// The assembler did not come to its end, which says nothing about the kernel.
    #[error("{input}: {python} could not assemble the kernel: {why}")]
    Interrupted {
        /// The input.
        input: String,
        /// The interpreter.
        python: String,
        /// What stopped it.
        why: String,
    },
    /// A file of the kernel could not be written for the assembler.
    #[error("cannot write {path}: {error}")]
    Scratch {
        /// The file.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// No code can be generated.
    #[error("{}", placed(input, &error.to_string()))]
    Emit {
        /// The input.
        input: String,
        /// Why.
        error: Box<twill_codegen::Error>,
    },
    /// Time stamps in a language that has none.
    #[error("{input}: only kernels in CUDA C++ record their time (--trace): add --emit cuda")]
    NotTraced {
        /// The input.
        input: String,
    },
    /// Clusters of CTAs in a language that has none here.
    #[error("{input}: only kernels in CUDA C++ form clusters of CTAs (--cluster): add --emit cuda")]
    NoClusters {
        /// The input.
        input: String,
    },
    /// Synchronised waves of CTAs in a language that has no such thing here.
    #[error("{input}: only kernels in CUDA C++ synchronise waves of CTAs (--wave-sync): add --emit cuda")]
    NoWaveSync {
        /// The input.
        input: String,
    },
    /// A number of warps where the schedule shares out warps, or that no kernel has.
    #[error(
        "{input}: --num-warps is 1, 2, 4 or 8, for kernels in Gluon without warp specialisation: add --schedule multistage \
         or --schedule in-order, or leave it out"
    )]
    NoNumWarps {
        /// The input.
        input: String,
    },
    /// A number of stages where the schedule has its own.
    #[error("{input}: --num-stages is for multistage kernels in Gluon: add --schedule multistage, or leave it out")]
    NoNumStages {
        /// The input.
        input: String,
    },
    /// Sub-tiles of the epilogue where the back end has none, or in columns that threads cannot tell apart.
    #[error(
        "{input}: --epilogue-subtile is 0 or a power of two from 16 on, for kernels of warp groups in Gluon, on Hopper; leave it out"
    )]
    NoEpilogueSubtile {
        /// The input.
        input: String,
    },
    /// Steps of another size where results of MMAs are in tensor memory.
    #[error("{input}: --retile-loop is not for {machine} yet, whose MMAs write to tensor memory; leave it out")]
    RetiledInTensorMemory {
        /// The input.
        input: String,
        /// The machine.
        machine: String,
    },
    /// The machine.
    #[error(transparent)]
    Machine(Box<twill_machine::MachineError>),
    /// The kernel.
    #[error(transparent)]
    Triton(Box<twill_triton::Error>),
    /// A file.
    #[error(transparent)]
    Format(Box<twill_graph::format::FormatError>),
    /// Loops that do not go together.
    #[error("{input}: {error}")]
    Kernel {
        /// The input.
        input: String,
        /// Why.
        error: Box<twill_graph::KernelError>,
    },
    /// Trip counts that mean nothing.
    #[error("{input}: --trip-counts weighs loops that are scheduled together; {why}")]
    TripCounts {
        /// The input.
        input: String,
        /// Why.
        why: &'static str,
    },
    /// A graph that does not go with the machine.
    #[error("{input}: {error}")]
    Problem {
        /// The input.
        input: String,
        /// Why.
        error: Box<twill_graph::ProblemError>,
    },
    /// A number of registers that cannot be allotted.
    #[error(
        "--registers-per-thread {given}: a thread of {machine} has {most} at most, {least} at least, or a multiple of {granularity} in between"
    )]
    RegistersPerThread {
        /// The machine.
        machine: String,
        /// Requested for.
        given: u32,
        /// Least.
        least: u32,
        /// Most.
        most: u32,
        /// Step.
        granularity: u32,
    },
    /// The loop cannot be unrolled so often.
    #[error("{input}: cannot unroll: {error}")]
    Unroll {
        /// The input.
        input: String,
        /// Why.
        error: Box<twill_graph::GraphError>,
    },
    /// Costs that cannot be normalised.
    #[error("{input}: {error}")]
    Normalise {
        /// The input.
        input: String,
        /// Why.
        error: Box<twill_exact::NormaliseError>,
    },
    /// The checker does not accept a schedule.
    #[error(
        "the schedule found for {input} does not survive its replay; this is a defect of Twill, please report it:\n{error}"
    )]
    Defect {
        /// The input.
        input: String,
        /// What it breaks.
        error: Box<twill_check::Rejected>,
    },
    /// The checker does not accept the schedules of sibling loops.
    #[error(
        "the schedules found for the loops of {input} do not survive their replay; this is a defect of Twill, please report it:\n{error}"
    )]
    KernelDefect {
        /// The input.
        input: String,
        /// What they break.
        error: Box<twill_check::RejectedLoops>,
    },
    /// The checker does not accept the schedule of a file.
    #[error("{path}: {error}")]
    Rejected {
        /// The file.
        path: String,
        /// What it breaks.
        error: Box<twill_check::Rejected>,
    },
    /// The checker does not accept the schedules of sibling loops of a file.
    #[error("{path}: {error}")]
    RejectedLoops {
        /// The file.
        path: String,
        /// What they break.
        error: Box<twill_check::RejectedLoops>,
    },
    /// A file claims another objective than its schedule has, or a bound above it.
    #[error(
        "{path}: the objective is {found}, which the file denies (twill check says more); schedule the graph again"
    )]
    OtherObjective {
        /// The file.
        path: String,
        /// What the replay found.
        found: i128,
    },
    /// There is no page of a pipeline.
    #[error("{path}: a pipeline without warps (--swp-only) has no report; write the schedule, without --swp-only")]
    NoPage {
        /// The file.
        path: String,
    },
    /// The checker does not accept an explanation.
    #[error(
        "the explanation of {input} does not survive its replay; this is a defect of Twill, please report it:\n{why}"
    )]
    Explanation {
        /// The input.
        input: String,
        /// What is wrong.
        why: String,
    },
}

impl Error {
    /// The line of the user's own source that it is about, if it is about one.
    pub fn source_line(&self) -> Option<&Source> {
        let place = match self {
            Error::Triton(error) => error.place(),
            Error::Emit { error, .. } => error.place(),
            _ => None,
        };
        place?.source.as_ref()
    }

    /// Whether the rows of a loop cannot be shared out between groups.
    pub(crate) fn asks_for_one_sub_tile(&self) -> bool {
        match self {
            Error::Emit { error, .. } => error.asks_for_one_sub_tile(),
            Error::Triton(error) => matches!(**error, twill_triton::Error::NoRows { .. }),
            _ => false,
        }
    }

    /// Bytes of shared memory that the generated kernel has too many, where that is what is wrong; 0 where another schedule might
    /// do for another reason; `None` where none will.
    pub(crate) fn excess(&self) -> Option<u64> {
        let Error::Emit { error, .. } = self else { return None };
        match **error {
            twill_codegen::Error::SharedMemory { needed, available } => Some(needed.saturating_sub(available)),
            twill_codegen::Error::TensorMemory { .. }
            | twill_codegen::Error::Defect { .. }
            | twill_codegen::Error::Protocol { .. }
            | twill_codegen::Error::NotProved { .. } => Some(0),
            _ => None,
        }
    }
}

impl From<twill_machine::MachineError> for Error {
    fn from(error: twill_machine::MachineError) -> Error {
        Error::Machine(Box::new(error))
    }
}

impl From<twill_triton::Error> for Error {
    fn from(error: twill_triton::Error) -> Error {
        Error::Triton(Box::new(error))
    }
}

impl From<twill_graph::format::FormatError> for Error {
    fn from(error: twill_graph::format::FormatError) -> Error {
        Error::Format(Box::new(error))
    }
}

/// An error with its file in front, unless it names that itself.
fn placed(input: &str, error: &str) -> String {
    if error.starts_with(input) { error.to_owned() } else { format!("{input}: {error}") }
}
