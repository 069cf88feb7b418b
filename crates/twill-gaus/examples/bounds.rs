//! Lower bounds of graphs of files: term by term, and by Lagrange multipliers and by wavefronts, both checked.
//!
//! `cargo run --release -p twill-gaus --example bounds -- OBJECTIVE [SECONDS] FILE…`: OBJECTIVE is `a` (the latency
//! bound times the peaks, or 100 times for .gml, and communication) or `b` (storage); the latency bound is 1.5 times
//! the longest path.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};
use twill_check::{verify_multipliers, verify_wavefront};
use twill_gaus::{Control, Mobility, Precedence, lower_bound_within, multipliers, wavefront};
use twill_graph::format::{DataflowOptions, NamedText, read_dataflow};
use twill_graph::{DataflowObjective, DataflowProblem};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    let objective = arguments.next().ok_or("usage: bounds a|b [SECONDS] FILE…")?;
    let seconds: Option<f64> = arguments.peek().and_then(|argument| argument.parse().ok());
    if seconds.is_some() {
        arguments.next();
    }
    let control = Control { time: seconds.map(Duration::from_secs_f64), ..Control::default() };
    println!(
        "{:28} {:>12} {:>7} {:>12} {:>7} {:>7} {:>9}",
        "", "by terms", "s", "multipliers", "s", "check s", "prices"
    );
    for file in arguments {
        let text = std::fs::read_to_string(&file)?;
        let options = DataflowOptions { chaining: Some(false), ..DataflowOptions::default() };
        let graph = read_dataflow(NamedText { file: &file, text: &text }, &options)?;
        let path = Mobility::within(&graph, &Precedence::new(&graph, None), None, None)?.latency;
        let latency = path * 3 / 2;
        let peak = if file.ends_with(".gml") { 100 } else { latency };
        let objective = match objective.as_str() {
            "a" => DataflowObjective::Resources { peak, communication: 1 },
            _ => DataflowObjective::Storage,
        };
        let problem = DataflowProblem { graph, latency_bound: Some(latency), interval: None, objective };
        let started = Instant::now();
        let terms = lower_bound_within(&problem, control)?;
        let first = started.elapsed().as_secs_f64();
        let started = Instant::now();
        let found = multipliers(&problem, &terms, control);
        let second = started.elapsed().as_secs_f64();
        let started = Instant::now();
        let proved = found.as_ref().map(|found| verify_multipliers(&problem, found)).transpose()?;
        let third = started.elapsed().as_secs_f64();
        let started = Instant::now();
        let front = wavefront(&problem, control);
        let fourth = started.elapsed().as_secs_f64();
        let front = front.as_ref().map(|front| verify_wavefront(&problem, front)).transpose()?;
        let prices = found.map_or(0, |found| found.dependences.len() + found.reads.len());
        let name = Path::new(&file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let proved = proved.map_or("-".to_owned(), |proved| proved.to_string());
        let front = front.map_or("-".to_owned(), |front| front.to_string());
        print!("{name:28} {:>12} {first:>7.2} {proved:>12} {second:>7.2} {third:>7.2} {prices:>9} ", terms.value);
        println!("{front:>10} {fourth:>7.2}");
    }
    Ok(())
}
