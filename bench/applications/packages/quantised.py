"""Examples of our own of what production multiplies: 8-bit floats and integers, weights of 4 bits, experts, groups."""

from __future__ import annotations

import functools

import torch

from bench.applications.case import Call, case
from bench.applications.packages import stubs

ROWS = 1024
"""Rows of which float64 computes the product."""


def _scaled(m: int, n: int, k: int, per_row: bool) -> tuple[Call, Call, dict[str, Call]]:
    """8-bit floats with scales of rows and columns, or of tensors."""
    module = stubs.example("quantised.gemm_scaled")
    a, b = stubs.float8(m, k, seed=1), stubs.float8(n, k, seed=2)
    s_a, s_b = (stubs.uniform(rows, low=0.5, high=1.5, seed=seed) for rows, seed in ((m, 3), (n, 4)))
    if not per_row:
        s_a, s_b = torch.full_like(s_a, 0.7), torch.full_like(s_b, 1.3)
    of_a, of_b = (s_a[:, None], s_b[None, :]) if per_row else (s_a[0], s_b[0])

    def cublas(fast: bool) -> list[torch.Tensor]:
        return [torch._scaled_mm(a, b.T, of_a, of_b, out_dtype=torch.bfloat16, use_fast_accum=fast)]

    peers = {"cuBLASLt": functools.partial(cublas, True), "cuBLASLt, exact sums": functools.partial(cublas, False)}
    return (
        lambda: [module.gemm(a, b, s_a, s_b)],
        lambda: [module.reference(a[:ROWS], b, s_a[:ROWS], s_b)],
        peers,
    )


def _integers(size: int) -> tuple[Call, Call, dict[str, Call]]:
    """8-bit integers with scales of rows and columns."""
    module = stubs.example("quantised.gemm_scaled")
    a, b = (stubs.integers(-127, 128, size, size, dtype=torch.int8, seed=seed) for seed in (1, 2))
    s_a, s_b = (stubs.uniform(size, low=0.001, high=0.003, seed=seed) for seed in (3, 4))
    # Without the scales, which torch would apply by a kernel more.
    peer = lambda: [torch._int_mm(a, b.T)]  # noqa: E731
    return lambda: [module.gemm(a, b, s_a, s_b)], lambda: [module.reference(a[:ROWS], b, s_a[:ROWS], s_b)], {"_int_mm alone": peer}


for size in (4096, 8192):
    case("quantised", f"fp8_rows_{size}")(functools.partial(_scaled, size, size, size, True))
    case("quantised", f"fp8_tensors_{size}")(functools.partial(_scaled, size, size, size, False))
    case("quantised", f"int8_{size}")(functools.partial(_integers, size))


