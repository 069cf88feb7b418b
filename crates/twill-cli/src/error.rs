//! What can go wrong, in terms of files and names that the user gave.

use std::io;
use std::path::PathBuf;
use thiserror::Error;
use twill_driver::gaus::GausError;

#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Driver(#[from] twill_driver::Error),
    #[error(transparent)]
    Trace(#[from] twill_driver::TraceError),
    #[error("cannot read {}: {error}; bench/gpu/trace.py writes it where it runs the kernel, or name it with --buffer", path.display())]
    Buffer { path: PathBuf, error: io::Error },
    #[error(
        "{}: {error}; it says on which gpu and date the buffer next to it was recorded, as bench/gpu/trace.py writes it: mend it, or remove it", path.display()
    )]
    BufferMetadata { path: PathBuf, error: serde_json::Error },
    #[error(transparent)]
    Cache(#[from] twill_driver::CacheError),
    #[error(transparent)]
    File(#[from] twill_driver::files::FileError),
    #[error(transparent)]
    Gaus(Box<GausError>),
    #[error("cannot read the folder {}: {error}", path.display())]
    Folder { path: PathBuf, error: io::Error },
    #[error("{}: there is no .ttir in this folder; name a folder of kernels, or the kernels", path.display())]
    NoKernels { path: PathBuf },
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
    #[error(
        "this twill came without the playground, which is no file at any of {places}; install the wheel, or make it with `cargo xtask playground`"
    )]
    NoPlayground { places: String },
    #[error("cannot write manual pages into {}: {error}", path.display())]
    Manual { path: PathBuf, error: io::Error },
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    #[error("no built-in graph is named `{name}`; there are: {known}")]
    UnknownGraph { name: String, known: String },
    #[error("{input}: it is a loop graph already; only a kernel in TTIR has tiles to show (--format graph)")]
    NoTiles { input: String },
    #[error(
        "{}: {why}; a kernel needs a new folder, an empty one, or one that holds a kernel of twill's and nothing else", path.display()
    )]
    NotOurs { path: PathBuf, why: String },
    #[error("cannot read {}: there is no such file; write it with --write and the kernels to compare", path.display())]
    NoBaseline { path: PathBuf },
    #[error(transparent)]
    Baseline(#[from] twill_driver::performance::BaselineError),
    #[error(transparent)]
    Performance(Box<twill_driver::performance::PerformanceError>),
    #[error("{input}: {path} does not have it; it has {known}; add it with --write")]
    NotInBaseline { path: String, input: String, known: String },
    #[error(
        "{input}: the machine {name} is not what it was when {path} was written: costs or resources differ, so that nothing can be compared; write it again with --write"
    )]
    ChangedMachine { path: String, input: String, name: String },
    #[error(
        "{input}: {path} is for the machine {before}, not {now}; leave --machine out, or write it again with --write"
    )]
    AnotherMachine { path: String, input: String, before: String, now: String },
    #[error("{input}: its kernel is `{now}`, and {path} has `{before}`; write it again with --write")]
    OtherKernel { path: String, input: String, before: String, now: String },
    #[error(
        "{input}: {path} was written with --{option} {before}, not {now}; leave it out, or write it again with --write"
    )]
    OtherOptions { path: String, input: String, option: String, before: String, now: String },
    #[error(transparent)]
    Machine(#[from] twill_machine::MachineError),
    #[error("{}", lines(.0))]
    MachineFile(Vec<twill_machine::MachineError>),
    #[error(transparent)]
    Format(#[from] twill_graph::format::FormatError),
    #[error("{input}: there is no program without warps; --swp-only writes text or JSON (--format)")]
    NoProgram { input: String },
    #[error("{input}: only a schedule with warps is drawn; here --format is {others}")]
    NoPicture { input: String, others: &'static str },
    #[error("{input}: only a schedule with warps is drawn; of a graph without, --format is html, json or perfetto")]
    OnlyTrace { input: String },
    #[error("a Perfetto trace is binary, and this is a terminal; name a file, as in -o trace.pftrace")]
    BinaryToTerminal,
    #[error("{0}")]
    Arguments(String),
    #[error(
        "{command} runs in Python, {purpose}, and {python} cannot: {why}; pip install the package from the checkout, or name another interpreter in TWILL_PYTHON"
    )]
    Python { command: &'static str, purpose: &'static str, python: String, why: String },
    #[error("{input}: --{option} is for Python source, FILE.py::KERNEL; TTIR and graphs have their types already")]
    OnlyForPython { input: String, option: &'static str },
    #[error("{input}: {why}")]
    Ttir { input: String, why: String },
    #[error(
        "{path}: the objective is {found}, below the lower bound {bound} that the file claims; the schedule itself is legal"
    )]
    FalseBound { path: String, bound: i128, found: i128 },
    #[error("{input}: --{option} is for the exact scheduler of kernels and loop graphs; {engine} would leave it out")]
    NotForEngine { input: String, option: String, engine: &'static str },
    #[error("{path}: the objective is {found}, and the file claims {claimed}; the schedule itself is legal")]
    OtherObjective { path: String, claimed: String, found: i128 },
    #[error(
        "the proof found for {input} does not survive its check; this is a defect of Twill, please report it: {error}"
    )]
    DefectiveProof { input: String, error: twill_check::CertificateError },
    #[error("{} exists; a certificate needs a new or an empty folder", path.display())]
    FolderExists { path: PathBuf },
    #[error("{}: there is no certificate.json in it, nor in a folder of it", path.display())]
    NoCertificate { path: PathBuf },
    #[error("{path}.why: it is about an interval of {interval} cycles, which its name denies")]
    ProofInterval { path: String, interval: i64 },
    #[error(transparent)]
    ProofText(#[from] twill_graph::proof::ProofTextError),
    #[error("{input}: no certificate: {error}")]
    Certify { input: String, error: twill_exact::CertifyError },
    #[error("{path}: the certificate is rejected: {error}")]
    Certificate { path: String, error: twill_check::CertificateError },
    #[error("{path}: the certificate and the schedule next to it do not agree: {why}")]
    Disagree { path: String, why: String },
    #[error("{input}: a question is about one loop, and the kernel has {count}; choose with --loop, from 0")]
    OneLoop { input: String, count: usize },
    #[error("{input}: there is no schedule to ask about ({why}); give --interval and --stages")]
    NothingToAsk { input: String, why: &'static str },
    #[error("{input}: I = 1 is the least there can be, so there is no smaller one to ask about; give --interval")]
    NothingBelow { input: String },
    #[error("{input}: {error}")]
    Formulation { input: String, error: twill_smtlib::FormulationError },
    #[error("{input}: it is a schedule already, and --{option} is for a search; leave it out, or name the kernel")]
    AlreadyScheduled { input: String, option: String },
    #[error("{input}: it is a page already, and is served as it is; leave --{option} out, or name what the page is of")]
    AlreadyDrawn { input: String, option: String },
    #[error(
        "{}: there is no schedule.json in it; name a folder that twill compile wrote (with --top, one of the folders in it)", path.display()
    )]
    NoSchedule { path: PathBuf },
    #[error("{input}: {why}; schedule it with `twill gaus {input} --format json -o FILE`, and report on that file")]
    NotOnPage { input: String, why: String },
    #[error("{}: it is no page that twill report wrote, and nothing else is served", path.display())]
    NotAPage { path: PathBuf },
    #[error("cannot serve on port {port} of this machine: {error}; choose another with --port, or leave it out")]
    Serve { port: u16, error: io::Error },
    #[error("{path}: {error}")]
    RejectedLoops { path: String, error: Box<twill_check::RejectedLoops> },
    #[error("{path}: {error}")]
    Rejected { path: String, error: twill_check::Rejected },
}

impl From<twill_driver::performance::PerformanceError> for Error {
    fn from(error: twill_driver::performance::PerformanceError) -> Error {
        Error::Performance(Box::new(error))
    }
}

impl From<GausError> for Error {
    fn from(error: GausError) -> Error {
        Error::Gaus(Box::new(error))
    }
}

fn lines(errors: &[twill_machine::MachineError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\nerror: ")
}
