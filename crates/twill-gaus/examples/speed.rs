//! Time of one gradient against the number of operations, which should grow no faster than they do.
//!
//! `cargo run --release -p twill-gaus --example speed`; `RAYON_NUM_THREADS` sets the number of threads.

use std::error::Error;
use std::time::Instant;
use twill_gaus::{Control, Descent, Mobility, Options, Polish, schedule};
use twill_graph::{
    Dataflow, DataflowDependence, DataflowObjective, DataflowOperation, DataflowProblem, DataflowResource, OpId,
    ResourceUse, UnitId,
};

/// A graph of unit operations, each with two producers among the 200 before it, or none now and then.
fn graph(count: usize) -> Result<Dataflow, Box<dyn Error>> {
    let mut state = 1_u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let held = ResourceUse { resource: UnitId::new(0), offset: 0, steps: 1, amount: 1 };
    let operation = |v: usize| DataflowOperation { name: format!("v{v}"), latency: 1, uses: vec![held], storage: 1 };
    let mut dependences = Vec::new();
    for to in 1..count {
        for _ in 0..if below(8) == 0 { 0 } else { 2 } {
            let from = OpId::new(to - 1 - below(to.min(200)));
            dependences.push(DataflowDependence { from, to: OpId::new(to), delay: 1, distance: 0, communication: 1 });
        }
    }
    let resource = DataflowResource { name: "unit".into(), limit: None };
    Ok(Dataflow::new("random", (0..count).map(operation).collect(), dependences, vec![resource])?)
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("{:>10} {:>9} {:>8} {:>14} {:>14}", "operations", "objective", "latency", "ms a gradient", "µs for each");
    for count in [1000, 4000, 16_000, 64_000] {
        let graph = graph(count)?;
        for (name, objective) in
            [("A", DataflowObjective::Resources { peak: 1, communication: 0 }), ("B", DataflowObjective::Storage)]
        {
            let mut problem = DataflowProblem { graph: graph.clone(), latency_bound: None, interval: None, objective };
            let latency = Mobility::new(&problem)?.latency * 5 / 4;
            problem.latency_bound = Some(latency);
            let descent = Some(Descent { rounds: 1, steps: 30, ..Descent::default() });
            let polish = Polish { sweeps: 0, ..Polish::default() };
            let options = Options { rounds: 1, descent, polish, ..Options::default() };
            let started = Instant::now();
            let found = schedule(&problem, &options, Control::default(), &mut |_| {})?;
            let each = started.elapsed().as_secs_f64() / found.gradients as f64;
            let ratio = each * 1e6 / count as f64;
            println!("{count:>10} {name:>9} {latency:>8} {:>14.2} {ratio:>14.3}", each * 1e3);
        }
    }
    Ok(())
}
