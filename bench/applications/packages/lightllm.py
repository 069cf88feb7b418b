"""LightLLM: attention over a cache of tokens, mixture of experts, quantised products."""

from __future__ import annotations

import functools
import importlib
import os
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


class _Frozen(dict):
    """A dictionary that can be a key."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted((key, str(value)) for key, value in self.items())))


class _NoConfigs:
    """No tuned tiles for any size, so that the kernels take their own."""

    @classmethod
    def get_the_config(cls, key: Any) -> None:
        """What was tuned for a size."""
        return None


@functools.cache
def _prepare() -> None:
    """Stand-ins for what LightLLM's kernels import but do not need."""
    stubs.bare("lightllm")
    # Tiles as they are: neither read from files nor tuned.
    os.environ.setdefault("LIGHTLLM_TRITON_AUTOTUNE_LEVEL", "3")
    stubs.stub("frozendict", frozendict=_Frozen)
    stubs.stub("lightllm.utils.log_utils", init_logger=lambda name: stubs.Logger())
    stubs.stub("lightllm.utils.vllm_utils", vllm_ops=None)
    stubs.stub("lightllm.utils.sgl_utils", HAS_SGL_KERNEL=False, sgl_ops=None)
    stubs.stub("lightllm.common.kernel_config", KernelConfigs=_NoConfigs)


def _module(name: str) -> Any:
    """A module of LightLLM."""
    _prepare()
    return importlib.import_module(f"lightllm.{name}")


def _cache(lengths: Sequence[int], seed: int = 0) -> SimpleNamespace:
    """Keys and values of sequences' tokens, in random order, and where each token of each sequence lies."""
    begins = stubs.starts(lengths)
    order = stubs.permutation(begins[-1], seed)
    table = stubs.zeros(len(lengths), max(lengths), dtype=torch.int32)
    for number, length in enumerate(lengths):
        table[number, :length] = order[begins[number] : begins[number] + length]
    return SimpleNamespace(
        lengths=list(lengths),
        table=table,
        rows=stubs.ints(range(len(lengths))),
        k=stubs.normal(begins[-1], KEY_HEADS, DIM, seed=seed + 1),
        v=stubs.normal(begins[-1], KEY_HEADS, DIM, seed=seed + 2),
    )


def _reference(q: torch.Tensor, counts: Sequence[int], cache: SimpleNamespace) -> torch.Tensor:
    """Causal attention of the last tokens of sequences, in float64."""
    begins = stubs.starts(counts)
    parts = []
    for number, (begin, end) in enumerate(zip(begins, begins[1:])):
        chosen = cache.table[number, : cache.lengths[number]].long()
        parts.append(stubs.attention(q[begin:end], cache.k[chosen], cache.v[chosen], SCALE, True))
    return torch.cat(parts)


@case("lightllm")
def context_attention(
    counts: Sequence[int] = (1024, 500, 1024, 777), prefixes: Sequence[int] = (1024, 1500, 0, 1024)
) -> tuple[Call, Call]:
    """New tokens of sequences whose beginnings are in the cache, with the new ones beside them."""
    module = _module("models.llama.triton_kernel.context_flashattention_nopad")
    cache = _cache([prefix + count for prefix, count in zip(prefixes, counts)])
    q = stubs.normal(sum(counts), QUERY_HEADS, DIM, seed=7)
    begins = stubs.ints(stubs.starts(counts)[:-1])
    sizes, before = stubs.ints(cache.lengths), stubs.ints(prefixes)

    def call() -> list[torch.Tensor]:
        out = torch.empty_like(q)
        module.context_attention_fwd(
            q, cache.k, cache.v, out, cache.rows, begins, sizes, before, max(counts), cache.table
        )
        return [out]

    return call, lambda: [_reference(q, counts, cache)]


@case("lightllm")
def context_attention_without_cache(lengths: Sequence[int] = (1024, 1500, 2048, 777)) -> tuple[Call, Call]:
    """Sequences that lie one behind the other."""
    module = _module("models.llama.triton_kernel.context_flashattention_nopad")
    begins = stubs.starts(lengths)
    q = stubs.normal(begins[-1], QUERY_HEADS, DIM, seed=1)
    k = stubs.normal(begins[-1], KEY_HEADS, DIM, seed=2)
    v = stubs.normal(begins[-1], KEY_HEADS, DIM, seed=3)
    first, sizes = stubs.ints(begins[:-1]), stubs.ints(lengths)

    def call() -> list[torch.Tensor]:
        out = torch.empty_like(q)
        module.context_attention_fwd_no_prompt_cache(q, k, v, out, first, sizes, max(lengths))
        return [out]

    return call, lambda: [stubs.attention_of_each(q, k, v, begins, SCALE, True)]


