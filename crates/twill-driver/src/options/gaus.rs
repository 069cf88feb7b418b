//! Options of `twill gaus`: large graphs without warps.

use super::choice::Choice;
use super::{SearchLimits, choice, numbers};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::str::FromStr;
use twill_gaus::Baseline;
use twill_graph::{MemoryBudget, Random};

/// Options for large graphs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct GausOptions {
    /// Random graph, such as nodes=1000,density=0.01.
    ///
    /// back-edges=50 makes it a loop.
    #[serde(deserialize_with = "numbers::deserialize_text")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SPEC", conflicts_with = "input"))]
    pub random: Option<Random>,
    /// Resource model of a .graphml [default: GRAPH_RM.xml next to it].
    #[serde(deserialize_with = "numbers::deserialize_text")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub resources: Option<PathBuf>,
    /// Machine of a kernel or loop graph.
    ///
    /// The default is the graph's own, and h200 for TTIR.
    #[serde(deserialize_with = "numbers::deserialize_text")]
    #[cfg_attr(feature = "clap", arg(long, short, value_name = "NAME"))]
    pub machine: Option<String>,
    /// Loop of a kernel, counted from 0.
    #[serde(rename = "loop", deserialize_with = "numbers::deserialize_optional::<0, { u64::MAX }, _, _>")]
    #[cfg_attr(feature = "clap", arg(long = "loop", value_name = "INDEX"))]
    pub loop_index: Option<usize>,
    /// A consumer may start in its producer's step [default: on for .gml, off for .blif].
    #[serde(deserialize_with = "numbers::deserialize_optional_switch")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "on|off", value_parser = numbers::switch))]
    pub chaining: Option<bool>,
    /// What the schedule minimises.
    #[serde(with = "choice")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHAT", default_value = "resources", value_parser = choice::choices::<Objective>()))]
    pub objective: Objective,
    /// With --objective resources: weights of peaks and of communication.
    ///
    /// GS-Schedule's score is 100,1.
    #[serde(deserialize_with = "weights")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "PEAK,COMMUNICATION", default_value = "1,0"))]
    pub weights: Weights,
    /// Step by which all operations are finished.
    #[serde(deserialize_with = "numbers::deserialize_optional::<0, { u64::MAX }, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "STEPS", conflicts_with = "latency_factor"))]
    pub latency: Option<u64>,
    /// The same, in multiples of the longest path, rounded down.
    ///
    /// The default is 1.5; there is no limit with an interval, or for --objective latency.
    #[serde(deserialize_with = "latency_factor")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FACTOR", value_parser = factor))]
    pub latency_factor: Option<f64>,
    /// Initiation interval of a loop.
    #[serde(deserialize_with = "numbers::deserialize_optional::<1, { u64::MAX }, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "STEPS", value_parser = numbers::whole::<1, { u64::MAX }, u64>))]
    pub ii: Option<u64>,
    /// Minimise interval, then latency, then storage.
    #[serde(deserialize_with = "numbers::deserialize_switch")]
    #[cfg_attr(feature = "clap", arg(long, conflicts_with_all = ["ii", "objective", "weights"]))]
    pub smallest_ii: bool,
    /// Units of a resource (NAME=UNITS), or of all.
    #[serde(deserialize_with = "caps")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "CAP"))]
    pub resource_cap: Vec<Cap>,
    /// Scheduler: gaus, exact, or a baseline.
    #[serde(with = "choice")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "ENGINE", default_value = "gaus", value_parser = choice::choices::<GausEngine>()))]
    pub engine: GausEngine,
    /// Start of GauS.
    #[serde(with = "choice")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHERE", default_value = "middle", value_parser = choice::choices::<GausStart>()))]
    pub start: GausStart,
    /// Baselines whose schedules the search knows, so that it ends no worse; or none.
    ///
    /// The default is list,spans,force-directed, and none with an interval.
    #[serde(deserialize_with = "names")]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "smallest_ii")
    )]
    pub known: Vec<String>,
    /// Leave the gradient out: legalise and polish the start.
    #[serde(deserialize_with = "numbers::deserialize_switch")]
    #[cfg_attr(feature = "clap", arg(long))]
    pub no_gradient: bool,
    /// Gradients on a CUDA GPU: auto, always or never.
    ///
    /// auto: with a time limit of 5 seconds or more, for graphs of 4096 operations or more, if there is one. They are those of
    /// processors up to rounding, so that the schedule may be another one.
    #[serde(with = "choice")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHEN", default_value = "auto", value_parser = choice::choices::<GausGpu>()))]
    pub gpu: GausGpu,
    /// Moves of local improvement, in multiples of the operations; 0 for none.
    #[serde(deserialize_with = "numbers::deserialize_optional::<0, { u32::MAX as u64 }, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub polish_sweeps: Option<u32>,
    /// Rounds of gradient, legalisation, and polish.
    #[serde(deserialize_with = "numbers::deserialize_optional::<1, { u32::MAX as u64 }, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole::<1, { u32::MAX as u64 }, u32>))]
    pub rounds: Option<u32>,
    /// Conflicts of exact search in windows of what GauS found; 0 for none.
    ///
    /// The default is 1000000 for graphs of up to 1000 operations, with half of the time, and if GauS gets no further than a
    /// baseline. A window that holds the whole graph proves optimality.
    #[serde(deserialize_with = "numbers::deserialize_optional::<0, { u64::MAX }, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "CONFLICTS", conflicts_with = "smallest_ii"))]
    pub windows: Option<u64>,
    /// Seed of random choices.
    #[serde(deserialize_with = "numbers::deserialize_whole::<0, { u64::MAX }, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = 1))]
    pub seed: u64,
    /// Stop after SECONDS with the best known.
    ///
    /// none sets no limit. The default is none, and 20 with --engine exact.
    #[serde(with = "numbers::time")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SECONDS", value_parser = numbers::seconds_or_none, allow_negative_numbers = true))]
    pub time_limit: Option<f64>,
    /// With --engine exact: stop after UNITS of work; reproducible.
    #[serde(deserialize_with = "numbers::deserialize_optional::<0, { u64::MAX }, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "UNITS"))]
    pub work_limit: Option<u64>,
    /// Stop when the process uses MEGABYTES (10^6 bytes) of memory.
    #[serde(deserialize_with = "numbers::deserialize_optional::<1, { u64::MAX }, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "MEGABYTES", value_parser = numbers::whole::<1, { u64::MAX }, u64>))]
    pub memory_limit: Option<u64>,
}

