"""Product of 8-bit matrices with a scale for each row and each column: C = (A · Bᵀ) ∘ (s_A s_Bᵀ).

A is [M, K] and B is [N, K], float8 (e4m3) or int8, both row-major; C is [M, N], bfloat16. s_A is [M] and s_B is [N],
float32. The sum is kept in float32, or in int32 where the factors are integers. A scale for each tensor is this with
equal scales.
"""

import triton
import triton.language as tl


@triton.jit
def gemm_scaled(
    a_desc,
    b_desc,
    c_desc,
    a_scale_ptr,
    b_scale_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
):
    pid = tl.program_id(0)
    num_m, num_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * num_n
    first_m = pid // in_group * GROUP_M
    group_rows = min(num_m - first_m, GROUP_M)
    row = (first_m + pid % in_group % group_rows) * BLOCK_M
    column = pid % in_group // group_rows * BLOCK_N

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACCUMULATOR)
    for k in range(0, K, BLOCK_K):
        a = a_desc.load([row, k])
        b = b_desc.load([column, k])
        acc = tl.dot(a, b.T, acc, out_dtype=ACCUMULATOR)

    rows = row + tl.arange(0, BLOCK_M)
    columns = column + tl.arange(0, BLOCK_N)
    a_scale = tl.load(a_scale_ptr + rows, mask=rows < M, other=0.0)
    b_scale = tl.load(b_scale_ptr + columns, mask=columns < N, other=0.0)
    c = acc.to(tl.float32) * a_scale[:, None] * b_scale[None, :]
    c_desc.store([row, column], c.to(tl.bfloat16))


def gemm(a, b, a_scale, b_scale, block_m=128, block_n=256, block_k=128, num_warps=8, num_stages=3):
    """Returns C of [M, N] for CUDA tensors: a of [M, K], b of [N, K], a_scale of [M], b_scale of [N]."""
    import torch
    from triton.tools.tensor_descriptor import TensorDescriptor

    (m, k), (n, _) = a.shape, b.shape
    c = torch.empty((m, n), device=a.device, dtype=torch.bfloat16)
    gemm_scaled[(triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)](
        TensorDescriptor.from_tensor(a, [block_m, block_k]),
        TensorDescriptor.from_tensor(b, [block_n, block_k]),
        TensorDescriptor.from_tensor(c, [block_m, block_n]),
        a_scale,
        b_scale,
        m,
        n,
        k,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        GROUP_M=8,
        ACCUMULATOR=tl.int32 if a.dtype == torch.int8 else tl.float32,
        num_warps=num_warps,
        num_stages=num_stages,
    )
    return c


def reference(a, b, a_scale, b_scale):
    """The same in float64."""
    return (a.double() @ b.double().T) * a_scale.double()[:, None] * b_scale.double()
