//! The text, read back.

mod reader;

use crate::term::{Term, at_most};
use crate::{ExpectedStatus, FormulationError, Question, formulation, names, size};
use reader::{Item, read};
use std::collections::{BTreeMap, BTreeSet};
use twill_graph::format::{GraphFile, MachineReference};
use twill_graph::{Bytes, Cycles, Liveness, LoopGraph, ModelOptions, Problem, Resources, builtin};

fn problem(name: &str, options: ModelOptions) -> Problem {
    let found = builtin::find(name).unwrap();
    let Some(MachineReference::Resources(machine)) = found.machine else { panic!("{name} is for a machine by name") };
    Problem::new(found.graph, *machine, options).unwrap()
}

/// A problem in which every family has something to say.
fn full(options: ModelOptions) -> Problem {
    let file = GraphFile::from_json(include_str!("tests/full.json"), "full.json").unwrap();
    let Some(MachineReference::Resources(machine)) = file.machine.clone() else { panic!("no machine") };
    Problem::new(file.graph().unwrap(), *machine, options).unwrap()
}

fn text(problem: &Problem, interval: i64, stages: u32) -> String {
    formulation(problem, &Question::new(Cycles(interval), stages)).unwrap()
}

/// Names of the assertions.
fn named<'a>(script: &[Item<'a>]) -> Vec<&'a str> {
    let name = |item: &Item<'a>| match item.list()? {
        [Item::Symbol("assert"), Item::List(parts)] => match parts.as_slice() {
            [Item::Symbol("!"), _, Item::Symbol(":named"), Item::Symbol(name)] => Some(*name),
            _ => None,
        },
        _ => None,
    };
    script.iter().filter_map(name).collect()
}

/// Every symbol is declared or defined once before it is used, and every list is a command or term of the logic.
fn well_formed(text: &str) -> Vec<Item<'_>> {
    let script = read(text);
    let mut known = BTreeSet::from(["true", "false"]);
    for command in &script {
        let parts = command.list().unwrap();
        match parts {
            [Item::Symbol("declare-const"), Item::Symbol(name), Item::Symbol("Bool")] => {
                assert!(known.insert(name), "{name} twice");
            }
            [Item::Symbol("define-fun"), Item::Symbol(name), Item::List(none), Item::Symbol("Bool"), term] => {
                assert!(none.is_empty());
                boolean(term, &known);
                assert!(known.insert(name), "{name} twice");
            }
            [Item::Symbol("assert"), Item::List(parts)] => {
                let [Item::Symbol("!"), term, Item::Symbol(":named"), Item::Symbol(_)] = parts.as_slice() else {
                    panic!("{parts:?}")
                };
                boolean(term, &known);
            }
            [Item::Symbol("set-info" | "set-logic"), ..] | [Item::Symbol("check-sat")] => {}
            other => panic!("{other:?}"),
        }
    }
    let names = named(&script);
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "names of assertions are unique");
    script
}

fn boolean(term: &Item, known: &BTreeSet<&str>) {
    match term {
        Item::Symbol(name) => assert!(known.contains(name), "{name}"),
        Item::List(parts) => match parts.as_slice() {
            [Item::Symbol("and" | "or"), terms @ ..] if terms.len() > 1 => terms.iter().for_each(|t| boolean(t, known)),
            [Item::Symbol("not"), term] => boolean(term, known),
            [Item::Symbol("<="), Item::List(sum), Item::Symbol(bound)] => {
                assert!(bound.parse::<u64>().is_ok(), "{bound}");
                let [Item::Symbol("+"), summands @ ..] = sum.as_slice() else { panic!("{sum:?}") };
                assert!(summands.len() > 1);
                for summand in summands {
                    let Some([Item::Symbol("ite"), term, Item::Symbol(weight), Item::Symbol("0")]) = summand.list()
                    else {
                        panic!("{summand:?}")
                    };
                    assert!(weight.parse::<u64>().is_ok(), "{weight}");
                    boolean(term, known);
                }
            }
            other => panic!("{other:?}"),
        },
    }
}

