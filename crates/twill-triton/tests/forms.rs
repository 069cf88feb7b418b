//! Both forms of a kernel, as Triton prints them, are read as the same module.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::path::{Path, PathBuf};

use twill_triton::mlir::{Module, Operation, parse};

fn folder(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

fn read(path: &Path) -> Module {
    let text = std::fs::read_to_string(path).unwrap();
    parse(&text, &path.display().to_string()).unwrap_or_else(|error| panic!("{error}"))
}

/// Files whose names end so, in order.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.to_string_lossy().ends_with(ending)).collect();
    files.sort();
    files
}

fn assert_same(custom: &Path, generic: &Path) {
    let (custom, generic) = (read(custom), read(generic));
    let (left, right) = (custom.to_string(), generic.to_string());
    for (line, (left, right)) in left.lines().zip(right.lines()).enumerate() {
        assert_eq!(left, right, "line {line} of {}", custom.file());
    }
    assert_eq!(left, right);
    // The custom form leaves out some yields, and their locations with them.
    let operations = |module: &Module| -> Vec<Operation> {
        let all = module.walk(module.top()).map(|id| module.operation(id).clone());
        all.filter(|operation| operation.name != "scf.yield").collect()
    };
    for (left, right) in operations(&custom).iter().zip(&operations(&generic)) {
        assert_eq!(left.location, right.location, "{} in line {} of {}", left.name, left.line, custom.file());
    }
}

#[test]
fn kernels_of_many_operations_have_one_meaning_in_both_forms() {
    let generic = files(&folder("tests/mlir"), ".generic.ttir");
    assert_eq!(generic.len(), 6);
    for generic in generic {
        let custom = PathBuf::from(generic.to_string_lossy().replace(".generic.ttir", ".ttir"));
        assert_same(&custom, &generic);
    }
}

#[test]
fn examples_have_one_meaning_in_both_forms() {
    let generic = files(&folder("../../examples/fixtures"), "_generic.ttir");
    assert!(!generic.is_empty());
    for generic in generic {
        let name = generic.file_name().unwrap().to_string_lossy().replace("_generic", "");
        assert_same(&folder("../../examples").join(name), &generic);
    }
}

#[test]
fn every_example_is_read_and_knows_its_sources() {
    let mut paths = files(&folder("../../examples"), ".ttir");
    paths.extend(files(&folder("../../examples/fixtures"), ".ttir"));
    assert!(paths.len() >= 9);
    for path in paths {
        let module = read(&path);
        let kernel = module.kernels().next().unwrap();
        assert_eq!(module.kernels().count(), 1, "{}", path.display());
        let located = module.walk(kernel).filter(|id| module.operation(*id).location.is_some()).count();
        assert!(located * 2 > module.walk(kernel).count(), "{}", path.display());
        for parts in module.innermost_loops(kernel) {
            let location = module.operation(parts.operation).location.as_ref().unwrap();
            assert!(location.in_kernel().file.ends_with(".py"), "{location}");
        }
        // Every operand is among the uses of its value.
        for id in module.walk(module.top()) {
            for (index, operand) in module.operation(id).operands.iter().enumerate() {
                assert!(module.uses(*operand).iter().any(|found| found.operation == id && found.index == index));
            }
        }
    }
}
