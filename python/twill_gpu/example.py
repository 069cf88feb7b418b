"""`@twill_gpu.example`: what a kernel is given, next to it, for commands that start from Python source."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

ATTRIBUTE = "_twill_example"
Function = TypeVar("Function")


def example(**given: object) -> Callable[[Function], Function]:
    """Says what a Triton function is given, and leaves the function as it is.

    `twill schedule kernel.py::attention` and the other commands take it from there. Each parameter has a tensor
    (`"fp16[4096, 128]"`), a type as Triton writes it (`"*fp16:16"`, `"tensordesc<fp16[128, 64]>"`), or a value.
    It stands above `@triton.jit`, `@triton.autotune` or `@twill_gpu.jit`.
    """

    def add(function: Function) -> Function:
        setattr(function, ATTRIBUTE, dict(given))
        return function

    return add
