//! Explanations: known answers, and random small problems against brute force and the checker.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use twill_check::{Constraint, Violation, verify};
use twill_exact::{Budget, ExplainOptions, Naive, SearchOptions, explain, schedule};
use twill_graph::format::{GraphFile, MachineReference};
use twill_graph::{
    Change, Channel, Cycles, Explanation, Families, Family, GroupId, KnownBy, LowerBoundKind, Member, ModelOptions,
    Placement, Problem, Quantity, Report, Schedule, Status, WarpAssignment, WarpGroup,
};

/// A machine of three units whose threads have up to `registers` registers.
fn machine(shared: u64, registers: u32, groups: u32) -> Value {
    json!({
        "name": "small", "units": [{"name": "tma"}, {"name": "tensor"}, {"name": "fma"}],
        "shared_memory": shared,
        "registers": {
            "words": 65536, "minimum_per_thread": 8, "maximum_per_thread": registers, "granularity": 8,
            "reserve_per_thread": 0
        },
        "variable_latency_group": {"warps": 1, "allocated_warps": 1, "registers_per_thread": 24},
        "compute_groups": {"warps": 4, "maximum": groups}
    })
}

fn problem(machine: &Value, operations: &Value, dependences: &Value) -> Problem {
    let graph = json!({
        "format": "twill-graph", "version": 1, "name": "test", "machine": machine,
        "operations": operations, "dependences": dependences
    });
    let file = GraphFile::from_json(&graph.to_string(), "test").unwrap();
    let Some(MachineReference::Resources(resources)) = file.machine.clone() else { panic!() };
    Problem::new(file.graph().unwrap(), *resources, ModelOptions::default()).unwrap()
}

fn search(problem: &Problem, largest_interval: Option<Cycles>) -> Report {
    let budget = Budget { work: Some(1_000_000), ..Budget::default() };
    schedule(problem, &SearchOptions { budget, largest_interval, ..SearchOptions::default() }, &mut |_| {})
}

fn explained(problem: &Problem, largest_interval: Option<Cycles>) -> Explanation {
    let options = ExplainOptions { largest_interval, ..ExplainOptions::default() };
    explain(problem, &search(problem, largest_interval), &options, &mut |_| {})
}

fn member(explanation: &Explanation, family: Family) -> &Member {
    let last = explanation.rejections.last().unwrap();
    assert!(last.conflict.minimal);
    last.conflict.members.iter().find(|m| m.family == family).unwrap_or_else(|| panic!("{:?}", last.conflict))
}

fn demand(member: &Member, quantity: Quantity) -> (Option<u64>, u64, bool) {
    let demand = member.demands.iter().find(|d| d.quantity == quantity).unwrap();
    (demand.required, demand.available, demand.proved)
}

fn load(transfer: i64) -> Value {
    json!({
        "name": "load", "units": [{"unit": "tma", "cycles": 1}], "execution": "asynchronous", "issue_width": 1,
        "variable_latency": true, "streaming": true, "transfer_latency": transfer, "result": {"shared_memory": 64}
    })
}

#[test]
fn shared_memory_that_is_short_is_measured() {
    // One slot covers 1004 cycles; at 1003 it takes two.
    let mma = json!({"name": "mma", "units": [{"unit": "tensor", "cycles": 4}], "execution": "asynchronous"});
    let (machine, edges) = (machine(100, 255, 2), json!([{"from": "load", "to": "mma"}]));
    let explanation = explained(&problem(&machine, &json!([load(1000), mma]), &edges), None);
    assert_eq!(explanation.interval, Some(Cycles(1004)));
    assert_eq!(explanation.rejections.last().unwrap().rejection.interval, Cycles(1003));
    let shared = member(&explanation, Family::SharedMemory);
    assert_eq!((shared.needed, shared.suffices), (true, Some(true)));
    assert_eq!(demand(shared, Quantity::SharedMemory), (Some(128), 100, true));
    // 16 KB more are 257 slots, more than the tensor core's 4 cycles leave use for.
    let more = explanation.what_ifs.iter().find(|w| matches!(w.change, Change::SharedMemory { .. })).unwrap();
    assert_eq!((more.status, more.initiation_interval), (Status::Optimal, Some(Cycles(4))));
    let registers = explanation.what_ifs.iter().find(|w| matches!(w.change, Change::Registers { .. })).unwrap();
    assert_eq!((registers.known_by, registers.percent), (KnownBy::Conflict, Some(0.0)));
}

