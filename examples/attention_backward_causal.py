"""Causal flash attention, backward: `attention_backward.py` where a query sees the keys up to its own.

Queries before a program's keys have no share. All others are masked, although
only those of the keys' own block need it: a second loop without the mask would
have registers of its own. The length must be a multiple of both blocks, and
BLOCK_N one of BLOCK_M.
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def attention_backward_causal(
    q_desc,
    k_desc,
    v_desc,
    do_desc,
    dq_desc,
    dk_desc,
    dv_desc,
    lse_ptr,
    delta_ptr,
    softmax_scale,
    length,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    first_row = tl.program_id(1) * length
    first_key = tl.program_id(0) * BLOCK_N
    keys = first_key + tl.arange(0, BLOCK_N)
    key_row = first_row + first_key
    scale = softmax_scale * LOG2_E

    k = k_desc.load([key_row, 0])
    v = v_desc.load([key_row, 0])
    dk = tl.zeros([BLOCK_N, HEAD_DIM], dtype=tl.float32)
    dv = tl.zeros([BLOCK_N, HEAD_DIM], dtype=tl.float32)

    for n in range(first_key, length, BLOCK_M):
        row = first_row + n
        rows = row + tl.arange(0, BLOCK_M)

        q = q_desc.load([row, 0])
        lse = tl.load(lse_ptr + rows)
        s_t = tl.dot(k, q.T)
        p_t = tl.exp2(s_t * scale - lse[None, :])
        queries = n + tl.arange(0, BLOCK_M)
        p_t = tl.where(keys[:, None] <= queries[None, :], p_t, 0.0)

        do = do_desc.load([row, 0])
        delta = tl.load(delta_ptr + rows)
        dp_t = tl.dot(v, do.T)
        dv = tl.dot(p_t.to(tl.float16), do, dv)

        ds_t = (p_t * (dp_t - delta[None, :])).to(tl.float16)
        dk = tl.dot(ds_t, q, dk)
        dq = tl.dot(ds_t.T, k)
        dq_desc.atomic_add([row, 0], dq)

    dk_desc.store([key_row, 0], (dk * softmax_scale).to(tl.float16))
    dv_desc.store([key_row, 0], dv.to(tl.float16))


def attention_gradients(q, k, v, o, lse, do, softmax_scale, block_m=64, block_n=128):
    """Return dQ, dK and dV for float16 CUDA tensors of [batch, heads, length, dim]."""
    import torch
    from triton.tools.tensor_descriptor import TensorDescriptor

    batch, heads, length, dim = q.shape
    dq = torch.zeros(q.shape, device=q.device, dtype=torch.float32)
    dk, dv = torch.empty_like(k), torch.empty_like(v)
    delta = (o.float() * do.float()).sum(-1)

    def tiles(tensor, rows):
        return TensorDescriptor.from_tensor(tensor.view(-1, dim), [rows, dim])

    attention_backward_causal[(length // block_n, batch * heads)](
        tiles(q, block_m),
        tiles(k, block_n),
        tiles(v, block_n),
        tiles(do, block_m),
        tiles(dq, block_m),
        tiles(dk, block_n),
        tiles(dv, block_n),
        lse,
        delta,
        softmax_scale,
        length,
        HEAD_DIM=dim,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        num_warps=8,
        num_stages=2,
    )
    return (dq * softmax_scale).to(q.dtype), dk, dv
