//! Certificates through the command: written, checked, and rejected when anything about them is wrong.

use crate::common::{stderr, stdout, twill};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Writes a certificate; the folder is `DIR/certificate`.
fn certificate(arguments: &[&str]) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("certificate");
    let output = twill(&[&["schedule", "--quiet", "--certificate", folder.to_str().unwrap()], arguments].concat());
    assert!(output.status.code() != Some(1), "{}", stderr(&output));
    (directory, folder)
}

fn check(folder: &Path) -> Result<String, String> {
    let output = twill(&["check", folder.to_str().unwrap()]);
    match output.status.code() {
        Some(0) => Ok(stdout(&output)),
        Some(1) => Err(stderr(&output)),
        other => panic!("exit {other:?}: {}", stderr(&output)),
    }
}

/// One group for attention forward at the tensor core's bound: 2048 is impossible, by search.
const ONE_GROUP: [&str; 5] = ["attention-forward-hopper", "--compute-groups", "1", "--max-interval", "2048"];

/// Shared memory and registers decide: 3917 cycles instead of 2560.
const BACKWARD: [&str; 5] = ["attention-backward-blackwell", "--consumer-registers", "off", "--compute-groups", "2"];

#[test]
fn what_a_schedule_claims_is_proved() {
    for (arguments, expected) in [
        (&["attention-forward-hopper"][..], "below 2048 cycles: this one is optimal, proved by bounds alone"),
        (
            &["toy-attention-blocking", "--compute-groups", "1"],
            "below 3 cycles: this one is optimal, proved by bounds and 1 proof",
        ),
        (
            &ONE_GROUP,
            "no schedule exists at any interval below 2049 cycles (of larger ones nothing is said), proved by bounds and 1 proof",
        ),
        (&BACKWARD, "this one is optimal, proved by bounds and 1 proof by search"),
        // No register value may change groups, and no group holds them all: nothing exists at all.
        (&["attention-backward-blackwell", "--compute-groups", "1"], "proved by bounds and 1 proof by search"),
    ] {
        let (_directory, folder) = certificate(arguments);
        let told = check(&folder).unwrap();
        assert!(told.contains(expected), "{arguments:?}: {told}");
    }
}

#[test]
fn every_loop_of_a_kernel_has_its_own() {
    let (_directory, folder) = certificate(&["examples/attention_forward_causal.ttir", "--machine", "h100"]);
    let told = check(&folder).unwrap();
    assert_eq!(told.matches("this one is optimal").count(), 2);
    assert!(told.contains("34 ties hold, 3 groups are common"), "{told}");
    // Two certificates that were not made together prove nothing of the kernel.
    fs::remove_dir_all(folder.join("loop-1")).unwrap();
    assert!(check(&folder).expect_err("a loop is missing").contains("are not those of the folders"));
}

/// The lines of a proof's three files.
struct Proof {
    stem: PathBuf,
    cnf: Vec<String>,
    drat: Vec<String>,
    why: Vec<String>,
}

