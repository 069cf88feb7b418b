//! The barriers of generated programs: proved, and none of them there for nothing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod common;

use Mutation::{
    Arrivals, BarrierSlots, BufferSlots, CursorSlots, Drop, Duplicate, Edge, InFlight, OtherCursor, Participants,
    Previous, Swap,
};
use common::{Scheduled, coarsening, sub_tiles};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use twill_check::protocol::{Event, Limits, Mutation, Node, ProtocolError, System, mutants, verify};
use twill_codegen::Error;
use twill_codegen::check;
use twill_codegen::ir::Arrival;

/// Slots of rings.
const DEPTHS: [u32; 3] = [1, 2, 3];

/// Every way to generate code for an example, as far as its buffers fit; the number of ways that do.
fn proved(example: &str, options: &twill_triton::Options) -> usize {
    proved_with(&Scheduled::new(example, "h200", options), example, &DEPTHS)
}

/// The same of a schedule, with rings of these depths.
fn proved_with(scheduled: &Scheduled, example: &str, depths: &[u32]) -> usize {
    let mut fitting = 0;
    for persistent in [false, true] {
        for &ring_depth in depths {
            for pingpong in [false, true] {
                let program = match scheduled.program(persistent, ring_depth, pingpong) {
                    Ok(program) => program,
                    Err(Error::SharedMemory { .. }) => continue,
                    Err(error) => panic!("{example}: {error}"),
                };
                let checked = check(program).unwrap_or_else(|error| {
                    panic!("{example}, persistent {persistent}, rings of {ring_depth}, pingpong {pingpong}: {error}")
                });
                let proof = checked.proof();
                assert!(proof.cases > 5, "{example}");
                assert_eq!(proof.searched, 0, "{example}: the order of events alone should be enough");
                fitting += 1;
            }
        }
    }
    fitting
}

#[test]
fn lowered_and_proved_at_once_is_the_same_program() {
    for (example, pingpong) in [("gemm_tma", false), ("attention_forward", true)] {
        let scheduled = Scheduled::new(example, "h200", &twill_triton::Options::default());
        let checked = check(scheduled.program(true, 1, pingpong).unwrap()).unwrap();
        let at_once = scheduled.checked(true, 1, pingpong).unwrap();
        assert_eq!(at_once.into_inner(), checked.into_inner(), "{example}");
    }
}

#[test]
fn matrix_multiplications_are_proved() {
    let whole = twill_triton::Options::default();
    for example in ["gemm_tma", "gemm_tma_n256", "gemm_tma_m256", "gemm_pointers", "swiglu"] {
        assert!(proved(example, &whole) >= 8, "{example}");
    }
    assert_eq!(proved("gemm_tma", &sub_tiles(1)), 12);
}

#[test]
fn attention_is_proved() {
    let whole = twill_triton::Options::default();
    // Rings of three slots do not fit everywhere.
    for example in ["attention_forward", "attention_forward_causal", "attention_backward"] {
        assert!(proved(example, &whole) >= 4, "{example}");
    }
    let d64 = ["attention_forward_d64"].map(|example| (example, Scheduled::soon(example, "h200", &whole)));
    let tutorial = ["tutorial_attention", "tutorial_attention_causal"];
    let tutorial = tutorial.map(|example| (example, Scheduled::new(example, "h200", &whole)));
    for (example, scheduled) in d64.iter().chain(&tutorial) {
        assert!(proved_with(scheduled, example, &[2]) >= 2, "{example}");
    }
    assert_eq!(proved("attention_forward_d64_m64", &coarsening(3)), 12);
}

#[test]
fn kernels_in_tensor_memory_are_proved() {
    let whole = twill_triton::Options::default();
    let attention =
        ["attention_forward", "attention_forward_d64", "attention_forward_causal", "attention_backward_d64"];
    let products = ["gemm_tma", "gemm_tma_n256", "gemm_tma_m256", "gemm_pointers", "swiglu"];
    // Rings of three slots do not fit everywhere.
    for (examples, least) in [(products.as_slice(), 8), (attention.as_slice(), 4)] {
        for example in examples {
            assert!(proved_with(&Scheduled::new(example, "b200", &whole), example, &DEPTHS) >= least, "{example}");
        }
    }
    // Whose operands in tensor memory would not fit.
    for example in ["attention_forward_m256", "attention_backward"] {
        assert!(proved_with(&Scheduled::new(example, "b200-left-shared", &whole), example, &DEPTHS) >= 2, "{example}");
        let error = Scheduled::new(example, "b200", &whole).program(false, 1, false).unwrap_err();
        assert!(matches!(error, Error::TensorMemory { available: 512, .. }), "{error}");
    }
}

