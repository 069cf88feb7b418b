"""Mamba-2's state space, forward, in chunks of CHUNK tokens.

The recurrence of a head, with its state S of [P, N]:

    S_t = exp(dt_t · A) S_{t-1} + dt_t · x_t B_tᵀ,    y_t = S_t C_t + D · x_t

x and y are [batch, L, H, P]; B and C are [batch, L, G, N], and H / G heads share a group; all float16 or bfloat16. dt is
[batch, H, L], positive, A and D are [H], float32. Within a chunk let `a` be the running sum of dt · A, [batch, H, L]. Then:

1. `chunk_state`: what a chunk adds to the state, Σ_l exp(a_last - a_l) · dt_l · x_l B_lᵀ, float32 [batch, chunks, H, P, N];
2. `state_passing`: the state before each chunk, in the type of x, a scan over chunks without a dot;
3. `chunk_scan`: y_l = exp(a_l) · S C_l + Σ_{m ≤ l} (C_l · B_m) exp(a_l - a_m) dt_m x_m + D · x_l, with the products C Bᵀ of a
   chunk [batch, chunks, G, CHUNK, CHUNK] from a batched matrix multiplication that all heads of a group share.
"""

import triton
import triton.language as tl


@triton.jit
def chunk_state(
    x_ptr,
    b_ptr,
    dt_ptr,
    a_ptr,
    states_ptr,
    length,
    P,
    N,
    group_size,
    stride_xb,
    stride_xl,
    stride_xh,
    stride_bb,
    stride_bl,
    stride_bg,
    stride_dtb,
    stride_dth,
    stride_sb,
    stride_sc,
    stride_sh,
    CHUNK: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    num_n = tl.cdiv(N, BLOCK_N)
    rows = tl.program_id(0) // num_n * BLOCK_P + tl.arange(0, BLOCK_P)
    columns = tl.program_id(0) % num_n * BLOCK_N + tl.arange(0, BLOCK_N)
    num_chunks = tl.cdiv(length, CHUNK)
    batch, chunk = tl.program_id(1) // num_chunks, tl.program_id(1) % num_chunks
    head = tl.program_id(2)
    tokens = tl.arange(0, BLOCK_K)
    first = chunk * CHUNK
    limit = min(CHUNK, length - first)

    x_ptr += batch * stride_xb + first * stride_xl + head * stride_xh
    b_ptr += batch * stride_bb + first * stride_bl + head // group_size * stride_bg
    dt_ptr += batch * stride_dtb + head * stride_dth + first
    a_ptr += batch * stride_dtb + head * stride_dth + first
    x_ptrs = x_ptr + rows[:, None] + tokens[None, :] * stride_xl
    b_ptrs = b_ptr + tokens[:, None] * stride_bl + columns[None, :]
    last = tl.load(a_ptr + limit - 1)

    acc = tl.zeros([BLOCK_P, BLOCK_N], dtype=tl.float32)
    for k in range(0, limit, BLOCK_K):
        left = tokens < limit - k
        x = tl.load(x_ptrs, mask=(rows[:, None] < P) & left[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=left[:, None] & (columns[None, :] < N), other=0.0)
        a = tl.load(a_ptr + k + tokens, mask=left, other=0.0)
        dt = tl.load(dt_ptr + k + tokens, mask=left, other=0.0)
        b = b.to(tl.float32) * (tl.exp(last - a) * dt)[:, None]
        acc += tl.dot(x, b.to(x.dtype))
        x_ptrs += BLOCK_K * stride_xl
        b_ptrs += BLOCK_K * stride_bl

    states_ptr += batch * stride_sb + chunk * stride_sc + head * stride_sh
    tl.store(states_ptr + rows[:, None] * N + columns[None, :], acc, mask=(rows[:, None] < P) & (columns[None, :] < N))


@triton.jit
def state_passing(
    states_ptr,
    a_ptr,
    before_ptr,
    final_ptr,
    length,
    num_chunks,
    size,
    stride_ab,
    stride_ah,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The scan over chunks for BLOCK of a state's `size` = P · N elements."""
    elements = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    batch, head, num_heads = tl.program_id(1), tl.program_id(2), tl.num_programs(2)
    a_ptr += batch * stride_ab + head * stride_ah
    in_state = elements < size
    state = tl.zeros([BLOCK], dtype=tl.float32)
    for chunk in range(0, num_chunks):
        offset = ((batch * num_chunks + chunk) * num_heads + head).to(tl.int64) * size + elements
        tl.store(before_ptr + offset, state.to(before_ptr.dtype.element_ty), mask=in_state)
        decay = tl.exp(tl.load(a_ptr + min((chunk + 1) * CHUNK, length) - 1))
        state = state * decay + tl.load(states_ptr + offset, mask=in_state, other=0.0)
    tl.store(final_ptr + (batch * num_heads + head).to(tl.int64) * size + elements, state, mask=in_state)


@triton.jit
def chunk_scan(
    cb_ptr,
    x_ptr,
    c_ptr,
    dt_ptr,
    a_ptr,
    before_ptr,
    d_ptr,
    y_ptr,
    length,
    P,
    group_size,
    stride_xb,
    stride_xl,
    stride_xh,
    stride_cb,
    stride_cl,
    stride_cg,
    stride_dtb,
    stride_dth,
    stride_cbb,
    stride_cbc,
    stride_cbg,
    stride_sb,
    stride_sc,
    stride_sh,
    N: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    num_p = tl.cdiv(P, BLOCK_P)
    first_row = tl.program_id(0) // num_p * BLOCK_M
    rows = first_row + tl.arange(0, BLOCK_M)
    columns = tl.program_id(0) % num_p * BLOCK_P + tl.arange(0, BLOCK_P)
    num_chunks = tl.cdiv(length, CHUNK)
    batch, chunk = tl.program_id(1) // num_chunks, tl.program_id(1) % num_chunks
    head = tl.program_id(2)
    group = head // group_size
    depth, tokens = tl.arange(0, N), tl.arange(0, BLOCK_K)
    first = chunk * CHUNK
    limit = min(CHUNK, length - first)

    x_ptr += batch * stride_xb + first * stride_xl + head * stride_xh
    c_ptr += batch * stride_cb + first * stride_cl + group * stride_cg
    cb_ptr += batch * stride_cbb + chunk * stride_cbc + group * stride_cbg
    dt_ptr += batch * stride_dtb + head * stride_dth + first
    a_ptr += batch * stride_dtb + head * stride_dth + first
    before_ptr += batch * stride_sb + chunk * stride_sc + head * stride_sh
    in_rows, in_columns = rows[:, None] < limit, columns[None, :] < P
    a_row = tl.load(a_ptr + rows, mask=rows < limit, other=0.0)

    # What came before the chunk.
    c = tl.load(c_ptr + rows[:, None] * stride_cl + depth[None, :], mask=in_rows, other=0.0)
    before = tl.load(before_ptr + columns[None, :] * N + depth[:, None], mask=in_columns, other=0.0)
    acc = tl.dot(c, before) * tl.exp(a_row)[:, None]

    # The chunk's own tokens, up to the diagonal.
    cb_ptrs = cb_ptr + rows[:, None] * CHUNK + tokens[None, :]
    x_ptrs = x_ptr + tokens[:, None] * stride_xl + columns[None, :]
    for k in range(0, min(first_row + BLOCK_M, limit), BLOCK_K):
        left = tokens < limit - k
        cb = tl.load(cb_ptrs, mask=in_rows & left[None, :], other=0.0).to(tl.float32)
        a = tl.load(a_ptr + k + tokens, mask=left, other=0.0)
        dt = tl.load(dt_ptr + k + tokens, mask=left, other=0.0)
        # A later token's decay would be above 1 and may overflow, so it is chosen before the exponential.
        seen = rows[:, None] >= k + tokens[None, :]
        decay = tl.exp(tl.where(seen, a_row[:, None] - a[None, :], float("-inf")))
        x = tl.load(x_ptrs, mask=left[:, None] & in_columns, other=0.0)
        acc += tl.dot((cb * decay * dt[None, :]).to(x.dtype), x)
        cb_ptrs += BLOCK_K
        x_ptrs += BLOCK_K * stride_xl

    own = tl.load(x_ptr + rows[:, None] * stride_xl + columns[None, :], mask=in_rows & in_columns, other=0.0)
    acc += own.to(tl.float32) * tl.load(d_ptr + head)
    y_ptr += batch * stride_xb + first * stride_xl + head * stride_xh
    y_ptrs = y_ptr + rows[:, None] * stride_xl + columns[None, :]
    tl.store(y_ptrs, acc.to(y_ptr.dtype.element_ty), mask=in_rows & in_columns)


def decays(dt, a, chunk=256):
    """The running sums of dt · a within chunks, float32 [batch, H, L], for dt of [batch, H, L] and a of [H]."""
    import torch

    length = dt.shape[-1]
    steps = torch.nn.functional.pad(dt * a[:, None], (0, -length % chunk))
    return steps.unflatten(-1, (-1, chunk)).cumsum(-1).flatten(-2)[..., :length].contiguous()


def products(b, c, chunk=256):
    """C Bᵀ of each chunk, [batch, chunks, G, CHUNK, CHUNK] in the type of b, for b and c of [batch, L, G, N]."""
    import torch

    fill = -b.shape[1] % chunk
    b, c = (torch.nn.functional.pad(t, (0, 0, 0, 0, 0, fill)).unflatten(1, (-1, chunk)).transpose(2, 3) for t in (b, c))
    return c @ b.transpose(-1, -2)


def state_space(x, dt, a, b, c, d, chunk=256):
    """Return y of [batch, L, H, P] and the last state, float32 [batch, H, P, N], for contiguous CUDA tensors."""
    import torch

    batch, length, heads, p = x.shape
    groups, n = b.shape[2:]
    num_chunks = triton.cdiv(length, chunk)
    sums, cb = decays(dt, a, chunk), products(b, c, chunk)
    states = torch.empty((batch, num_chunks, heads, p, n), device=x.device, dtype=torch.float32)
    before = torch.empty_like(states, dtype=x.dtype)
    final = torch.empty((batch, heads, p, n), device=x.device, dtype=torch.float32)
    y = torch.empty_like(x)

    block_p, block_n = 64, 128
    chunk_state[(triton.cdiv(p, block_p) * triton.cdiv(n, block_n), batch * num_chunks, heads)](
        x,
        b,
        dt,
        sums,
        states,
        length,
        p,
        n,
        heads // groups,
        *x.stride()[:3],
        *b.stride()[:3],
        *dt.stride()[:2],
        *states.stride()[:3],
        CHUNK=chunk,
        BLOCK_P=block_p,
        BLOCK_N=block_n,
        BLOCK_K=64,
        num_warps=4,
        num_stages=3,
    )
    state_passing[(triton.cdiv(p * n, 1024), batch, heads)](
        states,
        sums,
        before,
        final,
        length,
        num_chunks,
        p * n,
        *sums.stride()[:2],
        CHUNK=chunk,
        BLOCK=1024,
        num_warps=4,
    )
    block_m = 128
    chunk_scan[(triton.cdiv(chunk, block_m) * triton.cdiv(p, block_p), batch * num_chunks, heads)](
        cb,
        x,
        c,
        dt,
        sums,
        before,
        d,
        y,
        length,
        p,
        heads // groups,
        *x.stride()[:3],
        *c.stride()[:3],
        *dt.stride()[:2],
        *cb.stride()[:3],
        *before.stride()[:3],
        N=n,
        CHUNK=chunk,
        BLOCK_M=block_m,
        BLOCK_P=block_p,
        BLOCK_K=64,
        num_warps=4,
        num_stages=3,
    )
    return y, final


def reference(x, dt, a, b, c, d):
    """The recurrence in float64, a token at a time: y and the last state."""
    import torch

    batch, length, heads, p = x.shape
    size = heads // b.shape[2]
    state = torch.zeros((batch, heads, p, b.shape[3]), device=x.device, dtype=torch.float64)
    y = torch.empty(x.shape, device=x.device, dtype=torch.float64)
    a, d = a.double(), d.double()
    for t in range(length):
        step, now = dt[:, :, t].double(), x[:, t].double()
        into, out = (m[:, t].double().repeat_interleave(size, 1) for m in (b, c))
        state.mul_((step * a).exp()[..., None, None])
        state += (step[..., None] * now)[..., None] * into[..., None, :]
        y[:, t] = (state @ out[..., None])[..., 0] + d[:, None] * now
    return y, state
