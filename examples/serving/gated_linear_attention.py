"""Gated linear attention (GLA), forward, in chunks of 64 tokens.

The recurrence of a head, with its state S of [K, V] and a gate g ≤ 0 for each of its rows:

    S_t = diag(exp(g_t)) S_{t-1} + k_t v_tᵀ,    o_t = scale · S_tᵀ q_t

q, k and g are [B, T, H, K], v and o are [B, T, H, V]; g is float32, the others are float16 or bfloat16. Within a chunk let
G be the running sum of g, float32 [B, T, H, K].

1. `gla_state` walks over the chunks and carries the state in float32, diag(exp(G_last)) S + Σ_i (exp(G_last - G_i) k_i) v_iᵀ;
   it stores the state before each chunk, h of [B, chunks, H, K, V];
2. `gla_output`: o = scale · (exp(G) q) h + A v, all chunks at once. A of [B, T, H, CHUNK] is given, what a chunk's tokens
   have of each other: A_ij = scale · Σ_k q_ik k_jk exp(G_ik - G_jk) for j ≤ i, otherwise 0.
"""

import triton
import triton.language as tl


@triton.jit
def gla_state(
    k_ptr,
    v_ptr,
    g_ptr,
    h_ptr,
    final_ptr,
    T,
    H: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_V: tl.constexpr,
):
    depth = tl.program_id(0) * BLOCK_K + tl.arange(0, BLOCK_K)
    columns = tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    batch, head = tl.program_id(2) // H, tl.program_id(2) % H
    num_chunks = tl.cdiv(T, CHUNK)
    tokens = tl.arange(0, CHUNK)

    first = (batch * T * H + head).to(tl.int64)
    transposed = first * K + depth[:, None] + tokens[None, :] * (H * K)
    k_ptrs, g_ptrs = k_ptr + transposed, g_ptr + transposed
    v_ptrs = v_ptr + first * V + tokens[:, None] * (H * V) + columns[None, :]
    in_state = depth[:, None] * V + columns[None, :]
    h_ptrs = h_ptr + (batch * num_chunks * H + head).to(tl.int64) * (K * V) + in_state

    state = tl.zeros([BLOCK_K, BLOCK_V], dtype=tl.float32)
    for chunk in range(0, num_chunks):
        start = chunk * CHUNK
        exists = start + tokens < T
        tl.store(h_ptrs, state.to(h_ptr.dtype.element_ty))

        k = tl.load(k_ptrs, mask=exists[None, :], other=0.0)
        v = tl.load(v_ptrs, mask=exists[:, None], other=0.0)
        g = tl.load(g_ptrs, mask=exists[None, :], other=0.0)
        last = tl.load(g_ptr + first * K + (min(start + CHUNK, T) - 1) * (H * K) + depth)
        k = (k.to(tl.float32) * tl.exp(last[:, None] - g)).to(v.dtype)
        state = tl.dot(k, v, state * tl.exp(last)[:, None])

        k_ptrs += CHUNK * H * K
        g_ptrs += CHUNK * H * K
        v_ptrs += CHUNK * H * V
        h_ptrs += H * K * V

    tl.store(final_ptr + tl.program_id(2).to(tl.int64) * (K * V) + in_state, state)


