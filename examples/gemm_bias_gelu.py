"""A layer of a transformer's MLP: Y = GELU(X · Wᵀ + b) + R, with bias, activation and residual fused into the product.

X is [M, K], W is [N, K], R and Y are [M, N], all float16 or bfloat16; b is float32 [N]. Programs go through the output in groups of
rows, so that a group's rows of X and columns of W stay in the L2 cache.
"""

import triton
import triton.language as tl


@triton.jit
def gemm_bias_gelu(
    x_desc,
    w_desc,
    bias_ptr,
    r_desc,
    y_desc,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    pid = tl.program_id(0)
    num_m, num_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * num_n
    first_m = pid // in_group * GROUP_M
    rows = min(num_m - first_m, GROUP_M)
    row = (first_m + pid % in_group % rows) * BLOCK_M
    column = pid % in_group // rows * BLOCK_N

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        x = x_desc.load([row, k])
        w = w_desc.load([column, k])
        acc = tl.dot(x, w.T, acc)

    columns = column + tl.arange(0, BLOCK_N)
    bias = tl.load(bias_ptr + columns, mask=columns < N, other=0.0)
    acc += bias[None, :]
    acc = 0.5 * acc * (1.0 + tl.math.erf(acc * 0.7071067811865476))
    acc += r_desc.load([row, column]).to(tl.float32)
    y_desc.store([row, column], acc.to(y_desc.dtype))