@case("lightllm")
def latent_attention_prefill(lengths: Sequence[int] = (1024, 2048), heads: int = 16) -> tuple[Call, Call]:
    """DeepSeek's attention of 128 columns and 64 that turn with the position, which all heads share in the keys."""
    module = _module("models.deepseek2.triton_kernel.context_flashattention_nopad_with_v")
    begins = stubs.starts(lengths)
    total = begins[-1]
    q, q_turned = stubs.normal(total, heads, DIM, seed=1), stubs.normal(total, heads, 64, seed=2)
    k, k_turned = stubs.normal(total, heads, DIM, seed=3), stubs.normal(total, 1, 64, seed=4)
    v = stubs.normal(total, heads, DIM, seed=5)
    scale = (DIM + 64) ** -0.5
    first, sizes, before = stubs.ints(begins[:-1]), stubs.ints(lengths), stubs.ints([0] * len(lengths))

    def call() -> list[torch.Tensor]:
        out = torch.empty_like(q)
        module.context_attention_fwd_with_v(
            q, q_turned, k, k_turned, v, out, first, first, sizes, before, max(lengths), scale
        )
        return [out]

    def reference() -> list[torch.Tensor]:
        queries = torch.cat([q, q_turned], -1)
        keys = torch.cat([k, k_turned.expand(-1, heads, -1)], -1)
        return [stubs.attention_of_each(queries, keys, v, begins, scale, True)]

    return call, reference


@case("lightllm", tolerance=2e-2)
def image_attention(images: int = 8, length: int = 1025, heads: int = 16, dim: int = 64) -> tuple[Call, Call]:
    """An encoder of images, where every token sees all of its image."""
    module = _module("models.vit.triton_kernel.flashattention_nopad")
    begins = stubs.starts([length] * images)
    q, k, v = (stubs.normal(begins[-1], heads, dim, seed=seed) for seed in (1, 2, 3))
    places = stubs.ints(begins)

    def call() -> list[torch.Tensor]:
        out = torch.empty_like(q)
        module.flash_attention_fwd(q, k, v, out, places, length)
        return [out]

    return call, lambda: [stubs.attention_of_each(q, k, v, begins, dim**-0.5, False)]


@case("lightllm")
def decode_attention(count: int = 64, shortest: int = 1000, step: int = 17) -> tuple[Call, Call]:
    """A token of each sequence, four query heads to each head of keys."""
    module = _module("models.llama.triton_kernel.gqa_decode_flashattention_nopad")
    cache = _cache([shortest + step * number for number in range(count)])
    q = stubs.normal(count, QUERY_HEADS, DIM, seed=7)
    sizes = stubs.ints(cache.lengths)

    def call() -> list[torch.Tensor]:
        out = torch.empty_like(q)
        module.gqa_decode_attention_fwd(q, cache.k, cache.v, out, cache.table, cache.rows, sizes)
        return [out]

    return call, lambda: [_reference(q, [1] * count, cache)]


@case("lightllm")
def decode_attention_split(count: int = 16, shortest: int = 3000, step: int = 101) -> tuple[Call, Call]:
    """The same where each sequence is split into parts of 128 tokens."""
    module = _module("models.llama.triton_kernel.gqa_flash_decoding")
    cache = _cache([shortest + step * number for number in range(count)])
    q = stubs.normal(count, QUERY_HEADS, DIM, seed=7)
    state = SimpleNamespace(
        batch_size=count,
        max_len_in_batch=max(cache.lengths),
        req_manager=SimpleNamespace(req_to_token_indexs=cache.table),
        b_req_idx=cache.rows,
        b_seq_len=stubs.ints(cache.lengths),
    )

    def call() -> list[torch.Tensor]:
        out = torch.empty_like(q)
        module.gqa_token_decode_attention_flash_decoding(q, state, QUERY_HEADS, DIM, cache.k, cache.v, out=out)
        return [out]

    return call, lambda: [_reference(q, [1] * count, cache)]