#[test]
fn clusters_are_proved() {
    let whole = twill_triton::Options::default();
    for (example, rings) in [
        ("attention_forward", vec!["k", "v"]),
        ("attention_backward", vec!["q", "do"]),
        ("gemm_tma", vec!["b"]),
        ("gemm_pointers", vec!["b"]),
        ("swiglu", vec!["gate_weights", "up_weights"]),
    ] {
        let scheduled = Scheduled::new(example, "h200", &whole);
        for persistent in [false, true] {
            let program = match scheduled.clusters(persistent, 2) {
                // Handoff buffers, and the stores of the tile before, take more where there is another tile.
                Err(Error::SharedMemory { .. }) if persistent => continue,
                other => other.unwrap_or_else(|error| panic!("{example}: {error}")),
            };
            let checked = check(program).unwrap();
            assert_eq!(checked.system().unwrap().processes.len(), 2 * checked.groups.len(), "{example}");
            assert_eq!(checked.proof().searched, 0, "{example}: the order of events alone should be enough");
            let common = &checked.cluster.as_ref().unwrap().rings;
            let names: Vec<&str> =
                common.iter().map(|ring| checked.buffers[ring.buffer.index()].name.as_str()).collect();
            let wanted: Vec<String> = rings.iter().map(|name| format!("{name}_buffer")).collect();
            assert_eq!(names, wanted, "{example}");
        }
    }
}

/// What a cluster adds to a program is there for something.
#[test]
fn a_cluster_needs_both_of_its_ctas() {
    let scheduled = Scheduled::new("gemm_tma", "h200", &twill_triton::Options::default());
    for persistent in [false, true] {
        let program = scheduled.clusters(persistent, 2).unwrap();
        let ring = program.cluster.as_ref().unwrap().rings[0];
        let (barriers, buffers) = (program.barriers.len(), program.buffers.len());
        let is_wrong = |change: &dyn Fn(&mut System)| {
            let mut system = program.system().unwrap();
            change(&mut system);
            assert_ne!(system, program.system().unwrap());
            matches!(verify(&system, &Limits::default()), Err(ProtocolError::Violated(_)))
        };
        // The first CTA, which comes first in everything, does no more than it would alone.
        assert!(is_wrong(&|s| s.barriers[ring.empty.index()].arrivals /= 2));
        assert!(is_wrong(&|s| s.barriers[ring.full.index()].arrivals /= 2));
        let groups = program.groups.len();
        let without = |s: &mut System, event: &dyn Fn(&Event) -> bool| {
            s.processes[..groups].iter_mut().for_each(|p| leave_out(&mut p.body, event));
        };
        let others = |barrier: usize| barrier >= barriers;
        assert!(is_wrong(&|s| without(s, &|e| matches!(e, Event::Arrive { barrier, .. } if others(barrier.index())))));
        assert!(is_wrong(&|s| without(s, &|e| matches!(e, Event::Load { barrier, .. } if others(barrier.index())))));
        // Both halves from the same CTA into one place.
        assert!(is_wrong(&|s| {
            let of_second = |e: &Event| matches!(e, Event::Load { writes, .. } if writes.buffer.index() >= 2 * buffers);
            s.processes[groups..].iter_mut().for_each(|p| leave_out(&mut p.body, &of_second));
        }));
    }
}

fn leave_out(nodes: &mut Vec<Node>, event: &dyn Fn(&Event) -> bool) {
    nodes.retain(|node| !matches!(node, Node::Do(e) if event(e)));
    for node in nodes {
        match node {
            Node::Do(_) => {}
            Node::Loop { body, .. } | Node::When { body, .. } | Node::Tiles(body) => leave_out(body, event),
        }
    }
}

/// Nobody waits for what comes after the last use.
const END: &str = "after the last iteration nobody waits for it";
/// Waiting again for what has happened.
const AGAIN: &str = "what has happened has happened";
/// Slots that no cursor stands at.
const UNUSED: &str = "a slot more is not used";
/// Nothing depends on the order.
const APART: &str = "the two have nothing to do with each other";
/// A stricter wait.
const STRICTER: &str = "waits for more than it must, earlier than it must";
/// Two cursors at one place.
const SAME: &str = "the cursors stand at the same slot there, or the ring has one slot";
/// A ring, or another group, that is behind anyway.
const HELD: &str = "a first use of fresh slots, or another ring or group has waited for it already";
/// Which group issues its MMAs first is a matter of speed.
const PINGPONG: &str = "ping-pong barriers guard no data";

