//! The kernels of the gallery.

/// A kernel, with the row of bench/results/gpu.json that has its measured speed.
pub struct Kernel {
    /// Its heading.
    pub title: &'static str,
    /// Its TTIR below examples/, without `.ttir`.
    pub file: &'static str,
    /// What one should see.
    pub says: &'static str,
    /// Row and contender of the measurement, if there is one.
    pub measured: Option<(&'static str, &'static str)>,
}

impl Kernel {
    /// The name of its picture.
    pub fn name(&self) -> &'static str {
        self.file.rsplit('/').next().unwrap_or(self.file)
    }
}

/// Ten kernels: products, then attention.
pub const KERNELS: [Kernel; 10] = [
    Kernel {
        title: "GEMM through TMA",
        file: "gemm_tma_n256",
        says: "Two loads and a dot. As it is written, the tensor core waits for the loads, and the loads for the tensor \
               core. In the schedule the next tiles are loaded while these are multiplied, and the tensor core never \
               rests.",
        measured: Some(("gemm-8192", "gemm_tma_n256")),
    },
    Kernel {
        title: "GEMM through pointers",
        file: "gemm_pointers_n256",
        says: "The same product with pointers, strides and masks instead of tensor descriptors. They say what a \
               descriptor says, so TMA loads the tiles, and the schedule is the same.",
        measured: Some(("gemm-pointers-4096", "gemm_pointers_n256")),
    },
    Kernel {
        title: "The product of Triton's tutorial",
        file: "fixtures/product_wrapped_pointers",
        says: "Tutorial 03: pointers that move along K, rows that wrap around with `%`, and programs in groups. Tiles \
               are half as wide as above, so the loads weigh more.",
        measured: None,
    },
    Kernel {
        title: "SwiGLU",
        file: "swiglu",
        says: "Two products share a tile, and their results meet after the loop. Three loads are hidden behind four \
               MMAs.",
        measured: Some(("swiglu", "swiglu")),
    },
    Kernel {
        title: "Attention forward",
        file: "attention_forward",
        says: "As it is written, the tensor core rests while the softmax runs, and the softmax waits for the tensor \
               core. In the schedule two warp groups take turns: one multiplies while the other has its softmax, which \
               is the ping-pong of FlashAttention-3.",
        measured: Some(("forward-d128-16k", "attention_forward")),
    },
    Kernel {
        title: "Attention forward, causal",
        file: "attention_forward_causal",
        says: "Two loops: one over whole blocks of keys, one over those on the diagonal, which are masked. Both are \
               scheduled together, with the same warp groups. The picture shows the first.",
        measured: Some(("forward-causal-d128-16k", "attention_forward_causal")),
    },
    Kernel {
        title: "Attention forward, head dimension 64",
        file: "attention_forward_d64",
        says: "With half the head dimension the MMAs take half the time, and the softmax as long as before. Now \
               `exp2` is the bottleneck: `xu` is the unit without gaps.",
        measured: None,
    },
    Kernel {
        title: "Attention backward",
        file: "attention_backward",
        says: "Five dots an iteration. Two warp groups share the tensor core, and a group of its own loads tiles \
               and adds up dQ in global memory.",
        measured: Some(("backward-d128-16k", "attention_backward")),
    },
    Kernel {
        title: "Attention backward, head dimension 64",
        file: "attention_backward_d64",
        says: "Here shared memory is the bottleneck, from which the MMAs read their operands. It has no row in the \
               picture, so every row has gaps.",
        measured: Some(("backward-d64-16k", "attention_backward_d64")),
    },
    Kernel {
        title: "Attention with ALiBi",
        file: "fixtures/attention_alibi",
        says: "A bias that depends on distance makes the softmax longer, and blocks of 64 keys make the MMAs shorter. \
               Now warps are the bottleneck: in the steady state neither compute group has a cycle left.",
        measured: None,
    },
];
