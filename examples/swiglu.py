"""SwiGLU as one kernel of two matrix multiplications: Y = silu(X · Gᵀ) ∘ (X · Uᵀ).

X is [M, K], the weights G (gate) and U (up) are [N, K] and Y is [M, N], all
float16 and row-major; the sums are kept in float32. Both dots of a trip read the
same tile of X, so a schedule must keep that tile alive until the later one.
"""

import triton
import triton.language as tl


@triton.jit
def swiglu(
    x_desc,
    gate_desc,
    up_desc,
    y_desc,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    row = tl.program_id(0) * BLOCK_M
    column = tl.program_id(1) * BLOCK_N

    gate = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    up = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        x = x_desc.load([row, k])
        gate_weights = gate_desc.load([column, k])
        up_weights = up_desc.load([column, k])
        gate = tl.dot(x, gate_weights.T, gate)
        up = tl.dot(x, up_weights.T, up)

    y = gate * tl.sigmoid(gate) * up
    y_desc.store([row, column], y.to(tl.float16))


def dual_gemm(x, gate, up, block_m=128, block_n=128, block_k=64):
    """Return silu(x · gateᵀ) ∘ (x · upᵀ) for float16 CUDA tensors, x of [M, K], weights of [N, K]."""
    import torch
    from triton.tools.tensor_descriptor import TensorDescriptor

    (m, k), (n, _) = x.shape, gate.shape
    y = torch.empty((m, n), device=x.device, dtype=x.dtype)
    swiglu[(triton.cdiv(m, block_m), triton.cdiv(n, block_n))](
        TensorDescriptor.from_tensor(x, [block_m, block_k]),
        TensorDescriptor.from_tensor(gate, [block_n, block_k]),
        TensorDescriptor.from_tensor(up, [block_n, block_k]),
        TensorDescriptor.from_tensor(y, [block_m, block_n]),
        k,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        num_warps=8,
        num_stages=3,
    )
    return y
