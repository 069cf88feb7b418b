//! Calls of the kernels of `examples/`, on small tensors of random numbers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::collections::HashMap;
use std::rc::Rc;
use twill_graph::SplitMix64;
use twill_interpret::{Argument, Arithmetic, Array, Data, Launch, Memory, Tensor, Tile};
use twill_triton::Kernel;
use twill_triton::mlir::{FloatKind, Type};

/// The text of an example.
pub fn example(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    std::fs::read_to_string(path.with_extension("ttir")).unwrap()
}

/// A call of a kernel, and what is in memory before it.
pub struct Call {
    pub launch: Launch,
    pub memory: Memory,
    random: SplitMix64,
    kernel: Kernel,
}

const HALF: Type = Type::Float(FloatKind::F16);
const SINGLE: Type = Type::Float(FloatKind::F32);

impl Call {
    /// This many trips of the example's loop, where it has one.
    pub fn new(kernel: &Kernel, trips: i64, seed: u64) -> Call {
        let launch = Launch { arguments: HashMap::new(), grid: [1, 1, 1], arithmetic: Arithmetic::Rounded };
        let memory = Memory::default();
        let mut call = Call { launch, memory, random: SplitMix64::new(seed), kernel: kernel.clone() };
        match kernel.name() {
            "attention_forward" => call.attention_forward(trips),
            "attention_relu" => call.attention_relu(trips),
            "_attn_fwd" => call.tutorial_attention(trips),
            "attention_mla" => call.attention_mla(trips),
            "attention_backward" | "attention_backward_causal" => call.attention_backward(trips),
            "gemm_tma" | "column_sums" => call.gemm(trips, ["a_desc", "b_desc", "c_desc"]),
            "swiglu" => {
                call.gemm(trips, ["x_desc", "gate_desc", "y_desc"]);
                let extents = call.extents("gate_desc");
                call.tensor("up_desc", &extents, HALF, true);
            }
            "gemm_bias_gelu" => call.gemm_bias_gelu(trips),
            "gemm_rmsnorm" => {
                call.gemm(trips, ["x_desc", "w_desc", "y_desc"]);
                call.give("epsilon", Tile::float(0.015_625));
            }
            "gemm_pointers" => call.gemm_pointers(trips),
            "batched" => call.batched(trips),
            name => panic!("how is {name} called?"),
        }
        call
    }

    fn block(&self, name: &str) -> [i64; 2] {
        let module = self.kernel.module();
        let arguments = module.arguments(self.kernel.function());
        let argument = arguments.iter().find(|a| module.value(**a).name == name).unwrap();
        let shape = module.type_of(*argument).block().unwrap().known_shape().unwrap();
        // Dimensions of one come first.
        let [.., rows, columns] = shape[..] else { panic!("{name} has no rows and columns") };
        [rows as i64, columns as i64]
    }

    fn extents(&self, name: &str) -> [i64; 2] {
        match &self.launch.arguments[name] {
            Argument::Tensor(tensor) => [tensor.extents[0], tensor.extents[1]],
            Argument::Scalar(_) => panic!("{name} is no tensor"),
        }
    }

    fn array(&mut self, name: &str, count: i64, element: Type, random: bool) -> usize {
        let mut number = || if random { self.random.unit() * 2.0 - 1.0 } else { 0.0 };
        let data = (0..count).map(|_| (number() * 256.0).round() / 256.0).collect();
        self.memory.arrays.push(Array { name: name.into(), element, data: Data::Floats(data) });
        self.memory.arrays.len() - 1
    }

    fn give(&mut self, name: &str, tile: Tile) {
        self.launch.arguments.insert(name.into(), Argument::Scalar(Rc::new(tile)));
    }

    fn pointer(&mut self, name: &str, count: i64, element: Type, random: bool) {
        let array = self.array(name, count, element, random);
        self.give(name, Tile::pointer(array));
    }

    fn tensor(&mut self, name: &str, extents: &[i64; 2], element: Type, random: bool) {
        let array = self.array(name, extents[0] * extents[1], element, random);
        let tensor = Tensor { array, first: 0, extents: extents.to_vec(), strides: vec![extents[1], 1] };
        self.launch.arguments.insert(name.into(), Argument::Tensor(tensor));
    }

    fn attention_forward(&mut self, trips: i64) {
        let ([m, depth], [n, _]) = (self.block("q_desc"), self.block("k_desc"));
        let is_causal = self.kernel.loops().len() > 1;
        let length = if is_causal { (trips + 1) * n.max(m) } else { trips * n };
        let programs = if is_causal { length / m } else { 1 + (trips % 2) };
        for name in ["q_desc", "k_desc", "v_desc"] {
            self.tensor(name, &[length, depth], HALF, true);
        }
        self.tensor("o_desc", &[length, depth], HALF, false);
        self.pointer("lse_ptr", length.max(m * programs), SINGLE, false);
        self.give("softmax_scale", Tile::float(0.125));
        self.give("length", Tile::integer(length));
        self.launch.grid = [programs as u32, 1, 1];
    }

    /// The columns that rotary embeddings turned are those of a wider tensor, behind the others.
    fn attention_mla(&mut self, trips: i64) {
        self.attention_forward(trips);
        for (tensor, rope) in [("q_desc", "q_rope_desc"), ("k_desc", "k_rope_desc")] {
            let ([length, depth], [_, turned]) = (self.extents(tensor), self.block(rope));
            self.tensor(rope, &[length, depth + turned], HALF, true);
        }
    }