impl Proof {
    fn read(folder: &Path) -> Proof {
        let why = fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().path())
            .find(|p| p.extension().is_some_and(|e| e == "why"));
        let stem = why.unwrap().with_extension("");
        let lines = |suffix: &str| {
            let text = fs::read_to_string(stem.with_extension(suffix)).unwrap();
            text.lines().map(str::to_owned).collect()
        };
        Proof { cnf: lines("cnf"), drat: lines("drat"), why: lines("why"), stem }
    }

    fn write(&self) {
        for (suffix, lines) in [("cnf", &self.cnf), ("drat", &self.drat), ("why", &self.why)] {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            fs::write(self.stem.with_extension(suffix), text).unwrap();
        }
    }

    /// Line of the clause whose reason starts with these words, in the file of reasons and that of clauses.
    fn clause(&self, reason: &str) -> (usize, usize) {
        let reasons = || self.why.iter().enumerate().filter(|(_, l)| l.starts_with("clause "));
        let (position, (line, _)) =
            reasons().enumerate().find(|(_, (_, l))| l.starts_with(&format!("clause {reason}"))).unwrap();
        let first = self.cnf.iter().position(|l| l.starts_with("p cnf")).unwrap() + 1;
        (line, first + position)
    }

    /// Line of the first atom that starts with these words.
    fn atom(&self, meaning: &str) -> usize {
        self.why.iter().position(|l| l.starts_with(&format!("atom {meaning}"))).unwrap()
    }

    /// Appends a clause with its reason.
    fn add(&mut self, clause: &str, reason: &str) {
        let header = self.cnf.iter().position(|l| l.starts_with("p cnf")).unwrap();
        let counts: Vec<usize> = self.cnf[header].split(' ').skip(2).map(|n| n.parse().unwrap()).collect();
        self.cnf[header] = format!("p cnf {} {}", counts[0], counts[1] + 1);
        self.cnf.push(clause.into());
        self.why.push(format!("clause {reason}"));
    }
}

/// Adds `by` to the last number of a line.
fn shift(line: &str, by: i64) -> String {
    let (head, last) = line.rsplit_once(' ').unwrap();
    format!("{head} {}", last.parse::<i64>().unwrap() + by)
}

/// A change to a proof's files.
type Mutation<'a> = &'a dyn Fn(&mut Proof);

/// The clause without its first literal.
fn shorter(clause: &str) -> String {
    clause.split_once(' ').unwrap().1.to_owned()
}

fn rejects(arguments: &[&str], mutations: &[(&str, &str, Mutation)]) {
    let (_directory, folder) = certificate(arguments);
    check(&folder).unwrap();
    let original = Proof::read(&folder);
    for (what, complaint, mutate) in mutations {
        let mut mutant = Proof::read(&folder);
        mutate(&mut mutant);
        mutant.write();
        let said = check(&folder).expect_err(what);
        assert!(said.contains(complaint), "{what}: {said}");
        assert!(said.starts_with("error: "), "{what}: {said}");
        original.write();
    }
    check(&folder).unwrap();
}

