"""Hugging Face: whole models with random weights, forward and backward.

Results are logits of some tokens, or the loss and gradients of the first layer. What one layer rounds differently goes through
all that follow, so that two runs need not agree bit by bit: both sides are compared with a model of more bits. That of Llama
and of Qwen3's experts is in float64; that of fla's models is in float32, and has recurrent kernels, which multiply no matrices.
In bf16 some 1e-2 of the largest value are lost. Errors up to the tolerance are right, and larger ones where stock Triton's are
more than half as large.
"""

from __future__ import annotations

import copy
import functools
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from bench.applications.case import Call, case
from bench.applications.packages import stubs

BATCH, LENGTH, VOCABULARY, WIDTH, LAYERS = 4, 2048, 32000, 2048, 4
EVERY = 16
"""Logits are compared of each token whose number this divides."""
TUNED = "max-autotune-no-cudagraphs"
"""Inductor's mode in which it compares configurations of its templates."""
FLA = "flash-linear-attention"
"""The folder of fla with its models, below one of the sources': beside `fla_core`, all calls of fla would import them."""


@functools.cache
def _prepare() -> None:
    """Lets transformers be imported: it asks all packages that it finds for their versions."""
    stubs.leave_out("torchao")


def _model(config: Any, attention: str | None = None) -> Any:
    """A model of a configuration, in bf16."""
    import transformers

    torch.manual_seed(1)
    options = {} if attention is None else {"attn_implementation": attention}
    with torch.device(stubs.DEVICE):
        return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, **options)


def _tokens() -> torch.Tensor:
    """A batch of text."""
    return stubs.integers(0, VOCABULARY, BATCH, LENGTH, dtype=torch.int64, seed=2)


def _weights(model: Any) -> list[Any]:
    """Those whose gradients are compared: the first layer's matrices, to which all others' errors come."""
    return [one for one in model.model.layers[0].parameters() if one.dim() > 1]


def _logits(model: Any, tokens: torch.Tensor) -> list[torch.Tensor]:
    """Logits of some tokens."""
    with torch.no_grad():
        return [model(input_ids=tokens, use_cache=False).logits[:, ::EVERY].contiguous()]


def _gradients(model: Any, tokens: torch.Tensor) -> list[torch.Tensor]:
    """The loss, and gradients."""
    model.zero_grad(set_to_none=True)
    loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
    loss.backward()
    return [loss.detach(), *(one.grad for one in _weights(model))]


def _by_rows(of: Callable[[Any, torch.Tensor], list[torch.Tensor]], model: Any, tokens: torch.Tensor) -> list[torch.Tensor]:
    """The same by one sequence at a time, for memory."""
    rows = [[one.clone() for one in of(model, row[None])] for row in tokens]
    return [torch.cat(each) if of is _logits else torch.stack(each).mean(0) for each in zip(*rows)]


def _exact(model: Any) -> Any:
    """The model in float64, with the plainest attention and experts."""
    exact = copy.deepcopy(model).double()
    exact.set_attn_implementation("sdpa")
    if hasattr(exact.config, "num_experts_per_tok"):
        exact.set_experts_implementation("eager")
    return exact


def _recurrent(model: Any) -> Any:
    """A model of fla in float32, whose attention goes from token to token."""
    exact = copy.deepcopy(model).float()
    for layer in exact.model.layers:
        layer.attn.mode = "fused_recurrent"
    return exact


def _calls(model: Any, backward: bool, exact: Callable[[Any], Any] = _exact, mode: str | None = None) -> tuple[Call, Call]:
    """The call of a model, and of the one that has more bits. mode: that of torch.compile, if it is compiled."""
    tokens = _tokens()
    model.train(backward)
    called = model if mode is None else torch.compile(model, mode=mode)
    of = _gradients if backward else _logits
    return (lambda: of(called, tokens)), functools.cache(lambda: _by_rows(of, exact(model), tokens))