fn families(script: &[Item]) -> BTreeSet<String> {
    named(script).iter().map(|n| n.split(':').next().unwrap().to_owned()).collect()
}

#[test]
fn every_family_is_stated_under_its_name() {
    let every = [
        "assignment",
        "concurrency",
        "dependence",
        "exclusive",
        "handoff",
        "issue",
        "registers",
        "resource",
        "shared_memory",
        "symmetry",
        "tensor_memory",
    ];
    let written = text(&full(ModelOptions::default()), 6, 2);
    assert_eq!(families(&well_formed(&written)), every.map(str::to_owned).into());
    // The paper has no exclusive issue, and a number of stages.
    let written = text(&full(ModelOptions::paper()), 6, 2);
    let mut expected: BTreeSet<String> = every.map(str::to_owned).into();
    expected.remove("exclusive");
    expected.insert("stages".into());
    assert_eq!(families(&well_formed(&written)), expected);
}

#[test]
fn every_option_changes_the_text() {
    let ours = ModelOptions::default();
    let paper = ModelOptions::paper();
    let changed = [
        ModelOptions { exclusive_issue: paper.exclusive_issue, ..ours },
        ModelOptions { concurrency_window: paper.concurrency_window, ..ours },
        ModelOptions { consumer_registers: paper.consumer_registers, ..ours },
        ModelOptions { liveness: paper.liveness, ..ours },
        ModelOptions { cross_group_registers: false, ..ours },
        ModelOptions { warp_assignment: twill_graph::WarpAssignment::BySubTile, ..ours },
    ];
    let assertions = |options| {
        let written = text(&full(options), 6, 2);
        well_formed(&written);
        written.lines().filter(|line| !line.starts_with(';')).map(str::to_owned).collect::<Vec<_>>()
    };
    for options in changed {
        assert_ne!(assertions(ours), assertions(options), "{options:?}");
        assert_eq!(assertions(options), assertions(options));
    }
    // Which numbers of stages are asked for is the asker's.
    assert_eq!(assertions(ours), assertions(ModelOptions { stage_window: paper.stage_window, ..ours }));
}

/// All schedules of a toy by trying every placement, versus all models of its text by evaluating it.
#[test]
fn the_models_of_the_toy_are_its_schedules() {
    for interval in [2, 3, 4] {
        let problem = problem("toy-attention", ModelOptions::default());
        let written = text(&problem, interval, 2);
        let script = well_formed(&written);
        let cycles = 2 * interval;
        let mut schedules = 0;
        for placed in 0..cycles.pow(3) {
            let at = [placed % cycles, placed / cycles % cycles, placed / cycles / cycles];
            // One group runs everything and is given all there is to give.
            schedules += i64::from(holds(&script, |name| {
                let numbers: Vec<i64> = name.split('_').filter_map(|part| part.parse().ok()).collect();
                match name.split('_').next().unwrap() {
                    "op" => at[numbers[0] as usize] == numbers[1],
                    "le" => at[numbers[0] as usize] <= numbers[1],
                    "warp" | "given" => numbers[if name.starts_with("warp") { 1 } else { 0 }] == 0,
                    other => panic!("{other}"),
                }
            }));
        }
        // The products alternate on the tensor core, and P is anywhere in between; nobody waits, so one group does it
        // all.
        let mut tried = 0;
        for s in 0..cycles {
            for o in (s + 2..cycles).filter(|o| s % interval != o % interval) {
                tried += o - s - 1;
            }
        }
        assert_eq!(schedules, tried, "I = {interval}");
    }
}

/// Returns whether all assertions hold when the declared constants have these values.
fn holds(script: &[Item], value: impl Fn(&str) -> bool) -> bool {
    let mut values: BTreeMap<&str, bool> = BTreeMap::from([("true", true), ("false", false)]);
    for command in script {
        match command.list().unwrap() {
            [Item::Symbol("declare-const"), Item::Symbol(name), ..] => {
                values.insert(name, value(name));
            }
            [Item::Symbol("define-fun"), Item::Symbol(name), _, _, term] => {
                values.insert(name, evaluate(term, &values));
            }
            [Item::Symbol("assert"), Item::List(parts)] if !evaluate(&parts[1], &values) => return false,
            _ => {}
        }
    }
    true
}

