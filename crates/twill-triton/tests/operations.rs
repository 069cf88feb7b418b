//! The table of operations has every one of Triton's dialect, in each version that is supported.

use std::collections::BTreeSet;
use twill_triton::supported::NAMES;

/// As MLIR has them registered (`tests/versions/operations.py`).
const REGISTERED: &str = include_str!("data/operations.txt");

/// What a kernel is made of, and what ends a region.
const STRUCTURE: [&str; 7] = [
    "tt.func",
    "tt.return",
    "tt.get_program_id",
    "tt.get_num_programs",
    "tt.reduce.return",
    "tt.scan.return",
    "tt.map_elementwise.return",
];

/// What reading makes another operation, or takes out of a kernel that says it another way.
const READ_OTHERWISE: [&str; 3] = ["tt.approx_divf", "tt.grid_dependency_wait", "tt.grid_dependency_launch_dependents"];

#[test]
fn every_operation_of_every_version_has_a_rule() {
    let known: BTreeSet<&str> =
        NAMES.iter().copied().chain(STRUCTURE).chain(READ_OTHERWISE).filter(|name| name.starts_with("tt.")).collect();
    let mut versions = Vec::new();
    let mut all = BTreeSet::new();
    for line in REGISTERED.lines() {
        let (version, names) = line.split_once(": ").unwrap_or((line, ""));
        let names: BTreeSet<&str> = names.split(' ').collect();
        let without: Vec<&&str> = names.difference(&known).collect();
        assert!(without.is_empty(), "Triton {version} has {without:?}");
        assert!(names.len() >= 48, "Triton {version} has {}", names.len());
        versions.push(version);
        all.extend(names);
    }
    assert_eq!(versions, ["3.6.0", "3.7.1", "3.8.0", "3.9.0"]);
    let others: Vec<&&str> = known.difference(&all).collect();
    assert!(others.is_empty(), "no Triton has {others:?}");
}
