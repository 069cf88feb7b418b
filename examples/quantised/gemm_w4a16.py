"""Product with weights of 4 bits: C = A · W, where W[k, n] = (q[k, n] - z[k / G, n]) s[k / G, n].

A is [M, K] and C is [M, N], float16. q is packed along K, two to a byte of uint8 [K / 2, N]: the lower half of byte
[k, n] is q[2k, n], the upper one q[2k + 1, n]. Scales s and zeros z are [K / G, N], float16, for groups of G rows. Few rows
of A make few programs, so that several share the depth (split-K) and add up in float32.
"""

import triton
import triton.language as tl


@triton.jit
def gemm_w4a16(
    a_ptr,
    q_ptr,
    scale_ptr,
    zero_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_qk,
    stride_sk,
    stride_cm,
    GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SPLIT_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    packed = tl.arange(0, BLOCK_K // 2)
    in_m = rows[:, None] < M
    in_n = columns[None, :] < N

    share = tl.cdiv(tl.cdiv(K, BLOCK_K), SPLIT_K) * BLOCK_K
    first = tl.program_id(2) * share
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(first, min(first + share, K), BLOCK_K):
        a = tl.load(a_ptr + rows[:, None] * stride_am + (k + depth)[None, :], mask=in_m, other=0.0)
        q = tl.load(q_ptr + (k // 2 + packed)[:, None] * stride_qk + columns[None, :], mask=in_n, other=0)
        group = k // GROUP * stride_sk
        scale = tl.load(scale_ptr + group + columns[None, :], mask=in_n, other=0.0)
        zero = tl.load(zero_ptr + group + columns[None, :], mask=in_n, other=0.0)
        # [K / 2, N, 2] to [K, N]: both halves of a byte stand one below the other.
        both = tl.join(q & 0xF, q >> 4).permute(0, 2, 1).reshape(BLOCK_K, BLOCK_N)
        w = (both.to(tl.float16) - zero) * scale
        acc = tl.dot(a, w, acc)

    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :]
    if SPLIT_K == 1:
        tl.store(c_ptrs, acc.to(tl.float16), mask=in_m & in_n)
    else:
        tl.atomic_add(c_ptrs, acc, mask=in_m & in_n, sem="relaxed")


def gemm(a, q, scale, zero, block_n=128, block_k=128, num_warps=4, num_stages=4):
    """Returns C of [M, N] for CUDA tensors: a of [M, K], q of [K / 2, N], scale and zero of [K / G, N]."""
    import torch

    (m, k), n = a.shape, q.shape[1]
    block_m = max(16, min(128, triton.next_power_of_2(m)))
    split_k = 4 if m <= 64 else 1
    c = torch.zeros((m, n), device=a.device, dtype=torch.float32 if split_k > 1 else a.dtype)
    gemm_w4a16[(triton.cdiv(m, block_m), triton.cdiv(n, block_n), split_k)](
        a,
        q,
        scale,
        zero,
        c,
        m,
        n,
        k,
        a.stride(0),
        q.stride(0),
        scale.stride(0),
        c.stride(0),
        GROUP=k // scale.shape[0],
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        SPLIT_K=split_k,
        num_warps=num_warps,
        num_stages=num_stages,
    )
    return c.to(a.dtype)


def reference(a, q, scale, zero):
    """The same in float64."""
    import torch

    whole = torch.stack((q & 0xF, q >> 4), 1).reshape(-1, q.shape[1]).double()
    group = whole.shape[0] // scale.shape[0]
    scale, zero = (one.double().repeat_interleave(group, 0) for one in (scale, zero))
    return a.double() @ ((whole - zero) * scale)