#[test]
fn proofs_that_prove_nothing_are_rejected() {
    rejects(
        &ONE_GROUP,
        &[
            ("the derivation is missing", "does not reach the empty clause", &|p| p.drat.clear()),
            ("it jumps to its end", "step 1 of the derivation does not follow", &|p| p.drat = vec!["0".into()]),
            ("a step is stronger than what follows", "does not follow by unit propagation", &|p| {
                p.drat[0] = shorter(&p.drat[0]);
            }),
            ("a clause is assumed without a reason", "does not follow from its reason", &|p| {
                p.add("5 0", "difference")
            }),
            ("a contradiction is assumed", "does not follow from its reason", &|p| p.add("0", "register-file")),
            ("an atom's meaning is stretched", "does not follow from its reason", &|p| {
                let at = p.atom("later");
                p.why[at] = shift(&p.why[at], 1);
            }),
            ("a bound's meaning is stretched", "does not follow from its reason", &|p| {
                let at = p.atom("bound 3");
                p.why[at] = shift(&p.why[at], 7);
            }),
            ("a literal of a constraint is left out", "does not follow from its reason", &|p| {
                let (_, at) = p.clause("concurrency");
                p.cnf[at] = shorter(&p.cnf[at]);
            }),
            ("a literal of a lemma is left out", "does not follow from its reason (Difference)", &|p| {
                let (_, at) = p.clause("difference");
                p.cnf[at] = shorter(&p.cnf[at]);
            }),
            ("a literal is negated", "does not follow from its reason", &|p| {
                let (_, at) = p.clause("exclusive");
                p.cnf[at] = match p.cnf[at].strip_prefix('-') {
                    Some(positive) => positive.to_owned(),
                    None => format!("-{}", p.cnf[at]),
                };
            }),
            ("a clause gives another reason", "does not follow from its reason", &|p| {
                let (at, _) = p.clause("resource");
                p.why[at] = "clause some-group 0".into();
            }),
            ("a reason speaks of another operation", "does not follow from its reason", &|p| {
                let (at, _) = p.clause("dependence");
                p.why[at] = "clause dependence 0 0 0".into();
            }),
            ("a reason speaks of an operation that does not exist", "does not follow from its reason", &|p| {
                let (at, _) = p.clause("dependence");
                p.why[at] = "clause dependence 4000 4001 0".into();
            }),
            ("sub-tiles are ordered that cannot be swapped", "does not follow from its reason", &|p| {
                let (at, _) = p.clause("sub-tile-order");
                p.why[at] = "clause sub-tile-order 0 1".into();
            }),
            ("an atom speaks of an operation that does not exist", "means nothing in this problem", &|p| {
                let at = p.atom("waits");
                p.why[at] = "atom waits 99".into();
            }),
            ("an atom is defined by itself", "means nothing in this problem", &|p| {
                let at = p.atom("waits");
                let number = p.why[..=at].iter().filter(|l| l.starts_with("atom")).count();
                p.why[at] = format!("atom all {number}");
            }),
            ("a clause speaks of no atom", "speaks of an atom that does not exist", &|p| {
                let at = p.cnf.len() - 1;
                p.cnf[at] = format!("99999 {}", p.cnf[at]);
            }),
            ("it is about another interval", "which its name denies", &|p| p.why[1] = "interval 2047".into()),
            ("its files are of different lengths", "a clause for every reason", &|p| {
                p.why.pop();
                p.cnf.pop();
            }),
            ("a clause has no reason", "no reason is given for this clause", &|p| drop(p.why.pop())),
            ("a line is cut off", "expected literals and a final 0", &|p| {
                let last = p.drat.len() - 2;
                p.drat[last] = p.drat[last].trim_end_matches(" 0").to_owned();
            }),
            ("a number is none", "expected whole numbers", &|p| p.why[4] = "atom bound 2 x".into()),
            ("a word is unknown", "this is no reason for a clause", &|p| {
                let last = p.why.len() - 1;
                p.why[last] = "clause because".into();
            }),
        ],
    );
}

#[test]
fn sums_that_do_not_exceed_are_rejected() {
    rejects(
        &BACKWARD,
        &[
            ("a sum leaves out what is alive", "does not follow from its reason (Overfull", &|p| {
                let (_, at) = p.clause("overfull");
                p.cnf[at] = shorter(&p.cnf[at]);
            }),
            ("a sum is taken over another memory", "does not follow from its reason (Overfull", &|p| {
                let (at, _) = p.clause("overfull 2");
                p.why[at] = p.why[at].replacen("overfull 2", "overfull 3", 1);
            }),
            ("one copy counts twice", "", &|p| {
                let at = p.atom("alive");
                let mut words: Vec<String> = p.why[at].split(' ').map(str::to_owned).collect();
                words[7] = "0".into(); // at least no copies are always alive
                p.why[at] = words.join(" ");
            }),
        ],
    );
}

