"""What cases of several packages need: parts of a package without the rest, random inputs, references in float64."""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import torch

from bench.applications.case import Call
from bench.common import ROOT

DEVICE = "cuda"


class _Folders:
    """Finds a package's folders as plain folders of modules, so that their `__init__` does not run."""

    def __init__(self, package: str, run: Sequence[str]) -> None:
        self.package = package
        self.run = frozenset(run)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        """A spec for a folder whose `__init__` is to be left out; `None` leaves the name to Python."""
        if name.split(".")[0] != self.package or name in self.run:
            return None
        last = name.rpartition(".")[2]
        for parent in sys.path if path is None else path:
            folder = os.path.join(parent, last)
            if os.path.isdir(folder):
                spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
                spec.submodule_search_locations = [folder]
                return spec
        return None


class _Stub(ModuleType):
    """A module of which nothing is there but what it was given; other names are empty classes, for annotations."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = type(name, (), {})
        setattr(self, name, value)
        return value


def example(name: str) -> Any:
    """A module of the project's examples, by its name below that folder."""
    folder = str(ROOT / "examples")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


def bare(package: str, run: Sequence[str] = ()) -> None:
    """Imports modules of a package without the `__init__` of its folders, but for those named in `run`."""
    if not any(isinstance(finder, _Folders) and finder.package == package for finder in sys.meta_path):
        sys.meta_path.insert(0, _Folders(package, run))


def stub(name: str, **attributes: Any) -> None:
    """Puts a module with these attributes in the place of one that the calls do not need."""
    module = _Stub(name)
    module.__dict__.update(attributes)
    sys.modules[name] = module


def leave_out(package: str) -> None:
    """Takes folders that hold a package off the path, for others that would take it for one that is installed."""
    sys.path[:] = [place for place in sys.path if not os.path.isdir(os.path.join(place, package))]


def give(name: str, **attributes: Any) -> None:
    """Adds names to a module that is imported as it is."""
    importlib.import_module(name).__dict__.update(attributes)


def packaging() -> None:
    """The comparison of versions, where the package for it is not installed."""
    if importlib.util.find_spec("packaging") is None:
        stub("packaging.version", parse=_version, Version=_version)
        stub("packaging", version=sys.modules["packaging.version"])


def _version(text: str) -> tuple[int, ...]:
    """A version's first three numbers."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])


@contextlib.contextmanager
def nothing(*arguments: Any, **options: Any) -> Iterator[None]:
    """A context that changes nothing."""
    yield


class Registry(torch.nn.Module):
    """A base class that gives back unchanged what it is to register."""

    @classmethod
    def register(cls, *arguments: Any, **options: Any) -> Any:
        """A decorator that changes nothing."""
        return lambda value: value


class Logger:
    """Says nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments, **options: None


class Capability(NamedTuple):
    """A GPU's compute capability."""

    major: int
    minor: int


class Platform:
    """An NVIDIA GPU, for packages that ask their own description of the machine."""

    device_type = "cuda"
    device_name = "cuda"
    dispatch_key = "CUDA"
    simple_compile_backend = "inductor"

    def __getattr__(self, name: str) -> Any:
        if not name.startswith(("is_", "has_", "supports_", "support_")):
            raise AttributeError(name)
        return lambda *arguments, **options: False

    def is_cuda(self) -> bool:
        """That it is one."""
        return True

    def is_cuda_alike(self) -> bool:
        """That it is one, or like one."""
        return True

    def has_device_capability(self, capability: Any, device_id: int = 0) -> bool:
        """Whether it can do what that GPU can."""
        wanted = capability if isinstance(capability, tuple) else divmod(capability, 10)
        return torch.cuda.get_device_capability(device_id) >= tuple(wanted)

    def get_device_capability(self, device_id: int = 0) -> Any:
        """Its compute capability."""
        return Capability(*torch.cuda.get_device_capability(device_id))

    def get_device_name(self, device_id: int = 0) -> str:
        """Its name."""
        return torch.cuda.get_device_name(device_id)

    def fp8_dtype(self) -> torch.dtype:
        """Its type of 8 bits."""
        return torch.float8_e4m3fn

    def num_compute_units(self, device_id: int = 0) -> int:
        """Its multiprocessors."""
        return torch.cuda.get_device_properties(device_id).multi_processor_count


