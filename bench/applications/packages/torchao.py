"""torchao: products of 8-bit integers and floats, and of sparse blocks."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import torch

from bench.applications.case import Call, case
from bench.applications.packages import stubs


@functools.cache
def _prepare() -> None:
    """Stand-ins for what torchao's kernels import but do not need."""
    stubs.bare("torchao")
    stubs.stub("torchao.float8.config", e4m3_dtype=torch.float8_e4m3fn)


def _module(name: str) -> Any:
    """A module of torchao."""
    _prepare()
    return importlib.import_module(f"torchao.{name}")


def _bytes(m: int, n: int, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random integers of 8 bits, rows times columns."""
    left = stubs.integers(-127, 128, m, k, dtype=torch.int8, seed=1)
    return left, stubs.integers(-127, 128, n, k, dtype=torch.int8, seed=2).T


def _tiles() -> Any:
    """One of the tiles among which torchao's own search chooses."""
    import triton

    sizes = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}
    return triton.Config(sizes, num_stages=4, num_warps=8)


@case("torchao", tolerance=1e-6)
def int_matmul(m: int = 2048, n: int = 4096, k: int = 4096) -> tuple[Call, Call]:
    """A product of integers, exact."""
    module = _module("kernel.intmm_triton")
    left, right = _bytes(m, n, k)
    config = _tiles()

    def call() -> list[torch.Tensor]:
        return [module.int_matmul_kernel(left, right, stubs.empty(m, n, dtype=torch.int32), config)]

    return call, lambda: [left.double() @ right.double()]


@case("torchao")
def int_scaled_matmul(m: int = 2048, n: int = 4096, k: int = 4096) -> tuple[Call, Call]:
    """The same with a scale for each row, to bf16."""
    module = _module("kernel.intmm_triton")
    left, right = _bytes(m, n, k)
    scales = stubs.uniform(m, 1, low=0.0001, high=0.0003, seed=3).bfloat16()
    config = _tiles()

    def call() -> list[torch.Tensor]:
        return [module.int_scaled_matmul_kernel(left, right, scales, stubs.empty(m, n), config)]

    return call, lambda: [(left.double() @ right.double()) * scales.double()]


@case("torchao")
def scaled_int8_mm(m: int = 2048, n: int = 4096, k: int = 4096) -> tuple[Call, Call]:
    """A product of integers as in training, with a scale for each row and each column."""
    module = _module("prototype.quantized_training.int8_mm")
    left, right = _bytes(m, n, k)
    rows = stubs.uniform(m, low=0.01, high=0.03, seed=3).bfloat16()
    columns = stubs.uniform(n, low=0.01, high=0.03, seed=4).bfloat16()

    def call() -> list[torch.Tensor]:
        return [module.scaled_int8_mm_cuda(left, right, rows, columns)]

    return call, lambda: [(left.double() @ right.double()) * rows.double()[:, None] * columns.double()]


def _columns(values: torch.Tensor) -> torch.Tensor:
    """The same matrix, stored by columns."""
    return values.T.contiguous().T


