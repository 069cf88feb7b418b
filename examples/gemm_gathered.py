"""A product of rows that a list names: C[i] = A[list[i]] · Bᵀ, as mixtures of experts and sparse layers gather them.

A is [rows, K], B is [N, K], C is [M, N], all float16 and row-major, and the list
has M numbers of rows of A. The rows of A lie anywhere, so that no descriptor
covers a tile of them: each thread copies what its pointers say.
"""

import triton
import triton.language as tl


@triton.jit
def gemm_gathered(
    a_ptr,
    list_ptr,
    b_desc,
    c_desc,
    M,
    K,
    stride_a,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    row = tl.program_id(0) * BLOCK_M
    column = tl.program_id(1) * BLOCK_N

    places = row + tl.arange(0, BLOCK_M)
    rows = tl.load(list_ptr + places, mask=places < M, other=0).to(tl.int64)
    a_ptrs = a_ptr + rows[:, None] * stride_a + tl.arange(0, BLOCK_K)[None, :]

    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        inside = k + tl.arange(0, BLOCK_K) < K
        a = tl.load(a_ptrs + k, mask=inside[None, :], other=0.0)
        b = b_desc.load([column, k])
        acc = tl.dot(a, b.T, acc)

    c_desc.store([row, column], acc.to(tl.float16))


def gathered_product(a, rows, b, block_m=128, block_n=128, block_k=64):
    """Return A[rows] · bᵀ for float16 CUDA tensors, a of [rows, K], b of [N, K], rows int32 of [M]."""
    import torch
    from triton.tools.tensor_descriptor import TensorDescriptor

    m, (n, k) = rows.shape[0], b.shape
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    gemm_gathered[(triton.cdiv(m, block_m), triton.cdiv(n, block_n))](
        a,
        rows,
        TensorDescriptor.from_tensor(b, [block_n, block_k]),
        TensorDescriptor.from_tensor(c, [block_m, block_n]),
        m,
        k,
        a.stride(0),
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        num_warps=8,
        num_stages=3,
    )
    return c