impl Default for GausOptions {
    fn default() -> GausOptions {
        GausOptions {
            random: None,
            resources: None,
            machine: None,
            loop_index: None,
            chaining: None,
            objective: Objective::Resources,
            weights: Weights::default(),
            latency: None,
            latency_factor: None,
            ii: None,
            smallest_ii: false,
            resource_cap: Vec::new(),
            engine: GausEngine::Gaus,
            start: GausStart::Middle,
            known: Vec::new(),
            no_gradient: false,
            gpu: GausGpu::Auto,
            polish_sweeps: None,
            rounds: None,
            windows: None,
            seed: 1,
            time_limit: None,
            work_limit: None,
            memory_limit: None,
        }
    }
}

impl GausOptions {
    /// Seconds that there are; `None` without a limit.
    pub fn seconds(&self) -> Option<f64> {
        self.time_limit.filter(|seconds| seconds.is_finite())
    }

    /// How much memory there may be in use.
    pub fn memory(&self) -> Option<MemoryBudget> {
        super::search::memory(self.memory_limit)
    }

    /// When the exact engine stops.
    pub fn limits(&self) -> SearchLimits {
        let GausOptions { time_limit, work_limit, memory_limit, .. } = *self;
        SearchLimits { time_limit, work_limit, memory_limit, ..SearchLimits::default() }
    }
}

/// What a schedule of a large graph minimises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// Peaks of resources, and communication by weight.
    Resources,
    /// Peak storage.
    Storage,
    /// The latest finish.
    Latency,
}

