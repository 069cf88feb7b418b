"""Checks that configurations fit, before anything is compiled."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from . import _twill, needs
from .backend import question
from .errors import TwillError, TwillWarning
from .inputs import question_of
from .keywords import spelled
from .machine import Machine
from .options import known


@dataclass(frozen=True)
class Holder:
    """A buffer or value that takes part of a resource."""

    name: str
    amount: int
    slots: int
    """Among which the amount is divided."""
    source: tuple[str, int] | None
    """File and line that make it."""


@dataclass(frozen=True)
class Need:
    """A kernel's use of a resource: bytes of shared memory, columns of tensor memory, registers of a thread, warps."""

    resource: str
    required: int
    available: int
    largest: tuple[Holder, ...]
    """The largest user of it."""


@dataclass(frozen=True)
class Bound:
    """The most that a loop can achieve."""

    name: str
    interval: int
    """No shorter initiation interval exists, in cycles; proved."""
    why: dict[str, Any]
    """Its bound: `kind`, `witness`."""
    flop: int
    """Floating-point operations of the MMAs of an iteration."""
    teraflops: float | None
    """The most TFLOP/s of the whole GPU at the machine's clock."""


class Fit:
    """The fit of a configuration on a machine, and its needs there."""

    def __init__(self, text: str):
        self._text, file = text, json.loads(text)
        self.verdict: str = file["verdict"]
        """`fits`, `does_not_fit` (proved), or `unknown`."""
        self.needs: dict[str, Need] = {one["resource"]: _need(one) for one in file["needs"]}
        """By resource, as far as is known: `shared_memory`, `tensor_memory`, `registers`, `register_file`, `warps`."""
        self.bounds: tuple[Bound, ...] = tuple(map(_bound, file["loops"]))
        """One for each loop, in the order of the text."""
        misfit = file.get("misfit") or {}
        self.resource: str | None = misfit.get("resource")
        """The scarce resource."""
        self.culprit: str | None = misfit.get("culprit")
        """The buffer, value or operation to blame."""
        self.reason: str | None = misfit.get("reason")
        """Why it does not fit, or why that is not known."""
        self.way_out: str | None = misfit.get("way_out")
        """The suggested change."""

    @property
    def fits(self) -> bool:
        """Returns whether it is known to fit."""
        return self.verdict == "fits"

    def to_json(self) -> str:
        """All of it (`twill schema fit`)."""
        return self._text

    def __bool__(self) -> bool:
        return self.fits

    def __repr__(self) -> str:
        bounds = " + ".join(str(bound.interval) for bound in self.bounds)
        why = "" if self.reason is None else f": {self.reason}"
        return f"Fit({self.verdict.replace('_', ' ')}{why}; I >= {bounds})"


@spelled(more=known)
def fit(
    what: Callable[..., Any] | str | os.PathLike[str],
    machine: str | os.PathLike[str] | Machine | None = None,
    signature: Mapping[str, str] | Sequence[str] | str | None = None,
    constexprs: Mapping[str, object] | None = None,
    **options: object,
) -> Fit:
    """The fit of the kernel that Twill generates, its needs, and the proven bound on its throughput.

    Nothing is searched or compiled: it takes milliseconds, and for a Triton function the time of Triton's front end. Arguments
    are those of `schedule`, options those of `twill compile`. Raises `InputError` where no kernel could be generated anyway.
    """
    return Fit(_twill.fit(question_of(what, machine, signature, constexprs, options))[0])


def prune_configs(configs: list[Any], named_args: Mapping[str, object], **named: object) -> list[Any]:
    """The configurations whose kernels fit, for `triton.autotune` above `twill_gpu.jit`:

        @triton.autotune(configs, key=[…], prune_configs_by={"early_config_prune": twill_gpu.prune_configs})
        @twill_gpu.jit
        def kernel(…): …

    One that is not known to be too large stays. Where none is left, all stay and a `TwillWarning` says why each is too large.
    """
    needs.triton("twill_gpu.prune_configs")
    from triton.compiler.errors import CompilationError

    kernel = _autotuned()
    # The autotuner passes on what the launch has besides arguments.
    arguments = {name: value for name, value in {**named_args, **named}.items() if name not in ("grid", "warmup")}
    kept, refused = [], []
    for config in configs:
        try:
            found = _fit_of(kernel, config, arguments)
        except (TwillError, CompilationError):
            # The launch says why, and falls back or is left out by the autotuner.
            kept.append(config)
            continue
        if found.verdict == "does_not_fit":
            refused.append(f"{config}: {found.reason}")
        else:
            kept.append(config)
    if not kept and refused:
        warnings.warn(TwillWarning("no configuration fits:\n" + "\n".join(refused)), stacklevel=2)
        return list(configs)
    return kept


def _autotuned() -> Any:
    """The kernel whose autotuner is asking: it tells nobody, so it is found among the callers."""
    from triton.runtime.autotuner import Autotuner

    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        asking: Any = frame.f_locals.get("self")
        if isinstance(asking, Autotuner):
            return asking.fn
        frame = frame.f_back
    raise TypeError("prune_configs is called by triton.autotune: prune_configs_by={'early_config_prune': prune_configs}")


def _fit_of(kernel: Any, config: Any, arguments: dict[str, object]) -> Fit:
    """Returns whether a configuration of an autotuner fits for these arguments."""
    from . import gpu
    from .front_end import ttir_of_call
    from .jit_kernel import JitKernel

    while not isinstance(kernel, JitKernel):
        if not hasattr(kernel, "fn"):
            raise TypeError("prune_configs is for kernels of twill_gpu.jit: what stock Triton makes needs other amounts")
        kernel = kernel.fn
    named = {**arguments, **config.all_kwargs()}
    if config.pre_hook is not None:
        # It may give descriptors the block shape of the configuration.
        config.pre_hook(named)
    _, target, ttir = ttir_of_call(kernel, named)
    machine = kernel.machine or gpu.machine_of(target.arch)
    return Fit(_twill.fit(question("kernel", kernel.__name__, ttir, machine, kernel.options))[0])


def _need(entry: dict[str, Any]) -> Need:
    return Need(entry["resource"], entry["required"], entry["available"], tuple(map(_holder, entry["largest"])))


def _holder(entry: dict[str, Any]) -> Holder:
    source = entry.get("source")
    return Holder(entry["name"], entry["amount"], entry["slots"], (source["file"], source["line"]) if source else None)


def _bound(entry: dict[str, Any]) -> Bound:
    return Bound(entry["name"], entry["bound"]["interval"], entry["bound"], entry["flop"], entry.get("teraflops"))
