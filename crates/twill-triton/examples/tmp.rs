//! tmp
use twill_triton::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let t = std::fs::read_to_string(&a[1]).unwrap_or_default();
    let m = match twill_machine::Machine::load(&a[2]) { Ok(m) => m, Err(e) => { println!("{e}"); return } };
    let k = match read(&t, &a[1]) { Ok(k) => k, Err(e) => { println!("{e}"); return } };
    for l in k.loops() {
        print!("{l}");
        let o = Options::default();
        match o.prepare(l, &m) { Ok(p) => print!("{p}"), Err(e) => println!("{e}") }
        match lower(l, &m, &o) { Err(e) => println!("{e}"), Ok(g) => {
            println!("reserved {:?}", g.reserved());
            for o in g.operations() { println!("{:22} {:10} {} occ {} lat {} {:?} w{} {:?} vl {} st {} ho {} tl {} sub {:?} {}", o.name, o.kind, o.reservations.iter().map(|r| format!("{}@{}+{}", r.unit, r.start, r.cycles)).collect::<Vec<_>>().join(","), o.occupancy, o.latency, o.execution, o.issue_width, o.storage, o.variable_latency, o.streaming, o.handoff, o.transfer_latency, o.sub_tile, o.source.as_ref().map(|s| s.to_string()).unwrap_or_default()); }
            for d in g.dependences() { println!("  {} -> {} d{} δ{} {}{}{} hold {}", g.operation(d.from).name, g.operation(d.to).name, d.delay, d.distance, if d.blocking {"B"} else {"-"}, if d.carries_value {"V"} else {"-"}, if d.tied {"T"} else {"-"}, d.hold); }
            if a.get(3).is_some() {
                let p = twill_graph::Problem::new(g, m.resources(), twill_graph::ModelOptions::default());
                match p { Err(e) => println!("{e}"), Ok(p) => {
                    let t = std::time::Instant::now();
                    let r = twill_exact::schedule(&p, &twill_exact::SearchOptions::default(), &mut |_| {});
                    println!("{:?} bound {:?} {:?}", r.outcome.status(), r.lower_bound, t.elapsed());
                    if let Some(s) = r.outcome.schedule() { println!("I {} L {} N {} groups {:?}", s.interval, s.length, s.stages(), s.groups);
                      let mut ops: Vec<_> = p.graph().op_ids().collect();
                      ops.sort_by_key(|o| (s.placement(*o).group, s.placement(*o).cycle));
                      for o in ops { println!("  {:22} g{} t {:5} stage {}", p.graph().operation(o).name, s.placement(o).group.index(), s.placement(o).cycle, s.stage(o)); } }
                    for r in &r.rejections { println!("{:?}", r); }
                } }
            }
        } }
    }
}
