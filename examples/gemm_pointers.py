"""Matrix multiplication through pointers and masks: C = A · B.

A is [M, K], B is [K, N] and C is [M, N], all float16 and row-major; the sum is
kept in float32. The tiles are those of `gemm_tma.py`, but the kernel forms the
addresses itself: a block of pointers for each operand, advanced every trip, and
masks where a tile hangs over the edge.
"""

import triton
import triton.language as tl


@triton.jit
def gemm_pointers(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_a,
    stride_b,
    stride_c,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)

    a_ptrs = a_ptr + rows[:, None] * stride_a + depth[None, :]
    b_ptrs = b_ptr + depth[:, None] * stride_b + columns[None, :]
    in_m = rows[:, None] < M
    in_n = columns[None, :] < N

    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=in_m & (depth[None, :] < K - k), other=0.0)
        b = tl.load(b_ptrs, mask=in_n & (depth[:, None] < K - k), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_b

    c_ptrs = c_ptr + rows[:, None] * stride_c + columns[None, :]
    tl.store(c_ptrs, acc.to(tl.float16), mask=in_m & in_n)


def gemm(a, b, block_m=128, block_n=128, block_k=64):
    """Return a · b for two float16 CUDA tensors, a of [M, K] and b of [K, N]."""
    import torch

    (m, k), (_, n) = a.shape, b.shape
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    gemm_pointers[(triton.cdiv(m, block_m), triton.cdiv(n, block_n))](
        a,
        b,
        c,
        m,
        n,
        k,
        a.stride(0),
        b.stride(0),
        c.stride(0),
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        num_warps=8,
        num_stages=3,
    )
    return c
