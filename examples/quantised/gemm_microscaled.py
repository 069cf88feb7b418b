"""Product of microscaled matrices (OCP MX formats): C = Σ_g 2^(s_A,g + s_B,g - 254) (A_g · B_gᵀ) over blocks of 32 along K.

A is [M, K] in float8 (e4m3) and B is [N, K] in float8, or in floats of 4 bits (e2m1), two in a byte, the lower bits first;
C is [M, N], float32. Scales are bytes, s_A of [M, K / 32] and s_B of [N, K / 32]: exponents of two with a bias of 127.
Hopper's tensor core knows no scales: operands are converted to bfloat16 there. K is a multiple of BLOCK_K.
"""

import triton
import triton.language as tl


@triton.jit
def gemm_microscaled(
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
    B_FORMAT: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rows_in, columns_in = rows % M, columns % N
    IN_A_BYTE: tl.constexpr = 2 if B_FORMAT == "e2m1" else 1
    depth = tl.arange(0, BLOCK_K)
    packed = tl.arange(0, BLOCK_K // IN_A_BYTE)
    blocks = tl.arange(0, BLOCK_K // 32)
    a_ptrs = a_ptr + rows_in[:, None] * stride_am + depth[None, :]
    b_ptrs = b_ptr + columns_in[None, :] * stride_bn + packed[:, None]
    a_scale_ptrs = a_scale_ptr + rows_in[:, None] * stride_as + blocks[None, :]
    b_scale_ptrs = b_scale_ptr + columns_in[:, None] * stride_bs + blocks[None, :]

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K // BLOCK_K):
        a, b = tl.load(a_ptrs), tl.load(b_ptrs)
        a_scale, b_scale = tl.load(a_scale_ptrs), tl.load(b_scale_ptrs)
        acc = tl.dot_scaled(a, a_scale, "e4m3", b, b_scale, B_FORMAT, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K // IN_A_BYTE
        a_scale_ptrs += BLOCK_K // 32
        b_scale_ptrs += BLOCK_K // 32

    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :]
    tl.store(c_ptrs, acc, mask=(rows[:, None] < M) & (columns[None, :] < N))


def gemm(a, b, a_scale, b_scale, block_m=128, block_n=128, block_k=128, num_warps=8, num_stages=3, kernel=gemm_microscaled):
    """Returns C of [M, N] for CUDA tensors: a of [M, K], b of [N, K] in float8 or of [N, K / 2] bytes, and scales in bytes."""
    import torch

    (m, k), n = a.shape, b.shape[0]
    c = torch.empty((m, n), device=a.device, dtype=torch.float32)
    kernel[(triton.cdiv(m, block_m), triton.cdiv(n, block_n))](
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
        B_FORMAT="e2m1" if b.shape[1] != k else "e4m3",
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        num_warps=num_warps,
        num_stages=num_stages,
    )
    return c


def reference(a, b, a_scale, b_scale):
    """The same in float64."""
    import torch

    def scaled(x, scale):
        if x.shape[1] != 32 * scale.shape[1]:
            nibbles = torch.stack((x & 15, x >> 4), -1).flatten(1).long()
            values = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], device=x.device, dtype=torch.float64)
            x = torch.cat((values, -values))[nibbles]
        return x.double() * torch.exp2(scale.double() - 127).repeat_interleave(32, 1)

    return scaled(a, a_scale) @ scaled(b, b_scale).T
