"""Functions that launch kernels, as operators that torch.compile leaves as they are."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from typing import Any, cast

from . import needs
from .keywords import spelled


def _of_torch() -> Collection[str]:
    """Keywords of `torch.library.custom_op`."""
    return list(inspect.signature(needs.torch("twill_gpu.custom_op").library.custom_op).parameters)


@spelled(more=_of_torch)
def custom_op(
    name: str, *, mutates_args: str | Iterable[str], fake: Callable[..., Any] | None = None, **torch_options: object
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An operator of torch made of a function that launches kernels, for use inside `torch.compile`.

        @twill_gpu.custom_op("mine::gemm", mutates_args={"c"})
        def gemm(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
            gemm_kernel[grid](…)

    name: with a namespace, as `torch.library.custom_op` wants it; torch_options go there too.
    mutates_args: names of the tensors that it writes.
    fake: what gives results of the right shapes for given arguments, without data; needed where it returns something.

    Without it a launch inside a compiled function ends the graph before and begins another after it.
    Raises TypeError for a function that returns something and has no `fake`.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        torch = needs.torch("twill_gpu.custom_op")
        operator = torch.library.custom_op(name, function, mutates_args=mutates_args, **torch_options)
        if fake is None and operator._opoverload._schema.returns:
            raise TypeError(f"{name} returns something: fake=… must say of what shape, or let it write to an argument")
        operator.register_fake(fake or (lambda *args, **named: None))
        return cast("Callable[..., Any]", operator)

    return decorate