/// Mutation, event, neighbour of the mistakes that may be none, and why.
const HARMLESS: &[(Mutation, &str, &str, &str)] = &[
    (Arrivals, "", "", "the barrier is there for the next tile, and there is one tile"),
    (BarrierSlots, "", "", UNUSED),
    (BufferSlots, "", "", UNUSED),
    (Drop, "Advance", "", END),
    (Drop, "Arrive", "", END),
    (Drop, "CopyCursor", "", SAME),
    (Drop, "Wait", "", HELD),
    (Drop, "MmaWait", "", "what is waited for is in registers, which is not what is checked"),
    (Drop, "StoreWait", "", HELD),
    (Duplicate, "Advance", "", END),
    (Duplicate, "Arrive", "", END),
    (Duplicate, "Fence", "", AGAIN),
    (Duplicate, "CopyCursor", "", AGAIN),
    (Duplicate, "Wait", "", AGAIN),
    (Duplicate, "MmaWait", "", AGAIN),
    (Duplicate, "StoreWait", "", AGAIN),
    (Edge, "When", "", "work is left out, which is not what is checked"),
    (InFlight, "MmaWait", "", STRICTER),
    (InFlight, "StoreWait", "", STRICTER),
    (OtherCursor, "Advance", "", END),
    (OtherCursor, "Arrive", "", SAME),
    (OtherCursor, "Wait", "", SAME),
    (Swap, "Advance", "Load", APART),
    (Swap, "Advance", "Mma", APART),
    (Swap, "Advance", "Store", APART),
    (Swap, "Advance", "NamedBarrierArrive", APART),
    (Swap, "Advance", "NamedBarrierSync", APART),
    (Swap, "Advance", "Wait", APART),
    (Swap, "Advance", "MmaWait", APART),
    (Swap, "Advance", "StoreWait", APART),
    (Swap, "Advance", "When", APART),
    (Swap, "Advance", "Write", APART),
    (Swap, "Arrive", "Advance", SAME),
    (Swap, "Arrive", "Arrive", APART),
    (Swap, "Arrive", "Wait", "the wait is for another ring"),
    (Swap, "Arrive", "MmaWait", "the slot is freed later, or the wait is for another MMA"),
    (Swap, "CopyCursor", "Advance", SAME),
    (Swap, "Load", "Advance", SAME),
    (Swap, "Load", "Wait", "two rings: the load is later than the other one's wait"),
    (Swap, "Loop", "Wait", HELD),
    (Swap, "Mma", "CopyCursor", APART),
    (Swap, "Mma", "NamedBarrierArrive", PINGPONG),
    (Swap, "Mma", "Wait", "the wait is for another ring"),
    (Swap, "Mma", "MmaWait", STRICTER),
    (Swap, "Read", "Arrive", HELD),
    (Swap, "NamedBarrierArrive", "MmaWait", PINGPONG),
    (Swap, "NamedBarrierSync", "Mma", PINGPONG),
    (Swap, "Wait", "CopyCursor", APART),
    (Swap, "Store", "StoreWait", "the wait is for a store before"),
    (Swap, "MmaWait", "Wait", APART),
    (Swap, "MmaWait", "Arrive", "the last iteration's, or another ring holds the loads back"),
    (Swap, "StoreWait", "Arrive", "the arrival is for another buffer"),
    (Swap, "When", "Advance", END),
    (Swap, "When", "Arrive", "the loop reads its copy in registers"),
    (Swap, "When", "StoreWait", APART),
];

/// Checks every `step`th mutant: all of a kind and those that survive, by mutation, event and neighbour.
type Counts = BTreeMap<(Mutation, &'static str, &'static str), (usize, Vec<String>)>;

fn survivors(name: &str, system: &System, step: usize) -> Counts {
    let mut counts = Counts::new();
    // Of a sample, neighbours that change places are left out: nearly all of them have nothing to do with each other.
    let counts_swaps = step == 1;
    for mutant in mutants(system).iter().filter(|m| counts_swaps || m.mutation != Swap).step_by(step) {
        let (all, survived) = counts.entry((mutant.mutation, mutant.event, mutant.neighbour)).or_default();
        *all += 1;
        match verify(&mutant.system, &Limits::default()) {
            Ok(_) => survived.push(mutant.name.clone()),
            // What is not proved is not accepted either.
            Err(ProtocolError::Violated(_) | ProtocolError::Malformed { .. } | ProtocolError::Undecided { .. }) => {}
            Err(error) => panic!("{name}: {}: {error}", mutant.name),
        }
    }
    counts
}