fn evaluate(term: &Item, values: &BTreeMap<&str, bool>) -> bool {
    match term {
        Item::Symbol(name) => values[name],
        Item::List(parts) => match parts.as_slice() {
            [Item::Symbol("and"), terms @ ..] => terms.iter().all(|t| evaluate(t, values)),
            [Item::Symbol("or"), terms @ ..] => terms.iter().any(|t| evaluate(t, values)),
            [Item::Symbol("not"), term] => !evaluate(term, values),
            [Item::Symbol("<="), Item::List(sum), Item::Symbol(bound)] => {
                let summand = |s: &Item| match s.list().unwrap() {
                    [_, term, Item::Symbol(weight), _] if evaluate(term, values) => weight.parse().unwrap(),
                    _ => 0,
                };
                sum[1..].iter().map(summand).sum::<u64>() <= bound.parse().unwrap()
            }
            other => panic!("{other:?}"),
        },
    }
}

#[test]
fn hostile_names_stay_names() {
    let hostile = ["|", ") (exit) (", "a\\", "\"", "; |", "%7C", "é|", "(check-sat)"];
    let toy = problem("toy-attention", ModelOptions::default());
    for one in hostile {
        let mut first = true;
        let graph = toy.graph().map(
            |op| {
                if std::mem::take(&mut first) {
                    op.name = one.to_owned();
                }
            },
            |_| {},
        );
        let graph = graph.unwrap();
        // Graphs have no names with line breaks; notes may have.
        let line = format!("{one}\n(assert false)\r\n");
        let named = format!("{one} (assert false) ");
        let name = named.as_str();
        let graph = LoopGraph::new(name, graph.operations().to_vec(), graph.dependences().to_vec(), graph.reserved());
        let mut machine = toy.resources().clone();
        machine.name = name.into();
        let mut graph = graph.unwrap();
        for unit in &mut machine.units {
            let old = unit.name.clone();
            unit.name.insert_str(0, &named);
            let renamed = graph.map(
                |op| op.reservations.iter_mut().filter(|r| r.unit == old).for_each(|r| r.unit = unit.name.clone()),
                |_| {},
            );
            graph = renamed.unwrap();
        }
        let problem = Problem::new(graph, machine, ModelOptions::default()).unwrap();
        let mut question = Question::new(Cycles(2), 2);
        question.notes.push(line.clone());
        let written = formulation(&problem, &question).unwrap();
        assert!(written.bytes().all(|b| b == b'\n' || (b' '..=b'~').contains(&b)), "{one}");
        let commands = |text: &str| {
            let kind = |item: &Item| format!("{:?}", item.list().unwrap()[0]);
            well_formed(text).iter().map(kind).collect::<Vec<_>>()
        };
        assert_eq!(commands(&written), commands(&text(&toy, 2, 2)), "{one}");
    }
    let inert: BTreeSet<String> = hostile.iter().map(|n| names::inert(n)).collect();
    assert_eq!(inert.len(), hostile.len(), "different names stay different");
}

#[test]
fn the_head_says_what_is_asked_and_claimed() {
    let mut question = Question::new(Cycles(2), 1);
    question.expected_status = Some(ExpectedStatus::Unsat);
    let written = formulation(&problem("toy-attention", ModelOptions::default()), &question).unwrap();
    let head = written.lines().next().unwrap();
    assert!(head.ends_with("with initiation interval I = 2 and at most 1 stage?"), "{head}");
    assert!(written.contains("\n(set-info :status unsat)\n(set-logic QF_LIA)\n"));
    let options = ModelOptions { liveness: Liveness::Paper, ..ModelOptions::default() };
    let written = text(&problem("toy-attention", options), 2, 3);
    assert!(written.lines().next().unwrap().ends_with("exactly 3 stages?"));
    assert!(written.contains("liveness paper"));
}