#[test]
fn claims_beyond_their_proofs_are_rejected() {
    let (_directory, folder) = certificate(&BACKWARD);
    let path = folder.join("certificate.json");
    let original = fs::read_to_string(&path).unwrap();
    for (from, to, complaint) in [
        ("\"rejected_below\": 3917", "\"rejected_below\": 3918", "nothing rejects the interval of 3917 cycles"),
        ("\"infeasible\": false", "\"infeasible\": true", "do not agree"),
        ("\"interval\": 2560", "\"interval\": 2561", "it proves 2560"),
        ("\"unit\": \"tc\"", "\"unit\": \"xu\"", "it proves 1"),
        ("\"unit\": \"tc\"", "\"unit\": \"tensor\"", "which the machine does not have"),
        (
            "\"kind\": \"resource\",\n      \"unit\": \"tc\"",
            "\"kind\": \"recurrence\",\n      \"dependences\": [0, 1]",
            "form no cycle",
        ),
        ("\"kind\": \"resource\",\n      \"unit\": \"tc\"", "\"kind\": \"trivial\"", "it proves 1"),
        ("3916\n  ]", "  ]", "nothing rejects the interval of 2560 cycles"),
        ("3916\n  ]", "3915\n  ]", "cannot read"),
        ("\"version\": 1", "\"version\": 2", "version 1"),
    ] {
        assert!(original.contains(from), "{from} is not in {original}");
        fs::write(&path, original.replacen(from, to, 1)).unwrap();
        let said = check(&folder).expect_err(to);
        assert!(said.contains(complaint), "{to}: {said}");
    }
    fs::write(&path, original).unwrap();
    // The same proof for a problem with more shared memory.
    let schedule = folder.join("schedule.json");
    let text = fs::read_to_string(&schedule).unwrap();
    fs::write(&schedule, text.replacen("\"shared_memory\": 232448", "\"shared_memory\": 400000", 1)).unwrap();
    assert!(check(&folder).expect_err("another problem").contains("does not follow from its reason (Overfull"));
    fs::remove_file(&schedule).unwrap();
    assert!(check(&folder).expect_err("no schedule").contains("cannot read"));
}

#[test]
fn where_nothing_can_be_certified_the_reason_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("new");
    let path = folder.to_str().unwrap();
    for (arguments, complaint) in [
        (&["--liveness", "paper"][..], "`--liveness paper` does not allow"),
        (&["--stage-window", "paper"], "`--stage-window paper` does not allow"),
        (&["--work-limit", "1"], "give it a larger budget"),
    ] {
        let output =
            twill(&[&["schedule", "attention-forward-hopper", "--certificate", path, "--quiet"], arguments].concat());
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(complaint), "{}", stderr(&output));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing half-written is left");
    }
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("mine"), "kept").unwrap();
    let output = twill(&["schedule", "toy-attention", "--certificate", path, "--quiet"]);
    assert!(stderr(&output).contains("a certificate needs a new or an empty folder"));
    assert!(check(&folder).expect_err("no certificate").contains("there is no certificate.json"));
}

/// Two operations, a streaming load and what reads it: I = 2.
const RING: &str = r#"{"format": "twill-graph", "version": 1, "name": "ring",
  "machine": {"name": "small", "units": [{"name": "u"}], "shared_memory": 100,
    "registers": {"words": 65536, "minimum_per_thread": 24, "maximum_per_thread": 255, "granularity": 8, "reserve_per_thread": 32},
    "compute_groups": {"warps": 4, "maximum": 1}},
  "operations": [
    {"name": "load", "units": [{"unit": "u", "cycles": 1}], "execution": "asynchronous", "issue_width": 1,
     "result": {"shared_memory": 10}, "variable_latency": true, "streaming": true, "transfer_latency": 1},
    {"name": "read", "units": [{"unit": "u", "cycles": 1}]}],
  "dependences": [{"from": "load", "to": "read"}]}"#;