#[test]
fn registers_that_are_short_are_measured() {
    // A value of 20 registers a thread is alive for 10 cycles: three copies at I = 4, two at I = 5.
    let operations = json!([
        {
            "name": "make", "units": [{"unit": "fma", "cycles": 1}], "latency": 10, "execution": "asynchronous",
            "result": {"registers": 20 * 128}
        },
        {"name": "use", "units": [{"unit": "tensor", "cycles": 1}]}
    ]);
    let edges = json!([{"from": "make", "to": "use", "blocking": false}]);
    let explanation = explained(&problem(&machine(0, 40, 1), &operations, &edges), None);
    assert_eq!(explanation.interval, Some(Cycles(5)));
    let families: Vec<Family> =
        explanation.rejections.last().unwrap().conflict.members.iter().map(|m| m.family).collect();
    assert_eq!(families, [Family::Dependence, Family::Registers]);
    let registers = member(&explanation, Family::Registers);
    assert_eq!(demand(registers, Quantity::RegistersPerThread), (Some(60), 40, true));
    let witness = registers.witness.as_ref().unwrap();
    assert_eq!(witness.schedule.interval, Cycles(4));
    assert!(witness.keeps == Families::ALL.without(Family::Registers));
}

#[test]
fn a_recurrence_needs_no_search() {
    let operations = json!([{"name": "a", "units": [{"unit": "fma", "cycles": 2}], "latency": 9}]);
    let edges = json!([{"from": "a", "to": "a", "distance": 2, "value": false}]);
    let problem = problem(&machine(0, 64, 1), &operations, &edges);
    let explanation = explained(&problem, None);
    assert_eq!((explanation.interval, explanation.rejections.len()), (Some(Cycles(5)), 0));
    assert!(matches!(explanation.lower_bound.kind, LowerBoundKind::Recurrence { .. }));
    // The unit is not what bounds it, but half its cycles are part of the latency: (9 − 1) / 2.
    let faster = |w: &&twill_graph::WhatIf| matches!(&w.change, Change::UnitTwiceAsFast { unit } if unit == "fma");
    assert_eq!(explanation.what_ifs.iter().find(faster).unwrap().initiation_interval, Some(Cycles(4)));
    let below = explained(&problem, Some(Cycles(4)));
    assert_eq!(below.status, Status::Infeasible);
    let last = below.rejections.last().unwrap();
    assert!(matches!(last.bound.as_ref().unwrap().kind, LowerBoundKind::Recurrence { .. }));
    assert_eq!(last.conflict.members.iter().map(|m| m.family).collect::<Vec<_>>(), [Family::Dependence]);
}

