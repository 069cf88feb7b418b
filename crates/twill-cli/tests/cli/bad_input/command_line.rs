//! The command line.

use super::{assert_says, file, refused, unscheduled};
use crate::common::{root, stderr, stdout, twill};
use std::fs;
use std::path::Path;
use std::process::Stdio;

#[test]
fn programs_share_a_cta_in_numbers_that_fit_and_without_sub_tiles() {
    for (arguments, says) in [
        (&["--cta-coarsening", "2", "--sub-tiles", "2"][..], "cannot be used with '--sub-tiles"),
        (&["--cta-coarsening", "0"], "must be from 1 to 16"),
        (&["--cta-coarsening", "17"], "must be from 1 to 16"),
        (&["--coarsening-axis", "y"], "--cta-coarsening <N>"),
    ] {
        let output = twill(&[&["schedule", "examples/gemm_tma.ttir"], arguments].concat());
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{arguments:?}");
        assert_says(&stderr(&output), &[says]);
    }
}

#[test]
fn arguments_that_do_not_fit_say_what_would() {
    let graph = "is for kernels in TTIR; a loop graph has its tiles and loop already";
    let gemm = "examples/gemm_tma.ttir";
    let cases: &[(&[&str], &[&str])] = &[
        (&["toy"], &["`toy` is neither a file nor a built-in graph; built-in graphs: toy-attention, "]),
        (&["toy.ttir"], &["cannot read toy.ttir: No such file"]),
        (&["nowhere/toy"], &["cannot read nowhere/toy: No such file"]),
        (&["examples"], &["cannot read examples: "]),
        (&[gemm, "--loop", "3"], &["examples/gemm_tma.ttir: there is no loop 3; the kernel has 1, counted from 0"]),
        (&[gemm, "--kernel", "other"], &["examples/gemm_tma.ttir: there is no kernel `other`; there is gemm_tma"]),
        (
            &[gemm, "--sub-tiles", "3"],
            &["`gemm_tma`: 128 rows cannot be cut into 3 sub-tiles of one size; choose a number that divides 128"],
        ),
        (
            &[gemm, "--sub-tiles", "4"],
            &["`gemm_tma`: 4 sub-tiles of 128 rows leave 32 rows each", "at most 2 sub-tiles"],
        ),
        (
            &["examples/attention_forward_m256.ttir", "--machine", "b200", "--sub-tiles", "4"],
            &["4 sub-tiles of 256 rows leave 64 rows each", "machine `b200` works on at least 128", "at most 2"],
        ),
        (
            &["examples/attention_forward_causal_d64_m64.ttir", "--cta-coarsening", "3"],
            &[
                "examples/attention_forward_causal_d64_m64.ttir:47: `scf.for` (line 40 of ",
                "loop `attention_forward.loop0` cannot be shared by programs along x: whether or how often it runs \
                 depends on tl.program_id(0); use programs along another axis, ",
            ],
        ),
        (
            &[gemm, "--cta-coarsening", "2", "--coarsening-axis", "z"],
            &[
                "loop `gemm_tma`: programs along z would all compute the same, no tile of it depends on tl.program_id(2)",
            ],
        ),
        (&["gemm", "--cta-coarsening", "2"], &["gemm: --cta-coarsening ", graph]),
        (&["gemm", "--sub-tiles", "2"], &["gemm: --sub-tiles ", graph]),
        (&["gemm", "--loop", "0"], &["gemm: --loop ", graph]),
        (&["gemm", "--kernel", "gemm"], &["gemm: --kernel ", graph]),
        (&["gemm", "--no-contract"], &["gemm: --no-contract ", graph]),
        (&["gemm", "--normalise", "1"], &["gemm: 2 distinct costs cannot sum to at most 1; allow at least 2"]),
    ];
    for (arguments, says) in cases {
        unscheduled(arguments, says);
    }
    let path = "crates/twill-graph/graphs/gemm.json";
    unscheduled(&[path, "--sub-tiles", "2"], &[path, "--sub-tiles", graph]);
    refused(&["graphs", "toy"], &["no built-in graph is named `toy`; there are: toy-attention, "]);
}

#[test]
fn wrong_usage_is_an_error_and_not_a_proof() {
    for (arguments, says) in [
        (&["schedule"][..], "<INPUT>"),
        (&["schedule", "gemm", "--sub-tiles", "0"], "invalid value '0' for '--sub-tiles <N>'"),
        (&["schedule", "gemm", "--compute-groups", "17"], "invalid value '17' for '--compute-groups <N>'"),
        (&["schedule", "gemm", "--time-limit", "0"], "invalid value '0' for '--time-limit <SECONDS>'"),
        (&["schedule", "gemm", "--machines", "h100"], "unexpected argument '--machines' found"),
        (&["plan"], "unrecognized subcommand 'plan'"),
    ] {
        let output = twill(arguments);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{arguments:?}");
        assert_says(&stderr(&output), &[says]);
    }
}

#[test]
fn an_output_that_cannot_be_written_is_named_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let plain = file(&folder, "plain", "");
    let at = |end: &str| folder.path().join(end).to_str().unwrap().to_owned();
    for (output, why) in [
        (at("missing/answer.json"), "No such file or directory"),
        (folder.path().to_str().unwrap().to_owned(), "Is a directory"),
        (format!("{plain}/answer.json"), "Not a directory"),
        (at(".."), "Is a directory"),
    ] {
        refused(&["schedule", "gemm", "--output", &output], &[&format!("cannot write {output}: "), why]);
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["plain"]);
    let parent = Path::new(folder.path()).parent().unwrap();
    let partial = format!("{}.", folder.path().file_name().unwrap().to_str().unwrap());
    assert!(!fs::read_dir(parent).unwrap().any(|e| e.unwrap().file_name().to_string_lossy().starts_with(&partial)));
}

#[test]
fn an_answer_from_before_survives_a_bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let answer = file(&folder, "answer.json", "from before");
    refused(&["schedule", "examples/fixtures/zero_trip.ttir", "--output", &answer], &["the loop never runs"]);
    assert_eq!(fs::read_to_string(&answer).unwrap(), "from before");
}

#[test]
fn a_closed_pipe_is_no_reason_to_speak() {
    for arguments in [&["schedule", "gemm"][..], &["graphs"], &["machine", "show", "h100"], &["schema", "graph"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = crate::common::command();
        command.args(arguments).current_dir(root()).stdout(writer).stderr(Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{arguments:?}");
    }
}

/// Names that commands and flags once had are not accepted.
#[test]
fn there_are_no_aliases() {
    for (arguments, says) in [
        (&["modulo", "gemm"][..], "unrecognized subcommand 'modulo'"),
        (&["view", "gemm"], "unrecognized subcommand 'view'"),
        (&["kernels"], "unrecognized subcommand 'kernels'"),
        (&["schedule", "gemm", "--no-siblings"], "unexpected argument '--no-siblings'"),
        (&["compile", "gemm", "-o", "x", "--turns", "on"], "unexpected argument '--turns'"),
    ] {
        let output = twill(arguments);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{arguments:?}");
        assert_says(&stderr(&output), &[says]);
    }
}
