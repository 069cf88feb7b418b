//! `twill lint`: findings, exit codes, and what it says of files that are no machine code.

use crate::common::{stderr, stdout, twill};
use serde_json::Value;

const LISTINGS: &str = "crates/twill-lint/tests/listings";
const CLEAN: &str = "crates/twill-lint/tests/listings/scaled_rows.ptxas-13.4.59.sass";
const HAZARD: &str = "crates/twill-lint/tests/listings/scaled_rows.ptxas-12.9.86.sass";

#[test]
fn clean_code_is_a_summary_and_exit_code_0() {
    let output = twill(&["lint", CLEAN]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert_eq!(stdout(&output), "1 file checked, 1 function, 2 wgmma: 0 findings\nread off: 3 of 3 branches\n");
}

#[test]
fn a_finding_says_rule_place_source_and_path_and_exit_code_1() {
    let output = twill(&["lint", HAZARD]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    for part in [
        ": wgmma-operand-written: scaled_rows+0xb40: R88..R91 is written",
        "    at   0x0b40  LDSM.16.M88.4 R88, [R12+UR8+0x4000]  (scaled.py:15)\n",
        "    with 0x0c70  HGMMA.64x128x16.F32.BF16 R24, R88, gdesc[UR8].tnspB, R24, gsb0  (scaled.py:16)\n",
        "    by the blocks 0x9e0 -> 0x9e0\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_folder_is_searched_and_json_has_all() {
    let output = twill(&["lint", LISTINGS, "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let json: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&json["format"], &json["findings"]), (&"twill-lint".into(), &1.into()));
    let files = json["files"].as_array().unwrap();
    assert_eq!(files.len(), 3);
    let finding = files.iter().find_map(|file| file["findings"].get(0)).unwrap();
    assert_eq!(finding["rule"], "wgmma-operand-written");
    assert_eq!((&finding["at"]["offset"], &finding["earlier"]["line"]), (&0xb40.into(), &16.into()));
    let gemm = files.iter().find(|file| file["functions"][0]["name"] == "gemm_tma").unwrap();
    let bytes = &gemm["read_off"]["bytes"];
    assert_eq!((&bytes["known"], &bytes["all"]), (&6.into(), &6.into()), "expected bytes are read off");
}

#[test]
fn what_cannot_be_checked_is_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let mut cubin = [0u8; 64];
    cubin[..4].copy_from_slice(b"\x7fELF");
    std::fs::write(path("other.cubin"), cubin).unwrap();
    cubin[18] = 190;
    std::fs::write(path("a.cubin"), cubin).unwrap();
    std::fs::create_dir(path("empty")).unwrap();
    let cases = [
        (vec![path("absent")], "cannot read"),
        (vec!["README.md".into()], "no machine code"),
        (vec![path("other.cubin")], "no cubin"),
        (vec![path("a.cubin"), "--nvdisasm".into(), path("no-nvdisasm")], "name it with --nvdisasm"),
        (vec![path("empty")], "no .cubin and no .sass"),
        (vec!["--no-such-option".into()], "--no-such-option"),
    ];
    for (words, said) in cases {
        let words: Vec<&str> = std::iter::once("lint").chain(words.iter().map(String::as_str)).collect();
        let output = twill(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(stderr(&output).contains(said), "{words:?}: {}", stderr(&output));
    }
}
