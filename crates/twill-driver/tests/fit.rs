//! Whether configurations fit: the examples, tiles and rings that are too large, and what is counted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::path::{Path, PathBuf};
use twill_driver::tune::{CompileOptions, Compiled, GeneratedKernel, Which, compile};
use twill_driver::{
    Fit, Input, Limits, LoweringParameters, Request, Resource, Session, SiblingOptions, Silent, Verdict, fit,
    fit_schema,
};
use twill_exact::SearchOptions;
use twill_graph::LowerBoundKind;
use twill_machine::Machine;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn request(example: &str) -> Request {
    let path = examples().join(example).with_extension("ttir");
    let lowering =
        LoweringParameters { machine: Some(Machine::builtin("h200").unwrap()), ..LoweringParameters::default() };
    Request {
        input: Input::kernel(example, std::fs::read_to_string(path).unwrap()),
        lowering,
        limits: Limits::default(),
        siblings: SiblingOptions::default(),
    }
}

fn fitted(example: &str, options: &CompileOptions) -> Fit {
    fit(&request(example), options).unwrap_or_else(|error| panic!("{example}: {error}"))
}

fn compiled(example: &str, options: &CompileOptions) -> GeneratedKernel {
    let mut nobody = Silent;
    let mut session = Session::new(SearchOptions::default(), &mut nobody);
    match compile(&request(example), options, None, &mut session).unwrap() {
        Compiled::Kernel(kernel) => *kernel,
        other => panic!("{example}: {other:?}"),
    }
}

#[test]
fn the_examples_fit() {
    for example in ["attention_forward", "attention_forward_causal", "attention_backward", "gemm_tma", "swiglu"] {
        let fit = fitted(example, &CompileOptions::default());
        assert!(fit.fits(), "{example}: {:?}", fit.misfit);
        assert!(fit.needs.iter().all(|need| need.required <= need.available), "{example}: {:?}", fit.needs);
        assert!(fit.needs.iter().any(|need| need.resource == Resource::Warps && need.required == 12), "{example}");
    }
}

#[test]
fn registers_of_one_group_are_counted_a_thread() {
    let fit = fitted("attention_backward_m128", &CompileOptions::default());
    let need = fit.need(Resource::Registers).unwrap();
    // Four tiles of 64 × 128 words on 128 threads, and 24 registers more.
    let amounts: Vec<u64> = need.largest.iter().map(|holder| holder.amount).collect();
    // One group of eight warps has other schedules, of which nothing is proved.
    assert_eq!((fit.verdict, need.required, need.available), (Verdict::Unknown, 4 * 64 + 24, 255));
    assert_eq!(amounts, [64; 4]);
    let reason = &fit.misfit.unwrap().reason;
    assert!(reason.starts_with("registers a thread: at least 280 needed at any interval, 255 at hand"), "{reason}");
    // Those of all groups are another resource.
    let fit = fitted("attention_forward_m256", &CompileOptions::default());
    let need = fit.need(Resource::RegisterFile).unwrap();
    assert!(fit.need(Resource::Registers).is_none() && need.required > need.available, "{:?}", fit.needs);
    assert!(need.required > 60_000 && need.available > 60_000, "{need:?}");
}

#[test]
fn the_bound_is_that_of_the_tensor_core_and_says_what_can_be_reached() {
    let fit = fitted("gemm_tma", &CompileOptions::default());
    let [one] = fit.loops.as_slice() else { panic!("{:?}", fit.loops) };
    assert_eq!((one.bound.interval.0, one.flop), (512, 2 * 128 * 128 * 64));
    assert!(matches!(&one.bound.kind, LowerBoundKind::Resource { unit, .. } if unit == "tensor"), "{:?}", one.bound);
    // 4096 floating-point operations a cycle at 1830 MHz.
    assert!((one.teraflops_per_multiprocessor.unwrap() - 7.49568).abs() < 1e-9);
    assert!((one.teraflops.unwrap() - 132.0 * 7.49568).abs() < 1e-6);
}

