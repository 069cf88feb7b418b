"""SGLang: attention over a cache of tokens, mixture of experts, quantised products, state spaces, linear attention."""

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


class _Unset:
    """Settings of the environment, none of which is set."""

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(get=lambda: None)


def _no(*arguments: Any, **options: Any) -> bool:
    """The answer to whether the GPU is one of those that it is not."""
    return False


def _yes(*arguments: Any, **options: Any) -> bool:
    """The answer to whether the GPU is an H100."""
    return True


@functools.cache
def _prepare() -> None:
    """Stand-ins for what SGLang's kernels import but do not need."""
    stubs.bare("sglang")
    stubs.packaging()
    utils = _utilities()
    stubs.stub("sglang.srt.utils", **utils)
    stubs.stub("sglang.srt.utils.common", **utils)
    stubs.stub("sglang.srt.utils.custom_op", register_custom_op=lambda *arguments, **options: lambda function: function)
    stubs.stub("sglang.srt.environ", envs=_Unset())
    stubs.stub("sglang.srt.runtime_context", get_platform=lambda: SimpleNamespace(is_sm90=_hopper()))
    stubs.stub("sglang.srt.layers.deep_gemm_wrapper", ENABLE_JIT_DEEPGEMM=False)
    stubs.stub("sglang.srt.layers.deep_gemm_wrapper.configurer", ENABLE_JIT_DEEPGEMM=False)
    stubs.give("sglang.srt.batch_invariant_ops", is_batch_invariant_mode_enabled=_no)
    stubs.stub("sglang.srt.layers.moe.utils", get_moe_padding_size=lambda aiter: 0)
    stubs.stub("sglang.srt.lora.utils")
    arch = torch.cuda.get_device_capability
    stubs.stub("sglang.kernels.jit.utils", is_arch_support_pdl=_hopper, get_jit_cuda_arch=arch)
    stubs.stub("sglang.kernels.ops.quantization.fp8_kernel")
    stubs.stub("sglang.kernels.ops.quantization.int8_kernel")


def _hopper() -> bool:
    """Whether the GPU is an H100 or a later one."""
    return torch.cuda.get_device_capability()[0] >= 9


def _utilities() -> dict[str, Any]:
    """What the kernels ask of the machine."""
    others = ["is_hip", "is_npu", "is_xpu", "is_cpu", "is_musa", "is_gfx95_supported", "is_gfx1250_supported"]
    return {
        **{name: _no for name in others},
        "cpu_has_amx_support": _no,
        "is_cuda": _yes,
        "is_sm90_supported": lambda device=None: _hopper(),
        "is_sm100_supported": _no,
        "torch_release": tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]),
        "get_bool_env_var": lambda name, default="false": default in ("1", "true"),
        "get_device_core_count": lambda device=0: torch.cuda.get_device_properties(device).multi_processor_count,
        "get_device_name": lambda device=0: torch.cuda.get_device_name(device),
        "get_device_capability": torch.cuda.get_device_capability,
        "log_info_on_rank0": lambda *arguments: None,
        "cdiv": lambda a, b: -(a // -b),
        "next_power_of_2": lambda n: 1 << (n - 1).bit_length(),
        "cached_triton_kernel": lambda key=None: lambda function: function,
    }


def _module(name: str) -> Any:
    """A module of SGLang."""
    _prepare()
    return importlib.import_module(f"sglang.{name}")


def _cache(lengths: Sequence[int], heads: int = KEY_HEADS, dim: int = DIM, seed: int = 0) -> SimpleNamespace:
    """Keys and values of sequences' tokens, in random order, and where each token lies."""
    total = sum(lengths)
    return SimpleNamespace(
        begins=stubs.starts(lengths),
        indices=stubs.permutation(total, seed).long(),
        k=stubs.normal(total, heads, dim, seed=seed + 1),
        v=stubs.normal(total, heads, dim, seed=seed + 2),
    )


