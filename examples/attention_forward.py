"""Flash attention, forward: O = softmax(scale · Q Kᵀ) V.

Q, K, V and O are float16 and seen as matrices of [batch · heads · length,
HEAD_DIM]. One program owns BLOCK_M queries of one head and walks over the keys
BLOCK_N at a time with the online softmax: `row_max` is the largest score seen
so far, `row_sum` the sum of the exponentials relative to it, and whatever was
accumulated before is scaled by `alpha` when the maximum grows. Exponentials are
to base 2, so the scale carries log2(e).

With CAUSAL, the keys before the diagonal block need no mask: the walk splits
into two loops, unmasked and then masked, that hand the accumulators over.

The base-2 log-sum-exp of every row is stored for the backward pass.
The length must be a multiple of both blocks.
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def attend(
    q,
    k_desc,
    v_desc,
    acc,
    row_sum,
    row_max,
    queries,
    first_row,
    start,
    stop,
    scale,
    BLOCK_N: tl.constexpr,
    MASKED: tl.constexpr,
):
    """Attend to the keys start..stop of the head whose rows begin at first_row."""
    for n in range(start, stop, BLOCK_N):
        k = k_desc.load([first_row + n, 0])
        qk = tl.dot(q, k.T)
        if MASKED:
            keys = n + tl.arange(0, BLOCK_N)
            qk = tl.where(queries[:, None] >= keys[None, :], qk, float("-inf"))

        new_max = tl.maximum(row_max, tl.max(qk, 1) * scale)
        p = tl.exp2(qk * scale - new_max[:, None])
        alpha = tl.exp2(row_max - new_max)
        row_sum = row_sum * alpha + tl.sum(p, 1)
        row_max = new_max

        acc = acc * alpha[:, None]
        v = v_desc.load([first_row + n, 0])
        acc = tl.dot(p.to(tl.float16), v, acc)
    return acc, row_sum, row_max


@triton.jit
def attention_forward(
    q_desc,
    k_desc,
    v_desc,
    o_desc,
    lse_ptr,
    softmax_scale,
    length,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    first_query = tl.program_id(0) * BLOCK_M
    first_row = tl.program_id(1) * length
    queries = first_query + tl.arange(0, BLOCK_M)
    scale = softmax_scale * LOG2_E

    row_max = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    row_sum = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    q = q_desc.load([first_row + first_query, 0])

    unmasked_end = first_query // BLOCK_N * BLOCK_N if CAUSAL else length
    acc, row_sum, row_max = attend(
        q, k_desc, v_desc, acc, row_sum, row_max, queries, first_row,
        0, unmasked_end, scale, BLOCK_N, MASKED=False,
    )  # fmt: skip
    if CAUSAL:
        acc, row_sum, row_max = attend(
            q, k_desc, v_desc, acc, row_sum, row_max, queries, first_row,
            unmasked_end, first_query + BLOCK_M, scale, BLOCK_N, MASKED=True,
        )  # fmt: skip

    acc = acc / row_sum[:, None]
    o_desc.store([first_row + first_query, 0], acc.to(tl.float16))
    tl.store(lse_ptr + first_row + queries, row_max + tl.log2(row_sum))


def attention(q, k, v, softmax_scale, causal=False, block_m=128, block_n=128):
    """Return O and the base-2 log-sum-exp for float16 CUDA tensors of [batch, heads, length, dim]."""
    import torch
    from triton.tools.tensor_descriptor import TensorDescriptor

    batch, heads, length, dim = q.shape
    o = torch.empty_like(q)
    lse = torch.empty((batch, heads, length), device=q.device, dtype=torch.float32)

    def tiles(tensor, rows):
        return TensorDescriptor.from_tensor(tensor.view(-1, dim), [rows, dim])

    attention_forward[(length // block_m, batch * heads)](
        tiles(q, block_m),
        tiles(k, block_n),
        tiles(v, block_n),
        tiles(o, block_m),
        lse,
        softmax_scale,
        length,
        HEAD_DIM=dim,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        CAUSAL=causal,
        num_warps=8,
        num_stages=2,
    )
    return o, lse
