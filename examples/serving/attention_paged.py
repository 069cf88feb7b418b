"""Attention of decoding over paged keys and values: each sequence's newest token attends to the whole sequence.

Q and O are [B, HQ, D]. Keys and values lie in pages, K and V of [pages, PAGE, HK, D], all float16 or bfloat16; page n of
sequence b is `table[b, n]`, of [B, most pages], and b has `lengths[b]` tokens, both int32. GROUP = HQ / HK query heads share
a head of keys: they are the rows of one tile, filled up to 16, the fewest rows of a dot.

One token's attention is too little work for a GPU, so a sequence is split into parts. A program owns one part of one
head of keys and stores, in float32, its rows' outputs [B, HQ, parts, D] and base-2 log-sum-exps [B, HQ, parts]; a second
kernel weights the parts by these and adds them up.
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def attention_paged(
    q_ptr,
    k_ptr,
    v_ptr,
    table_ptr,
    lengths_ptr,
    part_ptr,
    lse_ptr,
    softmax_scale,
    stride_qb,
    stride_qh,
    stride_kp,
    stride_kt,
    stride_kh,
    stride_vp,
    stride_vt,
    stride_vh,
    stride_table,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PAGE: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    sequence, kv_head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    num_heads, num_parts = tl.num_programs(1) * GROUP, tl.num_programs(2)
    rows = tl.arange(0, BLOCK_H)
    exists = rows < GROUP
    heads = kv_head * GROUP + rows
    columns = tl.arange(0, HEAD_DIM)
    scale = softmax_scale * LOG2_E

    length = tl.load(lengths_ptr + sequence)
    per_part = tl.cdiv(tl.cdiv(length, num_parts), BLOCK_N) * BLOCK_N
    first = part * per_part
    stop = min(first + per_part, length)

    q_ptrs = q_ptr + sequence * stride_qb + heads[:, None] * stride_qh + columns[None, :]
    q = tl.load(q_ptrs, mask=exists[:, None], other=0.0)
    k_ptrs = k_ptr + kv_head * stride_kh + columns[:, None]
    v_ptrs = v_ptr + kv_head * stride_vh + columns[None, :]
    table_ptr += sequence * stride_table

    row_max = tl.full([BLOCK_H], float("-inf"), dtype=tl.float32)
    row_sum = tl.zeros([BLOCK_H], dtype=tl.float32)
    acc = tl.zeros([BLOCK_H, HEAD_DIM], dtype=tl.float32)
    for n in range(first, stop, BLOCK_N):
        keys = n + tl.arange(0, BLOCK_N)
        seen = keys < stop
        pages = tl.load(table_ptr + keys // PAGE, mask=seen, other=0).to(tl.int64)
        slots = keys % PAGE

        k = tl.load(k_ptrs + (pages * stride_kp + slots * stride_kt)[None, :], mask=seen[None, :], other=0.0)
        qk = tl.dot(q, k) * scale
        qk = tl.where(seen[None, :], qk, float("-inf"))
        new_max = tl.maximum(row_max, tl.max(qk, 1))
        p = tl.exp2(qk - new_max[:, None])
        alpha = tl.exp2(row_max - new_max)
        row_sum = row_sum * alpha + tl.sum(p, 1)
        row_max = new_max

        v = tl.load(v_ptrs + (pages * stride_vp + slots * stride_vt)[:, None], mask=seen[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])

    # A part behind the end of a short sequence has no keys: its log-sum-exp is -inf, and its output is not read.
    out = (sequence * num_heads + heads) * num_parts + part
    acc = acc / row_sum[:, None]
    tl.store(lse_ptr + out, row_max + tl.log2(row_sum), mask=exists)
    tl.store(part_ptr + out[:, None] * HEAD_DIM + columns[None, :], acc, mask=exists[:, None])


@triton.jit
def combine_parts(
    part_ptr,
    lse_ptr,
    o_ptr,
    num_parts,
    HEAD_DIM: tl.constexpr,
    PARTS: tl.constexpr,
):
    """Parts [B · HQ, num_parts, HEAD_DIM] to O of [B · HQ, HEAD_DIM]; PARTS is a power of two, at least num_parts."""
    row = tl.program_id(0)
    parts = tl.arange(0, PARTS)
    columns = tl.arange(0, HEAD_DIM)
    lse = tl.load(lse_ptr + row * num_parts + parts, mask=parts < num_parts, other=float("-inf"))
    weights = tl.exp2(lse - tl.max(lse, 0))
    part_ptrs = part_ptr + (row * num_parts + parts)[:, None] * HEAD_DIM + columns[None, :]
    part = tl.load(part_ptrs, mask=(lse > float("-inf"))[:, None], other=0.0)
    o = tl.sum(part * weights[:, None], 0) / tl.sum(weights, 0)
    tl.store(o_ptr + row * HEAD_DIM + columns, o.to(o_ptr.dtype.element_ty))


def choose_parts(batch, kv_heads, max_length, processors):
    """So many parts that there are about four programs for each multiprocessor, of 256 keys at least."""
    wanted = triton.next_power_of_2(triton.cdiv(4 * processors, batch * kv_heads))
    return max(1, min(wanted, triton.cdiv(max_length, 256), 128))


def attention(q, k, v, table, lengths, softmax_scale, parts=None, block_n=64):
    """Return O of [B, HQ, D] for CUDA tensors: q of [B, HQ, D], k and v of [pages, PAGE, HK, D], int32 table and lengths."""
    import torch

    batch, heads, dim = q.shape
    _, page, kv_heads, _ = k.shape
    if parts is None:
        processors = torch.cuda.get_device_properties(q.device).multi_processor_count
        parts = choose_parts(batch, kv_heads, table.shape[1] * page, processors)
    part = torch.empty((batch, heads, parts, dim), device=q.device, dtype=torch.float32)
    lse = torch.empty((batch, heads, parts), device=q.device, dtype=torch.float32)
    o = torch.empty((batch, heads, dim), device=q.device, dtype=q.dtype)
    group = heads // kv_heads
    attention_paged[(batch, kv_heads, parts)](
        q,
        k,
        v,
        table,
        lengths,
        part,
        lse,
        softmax_scale,
        *q.stride()[:2],
        *k.stride()[:3],
        *v.stride()[:3],
        table.stride(0),
        GROUP=group,
        HEAD_DIM=dim,
        PAGE=page,
        BLOCK_H=max(16, triton.next_power_of_2(group)),
        BLOCK_N=block_n,
        num_warps=4,
        num_stages=3,
    )
    combine_parts[(batch * heads,)](
        part,
        lse,
        o,
        parts,
        HEAD_DIM=dim,
        PARTS=triton.next_power_of_2(parts),
        num_warps=4,
    )
    return o


def gather(pages, table, length):
    """Keys or values of one sequence, [length, HK, D], by its row of the table."""
    return pages[table.long()].flatten(0, 1)[:length]


def reference(q, k, v, table, lengths, softmax_scale):
    """The same in float64, a sequence at a time."""
    import torch

    batch, heads, dim = q.shape
    o = torch.empty((batch, heads, dim), device=q.device, dtype=torch.float64)
    for sequence, length in enumerate(lengths.tolist()):
        keys, values = (gather(pages, table[sequence], length).double() for pages in (k, v))
        queries = q[sequence].double().view(k.shape[2], -1, dim)
        weights = (torch.einsum("hgd,nhd->hgn", queries, keys) * softmax_scale).softmax(-1)
        o[sequence] = torch.einsum("hgn,nhd->hgd", weights, values).reshape(heads, dim)
    return o
