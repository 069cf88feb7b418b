"""Flash linear attention (`fla-core`): chunked kernels, forward and backward.

The package refuses the backward of gated rules with Triton 3.6 on Hopper (its issue 640), so they are forward alone.
"""

import functools

from ..case import case

BATCH, LENGTH, HEADS, KEYS, VALUES = 4, 2048, 16, 128, 128


def tensors(*names, dtype="bfloat16", keys=KEYS, heads=HEADS):
    """Random q, k, v [B, T, H, D]; gates in log space g [B, T, H] and their vectors `gk` [B, T, H, K]; beta [B, T, H]."""
    import torch

    def made(name):
        shape = [BATCH, LENGTH, heads]
        if name in ("q", "k", "gk"):
            shape.append(keys)
        elif name in ("v", "do"):
            shape.append(VALUES)
        x = torch.randn(shape, device="cuda", dtype=torch.float32)
        if name in ("g", "gk"):
            return torch.nn.functional.logsigmoid(x)
        if name == "beta":
            x = x.sigmoid()
        if name == "k":
            x = torch.nn.functional.normalize(x, dim=-1)
        return x.to(getattr(torch, dtype))

    return [made(name) for name in names]


def forward_and_backward(function, inputs):
    """A call of a function, whose first result has a gradient, and of its backward."""
    import torch

    inputs = [x.requires_grad_() for x in inputs]
    gradient = torch.randn_like(inputs[2])

    def call():
        for x in inputs:
            x.grad = None
        result = function(*inputs)
        result = result[0] if isinstance(result, tuple) else result
        result.backward(gradient)
        return [result.detach(), *(x.grad for x in inputs)]

    return call


def forward(function, inputs):
    """A call of a function without gradients."""
    import torch

    def call():
        with torch.no_grad():
            result = function(*inputs)
        return [result[0] if isinstance(result, tuple) else result]

    return call


def linear(q, k, v, decay, scale):
    """Attention in float64 with weights `exp(decay[t] - decay[s])` for s ≤ t, without a softmax."""
    import torch

    q, k, v = (x.double().transpose(1, 2) for x in (q, k, v))
    decay = decay.double().transpose(1, 2)
    scores = q @ k.transpose(-1, -2) * scale
    length = q.shape[2]
    seen = torch.ones(length, length, device=q.device, dtype=torch.bool).tril()
    weights = (decay[..., :, None] - decay[..., None, :]).masked_fill(~seen, float("-inf")).exp()
    return [((scores * weights) @ v).transpose(1, 2)]


@case("fla", tolerance=2e-2)
def simple_gla_forward():
    from fla.ops.simple_gla import chunk_simple_gla

    q, k, v, g = tensors("q", "k", "v", "g")
    g = g.float()
    return forward(chunk_simple_gla, [q, k, v, g]), lambda: linear(q, k, v, g.double().cumsum(1), KEYS**-0.5)


@case("fla")
def gla_forward():
    from fla.ops.gla import chunk_gla

    return forward(chunk_gla, tensors("q", "k", "v", "gk"))


@case("fla")
def gla():
    from fla.ops.gla import chunk_gla

    return forward_and_backward(chunk_gla, tensors("q", "k", "v", "gk"))


@case("fla")
def retention():
    from fla.ops.retention import chunk_retention

    return forward_and_backward(chunk_retention, tensors("q", "k", "v"))


@case("fla")
def linear_attn():
    from fla.ops.linear_attn import chunk_linear_attn

    return forward_and_backward(functools.partial(chunk_linear_attn, normalize=False), tensors("q", "k", "v"))


@case("fla")
def delta_rule():
    from fla.ops.delta_rule import chunk_delta_rule

    return forward_and_backward(chunk_delta_rule, tensors("q", "k", "v", "beta"))


@case("fla")
def gated_delta_rule_forward():
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule

    q, k, v, g, beta = tensors("q", "k", "v", "g", "beta")
    return forward(chunk_gated_delta_rule, [q, k, v, g.float(), beta])


@case("fla")
def kda_forward():
    from fla.ops.kda import chunk_kda

    q, k, v, gk, beta = tensors("q", "k", "v", "gk", "beta")
    return forward(chunk_kda, [q, k, v, gk.float() / 16, beta])


@case("fla")
def kda():
    from fla.ops.kda import chunk_kda

    q, k, v, gk, beta = tensors("q", "k", "v", "gk", "beta")
    return forward_and_backward(chunk_kda, [q, k, v, gk.float() / 16, beta])


@case("fla", tolerance=2e-2)
def parallel_attn_forward():
    import torch
    from fla.ops.attn import parallel_attn

    q, k, v = tensors("q", "k", "v")

    def reference():
        heads = (x[:1].double().transpose(1, 2) for x in (q, k, v))
        return [torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2)]

    return forward(parallel_attn, [q, k, v]), reference


@case("fla")
def parallel_attn():
    from fla.ops.attn import parallel_attn

    return forward_and_backward(parallel_attn, tensors("q", "k", "v"))


@case("fla")
def forgetting_attn():
    from fla.ops.forgetting_attn import parallel_forgetting_attn

    q, k, v, g = tensors("q", "k", "v", "g")
    return forward_and_backward(parallel_forgetting_attn, [q, k, v, g.float()])


@case("fla")
def gsa():
    from fla.ops.gsa import chunk_gsa
    import torch

    q, k, v = tensors("q", "k", "v")
    slots = torch.randn(BATCH, LENGTH, HEADS, 64, device="cuda", dtype=q.dtype)
    gates = torch.nn.functional.logsigmoid(torch.randn(BATCH, LENGTH, HEADS, 64, device="cuda")).to(q.dtype)

    def call():
        with torch.no_grad():
            return [chunk_gsa(q, k, v, slots, gates)[0]]

    return call


@case("fla")
def rwkv6():
    import torch
    from fla.ops.rwkv6 import chunk_rwkv6

    q, k, v, gk = tensors("q", "k", "v", "gk")
    u = torch.randn(HEADS, KEYS, device="cuda", dtype=q.dtype)

    def call():
        with torch.no_grad():
            return [chunk_rwkv6(q, k, v, gk, u)[0]]

    return call
