"""Layer of experts (MoE): each token goes through the MLPs of K of E experts, Y = Σ_j p_j · W2_e (silu(W1_e x) ∘ (V1_e x)).

X is [T, H]; the weights of gate and up projection are one tensor, W1 of [E, 2I, H], the down projection is W2 of
[E, H, I], all float16 or bfloat16. Pairs of token and expert are sorted by expert, and each expert's are filled up to
whole tiles, so that a tile of rows has one expert: `sorted_ids` has the pairs (token · K + j; T · K where there is none),
`expert_ids` the expert of each tile, `num_padded` how many sorted pairs there are. Rows are gathered by these indices.
"""

import triton
import triton.language as tl


@triton.jit
def expert_gemm(
    a_ptr,
    b_ptr,
    c_ptr,
    weight_ptr,
    sorted_ids_ptr,
    expert_ids_ptr,
    num_padded_ptr,
    N,
    K,
    num_pairs,
    stride_am,
    stride_be,
    stride_bn,
    stride_cm,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    TOP_K: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    pid = tl.program_id(0)
    num_padded = tl.load(num_padded_ptr)
    num_m, num_n = tl.cdiv(num_padded, BLOCK_M), tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * num_n
    first_m = pid // in_group * GROUP_M
    group_rows = min(num_m - first_m, GROUP_M)
    tile_m = first_m + pid % in_group % group_rows
    tile_n = pid % in_group // group_rows
    if tile_m * BLOCK_M >= num_padded:
        return
    pairs = tl.load(sorted_ids_ptr + tile_m * BLOCK_M + tl.arange(0, BLOCK_M))
    exists = pairs < num_pairs
    expert = tl.load(expert_ids_ptr + tile_m).to(tl.int64)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + pairs[:, None] // TOP_K * stride_am + depth[None, :]
    b_ptrs = b_ptr + expert * stride_be + (columns % N)[None, :] * stride_bn + depth[:, None]

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=exists[:, None] & (depth[None, :] < K - k), other=0.0)
        b = tl.load(b_ptrs, mask=depth[:, None] < K - k, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K

    if WEIGHTED:
        acc *= tl.load(weight_ptr + pairs, mask=exists, other=0.0)[:, None]
    c_ptrs = c_ptr + pairs[:, None] * stride_cm + columns[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=exists[:, None] & (columns[None, :] < N))


def sort_pairs(experts, num_experts, block_m):
    """Sorted pairs, the expert of each tile, and the number of sorted pairs, for the experts [T, K] of each token."""
    import torch

    flat = experts.reshape(-1)
    order = flat.argsort(stable=True)
    counts = torch.bincount(flat, minlength=num_experts)
    padded = (counts + block_m - 1) // block_m * block_m
    starts, padded_starts = counts.cumsum(0) - counts, padded.cumsum(0) - padded
    most = flat.numel() + num_experts * (block_m - 1)
    most = (most + block_m - 1) // block_m * block_m
    sorted_ids = torch.full((most,), flat.numel(), device=experts.device, dtype=torch.int32)
    of = flat[order]
    sorted_ids[padded_starts[of] + torch.arange(flat.numel(), device=flat.device) - starts[of]] = order.int()
    tiles = torch.arange(most // block_m, device=flat.device) * block_m
    expert_ids = torch.searchsorted(padded.cumsum(0), tiles, right=True).clamp(max=num_experts - 1).int()
    return sorted_ids, expert_ids, padded.sum().int().reshape(1)


def multiply(a, b, weights, pairs, top_k, weighted, block_m=64, block_n=128, block_k=64, num_warps=4, num_stages=4):
    """Each sorted pair's row of a, [T or T · K, Kdim], times its expert's matrix of b, [E, N, Kdim]: [T · K, N]."""
    import torch

    sorted_ids, expert_ids, num_padded = pairs
    n, k = b.shape[1:]
    c = torch.empty((weights.numel(), n), device=a.device, dtype=a.dtype)
    expert_gemm[(expert_ids.numel() * triton.cdiv(n, block_n),)](
        a,
        b,
        c,
        weights,
        sorted_ids,
        expert_ids,
        num_padded,
        n,
        k,
        weights.numel(),
        a.stride(0),
        b.stride(0),
        b.stride(1),
        c.stride(0),
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        GROUP_M=8,
        TOP_K=top_k,
        WEIGHTED=weighted,
        num_warps=num_warps,
        num_stages=num_stages,
    )
    return c


def layer(x, w1, w2, weights, experts, **tiles):
    """Returns Y of [T, H] for CUDA tensors: x of [T, H], w1 of [E, 2I, H], w2 of [E, H, I], weights and experts of [T, K]."""
    import torch

    pairs = sort_pairs(experts, w1.shape[0], tiles.get("block_m", 64))
    both = multiply(x, w1, weights, pairs, experts.shape[1], False, **tiles)
    gate, up = both.chunk(2, 1)
    hidden = torch.nn.functional.silu(gate) * up
    down = multiply(hidden, w2, weights, pairs, 1, True, **tiles)
    return down.view(*experts.shape, -1).sum(1)


def reference(x, w1, w2, weights, experts):
    """The same in float64."""
    import torch

    y = torch.zeros(x.shape, device=x.device, dtype=torch.float64)
    for expert in range(w1.shape[0]):
        token, choice = (experts == expert).nonzero(as_tuple=True)
        gate, up = (x[token].double() @ w1[expert].double().T).chunk(2, 1)
        hidden = torch.nn.functional.silu(gate) * up
        y.index_add_(0, token, hidden @ w2[expert].double().T * weights[token, choice].double()[:, None])
    return y
