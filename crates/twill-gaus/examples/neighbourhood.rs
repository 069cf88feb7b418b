//! Large-neighbourhood search on graphs of files, from baselines or from GauS, by the checker's count.
//!
//! `cargo run --release -p twill-gaus --example neighbourhood -- START SECONDS OBJECTIVE FACTOR FILE…`: START is `gaus`, or
//! `gaus=ROUNDS`, which has as many seconds before, or a baseline; OBJECTIVE is `peaks`, `score` (GS-Schedule's: 100 · peaks +
//! communication), `communication`, `storage`, or, of loops, `live`: storage at the smallest interval that the baseline
//! finds, within its latency. The latency bound is FACTOR times the longest path, or as many steps as
//! follow an `=`.

use std::error::Error;
use std::time::{Duration, Instant};
use twill_check::verify_dataflow;
use twill_gaus::{Baseline, Control, Measure, Mobility, neighbourhood};
use twill_graph::format::{DataflowOptions, NamedText, read_dataflow};
use twill_graph::{DataflowObjective, DataflowProblem, StartSteps};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, seconds, objective, factor, files @ ..] = &arguments[..] else {
        return Err(
            "usage: neighbourhood gaus|BASELINE SECONDS peaks|score|communication|storage|live FACTOR FILE…".into()
        );
    };
    let time = Duration::from_secs_f64(seconds.parse()?);
    for file in files {
        let text = std::fs::read_to_string(file)?;
        let path = file.replace(".graphml", "_RM.xml");
        let model = if &path == file { None } else { Some(std::fs::read_to_string(&path)?) };
        let model = model.as_deref().map(|text| NamedText { file: &path, text });
        let options = DataflowOptions { model, ..DataflowOptions::default() };
        let graph = read_dataflow(NamedText { file, text: &text }, &options)?;
        let live = objective == "live";
        let objective = match objective.as_str() {
            "peaks" => DataflowObjective::Resources { peak: 1, communication: 0 },
            "score" => DataflowObjective::Resources { peak: 100, communication: 1 },
            "communication" => DataflowObjective::Resources { peak: 0, communication: 1 },
            "storage" | "live" => DataflowObjective::Storage,
            other => return Err(format!("no objective `{other}`").into()),
        };
        let mut problem = DataflowProblem { graph, latency_bound: None, interval: None, objective };
        let path = Mobility::new(&problem)?.latency;
        print!("{:28} {:5} D {path:4} | ", problem.graph.name(), problem.graph.operations().len());
        let begun = Instant::now();
        let start = if live {
            let start = from.parse::<Baseline>()?.smallest_interval(&problem.graph, None, 200, Control::default())?;
            problem.interval = start.interval;
            let measure = Measure::new(&problem.graph, start.interval, &start.steps);
            problem.latency_bound = Some(measure.latency);
            print!("II {} latency {} | ", start.interval.unwrap_or(0), measure.latency);
            start
        } else {
            problem.latency_bound = Some(match factor.strip_prefix('=') {
                Some(steps) => steps.parse()?,
                None => (path as f64 * factor.parse::<f64>()?) as u64,
            });
            start(&problem, from, time)?
        };
        print!("{from} {} {:.1?}", verify_dataflow(&problem, start.clone())?.objective, begun.elapsed());
        let control = Control { time: Some(time), ..Control::default() };
        let mut last = Duration::ZERO;
        let options = neighbourhood::Options::default();
        let improved =
            neighbourhood::improve(&problem, start, &options, control, &mut |progress| last = progress.elapsed)?;
        let measured = verify_dataflow(&problem, improved.schedule.clone())?;
        assert_eq!(measured.objective, improved.objective, "the checker counts otherwise");
        print!(" | {} {:?} at {last:.1?}", measured.objective, measured.peaks);
        let known = if improved.proved { "proved".into() } else { format!("bound {}", improved.least) };
        println!(" | {known} | windows {}/{}", improved.windows_improved, improved.windows_tried);
    }
    Ok(())
}

fn start(problem: &DataflowProblem, from: &str, time: Duration) -> Result<StartSteps, Box<dyn Error>> {
    let rounds = match from.strip_prefix("gaus") {
        Some("") => twill_gaus::Options::default().rounds,
        Some(rounds) => rounds.trim_start_matches('=').parse()?,
        None => return Ok(from.parse::<Baseline>()?.schedule(problem)?),
    };
    let control = Control { time: Some(time), ..Control::default() };
    let found =
        twill_gaus::schedule(problem, &twill_gaus::Options { rounds, ..Default::default() }, control, &mut |_| {})?;
    Ok(found.schedule.ok_or("GauS found no schedule")?)
}
