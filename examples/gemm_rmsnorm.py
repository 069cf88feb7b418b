"""RMS norm and a product in one kernel: Y = (X / √(mean(X²) + ε)) · Wᵀ, the mean over a row of X.

X is [M, K], the weights W are [N, K] with those of the norm multiplied into
their columns, Y is [M, N], all float16 and row-major; sums are kept in float32.
A row's factor is known at the end of the loop, and is the same for the whole row
of the product, so that the dot takes X as it is.
"""

import triton
import triton.language as tl


@triton.jit
def gemm_rmsnorm(
    x_desc,
    w_desc,
    y_desc,
    epsilon,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    row = tl.program_id(0) * BLOCK_M
    column = tl.program_id(1) * BLOCK_N

    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    squares = tl.zeros([BLOCK_M], dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        x = x_desc.load([row, k])
        w = w_desc.load([column, k])
        acc = tl.dot(x, w.T, acc)
        wide = x.to(tl.float32)
        squares += tl.sum(wide * wide, 1)

    acc = acc * tl.rsqrt(squares / K + epsilon)[:, None]
    y_desc.store([row, column], acc.to(tl.float16))


def norm_and_product(x, w, epsilon=1e-6, block_m=128, block_n=128, block_k=64):
    """Return the product of x, each row divided by its root mean square, and wᵀ, for float16 CUDA tensors."""
    import torch
    from triton.tools.tensor_descriptor import TensorDescriptor

    (m, k), (n, _) = x.shape, w.shape
    y = torch.empty((m, n), device=x.device, dtype=x.dtype)
    gemm_rmsnorm[(triton.cdiv(m, block_m), triton.cdiv(n, block_n))](
        TensorDescriptor.from_tensor(x, [block_m, block_k]),
        TensorDescriptor.from_tensor(w, [block_n, block_k]),
        TensorDescriptor.from_tensor(y, [block_m, block_n]),
        epsilon,
        k,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        num_warps=8,
        num_stages=3,
    )
    return y
