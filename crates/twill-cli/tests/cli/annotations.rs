//! Annotations in SARIF and as workflow commands: their form, and the lines that they stand at.

use crate::common::{root, stderr, stdout, twill};
use serde_json::Value;
use std::fs;

const HAZARD: &str = "crates/twill-lint/tests/listings/scaled_rows.ptxas-12.9.86.sass";

/// The exit code and the results of a command in SARIF, whose form is checked.
fn sarif(arguments: &[&str]) -> (i32, Vec<Value>) {
    let output = twill(&[arguments, &["--format", "sarif"]].concat());
    let document: Value = serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    (output.status.code().unwrap(), results(&document))
}

/// What SARIF 2.1.0 requires of the parts that are used here (sections 3.13, 3.14, 3.27, 3.28, 3.29, 3.49).
fn results(document: &Value) -> Vec<Value> {
    assert_eq!(document["version"], "2.1.0");
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1);
    let driver = &runs[0]["tool"]["driver"];
    assert_eq!(driver["name"], "twill");
    let rules = driver["rules"].as_array().unwrap();
    let level = |value: &Value| assert!(["error", "warning", "note"].contains(&value.as_str().unwrap()), "{value}");
    for rule in rules {
        assert!(rule["shortDescription"]["text"].as_str().unwrap().ends_with('.'), "{rule}");
        level(&rule["defaultConfiguration"]["level"]);
        assert_eq!(rules.iter().filter(|other| other["id"] == rule["id"]).count(), 1, "{rule}");
    }
    let results = runs[0]["results"].as_array().unwrap().clone();
    for result in &results {
        level(&result["level"]);
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        let locations = result["locations"].as_array().unwrap();
        assert_eq!(locations.len(), 1);
        let related = result.get("relatedLocations").and_then(Value::as_array).into_iter().flatten();
        for location in locations.iter().chain(related) {
            let physical = &location["physicalLocation"];
            let uri = physical["artifactLocation"]["uri"].as_str().unwrap();
            assert!(!uri.is_empty() && uri.is_ascii() && !uri.contains(' '), "{uri}");
            if let Some(region) = physical.get("region") {
                assert!(region["startLine"].as_u64() > Some(0), "{region}");
                assert!(region.get("startColumn").is_none_or(|column| column.as_u64() > Some(0)), "{region}");
            }
        }
    }
    results
}

/// File and line.
fn place(result: &Value) -> (String, u64) {
    let physical = &result["locations"][0]["physicalLocation"];
    let uri = physical["artifactLocation"]["uri"].as_str().unwrap().to_owned();
    (uri, physical["region"]["startLine"].as_u64().unwrap_or(0))
}

/// The line of a file in the checkout that has this text.
fn line_with(file: &str, text: &str) -> u64 {
    let source = fs::read_to_string(root().join(file)).unwrap();
    1 + source.lines().position(|line| line.contains(text)).unwrap() as u64
}

#[test]
fn a_kernel_that_fits_is_a_note_at_its_loop_and_one_that_does_not_an_error_at_the_buffer() {
    let kernels = ["fit", "examples/gemm_tma.ttir", "examples/gemm_tma_n256.ttir", "--ring-depth", "6"];
    let (code, found) = sarif(&kernels);
    assert_eq!((code, found.len()), (2, 2));
    assert_eq!((&found[0]["ruleId"], &found[0]["level"]), (&"fits".into(), &"note".into()));
    let file = "examples/gemm_tma.py";
    assert_eq!(place(&found[0]), (file.to_owned(), line_with(file, "for k in")));
    assert_eq!((&found[1]["ruleId"], &found[1]["level"]), (&"does-not-fit".into(), &"error".into()));
    assert_eq!(place(&found[1]), (file.to_owned(), line_with(file, "b = b_desc.load")));
    assert_eq!(found[1]["locations"][0]["logicalLocations"][0]["name"], "gemm_tma");
    assert!(found[1]["message"]["text"].as_str().unwrap().contains("shared memory"), "{}", found[1]);
}

#[test]
fn an_operation_that_is_not_lowered_is_an_error_at_its_line() {
    let (code, found) = sarif(&["fit", "examples/fixtures/zero_trip.ttir", "absent.ttir"]);
    assert_eq!((code, found.len()), (1, 2));
    assert!(found.iter().all(|one| one["ruleId"] == "not-lowered" && one["level"] == "error"));
    assert!(place(&found[0]).0.ends_with(".py") && place(&found[0]).1 > 0, "{}", found[0]);
    assert_eq!(place(&found[1]), ("absent.ttir".into(), 0));
}