def _llama(attention: str, layers: int = LAYERS) -> Any:
    """Llama: 16 heads of 128, four of keys."""
    _prepare()
    from transformers import LlamaConfig

    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        intermediate_size=WIDTH * 11 // 4,
        num_hidden_layers=layers,
        num_attention_heads=WIDTH // 128,
        num_key_value_heads=WIDTH // 512,
        max_position_embeddings=LENGTH,
    )
    return _model(config, attention)


@case("hugging_face", tolerance=5e-2)
def llama_flex_forward() -> tuple[Call, Call]:
    """Flex attention, which transformers compiles; all else is torch's."""
    return _calls(_llama("flex_attention"), backward=False)


@case("hugging_face", tolerance=5e-2)
def llama_flex() -> tuple[Call, Call]:
    """The same in training."""
    return _calls(_llama("flex_attention"), backward=True)


@case("hugging_face", tolerance=5e-2)
def llama_compiled() -> tuple[Call, Call]:
    """All of it compiled: for each product the fastest of cuBLAS and Inductor's templates, attention by torch."""
    return _calls(_llama("sdpa", layers=2), backward=True, mode=TUNED)


@case("hugging_face", tolerance=5e-2)
def llama_flex_compiled() -> tuple[Call, Call]:
    """All of it compiled, flex attention too, without tuning."""
    return _calls(_llama("flex_attention", layers=2), backward=True, mode="default")


@case("hugging_face", tolerance=5e-2)
def llama_liger() -> tuple[Call, Call]:
    """Flex attention, and Liger's norms, rotations, gates, and its loss with the last product."""
    model = _llama("flex_attention")
    from liger_kernel.transformers import apply_liger_kernel_to_llama

    call, reference = _calls(model, backward=True)
    # Liger replaces functions of transformers that the reference has, too.
    results = reference()
    apply_liger_kernel_to_llama(model=model)
    return call, lambda: results


@case("hugging_face", tolerance=1e-1)
def qwen3_experts_compiled() -> tuple[Call, Call]:
    """Eight of 32 experts for a token, compiled: all products are Inductor's templates, those of experts too.

    Where two experts are nearly as likely, a rounding takes the other one, on both sides.
    """
    _prepare()
    import torch._inductor.config as inductor
    from transformers import Qwen3MoeConfig

    config = Qwen3MoeConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=WIDTH // 128,
        num_key_value_heads=WIDTH // 512,
        head_dim=128,
        moe_intermediate_size=WIDTH * 3 // 8,
        num_experts=32,
        num_experts_per_tok=8,
        max_position_embeddings=LENGTH,
    )
    inductor.max_autotune_gemm_backends = "TRITON"
    return _calls(_model(config, "sdpa"), backward=False, mode=TUNED)


def _fla(kind: str, backward: bool, **options: Any) -> tuple[Call, Call]:
    """A model of fla."""
    _prepare()
    sys.path[:0] = [str(folder) for place in sys.path if (folder := Path(place, FLA)).is_dir()][:1]
    config = getattr(importlib.import_module("fla.models"), f"{kind}Config")
    made = config(vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=2, max_position_embeddings=LENGTH, **options)
    return _calls(_model(made), backward, _recurrent)


@case("hugging_face", tolerance=5e-2)
def delta_net() -> tuple[Call, Call]:
    """fla's DeltaNet of 16 heads in training."""
    return _fla("DeltaNet", backward=True, num_heads=WIDTH // 128)


@case("hugging_face", tolerance=5e-2)
def gated_linear_attention_forward() -> tuple[Call, Call]:
    """fla's GLA of eight heads."""
    return _fla("GLA", backward=False, num_heads=WIDTH // 256)


@case("hugging_face", tolerance=5e-2)
def gated_linear_attention() -> tuple[Call, Call]:
    """The same in training: its kernels' own tuning takes minutes."""
    return _fla("GLA", backward=True, num_heads=WIDTH // 256)


@case("hugging_face", tolerance=5e-2)
def gated_delta_net_forward() -> tuple[Call, Call]:
    """fla's gated DeltaNet; its backward refuses Triton 3.6 on Hopper."""
    return _fla("GatedDeltaNet", backward=False, num_heads=WIDTH // 256, head_dim=128)