def _blocks(m: int, n: int, k: int) -> tuple[Call, Call, dict[str, Call]]:
    """8-bit floats with scales of 1 × 128 and 128 × 128 blocks."""
    module = stubs.example("quantised.gemm_block_scaled")
    a, b = stubs.float8(m, k, seed=1), stubs.float8(n, k, seed=2)
    s_a = stubs.uniform(m, k // 128, low=0.5, high=1.5, seed=3)
    s_b = stubs.uniform((n + 127) // 128, k // 128, low=0.01, high=0.03, seed=4)
    tiles = {"block_m": 64, "num_warps": 4} if m <= 64 else {}
    # cuBLASLt wants scales by columns.
    s_a_columns, s_b_columns = s_a.T.contiguous().T, s_b.contiguous().T

    def cublas() -> list[torch.Tensor]:
        return [torch._scaled_mm(a, b.T, s_a_columns, s_b_columns, out_dtype=torch.bfloat16)]

    return (
        lambda: [module.gemm(a, b, s_a, s_b, **tiles)],
        lambda: [module.reference(a[:ROWS], b, s_a[:ROWS], s_b)],
        {"cuBLASLt": cublas},
    )


SHAPES = [(4096, 4096, 4096), (8192, 8192, 8192)]
SHAPES += [(m, n, k) for n, k in ((2112, 7168), (24576, 1536), (7168, 16384), (4096, 7168)) for m in (64, 128, 4096)]
for m, n, k in SHAPES:
    case("quantised", f"fp8_blocks_{m}x{n}x{k}")(functools.partial(_blocks, m, n, k))


def _four_bits(m: int, size: int = 8192, group: int = 128) -> tuple[Call, Call]:
    """Weights of 4 bits, with scales and zeros for groups of rows."""
    module = stubs.example("quantised.gemm_w4a16")
    a = stubs.normal(m, size, dtype=torch.float16, seed=1)
    q = stubs.integers(0, 256, size // 2, size, dtype=torch.uint8, seed=2)
    scale = stubs.uniform(size // group, size, low=0.001, high=0.003, seed=3).half()
    zero = stubs.integers(0, 16, size // group, size, dtype=torch.int32, seed=4).half()
    return lambda: [module.gemm(a, q, scale, zero)], lambda: [module.reference(a, q, scale, zero)]


for m in (1, 16, 64, 256):
    case("quantised", f"w4a16_{m}")(functools.partial(_four_bits, m))


def _grouped(sizes: tuple[int, ...], n: int = 4096, k: int = 4096) -> tuple[Call, Call, dict[str, Call]]:
    """A product for each group of rows."""
    module = stubs.example("quantised.gemm_grouped")
    a, b = stubs.normal(sum(sizes), k, seed=1), stubs.normal(len(sizes), n, k, scale=k**-0.5, seed=2)
    ends = torch.tensor(sizes, device=stubs.DEVICE).cumsum(0).int()

    def grouped() -> list[torch.Tensor]:
        return [torch._grouped_mm(a, b.transpose(1, 2), offs=ends)]

    return lambda: [module.gemm(a, b, ends)], lambda: [module.reference(a, b, ends)], {"_grouped_mm": grouped}


case("quantised", "grouped_even")(functools.partial(_grouped, (1024,) * 8))
case("quantised", "grouped_skewed")(functools.partial(_grouped, (4096, 2048, 1024, 512, 256, 128, 96, 32)))


def _experts(tokens: int, num_experts: int, top_k: int, hidden: int, inner: int) -> tuple[Call, Call, dict[str, Call]]:
    """The two products of a layer of experts; routing and activation are made beforehand and between, by torch."""
    module = stubs.example("quantised.fused_moe")
    x = stubs.normal(tokens, hidden, seed=1)
    w1 = stubs.normal(num_experts, 2 * inner, hidden, scale=hidden**-0.5, seed=2)
    w2 = stubs.normal(num_experts, hidden, inner, scale=inner**-0.5, seed=3)
    scores = stubs.normal(tokens, num_experts, dtype=torch.float32, seed=4)
    weights, experts = scores.softmax(1).topk(top_k, 1)
    block = 16 if tokens * top_k < 16 * num_experts else 64 if tokens * top_k < 128 * num_experts else 128
    tiles = {"block_m": block, "num_warps": 8 if block == 128 else 4}
    pairs = module.sort_pairs(experts, num_experts, block)

    def call() -> list[torch.Tensor]:
        gate, up = module.multiply(x, w1, weights, pairs, top_k, False, **tiles).chunk(2, 1)
        hidden_rows = torch.nn.functional.silu(gate) * up
        down = module.multiply(hidden_rows, w2, weights, pairs, 1, True, **tiles)
        return [down.view(tokens, top_k, -1).sum(1)]

    order = experts.reshape(-1).argsort(stable=True)
    ends = torch.bincount(experts.reshape(-1), minlength=num_experts).cumsum(0).int()
    rows, back, by_pair = x[order // top_k], order.argsort(), weights.reshape(-1)[order, None]

    def grouped() -> list[torch.Tensor]:
        # Rows are gathered beforehand.
        gate, up = torch._grouped_mm(rows, w1.transpose(1, 2), offs=ends).chunk(2, 1)
        down = torch._grouped_mm(torch.nn.functional.silu(gate) * up, w2.transpose(1, 2), offs=ends) * by_pair
        return [down[back].view(tokens, top_k, -1).sum(1)]

    return call, lambda: [module.reference(x, w1, w2, weights, experts)], {"_grouped_mm": grouped}


for tokens in (1, 32, 512, 4096):
    # Qwen3-30B-A3B; an eighth of DeepSeek-V3's experts.
    case("quantised", f"moe_qwen3_{tokens}")(functools.partial(_experts, tokens, 128, 8, 2048, 768))
    case("quantised", f"moe_deepseek_{tokens}")(functools.partial(_experts, tokens, 32, 8, 7168, 2048))
