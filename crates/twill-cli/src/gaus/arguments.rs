//! What `twill gaus` can be requested.

use crate::arguments::{BudgetArguments, PageArguments, Switch, by_ending, seconds_or_none};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::str::FromStr;
use twill_gaus::Baseline;
use twill_graph::{MemoryBudget, Random};

/// Schedule a large graph.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 a schedule was found (the bound says how good it is), 1 error, 2 dependences rule out every schedule, 3 none was found in time."
)]
pub(crate) struct GausArguments {
    /// The graph: .json (twill-dataflow, or a loop graph), .graphml (HatScheT), .dot (EXPRESS), .blif (EPFL), .gml (GS-Schedule),
    /// .mlir (CIRCT's ssp), a kernel in TTIR (.ttir), or a built-in loop graph.
    #[arg(required_unless_present = "random")]
    pub(crate) input: Option<PathBuf>,
    /// A random graph instead, such as nodes=1000,density=0.01,back-edges=50.
    #[arg(long, value_name = "SPEC", conflicts_with = "input")]
    pub(crate) random: Option<Random>,
    /// Resource model of a .graphml [default: GRAPH_RM.xml beside it].
    #[arg(long, value_name = "FILE")]
    pub(crate) resources: Option<PathBuf>,
    /// Machine of a kernel or loop graph [default: the graph's own; h200 for TTIR].
    #[arg(long, short)]
    pub(crate) machine: Option<String>,
    /// Which of a kernel's loops, counted from 0.
    #[arg(long = "loop", value_name = "INDEX")]
    pub(crate) loop_index: Option<usize>,
    /// Let a consumer start in its producer's step [default: on for .gml, off for .blif].
    #[arg(long, value_enum)]
    pub(crate) chaining: Option<Switch>,
    /// What is to be small.
    #[arg(long, value_enum, default_value_t = ObjectiveArgument::Resources)]
    pub(crate) objective: ObjectiveArgument,
    /// Weights of the sum of peaks and of communication, for `resources`; GS-Schedule's score is 100,1.
    #[arg(long, value_name = "PEAK,COMMUNICATION", default_value = "1,0")]
    pub(crate) weights: Weights,
    /// All operations are finished by this step.
    #[arg(long, value_name = "STEPS", conflicts_with = "latency_factor")]
    pub(crate) latency: Option<u64>,
    /// The same in multiples of the longest path, rounded down [default: 1.5; none with an interval or for `latency`].
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub(crate) latency_factor: Option<f64>,
    /// Initiation interval of a loop.
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) ii: Option<u64>,
    /// The least initiation interval, then the least latency at it, then the least storage.
    #[arg(long, conflicts_with_all = ["ii", "objective", "weights"])]
    pub(crate) smallest_ii: bool,
    /// Limit of a resource, or of all.
    #[arg(long, value_name = "[NAME=]UNITS")]
    pub(crate) resource_cap: Vec<Cap>,
    /// Who schedules.
    #[arg(long, value_enum, default_value_t = EngineArgument::Gaus)]
    pub(crate) engine: EngineArgument,
    /// Where GauS begins.
    #[arg(long, value_enum, default_value_t = StartArgument::Middle)]
    pub(crate) start: StartArgument,
    /// Baselines whose schedules are known to the search: it ends no worse than any, or `none` [default:
    /// list,spans,force-directed; none with an interval].
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "smallest_ii")]
    pub(crate) known: Vec<String>,
    /// Leave the gradient out: legalise and polish the start.
    #[arg(long)]
    pub(crate) no_gradient: bool,
    /// Moves of local improvement, in multiples of the number of operations; 0 for none.
    #[arg(long, value_name = "N")]
    pub(crate) polish_sweeps: Option<u32>,
    /// Rounds of gradient, legalising and polish.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: Option<u32>,
    /// Effort of exact search in windows of what GauS found, in conflicts; 0 for none [default: 1000000 for graphs of up to 1000
    /// operations, with half of the time, and where GauS gets no further than a baseline]. A window that holds the whole graph proves optimality.
    #[arg(long, value_name = "CONFLICTS", conflicts_with = "smallest_ii")]
    pub(crate) windows: Option<u64>,
    /// What random choices depend on.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Stop after so many seconds with the best known [default: none].
    #[arg(long, value_name = "SECONDS", value_parser = seconds_or_none, allow_negative_numbers = true)]
    pub(crate) time_limit: Option<f64>,
    /// Stop with the best known when the process uses so many megabytes (10^6 bytes) of memory.
    #[arg(long, value_name = "MEGABYTES", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) memory_limit: Option<u64>,
    /// Output format [default: by the ending of --output: .json, .pftrace; otherwise text].
    #[arg(help_heading = "Output", long, value_enum)]
    pub(crate) format: Option<GausFormat>,
    #[command(flatten)]
    pub(crate) page: PageArguments,
    /// Say nothing of progress.
    #[arg(help_heading = "Output", long, short)]
    pub(crate) quiet: bool,
}

