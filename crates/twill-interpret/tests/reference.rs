//! The TTIR as it is executed computes what the kernels of `examples/` are there for.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod common;

use common::{Call, example};
use twill_interpret::{Argument, Arithmetic, Data, Memory, sequential};
use twill_triton::Kernel;

/// A kernel, and a call of it after it was executed in `f64`.
fn executed(name: &str, trips: i64) -> (Kernel, Call) {
    let kernel = twill_triton::read(&example(name), name).unwrap();
    let mut call = Call::new(&kernel, trips, 3);
    call.launch.arithmetic = Arithmetic::Double;
    sequential::run(&kernel, &call.launch, &mut call.memory).unwrap();
    (kernel, call)
}

fn numbers<'m>(memory: &'m Memory, name: &str) -> &'m [f64] {
    let array = memory.arrays.iter().find(|a| a.name == name).unwrap();
    match &array.data {
        Data::Floats(x) => x,
        _ => panic!("{name} has no floating-point numbers"),
    }
}

fn close(found: f64, expected: f64, place: &str) {
    assert!((found - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{place}: {found} is not {expected}");
}

#[test]
fn a_product_is_a_product() {
    let (_, call) = executed("gemm_tma", 2);
    let Argument::Tensor(a) = &call.launch.arguments["a_desc"] else { panic!("no tensor") };
    let Argument::Tensor(b) = &call.launch.arguments["b_desc"] else { panic!("no tensor") };
    let (rows, depth, columns) = (a.extents[0] as usize, a.extents[1] as usize, b.extents[0] as usize);
    let [x, y, z] = ["a_desc", "b_desc", "c_desc"].map(|name| numbers(&call.memory, name));
    for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
        let sum: f64 = (0..depth).map(|k| x[i * depth + k] * y[j * depth + k]).sum();
        close(z[i * columns + j], sum, &format!("element {i}, {j}"));
    }
}

#[test]
fn attention_is_attention() {
    for (name, is_causal) in [("attention_forward_d64", false), ("attention_forward_causal_d64", true)] {
        let (_, call) = executed(name, 2);
        let Argument::Tensor(q) = &call.launch.arguments["q_desc"] else { panic!("no tensor") };
        let (length, depth) = (q.extents[0] as usize, q.extents[1] as usize);
        let [q, k, v, o] = ["q_desc", "k_desc", "v_desc", "o_desc"].map(|name| numbers(&call.memory, name));
        let sums = numbers(&call.memory, "lse_ptr");
        let rows = length.min(call.launch.grid[0] as usize * 128);
        for i in (0..rows).step_by(7) {
            let keys = if is_causal { i + 1 } else { length };
            let score = |j: usize| -> f64 { (0..depth).map(|d| q[i * depth + d] * k[j * depth + d]).sum() };
            let weights: Vec<f64> = (0..keys).map(|j| (score(j) * 0.125 * 1.442_695_02).exp2()).collect();
            let sum: f64 = weights.iter().sum();
            close(sums[i], sum.log2(), &format!("{name}: sum of row {i}"));
            for d in 0..depth {
                let mean: f64 = weights.iter().enumerate().map(|(j, w)| w * v[j * depth + d]).sum::<f64>() / sum;
                close(o[i * depth + d], mean, &format!("{name}: element {i}, {d}"));
            }
        }
    }
}
