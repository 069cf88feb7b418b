"""Compile-time arguments with which the TTIR of these kernels is printed."""


def variants(variant, tile):
    """The variants, by the class and the descriptor's type of `print_ttir`.

    All integers are multiples of 16 but those that are named as `odd`; pointers have the type that stands with them.
    """

    def kernel(name, function, pointers, integers, constants, descriptors=(), floats=(), odd=()):
        return variant(
            name=name,
            folder="serving",
            kernel=f"serving.{function}",
            arguments={**dict(descriptors), **pointers, **dict.fromkeys(floats, "fp32"), **dict.fromkeys(integers, "i32")},
            constants=constants,
            divisible=(*pointers, *(integer for integer in integers if integer not in odd)),
        )

    def pointers(element, *names, **others):
        """Pointers to `element` by their names without `_ptr`, then those with a type of their own."""
        return {f"{name}_ptr": f"*{kind}" for name, kind in (dict.fromkeys(names, element) | others).items()}

    def strides(*names):
        return tuple(f"stride_{name}" for name in names)

    def varlen(name, window, soft_cap):
        return kernel(
            name,
            "attention_varlen.attention_varlen",
            pointers("bf16", "q", "k", "v", "o", cu_seqlens="i32"),
            strides("qt", "qh", "kt", "kh", "vt", "vh", "ot", "oh"),
            {"GROUP": 4, "HEAD_DIM": 128, "BLOCK_M": 128, "BLOCK_N": 128, "WINDOW": window, "SOFT_CAP": soft_cap},
            floats=("softmax_scale",),
        )

    head = {"H": 16, "K": 128, "V": 128, "CHUNK": 64}
    return [
        kernel(
            "attention_paged",
            "attention_paged.attention_paged",
            pointers("bf16", "q", "k", "v", table="i32", lengths="i32", part="fp32", lse="fp32"),
            strides("qb", "qh", "kp", "kt", "kh", "vp", "vt", "vh", "table"),
            {"GROUP": 4, "HEAD_DIM": 128, "PAGE": 16, "BLOCK_H": 16, "BLOCK_N": 64},
            floats=("softmax_scale",),
        ),
        kernel(
            "attention_paged_combine",
            "attention_paged.combine_parts",
            pointers("bf16", part="fp32", lse="fp32", o="bf16"),
            ("num_parts",),
            {"HEAD_DIM": 128, "PARTS": 4},
            odd=("num_parts",),
        ),
        varlen("attention_varlen", 0, 0.0),
        varlen("attention_varlen_window", 1024, 50.0),
        kernel(
            "attention_fp8",
            "attention_fp8.attention_fp8",
            pointers("fp32", "q_scale", "k_scale", "v_scale"),
            ("length",),
            {"HEAD_DIM": 128, "BLOCK_M": 128, "BLOCK_N": 128},
            descriptors={
                **{f"{name}_desc": tile(128, 128, element="fp8e4nv") for name in ("q", "k", "vt")},
                "o_desc": tile(128, 128, element="bf16"),
            },
            floats=("softmax_scale",),
        ),
        kernel(
            "mamba_chunk_state",
            "mamba_chunk.chunk_state",
            pointers("bf16", "x", "b", dt="fp32", a="fp32", states="fp32"),
            ("length", "P", "N", "group_size", *strides("xb", "xl", "xh", "bb", "bl", "bg", "dtb", "dth", "sb", "sc", "sh")),
            {"CHUNK": 256, "BLOCK_P": 64, "BLOCK_N": 128, "BLOCK_K": 64},
        ),
        kernel(
            "mamba_state_passing",
            "mamba_chunk.state_passing",
            pointers("fp32", "states", "a", before="bf16", final="fp32"),
            ("length", "num_chunks", "size", *strides("ab", "ah")),
            {"CHUNK": 256, "BLOCK": 1024},
        ),
        kernel(
            "mamba_chunk_scan",
            "mamba_chunk.chunk_scan",
            pointers("bf16", "cb", "x", "c", dt="fp32", a="fp32", before="bf16", d="fp32", y="bf16"),
            (
                *("length", "P", "group_size"),
                *strides("xb", "xl", "xh", "cb", "cl", "cg", "dtb", "dth", "cbb", "cbc", "cbg", "sb", "sc", "sh"),
            ),
            {"N": 128, "CHUNK": 256, "BLOCK_M": 128, "BLOCK_P": 64, "BLOCK_K": 64},
        ),
        kernel(
            "delta_state",
            "delta_rule.delta_state",
            pointers("bf16", "k", "w", "u", g="fp32", h="bf16", v_new="bf16", final="fp32"),
            ("T",),
            head | {"BLOCK_V": 64},
        ),
        kernel(
            "delta_output",
            "delta_rule.delta_output",
            pointers("bf16", "q", "k", "v_new", "h", g="fp32", o="bf16"),
            ("T",),
            head | {"BLOCK_K": 64, "BLOCK_V": 64},
            floats=("scale",),
        ),
        kernel(
            "gla_state",
            "gated_linear_attention.gla_state",
            pointers("bf16", "k", "v", g="fp32", h="bf16", final="fp32"),
            ("T",),
            head | {"BLOCK_K": 64, "BLOCK_V": 64},
        ),
        kernel(
            "gla_output",
            "gated_linear_attention.gla_output",
            pointers("bf16", "q", "v", g="fp32", a="bf16", h="bf16", o="bf16"),
            ("T",),
            head | {"BLOCK_K": 64, "BLOCK_V": 64},
            floats=("scale",),
        ),
    ]
