//! Schedules a built-in graph and prints the outcome.
use twill_exact::{Progress, SearchOptions, schedule};
use twill_graph::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let b = builtin::find(&args[1]).unwrap();
    let groups: u32 = args.get(2).map_or(3, |s| s.parse().unwrap());
    let hopper = Resources {
        name: "h100".into(),
        units: ["tensor", "tc", "xu", "fma", "alu", "lsu", "tma", "mem_tensor"]
            .iter()
            .map(|n| Unit { name: n.to_string(), capacity: 1 })
            .collect(),
        shared_memory: Bytes(232448),
        tensor_memory: Columns(512),
        registers: RegisterFile {
            words: 65536,
            minimum_per_thread: 24,
            maximum_per_thread: 255,
            granularity: 8,
            reserve_per_thread: 32,
        },
        variable_latency_group: Some(FixedGroup { warps: 1, allocated_warps: 4, registers_per_thread: 24 }),
        issue_group: None,
        compute_groups: ComputePool { warps: 4, maximum: groups },
    };
    let mut r = match b.machine {
        Some(format::MachineReference::Resources(r)) => *r,
        _ => hopper,
    };
    r.compute_groups.maximum = groups;
    if args[1].contains("blackwell") {
        r.issue_group = Some(FixedGroup { warps: 1, allocated_warps: 2, registers_per_thread: 24 });
        r.variable_latency_group.as_mut().unwrap().allocated_warps = 2;
    }
    let p = Problem::new(
        b.graph,
        r,
        if args.get(3).is_some_and(|a| a == "paper") { ModelOptions::paper() } else { ModelOptions::default() },
    )
    .unwrap();
    let t = std::time::Instant::now();
    let report = schedule(&p, &SearchOptions::default(), &mut |e: Progress| {
        eprintln!("{:.3} {:?}", t.elapsed().as_secs_f64(), e)
    });
    println!("{:?} {:?} {:?}", report.outcome.status(), report.lower_bound, report.modulo);
    println!("{:?}", report.objectives);
    println!("{:?}", report.phases);
    if let Some(s) = report.outcome.schedule() {
        println!("I {} L {} N {}", s.interval, s.length, s.stages());
        let mut ops: Vec<_> = p.graph().op_ids().collect();
        ops.sort_by_key(|o| (s.placement(*o).group, s.placement(*o).cycle));
        for o in ops {
            println!(
                "{:12} g{} t {:5} slot {:5} stage {}",
                p.graph().operation(o).name,
                s.placement(o).group.index(),
                s.placement(o).cycle,
                s.slot(o),
                s.stage(o)
            );
        }
        println!("{:?}\n{:?}\n{:?}", s.groups, s.channels, s.rings);
    } else {
        println!("{:?}", report.outcome);
    }
    for r in &report.rejections {
        println!("{:?}", r);
    }
}