impl GausArguments {
    /// The output format that is asked for, by its name or by the output's ending.
    pub(crate) fn format(&self) -> GausFormat {
        const ENDINGS: [(&str, GausFormat); 2] = [("json", GausFormat::Json), ("pftrace", GausFormat::Perfetto)];
        self.format.or_else(|| by_ending(self.page.output.as_deref(), &ENDINGS)).unwrap_or(GausFormat::Text)
    }

    /// Seconds that there are; `None` without a limit.
    pub(crate) fn seconds(&self) -> Option<f64> {
        self.time_limit.filter(|seconds| seconds.is_finite())
    }

    /// How much memory there may be in use.
    pub(crate) fn memory(&self) -> Option<MemoryBudget> {
        BudgetArguments { memory_limit: self.memory_limit, ..BudgetArguments::default() }.memory()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObjectiveArgument {
    /// Peaks of resources, and communication by weight.
    Resources,
    /// Peak storage.
    Storage,
    /// The latest finish.
    Latency,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StartArgument {
    /// The middle of each operation's window.
    Middle,
    /// A list schedule (with an interval: an iterative modulo schedule).
    List,
    /// Anywhere in the window.
    Random,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GausFormat {
    /// What was found, its bound, and what it uses.
    Text,
    /// The schedule with its graph, for `twill check`.
    Json,
    /// Figures alone, as JSON on one line.
    Summary,
    /// A trace for Perfetto, of three iterations if the graph is a loop; binary, for a file that ends in .pftrace.
    Perfetto,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EngineArgument {
    Gaus,
    Baseline(Baseline),
}

impl ValueEnum for EngineArgument {
    fn value_variants<'a>() -> &'a [EngineArgument] {
        const ALL: [EngineArgument; Baseline::ALL.len() + 1] = {
            let mut all = [EngineArgument::Gaus; Baseline::ALL.len() + 1];
            let mut k = 0;
            while k < Baseline::ALL.len() {
                all[k + 1] = EngineArgument::Baseline(Baseline::ALL[k]);
                k += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.name()))
    }
}

impl EngineArgument {
    pub(crate) fn name(self) -> &'static str {
        match self {
            EngineArgument::Gaus => "gaus",
            EngineArgument::Baseline(baseline) => baseline.name(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weights {
    pub(crate) peak: u64,
    pub(crate) communication: u64,
}

impl FromStr for Weights {
    type Err = String;

    fn from_str(text: &str) -> Result<Weights, String> {
        let number = |part: &str| part.trim().parse::<u32>().map(u64::from).ok();
        let both = text.split_once(',').and_then(|(peak, rest)| Some((number(peak)?, number(rest)?)));
        match both {
            Some((peak, communication)) if peak + communication > 0 => Ok(Weights { peak, communication }),
            _ => Err("two whole numbers with a comma between, not both 0".into()),
        }
    }
}

/// A limit, of one resource or of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cap {
    pub(crate) name: Option<String>,
    pub(crate) units: u64,
}

impl FromStr for Cap {
    type Err = String;

    fn from_str(text: &str) -> Result<Cap, String> {
        let (name, units) = match text.rsplit_once('=') {
            Some((name, units)) => (Some(name.to_owned()), units),
            None => (None, text),
        };
        match units.trim().parse() {
            Ok(units) if units > 0 => Ok(Cap { name, units }),
            _ => Err("a whole number above 0, or NAME=number".into()),
        }
    }
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (1.0..=1e6).contains(&value) => Ok(value),
        _ => Err("a number from 1 to 1e6".into()),
    }
}