#[test]
fn rings_that_are_too_deep_are_blamed() {
    let options = CompileOptions { ring_depth: Some(8), ..CompileOptions::default() };
    let fit = fitted("gemm_tma_n256", &options);
    assert_eq!(fit.verdict, Verdict::DoesNotFit);
    let need = fit.need(Resource::SharedMemory).unwrap();
    // 8 slots of 256 × 64 float16.
    assert_eq!((need.largest[0].name.as_str(), need.largest[0].amount), ("b_buffer", 8 * 256 * 64 * 2));
    assert!(need.required > need.available);
    let misfit = fit.misfit.unwrap();
    assert_eq!((misfit.resource, misfit.culprit.as_deref()), (Some(Resource::SharedMemory), Some("b_buffer")));
    assert!(misfit.reason.contains("(line 28)"), "{}", misfit.reason);
}

#[test]
fn tiles_that_are_too_large_for_registers_are_blamed() {
    let fit = fitted("attention_forward_m256", &CompileOptions::default());
    assert_eq!(fit.verdict, Verdict::Unknown, "{fit:?}");
    let misfit = fit.misfit.unwrap();
    assert!(matches!(misfit.resource, Some(Resource::Registers | Resource::RegisterFile)), "{misfit:?}");
    assert!(misfit.culprit.unwrap().starts_with("acc"));
}

/// Bytes that a generated kernel allocates, read from its source.
fn allocated(source: &str) -> u64 {
    let bytes = |line: &str| {
        let (element, rest) = line.split_once("gl.allocate_shared_memory(gl.")?.1.split_once(", [")?;
        let extents = rest.split_once(']')?.0.split(", ").map(|n| n.parse::<u64>().unwrap()).product::<u64>();
        let bits: u64 = element.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
        Some(extents * bits / 8)
    };
    source.lines().filter_map(bytes).sum()
}

#[test]
fn required_bytes_are_those_of_the_generated_kernel() {
    let options = CompileOptions { schedule: Which::NoSwp, ..CompileOptions::default() };
    for example in ["attention_forward", "attention_forward_causal", "attention_backward", "gemm_pointers", "swiglu"] {
        let fit = fitted(example, &options);
        let need = fit.need(Resource::SharedMemory).unwrap();
        let kernel = compiled(example, &options);
        let source = &kernel.files["kernel.py"];
        // What Triton adds is not in the source: arguments of warp groups, and their states.
        let added = need.required - allocated(source);
        assert!((100..400).contains(&added), "{example}: {} required, {} allocated", need.required, allocated(source));
    }
}

#[test]
fn what_fits_is_generated_even_if_the_best_schedule_does_not_fit() {
    let mut request = request("attention_backward");
    let whole = request.lowering.machine.clone().unwrap().resources().shared_memory.0;
    let least = fit(&request, &CompileOptions { persistent: Some(false), ..CompileOptions::default() }).unwrap();
    let room = least.need(Resource::SharedMemory).unwrap().required;
    assert!(room < whole);
    // A machine with no more than that: the schedule of the shortest interval keeps more tiles.
    let text = Machine::builtin("h200").unwrap().to_toml();
    let smaller = text.replace(&whole.to_string(), &room.to_string());
    assert_ne!(text, smaller);
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("small.toml");
    std::fs::write(&path, smaller).unwrap();
    request.lowering.machine = Some(Machine::load(path.to_str().unwrap()).unwrap());
    assert!(fit(&request, &CompileOptions::default()).unwrap().fits());
    let mut nobody = Silent;
    let mut session = Session::new(SearchOptions::default(), &mut nobody);
    let kernel = compile(&request, &CompileOptions::default(), None, &mut session).unwrap();
    let Compiled::Kernel(kernel) = kernel else { panic!("{kernel:?}") };
    assert!(allocated(&kernel.files["kernel.py"]) <= room);
}

#[test]
fn it_is_plain_data_with_a_schema() {
    let fit = fitted("swiglu", &CompileOptions::default());
    let json = serde_json::to_string(&fit).unwrap();
    let read: Fit = serde_json::from_str(&json).unwrap();
    assert_eq!((&read.needs, read.verdict, &read.loops[0].bound), (&fit.needs, fit.verdict, &fit.loops[0].bound));
    let published = std::fs::read_to_string(examples().join("../docs/schema/fit.schema.json")).unwrap();
    let published: serde_json::Value = serde_json::from_str(&published).unwrap();
    assert!(published == fit_schema(), "write it anew: twill schema fit > docs/schema/fit.schema.json");
}
