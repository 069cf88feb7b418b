"""Gated delta rule, forward, in chunks of 64 tokens.

The recurrence of a head, with its state S of [K, V], gates g ≤ 0 and strengths β between 0 and 1:

    S_t = exp(g_t) (I - β_t k_t k_tᵀ) S_{t-1} + β_t k_t v_tᵀ,    o_t = scale · S_tᵀ q_t

q and k are [B, T, H, K], v and o are [B, T, H, V], float16 or bfloat16. Within a chunk let G be the running sum of g,
float32 [B, T, H]. The chunk's own corrections of each other are the inverse of a triangular matrix, and given, as in the
WY form of products of reflections: with L the strict lower triangle of β_i exp(G_i - G_j) k_i · k_j,

    u = (I + L)⁻¹ β v of [B, T, H, V],    w = (I + L)⁻¹ β exp(G) k of [B, T, H, K].

1. `delta_state` walks over the chunks and carries the state in float32: it stores the state before each chunk, h of
   [B, chunks, H, K, V], and what the chunk's tokens write, v' = u - w h, of [B, T, H, V];
2. `delta_output`: o_i = scale · (exp(G_i) · q_i h + Σ_{j ≤ i} exp(G_i - G_j) (q_i · k_j) v'_j), all chunks at once.
"""

import triton
import triton.language as tl


@triton.jit
def delta_state(
    k_ptr,
    w_ptr,
    u_ptr,
    g_ptr,
    h_ptr,
    v_new_ptr,
    final_ptr,
    T,
    H: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_V: tl.constexpr,
):
    first_column = tl.program_id(0) * BLOCK_V
    batch, head = tl.program_id(1) // H, tl.program_id(1) % H
    num_chunks = tl.cdiv(T, CHUNK)
    columns = first_column + tl.arange(0, BLOCK_V)
    depth, tokens = tl.arange(0, K), tl.arange(0, CHUNK)

    first = (batch * T * H + head).to(tl.int64)
    k_ptrs = k_ptr + first * K + depth[:, None] + tokens[None, :] * (H * K)
    w_ptrs = w_ptr + first * K + tokens[:, None] * (H * K) + depth[None, :]
    u_ptrs = u_ptr + first * V + tokens[:, None] * (H * V) + columns[None, :]
    v_new_ptrs = v_new_ptr + first * V + tokens[:, None] * (H * V) + columns[None, :]
    g_ptr += first
    in_state = depth[:, None] * V + columns[None, :]
    h_ptrs = h_ptr + (batch * num_chunks * H + head).to(tl.int64) * (K * V) + in_state

    state = tl.zeros([K, BLOCK_V], dtype=tl.float32)
    for chunk in range(0, num_chunks):
        start = chunk * CHUNK
        exists = start + tokens < T
        h = state.to(h_ptr.dtype.element_ty)
        tl.store(h_ptrs, h)

        w = tl.load(w_ptrs, mask=exists[:, None], other=0.0)
        u = tl.load(u_ptrs, mask=exists[:, None], other=0.0)
        v_new = u.to(tl.float32) - tl.dot(w, h)
        tl.store(v_new_ptrs, v_new.to(v_new_ptr.dtype.element_ty), mask=exists[:, None])

        g = tl.load(g_ptr + (start + tokens) * H, mask=exists, other=0.0)
        last = tl.load(g_ptr + (min(start + CHUNK, T) - 1) * H)
        v_new = v_new * tl.exp(last - g)[:, None]
        k = tl.load(k_ptrs, mask=exists[None, :], other=0.0)
        state = tl.dot(k, v_new.to(k.dtype), state * tl.exp(last))

        k_ptrs += CHUNK * H * K
        w_ptrs += CHUNK * H * K
        u_ptrs += CHUNK * H * V
        v_new_ptrs += CHUNK * H * V
        h_ptrs += H * K * V

    tl.store(final_ptr + tl.program_id(1).to(tl.int64) * (K * V) + in_state, state)


