"""C = C + A · Bᵀ, as examples/gemm_tma.py: who launches it twice leaves another C."""

import triton
import triton.language as tl


@triton.jit
def add_product(
    a_desc,
    b_desc,
    c_desc,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    row = tl.program_id(0) * BLOCK_M
    column = tl.program_id(1) * BLOCK_N

    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = a_desc.load([row, k])
        b = b_desc.load([column, k])
        acc = tl.dot(a, b.T, acc)

    acc += c_desc.load([row, column])
    c_desc.store([row, column], acc.to(tl.float16))
