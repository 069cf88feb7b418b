"""The decorator `@twill_gpu.jit`, in the place of `@triton.jit`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, overload

from . import needs
from .errors import InputError
from .jit_kernel import ON_FAILURE, JitKernel
from .keywords import spelled
from .machine import Machine
from .options import checked, known


def _of_triton() -> Collection[str]:
    """Keywords of `triton.jit`."""
    return list(inspect.signature(needs.triton("twill_gpu.jit").jit).parameters)[1:]


@overload
def jit(
    fn: Callable[..., Any],
    *,
    machine: str | os.PathLike[str] | Machine | None = None,
    on_failure: Literal["stock", "error"] = "stock",
    options: Mapping[str, object] | None = None,
    **triton_options: object,
) -> JitKernel: ...
@overload
def jit(
    fn: None = None,
    *,
    machine: str | os.PathLike[str] | Machine | None = None,
    on_failure: Literal["stock", "error"] = "stock",
    options: Mapping[str, object] | None = None,
    **triton_options: object,
) -> Callable[[Callable[..., Any]], JitKernel]: ...
@spelled(more=_of_triton, options=known)
def jit(
    fn: Callable[..., Any] | None = None,
    *,
    machine: str | os.PathLike[str] | Machine | None = None,
    on_failure: Literal["stock", "error"] = "stock",
    options: Mapping[str, object] | None = None,
    **triton_options: object,
) -> JitKernel | Callable[[Callable[..., Any]], JitKernel]:
    """A Triton kernel that is scheduled by Twill when it is first called, for each specialisation.

    Used as `@triton.jit` is, and called alike: `kernel[grid](arguments, CONSTEXPR=…, num_warps=…)`. How stock Triton is
    to compile (`num_warps`, `num_stages`, `num_ctas`, `maxnreg`) changes nothing in a scheduled kernel.

    machine: a `Machine`, its name or its path; by default that of the GPU in use.
    on_failure: "stock" to run stock Triton where Twill makes no kernel, with one `TwillWarning` for each
        specialisation, and where its kernel is slower: the first launches of each grid and sizes alternate, and their
        times decide (`JitKernel.contests`); "error" to raise `TwillError`, and to run Twill's kernels alone.
    options: those of `twill compile`, by name with underscores, such as `{"time_limit": 60, "persistent": False}`.
    triton_options: those of `triton.jit`.

    In Triton's interpreter (`TRITON_INTERPRET=1`) it is `triton.jit`. Raises `MissingError` where Triton is not installed,
    `OptionError` for an option that there is not, `InputError` for a value that it cannot have.
    """
    if on_failure not in ON_FAILURE:
        raise InputError(f"on_failure must be {' or '.join(map(repr, ON_FAILURE))}, not {on_failure!r}")
    options = dict(options or {})
    checked(options)
    triton = needs.triton("twill_gpu.jit")

    def decorate(fn: Callable[..., Any]) -> JitKernel:
        function = triton.jit(**triton_options)(fn)
        # In the interpreter it is no function that is compiled.
        is_compiled = hasattr(function, "device_caches")
        return JitKernel(function, machine, on_failure, options) if is_compiled else function

    return decorate if fn is None else decorate(fn)
