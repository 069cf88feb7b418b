//! `twill compile --cluster`: two CTAs that load by TMA multicast what both read.

use crate::common::{root, stderr, stdout, twill};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// Compiles an example without an assembler; where to, or what the command complains of.
fn compile(example: &str, options: &[&str]) -> Result<(TempDir, PathBuf), String> {
    compile_with("2", example, options)
}

fn compile_with(cluster: &str, example: &str, options: &[&str]) -> Result<(TempDir, PathBuf), String> {
    let place = tempfile::tempdir().unwrap();
    let (folder, example) = (place.path().join("kernel"), root().join("examples").join(example).with_extension("ttir"));
    let paths = [example.to_str().unwrap(), "-o", folder.to_str().unwrap()];
    let done = twill(&[&["compile", "--no-assemble", "--cluster", cluster], paths.as_slice(), options].concat());
    if done.status.code() == Some(0) { Ok((place, folder)) } else { Err(stdout(&done) + &stderr(&done)) }
}

#[test]
fn what_both_read_is_loaded_once() {
    let (_place, folder) = compile("attention_backward", &["--machine", "h200", "--emit", "cuda"]).unwrap();
    let source = fs::read_to_string(folder.join("kernel.cu")).unwrap();
    let named = |call: &str| {
        let mut names: Vec<&str> = source.split(call).skip(1).map(|t| t.split([',', ' ']).next().unwrap()).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    assert_eq!(named(" tma_load_multicast("), ["do_desc_64x128", "q_desc_64x128"]);
    assert_eq!(named(" mbarrier_arrive_both(bars("), ["DO_EMPTY", "Q_EMPTY"]);
    // K and V are each CTA's own, and so is what other groups of a CTA read.
    assert_eq!(named(" tma_load("), ["k_desc_64x128", "v_desc_64x128"]);
    assert!(
        source.contains("mbarrier_init(bars(Q_EMPTY + k), 16);")
            && source.contains("mbarrier_init(bars(Q_FULL + k), 1);")
    );
    assert!(source.contains("mbarrier_init(bars(LSE_EMPTY + k), 8);"));
    assert_eq!(source.matches("  cluster_sync();").count(), 2, "once barriers have begun, and at the end");
    assert!(source.contains("__cluster_dims__(2, 1, 1)") && source.contains("#include \"twill_cluster.cuh\""));
    assert!(source.contains("if (programs_x % 2) return refuse("));
    assert!(folder.join("twill_cluster.cuh").exists());

    let signature: Value = serde_json::from_str(&fs::read_to_string(folder.join("kernel.json")).unwrap()).unwrap();
    assert_eq!(signature["grid"]["cluster"], 2);
    let parameters = signature["parameters"].as_array().unwrap();
    let copied = |name: &str| {
        let parameter = parameters.iter().find(|p| p["name"] == name).unwrap();
        (parameter["blocks"][0]["shape"][0].as_u64().unwrap(), parameter["blocks"][0]["box"][0].as_u64().unwrap())
    };
    assert_eq!([copied("q_desc"), copied("k_desc")], [(64, 32), (64, 64)]);
}

#[test]
fn without_clusters_nothing_is_said_of_them() {
    let (_place, folder) = compile_with("1", "gemm_tma", &["--machine", "h200", "--emit", "cuda"]).unwrap();
    let source = fs::read_to_string(folder.join("kernel.cu")).unwrap();
    assert!(!["cluster_sync", "_both(", "__cluster_dims__", "twill_cluster"].iter().any(|word| source.contains(word)));
    assert!(!folder.join("twill_cluster.cuh").exists());
    let signature: Value = serde_json::from_str(&fs::read_to_string(folder.join("kernel.json")).unwrap()).unwrap();
    assert!(signature["grid"].get("cluster").is_none());
}

#[test]
fn where_there_is_no_cluster_it_is_said_why() {
    let h200 = ["--machine", "h200", "--emit", "cuda"];
    let refused = |example: &str, options: &[&str]| compile(example, options).map(|_| ()).unwrap_err();
    let error = refused("gemm_tma", &["--machine", "h200"]);
    assert!(error.contains("only kernels in CUDA C++ form clusters of CTAs (--cluster): add --emit cuda"), "{error}");
    let error = refused("attention_forward_causal", &h200);
    assert!(error.contains("clusters of CTAs that run this loop differently often"), "{error}");
    let error = refused("gemm_tma", &["--machine", "b200", "--emit", "cuda"]);
    assert!(error.contains("clusters of CTAs with tensor memory; leave out --cluster"), "{error}");
    // Half of 168 rows are no whole patterns of swizzling.
    let text = fs::read_to_string(root().join("examples/gemm_tma_n256.ttir")).unwrap();
    let place = tempfile::tempdir().unwrap();
    let narrow = place.path().join("narrow.ttir");
    fs::write(&narrow, text.replace("x256x", "x168x").replace("<256x", "<168x").replace(" 256 : i32", " 168 : i32"))
        .unwrap();
    let error = refused(narrow.to_str().unwrap(), &h200);
    assert!(error.contains("cannot be copied in halves: of two dimensions, a multiple of 16 rows"), "{error}");
    assert!(compile_with("1", narrow.to_str().unwrap(), &h200).is_ok());
    let error = refused("gemm_tma", &[h200.as_slice(), &["--group-m", "3"]].concat());
    assert!(error.contains("bands of an odd number of programs; ask for an even --group-m"), "{error}");
    let error = refused("gemm_tma", &[h200.as_slice(), &["--tile-order", "lpt"]].concat());
    assert!(error.contains("where long loops come first; ask for --tile-order linear too"), "{error}");
}