def _tokens(cache: SimpleNamespace, number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values of a sequence, in order."""
    chosen = cache.indices[cache.begins[number] : cache.begins[number + 1]]
    return cache.k[chosen], cache.v[chosen]


def _extended(
    q: torch.Tensor, new: tuple[torch.Tensor, torch.Tensor], lengths: Sequence[int], cache: SimpleNamespace
) -> torch.Tensor:
    """Attention of new tokens over those in the cache and those before them, in float64."""
    begins = stubs.starts(lengths)
    parts = []
    for number, (begin, end) in enumerate(zip(begins, begins[1:])):
        k, v = (torch.cat([old, more[begin:end]]) for old, more in zip(_tokens(cache, number), new))
        parts.append(stubs.attention(q[begin:end], k, v, SCALE, True))
    return torch.cat(parts)


@case("sglang")
def extend_attention(
    lengths: Sequence[int] = (1024, 500, 1024, 777), prefixes: Sequence[int] = (1024, 1500, 0, 1024)
) -> tuple[Call, Call]:
    """New tokens of sequences whose beginnings are in the cache."""
    module = _module("kernels.ops.attention.extend_attention")
    cache = _cache(prefixes)
    total = sum(lengths)
    q = stubs.normal(total, QUERY_HEADS, DIM, seed=7)
    k, v = stubs.normal(total, KEY_HEADS, DIM, seed=8), stubs.normal(total, KEY_HEADS, DIM, seed=9)
    begins, places = stubs.ints(stubs.starts(lengths)), stubs.ints(cache.begins)

    def call() -> list[torch.Tensor]:
        out = torch.empty_like(q)
        module.extend_attention_fwd(
            q,
            k,
            v,
            out,
            cache.k,
            cache.v,
            begins,
            places,
            cache.indices,
            None,
            True,
            None,
            max(lengths),
            1.0,
            1.0,
        )
        return [out]

    return call, lambda: [_extended(q, (k, v), lengths, cache)]


@case("sglang")
def extend_attention_unified(
    lengths: Sequence[int] = (1024, 500, 1024, 777), prefixes: Sequence[int] = (1024, 1500, 0, 1024)
) -> tuple[Call, Call]:
    """The same where the new tokens are in the cache too."""
    module = _module("kernels.ops.attention.extend_attention")
    cache = _cache([prefix + length for prefix, length in zip(prefixes, lengths)])
    q = stubs.normal(sum(lengths), QUERY_HEADS, DIM, seed=7)
    begins = stubs.starts(lengths)
    first, places, before = stubs.ints(begins), stubs.ints(cache.begins), stubs.ints(prefixes)

    def call() -> list[torch.Tensor]:
        out = torch.empty_like(q)
        module.extend_attention_fwd_unified(
            q, out, cache.k, cache.v, 1.0, 1.0, first, places, cache.indices, before, max(lengths)
        )
        return [out]

    def reference() -> list[torch.Tensor]:
        ends = zip(begins, begins[1:])
        return [torch.cat([stubs.attention(q[b:e], *_tokens(cache, n), SCALE, True) for n, (b, e) in enumerate(ends)])]

    return call, reference


def _decode(lengths: Sequence[int], heads: int, key_heads: int, dim: int, value_dim: int) -> tuple[Call, Call]:
    """A token of each sequence, in 8 parts; with fewer value columns than key columns, values are in the keys."""
    module = _module("kernels.ops.attention.decode_attention")
    cache = _cache(lengths, key_heads, dim)
    if value_dim < dim:
        cache.v = cache.k[..., :value_dim]
    count, parts, scale = len(lengths), 8, dim**-0.5
    q = stubs.normal(count, heads, dim, seed=7)
    places, splits = stubs.ints(cache.begins), stubs.ints([parts] * count)

    def call() -> list[torch.Tensor]:
        out = stubs.empty(count, heads, value_dim)
        partial = stubs.empty(count, heads, parts, value_dim, dtype=torch.float32)
        sums = stubs.empty(count, heads, parts, dtype=torch.float32)
        module.decode_attention_fwd(
            q,
            cache.k,
            cache.v,
            out,
            places,
            cache.indices,
            partial,
            sums,
            splits,
            parts,
            scale,
            1.0,
            1.0,
            has_mla=value_dim < dim,
        )
        return [out]

    def reference() -> list[torch.Tensor]:
        return [torch.cat([stubs.attention(q[n : n + 1], *_tokens(cache, n), scale, True) for n in range(count)])]

    return call, reference


@case("sglang")
def decode_attention_grouped(count: int = 64, shortest: int = 1000, step: int = 17) -> tuple[Call, Call]:
    """Four query heads to each head of keys."""
    return _decode([shortest + step * number for number in range(count)], QUERY_HEADS, KEY_HEADS, DIM, DIM)


@case("sglang")
def decode_attention_latent(count: int = 32, shortest: int = 1000, step: int = 33) -> tuple[Call, Call]:
    """DeepSeek's latent attention: 16 query heads to one head of 576 columns, 512 of which are the values."""
    return _decode([shortest + step * number for number in range(count)], 16, 1, 576, 512)


def _prefill(lengths: Sequence[int], causal: bool, dim: int) -> tuple[Call, Call]:
    attend = _module("kernels.ops.attention.prefill_attention").context_attention_fwd
    return stubs.attention_without_cache(attend, lengths, QUERY_HEADS, KEY_HEADS, dim, causal)


@case("sglang")
def prefill_attention(lengths: Sequence[int] = (1024, 1500, 2048, 777)) -> tuple[Call, Call]:
    """Causal attention of sequences that lie one behind the other."""
    return _prefill(lengths, True, DIM)


@case("sglang", tolerance=2e-2)
def prefill_attention_encoder(lengths: Sequence[int] = (1024, 1500, 2048, 777)) -> tuple[Call, Call]:
    """Every token sees the whole sequence, as in an encoder of images."""
    return _prefill(lengths, False, 64)


def _expert_options(float8: bool, block: int) -> dict[str, Any]:
    """The arguments that products of experts have; SGLang's own tiles for middle batches."""
    import triton.language as tl

    tiles = {"BLOCK_SIZE_M": block, "BLOCK_SIZE_N": 128 if float8 else 64, "BLOCK_SIZE_K": 128 if float8 else 32}
    grouping = {"GROUP_SIZE_M": 32, "num_warps": 4, "num_stages": 3} if float8 else {"GROUP_SIZE_M": 8}
    return {
        "config": {**tiles, **grouping},
        "compute_type": tl.bfloat16,
        "use_fp8_w8a8": float8,
        "use_int8_w8a8": False,
        "use_int8_w8a16": False,
        "use_int4_w4a16": False,
        "per_channel_quant": False,
        "block_shape": [128, 128] if float8 else None,
    }


@case("sglang")
def fused_moe(
    tokens: int = 512, experts: int = 32, choices: int = 4, hidden: int = 2048, inner: int = 1024
) -> tuple[Call, Call]:
    """The two products of experts in bf16: up with its gate, and down weighted with the router's weights."""
    module = _module("kernels.ops.moe.fused_moe_triton_kernels")
    options = _expert_options(False, 64)
    weights, chosen = stubs.routing(tokens, experts, choices)
    order = stubs.align_experts(chosen, 64, experts)
    x = stubs.normal(tokens, hidden, seed=1)
    y = stubs.normal(tokens * choices, inner, seed=2)
    up = stubs.normal(experts, 2 * inner, hidden, scale=hidden**-0.5, seed=3)
    down = stubs.normal(experts, hidden, inner, scale=inner**-0.5, seed=4)

    def call() -> list[torch.Tensor]:
        first = stubs.empty(tokens, choices, 2 * inner)
        second = stubs.empty(tokens, choices, hidden)
        run = module.invoke_fused_moe_kernel
        run(x, up, None, first, None, None, None, weights, chosen, *order, False, choices, **options)
        run(y, down, None, second, None, None, None, weights, chosen, *order, True, 1, **options)
        return [first, second]

    def reference() -> list[torch.Tensor]:
        first = stubs.expert_products(x.repeat_interleave(choices, 0), up, chosen)
        second = stubs.expert_products(y, down, chosen) * weights.flatten()[:, None].double()
        return [first.view(tokens, choices, -1), second.view(tokens, choices, -1)]

    return call, reference


@case("sglang")
def fused_moe_float8(
    tokens: int = 512, experts: int = 64, choices: int = 8, hidden: int = 2048, inner: int = 1024
) -> tuple[Call, Call]:
    """An expert's first product in 8 bits, scaled by blocks of 128."""
    module = _module("kernels.ops.moe.fused_moe_triton_kernels")
    options = _expert_options(True, 64)
    weights, chosen = stubs.routing(tokens, experts, choices)
    order = stubs.align_experts(chosen, 64, experts)
    x, up = stubs.float8(tokens, hidden, seed=1), stubs.float8(experts, inner, hidden, seed=3)
    x_scales = stubs.uniform(tokens, hidden // 128, low=0.5, high=1.5, seed=4)
    up_scales = stubs.uniform(experts, inner // 128, hidden // 128, low=0.01, high=0.03, seed=5)

    def call() -> list[torch.Tensor]:
        out = stubs.empty(tokens, choices, inner)
        module.invoke_fused_moe_kernel(
            x, up, None, out, x_scales, up_scales, None, weights, chosen, *order, False, choices, **options
        )
        return [out]

    def reference() -> list[torch.Tensor]:
        left = stubs.blocks(x, x_scales, 1, 128).repeat_interleave(choices, 0)
        right = stubs.blocks(up, up_scales, 1, 128, 128)
        return [stubs.expert_products(left, right, chosen).view(tokens, choices, inner)]

    return call, reference


def _block_scaled(run: Any, left: torch.Tensor, right: torch.Tensor) -> tuple[Call, Call]:
    """A product in 8 bits with a scale for each block of 128."""
    columns = left.shape[1] // 128
    left_scales = stubs.uniform(left.shape[0], columns, low=0.5, high=1.5, seed=3)
    right_scales = stubs.uniform(right.shape[0] // 128, columns, low=0.01, high=0.03, seed=4)

    def call() -> list[torch.Tensor]:
        return [run(left, right, left_scales, right_scales, [128, 128], torch.bfloat16)]

    def reference() -> list[torch.Tensor]:
        return [stubs.blocks(left, left_scales, 1, 128) @ stubs.blocks(right, right_scales, 128, 128).T]

    return call, reference


@case("sglang")
def block_scaled_float8(m: int = 2048, n: int = 4096, k: int = 4096) -> tuple[Call, Call]:
    """Floats."""
    run = _module("kernels.ops.gemm.fp8_kernel").w8a8_block_fp8_matmul_triton
    return _block_scaled(run, stubs.float8(m, k, seed=1), stubs.float8(n, k, seed=2))


@case("sglang")
def block_scaled_int8(m: int = 2048, n: int = 4096, k: int = 4096) -> tuple[Call, Call]:
    """Integers."""
    run = _module("kernels.ops.gemm.int8_kernel").w8a8_block_int8_matmul
    left = stubs.integers(-127, 128, m, k, dtype=torch.int8, seed=1)
    return _block_scaled(run, left, stubs.integers(-127, 128, n, k, dtype=torch.int8, seed=2))


@case("sglang")
def scaled_mm_float8(m: int = 2048, n: int = 4096, k: int = 4096) -> tuple[Call, Call]:
    """A product in 8 bits with a scale for each row and each column."""
    module = _module("kernels.ops.gemm.fp8_kernel")
    left, right = stubs.float8(m, k, seed=1), stubs.float8(n, k, seed=2)
    rows = stubs.uniform(m, 1, low=0.01, high=0.03, seed=5)
    columns = stubs.uniform(n, 1, low=0.01, high=0.03, seed=6)

    def call() -> list[torch.Tensor]:
        return [module.triton_scaled_mm(left, right.T, rows, columns, torch.bfloat16)]

    def reference() -> list[torch.Tensor]:
        return [(left.double() * rows.double()) @ (right.double() * columns.double()).T]

    return call, reference


@case("sglang", tolerance=2e-2)
def mamba_chunk_scan(
    batch: int = 2, length: int = 2048, heads: int = 64, dim: int = 64, states: int = 128, chunk: int = 256
) -> tuple[Call, Call]:
    """Mamba-2's scan of a batch in chunks."""
    module = _module("kernels.ops.mamba.triton_ops.ssd_combined")
    begins = stubs.starts([length] * batch)
    x = stubs.normal(batch, length, heads, dim, seed=1)
    steps = stubs.uniform(batch, length, heads, low=0.001, high=0.1, seed=2)
    decay = -stubs.uniform(heads, low=1.0, high=8.0, seed=3)
    b = stubs.normal(batch, length, 1, states, seed=4)
    c = stubs.normal(batch, length, 1, states, seed=5)
    skip = stubs.uniform(heads, low=0.5, high=1.5, seed=6)

    def call() -> list[torch.Tensor]:
        out = torch.empty_like(x)
        final = module.mamba_chunk_scan_combined(
            x, steps, decay, b, c, chunk, D=skip, out=out, return_final_states=True, state_dtype=torch.float32
        )
        return [out, final]

    def reference() -> list[torch.Tensor]:
        flat = [t.flatten(0, 1) for t in (x, steps, b, c)]
        out, final = stubs.state_space(flat[0], flat[1], decay, flat[2], flat[3], skip, begins)
        return [out.view(x.shape), final]

    return call, reference


@case("sglang")
def lightning_attention(batch: int = 2, heads: int = 32, length: int = 2048, dim: int = 128) -> tuple[Call, Call]:
    """Linear attention with a decay for each head."""
    module = _module("kernels.ops.attention.linear.lightning_attn")
    q = stubs.normal(batch, heads, length, dim, dtype=torch.float32, scale=0.3, seed=1)
    k = stubs.normal(batch, heads, length, dim, dtype=torch.float32, scale=0.3, seed=2)
    v = stubs.normal(batch, heads, length, dim, dtype=torch.float32, scale=0.3, seed=3)
    decay = stubs.uniform(heads, low=0.01, high=0.5, seed=4)

    def call() -> list[torch.Tensor]:
        return [module.lightning_attention(q, k, v, decay)[0]]

    return call, lambda: [stubs.decayed_attention(q, k, v, decay, 256)]


def _delta_rule(module: Any, function: str, inputs: stubs.DeltaRule, lengths: Sequence[int]) -> tuple[Call, Call]:
    """A delta rule in chunks, which writes the last states over the first ones."""
    begins = stubs.ints(stubs.starts(lengths), dtype=torch.int64)
    places = stubs.ints(range(len(lengths)))
    run = getattr(module, function)

    def call() -> list[torch.Tensor]:
        state = inputs.state.clone()
        with torch.no_grad():
            result = run(*inputs.arguments(), initial_state=state, initial_state_indices=places, cu_seqlens=begins)
        out = result[0] if isinstance(result, tuple) else result
        return [out.view(inputs.v.shape), state]

    return call, lambda: stubs.delta_rule(inputs, lengths)


@case("sglang", tolerance=2e-2)
def chunk_gated_delta_rule(
    lengths: Sequence[int] = (1024, 2048, 1000), heads: int = 16, value_heads: int = 32, dim: int = 128
) -> tuple[Call, Call]:
    """Qwen's gated delta rule."""
    module = _module("kernels.ops.attention.fla.chunk")
    inputs = stubs.delta_rule_inputs(lengths, heads, value_heads, dim)
    return _delta_rule(module, "chunk_gated_delta_rule", inputs, lengths)


@case("sglang", tolerance=2e-2)
def chunk_kimi_delta_attention(
    lengths: Sequence[int] = (1024, 2048, 1000), heads: int = 16, dim: int = 128
) -> tuple[Call, Call]:
    """Kimi's delta rule, whose decay is of each column."""
    module = _module("kernels.ops.attention.fla.kda")
    inputs = stubs.delta_rule_inputs(lengths, heads, heads, dim, columns=True)
    return _delta_rule(module, "chunk_kda", inputs, lengths)


@case("sglang")
def matmul_persistent(m: int = 2048, n: int = 4096, k: int = 4096) -> tuple[Call, Call]:
    """The product whose result does not depend on the batch, bf16, with a bias."""
    module = _module("srt.batch_invariant_ops.batch_invariant_ops")
    a = stubs.normal(m, k, seed=1)
    b = stubs.normal(n, k, scale=k**-0.5, seed=2).T
    bias = stubs.normal(n, seed=3)

    def call() -> list[torch.Tensor]:
        return [module.matmul_persistent(a, b, bias=bias)]

    return call, lambda: [a.double() @ b.double() + bias.double()]


@case("sglang")
def bmm_batch_invariant(batch: int = 32, m: int = 512, n: int = 512, k: int = 1024) -> tuple[Call, Call]:
    """The same for batches, fp16."""
    module = _module("srt.batch_invariant_ops.batch_invariant_ops")
    a = stubs.normal(batch, m, k, dtype=torch.float16, seed=1)
    b = stubs.normal(batch, k, n, dtype=torch.float16, scale=k**-0.5, seed=2)

    def call() -> list[torch.Tensor]:
        return [module.bmm_batch_invariant(a, b)]

    return call, lambda: [a.double() @ b.double()]


@case("sglang")
def lora_shrink(
    lengths: Sequence[int] = (700, 300, 512, 536), count: int = 4, hidden: int = 4096, rank: int = 64
) -> tuple[Call, Call]:
    """Sequences times their adapters' first matrices."""
    module = _module("kernels.ops.lora.dense.sgemm_lora_a")
    total = sum(lengths)
    x = stubs.normal(total, hidden, seed=1)
    weights = stubs.normal(count, rank, hidden, scale=hidden**-0.5, seed=2)
    owners = stubs.ints([number % count for number in range(len(lengths))])
    info = SimpleNamespace(
        bs=len(lengths),
        max_len=max(lengths),
        seg_lens=stubs.ints(lengths),
        seg_indptr=stubs.ints(stubs.starts(lengths)),
        weight_indices=owners,
        lora_ranks=stubs.ints([rank] * count),
        permutation=None,
    )

    def call() -> list[torch.Tensor]:
        return [module.sgemm_lora_a_fwd(x, weights, info)]

    def reference() -> list[torch.Tensor]:
        each = owners.repeat_interleave(stubs.ints(lengths, dtype=torch.int64))
        return [stubs.expert_products(x, weights, each)]

    return call, reference