@triton.jit
def gla_output(
    q_ptr,
    v_ptr,
    g_ptr,
    a_ptr,
    h_ptr,
    o_ptr,
    scale,
    T,
    H: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_V: tl.constexpr,
):
    columns, chunk = tl.program_id(0) * BLOCK_V + tl.arange(0, BLOCK_V), tl.program_id(1)
    batch, head = tl.program_id(2) // H, tl.program_id(2) % H
    depth, tokens = tl.arange(0, BLOCK_K), tl.arange(0, CHUNK)
    exists = chunk * CHUNK + tokens < T

    first = ((batch * T + chunk * CHUNK) * H + head).to(tl.int64)
    rows = first * K + tokens[:, None] * (H * K) + depth[None, :]
    q_ptrs, g_ptrs = q_ptr + rows, g_ptr + rows
    state = ((batch * tl.num_programs(1) + chunk) * H + head).to(tl.int64)
    h_ptrs = h_ptr + state * (K * V) + depth[:, None] * V + columns[None, :]

    o = tl.zeros([CHUNK, BLOCK_V], dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        q = tl.load(q_ptrs, mask=exists[:, None], other=0.0)
        g = tl.load(g_ptrs, mask=exists[:, None], other=0.0)
        h = tl.load(h_ptrs)
        q = (q.to(tl.float32) * scale * tl.exp(g)).to(h.dtype)
        o = tl.dot(q, h, o)
        q_ptrs += BLOCK_K
        g_ptrs += BLOCK_K
        h_ptrs += BLOCK_K * V

    own = first * V + tokens[:, None] * (H * V) + columns[None, :]
    a_ptrs = a_ptr + first * CHUNK + tokens[:, None] * (H * CHUNK) + tokens[None, :]
    v = tl.load(v_ptr + own, mask=exists[:, None], other=0.0)
    a = tl.load(a_ptrs, mask=exists[:, None], other=0.0)
    o = tl.dot(a, v, o)
    tl.store(o_ptr + own, o.to(o_ptr.dtype.element_ty), mask=exists[:, None])


def prepare(q, k, g, scale, chunk=64):
    """A of [B, T, H, CHUNK], in the type of q, and the gates' running sums, for q, k and g of [B, T, H, K].

    It takes exp(G_i) q_i · exp(-G_j) k_j, which float64 holds as long as a chunk's gates add up to no less than -700.
    """
    import torch

    length = q.shape[1]
    sums = torch.empty_like(g)
    a = torch.empty((*q.shape[:3], chunk), device=q.device, dtype=q.dtype)
    for start in range(0, length, chunk):
        now = slice(start, min(start + chunk, length))
        sums[:, now] = g[:, now].cumsum(1)
        queries, keys, decay = (t[:, now].double().transpose(1, 2) for t in (q, k, sums))
        scores = (queries * decay.exp()) @ (keys * (-decay).exp()).transpose(-1, -2) * scale
        scores = torch.nn.functional.pad(scores.tril(), (0, chunk - scores.shape[-1]))
        a[:, now] = scores.transpose(1, 2).to(a.dtype)
    return a, sums


def gated_linear_attention(q, k, v, a, sums, scale, chunk=64, block_k=64, block_v=64):
    """Return o of [B, T, H, V] and the last state, float32 [B, H, K, V], for contiguous CUDA tensors, a and sums of `prepare`."""
    import torch

    batch, length, heads, dim_k = q.shape
    dim_v = v.shape[-1]
    num_chunks = triton.cdiv(length, chunk)
    h = torch.empty((batch, num_chunks, heads, dim_k, dim_v), device=q.device, dtype=q.dtype)
    final = torch.empty((batch, heads, dim_k, dim_v), device=q.device, dtype=torch.float32)
    o = torch.empty_like(v)
    sizes = dict(H=heads, K=dim_k, V=dim_v, CHUNK=chunk, BLOCK_K=block_k, BLOCK_V=block_v)
    gla_state[(triton.cdiv(dim_k, block_k), triton.cdiv(dim_v, block_v), batch * heads)](
        k, v, sums, h, final, length, **sizes, num_warps=4, num_stages=3
    )
    gla_output[(triton.cdiv(dim_v, block_v), num_chunks, batch * heads)](
        q, v, sums, a, h, o, scale, length, **sizes, num_warps=4, num_stages=3
    )
    return o, final


def reference(q, k, v, g, scale):
    """The recurrence in float64, a token at a time: o and the last state."""
    import torch

    batch, length, heads, dim_k = q.shape
    state = torch.zeros((batch, heads, dim_k, v.shape[-1]), device=q.device, dtype=torch.float64)
    o = torch.empty(v.shape, device=q.device, dtype=torch.float64)
    for t in range(length):
        state = state * g[:, t].double().exp()[..., None]
        state = state + k[:, t].double()[..., None] * v[:, t].double()[..., None, :]
        o[:, t] = (state * q[:, t].double()[..., None]).sum(-2) * scale
    return o, state