/// Every mistake is found, but for those that are none; how many of each kind is in the snapshot.
#[test]
fn mistakes_in_generated_programs_are_found() {
    let found = |(example, persistent, pingpong, step): (&str, bool, bool, usize)| {
        let (mut table, mut unknown) = (String::new(), String::new());
        let scheduled = Scheduled::new(example, "h200", &twill_triton::Options::default());
        let system = scheduled.program(persistent, 2, pingpong).unwrap().system().unwrap();
        let counts = survivors(example, &system, step);
        let all: usize = counts.values().map(|(all, _)| all).sum();
        let survived: usize = counts.values().map(|(_, names)| names.len()).sum();
        let how = if persistent { ", persistent, with ping-pong" } else { "" };
        writeln!(table, "{example}{how}: {survived} of {all} survive").unwrap();
        for ((mutation, event, neighbour), (all, names)) in &counts {
            let known = HARMLESS.iter().find(|row| (row.0, row.1, row.2) == (*mutation, *event, *neighbour));
            if known.is_none() && !names.is_empty() {
                writeln!(unknown, "{example}{how}: {}", names.join("\n")).unwrap();
            }
            if let (Some(row), false) = (known, names.is_empty()) {
                let kind = format!("{mutation:?} {event} {neighbour}");
                writeln!(table, "  {}: {} of {all}, {}", kind.trim_end(), names.len(), row.3).unwrap();
            }
        }
        (table, unknown)
    };
    // Of many mistakes, each of which takes ten times as long as one of the others.
    let sample = if std::env::var_os("TWILL_LONG").is_some() { 7 } else { 23 };
    // Side by side: together they take longer than all other tests.
    let (table, unknown): (String, String) = std::thread::scope(|scope| {
        let all = [
            ("gemm_tma", false, false, 1),
            ("gemm_tma", true, true, 1),
            ("attention_forward", false, false, 1),
            ("attention_forward", true, true, 1),
            ("attention_backward", false, false, sample),
        ];
        let threads: Vec<_> = all.into_iter().map(|one| scope.spawn(move || found(one))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).unzip()
    });
    assert!(unknown.is_empty(), "mistakes that nothing finds, and no reason is known why they are none:\n{unknown}");
    insta::assert_snapshot!(format!("mistakes_in_generated_programs_are_found_of_every_{sample}"), table);
}

/// In the body of a loop a group that computes needs each of its waits for data, and its release of each slot.
#[test]
fn nothing_that_is_needed_can_go() {
    for example in ["gemm_tma", "attention_forward"] {
        let system = Scheduled::new(example, "h200", &twill_triton::Options::default())
            .program(true, 2, false)
            .unwrap()
            .system()
            .unwrap();
        let mut needed = 0;
        for mutant in mutants(&system) {
            let needs = match mutant.mutation {
                Drop => {
                    matches!(
                        mutant.event,
                        "Arrive" | "Fence" | "NamedBarrierSync" | "NamedBarrierArrive" | "StoreWait" | "Advance"
                    ) || (mutant.event == "Wait" && mutant.name.starts_with("compute"))
                }
                Previous | CursorSlots | Participants => true,
                _ => false,
            };
            if needs {
                needed += 1;
                assert!(verify(&mutant.system, &Limits::default()).is_err(), "{example}: {}", mutant.name);
            }
        }
        assert!(needed > 40, "{example}: {needed}");
    }
}

#[test]
fn an_unsafe_program_is_refused_with_the_run_that_goes_wrong() {
    let mut program =
        Scheduled::new("gemm_tma", "h200", &twill_triton::Options::default()).program(false, 2, false).unwrap();
    for barriers in &mut program.barriers {
        barriers.arrivals.extend(barriers.arrivals.first().copied());
    }
    let Err(Error::Protocol { counterexample }) = check(program) else { panic!("a barrier that nobody completes") };
    assert!(counterexample.contains("wait"), "{counterexample}");
}

/// Copies by threads where a unit is counted, and a group where another is.
#[test]
fn nobody_arrives_at_a_barrier_that_does_not_count_it() {
    let is = |what: &str, arrival: &Arrival| match arrival {
        Arrival::EachThread { .. } => what == "EachThread",
        Arrival::Threads { .. } => what == "Threads",
        Arrival::Unit => what == "Unit",
    };
    for (what, instead) in [
        ("EachThread", Arrival::Unit),
        ("Unit", Arrival::EachThread { warps: 4 }),
        ("Threads", Arrival::Threads { warps: 2 }),
        ("Threads", Arrival::Unit),
    ] {
        let example = if what == "Unit" { "gemm_tma" } else { "fixtures/pointers/bounded" };
        let scheduled = Scheduled::new(example, "h200", &twill_triton::Options::default());
        let mut program = scheduled.program(false, 2, false).unwrap();
        let mut changed = 0;
        for arrival in program.barriers.iter_mut().flat_map(|barriers| &mut barriers.arrivals) {
            if is(what, arrival) {
                *arrival = instead;
                changed += 1;
            }
        }
        assert!(changed > 0, "{:?}", program.barriers);
        let Err(Error::Protocol { counterexample }) = check(program) else { panic!("{what} where {instead:?} counts") };
        assert!(counterexample.contains(what), "{counterexample}");
    }
}
