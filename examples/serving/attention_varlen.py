"""Attention of the prefill, causal, for sequences of different lengths that lie one behind the other without padding.

Q and O are [T, HQ, D], K and V are [T, HK, D], float16 or bfloat16; T counts the tokens of all sequences, and sequence b
has those from `cu_seqlens[b]` up to `cu_seqlens[b + 1]`, of int32 [B + 1]. HQ / HK query heads share a head of keys. One
program owns BLOCK_M queries of one head of one sequence; those with the most keys come first.

With WINDOW, a query sees that many keys, its own among them; with SOFT_CAP, scores go through cap · tanh(score / cap)
before the softmax, as in Gemma 2. Both are off when they are 0. Without a window, keys before the diagonal block need no
mask, and the walk over the keys splits into two loops; with one, which is short, every block is masked.
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def attend(
    q,
    k_ptrs,
    v_ptrs,
    acc,
    row_sum,
    row_max,
    queries,
    start,
    stop,
    length,
    stride_kt,
    stride_vt,
    softmax_scale,
    BLOCK_N: tl.constexpr,
    WINDOW: tl.constexpr,
    SOFT_CAP: tl.constexpr,
    MASKED: tl.constexpr,
):
    """Attend to the keys start..stop of the sequence whose first keys and values the pointers show."""
    for n in range(start, stop, BLOCK_N):
        keys = n + tl.arange(0, BLOCK_N)
        if MASKED:
            k = tl.load(k_ptrs + n * stride_kt, mask=(keys < length)[:, None], other=0.0)
        else:
            k = tl.load(k_ptrs + n * stride_kt)
        qk = tl.dot(q, k.T)
        if SOFT_CAP > 0:
            # tanh(x) = 2 · sigmoid(2x) - 1
            x = qk * (2.0 * softmax_scale / SOFT_CAP)
            qk = (2.0 * tl.sigmoid(x) - 1.0) * (SOFT_CAP * LOG2_E)
        else:
            qk = qk * (softmax_scale * LOG2_E)
        if MASKED:
            distance = queries[:, None] - keys[None, :]
            seen = distance >= 0
            if WINDOW:
                seen = seen & (distance < WINDOW)
            qk = tl.where(seen, qk, float("-inf"))

        new_max = tl.maximum(row_max, tl.max(qk, 1))
        p = tl.exp2(qk - new_max[:, None])
        alpha = tl.exp2(row_max - new_max)
        row_sum = row_sum * alpha + tl.sum(p, 1)
        row_max = new_max

        acc = acc * alpha[:, None]
        if MASKED:
            v = tl.load(v_ptrs + n * stride_vt, mask=(keys < length)[:, None], other=0.0)
        else:
            v = tl.load(v_ptrs + n * stride_vt)
        acc = tl.dot(p.to(v.dtype), v, acc)
    return acc, row_sum, row_max


@triton.jit
def attention_varlen(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    cu_seqlens_ptr,
    softmax_scale,
    stride_qt,
    stride_qh,
    stride_kt,
    stride_kh,
    stride_vt,
    stride_vh,
    stride_ot,
    stride_oh,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    WINDOW: tl.constexpr,
    SOFT_CAP: tl.constexpr,
):
    first_query = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M
    head, sequence = tl.program_id(1), tl.program_id(2)
    first_token = tl.load(cu_seqlens_ptr + sequence).to(tl.int64)
    length = (tl.load(cu_seqlens_ptr + sequence + 1) - first_token).to(tl.int32)
    if first_query >= length:
        return

    queries = first_query + tl.arange(0, BLOCK_M)
    exists = queries < length
    columns = tl.arange(0, HEAD_DIM)
    keys = tl.arange(0, BLOCK_N)
    q_ptrs = q_ptr + first_token * stride_qt + head * stride_qh + queries[:, None] * stride_qt + columns[None, :]
    k_ptrs = k_ptr + first_token * stride_kt + head // GROUP * stride_kh + keys[:, None] * stride_kt + columns[None, :]
    v_ptrs = v_ptr + first_token * stride_vt + head // GROUP * stride_vh + keys[:, None] * stride_vt + columns[None, :]
    q = tl.load(q_ptrs, mask=exists[:, None], other=0.0)

    # Finite, since a query may see no key at all of the window's first block.
    row_max = tl.full([BLOCK_M], -1.0e30, dtype=tl.float32)
    row_sum = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    stop = min(first_query + BLOCK_M, length)
    if WINDOW:
        masked_start = max(first_query - WINDOW + 1, 0) // BLOCK_N * BLOCK_N
    else:
        masked_start = first_query // BLOCK_N * BLOCK_N
        acc, row_sum, row_max = attend(
            q, k_ptrs, v_ptrs, acc, row_sum, row_max, queries, 0, masked_start, length,
            stride_kt, stride_vt, softmax_scale, BLOCK_N, WINDOW, SOFT_CAP, MASKED=False,
        )  # fmt: skip
    acc, row_sum, row_max = attend(
        q, k_ptrs, v_ptrs, acc, row_sum, row_max, queries, masked_start, stop, length,
        stride_kt, stride_vt, softmax_scale, BLOCK_N, WINDOW, SOFT_CAP, MASKED=True,
    )  # fmt: skip

    acc = acc / row_sum[:, None]
    o_ptrs = o_ptr + first_token * stride_ot + head * stride_oh + queries[:, None] * stride_ot + columns[None, :]
    tl.store(o_ptrs, acc.to(o_ptr.dtype.element_ty), mask=exists[:, None])


def attention(q, k, v, cu_seqlens, max_length, softmax_scale, window=0, soft_cap=0.0, block_m=128, block_n=128):
    """Return O of [T, HQ, D] for CUDA tensors q of [T, HQ, D], k and v of [T, HK, D]; no sequence exceeds max_length."""
    import torch

    _, heads, dim = q.shape
    o = torch.empty_like(q)
    attention_varlen[(triton.cdiv(max_length, block_m), heads, len(cu_seqlens) - 1)](
        q,
        k,
        v,
        o,
        cu_seqlens,
        softmax_scale,
        *q.stride()[:2],
        *k.stride()[:2],
        *v.stride()[:2],
        *o.stride()[:2],
        GROUP=heads // k.shape[1],
        HEAD_DIM=dim,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        WINDOW=window,
        SOFT_CAP=soft_cap,
        num_warps=8,
        num_stages=2,
    )
    return o


def reference(q, k, v, cu_seqlens, softmax_scale, window=0, soft_cap=0.0):
    """The same in float64, a head of a sequence at a time."""
    import torch

    group = q.shape[1] // k.shape[1]
    o = torch.empty(q.shape, device=q.device, dtype=torch.float64)
    begins = cu_seqlens.tolist()
    for begin, end in zip(begins, begins[1:]):
        places = torch.arange(end - begin, device=q.device)
        distance = places[:, None] - places[None, :]
        hidden = distance < 0
        if window:
            hidden |= distance >= window
        for head in range(q.shape[1]):
            scores = q[begin:end, head].double() @ k[begin:end, head // group].double().T * softmax_scale
            if soft_cap:
                scores = soft_cap * (scores / soft_cap).tanh()
            weights = scores.masked_fill_(hidden, float("-inf")).softmax(-1)
            o[begin:end, head] = weights @ v[begin:end, head // group].double()
    return o
