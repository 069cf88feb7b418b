"""Liger: layers for training, forwards and backwards."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from typing import Any

import torch

from bench.applications.case import Call, case
from bench.applications.packages import stubs


@functools.cache
def _prepare() -> None:
    """Lets single modules be imported."""
    stubs.bare("liger_kernel")
    # peft and transformers, which it imports where they are installed, ask torchao for its version.
    stubs.leave_out("torchao")
    stubs.packaging()


def _module(name: str) -> Any:
    """A module of Liger."""
    _prepare()
    return importlib.import_module(f"liger_kernel.{name}")


def _both_ways(run: Any, inputs: Sequence[torch.Tensor], gradient: torch.Tensor) -> list[torch.Tensor]:
    """A function's result, and the gradients of its inputs."""
    leaves = [value.detach().requires_grad_() for value in inputs]
    out = run(*leaves)
    return [out.detach(), *torch.autograd.grad(out, leaves, gradient)]


def _in_float64(run: Any, inputs: Sequence[torch.Tensor], gradient: torch.Tensor) -> list[torch.Tensor]:
    """The same in float64."""
    return _both_ways(run, [value.double() for value in inputs], gradient.double())


@case("liger", tolerance=3e-2)
def neighborhood_attention(
    batch: int = 2, heads: int = 8, length: int = 1024, dim: int = 64, width: int = 65
) -> tuple[Call, Call]:
    """Attention to the tokens nearby, and its gradients."""
    apply = _module("ops.fused_neighborhood_attention").LigerFusedNeighborhoodAttentionFunction.apply
    inputs = [stubs.normal(batch, heads, length, dim, seed=seed) for seed in (1, 2, 3)]
    gradient = stubs.normal(batch, heads, length, dim, seed=4)
    places = torch.arange(length, device=stubs.DEVICE)
    hidden = (places[:, None] - places).abs() > width // 2

    def plain(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (q @ k.mT * dim**-0.5).masked_fill(hidden, float("-inf")).softmax(-1) @ v

    def call() -> list[torch.Tensor]:
        return _both_ways(lambda q, k, v: apply(q, k, v, width, 1, None), inputs, gradient)

    return call, lambda: _in_float64(plain, inputs, gradient)


@case("liger", tolerance=2e-2)
def fused_moe(
    tokens: int = 1024, experts: int = 16, choices: int = 4, hidden: int = 2048, inner: int = 1024
) -> tuple[Call, Call]:
    """A layer of experts, and its gradients."""
    apply = _module("ops.fused_moe").LigerFusedMoEFunction.apply
    weights, chosen = stubs.routing(tokens, experts, choices)
    x = stubs.normal(tokens, hidden, seed=1)
    up = stubs.normal(experts, 2 * inner, hidden, scale=hidden**-0.5, seed=2)
    down = stubs.normal(experts, hidden, inner, scale=inner**-0.5, seed=3)
    gradient = stubs.normal(tokens, hidden, seed=4)
    inputs = [x, up, down, weights]

    def plain(x: torch.Tensor, up: torch.Tensor, down: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        for expert in range(experts):
            token, choice = torch.nonzero(chosen == expert, as_tuple=True)
            gate, value = (x[token] @ up[expert].T).chunk(2, -1)
            result = (torch.nn.functional.silu(gate) * value) @ down[expert].T
            out = out.index_add(0, token, result * weights[token, choice, None])
        return out

    def call() -> list[torch.Tensor]:
        return _both_ways(lambda x, up, down, weights: apply(x, up, down, chosen, weights), inputs, gradient)

    return call, lambda: _in_float64(plain, inputs, gradient)


@case("liger", tolerance=2e-2)
def mlp(batch: int = 2, length: int = 1024, hidden: int = 2048, inner: int = 4096) -> tuple[Call, Call]:
    """A gated layer, and its gradients."""
    apply = _module("ops.mlp").LigerMLPFunction.apply
    x = stubs.normal(batch, length, hidden, seed=1)
    gate = stubs.normal(inner, hidden, scale=hidden**-0.5, seed=2)
    up = stubs.normal(inner, hidden, scale=hidden**-0.5, seed=3)
    down = stubs.normal(hidden, inner, scale=inner**-0.5, seed=4)
    gradient = stubs.normal(batch, length, hidden, seed=5)

    def plain(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
        return (torch.nn.functional.silu(x @ gate.T) * (x @ up.T)) @ down.T

    def call() -> list[torch.Tensor]:
        return _both_ways(apply, [x, gate, up, down], gradient)

    return call, lambda: _in_float64(plain, [x, gate, up, down], gradient)


@case("liger")
def hyper_connections(tokens: int = 8192, streams: int = 4, width: int = 1024) -> tuple[Call, Call]:
    """The normalised product from which the weights of hyper-connections come, and its gradients."""
    module = _module("ops.mhc")
    count, columns = streams * width, streams * (streams + 2)
    x = stubs.normal(tokens, count, seed=1)
    phi = stubs.normal(count, columns, scale=count**-0.5, seed=2)
    gradient = stubs.normal(tokens, columns, dtype=torch.float32, seed=3)

    def plain(x: torch.Tensor, phi: torch.Tensor) -> torch.Tensor:
        return (x @ phi) * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)

    def call() -> list[torch.Tensor]:
        mix, inverse = module.mhc_mm_norm_fwd(x, phi, 1e-6)
        return [mix, *module.mhc_mm_norm_bwd(x, phi, mix, inverse, gradient)]

    return call, lambda: _in_float64(plain, [x, phi], gradient)


@case("liger", tolerance=1e-6)
def matmul_int8_int2(m: int = 1024, n: int = 4096, k: int = 4096) -> tuple[Call, Call]:
    """Integers of 8 bits times weights of 2 bits, exact."""
    module = _module("ops.experimental.mm_int8int2")
    left = stubs.integers(-127, 128, m, k, dtype=torch.int8, seed=1)
    weights = stubs.integers(-1, 2, k, n, seed=2)
    packed = module.pack_weights(weights.clone())

    def call() -> list[torch.Tensor]:
        return [module.matmul(left, packed)]

    return call, lambda: [left.double() @ weights.double()]