impl Choice for Objective {
    const ALL: &'static [(&'static str, Objective, &'static str)] = &[
        ("resources", Objective::Resources, "Peaks of resources, and communication by weight"),
        ("storage", Objective::Storage, "Peak storage"),
        ("latency", Objective::Latency, "The latest finish"),
    ];
}

/// Where GauS begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GausStart {
    /// The middle of each operation's window.
    Middle,
    /// A list schedule (with an interval: an iterative modulo schedule).
    List,
    /// Anywhere in the window.
    Random,
}

impl Choice for GausStart {
    const ALL: &'static [(&'static str, GausStart, &'static str)] = &[
        ("middle", GausStart::Middle, "The middle of each operation's window"),
        ("list", GausStart::List, "A list schedule (with an interval: an iterative modulo schedule)"),
        ("random", GausStart::Random, "Anywhere in the window"),
    ];
}

/// Whether a GPU computes gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GausGpu {
    /// Where it is worth its beginning, and time decides the answer anyway.
    Auto,
    /// It is an error if there is none.
    Always,
    /// Processors do.
    Never,
}

impl Choice for GausGpu {
    const ALL: &'static [(&'static str, GausGpu, &'static str)] = &[
        ("auto", GausGpu::Auto, "For large graphs with a time limit, if there is one"),
        ("always", GausGpu::Always, "Always; an error if there is none"),
        ("never", GausGpu::Never, "Never: processors do"),
    ];
}

/// Schedulers of large graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GausEngine {
    /// GauS: by gradient.
    Gaus,
    /// The exact engine, for the least interval of a loop.
    Exact,
    /// A scheduler of the textbooks.
    Baseline(Baseline),
}

impl Choice for GausEngine {
    const ALL: &'static [(&'static str, GausEngine, &'static str)] = &[
        ("gaus", GausEngine::Gaus, "By gradient"),
        ("exact", GausEngine::Exact, "The least interval of a loop, proved"),
        ("asap", GausEngine::Baseline(Baseline::Asap), "As soon as possible"),
        ("alap", GausEngine::Baseline(Baseline::Alap), "As late as possible"),
        ("list", GausEngine::Baseline(Baseline::List), "List scheduling"),
        ("force-directed", GausEngine::Baseline(Baseline::ForceDirected), "Force-directed scheduling"),
        ("spans", GausEngine::Baseline(Baseline::LeastSpans), "The least sum of spans"),
        ("ims", GausEngine::Baseline(Baseline::IterativeModulo), "Iterative modulo scheduling"),
        ("sdc", GausEngine::Baseline(Baseline::SdcModulo), "Modulo scheduling by difference constraints"),
    ];
}

/// Weights of the objective on resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// Of the sum of peaks.
    pub peak: u64,
    /// Of communication.
    pub communication: u64,
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
            _ => Err("must be two whole numbers with a comma between, not both 0".into()),
        }
    }
}

/// A limit, of one resource or of all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cap {
    /// The resource; `None` for all.
    pub name: Option<String>,
    /// Its units, at least 1.
    pub units: u64,
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
            _ => Err("must be a whole number above 0, or NAME=number".into()),
        }
    }
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (1.0..=1e6).contains(&value) => Ok(value),
        _ => Err("must be a number from 1 to 1e6".into()),
    }
}

fn weights<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Weights, D::Error> {
    let both = numbers::texts(from)?.join(",");
    both.parse().map_err(serde::de::Error::custom)
}

fn latency_factor<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let texts = numbers::texts(from)?;
    texts.first().map(|text| factor(text)).transpose().map_err(serde::de::Error::custom)
}

fn caps<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Cap>, D::Error> {
    numbers::texts(from)?.iter().map(|text| text.parse().map_err(serde::de::Error::custom)).collect()
}

fn names<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let texts = numbers::texts(from)?;
    Ok(texts.iter().flat_map(|text| text.split(',')).map(str::to_owned).collect())
}
