"""Matrix multiplication through tensor descriptors (TMA): C = A · Bᵀ.

A is [M, K], B is [N, K] and C is [M, N], all float16 and row-major; the sum is
kept in float32. One program computes one tile of C. Its loop has two loads and
one dot, so this is the smallest loop that wants a software pipeline.
"""

import triton
import triton.language as tl


@triton.jit
def gemm_tma(
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

    c_desc.store([row, column], acc.to(tl.float16))


def gemm(a, b, block_m=128, block_n=128, block_k=64):
    """Return a · bᵀ for two float16 CUDA tensors, a of [M, K] and b of [N, K]."""
    import torch
    from triton.tools.tensor_descriptor import TensorDescriptor

    (m, k), (n, _) = a.shape, b.shape
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    gemm_tma[(triton.cdiv(m, block_m), triton.cdiv(n, block_n))](
        TensorDescriptor.from_tensor(a, [block_m, block_k]),
        TensorDescriptor.from_tensor(b, [block_n, block_k]),
        TensorDescriptor.from_tensor(c, [block_m, block_n]),
        k,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        num_warps=8,
        num_stages=3,
    )
    return c
