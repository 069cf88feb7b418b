"""From a Triton function to its TTIR, through Triton's own front end."""

from __future__ import annotations

from dataclasses import dataclass

from triton._C.libtriton import ir
from triton.backends.compiler import BaseBackend, GPUTarget, Language
from triton.compiler import ASTSource, make_backend
from triton.compiler.compiler import filter_traceback
from triton.runtime.jit import JITFunction, create_function_from_signature

from .errors import TwillError

OFFLINE_ARCHITECTURES = {"a100": 80, "b200": 100, "b200-left-shared": 100}
"""Compute capability × 10 of machines other than Hopper, for compiling without a GPU."""


@dataclass(frozen=True)
class Specialisation:
    """What Triton's binder found out about the arguments of a call. Raises `TwillError` for tuples."""

    options: object
    """As its back end parsed them."""
    signature: dict
    """Type of each parameter."""
    constexprs: dict
    attributes: dict

    def __post_init__(self) -> None:
        names = [name for name, kind in self.signature.items() if isinstance(kind, tuple)]
        if names:
            raise TwillError(f"a tuple is given for {', '.join(names)}; give its parts as parameters of their own")


def offline(function: JITFunction, machine: str) -> tuple[GPUTarget, BaseBackend, object]:
    """Target, Triton's back end and the function's binder for a machine that is not here."""
    target = GPUTarget("cuda", OFFLINE_ARCHITECTURES.get(machine, 90), 32)
    backend = make_backend(target)
    return target, backend, create_function_from_signature(function.signature, function.params, backend)


def make_ttir(function: JITFunction, target: GPUTarget, backend: BaseBackend, found: Specialisation) -> str:
    """The TTIR of a function for a specialisation, with locations. Errors are those of Triton's compiler."""
    source = ASTSource(function, found.signature, found.constexprs, found.attributes)
    context, stages = ir.context(), {}
    ir.load_dialects(context)
    backend.load_dialects(context)
    backend.add_stages(stages, found.options, Language.TRITON)
    try:
        module = source.make_ir(
            target,
            found.options,
            backend.get_codegen_implementation(found.options),
            backend.get_module_map(),
            context,
        )
    except Exception as error:
        filter_traceback(error)
        raise
    return str(stages["ttir"](module, {}))
