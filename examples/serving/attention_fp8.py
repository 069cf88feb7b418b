"""Flash attention, forward, in float8 (e4m3): O = s_V · softmax(s_Q · s_K · scale · Q Kᵀ) V.

Q and K are [H, N, D] and seen as matrices of [H · N, D]; V is given transposed, [H, D, N] seen as [H · D, N], for the
tensor core wants 8-bit operands that are contiguous along the axis of the sum. All three are float8 (e4m3), each with one
float32 scale, on the GPU as [1]. O is bfloat16, [H, N, D]. H counts the heads of all sequences.

The probabilities are quantised to e4m3, too. A row's largest is 2^8 instead of 1, where it is 448 that e4m3 can hold, so
that small ones keep their bits: the row's sum has the same factor, and it cancels. Sums are of the values before they
are rounded. The length must be a multiple of both blocks.
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
P_BITS = tl.constexpr(8.0)
"""Binary logarithm of a row's largest probability."""


@triton.jit
def attention_fp8(
    q_desc,
    k_desc,
    vt_desc,
    o_desc,
    q_scale_ptr,
    k_scale_ptr,
    v_scale_ptr,
    softmax_scale,
    length,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    first_query = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1)
    scale = softmax_scale * LOG2_E * tl.load(q_scale_ptr) * tl.load(k_scale_ptr)

    row_max = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    row_sum = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    q = q_desc.load([head * length + first_query, 0])
    for n in range(0, length, BLOCK_N):
        k = k_desc.load([head * length + n, 0])
        qk = tl.dot(q, k.T)
        new_max = tl.maximum(row_max, tl.max(qk, 1) * scale)
        p = tl.exp2(qk * scale - (new_max - P_BITS)[:, None])
        alpha = tl.exp2(row_max - new_max)
        row_sum = row_sum * alpha + tl.sum(p, 1)
        row_max = new_max

        acc = acc * alpha[:, None]
        vt = vt_desc.load([head * HEAD_DIM, n])
        acc = tl.dot(p.to(tl.float8e4nv), vt.T, acc)

    acc = acc * (tl.load(v_scale_ptr) / row_sum)[:, None]
    o_desc.store([head * length + first_query, 0], acc.to(tl.bfloat16))


def attention(q, k, vt, q_scale, k_scale, v_scale, softmax_scale, block_m=128, block_n=128):
    """Return O, bfloat16 [H, N, D], for float8_e4m3fn CUDA tensors q, k of [H, N, D] and vt of [H, D, N]; scales of [1]."""
    import torch
    from triton.tools.tensor_descriptor import TensorDescriptor

    heads, length, dim = q.shape
    o = torch.empty(q.shape, device=q.device, dtype=torch.bfloat16)

    def tiles(tensor, rows, columns):
        return TensorDescriptor.from_tensor(tensor.view(-1, tensor.shape[-1]), [rows, columns])

    attention_fp8[(length // block_m, heads)](
        tiles(q, block_m, dim),
        tiles(k, block_n, dim),
        tiles(vt, dim, block_n),
        tiles(o, block_m, dim),
        q_scale,
        k_scale,
        v_scale,
        softmax_scale,
        length,
        HEAD_DIM=dim,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        num_warps=8,
        num_stages=3,
    )
    return o


def quantise(tensor):
    """A tensor as float8_e4m3fn, its largest value as the type's largest, and the scale of [1] that gives it back."""
    import torch

    scale = tensor.abs().amax().float().clamp(min=1e-12) / torch.finfo(torch.float8_e4m3fn).max
    return (tensor.float() / scale).to(torch.float8_e4m3fn), scale.reshape(1)


def reference(q, k, vt, q_scale, k_scale, v_scale, softmax_scale):
    """The same in float64, a head at a time; the probabilities are not rounded."""
    import torch

    o = torch.empty(q.shape, device=q.device, dtype=torch.float64)
    scale = softmax_scale * q_scale.double() * k_scale.double()
    for head in range(q.shape[0]):
        scores = q[head].double() @ k[head].double().T
        o[head] = scores.mul_(scale).softmax(-1) @ vt[head].double().T * v_scale.double()
    return o