@triton.jit
def delta_output(
    q_ptr,
    k_ptr,
    v_new_ptr,
    h_ptr,
    g_ptr,
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
    first_column, chunk = tl.program_id(0) * BLOCK_V, tl.program_id(1)
    batch, head = tl.program_id(2) // H, tl.program_id(2) % H
    columns = first_column + tl.arange(0, BLOCK_V)
    depth, tokens = tl.arange(0, BLOCK_K), tl.arange(0, CHUNK)
    exists = chunk * CHUNK + tokens < T

    first = ((batch * T + chunk * CHUNK) * H + head).to(tl.int64)
    q_ptrs = q_ptr + first * K + tokens[:, None] * (H * K) + depth[None, :]
    k_ptrs = k_ptr + first * K + tokens[None, :] * (H * K) + depth[:, None]
    state = ((batch * tl.num_programs(1) + chunk) * H + head).to(tl.int64)
    h_ptrs = h_ptr + state * (K * V) + depth[:, None] * V + columns[None, :]

    o = tl.zeros([CHUNK, BLOCK_V], dtype=tl.float32)
    scores = tl.zeros([CHUNK, CHUNK], dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        q = tl.load(q_ptrs, mask=exists[:, None], other=0.0)
        k = tl.load(k_ptrs, mask=exists[None, :], other=0.0)
        h = tl.load(h_ptrs)
        o = tl.dot(q, h, o)
        scores = tl.dot(q, k, scores)
        q_ptrs += BLOCK_K
        k_ptrs += BLOCK_K
        h_ptrs += BLOCK_K * V

    g = tl.load(g_ptr + first + tokens * H, mask=exists, other=0.0)
    o = o * tl.exp(g)[:, None]
    # A later token's decay would be above 1 and may overflow, so it is chosen before the exponential.
    seen = tokens[:, None] >= tokens[None, :]
    scores = scores * tl.exp(tl.where(seen, g[:, None] - g[None, :], float("-inf")))
    own = first * V + tokens[:, None] * (H * V) + columns[None, :]
    v_new = tl.load(v_new_ptr + own, mask=exists[:, None], other=0.0)
    o = tl.dot(scores.to(v_new.dtype), v_new, o) * scale
    tl.store(o_ptr + own, o.to(o_ptr.dtype.element_ty), mask=exists[:, None])


def prepare(k, v, g, beta, chunk=64):
    """w, u and the gates' running sums for k of [B, T, H, K], v of [B, T, H, V], g and beta of [B, T, H]."""
    import torch

    length = k.shape[1]
    fill = -length % chunk

    def chunks(tensor):
        """Padded to whole chunks, in float32: [B, H, chunks, CHUNK, ...]."""
        padded = torch.nn.functional.pad(tensor.float(), (0, 0) * (tensor.dim() - 2) + (0, fill))
        return padded.unflatten(1, (-1, chunk)).movedim(3, 1)

    def tokens(tensor):
        return tensor.movedim(1, 3).flatten(1, 2)[:, :length].contiguous()

    keys, values, strengths = chunks(k), chunks(v), chunks(beta)[..., None]
    sums = chunks(g).cumsum(-1)
    decay = (sums[..., :, None] - sums[..., None, :]).tril().exp()
    below = (strengths * (keys @ keys.transpose(-1, -2)) * decay).tril(-1)
    right = torch.cat([strengths * sums.exp()[..., None] * keys, strengths * values], -1)
    both = torch.linalg.solve_triangular(below, right, upper=False, unitriangular=True)
    w, u = both.split([k.shape[-1], v.shape[-1]], -1)
    return tokens(w).to(k.dtype), tokens(u).to(v.dtype), tokens(sums)


def gated_delta_rule(q, k, w, u, sums, scale, chunk=64, block_v=64):
    """Return o of [B, T, H, V] and the last state, float32 [B, H, K, V], for contiguous CUDA tensors, from `prepare`."""
    import torch

    batch, length, heads, dim_k = q.shape
    dim_v = u.shape[-1]
    num_chunks = triton.cdiv(length, chunk)
    h = torch.empty((batch, num_chunks, heads, dim_k, dim_v), device=q.device, dtype=q.dtype)
    v_new, o = torch.empty_like(u), torch.empty_like(u)
    final = torch.empty((batch, heads, dim_k, dim_v), device=q.device, dtype=torch.float32)
    sizes = dict(H=heads, K=dim_k, V=dim_v, CHUNK=chunk, BLOCK_V=block_v)
    delta_state[(triton.cdiv(dim_v, block_v), batch * heads)](
        k, w, u, sums, h, v_new, final, length, **sizes, num_warps=4, num_stages=2
    )
    delta_output[(triton.cdiv(dim_v, block_v), num_chunks, batch * heads)](
        q, k, v_new, h, sums, o, scale, length, **sizes, BLOCK_K=64, num_warps=4, num_stages=3
    )
    return o, final


def reference(q, k, v, g, beta, scale):
    """The recurrence in float64, a token at a time: o and the last state."""
    import torch

    batch, length, heads, dim_k = q.shape
    state = torch.zeros((batch, heads, dim_k, v.shape[-1]), device=q.device, dtype=torch.float64)
    o = torch.empty(v.shape, device=q.device, dtype=torch.float64)
    for t in range(length):
        key = k[:, t].double()[..., None]
        state = state * g[:, t].double().exp()[..., None, None]
        change = (v[:, t].double() - (state * key).sum(-2)) * beta[:, t].double()[..., None]
        state = state + key * change[..., None, :]
        o[:, t] = (state * q[:, t].double()[..., None]).sum(-2) * scale
    return o, state