#[test]
fn what_cannot_be_asked_is_refused_before_anything_is_written() {
    let toy = problem("toy-attention", ModelOptions::default());
    let ask = |interval, stages| formulation(&toy, &Question::new(Cycles(interval), stages)).unwrap_err();
    assert_eq!(ask(0, 1), FormulationError::Interval { interval: Cycles(0) });
    assert_eq!(ask(2, 0), FormulationError::Stages);
    for (interval, stages) in [(1 << 40, 1), (1, u32::MAX), (i64::MAX, u32::MAX)] {
        let error = ask(interval, stages);
        assert!(matches!(error, FormulationError::TooLarge { .. }), "{error}");
        assert!(error.to_string().contains("--normalise"), "{error}");
    }
}

/// The estimate is from above, and not far.
#[test]
fn sizes_are_estimated() {
    for options in [ModelOptions::default(), ModelOptions::paper()] {
        for problem in [full(options), problem("toy-attention", options), problem("toy-attention-blocking", options)] {
            for (interval, stages) in [(3, 1), (20, 2), (40, 4)] {
                let estimate = size::estimate(&problem, &Question::new(Cycles(interval), stages));
                let written = text(&problem, interval, stages);
                let names = ["op_", "le_", "warp_", "apart_", "in_", "live_", "away_", "passed_", "more_", "given_"];
                let literals: usize = names.iter().map(|name| written.matches(name).count()).sum();
                let literals = literals as u64;
                assert!(literals <= estimate && estimate <= 12 * literals, "{literals} {estimate} I = {interval}");
            }
        }
    }
}

#[test]
fn an_operation_that_is_too_long_for_all_stages_leaves_nothing_to_say() {
    let written = text(&full(ModelOptions::default()), 1, 1);
    let script = well_formed(&written);
    assert_eq!(families(&script), BTreeSet::from(["issue".to_owned()]));
    assert!(!holds(&script, |_| true));
}

#[test]
fn bandwidth_that_is_enough_says_nothing_and_too_little_leaves_no_model() {
    let limited = |rate| {
        let whole = full(ModelOptions::default());
        let moving = whole.graph().map(|op| op.traffic.shared = Bytes(10), |_| {}).unwrap();
        let machine = Resources { shared_bytes_per_cycle: rate, ..whole.resources().clone() };
        let problem = Problem::new(moving, machine, *whole.options()).unwrap();
        let written = text(&problem, 6, 2);
        let script = well_formed(&written);
        families(&script).contains("bandwidth").then(|| written.contains("(! false :named |bandwidth: shared memory|)"))
    };
    // Seven operations move 70 bytes in 6 cycles.
    assert_eq!([limited(None), limited(Some(Bytes(12)))], [None, None]);
    assert_eq!(limited(Some(Bytes(11))), Some(true));
}

#[test]
fn sums_are_those_of_their_terms() {
    let names = ["a", "b", "c"];
    let cases: [(&[u64], i128); 8] = [
        (&[1, 1, 1], 1),
        (&[2, 4, 6], 7),
        (&[5, 3, 9], 8),
        (&[3, 3, 3], 9),
        (&[4, 1, 1], 3),
        (&[1, 2, 3], -1),
        (&[0, 2, 2], 2),
        (&[7, 7, 7], 0),
    ];
    for (weights, bound) in cases {
        let terms: Vec<(u64, Term)> = weights.iter().zip(names).map(|(w, n)| (*w, Term::text(n))).collect();
        let written = at_most(&terms, bound);
        for chosen in 0..8u32 {
            let on = |i: usize| chosen >> i & 1 == 1;
            let values: BTreeMap<&str, bool> = names.iter().enumerate().map(|(i, n)| (*n, on(i))).collect();
            let all = written.iter().all(|term| match term {
                Term::Known(value) => *value,
                Term::Text(text) => evaluate(&read(text)[0], &values),
            });
            let sum: i128 = weights.iter().enumerate().filter(|(i, _)| on(*i)).map(|(_, w)| i128::from(*w)).sum();
            assert_eq!(all, sum <= bound, "{weights:?} {bound} {chosen:03b}");
        }
    }
}