#[test]
fn bytes_through_shared_memory_bound_an_interval() {
    // Far longer than all that the operations take: nothing else needs more than 2 cycles.
    let mut machine = machine(0, 64, 1);
    machine["shared_bytes_per_cycle"] = json!(3);
    let operations = json!([
        {"name": "store", "units": [{"unit": "fma", "cycles": 1}], "traffic": {"shared": 1000}},
        {"name": "dot", "units": [{"unit": "tensor", "cycles": 2}], "traffic": {"shared": 2001, "flop": 4}}
    ]);
    let problem = problem(&machine, &operations, &json!([]));
    let explanation = explained(&problem, None);
    assert_eq!((explanation.status, explanation.interval), (Status::Optimal, Some(Cycles(1001))));
    let LowerBoundKind::SharedBandwidth { bytes, operations, .. } = &explanation.lower_bound.kind else { panic!() };
    assert_eq!((bytes.0, operations.join(" ")), (3001, "dot store".to_owned()));
    let twice = explanation.what_ifs.iter().find(|w| matches!(w.change, Change::SharedBandwidth { .. })).unwrap();
    assert_eq!((twice.status, twice.initiation_interval), (Status::Optimal, Some(Cycles(501))));
    let below = explained(&problem, Some(Cycles(1000)));
    assert_eq!(below.status, Status::Infeasible);
    let bandwidth = member(&below, Family::Bandwidth);
    assert_eq!((bandwidth.needed, bandwidth.suffices), (true, Some(true)));
    assert_eq!(demand(bandwidth, Quantity::SharedTraffic), (Some(3001), 3000, true));
    // Bandwidth alone.
    assert_eq!(below.rejections.last().unwrap().conflict.members.len(), 1);
    // Without warps too.
    let pipeline = twill_exact::pipeline(&problem, &SearchOptions::default(), &mut |_| {});
    assert_eq!(pipeline.outcome.schedule().unwrap().interval, Cycles(1001));
    // And one iteration after another.
    let naive = twill_exact::naive(&problem, Naive::NoPipelining, &SearchOptions::default(), &mut |_| {});
    assert_eq!(naive.outcome.schedule().unwrap().interval, Cycles(1001));
}

/// Random decisions, read one after the other.
struct Tape<'a>(std::slice::Iter<'a, u32>);

impl Tape<'_> {
    fn below(&mut self, bound: u32) -> u32 {
        self.0.next().copied().unwrap_or(0) % bound
    }
}

/// Two or three operations on a machine that is tight in everything.
fn random(choices: &[u32]) -> Problem {
    let mut tape = Tape(choices.iter());
    let mut machine = machine(256 * u64::from(tape.below(40)), 16 + 8 * tape.below(2), 1 + tape.below(2));
    if tape.below(2) == 0 {
        machine["variable_latency_group"] = Value::Null;
    }
    machine["registers"]["words"] = json!(128 * (32 + 8 * tape.below(3)));
    let count = 2 + tape.below(2) as usize;
    let mut operations = Vec::new();
    for i in 0..count {
        let load = i == 0 && tape.below(3) == 0;
        let cycles = 1 + tape.below(2);
        let unit = if load { "tma" } else { ["tensor", "fma"][tape.below(2) as usize] };
        let registers = 128 * (1 + tape.below(10));
        let result = if load { json!({"shared_memory": 512}) } else { json!({"registers": registers}) };
        let execution = if load || tape.below(2) == 0 { "asynchronous" } else { "synchronous" };
        operations.push(json!({
            "name": format!("o{i}"), "units": [{"unit": unit, "cycles": cycles}], "latency": cycles + tape.below(3),
            "execution": execution, "issue_width": if load { 1 } else { 4 }, "variable_latency": load, "result": result,
            "handoff": tape.below(3), "streaming": load
        }));
    }
    let mut edges = Vec::new();
    let mut seen = BTreeSet::new();
    for _ in 0..1 + tape.below(4) {
        let (from, to) = (tape.below(count as u32), tape.below(count as u32));
        let distance = u32::from(from >= to);
        if seen.insert((from, to)) && operations[to as usize]["streaming"] == json!(false) {
            edges.push(json!({"from": format!("o{from}"), "to": format!("o{to}"), "distance": distance}));
        }
    }
    if tape.below(3) == 1 {
        machine["shared_bytes_per_cycle"] = json!(1 + tape.below(4));
        for operation in &mut operations {
            operation["traffic"] = json!({"shared": tape.below(12)});
        }
    }
    let ours = problem(&machine, &json!(operations), &json!(edges));
    if tape.below(3) == 2 { ours.with_options(ModelOptions::paper()) } else { ours }
}

