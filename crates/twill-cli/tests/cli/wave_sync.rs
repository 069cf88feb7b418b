//! `twill compile --wave-sync`: waves of tiles behind a soft grid barrier.

use crate::common::{root, stderr, stdout, twill};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// Compiles an example without an assembler; where to, or what the command complains of.
fn compile(example: &str, options: &[&str]) -> Result<(TempDir, PathBuf), String> {
    let place = tempfile::tempdir().unwrap();
    let (folder, example) = (place.path().join("kernel"), root().join("examples").join(example).with_extension("ttir"));
    let paths = [example.to_str().unwrap(), "-o", folder.to_str().unwrap()];
    let done = twill(&[&["compile", "--no-assemble", "--work-limit", "60000"], paths.as_slice(), options].concat());
    if done.status.code() == Some(0) { Ok((place, folder)) } else { Err(stdout(&done) + &stderr(&done)) }
}

const H200: [&str; 4] = ["--machine", "h200", "--emit", "cuda"];

#[test]
fn the_loading_group_waits_for_its_wave_ahead_of_each_loop() {
    let wave_sync = [&H200[..], &["--wave-sync"]].concat();
    let (_place, folder) = compile("attention_forward", &wave_sync).unwrap();
    let source = fs::read_to_string(folder.join("kernel.cu")).unwrap();
    assert!(folder.join("twill_wave_sync.cuh").exists() && source.contains("#include \"twill_wave_sync.cuh\""));
    // Once in the program of the warp that loads: after Q, before the first K.
    let (computing, loading) = source.split_once("TWILL void load(").unwrap();
    assert!(!computing.contains("wave_sync_"), "{computing}");
    let at = |text: &str| loading.find(text).unwrap_or_else(|| panic!("no `{text}` in {loading}"));
    let places = [
        at("grid_barrier wave_sync_;"),
        at("for (int tile_at_"),
        at("tma_load(q_desc"),
        at("wave_sync_.wait(tile_at_, tile_count("),
        at("tma_load(k_desc"),
        at("wave_sync_.leave();"),
    ];
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(loading.matches("wave_sync_.").count(), 2);

    // Nothing else is different, and nothing of it is there without.
    let (_place, plain) = compile("attention_forward", &H200).unwrap();
    assert!(!plain.join("twill_wave_sync.cuh").exists());
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|l| !l.starts_with("//") && !l.contains("wave_sync")).map(str::to_owned).collect()
    };
    assert_eq!(lines(&source), lines(&fs::read_to_string(plain.join("kernel.cu")).unwrap()));
}

#[test]
fn products_wait_for_their_wave_too() {
    let (_place, folder) = compile("gemm_tma", &[&H200[..], &["--wave-sync"]].concat()).unwrap();
    let source = fs::read_to_string(folder.join("kernel.cu")).unwrap();
    assert_eq!(source.matches("wave_sync_.wait(").count(), 1);
}

#[test]
fn what_cannot_keep_in_step_says_why() {
    for (example, options, why) in [
        (
            "attention_forward",
            &["--machine", "h200"][..],
            "only kernels in CUDA C++ synchronise waves of CTAs (--wave-sync)",
        ),
        (
            "attention_forward",
            &["--machine", "h200", "--emit", "cuda", "--persistent", "off"],
            "these CTAs work on one tile each, as with --persistent off",
        ),
        ("attention_forward_causal", &H200, "loops of different length; leave out --wave-sync"),
        (
            "attention_backward_d64",
            &H200,
            "no single thread does all loads through tensor descriptors; one warp also does what line ",
        ),
        (
            "attention_forward",
            &["--machine", "h200", "--emit", "cuda", "--ring-depth", "3"],
            "or CTAs of one tile each (--persistent off, without --wave-sync)",
        ),
        ("gemm_tma", &["--machine", "b200", "--emit", "cuda"], "kernels with tensor memory were not measured so"),
    ] {
        let error = compile(example, &[options, &["--wave-sync"]].concat()).unwrap_err();
        assert!(error.contains(why), "{example}: {error}");
    }
}