#[test]
fn what_bounds_a_loop_is_told_at_its_operations() {
    let (code, found) = sarif(&["explain", "examples/attention_forward.ttir", "--what-if", "none"]);
    assert_eq!(code, 0);
    let file = "examples/attention_forward.py";
    assert_eq!((&found[0]["ruleId"], place(&found[0]).0.as_str()), (&"optimal".into(), file));
    let bounds: Vec<(String, u64)> = found.iter().filter(|one| one["ruleId"] == "bound").map(place).collect();
    let dots = ["qk = tl.dot(", "acc = tl.dot("].map(|text| (file.to_owned(), line_with(file, text)));
    assert_eq!(bounds, dots);
    assert_eq!(found[0]["relatedLocations"].as_array().unwrap().len(), 2);
}

#[test]
fn a_change_that_helps_and_a_conflict_are_told_at_the_loop() {
    let words = ["explain", "examples/gemm_tma.ttir", "--quiet"];
    let (code, found) = sarif(&words);
    let rules: Vec<&str> = found.iter().map(|one| one["ruleId"].as_str().unwrap()).collect();
    assert_eq!((code, rules.as_slice()), (0, ["optimal", "bound", "shorter"].as_slice()));
    assert_eq!(place(&found[2]), place(&found[0]));
    assert!(found[2]["message"]["text"].as_str().unwrap().contains("tensor twice as fast"), "{}", found[2]);
}

#[test]
fn a_kernel_without_locations_has_lines_of_its_ttir() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(root().join("examples/gemm_tma.ttir")).unwrap();
    let bare: String = text
        .lines()
        .filter(|line| !line.starts_with("#loc"))
        .map(|line| {
            let mut line = line.to_owned();
            while let Some(at) = line.find(" loc(") {
                let end = line[at + 5..].find(')').unwrap() + at + 6;
                let nested = line[at + 5..end].matches('(').count();
                line.replace_range(at..end + nested, "");
            }
            line + "\n"
        })
        .collect();
    let path = folder.path().join("bare.ttir");
    fs::write(&path, &bare).unwrap();
    let (code, found) = sarif(&["fit", path.to_str().unwrap(), "--source-root", folder.path().to_str().unwrap()]);
    assert_eq!(code, 0, "{found:?}");
    let line = 1 + bare.lines().position(|line| line.contains("scf.for")).unwrap() as u64;
    assert_eq!(place(&found[0]), ("bare.ttir".into(), line));
}

#[test]
fn a_hazard_stands_at_the_line_of_the_source_or_of_the_listing() {
    let (code, found) = sarif(&["lint", HAZARD]);
    assert_eq!((code, found.len()), (1, 1));
    assert_eq!((&found[0]["ruleId"], place(&found[0])), (&"wgmma-operand-written".into(), ("scaled.py".into(), 15)));
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(root().join(HAZARD)).unwrap();
    let bare: String =
        text.lines().filter(|line| !line.contains("//## File")).map(|line| line.to_owned() + "\n").collect();
    let path = folder.path().join("bare.sass");
    fs::write(&path, &bare).unwrap();
    let (_, found) = sarif(&["lint", path.to_str().unwrap(), "--source-root", folder.path().to_str().unwrap()]);
    let line = 1 + bare.lines().position(|line| line.contains("/*0b40*/")).unwrap() as u64;
    assert_eq!(place(&found[0]), ("bare.sass".into(), line));
}

#[test]
fn a_file_that_cannot_be_linted_is_an_error_of_that_file() {
    let (code, found) = sarif(&["lint", "README.md"]);
    assert_eq!((code, found.len()), (2, 1));
    assert_eq!((&found[0]["ruleId"], place(&found[0])), (&"not-checked".into(), ("README.md".into(), 0)));
}

#[test]
fn workflow_commands_are_a_line_each() {
    let output = twill(&["fit", "examples/gemm_tma_n256.ttir", "--ring-depth", "6", "--format", "github"]);
    assert_eq!(output.status.code(), Some(2));
    let line = line_with("examples/gemm_tma.py", "b = b_desc.load");
    let text = stdout(&output);
    let begin = format!("::error file=examples/gemm_tma.py,line={line},");
    assert!(text.starts_with(&begin) && text.contains(",title=twill does-not-fit::gemm_tma for h200"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    let output = twill(&["lint", HAZARD, "--format", "github"]);
    assert!(stdout(&output).starts_with("::error file=scaled.py,line=15,title=twill wgmma-operand-written::"));
    let words = ["explain", "examples/fixtures/zero_trip.ttir", "--format", "github"];
    let output = twill(&words);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).starts_with("::error file=") && stdout(&output).contains(",line="), "{}", stdout(&output));
}

#[test]
fn the_ending_of_the_output_says_sarif() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("explained.sarif");
    let words = ["explain", "examples/gemm_tma.ttir", "--what-if", "none", "-o", path.to_str().unwrap()];
    assert_eq!(twill(&words).status.code(), Some(0));
    results(&serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap());
}
