"""The decorator `@twill_gpu.jit`, in the place of `@triton.jit`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import triton

from . import backend
from .machine import Machine
from .jit_kernel import ON_FAILURE, JitKernel


def jit(
    fn: Callable | None = None,
    *,
    machine: str | Machine | None = None,
    on_failure: str = "stock",
    options: Mapping[str, object] | None = None,
    **triton_options: object,
) -> JitKernel | Callable[[Callable], JitKernel]:
    """A Triton kernel that is scheduled by Twill when it is first called, for each specialisation.

    Used as `@triton.jit` is, and called alike: `kernel[grid](arguments, CONSTEXPR=…, num_warps=…)`. How stock Triton is
    to compile (`num_warps`, `num_stages`, `num_ctas`, `maxnreg`) changes nothing in a scheduled kernel.

    machine: a `Machine`, its name or its path; by default that of the GPU in use.
    on_failure: "stock" to run stock Triton where Twill makes no kernel, with one `TwillWarning` for each
        specialisation; "error" to raise `TwillError`.
    options: those of `twill compile`, by name with underscores, such as `{"time_limit": 60, "persistent": False}`.
    triton_options: those of `triton.jit`.

    In Triton's interpreter (`TRITON_INTERPRET=1`) it is `triton.jit`.
    """
    if on_failure not in ON_FAILURE:
        raise ValueError(f"on_failure must be one of {', '.join(map(repr, ON_FAILURE))}, not {on_failure!r}")
    options = dict(options or {})
    backend.check_options(options)

    def decorate(fn: Callable) -> JitKernel:
        function = triton.jit(**triton_options)(fn)
        return JitKernel(function, machine, on_failure, options) if hasattr(function, "device_caches") else function

    return decorate if fn is None else decorate(fn)
