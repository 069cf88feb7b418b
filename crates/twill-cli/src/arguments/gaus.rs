//! Arguments of `twill gaus`.

use super::{BudgetArguments, PageArguments, Switch, by_ending, seconds_or_none};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::str::FromStr;
use twill_gaus::Baseline;
use twill_graph::{MemoryBudget, Random};

/// Schedule a large graph.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 found (exact: optimal), 1 error, 2 infeasible, 3 not found in time",
    after_long_help = "--engine exact finds the least initiation interval of a loop, with its proof. It takes loops whose operations each use one unit of one resource, as HatScheT's do, and no option on objective or start.\n\nExit codes: 0 a schedule was found, whose bound says how good it is (with --engine exact, it is proved optimal), 1 error, 2 dependences rule out every schedule, 3 none was found in time (with --engine exact, it is the best known)."
)]
pub(crate) struct GausArguments {
    /// Graph file, TTIR, or name of a built-in graph.
    ///
    /// Formats: .json (twill-dataflow, or a loop graph), .graphml (HatScheT), .dot (EXPRESS), .blif (EPFL), .gml (GS-Schedule),
    /// .mlir (CIRCT's ssp).
    #[arg(required_unless_present = "random")]
    pub(crate) input: Option<PathBuf>,
    /// Random graph, such as nodes=1000,density=0.01.
    ///
    /// back-edges=50 makes it a loop.
    #[arg(long, value_name = "SPEC", conflicts_with = "input")]
    pub(crate) random: Option<Random>,
    /// Resource model of a .graphml [default: GRAPH_RM.xml next to it].
    #[arg(long, value_name = "FILE")]
    pub(crate) resources: Option<PathBuf>,
    /// Machine of a kernel or loop graph.
    ///
    /// The default is the graph's own, and h200 for TTIR.
    #[arg(long, short, value_name = "NAME")]
    pub(crate) machine: Option<String>,
    /// Loop of a kernel, counted from 0.
    #[arg(long = "loop", value_name = "INDEX")]
    pub(crate) loop_index: Option<usize>,
    /// A consumer may start in its producer's step [default: on for .gml, off for .blif].
    #[arg(long, value_enum, value_name = "on|off", hide_possible_values = true)]
    pub(crate) chaining: Option<Switch>,
    /// What the schedule minimises.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = ObjectiveArgument::Resources)]
    pub(crate) objective: ObjectiveArgument,
    /// With --objective resources: weights of peaks and of communication.
    ///
    /// GS-Schedule's score is 100,1.
    #[arg(long, value_name = "PEAK,COMMUNICATION", default_value = "1,0")]
    pub(crate) weights: Weights,
    /// Step by which all operations are finished.
    #[arg(long, value_name = "STEPS", conflicts_with = "latency_factor")]
    pub(crate) latency: Option<u64>,
    /// The same, in multiples of the longest path, rounded down.
    ///
    /// The default is 1.5; there is no limit with an interval, or for --objective latency.
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub(crate) latency_factor: Option<f64>,
    /// Initiation interval of a loop.
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) ii: Option<u64>,
    /// Minimise interval, then latency, then storage.
    #[arg(long, conflicts_with_all = ["ii", "objective", "weights"])]
    pub(crate) smallest_ii: bool,
    /// Units of a resource (NAME=UNITS), or of all.
    #[arg(long, value_name = "CAP")]
    pub(crate) resource_cap: Vec<Cap>,
    /// Scheduler: gaus, exact, or a baseline.
    #[arg(long, value_enum, value_name = "ENGINE", default_value_t = EngineArgument::Gaus)]
    pub(crate) engine: EngineArgument,
    /// Start of GauS.
    #[arg(long, value_enum, value_name = "WHERE", default_value_t = StartArgument::Middle)]
    pub(crate) start: StartArgument,
    /// Baselines whose schedules the search knows, so that it ends no worse; or none.
    ///
    /// The default is list,spans,force-directed, and none with an interval.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "smallest_ii")]
    pub(crate) known: Vec<String>,
    /// Leave the gradient out: legalise and polish the start.
    #[arg(long)]
    pub(crate) no_gradient: bool,
    /// Moves of local improvement, in multiples of the operations; 0 for none.
    #[arg(long, value_name = "N")]
    pub(crate) polish_sweeps: Option<u32>,
    /// Rounds of gradient, legalisation, and polish.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: Option<u32>,
    /// Conflicts of exact search in windows of what GauS found; 0 for none.
    ///
    /// The default is 1000000 for graphs of up to 1000 operations, with half of the time, and if GauS gets no further than a
    /// baseline. A window that holds the whole graph proves optimality.
    #[arg(long, value_name = "CONFLICTS", conflicts_with = "smallest_ii")]
    pub(crate) windows: Option<u64>,
    /// Seed of random choices.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Stop after SECONDS with the best known.
    ///
    /// none sets no limit. The default is none, and 20 with --engine exact.
    #[arg(long, value_name = "SECONDS", value_parser = seconds_or_none, allow_negative_numbers = true)]
    pub(crate) time_limit: Option<f64>,
    /// With --engine exact: stop after UNITS of work; reproducible.
    #[arg(long, value_name = "UNITS")]
    pub(crate) work_limit: Option<u64>,
    /// Stop when the process uses MEGABYTES (10^6 bytes) of memory.
    #[arg(long, value_name = "MEGABYTES", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) memory_limit: Option<u64>,
    /// Output format [default: by --output, or text].
    ///
    /// --output says it by its ending: .json and .pftrace.
    #[arg(help_heading = "Output", long, value_enum)]
    pub(crate) format: Option<GausFormat>,
    #[command(flatten)]
    pub(crate) page: PageArguments,
    /// Do not report progress.
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

    /// When to stop.
    pub(crate) fn limits(&self) -> BudgetArguments {
        let GausArguments { time_limit, work_limit, memory_limit, .. } = *self;
        BudgetArguments { time_limit, work_limit, memory_limit }
    }

    /// How much memory there may be in use.
    pub(crate) fn memory(&self) -> Option<MemoryBudget> {
        self.limits().memory()
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
    Exact,
    Baseline(Baseline),
}

impl ValueEnum for EngineArgument {
    fn value_variants<'a>() -> &'a [EngineArgument] {
        const ALL: [EngineArgument; Baseline::ALL.len() + 2] = {
            let mut all = [EngineArgument::Gaus; Baseline::ALL.len() + 2];
            all[1] = EngineArgument::Exact;
            let mut k = 0;
            while k < Baseline::ALL.len() {
                all[k + 2] = EngineArgument::Baseline(Baseline::ALL[k]);
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
            EngineArgument::Exact => "exact",
            EngineArgument::Baseline(baseline) => baseline.name(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weights {
    pub(crate) peak: u64,
    pub(crate) communication: u64,
}

impl Default for Weights {
    fn default() -> Weights {
        Weights { peak: 1, communication: 0 }
    }
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
