"""Products of groups of rows, one matrix for each group: C[o_g : o_g+1] = A[o_g : o_g+1] · B_gᵀ.

A is [M, K], B is [G, N, K] and C is [M, N], bfloat16 or float16, row-major. `ends` is [G], int32: the row after the last of each
group. A fixed number of programs go through all tiles of all groups, so that groups of any size keep all multiprocessors
busy.
"""

import triton
import triton.language as tl


@triton.jit
def gemm_grouped(
    a_ptr,
    b_ptr,
    c_ptr,
    ends_ptr,
    N,
    K,
    stride_am,
    stride_bg,
    stride_bn,
    stride_cm,
    GROUPS: tl.constexpr,
    PROGRAMS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    num_n = tl.cdiv(N, BLOCK_N)
    tile = tl.program_id(0)
    first_tile = 0
    start = 0
    for group in range(GROUPS):
        end = tl.load(ends_ptr + group)
        tiles = tl.cdiv(end - start, BLOCK_M) * num_n
        while tile < first_tile + tiles:
            rows = start + (tile - first_tile) // num_n * BLOCK_M + tl.arange(0, BLOCK_M)
            columns = (tile - first_tile) % num_n * BLOCK_N + tl.arange(0, BLOCK_N)
            depth = tl.arange(0, BLOCK_K)
            in_m, in_n = rows[:, None] < end, columns[None, :] < N
            a_ptrs = a_ptr + rows[:, None] * stride_am + depth[None, :]
            b_ptrs = b_ptr + group * stride_bg + columns[None, :] * stride_bn + depth[:, None]
            acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for k in range(0, K, BLOCK_K):
                a = tl.load(a_ptrs, mask=in_m & (depth[None, :] < K - k), other=0.0)
                b = tl.load(b_ptrs, mask=in_n & (depth[:, None] < K - k), other=0.0)
                acc = tl.dot(a, b, acc)
                a_ptrs += BLOCK_K
                b_ptrs += BLOCK_K
            tl.store(c_ptr + rows[:, None] * stride_cm + columns[None, :], acc.to(c_ptr.dtype.element_ty), mask=in_m & in_n)
            tile += PROGRAMS
        first_tile += tiles
        start = end


def gemm(a, b, ends, block_m=128, block_n=256, block_k=64, num_warps=8, num_stages=4):
    """Returns C of [M, N] for CUDA tensors: a of [M, K], b of [G, N, K], ends of [G]."""
    import torch

    (m, k), (groups, n, _) = a.shape, b.shape
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    programs = torch.cuda.get_device_properties(a.device).multi_processor_count
    gemm_grouped[(programs,)](
        a,
        b,
        c,
        ends,
        n,
        k,
        a.stride(0),
        b.stride(0),
        b.stride(1),
        c.stride(0),
        GROUPS=groups,
        PROGRAMS=programs,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        num_warps=num_warps,
        num_stages=num_stages,
    )
    return c


def reference(a, b, ends):
    """The same in float64."""
    import torch

    bounds = [0, *ends.tolist()]
    return torch.cat([a[low:high].double() @ one.double().T for low, high, one in zip(bounds, bounds[1:], b)])