def generator(seed: int = 0) -> torch.Generator:
    """Random numbers that are the same in every run."""
    return torch.Generator(device=DEVICE).manual_seed(seed)


def normal(*shape: int, dtype: torch.dtype = torch.bfloat16, scale: float = 1.0, seed: int = 0) -> torch.Tensor:
    """Normal random values."""
    values = torch.randn(*shape, device=DEVICE, generator=generator(seed)) * scale
    return values.to(dtype)


def uniform(*shape: int, low: float, high: float, seed: int = 0) -> torch.Tensor:
    """Uniform random values, in float32."""
    return torch.rand(*shape, device=DEVICE, generator=generator(seed)) * (high - low) + low


def integers(low: int, high: int, *shape: int, dtype: torch.dtype = torch.int32, seed: int = 0) -> torch.Tensor:
    """Random integers from `low` up to `high`, without it."""
    return torch.randint(low, high, shape, device=DEVICE, generator=generator(seed)).to(dtype)


def permutation(count: int, seed: int = 0) -> torch.Tensor:
    """The numbers below `count` in random order, as int32."""
    return torch.randperm(count, device=DEVICE, generator=generator(seed)).to(torch.int32)


def ints(values: Sequence[int], dtype: torch.dtype = torch.int32) -> torch.Tensor:
    """These integers on the GPU."""
    return torch.tensor(list(values), dtype=dtype, device=DEVICE)


def starts(lengths: Sequence[int]) -> list[int]:
    """Where sequences begin that lie one behind the other; last, where all end."""
    result = [0]
    for length in lengths:
        result.append(result[-1] + length)
    return result


