"""vLLM: attention, mixture of experts, quantised products, linear attention, state spaces, LoRA."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch

from bench.applications.case import Call, case
from bench.applications.packages import stubs

QUERY_HEADS = 32
KEY_HEADS = 8
DIM = 128
SCALE = DIM**-0.5
PAGE = 16


@functools.cache
def _prepare() -> None:
    """Stand-ins for what vLLM's kernels import but do not need."""
    stubs.bare("vllm", run=["vllm.triton_utils"])
    stubs.packaging()
    platform = stubs.Platform()
    stubs.stub("vllm.platforms", current_platform=platform)
    stubs.stub("vllm.platforms.interface")
    stubs.stub("vllm.logger", init_logger=lambda name: stubs.Logger())
    stubs.stub("vllm.envs", **_settings())
    stubs.stub("vllm.triton_utils.importing", HAS_TRITON=True)
    stubs.stub("vllm._custom_ops")
    stubs.stub(
        "vllm.utils.platform_utils",
        get_device_name_as_file_name=lambda: platform.get_device_name().replace(" ", "_").replace("/", "_"),
        num_compute_units=lambda device=None: platform.num_compute_units(device or 0),
    )
    stubs.stub(
        "vllm.utils.torch_utils",
        direct_register_custom_op=lambda *arguments, **options: None,
        is_torch_equal_or_newer=lambda version: True,
        async_tensor_h2d=lambda values, dtype, device: torch.as_tensor(values, dtype=dtype, device=device),
    )
    stubs.stub("vllm.utils.mem_utils", get_max_shared_memory_bytes=lambda device=0: 232448)
    stubs.stub("vllm.utils.gpu_sync_debug", gpu_sync_allowed=stubs.nothing)
    stubs.stub("vllm.utils.nccl")
    stubs.stub("vllm.utils.deep_gemm")
    stubs.stub("vllm.utils.math_utils", **_mathematics())
    stubs.stub("vllm.v1.attention.backends.utils", PAD_SLOT_ID=-1, NULL_BLOCK_ID=0)
    stubs.stub("vllm.v1.kv_cache_interface", KVQuantMode=_quantisations())
    stubs.stub("vllm.model_executor.custom_op", CustomOp=stubs.Registry)
    stubs.stub("vllm.model_executor.parameter")
    stubs.stub("vllm.model_executor.utils")
    for name in ("quant_utils", "w8a8_utils"):
        stubs.stub(f"vllm.model_executor.layers.quantization.utils.{name}")
    stubs.give("vllm.model_executor.layers.quantization.utils", replace_parameter=None)
    stubs.stub("vllm.model_executor.kernels.linear.mixed_precision.MPLinearKernel")
    stubs.stub("vllm.scalar_type", scalar_types=SimpleNamespace(uint4b8=None, uint4=None))
    for name in ("modular_kernel", "activation", "config", "moe_align_block_size", "utils"):
        stubs.stub(f"vllm.model_executor.layers.fused_moe.{name}", **_experts())


def _settings() -> dict[str, Any]:
    """The environment's settings, all as they are where nobody sets them."""
    return {
        "VLLM_BATCH_INVARIANT": False,
        "VLLM_TRITON_USE_TD": None,
        "VLLM_TUNED_CONFIG_FOLDER": None,
        "VLLM_LORA_ENABLE_DUAL_STREAM": False,
        "VLLM_LORA_DISABLE_PDL": True,
    }