/// The constraints of docs/model.md that a schedule breaks.
fn broken(problem: &Problem, schedule: &Schedule, lifted: &[String]) -> BTreeSet<Family> {
    let family = |constraint| match constraint {
        Constraint::Dependence => Some(Family::Dependence),
        Constraint::Resource => Some(Family::Resource),
        Constraint::Bandwidth => Some(Family::Bandwidth),
        Constraint::Assignment => Some(Family::Assignment),
        Constraint::Handoff => Some(Family::Handoff),
        Constraint::Concurrency => Some(Family::Concurrency),
        Constraint::Exclusive => Some(Family::Exclusive),
        Constraint::Registers => Some(Family::Registers),
        Constraint::SharedMemory => Some(Family::SharedMemory),
        Constraint::TensorMemory => Some(Family::TensorMemory),
        Constraint::Structure | Constraint::Channels | Constraint::Rings => None,
    };
    match verify(problem, schedule.clone()) {
        Ok(_) => BTreeSet::new(),
        Err(rejected) => {
            let kept = |v: &&Violation| !matches!(v, Violation::Resource { unit, .. } if lifted.contains(unit));
            rejected.violations.iter().filter(kept).filter_map(|v| family(v.constraint())).collect()
        }
    }
}

/// Every placement within two stages, with every way to allot registers.
fn some_schedule_keeps(problem: &Problem, interval: i64, families: Families) -> bool {
    let count = problem.graph().operations().len() as u32;
    let (cycles, pool) = (2 * interval as usize, problem.groups().len());
    let registers: Vec<u32> = if families.has(Family::Registers) { vec![8, 16, 24] } else { vec![8] };
    let one = cycles * pool;
    for code in 0..one.pow(count) {
        let place = |i: u32| code / one.pow(i) % one;
        let at = |i| Placement { cycle: Cycles((place(i) % cycles) as i64), group: GroupId::new(place(i) / cycles) };
        let placements: Vec<Placement> = (0..count).map(at).collect();
        let used: BTreeSet<usize> = placements.iter().map(|p| p.group.index()).collect();
        for deal in 0..registers.len().pow(used.len() as u32) {
            let group = |(i, &id): (usize, &usize)| {
                let pooled = problem.groups()[id];
                let compute = registers[deal / registers.len().pow(i as u32) % registers.len()];
                let fixed = problem.fixed_group(pooled.role);
                let registers_per_thread = fixed.map_or(compute, |f| f.registers_per_thread);
                WarpGroup { id: GroupId::new(id), role: pooled.role, warps: pooled.warps, registers_per_thread }
            };
            let groups = used.iter().enumerate().map(group).collect();
            let channels: Vec<Channel> = Vec::new();
            let (interval, length) = (Cycles(interval), Cycles(0));
            let schedule =
                Schedule { interval, length, placements: placements.clone(), groups, channels, rings: Vec::new() };
            if broken(problem, &schedule, &[]).iter().all(|f| !families.has(*f)) {
                return true;
            }
        }
    }
    false
}

/// The problem with another amount of something.
fn with(problem: &Problem, quantity: Quantity, amount: u64) -> Option<Problem> {
    let mut resources = problem.resources().clone();
    match quantity {
        Quantity::SharedMemory => resources.shared_memory.0 = amount,
        Quantity::RegistersPerThread => resources.registers.maximum_per_thread = amount.try_into().unwrap(),
        Quantity::RegisterFile => resources.registers.words = amount,
        Quantity::ComputeGroups => resources.compute_groups.maximum = amount.try_into().unwrap(),
        _ => return None,
    }
    Problem::new(problem.graph().clone(), resources, *problem.options()).ok()
}

/// The problem after a change of the machine or of handoffs.
fn after(problem: &Problem, change: &Change) -> Option<Problem> {
    let (mut graph, mut resources) = (problem.graph().clone(), problem.resources().clone());
    let mut options = *problem.options();
    match change {
        Change::AnyAssignment => options.warp_assignment = WarpAssignment::Free,
        Change::ComputeGroups { groups } => resources.compute_groups.maximum = *groups,
        Change::SharedMemory { bytes } => resources.shared_memory = *bytes,
        Change::Registers { per_thread, words } => {
            resources.registers.maximum_per_thread = *per_thread;
            resources.registers.words = *words;
        }
        Change::SharedBandwidth { bytes_per_cycle } => resources.shared_bytes_per_cycle = Some(*bytes_per_cycle),
        Change::FreeHandoffs => graph = graph.map(|op| op.handoff = Cycles::ZERO, |_| {}).unwrap(),
        Change::UnitTwiceAsFast { .. } | Change::SubTiles { .. } => return None,
    }
    Some(Problem::new(graph, resources, options).unwrap())
}

