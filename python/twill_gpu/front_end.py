"""From a Triton function to its TTIR, through Triton's own front end."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget, Language
from triton.compiler import ASTSource, make_backend
from triton.compiler.compiler import filter_traceback
from triton.runtime.driver import driver
from triton import knobs
from triton.runtime.jit import JITFunction, create_function_from_signature

from .errors import InputError, TwillError
from .machine import Machine

OFFLINE_ARCHITECTURES = {"a100": 80, "b200": 100, "b200-left-shared": 100}
"""Compute capability × 10 of machines other than Hopper, for compiling without a GPU."""


@dataclass(frozen=True)
class Specialisation:
    """The facts of Triton's binder about the arguments of a call. Raises `TwillError` for tuples."""

    options: object
    """As its back end parsed them."""
    signature: dict[str, Any]
    """Type of each parameter."""
    constexprs: dict[str, Any]
    attributes: dict[tuple[int], Any]

    def __post_init__(self) -> None:
        names = [name for name, kind in self.signature.items() if isinstance(kind, tuple)]
        if names:
            raise TwillError(f"a tuple is given for {', '.join(names)}; give its parts as parameters of their own")


def offline(function: JITFunction, machine: str) -> tuple[GPUTarget, Any, Any]:
    """Target, Triton's back end and the function's binder for a machine that is not here."""
    target = GPUTarget("cuda", OFFLINE_ARCHITECTURES.get(machine, 90), 32)
    backend = make_backend(target)
    return target, backend, create_function_from_signature(function.signature, function.params, backend)


def make_ttir(function: JITFunction, target: GPUTarget, backend: Any, found: Specialisation) -> str:
    """The TTIR of a function for a specialisation, with locations. Errors are those of Triton's compiler."""
    source = ASTSource(function, found.signature, found.constexprs, found.attributes)
    context = ir.context()
    stages: dict[str, Any] = {}
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


def ttir_of(function: Any, signature: Any, constexprs: Mapping[str, object], machine: str | os.PathLike[str] | Machine | None) -> tuple[str, str]:
    """Name and TTIR of a Triton function for these types, without a GPU.

    signature: types of the run-time parameters, by name or in their order, as Triton writes them: `*fp16`, `i32`, `fp32`,
        `tensordesc<fp16[128, 64]>`; `:16` after one says that it is a multiple of 16.
    Raises `InputError` where they are not those of the function.
    """
    while not isinstance(function, JITFunction):
        if not hasattr(function, "fn"):
            raise InputError(f"{function!r} is no Triton function: decorate it with triton.jit or twill_gpu.jit")
        function = function.fn
    free = [name for name in function.arg_names if name not in constexprs]
    given = [part.strip() for part in signature.split(";")] if isinstance(signature, str) else signature
    types: dict[str, Any] = dict(given if isinstance(given, Mapping) else zip(free, given))
    if sorted(types) != sorted(free) or any(name not in function.arg_names for name in constexprs):
        raise InputError(
            f"{function.__name__} has the parameters {', '.join(function.arg_names)}; signature gives types to "
            f"{', '.join(types) or 'none'}, and constexprs values to {', '.join(constexprs) or 'none'}"
        )
    attributes: dict[tuple[int], Any] = {}
    for position, name in enumerate(function.arg_names):
        kind, _, multiple = str(types.get(name, "")).partition(":")
        if multiple not in ("", "16"):
            raise InputError(f"{name}: {types[name]}: only :16 may follow a type")
        if multiple:
            attributes[position,] = [["tt.divisibility", 16]]
        types[name] = kind if name in types else "constexpr"
    target, backend, _ = offline(function, machine_name(machine))
    kinds = {name: types[name] for name in function.arg_names}
    # The default, of which Triton 3.9 warns where it is not told.
    options = backend.parse_options({"enable_fp_fusion": knobs.language.default_fp_fusion})
    found = Specialisation(options, kinds, dict(constexprs), attributes)
    try:
        return function.__name__, make_ttir(function, target, backend, found)
    except Exception as error:
        # Triton has many ways to say that a type or a value does not go with the kernel.
        path, line = place_of(function)
        why = f"{type(error).__name__}: {error}"
        raise InputError(f"{function.__name__}: Triton makes no TTIR of it for these types and values: {why}", (path, line)) from error


def place_of(function: Any) -> tuple[str, int]:
    """File and line of the `def` of a Triton function."""
    above = (number for number, line in enumerate(function.raw_src) if line.strip().startswith("def "))
    return function.fn.__code__.co_filename, function.starting_line_number + next(above, 0)


def machine_name(machine: str | os.PathLike[str] | Machine | None) -> str:
    """The built-in machine whose target a machine shares."""
    if machine is None:
        return "h100"
    architecture = Machine.of(machine).architecture
    return next((name for name, number in OFFLINE_ARCHITECTURES.items() if architecture.startswith(f"sm_{number}")), "h100")


def ttir_of_call(kernel: Any, named: dict[str, Any]) -> tuple[int | None, Any, str]:
    """Device (None without a GPU), target and TTIR of a `JitKernel` for a call with these arguments and options, by name."""
    function = kernel._function
    try:
        active: Any = driver.active
        device = active.get_current_device()
        _, _, target, backend, binder = function.device_caches[device]
    except RuntimeError:
        if kernel.machine is None:
            raise
        device, (target, backend, binder) = None, offline(function, machine_name(kernel.machine))
    # The arguments that Triton's `run` adds to every call.
    named = {"debug": False, "instrumentation_mode": "", **named}
    bound, specialisation, options = binder(**named)
    packed = function._pack_args(backend, named, bound, specialisation, options)
    return device, target, make_ttir(function, target, backend, Specialisation(*packed))
