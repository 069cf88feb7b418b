"""Flash attention, forward, as multi-head latent attention prefills it: O = softmax(scale · Q Kᵀ) V.

A row of Q and of K has 192 elements, 128 without a position and 64 that rotary
embeddings turned; a row of V has 128. Triton's tiles are powers of two, so that
a score is the sum of two dots. Q, K, V and O are float16 and seen as matrices of
[batch · heads · length, 192 or 128]; otherwise it is `attention_forward.py`.

The base-2 log-sum-exp of every row is stored for the backward pass.
The length must be a multiple of both blocks.
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def attention_mla(
    q_desc,
    q_rope_desc,
    k_desc,
    k_rope_desc,
    v_desc,
    o_desc,
    lse_ptr,
    softmax_scale,
    length,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    first_query = tl.program_id(0) * BLOCK_M
    first_row = tl.program_id(1) * length
    scale = softmax_scale * LOG2_E

    row_max = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    row_sum = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    q = q_desc.load([first_row + first_query, 0])
    q_rope = q_rope_desc.load([first_row + first_query, HEAD_DIM])

    for n in range(0, length, BLOCK_N):
        k = k_desc.load([first_row + n, 0])
        k_rope = k_rope_desc.load([first_row + n, HEAD_DIM])
        qk = tl.dot(q, k.T)
        qk = tl.dot(q_rope, k_rope.T, qk)

        new_max = tl.maximum(row_max, tl.max(qk, 1) * scale)
        p = tl.exp2(qk * scale - new_max[:, None])
        alpha = tl.exp2(row_max - new_max)
        row_sum = row_sum * alpha + tl.sum(p, 1)
        row_max = new_max

        acc = acc * alpha[:, None]
        v = v_desc.load([first_row + n, 0])
        acc = tl.dot(p.to(tl.float16), v, acc)

    acc = acc / row_sum[:, None]
    o_desc.store([first_row + first_query, 0], acc.to(tl.float16))
    queries = first_query + tl.arange(0, BLOCK_M)
    tl.store(lse_ptr + first_row + queries, row_max + tl.log2(row_sum))


def attention(q, k, v, softmax_scale, block_m=128, block_n=128):
    """Return O and the base-2 log-sum-exp for float16 CUDA tensors, Q and K of [batch, heads, length, 192], V of 128."""
    import torch
    from triton.tools.tensor_descriptor import TensorDescriptor

    batch, heads, length, dim = v.shape
    o = torch.empty_like(v)
    lse = torch.empty((batch, heads, length), device=q.device, dtype=torch.float32)

    def tiles(tensor, rows, columns=dim):
        return TensorDescriptor.from_tensor(tensor.view(-1, tensor.shape[-1]), [rows, columns])

    rope = q.shape[-1] - dim
    attention_mla[(length // block_m, batch * heads)](
        tiles(q, block_m),
        tiles(q, block_m, rope),
        tiles(k, block_n),
        tiles(k, block_n, rope),
        tiles(v, block_n),
        tiles(o, block_m),
        lse,
        softmax_scale,
        length,
        HEAD_DIM=dim,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        num_warps=8,
        num_stages=2,
    )
    return o, lse