    fn gemm_bias_gelu(&mut self, trips: i64) {
        self.gemm(trips, ["x_desc", "w_desc", "y_desc"]);
        let [rows, columns] = self.extents("y_desc");
        self.tensor("r_desc", &[rows, columns], HALF, true);
        self.pointer("bias_ptr", columns, SINGLE, true);
        self.give("M", Tile::integer(rows));
        self.give("N", Tile::integer(columns));
    }

    /// Two heads, so that what is read beyond the first one would be noticed.
    fn attention_relu(&mut self, trips: i64) {
        let ([_, depth], [n, _]) = (self.block("q_desc"), self.block("k_desc"));
        let length = trips * n;
        for name in ["q_desc", "k_desc", "v_desc"] {
            self.tensor(name, &[2 * length, depth], HALF, true);
        }
        self.tensor("o_desc", &[2 * length, depth], HALF, false);
        self.give("length", Tile::integer(length));
        self.launch.grid = [1, 2, 1];
    }

    fn tutorial_attention(&mut self, trips: i64) {
        let ([m, depth], [n, _]) = (self.block("desc_q"), self.block("desc_k"));
        let is_causal = self.kernel.loops().len() > 1;
        let length = if is_causal { (trips + 1) * n.max(m) } else { trips * n };
        let programs = if is_causal { length / m } else { 1 };
        for name in ["desc_q", "desc_k", "desc_v"] {
            self.tensor(name, &[2 * length, depth], HALF, true);
        }
        self.tensor("desc_o", &[2 * length, depth], HALF, false);
        self.pointer("M", 2 * length.max(m * programs), SINGLE, false);
        self.give("sm_scale", Tile::float(0.125));
        self.give("N_CTX", Tile::integer(length));
        self.give("Z", Tile::integer(1));
        self.give("H", Tile::integer(2));
        self.launch.grid = [programs as u32, if is_causal { 1 } else { 2 }, 1];
    }

    fn attention_backward(&mut self, trips: i64) {
        let ([m, depth], [n, _]) = (self.block("q_desc"), self.block("k_desc"));
        let length = trips * m;
        for name in ["q_desc", "k_desc", "v_desc", "do_desc"] {
            self.tensor(name, &[length, depth], HALF, true);
        }
        self.tensor("dq_desc", &[length, depth], SINGLE, false);
        for name in ["dk_desc", "dv_desc"] {
            self.tensor(name, &[length, depth], HALF, false);
        }
        self.pointer("lse_ptr", length, SINGLE, true);
        self.pointer("delta_ptr", length, SINGLE, true);
        self.give("softmax_scale", Tile::float(0.125));
        self.give("length", Tile::integer(length));
        self.launch.grid = [(length + n - 1).div_euclid(n).max(1) as u32, 1, 1];
    }

    /// Two matrices, whose rows, columns and depth are no multiples of the tiles'.
    fn batched(&mut self, trips: i64) {
        self.gemm(trips, ["a_desc", "b_desc", "c_desc"]);
        for name in ["a_desc", "b_desc", "c_desc"] {
            let [rows, columns] = self.extents(name);
            let array = self.array(name, 2 * rows * columns, HALF, name != "c_desc");
            let (extents, strides) = (vec![2, rows, columns], vec![rows * columns, columns, 1]);
            self.launch.arguments.insert(name.into(), Argument::Tensor(Tensor { array, first: 0, extents, strides }));
        }
        self.launch.grid = [2, 1, 2];
    }

    /// Rows, columns and depth are no multiples of the tiles'.
    fn gemm(&mut self, trips: i64, [a, b, c]: [&str; 3]) {
        let ([m, k], [n, _]) = (self.block(a), self.block(b));
        let (rows, columns, depth) = (2 * m - 24, n - 8, trips * k - 8 * trips.signum());
        self.tensor(a, &[rows, depth], HALF, true);
        self.tensor(b, &[columns, depth], HALF, true);
        self.tensor(c, &[rows, columns], HALF, false);
        self.give("K", Tile::integer(depth));
        self.launch.grid = [2, 1, 1];
    }

    fn gemm_pointers(&mut self, trips: i64) {
        let block = self.kernel.module().walk(self.kernel.function());
        let dot = block.into_iter().find(|id| self.kernel.module().operation(*id).name == "tt.dot").unwrap();
        let shape = |k: usize| {
            let module = self.kernel.module();
            module.type_of(module.operation(dot).operands[k]).known_shape().unwrap()
        };
        let (m, n, k) = (shape(0)[0] as i64, shape(1)[1] as i64, shape(0)[1] as i64);
        let (rows, columns, depth) = (2 * m - 24, n - 8, trips * k - 8 * trips.signum());
        self.pointer("a_ptr", rows * depth, HALF, true);
        self.pointer("b_ptr", depth * columns, HALF, true);
        self.pointer("c_ptr", rows * columns, HALF, false);
        for (name, value) in [
            ("M", rows),
            ("N", columns),
            ("K", depth),
            ("stride_a", depth),
            ("stride_b", columns),
            ("stride_c", columns),
        ] {
            self.give(name, Tile::integer(value));
        }
        self.launch.grid = [2, 1, 1];
    }
}
