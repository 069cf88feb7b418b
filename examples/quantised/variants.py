"""Compile-time arguments with which the TTIR of these kernels is printed."""


def variants(variant, tile):
    """The variants, by the class and the descriptor's type of `print_ttir`."""

    def kernel(name, module, function, pointers, sizes, constants, **others):
        divisible = (*pointers, *(size for size, multiple in sizes.items() if multiple))
        return variant(
            name=name,
            folder="quantised",
            kernel=f"quantised.{module}.{function}",
            arguments={**others.get("descriptors", {}), **pointers, **dict.fromkeys(sizes, "i32")},
            constants=constants,
            divisible=divisible,
        )

    def scaled(name, element, accumulator):
        rows, columns = 128, 256
        return kernel(
            name,
            "gemm_scaled",
            "gemm_scaled",
            {"a_scale_ptr": "*fp32", "b_scale_ptr": "*fp32"},
            {"M": True, "N": True, "K": True},
            {"BLOCK_M": rows, "BLOCK_N": columns, "BLOCK_K": 128, "GROUP_M": 8, "ACCUMULATOR": accumulator},
            descriptors={
                "a_desc": tile(rows, 128, element=element),
                "b_desc": tile(columns, 128, element=element),
                "c_desc": tile(rows, columns, element="bf16"),
            },
        )

    def microscaled(name, element, form):
        return kernel(
            name,
            "gemm_microscaled",
            "gemm_microscaled",
            {"a_ptr": "*fp8e4nv", "b_ptr": f"*{element}", "c_ptr": "*fp32", "a_scale_ptr": "*u8", "b_scale_ptr": "*u8"},
            dict.fromkeys(("M", "N", "K", "stride_am", "stride_bn", "stride_cm"), True)
            | dict.fromkeys(("stride_as", "stride_bs"), False),
            {"B_FORMAT": form, "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128},
        )

    import triton.language as tl

    return [
        scaled("gemm_fp8", "fp8e4nv", tl.float32),
        scaled("gemm_int8", "i8", tl.int32),
        kernel(
            "gemm_block_scaled",
            "gemm_block_scaled",
            "gemm_block_scaled",
            {"a_ptr": "*fp8e4nv", "b_ptr": "*fp8e4nv", "c_ptr": "*bf16", "a_scale_ptr": "*fp32", "b_scale_ptr": "*fp32"},
            dict.fromkeys(("M", "N", "K", "stride_am", "stride_bn", "stride_cm", "stride_as", "stride_bs"), True),
            {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128, "GROUP_M": 8},
        ),
        microscaled("gemm_mxfp8", "fp8e4nv", "e4m3"),
        microscaled("gemm_mxfp4", "u8", "e2m1"),
        kernel(
            "gemm_w4a16",
            "gemm_w4a16",
            "gemm_w4a16",
            {"a_ptr": "*fp16", "q_ptr": "*u8", "scale_ptr": "*fp16", "zero_ptr": "*fp16", "c_ptr": "*fp32"},
            dict.fromkeys(("M", "N", "K", "stride_am", "stride_qk", "stride_sk", "stride_cm"), True) | {"M": False},
            {"GROUP": 128, "BLOCK_M": 16, "BLOCK_N": 128, "BLOCK_K": 128, "SPLIT_K": 4},
        ),
        kernel(
            "fused_moe",
            "fused_moe",
            "expert_gemm",
            {
                **{"a_ptr": "*bf16", "b_ptr": "*bf16", "c_ptr": "*bf16", "weight_ptr": "*fp32"},
                **{"sorted_ids_ptr": "*i32", "expert_ids_ptr": "*i32", "num_padded_ptr": "*i32"},
            },
            dict.fromkeys(("N", "K", "num_pairs", "stride_am", "stride_be", "stride_bn", "stride_cm"), True),
            {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8, "TOP_K": 8, "WEIGHTED": False},
        ),
        kernel(
            "gemm_grouped",
            "gemm_grouped",
            "gemm_grouped",
            {"a_ptr": "*bf16", "b_ptr": "*bf16", "c_ptr": "*bf16", "ends_ptr": "*i32"},
            dict.fromkeys(("N", "K", "stride_am", "stride_bg", "stride_bn", "stride_cm"), True),
            {"GROUPS": 8, "PROGRAMS": 132, "BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64},
        ),
    ]
