"""torch.compile: flex attention, products with what follows them, a transformer's block; Inductor writes the kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from bench.applications.case import Call, case
from bench.applications.packages import stubs

BATCH, HEADS, LENGTH, DIM = 2, 16, 4096, 128


def _alibi(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
    return score + (k - q) * torch.exp2(-(h + 1) * 8.0 / HEADS)


def _soft_cap(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
    return 30.0 * torch.tanh(score / 30.0)


def _causal(b: Any, h: Any, q: Any, k: Any) -> Any:
    return q >= k


def _documents() -> Callable[..., Any]:
    """A mask of documents of uneven lengths, one after another."""
    ends = torch.tensor([700, 1500, 1600, 3000, LENGTH], device=stubs.DEVICE)
    of = torch.bucketize(torch.arange(LENGTH, device=stubs.DEVICE), ends, right=True).to(torch.int32)
    return lambda b, h, q, k: (q >= k) & (of[q] == of[k])


def _flex(score: Any, mask: Callable[[], Any] | None, dim: int, backward: bool) -> tuple[Call, Call]:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    shown = None if mask is None else mask()
    blocks = None if shown is None else create_block_mask(shown, None, None, LENGTH, LENGTH, device=stubs.DEVICE)
    attend = torch.compile(functools.partial(flex_attention, score_mod=score, block_mask=blocks))
    inputs = [stubs.normal(BATCH, HEADS, LENGTH, dim, seed=seed) for seed in (1, 2, 3)]
    gradient = stubs.normal(BATCH, HEADS, LENGTH, dim, seed=4)

    def run(function: Any, inputs: Any, gradient: Any) -> list[torch.Tensor]:
        if not backward:
            with torch.no_grad():
                return [function(*inputs)]
        leaves = [one.detach().requires_grad_() for one in inputs]
        out = function(*leaves)
        return [out.detach(), *torch.autograd.grad(out, leaves, gradient)]

    def plain(q: Any, k: Any, v: Any) -> Any:
        """By heads, for memory."""
        places = torch.arange(LENGTH, device=q.device)
        results = []
        for head in range(q.shape[1]):
            scores = q[:, head] @ k[:, head].mT * dim**-0.5
            if score is not None:
                scores = score(scores, 0, torch.tensor(float(head), device=q.device), places[:, None], places)
            if shown is not None:
                scores = scores.masked_fill(~shown(0, 0, places[:, None], places), float("-inf"))
            results.append(scores.softmax(-1) @ v[:, head])
        return torch.stack(results, 1)

    def reference() -> list[torch.Tensor]:
        return run(plain, [one.double() for one in inputs], gradient.double())

    return (lambda: run(attend, inputs, gradient)), reference


for name, score, mask in (
    ("full", None, None),
    ("causal", None, lambda: _causal),
    ("alibi", _alibi, lambda: _causal),
    ("soft_cap", _soft_cap, None),
    ("documents", None, _documents),
):
    case("inductor", f"flex_{name}", tolerance=2e-2)(functools.partial(_flex, score, mask, DIM, False))
case("inductor", "flex_causal_d64", tolerance=2e-2)(functools.partial(_flex, None, lambda: _causal, 64, False))
case("inductor", "flex_causal_backward", tolerance=3e-2)(functools.partial(_flex, None, lambda: _causal, DIM, True))
case("inductor", "flex_full_d64_backward", tolerance=3e-2)(functools.partial(_flex, None, None, 64, True))


def _product(function: Any, *shapes: tuple[int, ...]) -> tuple[Call, Call]:
    """A function of matrices, whose product is one of Inductor's own templates."""
    import torch._inductor.config as config

    config.max_autotune_gemm_backends = "TRITON"
    compiled = torch.compile(function, mode="max-autotune-no-cudagraphs")
    inputs = [stubs.normal(*shape, seed=seed) for seed, shape in enumerate(shapes)]
    return (lambda: [compiled(*inputs)]), lambda: [function(*(one.double() for one in inputs))]


def _gelu(x: Any, weight: Any, bias: Any, residual: Any) -> Any:
    return torch.nn.functional.gelu(torch.addmm(bias, x, weight.mT)) + residual


case("inductor", "mm_4096")(functools.partial(_product, torch.mm, (4096, 4096), (4096, 4096)))
case("inductor", "mm_uneven")(functools.partial(_product, torch.mm, (4000, 4112), (4112, 3952)))
case("inductor", "bmm")(functools.partial(_product, torch.bmm, (32, 1024, 1024), (32, 1024, 1024)))
case("inductor", "linear_gelu_residual")(
    functools.partial(_product, _gelu, (4096, 4096), (4096, 4096), (4096,), (4096, 4096))
)


@case("inductor", "transformer_block", tolerance=3e-2)
def transformer_block(tokens: int = 4096, width: int = 2048, heads: int = 16) -> tuple[Call, Call]:
    """A block of a transformer with max-autotune, cuBLAS among the choices."""
    layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
    layer = layer.to(stubs.DEVICE, torch.bfloat16).requires_grad_(False).train()
    compiled = torch.compile(layer, mode="max-autotune-no-cudagraphs")
    x = stubs.normal(1, tokens, width, seed=1)

    def reference() -> list[torch.Tensor]:
        import copy

        return [copy.deepcopy(layer).double()(x.double())]

    return (lambda: [compiled(x)]), reference