/// That the conflicts of a problem are conflicts, and that none of their members can be left out.
fn conflicts_are_minimal(problem: &Problem) -> Result<(), TestCaseError> {
    let explanation = explained(problem, Some(Cycles(12)));
    for rejection in &explanation.rejections {
        let (conflict, interval) = (&rejection.conflict, rejection.rejection.interval.0);
        prop_assert!(conflict.minimal, "these are small: {conflict:?}");
        let families: Families = conflict.members.iter().map(|m| m.family).collect();
        for member in &conflict.members {
            let witness = member.witness.as_ref().unwrap();
            prop_assert_eq!(witness.schedule.interval.0, interval);
            let another = |m: &&Member| (m.family, &m.unit) != (member.family, &member.unit);
            let others: Families = conflict.members.iter().filter(another).map(|m| m.family).collect();
            prop_assert!(others.within(witness.keeps));
            let broken = broken(problem, &witness.schedule, &witness.lifted);
            prop_assert!(broken.iter().all(|f| !witness.keeps.has(*f)), "{broken:?} of {witness:?}");
            for demand in member.demands.iter().filter(|d| d.suffices && d.proved) {
                let Some(required) = demand.required else { continue };
                let status = |amount| {
                    let changed = with(problem, demand.quantity, amount);
                    changed.map(|p| search(&p, Some(Cycles(interval))).outcome.status())
                };
                prop_assert!(matches!(status(required), None | Some(Status::Optimal)), "{demand:?}");
                prop_assert!(
                    matches!(status(required.saturating_sub(1)), None | Some(Status::Infeasible)),
                    "{demand:?}"
                );
            }
        }
        if interval <= 3 && *problem.options() == ModelOptions::default() {
            prop_assert!(!some_schedule_keeps(problem, interval, families), "{families:?} at {interval}");
        }
    }
    Ok(())
}

#[test]
fn a_carried_value_that_may_pass_to_another_group_takes_a_buffer_to_the_end() {
    // Without the dependences, `make` stands after its readers. In the paper's straight line its last copy is kept to
    // the end, because `carried` reads it an iteration later; it has no shared memory to be kept in.
    let operation = |name: &str, unit: &str, cycles: i64, words: u64, execution: &str| {
        json!({
            "name": name, "units": [{"unit": unit, "cycles": cycles}], "execution": execution,
            "result": {"registers": words}
        })
    };
    let operations = json!([
        operation("carried", "tensor", 1, 128, "asynchronous"),
        operation("make", "fma", 2, 1152, "asynchronous"),
        operation("use", "tensor", 2, 128, "synchronous")
    ]);
    let edges = json!([
        {"from": "carried", "to": "use"}, {"from": "make", "to": "carried", "distance": 1}, {"from": "make", "to": "use"}
    ]);
    let mut machine = machine(0, 16, 2);
    machine["variable_latency_group"] = Value::Null;
    machine["registers"]["words"] = json!(4096);
    let problem = problem(&machine, &operations, &edges).with_options(ModelOptions::paper());
    conflicts_are_minimal(&problem).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn conflicts_conflict_and_each_member_is_needed(choices in prop::collection::vec(any::<u32>(), 64)) {
        conflicts_are_minimal(&random(&choices))?;
    }

    #[test]
    fn changes_have_the_effect_that_a_search_finds(choices in prop::collection::vec(any::<u32>(), 64)) {
        let problem = random(&choices);
        let explanation = explained(&problem, None);
        for what_if in &explanation.what_ifs {
            let Some(changed) = after(&problem, &what_if.change) else { continue };
            let report = search(&changed, None);
            prop_assert_eq!(report.outcome.status(), what_if.status, "{:?}", what_if);
            let interval = report.outcome.schedule().map(|s| s.interval);
            prop_assert_eq!(interval, what_if.initiation_interval, "{:?}", what_if);
        }
    }
}