@case("lightllm", tolerance=3e-2)
def fused_experts(
    tokens: int = 512, experts: int = 32, choices: int = 4, hidden: int = 2048, inner: int = 1024
) -> tuple[Call, Call]:
    """A whole layer of experts in bf16: the order of tokens, both products, the gate, and the sum."""
    module = _module("common.fused_moe.grouped_fused_moe")
    weights, chosen = stubs.routing(tokens, experts, choices)
    x = stubs.normal(tokens, hidden, seed=1)
    up = stubs.normal(experts, 2 * inner, hidden, scale=hidden**-0.5, seed=3)
    down = stubs.normal(experts, hidden, inner, scale=inner**-0.5, seed=4)

    def call() -> list[torch.Tensor]:
        return [module.fused_experts_impl(x, up, down, weights, chosen)]

    def reference() -> list[torch.Tensor]:
        gate, value = stubs.expert_products(x.repeat_interleave(choices, 0), up, chosen).chunk(2, -1)
        each = stubs.expert_products(torch.nn.functional.silu(gate) * value, down, chosen)
        return [(each * weights.flatten()[:, None].double()).view(tokens, choices, hidden).sum(1)]

    return call, reference


@case("lightllm")
def block_scaled_float8(m: int = 2048, n: int = 4096, k: int = 4096) -> tuple[Call, Call]:
    """A product in 8 bits with a scale for each block of 128."""
    module = _module("common.quantization.triton_quant.fp8.fp8w8a8_block_gemm_kernel")
    left, right = stubs.float8(m, k, seed=1), stubs.float8(n, k, seed=2)
    left_scales = stubs.uniform(m, k // 128, low=0.5, high=1.5, seed=3)
    right_scales = stubs.uniform(n // 128, k // 128, low=0.01, high=0.03, seed=4)

    def call() -> list[torch.Tensor]:
        out = stubs.empty(m, n)
        return [module.w8a8_block_fp8_matmul(left, right.T, left_scales, right_scales.T, out, (128, 128))]

    def reference() -> list[torch.Tensor]:
        return [stubs.blocks(left, left_scales, 1, 128) @ stubs.blocks(right, right_scales, 128, 128).T]

    return call, reference


@case("lightllm")
def matmul_int8(m: int = 2048, n: int = 4096, k: int = 4096) -> tuple[Call, Call]:
    """A product of integers with a scale for each row and each column, among many tiles the fastest."""
    module = _module("common.basemodel.triton_kernel.quantize_gemm_int8")
    left = stubs.integers(-127, 128, m, k, dtype=torch.int8, seed=1)
    right = stubs.integers(-127, 128, n, k, dtype=torch.int8, seed=2).T
    rows = stubs.uniform(m, low=0.0001, high=0.0003, seed=5)
    columns = stubs.uniform(n, low=0.01, high=0.03, seed=6)

    def call() -> list[torch.Tensor]:
        return [module.matmul_int8(left, rows, right, columns)]

    def reference() -> list[torch.Tensor]:
        return [(left.double() * rows.double()[:, None]) @ (right.double() * columns.double())]

    return call, reference


@case("lightllm")
def matmul_int4(m: int = 128, n: int = 4096, k: int = 4096, group: int = 128) -> tuple[Call, Call]:
    """Weights of 4 bits in groups of 128 with offsets, fp16."""
    module = _module("common.basemodel.triton_kernel.dequantize_gemm_int4")
    x = stubs.normal(m, k, dtype=torch.float16, seed=1)
    packed = stubs.integers(-(2**31), 2**31, k // 8, n, seed=2)
    offsets = stubs.integers(-(2**31), 2**31, k // group, n // 8, seed=3)
    scales = stubs.uniform(k // group, n, low=0.001, high=0.003, seed=4).half()

    def call() -> list[torch.Tensor]:
        return [module.matmul_dequantize_int4_s2(x, packed, scales, offsets, group)]

    def reference() -> list[torch.Tensor]:
        shifts = 4 * stubs.ints(range(8))
        whole = ((packed[:, None, :] >> shifts[None, :, None]) & 15).flatten(0, 1)
        zero = ((offsets[:, :, None] >> shifts) & 15).flatten(1).repeat_interleave(group, 0)
        return [x.double() @ ((whole - zero).double() * scales.double().repeat_interleave(group, 0))]

    return call, reference