def empty(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """Memory on the GPU."""
    return torch.empty(*shape, dtype=dtype, device=DEVICE)


def zeros(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """Zeros on the GPU."""
    return torch.zeros(*shape, dtype=dtype, device=DEVICE)


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, causal: bool, window: int = 0
) -> torch.Tensor:
    """Attention of a sequence in float64: queries (n, heads, d), keys and values (m, heads or fewer, d).

    The last query sees all keys. With a window, a query sees that many keys, the one at its own place among them.
    """
    group = q.shape[1] // k.shape[1]
    n, m = q.shape[0], k.shape[0]
    result = torch.empty(n, q.shape[1], v.shape[2], dtype=torch.float64, device=q.device)
    place = torch.arange(n, device=q.device)[:, None] + (m - n)
    other = torch.arange(m, device=q.device)[None, :]
    hidden = torch.zeros(n, m, dtype=torch.bool, device=q.device)
    if causal:
        hidden |= other > place
    if window:
        hidden |= other <= place - window
    for head in range(q.shape[1]):
        scores = q[:, head].double() @ k[:, head // group].double().T * scale
        result[:, head] = scores.masked_fill_(hidden, float("-inf")).softmax(-1) @ v[:, head // group].double()
    return result


def attention_without_cache(
    attend: Callable[..., Any], lengths: Sequence[int], query_heads: int, key_heads: int, dim: int, causal: bool
) -> tuple[Call, Call]:
    """Attention of sequences that lie one behind the other, by `context_attention_fwd` as vLLM and SGLang have it."""
    begins = starts(lengths)
    q = normal(begins[-1], query_heads, dim, seed=1)
    k = normal(begins[-1], key_heads, dim, seed=2)
    v = normal(begins[-1], key_heads, dim, seed=3)
    first, sizes = ints(begins[:-1]), ints(lengths)

    def call() -> list[torch.Tensor]:
        out = torch.empty_like(q)
        attend(q, k, v, out, first, sizes, max(lengths), is_causal=causal)
        return [out]

    return call, lambda: [attention_of_each(q, k, v, begins, dim**-0.5, causal)]


def attention_of_each(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    begins: Sequence[int],
    scale: float,
    causal: bool,
    window: int = 0,
) -> torch.Tensor:
    """The same for sequences one behind the other."""
    parts = []
    for begin, end in zip(begins, begins[1:]):
        parts.append(attention(q[begin:end], k[begin:end], v[begin:end], scale, causal, window))
    return torch.cat(parts)


def padded(values: torch.Tensor, begins: Sequence[int]) -> torch.Tensor:
    """Sequences one behind the other as a batch in float64, shorter ones filled up with zeros."""
    parts = [values[begin:end].double() for begin, end in zip(begins, begins[1:])]
    return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True)


def joined(batch: torch.Tensor, begins: Sequence[int]) -> torch.Tensor:
    """The inverse of `padded`."""
    return torch.cat([batch[n, : end - begin] for n, (begin, end) in enumerate(zip(begins, begins[1:]))])


def state_space(
    x: torch.Tensor,
    steps: torch.Tensor,
    decay: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    skip: torch.Tensor,
    begins: Sequence[int],
) -> list[torch.Tensor]:
    """Mamba-2's recurrence in float64, a token at a time: results, and each sequence's last state."""
    heads = x.shape[1]
    x, steps = padded(x, begins), padded(steps, begins)
    b, c = (padded(t.repeat_interleave(heads // t.shape[1], 1), begins) for t in (b, c))
    state = torch.zeros(*x.shape[:1], *x.shape[2:], b.shape[-1], dtype=torch.float64, device=x.device)
    out = torch.empty_like(x)
    for t in range(x.shape[1]):
        step = steps[:, t, :, None, None]
        state = state * torch.exp(step * decay.double()[:, None, None])
        state = state + step * x[:, t, :, :, None] * b[:, t, :, None, :]
        out[:, t] = (state @ c[:, t, :, :, None])[..., 0]
    return [joined(out + x * skip.double()[:, None], begins), state]


def decayed_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, decay: torch.Tensor, block: int
) -> torch.Tensor:
    """Causal linear attention (batch, heads, tokens, columns) whose weights decay with the distance, in float64.

    As the kernels do, it counts one less to tokens of earlier blocks.
    """
    places = torch.arange(q.shape[2], device=q.device)
    distance = (places[:, None] - places).double().clamp(min=0)
    distance -= (places[:, None] // block > places // block).double()
    result = torch.empty(*q.shape[:3], v.shape[3], dtype=torch.float64, device=q.device)
    for head in range(q.shape[1]):
        weights = torch.exp(-decay[head].double() * distance).tril()
        result[:, head] = (q[:, head].double() @ k[:, head].double().mT * weights) @ v[:, head].double()
    return result


@dataclass
class DeltaRule:
    """Inputs of a gated delta rule, sequences one behind the other; the state is (sequences, heads, values, keys)."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    decay: torch.Tensor
    beta: torch.Tensor
    state: torch.Tensor

    def arguments(self) -> list[torch.Tensor]:
        """As batches of one; the values are a copy, which a call may overwrite."""
        return [t[None] for t in (self.q, self.k, self.v.clone(), self.decay, self.beta)]


def delta_rule_inputs(
    lengths: Sequence[int], heads: int, value_heads: int, dim: int, columns: bool = False
) -> DeltaRule:
    """Random ones; with `columns`, the decay is of each column of the keys instead of each head."""
    tokens = sum(lengths)
    unit = torch.nn.functional.normalize
    decay = (tokens, value_heads, dim) if columns else (tokens, value_heads)
    return DeltaRule(
        q=unit(normal(tokens, heads, dim, dtype=torch.float32, seed=1), dim=-1).bfloat16(),
        k=unit(normal(tokens, heads, dim, dtype=torch.float32, seed=2), dim=-1).bfloat16(),
        v=normal(tokens, value_heads, dim, seed=3),
        decay=-uniform(*decay, low=0.001, high=0.2, seed=4),
        beta=uniform(tokens, value_heads, low=0.1, high=0.9, seed=5).bfloat16(),
        state=normal(len(lengths), value_heads, dim, dim, dtype=torch.float32, scale=0.1, seed=6),
    )


def delta_rule(inputs: DeltaRule, lengths: Sequence[int]) -> list[torch.Tensor]:
    """The recurrence in float64, a token at a time: results, and each sequence's last state."""
    begins = starts(lengths)
    group = inputs.v.shape[1] // inputs.q.shape[1]
    q, k = (padded(t.repeat_interleave(group, 1), begins) for t in (inputs.q, inputs.k))
    v, decay, beta = (padded(t, begins) for t in (inputs.v, inputs.decay, inputs.beta))
    decay = decay.exp().view(*decay.shape[:3], 1, -1)
    state, out = inputs.state.double(), torch.empty_like(v)
    for t in range(v.shape[1]):
        state = state * decay[:, t]
        change = (v[:, t] - (state @ k[:, t, :, :, None])[..., 0]) * beta[:, t, :, None]
        state = state + change[..., None] * k[:, t, :, None, :]
        out[:, t] = (state @ q[:, t, :, :, None])[..., 0]
    return [joined(out, begins) * q.shape[-1] ** -0.5, state]


def blocks(values: torch.Tensor, scales: torch.Tensor, *sizes: int) -> torch.Tensor:
    """Values in float64, each multiplied with its block's scale; `sizes` are those of a block."""
    scales = scales.double()
    for axis, size in enumerate(sizes):
        scales = scales.repeat_interleave(size, dim=axis)
    return values.double() * scales[tuple(slice(length) for length in values.shape)]


def float8(*shape: int, scale: float = 1.0, seed: int = 0) -> torch.Tensor:
    """Random values of 8 bits (e4m3)."""
    return normal(*shape, dtype=torch.float32, scale=scale, seed=seed).to(torch.float8_e4m3fn)


def align_experts(experts: torch.Tensor, block: int, count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The order in which a fused MoE kernel takes the rows of `experts` (tokens, choices).

    Gives the rows of each expert one behind the other, filled up to blocks with a row that does not exist; each
    block's expert; and the number of rows with those that fill.
    """
    flat = experts.flatten().long()
    sizes = torch.bincount(flat, minlength=count).tolist()
    order = torch.argsort(flat, stable=True).to(torch.int32)
    rows, owners = [], []
    for expert, (begin, size) in enumerate(zip(starts(sizes), sizes)):
        fill = -size % block
        rows += [order[begin : begin + size], torch.full((fill,), flat.numel(), dtype=torch.int32, device=flat.device)]
        owners += [expert] * ((size + fill) // block)
    row = torch.cat(rows)
    return row, ints(owners), ints([row.numel()])


def routing(tokens: int, experts: int, choices: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and numbers of the experts that random tokens choose."""
    weights, chosen = normal(tokens, experts, dtype=torch.float32, seed=seed).softmax(-1).topk(choices, dim=-1)
    return weights / weights.sum(-1, keepdim=True), chosen.to(torch.int32)


def expert_products(x: torch.Tensor, weights: torch.Tensor, experts: torch.Tensor) -> torch.Tensor:
    """Each row (tokens × choices) of `x` times its expert's matrix (out, in), in float64."""
    flat = experts.flatten().long()
    result = torch.zeros(flat.numel(), weights.shape[1], dtype=torch.float64, device=x.device)
    for expert in range(weights.shape[0]):
        chosen = flat == expert
        result[chosen] = x[chosen].double() @ weights[expert].double().T
    return result
