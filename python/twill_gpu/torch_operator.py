"""Functions that launch kernels, as operators that torch.compile leaves as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def custom_op(
    name: str, *, mutates_args: str | Iterable[str], fake: Callable | None = None, **torch_options: object
) -> Callable[[Callable], Callable]:
    """An operator of torch made of a function that launches kernels, for use inside `torch.compile`.

        @twill_gpu.custom_op("mine::gemm", mutates_args={"c"})
        def gemm(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
            gemm_kernel[grid](…)

    name: with a namespace, as `torch.library.custom_op` wants it; torch_options go there too.
    mutates_args: names of the tensors that it writes.
    fake: what gives results of the right shapes for given arguments, without data; needed where it returns something.

    Without it a launch inside a compiled function ends the graph before and begins another behind it.
    Raises TypeError for a function that returns something and has no `fake`.
    """

    def decorate(function: Callable) -> Callable:
        import torch

        operator = torch.library.custom_op(name, function, mutates_args=mutates_args, **torch_options)
        if fake is None and operator._opoverload._schema.returns:
            raise TypeError(f"{name} returns something: fake=… must say of what shape, or let it write to an argument")
        operator.register_fake(fake or (lambda *args, **named: None))
        return operator

    return decorate
