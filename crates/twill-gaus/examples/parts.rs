//! What the parts of the search buy: list scheduling, the gradient alone, and both with annealing, on graphs of files.
//!
//! `cargo run --release -p twill-gaus --example parts -- OBJECTIVE [KNOB=VALUE…] FILE…`: OBJECTIVE is `a` (the latency bound
//! times the peaks, or 100 times for .gml, and communication), `b` (storage), `peak`, or `score` (GS-Schedule's); the latency
//! bound is 1.5 times the longest path, 1 time for `score`. A knob is a number of `Descent`, `on-gpu` (1, with the feature
//! `cuda`), `seconds`, or `sweeps` of annealing, which is 0 unless given. CPU seconds are those of the wall clock where nothing else runs.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};
use twill_gaus::{Baseline, Control, DependenceLoss, Descent, Measure, Mobility, Options, Polish, schedule};
use twill_graph::format::{DataflowOptions, NamedText, read_dataflow};
use twill_graph::{Dataflow, DataflowObjective, DataflowProblem};

struct Knobs {
    descent: Descent,
    seconds: Option<f64>,
    sweeps: u32,
    rounds: u32,
}

impl Knobs {
    fn set(&mut self, key: &str, value: f64) -> Result<(), Box<dyn Error>> {
        let descent = &mut self.descent;
        match key {
            "rounds" => descent.rounds = value as u32,
            "steps" => descent.steps = value as u32,
            "rate" => descent.rate = value,
            "kappa" => descent.kappa = value,
            "sigma-floor" => descent.sigma_floor = value,
            "sigma-end" => descent.sigma_end = value,
            "lambda" => descent.lambda = value,
            "rho" => descent.rho = value,
            "growth" => descent.growth = value,
            "hot" => descent.hot = value,
            "cold" => descent.cold = value,
            "storage-hot" => descent.storage_hot = value,
            "storage-cold" => descent.storage_cold = value,
            "probability" => descent.dependence = DependenceLoss::Probability,
            "on-gpu" => descent.on_gpu = value != 0.0 && twill_gaus::gpu().is_ok(),
            "seconds" => self.seconds = Some(value),
            "sweeps" => self.sweeps = value as u32,
            "search-rounds" => self.rounds = value as u32,
            _ => return Err(format!("no knob is called {key}").into()),
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let objective = arguments.next().ok_or("usage: parts a|b|peak|score [KNOB=VALUE…] FILE…")?;
    let mut knobs = Knobs { descent: Descent::default(), seconds: None, sweeps: 0, rounds: 1 };
    println!(
        "{:24} {:>7} {:>6} {:>12} {:>12} {:>7} {:>6} {:>8}",
        "", "nodes", "D", "list", "found", "ratio", "steps", "ns/node"
    );
    let mut ratios = Vec::new();
    for argument in arguments {
        if let Some((key, value)) = argument.split_once('=') {
            knobs.set(key, value.parse()?)?;
            continue;
        }
        ratios.push(one(&objective, &knobs, &argument)?);
    }
    let better = ratios.iter().filter(|ratio| **ratio < 1.0).count();
    let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    println!("better on {better} of {}, geometric mean {mean:.4}", ratios.len());
    Ok(())
}

fn read(file: &str, chaining: bool) -> Result<Dataflow, Box<dyn Error>> {
    let text = std::fs::read_to_string(file)?;
    Ok(read_dataflow(
        NamedText { file, text: &text },
        &DataflowOptions { chaining: Some(chaining), ..Default::default() },
    )?)
}

fn one(objective: &str, knobs: &Knobs, file: &str) -> Result<f64, Box<dyn Error>> {
    let is_gml = Path::new(file).extension().is_some_and(|ending| ending == "gml");
    let question =
        |graph, latency_bound, objective| DataflowProblem { graph, latency_bound, interval: None, objective };
    let plain = question(read(file, false)?, None, DataflowObjective::Latency);
    let path = Mobility::new(&plain)?.latency;
    let latency = if objective == "score" { path } else { path * 3 / 2 };
    let peak = if is_gml { 100 } else { latency };
    let (graph, objective) = match objective {
        "a" => (plain.graph, DataflowObjective::Resources { peak, communication: 1 }),
        "peak" => (plain.graph, DataflowObjective::Resources { peak: 1, communication: 0 }),
        "b" => (plain.graph, DataflowObjective::Storage),
        _ => (read(file, true)?, DataflowObjective::Resources { peak: 100, communication: 1 }),
    };
    let problem = question(graph, Some(latency), objective);
    let list = Baseline::List.schedule(&problem)?;
    let list = Measure::new(&problem.graph, None, &list.steps).objective(objective);
    let options = Options {
        rounds: knobs.rounds,
        descent: Some(knobs.descent),
        polish: Polish { sweeps: knobs.sweeps, ..Polish::default() },
        ..Options::default()
    };
    let control = Control { time: knobs.seconds.map(Duration::from_secs_f64), ..Control::default() };
    let started = Instant::now();
    let found = schedule(&problem, &options, control, &mut |_| {})?;
    let (seconds, nodes) = (started.elapsed().as_secs_f64(), problem.graph.operations().len());
    let value = found.objective.ok_or("nothing was found")?;
    let ratio = value as f64 / list as f64;
    let each = seconds * 1e9 / found.gradients.max(1) as f64 / nodes as f64;
    let name = problem.graph.name();
    println!(
        "{name:24} {nodes:>7} {latency:>6} {list:>12} {value:>12} {ratio:>7.4} {:>6} {each:>8.0}",
        found.gradients
    );
    Ok(ratio)
}
