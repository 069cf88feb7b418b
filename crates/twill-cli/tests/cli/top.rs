//! Several different schedules, and their kernels.

use crate::common::{stderr, stdout, twill};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Output;
use twill_graph::format::ScheduleFile;
use twill_graph::{Cycles, Problem, Schedule, Status};

const FORWARD: [&str; 3] = ["examples/attention_forward.ttir", "--machine", "h200"];

/// The schedules that `twill schedule` writes with these arguments, replayed.
fn schedules(arguments: &[&str]) -> (Problem, Vec<(ScheduleFile, Schedule)>) {
    let output = twill(&[&["schedule", "--format", "json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let all: Vec<serde_json::Value> = serde_json::from_str(&stdout(&output)).unwrap();
    let files: Vec<ScheduleFile> =
        all.iter().map(|one| ScheduleFile::from_json(&one.to_string(), "stdout").unwrap()).collect();
    let problem = files[0].problem().unwrap();
    let schedule = |file: ScheduleFile| {
        let schedule = file.schedule(&problem).unwrap();
        let verified = twill_check::verify(&problem, schedule).unwrap_or_else(|e| panic!("{e}"));
        (file, verified.into_inner())
    };
    let schedules = files.into_iter().map(schedule).collect();
    (problem, schedules)
}

/// What each group issues in an interval, from its first operation on: operations with their iterations.
fn programs(problem: &Problem, schedule: &Schedule) -> BTreeSet<Vec<(usize, i64)>> {
    let of_group = |group| {
        let own = problem.graph().op_ids().filter(|op| schedule.placement(*op).group == group);
        let mut own: Vec<(i64, usize, i64)> =
            own.map(|op| (schedule.slot(op).0, op.index(), -schedule.stage(op))).collect();
        own.sort_unstable();
        let at = own.iter().position(|o| o.1 == own.iter().map(|o| o.1).min().unwrap()).unwrap();
        let first = own[at].2;
        // What issues before the group's first operation stands at the end, for the next iteration.
        let turned = own[at..].iter().map(|o| (o.1, o.2 - first));
        turned.chain(own[..at].iter().map(|o| (o.1, o.2 - first + 1))).collect()
    };
    schedule.groups.iter().map(|group| of_group(group.id)).collect()
}

#[test]
fn attention_forward_has_eight_different_schedules() {
    let arguments = [&FORWARD[..], &["--top", "8"]].concat();
    let (problem, found) = schedules(&arguments);
    assert_eq!(found.len(), 8);
    for (file, schedule) in &found {
        assert_eq!((file.status, schedule.interval), (Status::Optimal, Cycles(2048)));
    }
    let different: BTreeSet<_> = found.iter().map(|(_, schedule)| programs(&problem, schedule)).collect();
    assert_eq!(different.len(), 8);
    let again: Vec<Schedule> = schedules(&arguments).1.into_iter().map(|(_, schedule)| schedule).collect();
    assert_eq!(found.into_iter().map(|(_, schedule)| schedule).collect::<Vec<_>>(), again);
}

#[test]
fn toy_attention_is_exhausted() {
    let output = twill(&["schedule", "toy-attention", "--top", "100"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        text.contains("Every other schedule with I <= 2 and N <= 3 does the same as one of these: proved."),
        "{text}"
    );
    let (_, least) = schedules(&["toy-attention", "--top", "100"]);
    let (_, more) = schedules(&["toy-attention", "--top", "100", "--within", "50"]);
    let intervals: Vec<i64> = more.iter().map(|(_, schedule)| schedule.interval.0).collect();
    assert!(intervals.is_sorted() && intervals.len() > least.len() && *intervals.last().unwrap() == 3, "{intervals:?}");
    assert!(intervals.iter().zip(&more).all(|(i, (file, _))| (*i == 2) == (file.status == Status::Optimal)));
}

#[test]
fn several_loops_are_refused_with_the_way_out() {
    let causal = "examples/attention_forward_causal.ttir";
    let output = twill(&["schedule", causal, "--top", "2"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--top is for one loop, and the kernel has 2; choose one with --loop"));
    let output = twill(&["schedule", causal, "--top", "2", "--loop", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = twill(&["schedule", causal, "--within", "5"]);
    assert!(stderr(&output).contains("--top <K>"), "{}", stderr(&output));
}

fn compile(folder: &Path, most: &str) -> Output {
    let folder = folder.to_str().unwrap();
    twill(&[&["compile"], &FORWARD[..], &["--no-assemble", "--quiet", "--top", most, "-o", folder]].concat())
}

fn names(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn each_schedule_has_a_kernel_in_a_folder_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("kernels");
    let output = compile(&folder, "3");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let numbers = |all: &[&str]| all.iter().map(|n| (*n).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(names(&folder), numbers(&["1", "2", "3"]));
    let alone = place.path().join("alone");
    let output =
        twill(&[&["compile"], &FORWARD[..], &["--no-assemble", "--quiet", "-o", alone.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let mut sources = BTreeSet::new();
    for number in ["1", "2", "3"] {
        sources.insert(fs::read_to_string(folder.join(number).join("kernel.py")).unwrap());
        let checked = twill(&["check", folder.join(number).join("schedule.json").to_str().unwrap()]);
        assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
        assert_eq!(names(&folder.join(number)), names(&alone));
    }
    assert_eq!(sources.len(), 3);

    // Fewer leave no old ones behind.
    let output = compile(&folder, "2");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(names(&folder), numbers(&["1", "2"]));

    // What is not ours stays.
    fs::write(folder.join("notes.txt"), "").unwrap();
    let output = compile(&folder, "2");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("it holds notes.txt, and --top writes folders 1, 2, … into it"));
    assert_eq!(names(&folder), numbers(&["1", "2", "notes.txt"]));
    assert_eq!(names(place.path()), numbers(&["alone", "kernels"]));
}
