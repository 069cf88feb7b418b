"""Product of float8 matrices with a scale for each block, as DeepSeek-V3 quantises: C = Σ_g s_A,g s_B,g (A_g · B_gᵀ).

A is [M, K] and B is [N, K], float8 (e4m3), row-major; C is [M, N], bfloat16. A has a scale for 128 elements of a row,
s_A of [M, K / 128], and B one for 128 rows by 128 columns, s_B of [N / 128, K / 128], both float32. The product of
each block of 128 along K is scaled and added in float32: the tensor core's own sums keep fewer bits.
"""

import triton
import triton.language as tl


@triton.jit
def gemm_block_scaled(
    a_ptr,
    b_ptr,
    c_ptr,
    a_scale_ptr,
    b_scale_ptr,
    M,
    N,
    K,
    stride_am,
    stride_bn,
    stride_cm,
    stride_as,
    stride_bs,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    pid = tl.program_id(0)
    num_m, num_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * num_n
    first_m = pid // in_group * GROUP_M
    group_rows = min(num_m - first_m, GROUP_M)
    tile_m = first_m + pid % in_group % group_rows
    tile_n = pid % in_group // group_rows

    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    rows_in, columns_in = rows % M, columns % N
    depth = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows_in[:, None] * stride_am + depth[None, :]
    b_ptrs = b_ptr + columns_in[None, :] * stride_bn + depth[:, None]
    a_scale_ptrs = a_scale_ptr + rows_in * stride_as
    b_scale_ptrs = b_scale_ptr + columns_in // 128 * stride_bs

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=depth[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=depth[:, None] < left, other=0.0)
        a_scale = tl.load(a_scale_ptrs + k)
        b_scale = tl.load(b_scale_ptrs + k)
        acc += tl.dot(a, b) * a_scale[:, None] * b_scale[None, :]
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K

    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :]
    tl.store(c_ptrs, acc.to(tl.bfloat16), mask=(rows[:, None] < M) & (columns[None, :] < N))


def gemm(a, b, a_scale, b_scale, block_m=128, block_n=128, num_warps=8, num_stages=4):
    """Returns C of [M, N] for CUDA tensors: a of [M, K], b of [N, K], a_scale of [M, K / 128], b_scale of [N / 128, K / 128]."""
    import torch

    (m, k), (n, _) = a.shape, b.shape
    c = torch.empty((m, n), device=a.device, dtype=torch.bfloat16)
    gemm_block_scaled[(triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)](
        a,
        b,
        c,
        a_scale,
        b_scale,
        m,
        n,
        k,
        a.stride(0),
        b.stride(0),
        c.stride(0),
        a_scale.stride(0),
        b_scale.stride(0),
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=128,
        GROUP_M=8,
        num_warps=num_warps,
        num_stages=num_stages,
    )
    return c


def reference(a, b, a_scale, b_scale):
    """The same in float64."""
    a = a.double() * a_scale.double().repeat_interleave(128, 1)
    b = b.double() * b_scale.double().repeat_interleave(128, 0)[: b.shape[0]].repeat_interleave(128, 1)
    return a @ b.T