def _mathematics() -> dict[str, Any]:
    """Small functions of integers, and the logarithm's base."""
    return {
        "RCP_LN2": 1.4426950408889634,
        "cdiv": lambda a, b: -(a // -b),
        "next_power_of_2": lambda n: 1 if n < 1 else 1 << (n - 1).bit_length(),
    }


def _quantisations() -> Any:
    """How the cache of keys and values may be stored; 0 is as it is."""
    import enum

    names = ["NONE", "FP8_PER_TENSOR", "INT8_PER_TOKEN_HEAD", "FP8_PER_TOKEN_HEAD", "INT4_PER_TOKEN_HEAD"]
    return enum.IntEnum("KVQuantMode", names, start=0)


def _experts() -> dict[str, Any]:
    """What the module of fused experts asks of the modules beside it."""
    return {
        "FUSED_MOE_UNQUANTIZED_CONFIG": None,
        "MoEActivation": SimpleNamespace(SILU="silu"),
        "enable_swap_ab": lambda m, n: m < 64 <= n,
        "resolve_moe_use_td": lambda: False,
        "warn_if_moe_use_td_ineffective": lambda *arguments, **options: None,
    }


def _module(name: str) -> Any:
    """A module of vLLM."""
    _prepare()
    return importlib.import_module(f"vllm.{name}")


def _pages(lengths: Sequence[int], dim: int = DIM, heads: int = KEY_HEADS, seed: int = 0) -> SimpleNamespace:
    """Keys and values of sequences, in pages in random order, and where each sequence's pages lie."""
    most = -(-max(lengths) // PAGE)
    count = len(lengths) * most
    table = stubs.permutation(count, seed).view(len(lengths), most)
    k = stubs.normal(count, PAGE, heads, dim, seed=seed + 1)
    v = stubs.normal(count, PAGE, heads, dim, seed=seed + 2)
    return SimpleNamespace(lengths=list(lengths), table=table, k=k, v=v)


def _sequence(pages: SimpleNamespace, number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values of a sequence, in order."""
    chosen = pages.table[number].long()
    length = pages.lengths[number]
    return pages.k[chosen].flatten(0, 1)[:length], pages.v[chosen].flatten(0, 1)[:length]


def _paged_reference(q: torch.Tensor, queries: Sequence[int], pages: SimpleNamespace, window: int = 0) -> torch.Tensor:
    """Causal attention of the last queries of sequences, in float64."""
    begins = stubs.starts(queries)
    parts = []
    for number, begin in enumerate(begins[:-1]):
        k, v = _sequence(pages, number)
        parts.append(stubs.attention(q[begin : begins[number + 1]], k, v, SCALE, True, window))
    return torch.cat(parts)


def _unified(queries: Sequence[int], lengths: Sequence[int], window: int = 0, segments: int = 0) -> tuple[Call, Call]:
    """Attention of batches over pages; with `segments`, each sequence is split for decoding."""
    module = _module("v1.attention.ops.triton_unified_attention")
    pages = _pages(lengths)
    tokens = sum(queries)
    q = stubs.normal(tokens, QUERY_HEADS, DIM, seed=7)
    begins, used = stubs.ints(stubs.starts(queries)), stubs.ints(lengths)
    parts: dict[str, Any] = {}
    if segments:
        shape = (tokens, QUERY_HEADS, segments)
        parts = {
            "seq_threshold_3D": len(queries),
            "num_par_softmax_segments": segments,
            "softmax_segm_output": stubs.empty(*shape, DIM, dtype=torch.float32),
            "softmax_segm_max": stubs.empty(*shape, dtype=torch.float32),
            "softmax_segm_expsum": stubs.empty(*shape, dtype=torch.float32),
        }

    def call() -> list[torch.Tensor]:
        out = torch.empty_like(q)
        module.unified_attention(
            q=q,
            k=pages.k,
            v=pages.v,
            out=out,
            cu_seqlens_q=begins,
            max_seqlen_q=max(queries),
            seqused_k=used,
            max_seqlen_k=max(lengths),
            softmax_scale=SCALE,
            causal=True,
            window_size=(window - 1, 0) if window else (-1, -1),
            block_table=pages.table,
            softcap=0.0,
            q_descale=None,
            k_descale=None,
            v_descale=None,
            **parts,
        )
        return [out]

    return call, lambda: [_paged_reference(q, queries, pages, window)]


@case("vllm")
def unified_attention_prefill(
    queries: Sequence[int] = (1024, 1500, 2048, 777), lengths: Sequence[int] = (1024, 2000, 2048, 1801)
) -> tuple[Call, Call]:
    """Sequences at their beginning and in their middle."""
    return _unified(queries, lengths)


@case("vllm")
def unified_attention_mixed(
    queries: Sequence[int] = (1, 1, 1, 1024, 1, 1, 512, 1),
    lengths: Sequence[int] = (900, 2000, 33, 1024, 1500, 7, 2000, 1),
) -> tuple[Call, Call]:
    """Sequences that decode beside some that begin."""
    return _unified(queries, lengths)


@case("vllm")
def unified_attention_window(
    queries: Sequence[int] = (2048, 2048), lengths: Sequence[int] = (2048, 3000), window: int = 512
) -> tuple[Call, Call]:
    """Each token sees only those shortly before it."""
    return _unified(queries, lengths, window)


@case("vllm")
def unified_attention_decode(count: int = 64, shortest: int = 1000, step: int = 17) -> tuple[Call, Call]:
    """A token of each of many sequences."""
    return _unified([1] * count, [shortest + step * number for number in range(count)])


@case("vllm")
def unified_attention_decode_split(count: int = 8, shortest: int = 4000, step: int = 301) -> tuple[Call, Call]:
    """A token of each of few long sequences, each in 16 parts."""
    return _unified([1] * count, [shortest + step * number for number in range(count)], segments=16)


def _prefill(lengths: Sequence[int], causal: bool, dim: int) -> tuple[Call, Call]:
    attend = _module("v1.attention.ops.triton_prefill_attention").context_attention_fwd
    return stubs.attention_without_cache(attend, lengths, QUERY_HEADS, KEY_HEADS, dim, causal)


@case("vllm")
def prefill_attention(lengths: Sequence[int] = (1024, 1500, 2048, 777)) -> tuple[Call, Call]:
    """Causal attention of sequences that lie one behind the other."""
    return _prefill(lengths, True, DIM)


@case("vllm", tolerance=2e-2)
def prefill_attention_encoder(lengths: Sequence[int] = (1024, 1500, 2048, 777)) -> tuple[Call, Call]:
    """Every token sees the whole sequence, as in an encoder."""
    return _prefill(lengths, False, 64)


@case("vllm")
def prefix_prefill(
    queries: Sequence[int] = (1024, 500, 1024, 777), lengths: Sequence[int] = (2048, 2000, 1024, 1801)
) -> tuple[Call, Call]:
    """New tokens of sequences whose beginnings are in the cache."""
    module = _module("v1.attention.ops.prefix_prefill")
    pages = _pages(lengths)
    k_pages = pages.k.view(-1, PAGE, KEY_HEADS, DIM // 8, 8).permute(0, 2, 3, 1, 4).contiguous()
    v_pages = pages.v.permute(0, 2, 3, 1).contiguous()
    begins = stubs.starts(queries)
    q = stubs.normal(begins[-1], QUERY_HEADS, DIM, seed=7)
    sequences = [_sequence(pages, number) for number in range(len(lengths))]
    k = torch.cat([keys[len(keys) - count :] for (keys, _), count in zip(sequences, queries)])
    v = torch.cat([values[len(values) - count :] for (_, values), count in zip(sequences, queries)])
    first, sizes = stubs.ints(begins), stubs.ints(lengths)
    one = torch.ones((), device=q.device)

    def call() -> list[torch.Tensor]:
        out = torch.empty_like(q)
        module.context_attention_fwd(
            q,
            k,
            v,
            out,
            "auto",
            k_pages,
            v_pages,
            pages.table,
            first,
            sizes,
            max(lengths),
            max(queries),
            one,
            one,
            sm_scale=SCALE,
        )
        return [out]

    return call, lambda: [_paged_reference(q, queries, pages)]


def _decode(lengths: Sequence[int], heads: int, key_heads: int, dim: int, value_dim: int) -> tuple[Call, Call]:
    """A token of each sequence, in 8 parts; with fewer value columns than key columns, values are in the keys."""
    module = _module("v1.attention.ops.triton_decode_attention")
    pages = _pages(lengths, dim, key_heads)
    if value_dim < dim:
        pages.v = pages.k[..., :value_dim]
    count, parts, scale = len(lengths), 8, dim**-0.5
    q = stubs.normal(count, heads, dim, seed=7)
    sizes = stubs.ints(lengths)

    def call() -> list[torch.Tensor]:
        out = stubs.empty(count, heads, value_dim)
        sums = stubs.empty(count, heads, dtype=torch.float32)
        partial = stubs.empty(count, heads, parts, value_dim + 1, dtype=torch.float32)
        module.decode_attention_fwd(
            q,
            pages.k,
            pages.v,
            out,
            sums,
            pages.table,
            sizes,
            partial,
            parts,
            scale,
            PAGE,
            is_mla=value_dim < dim,
        )
        return [out]

    def reference() -> list[torch.Tensor]:
        each = [stubs.attention(q[n : n + 1], *_sequence(pages, n), scale, True) for n in range(count)]
        return [torch.cat(each)]

    return call, reference


@case("vllm")
def decode_attention_grouped(count: int = 64, shortest: int = 1000, step: int = 17) -> tuple[Call, Call]:
    """Four query heads to each head of keys."""
    return _decode([shortest + step * number for number in range(count)], QUERY_HEADS, KEY_HEADS, DIM, DIM)


@case("vllm")
def decode_attention_latent(count: int = 32, shortest: int = 1000, step: int = 33) -> tuple[Call, Call]:
    """DeepSeek's latent attention: 16 query heads to one head of 576 columns, 512 of which are the values."""
    return _decode([shortest + step * number for number in range(count)], 16, 1, 576, 512)


def _expert_options(config: dict[str, Any], float8: bool) -> dict[str, Any]:
    """The arguments that both products of an expert have."""
    import triton.language as tl

    return {
        "config": config,
        "compute_type": tl.bfloat16,
        "use_fp8_w8a8": float8,
        "use_int8_w8a8": False,
        "use_int8_w8a16": False,
        "use_int4_w4a16": False,
        "per_channel_quant": False,
        "block_shape": [128, 128] if float8 else None,
    }


@case("vllm")
def fused_moe(
    tokens: int = 512, experts: int = 32, choices: int = 4, hidden: int = 2048, inner: int = 1024
) -> tuple[Call, Call]:
    """The two products of experts in bf16: up with its gate, and down weighted with the router's weights."""
    module = _module("model_executor.layers.fused_moe.fused_moe")
    config = module.get_default_config(tokens, experts, inner, hidden, choices, "bfloat16")
    options = _expert_options(config, False)
    weights, chosen = stubs.routing(tokens, experts, choices)
    order = stubs.align_experts(chosen, config["BLOCK_SIZE_M"], experts)
    x = stubs.normal(tokens, hidden, seed=1)
    y = stubs.normal(tokens * choices, inner, seed=2)
    up = stubs.normal(experts, 2 * inner, hidden, scale=hidden**-0.5, seed=3)
    down = stubs.normal(experts, hidden, inner, scale=inner**-0.5, seed=4)

    def call() -> list[torch.Tensor]:
        first = stubs.empty(tokens, choices, 2 * inner)
        second = stubs.empty(tokens, choices, hidden)
        run = module.invoke_fused_moe_triton_kernel
        run(x, up, first, None, None, weights, *order, False, choices, **options)
        run(y, down, second, None, None, weights, *order, True, 1, **options)
        return [first, second]

    def reference() -> list[torch.Tensor]:
        first = stubs.expert_products(x.repeat_interleave(choices, 0), up, chosen)
        second = stubs.expert_products(y, down, chosen) * weights.flatten()[:, None].double()
        return [first.view(tokens, choices, -1), second.view(tokens, choices, -1)]

    return call, reference


@case("vllm")
def fused_moe_float8(
    tokens: int = 512, experts: int = 64, choices: int = 8, hidden: int = 2048, inner: int = 1024
) -> tuple[Call, Call]:
    """An expert's first product in 8 bits, scaled by blocks of 128."""
    module = _module("model_executor.layers.fused_moe.fused_moe")
    config = module.get_default_config(tokens, experts, inner, hidden, choices, "fp8_w8a8", [128, 128])
    options = _expert_options(config, True)
    weights, chosen = stubs.routing(tokens, experts, choices)
    order = stubs.align_experts(chosen, config["BLOCK_SIZE_M"], experts)
    x, up = stubs.float8(tokens, hidden, seed=1), stubs.float8(experts, inner, hidden, seed=3)
    x_scales = stubs.uniform(tokens, hidden // 128, low=0.5, high=1.5, seed=4)
    up_scales = stubs.uniform(experts, inner // 128, hidden // 128, low=0.01, high=0.03, seed=5)

    def call() -> list[torch.Tensor]:
        out = stubs.empty(tokens, choices, inner)
        module.invoke_fused_moe_triton_kernel(
            x, up, out, x_scales, up_scales, weights, *order, False, choices, **options
        )
        return [out]

    def reference() -> list[torch.Tensor]:
        left = stubs.blocks(x, x_scales, 1, 128).repeat_interleave(choices, 0)
        right = stubs.blocks(up, up_scales, 1, 128, 128)
        return [stubs.expert_products(left, right, chosen).view(tokens, choices, inner)]

    return call, reference


def _scaled(left: torch.Tensor, right: torch.Tensor) -> tuple[Call, Call]:
    """A product of 8-bit matrices with a scale for each row and each column."""
    module = _module("model_executor.layers.quantization.compressed_tensors.triton_scaled_mm")
    rows = stubs.uniform(left.shape[0], 1, low=0.01, high=0.03, seed=5)
    columns = stubs.uniform(right.shape[0], 1, low=0.01, high=0.03, seed=6)

    def call() -> list[torch.Tensor]:
        return [module.triton_scaled_mm(left, right.T, rows, columns, torch.bfloat16)]

    def reference() -> list[torch.Tensor]:
        return [(left.double() * rows.double()) @ (right.double() * columns.double()).T]

    return call, reference


@case("vllm")
def scaled_mm_int8(m: int = 2048, n: int = 4096, k: int = 4096) -> tuple[Call, Call]:
    """Integers."""
    return _scaled(
        stubs.integers(-127, 128, m, k, dtype=torch.int8, seed=1),
        stubs.integers(-127, 128, n, k, dtype=torch.int8, seed=2),
    )


@case("vllm")
def scaled_mm_float8(m: int = 2048, n: int = 4096, k: int = 4096) -> tuple[Call, Call]:
    """Floats."""
    return _scaled(stubs.float8(m, k, seed=1), stubs.float8(n, k, seed=2))


@case("vllm")
def block_scaled_mm(m: int = 2048, n: int = 4096, k: int = 4096) -> tuple[Call, Call]:
    """A product in 8 bits with a scale for each block of 128."""
    module = _module("model_executor.layers.quantization.utils.fp8_utils")
    left, right = stubs.float8(m, k, seed=1), stubs.float8(n, k, seed=2)
    left_scales = stubs.uniform(m, k // 128, low=0.5, high=1.5, seed=3)
    right_scales = stubs.uniform(n // 128, k // 128, low=0.01, high=0.03, seed=4)

    def call() -> list[torch.Tensor]:
        return [
            module.w8a8_triton_block_scaled_mm(left, right, left_scales, right_scales, [128, 128], torch.bfloat16)
        ]

    def reference() -> list[torch.Tensor]:
        return [stubs.blocks(left, left_scales, 1, 128) @ stubs.blocks(right, right_scales, 128, 128).T]

    return call, reference


def _nibbles(packed: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
    """Eight numbers of 4 bits from each integer; `order` says where in it each lies."""
    shifts = stubs.ints([4 * place for place in order]).to(packed.device)
    return ((packed[..., None] >> shifts) & 15).flatten(-2)


@case("vllm")
def awq_gemm(m: int = 256, n: int = 4096, k: int = 4096, group: int = 128, parts: int = 4) -> tuple[Call, Call]:
    """Weights of 4 bits as AWQ stores them."""
    module = _module("model_executor.layers.quantization.awq_triton")
    low, high = -(2**31), 2**31
    x = stubs.normal(m, k, dtype=torch.float16, seed=1)
    packed = stubs.integers(low, high, k, n // 8, seed=2)
    offsets = stubs.integers(low, high, k // group, n // 8, seed=3)
    scales = stubs.uniform(k // group, n, low=0.001, high=0.003, seed=4).half()

    def call() -> list[torch.Tensor]:
        return [module.awq_gemm_triton(x, packed, scales, offsets, parts)]

    def reference() -> list[torch.Tensor]:
        order = [0, 4, 1, 5, 2, 6, 3, 7]
        shifted = _nibbles(packed, order) - _nibbles(offsets, order).repeat_interleave(group, 0)
        return [x.double() @ (shifted.double() * scales.double().repeat_interleave(group, 0))]

    return call, reference


@case("vllm")
def w4a16_gemm(m: int = 1024, n: int = 4096, k: int = 4096, group: int = 128) -> tuple[Call, Call]:
    """Weights of 4 bits as GPTQ stores them, without offsets of their own."""
    module = _module("model_executor.kernels.linear.mixed_precision.triton_w4a16")
    x = stubs.normal(m, k, dtype=torch.float16, seed=1)
    packed = stubs.integers(-(2**31), 2**31, k, n // 8, seed=2)
    scales = stubs.uniform(k // group, n, low=0.001, high=0.003, seed=4).half()

    def call() -> list[torch.Tensor]:
        return [module._triton_w4a16_gemm_impl(x, packed, scales, None, group)]

    def reference() -> list[torch.Tensor]:
        weights = (_nibbles(packed, range(8)) - 8).double() * scales.double().repeat_interleave(group, 0)
        return [x.double() @ weights]

    return call, reference


@case("vllm", tolerance=2e-2)
def mamba_chunk_scan(
    lengths: Sequence[int] = (2048, 1024, 1024), heads: int = 64, dim: int = 64, states: int = 128, chunk: int = 256
) -> tuple[Call, Call]:
    """Mamba-2's scan of sequences in chunks."""
    module = _module("model_executor.layers.mamba.ops.ssd_combined")
    begins = stubs.starts(lengths)
    pieces, owners, last = [0], [], []
    for number, length in enumerate(lengths):
        for done in range(0, length, chunk):
            pieces.append(begins[number] + min(done + chunk, length))
            owners.append(number)
        last.append(len(owners) - 1)
    x = stubs.normal(begins[-1], heads, dim, seed=1)
    steps = stubs.uniform(begins[-1], heads, low=0.001, high=0.1, seed=2)
    decay = -stubs.uniform(heads, low=1.0, high=8.0, seed=3)
    b = stubs.normal(begins[-1], 1, states, seed=4)
    c = stubs.normal(begins[-1], 1, states, seed=5)
    skip = stubs.uniform(heads, low=0.5, high=1.5, seed=6)
    places = [stubs.ints(values) for values in (begins, pieces, last, owners)]

    def call() -> list[torch.Tensor]:
        out = torch.empty_like(x)
        final = module.mamba_chunk_scan_combined_varlen(
            x, steps, decay, b, c, chunk, *places, out, D=skip, state_dtype=torch.float32
        )
        return [out, final]

    return call, lambda: stubs.state_space(x, steps, decay, b, c, skip, begins)


@case("vllm")
def lightning_attention(batch: int = 2, heads: int = 32, length: int = 2048, dim: int = 128) -> tuple[Call, Call]:
    """Linear attention with a decay for each head."""
    module = _module("model_executor.layers.lightning_attn")
    q = stubs.normal(batch, heads, length, dim, dtype=torch.float32, scale=0.3, seed=1)
    k = stubs.normal(batch, heads, length, dim, dtype=torch.float32, scale=0.3, seed=2)
    v = stubs.normal(batch, heads, length, dim, dtype=torch.float32, scale=0.3, seed=3)
    decay = stubs.uniform(heads, low=0.01, high=0.5, seed=4)

    def call() -> list[torch.Tensor]:
        return [module.lightning_attention(q, k, v, decay)[0]]

    return call, lambda: [stubs.decayed_attention(q, k, v, decay, 256)]


@case("vllm", tolerance=2e-2)
def chunk_gated_delta_rule(
    lengths: Sequence[int] = (1024, 2048, 1000), heads: int = 16, value_heads: int = 32, dim: int = 128
) -> tuple[Call, Call]:
    """Qwen's gated delta rule, in chunks."""
    module = _module("third_party.flash_linear_attention.ops.chunk")
    inputs = stubs.delta_rule_inputs(lengths, heads, value_heads, dim)
    begins = stubs.ints(stubs.starts(lengths))

    def call() -> list[torch.Tensor]:
        with torch.no_grad():
            out, final = module.chunk_gated_delta_rule(
                *inputs.arguments(), initial_state=inputs.state.clone(), output_final_state=True, cu_seqlens=begins
            )
        return [out.view(inputs.v.shape), final]

    return call, lambda: stubs.delta_rule(inputs, lengths)


@case("vllm", tolerance=2e-2)
def chunk_kimi_delta_attention(
    lengths: Sequence[int] = (1024, 2048, 1000), heads: int = 16, dim: int = 128
) -> tuple[Call, Call]:
    """Kimi's delta rule, whose decay is of each column."""
    module = _module("third_party.flash_linear_attention.ops.kda")
    inputs = stubs.delta_rule_inputs(lengths, heads, heads, dim, columns=True)
    begins = stubs.ints(stubs.starts(lengths))

    def call() -> list[torch.Tensor]:
        with torch.no_grad():
            out, final = module.chunk_kda(
                *inputs.arguments(), initial_state=inputs.state.clone(), output_final_state=True, cu_seqlens=begins
            )
        return [out.view(inputs.v.shape).clone(), final]

    return call, lambda: stubs.delta_rule(inputs, lengths)


@case("vllm")
def matmul_persistent(m: int = 2048, n: int = 4096, k: int = 4096) -> tuple[Call, Call]:
    """The product whose result does not depend on the batch, bf16, with a bias."""
    module = _module("model_executor.determinism.batch_invariant")
    a = stubs.normal(m, k, seed=1)
    b = stubs.normal(n, k, scale=k**-0.5, seed=2).T
    bias = stubs.normal(n, seed=3)

    def call() -> list[torch.Tensor]:
        return [module.matmul_persistent(a, b, bias=bias)]

    return call, lambda: [a.double() @ b.double() + bias.double()]


@case("vllm")
def bmm_batch_invariant(batch: int = 32, m: int = 512, n: int = 512, k: int = 1024) -> tuple[Call, Call]:
    """The same for batches, fp16."""
    module = _module("model_executor.determinism.batch_invariant")
    a = stubs.normal(batch, m, k, dtype=torch.float16, seed=1)
    b = stubs.normal(batch, k, n, dtype=torch.float16, scale=k**-0.5, seed=2)

    def call() -> list[torch.Tensor]:
        return [module.bmm_batch_invariant(a, b)]

    return call, lambda: [a.double() @ b.double()]


def _adapters(tokens: int, count: int) -> tuple[torch.Tensor, tuple[Any, ...]]:
    """Which adapter each token has, and what LoRA's kernels are told about it."""
    module = _module("lora.ops.triton_ops.lora_kernel_metadata")
    chosen = stubs.integers(0, count, tokens, seed=9)
    meta = module.LoRAKernelMeta.make(count, tokens, stubs.DEVICE)
    meta.prepare_tensors(chosen)
    return chosen.long(), meta.meta_args(tokens, False)


@case("vllm")
def lora_shrink(
    tokens: int = 2048, count: int = 8, hidden: int = 4096, rank: int = 64, slices: int = 3
) -> tuple[Call, Call]:
    """Tokens times their adapters' first matrices."""
    module = _module("lora.ops.triton_ops.lora_shrink_op")
    chosen, meta = _adapters(tokens, count)
    x = stubs.normal(tokens, hidden, seed=1)
    weights = [stubs.normal(count, rank, hidden, scale=hidden**-0.5, seed=2 + n) for n in range(slices)]

    def call() -> list[torch.Tensor]:
        out = stubs.empty(slices, tokens, rank, dtype=torch.float32)
        module._lora_shrink(x, weights, out, *meta, 0.5)
        return [out]

    return call, lambda: [torch.stack([0.5 * stubs.expert_products(x, weight, chosen) for weight in weights])]


@case("vllm")
def lora_expand(
    tokens: int = 2048, count: int = 8, hidden: int = 4096, rank: int = 64, slices: int = 3
) -> tuple[Call, Call]:
    """Adapters' second matrices, added to the layer's result."""
    module = _module("lora.ops.triton_ops.lora_expand_op")
    chosen, meta = _adapters(tokens, count)
    x = stubs.normal(slices, tokens, rank, dtype=torch.float32, seed=1)
    weights = [stubs.normal(count, hidden, rank, scale=rank**-0.5, seed=2 + n) for n in range(slices)]
    base = stubs.normal(tokens, slices * hidden, seed=8)

    def call() -> list[torch.Tensor]:
        out = base.clone()
        module._lora_expand(x, weights, out, *meta, add_inputs=True)
        return [out]

    def reference() -> list[torch.Tensor]:
        parts = [stubs.expert_products(x[n].bfloat16(), weights[n], chosen) for n in range(slices)]
        return [base.double() + torch.cat(parts, dim=1)]

    return call, reference