/// Forged proofs that nothing exists at an interval, for a problem that has schedules: numbers so large that products
/// of them would wrap, conjunctions so many or so deep that following them would not end.
#[test]
fn forgeries_with_large_numbers_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let graph = directory.path().join("ring.json");
    fs::write(&graph, RING).unwrap();
    let folder = directory.path().join("certificate");
    let paths = [graph.to_str().unwrap(), folder.to_str().unwrap()];
    let output = twill(&["schedule", paths[0], "--max-interval", "1", "--certificate", paths[1], "--quiet"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(check(&folder).unwrap().contains("below 2 cycles (of larger ones nothing is said)"));
    let claim = |interval: i64| {
        let json = serde_json::json!({
            "format": "twill-certificate", "version": 1, "rejected_below": interval.saturating_add(1), "infeasible": true,
            "bound": {"interval": 1, "witness": {"kind": "trivial"}}, "proofs": [interval],
        });
        fs::write(folder.join("certificate.json"), json.to_string()).unwrap();
    };
    let doubled: String = (1..60).map(|n| format!("atom all {n} {n}\n")).collect();
    let chained: String = (1..100_000).map(|n| format!("atom all {n}\n")).collect();
    let forgeries: [(i64, String, &str, &str); 7] = [
        (1 << 24, "atom ring 0 1099511627775\n".into(), "clause definition 1\nclause overfull-rings\n", "1 0\n-1 0\n"),
        (1 << 24, "atom ring 0 1048575\n".into(), "clause definition 1\nclause overfull-rings\n", "1 0\n-1 0\n"),
        (
            1 << 44,
            "atom alive 0 0 3 0 0 1048575 3 0 0\natom alive 0 0 3 0 0 1048574 3 0 0\n".into(),
            "clause definition 1\nclause definition 2\nclause overfull 0 0 3 0 0\n",
            "1 0\n2 0\n-1 -2 0\n",
        ),
        (1 << 62, "atom later 0 1 0 1 0\n".into(), "clause definition 1\n", "-1 0\n"),
        (i64::MAX, "atom used 0\n".into(), "clause some-group 0\n", "1 0\n"),
        (2, format!("atom used 0\n{doubled}"), "clause some-group 0\n", "60 0\n"),
        (2, format!("atom used 0\n{chained}"), "clause some-group 0\n", "100000 0\n"),
    ];
    for (interval, atoms, reasons, clauses) in forgeries {
        claim(interval);
        let stem = folder.join(format!("interval-{interval}"));
        fs::write(stem.with_extension("why"), format!("twill-proof 1\ninterval {interval}\n{atoms}{reasons}")).unwrap();
        let (variables, count) = (atoms.lines().count(), reasons.lines().count());
        fs::write(stem.with_extension("cnf"), format!("p cnf {variables} {count}\n{clauses}")).unwrap();
        fs::write(stem.with_extension("drat"), "0\n").unwrap();
        let said = check(&folder).expect_err(&format!("I = {interval}, {reasons}"));
        let reasons = ["certificates are for intervals", "means nothing", "does not follow", "do not agree"];
        assert!(reasons.iter().any(|r| said.contains(r)), "{said}");
    }
    // Nothing at all is no proof that nothing exists.
    claim(0);
    let text = fs::read_to_string(folder.join("certificate.json")).unwrap();
    fs::write(folder.join("certificate.json"), text.replace("\"proofs\":[0]", "\"proofs\":[]")).unwrap();
    assert!(check(&folder).expect_err("nothing").contains("less is proved"));
}

#[test]
fn bandwidth_is_a_bound_that_the_checker_adds_up_itself() {
    let (_directory, folder) = certificate(&["examples/attention_backward_d64.ttir", "--machine", "h200"]);
    assert!(check(&folder).is_ok());
    let path = folder.join("certificate.json");
    let original = fs::read_to_string(&path).unwrap();
    let claims = ["\"kind\": \"shared_bandwidth\"", "\"interval\": 1416"];
    assert!(claims.iter().all(|claim| original.contains(claim)), "{original}");
    fs::write(&path, original.replacen(claims[1], "\"interval\": 1417", 1)).unwrap();
    assert!(check(&folder).unwrap_err().contains("it proves 1416"));
    fs::write(&path, &original).unwrap();
    // The same claim for a machine that moves more bytes, and for one that names no limit.
    let schedule = folder.join("schedule.json");
    let text = fs::read_to_string(&schedule).unwrap();
    let rate = "\"shared_bytes_per_cycle\": 128";
    assert!(text.contains(rate));
    fs::write(&schedule, text.replacen(rate, "\"shared_bytes_per_cycle\": 256", 1)).unwrap();
    assert!(check(&folder).unwrap_err().contains("it proves 708"));
    fs::write(&schedule, text.replacen(&format!("{rate},"), "", 1)).unwrap();
    assert!(check(&folder).unwrap_err().contains("does not limit what shared memory moves"));
}
