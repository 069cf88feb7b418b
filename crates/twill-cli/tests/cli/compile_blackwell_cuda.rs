//! CUDA C++ for Blackwell: everything that is generated in Gluon is written in it as well, and what the text has.

use crate::common::{command, root, stderr, stdout};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use tempfile::TempDir;

/// What is scheduled for one language is so for the other.
static CACHE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

/// The kernel's file, and whether the header of tensor memory is next to it; or what the command complains of.
fn compile(example: &str, machine: &str, language: &str, options: &[&str]) -> Result<(String, bool), String> {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("kernel");
    let fixed = ["--machine", machine, "--emit", language, "--no-assemble", "--output", output.to_str().unwrap()];
    let mut command = command();
    command.args(["compile", example]).args(fixed).args(options).env("TWILL_CACHE", CACHE.path()).current_dir(root());
    let done = command.output().unwrap();
    if done.status.code() != Some(0) {
        return Err(stdout(&done) + &stderr(&done));
    }
    let name = if language == "cuda" { "kernel.cu" } else { "kernel.py" };
    let has_header = output.join("twill_tcgen05.cuh").exists();
    Ok((fs::read_to_string(output.join(name)).unwrap(), has_header))
}

fn compiled(example: &str, machine: &str, options: &[&str]) -> String {
    let example = format!("examples/{example}.ttir");
    let (source, has_header) = compile(&example, machine, "cuda", options).unwrap_or_else(|error| panic!("{error}"));
    assert!(has_header && source.contains("#include \"twill_tcgen05.cuh\""), "{example}");
    source
}

/// The text of a group's function.
fn group<'s>(source: &'s str, name: &str) -> &'s str {
    let from = source.find(&format!("TWILL void {name}(")).unwrap();
    let length = source[from..].find("\n}\n").unwrap();
    &source[from..from + length]
}

fn ttir(folder: &Path) -> Vec<String> {
    let mut all: Vec<String> = fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".ttir"))
        .map(|name| format!("{}/{name}", folder.display()))
        .collect();
    all.sort();
    all
}

/// Compares what the two languages take, and counts what they do.
fn compare(folder: &str, machines: &[&str], options: &[&str]) -> usize {
    let mut count = 0;
    for example in ttir(Path::new(folder)) {
        for &machine in machines {
            let gluon = compile(&example, machine, "gluon", options);
            let cuda = compile(&example, machine, "cuda", options);
            match (gluon, cuda) {
                (Ok(_), Ok((source, has_header))) => {
                    count += 1;
                    assert!(has_header && !source.contains("instruction<"), "{example} {machine}");
                    let multiplying = source.split("TWILL void ").filter(|f| f.contains("  tcgen05_mma("));
                    let names: Vec<&str> = multiplying.map(|f| f.split('(').next().unwrap_or_default()).collect();
                    assert_eq!(names, ["mma"], "{example} {machine}");
                }
                // Which are not packed there as others of 16 bits are.
                (Ok(_), Err(error)) if error.contains("sums of other than 32 bits") => {
                    assert_eq!(example, "examples/fixtures/product_half_sums.ttir");
                }
                (Ok(_), Err(error)) => panic!("{example} {machine}: {error}"),
                (Err(_), cuda) => assert!(cuda.is_err(), "{example} {machine}"),
            }
        }
    }
    count
}

#[test]
fn what_gluon_has_cuda_has() {
    assert!(compare("examples", &["b200"], &["--work-limit", "300000"]) >= 15);
}

#[test]
fn what_gluon_has_of_ingredients_cuda_has() {
    // Schedules that take no search.
    assert!(compare("examples/fixtures", &["b200", "b200-left-shared"], &["--schedule", "no-swp"]) >= 46);
}

#[test]
fn one_thread_mmas_and_the_unit_signals() {
    let source = compiled("gemm_tma", "b200", &["--persistent", "off"]);
    let mmas = group(&source, "mma");
    for piece in [
        "mbarrier_wait_tensor(bars(A_FULL + a_next), a_next_phase);",
        "tcgen05_mma(acc_buffer(tensor_), a_buffer(a_at), transpose(b_buffer(b_at)), i > 0);",
        "tcgen05_commit(bars(A_EMPTY + a_at));",
        "tcgen05_commit(bars(RESULTS_DONE));",
        "tcgen05_wait_all(last_mma());",
    ] {
        assert!(mmas.contains(piece), "no `{piece}` in {mmas}");
    }
    assert!(!mmas.contains("mbarrier_arrive") && !mmas.contains("leader"), "{mmas}");
    let results = group(&source, "epilogue");
    let wait = results.find("mbarrier_wait_tensor(bars(RESULTS_DONE), results_done_phase);").unwrap();
    // Without an iteration, nothing is in tensor memory.
    let load = results.find("if (trips >= 1) {\n      acc_result = tmem_load(acc_buffer(tensor_));").unwrap();
    assert!(wait < load, "{results}");
    // A power of two of columns, given back by the warp that took them, when everybody is done.
    let alloc = source.find("if (threadIdx.x / 32 == 0) tmem_alloc<128>(").unwrap();
    let dealloc = source.find("cta_sync();\n  if (warp == 0) tmem_dealloc<128>(").unwrap();
    assert!(alloc < dealloc && source[dealloc..].find("mma(").is_none(), "{source}");
}

#[test]
fn left_operands_are_read_where_they_are() {
    let in_tensor = compiled("attention_forward", "b200", &[]);
    assert!(in_tensor.contains("tmem_tile<__half, 128, 128> acc_convert_tensor_buffer("), "{in_tensor}");
    assert!(
        in_tensor.contains("tcgen05_mma(acc_multiply_tensor_buffer(tensor_), acc_convert_tensor_buffer(tensor_), ")
    );
    assert!(in_tensor.contains("tmem_store(acc_convert_tensor_buffer(tensor_), "));
    let in_shared = compiled("attention_forward", "b200-left-shared", &[]);
    assert!(!in_shared.contains("tmem_tile<__half"), "{in_shared}");
    // Tiles of rows are copied to shared memory as they are held.
    assert!(in_shared.contains("st_shared_v4("), "{in_shared}");
}

#[test]
fn results_of_64_rows_have_a_layout_of_their_own() {
    let source = compiled("attention_backward", "b200-left-shared", &["--schedule", "no-swp"]);
    assert!(source.contains("tmem_tile<float, 64, 128> dq_dot_buffer("), "{source}");
    assert!(source.contains("tile<float, tensor_tile<64, 128>> "), "{source}");
    // Rows of S and columns of queries: their log-sum-exps are one a column.
    assert!(source.contains("tensor_columns<128, 64>"), "{source}");
}

#[test]
fn hopper_needs_no_tensor_memory() {
    let (source, has_header) = compile("examples/gemm_tma.ttir", "h200", "cuda", &["--schedule", "no-swp"]).unwrap();
    assert!(
        !has_header
            && !source.contains("tcgen05")
            && !source.contains("tensor_place")
            && source.contains("      tma_load("),
        "{source}"
    );
}
