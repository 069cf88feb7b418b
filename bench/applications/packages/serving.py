"""Our own kernels for serving, in `examples/serving`: attention paged, of different lengths, and in 8 bits; linear attention.

They need no package. Where libraries compute the same, their calls stand beside ours as peers, and a library that is not
there, or refuses the call, is left out. Products of a chunk's tokens with each other that a kernel takes as given are made
once, outside of the call.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from bench.applications.case import Call, case
from bench.applications.packages import stubs

QUERY_HEADS = 32
KEY_HEADS = 8
DIM = 128
PAGE = 16
SCALE = DIM**-0.5
FLASH, CUDNN = "FlashAttention CuTe", "cuDNN"

Peers = dict[str, Call]


def _working(peers: dict[str, Sequence[Callable[[], torch.Tensor]]]) -> Peers:
    """For each name the first of its calls that a library does not refuse."""
    found: Peers = {}
    for name, calls in peers.items():
        for call in calls:
            try:
                call()
                torch.cuda.synchronize()
            except Exception:
                continue
            found[name] = lambda call=call: [call()]
            break
    return found


def _cudnn(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any) -> torch.Tensor:
    """Attention by cuDNN, or an error."""
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=SCALE, **options)


def _flash(name: str, *arguments: Any, **options: Any) -> torch.Tensor:
    """Attention by FlashAttention CuTe, or an error."""
    out = getattr(importlib.import_module("flash_attn.cute"), name)(*arguments, softmax_scale=SCALE, **options)
    return out[0] if isinstance(out, tuple) else out


def _decode(batch: int, length: int) -> tuple[Call, Call, Peers]:
    """A token of each sequence; the peers have keys and values without pages, and on Hopper FlashAttention does not split."""
    module = stubs.example("serving.attention_paged")
    most = -(-length // PAGE)
    table = stubs.permutation(batch * most).view(batch, most)
    q = stubs.normal(batch, QUERY_HEADS, DIM, seed=1)
    k = stubs.normal(batch * most, PAGE, KEY_HEADS, DIM, seed=2)
    v = stubs.normal(batch * most, PAGE, KEY_HEADS, DIM, seed=3)
    lengths = stubs.ints([length] * batch)

    # One behind the other, [batch, length, heads, D].
    keys, values = (pages[table.flatten().long()].view(batch, -1, KEY_HEADS, DIM)[:, :length] for pages in (k, v))
    # For cuDNN the heads of a group are the queries of one head.
    grouped = q.view(batch, KEY_HEADS, QUERY_HEADS // KEY_HEADS, DIM)
    by_heads = [part.transpose(1, 2).contiguous() for part in (keys, values)]

    def flash() -> torch.Tensor:
        return _flash("flash_attn_func", q[:, None], keys, values)[:, 0]

    def cudnn() -> torch.Tensor:
        return _cudnn(grouped, *by_heads).reshape(q.shape)

    return (
        lambda: [module.attention(q, k, v, table, lengths, SCALE)],
        lambda: [module.reference(q, k, v, table, lengths, SCALE)],
        _working({f"{FLASH}, without pages": [flash], f"{CUDNN}, without pages": [cudnn]}),
    )


@case("serving")
def attention_paged_8k() -> tuple[Call, Call, Peers]:
    """32 sequences."""
    return _decode(32, 8192)


@case("serving")
def attention_paged_64k() -> tuple[Call, Call, Peers]:
    """Few sequences, long ones."""
    return _decode(4, 65536)


def _prefill(lengths: Sequence[int], window: int = 0, soft_cap: float = 0.0) -> tuple[Call, Call, Peers]:
    """Causal attention of sequences one behind the other; cuDNN has a call for each sequence."""
    module = stubs.example("serving.attention_varlen")
    begins = stubs.starts(lengths)
    q = stubs.normal(begins[-1], QUERY_HEADS, DIM, seed=1)
    k = stubs.normal(begins[-1], KEY_HEADS, DIM, seed=2)
    v = stubs.normal(begins[-1], KEY_HEADS, DIM, seed=3)
    cu_seqlens = stubs.ints(begins)

    def flash(**longest: int) -> torch.Tensor:
        sequences = {"cu_seqlens_q": cu_seqlens, "cu_seqlens_k": cu_seqlens}
        kind = {"window_size": (window - 1, 0)} if window else {"causal": True}
        if soft_cap:
            kind["softcap"] = soft_cap
        return _flash("flash_attn_varlen_func", q, k, v, **sequences, **longest, **kind)

    def cudnn(keys: Sequence[torch.Tensor], values: Sequence[torch.Tensor], **options: Any) -> torch.Tensor:
        parts = [_cudnn(*one, is_causal=True, **options) for one in zip(each(q), keys, values)]
        return torch.cat([part[0].transpose(0, 1) for part in parts])

    def each(tensor: torch.Tensor) -> list[torch.Tensor]:
        """[1, heads, length, D] of each sequence."""
        return [tensor[begin:end].transpose(0, 1)[None] for begin, end in zip(begins, begins[1:])]

    group = QUERY_HEADS // KEY_HEADS
    repeated = [each(tensor.repeat_interleave(group, 1)) for tensor in (k, v)]
    longest = {"max_seqlen_q": max(lengths), "max_seqlen_k": max(lengths)}
    peers: dict[str, Sequence[Callable[[], torch.Tensor]]] = {FLASH: [functools.partial(flash, **longest), flash]}
    if not window and not soft_cap:
        # Where cuDNN does not know that heads share keys, they are repeated beforehand.
        shared = functools.partial(cudnn, each(k), each(v), enable_gqa=True)
        peers[CUDNN] = [shared, functools.partial(cudnn, *repeated)]
    return (
        lambda: [module.attention(q, k, v, cu_seqlens, max(lengths), SCALE, window, soft_cap)],
        lambda: [module.reference(q, k, v, cu_seqlens, SCALE, window, soft_cap)],
        _working(peers),
    )


LENGTHS = (8192, 512, 3000, 1024, 6144, 777, 2048, 4500)


@case("serving")
def attention_varlen() -> tuple[Call, Call, Peers]:
    """Sequences of 512 to 8192 tokens."""
    return _prefill(LENGTHS)


@case("serving")
def attention_varlen_window() -> tuple[Call, Call, Peers]:
    """The same with a window of 1024 tokens and scores capped."""
    return _prefill(LENGTHS, window=1024, soft_cap=50.0)


@case("serving", tolerance=5e-2)
def attention_fp8(heads: int = 16, length: int = 16384) -> tuple[Call, Call, Peers]:
    """Attention in 8 bits of one long sequence; the peer has the same values in 16."""
    module = stubs.example("serving.attention_fp8")
    q, k, v = (stubs.normal(heads, length, DIM, seed=seed) for seed in (1, 2, 3))
    (q8, q_scale), (k8, k_scale), (vt8, v_scale) = map(module.quantise, (q, k, v.transpose(1, 2).contiguous()))
    inputs = (q8, k8, vt8, q_scale, k_scale, v_scale, SCALE)
    halves = [(values.float() * scale).bfloat16()[None] for values, scale in ((q8, q_scale), (k8, k_scale))]
    halves.append((vt8.float() * v_scale).bfloat16().transpose(1, 2).contiguous()[None])
    return (
        lambda: [module.attention(*inputs)],
        lambda: [module.reference(*inputs)],
        _working({f"{CUDNN} bf16": [lambda: _cudnn(*halves)[0]]}),
    )


@case("serving", tolerance=2e-2)
def mamba_chunk(batch: int = 8, length: int = 4096, heads: int = 80, dim: int = 64, states: int = 128) -> tuple[Call, Call]:
    """Mamba-2 of 80 heads, one group: running sums and products of chunks by torch, then three kernels."""
    module = stubs.example("serving.mamba_chunk")
    x = stubs.normal(batch, length, heads, dim, seed=1)
    dt = torch.nn.functional.softplus(stubs.normal(batch, heads, length, dtype=torch.float32, seed=2) - 4.0)
    a = -stubs.uniform(heads, low=1.0, high=16.0, seed=3)
    b, c = (stubs.normal(batch, length, 1, states, seed=seed) for seed in (4, 5))
    d = stubs.normal(heads, dtype=torch.float32, seed=6)
    inputs = (x, dt, a, b, c, d)
    return lambda: list(module.state_space(*inputs)), lambda: list(module.reference(*inputs))


@case("serving", tolerance=2e-2)
def delta_rule(batch: int = 4, length: int = 8192, heads: int = 16, keys: int = 128, values: int = 128) -> tuple[Call, Call]:
    """The gated delta rule's state over the chunks and its output."""
    module = stubs.example("serving.delta_rule")
    unit = functools.partial(torch.nn.functional.normalize, dim=-1)
    q, k = (unit(stubs.normal(batch, length, heads, keys, dtype=torch.float32, seed=seed)).bfloat16() for seed in (1, 2))
    v = stubs.normal(batch, length, heads, values, seed=3)
    g = -stubs.uniform(batch, length, heads, low=0.001, high=0.2, seed=4)
    beta = stubs.uniform(batch, length, heads, low=0.1, high=0.9, seed=5)
    w, u, sums = module.prepare(k, v, g, beta)
    scale = keys**-0.5
    return (
        lambda: list(module.gated_delta_rule(q, k, w, u, sums, scale)),
        lambda: list(module.reference(q, k, v, g, beta, scale)),
    )


@case("serving", tolerance=2e-2)
def gated_linear_attention(
    batch: int = 4, length: int = 8192, heads: int = 16, keys: int = 128, values: int = 128
) -> tuple[Call, Call]:
    """GLA's state over the chunks and its output."""
    module = stubs.example("serving.gated_linear_attention")
    q, k = (stubs.normal(batch, length, heads, keys, seed=seed) for seed in (1, 2))
    v = stubs.normal(batch, length, heads, values, seed=3)
    g = torch.nn.functional.logsigmoid(stubs.normal(batch, length, heads, keys, dtype=torch.float32, seed=4)) / 16
    scale = keys**-0.5
    a, sums = module.prepare(q, k, g, scale)
    return (
        lambda: list(module.gated_linear_attention(q, k, v, a, sums, scale)),
        lambda: list(module.reference(q, k, v, g, scale)),
    )
