//! Lower bounds and baselines on graphs of files, by the checker's count.
//!
//! `cargo run --release -p twill-gaus --example baselines -- OBJECTIVE FACTOR FILE…`: OBJECTIVE is `peaks`, `score` (GS-Schedule's:
//! 100 · peaks + communication), `communication` or `storage`; the latency bound is FACTOR times the longest path, or as many
//! steps as follow an `=`. `interval`, with FACTOR 0 for no bound, looks for the smallest interval instead.

use std::error::Error;
use std::time::Instant;
use twill_check::verify_dataflow;
use twill_gaus::{Baseline, Control, Mobility, least_interval, lower_bound};
use twill_graph::format::{DataflowOptions, NamedText, read_dataflow};
use twill_graph::{Dataflow, DataflowObjective, DataflowProblem, StartSteps};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(objective), Some(factor)) = (arguments.next(), arguments.next()) else {
        return Err("usage: baselines peaks|score|communication|storage|interval FACTOR FILE…".into());
    };
    for file in arguments {
        let graph = read(&file)?;
        let path = least_latency(&graph, None)?;
        let bound = match factor.strip_prefix('=') {
            Some(steps) => steps.parse()?,
            None => (path as f64 * factor.parse::<f64>()?) as u64,
        };
        let bound = Some(bound).filter(|&bound| bound > 0);
        print!("{:28} {:6} {path:5}", graph.name(), graph.operations().len());
        if objective == "interval" {
            intervals(&graph, bound)?;
        } else {
            let objective = match objective.as_str() {
                "peaks" => DataflowObjective::Resources { peak: 1, communication: 0 },
                "score" => DataflowObjective::Resources { peak: 100, communication: 1 },
                "communication" => DataflowObjective::Resources { peak: 0, communication: 1 },
                "storage" => DataflowObjective::Storage,
                other => return Err(format!("no objective `{other}`").into()),
            };
            let problem = DataflowProblem { graph, latency_bound: bound, interval: None, objective };
            let start = Instant::now();
            print!(" {:?} | bound {} {:.2?}", bound.unwrap_or(0), lower_bound(&problem)?.value, start.elapsed());
            for baseline in Baseline::ALL.into_iter().take(5) {
                let start = Instant::now();
                let steps = baseline.schedule(&problem)?;
                let time = start.elapsed();
                let measured = verify_dataflow(&problem, steps)?;
                print!(" | {baseline} {} {time:.2?}", measured.objective);
                if problem.graph.resources().len() > 1 {
                    print!(" {:?}", measured.peaks);
                }
            }
        }
        println!();
    }
    Ok(())
}

fn read(file: &str) -> Result<Dataflow, Box<dyn Error>> {
    let text = std::fs::read_to_string(file)?;
    let path = file.replace(".graphml", "_RM.xml");
    let model = if path == file { None } else { Some(std::fs::read_to_string(&path)?) };
    let model = model.as_deref().map(|text| NamedText { file: &path, text });
    Ok(read_dataflow(NamedText { file, text: &text }, &DataflowOptions { model, ..DataflowOptions::default() })?)
}

fn problem(graph: &Dataflow, interval: Option<u64>, latency_bound: Option<u64>) -> DataflowProblem {
    DataflowProblem { graph: graph.clone(), latency_bound, interval, objective: DataflowObjective::Latency }
}

fn least_latency(graph: &Dataflow, interval: Option<u64>) -> Result<u64, Box<dyn Error>> {
    Ok(Mobility::new(&problem(graph, interval, None))?.latency)
}

fn intervals(graph: &Dataflow, bound: Option<u64>) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let least = least_interval(graph);
    print!(" ResMII {} RecMII {} II ≥ {} {:.2?}", least.resources, least.recurrences, least.least(), start.elapsed());
    for baseline in [Baseline::IterativeModulo, Baseline::SdcModulo] {
        let start = Instant::now();
        let steps: StartSteps = match baseline.smallest_interval(graph, bound, 200, Control::default()) {
            Ok(steps) => steps,
            Err(error) => {
                print!(" | {error}");
                continue;
            }
        };
        let (time, problem) = (start.elapsed(), problem(graph, steps.interval, bound));
        let measured = verify_dataflow(&problem, steps)?;
        let (interval, latency) = (problem.interval.unwrap_or(0), measured.latency);
        let needed = lower_bound(&problem)?.value;
        print!(" | {baseline} II {interval} latency {latency} of {needed} storage {} {time:.2?}", measured.storage);
    }
    Ok(())
}