@case("torchao")
def fp8_gemm_1x128_128x128(m: int = 4096, n: int = 4096, k: int = 4096) -> tuple[Call, Call]:
    """Training's product of 8-bit floats: scales of rows by 128 and of blocks of 128."""
    module = _module("prototype.blockwise_fp8_training.kernels")
    left, right = stubs.float8(m, k, seed=1), stubs.float8(n, k, seed=2).T
    left_scales = _columns(stubs.uniform(m, k // 128, low=0.5, high=1.5, seed=3))
    right_scales = _columns(stubs.uniform(k // 128, n // 128, low=0.01, high=0.03, seed=4))

    def call() -> list[torch.Tensor]:
        run = module.triton_fp8_gemm_1x128_128x128
        return [run(left, right, left_scales, right_scales, 128, torch.bfloat16)]

    def reference() -> list[torch.Tensor]:
        return [stubs.blocks(left, left_scales, 1, 128) @ stubs.blocks(right, right_scales, 128, 128)]

    return call, reference


@case("torchao")
def fp8_gemm_1x128_128x1(m: int = 4096, n: int = 4096, k: int = 4096) -> tuple[Call, Call]:
    """The same for the gradient of weights: scales of rows by 128 and of columns by 128."""
    module = _module("prototype.blockwise_fp8_training.kernels")
    left, right = stubs.float8(m, k, seed=1), stubs.float8(n, k, seed=2).T
    left_scales = _columns(stubs.uniform(m, k // 128, low=0.5, high=1.5, seed=3))
    right_scales = stubs.uniform(k // 128, n, low=0.01, high=0.03, seed=4)

    def call() -> list[torch.Tensor]:
        run = module.triton_fp8_gemm_1x128_128x1
        return [run(left, right, left_scales, right_scales, 128, torch.bfloat16)]

    def reference() -> list[torch.Tensor]:
        return [stubs.blocks(left, left_scales, 1, 128) @ stubs.blocks(right, right_scales, 128, 1)]

    return call, reference


@case("torchao")
def blockwise_fp8_gemm(m: int = 2048, n: int = 4096, k: int = 4096) -> tuple[Call, Call]:
    """DeepSeek's product of 8-bit floats for inference."""
    module = _module("kernel.blockwise_quantization")
    left, right = stubs.float8(m, k, seed=1), stubs.float8(n, k, seed=2)
    left_scales = stubs.uniform(m, k // 128, low=0.5, high=1.5, seed=3)
    right_scales = stubs.uniform(n // 128, k // 128, low=0.01, high=0.03, seed=4)

    def call() -> list[torch.Tensor]:
        return [module.blockwise_fp8_gemm(left, left_scales, right, right_scales)]

    def reference() -> list[torch.Tensor]:
        return [stubs.blocks(left, left_scales, 1, 128) @ stubs.blocks(right, right_scales, 128, 128).T]

    return call, reference


@case("torchao")
def bsr_dense_addmm(m: int = 4096, n: int = 2048, k: int = 4096, block: int = 64) -> tuple[Call, Call]:
    """A matrix of which half the blocks are zero, times a dense one, plus a bias."""
    module = _module("kernel.bsr_triton_ops")
    kept = stubs.uniform(m // block, k // block, low=0.0, high=1.0, seed=1) < 0.5
    dense = stubs.normal(m, k, scale=k**-0.5, seed=2)
    dense = dense * kept.repeat_interleave(block, 0).repeat_interleave(block, 1)
    sparse = dense.to_sparse_bsr((block, block))
    other, bias = stubs.normal(k, n, seed=3), stubs.normal(m, n, seed=4)

    def call() -> list[torch.Tensor]:
        return [module.bsr_dense_addmm(bias, sparse, other)]

    return call, lambda: [dense.double() @ other.double() + bias.double()]


@case("torchao")
def mixed_mm(m: int = 256, n: int = 4096, k: int = 4096, group: int = 128) -> tuple[Call, Call]:
    """HQQ's product with weights of 4 bits in groups, fp16."""
    module = _module("prototype.hqq.mixed_mm")
    whole = stubs.integers(0, 16, k, n, dtype=torch.uint8, seed=1)
    packed = _columns(module.pack_2xint4(whole))
    x = stubs.normal(m, k, dtype=torch.float16, seed=2)
    scales = _columns(stubs.uniform(k // group, n, low=0.001, high=0.003, seed=3).half())
    offsets = _columns(stubs.uniform(k // group, n, low=0.0, high=15.0, seed=4).half())

    def call() -> list[torch.Tensor]:
        return [module.triton_mixed_mm(x, packed, scales, offsets, group_size=group)]

    def reference() -> list[torch.Tensor]:
        weights = whole.double() - offsets.double().repeat_interleave(group, 0)
        return [x.double() @ (weights * scales.double().repeat_interleave(group, 0))]

    return call, reference
