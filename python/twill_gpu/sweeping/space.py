"""The configurations of a sweep: every combination of values, with the question about each."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _twill, needs
from ..backend import question
from ..errors import InputError, OptionError
from ..keywords import meant
from ..machine import Machine
from ..options import checked, known

LIMITS = ("time_limit", "work_limit")
"""Options of the search alone: bounds do not depend on them."""
INPUT = "input"
"""The name of a configuration's TTIR where there are several."""

Configuration = Mapping[str, object]


@dataclass(frozen=True)
class Candidate:
    """A configuration, and the question about it."""

    index: int
    """In the order of the space."""
    configuration: dict[str, object]
    constexprs: dict[str, object]
    """Constexprs of the kernel, fixed ones included; empty for TTIR."""
    options: dict[str, object]
    """Options of twill, fixed ones included, without limits."""
    question: _twill.Question | None
    """The question to `_twill`, without limits; None where the front end refuses the configuration."""
    reason: str | None
    """Why it does."""


def candidates(
    what: object,
    space: Mapping[str, Sequence[object]],
    machine: Machine,
    signature: object,
    constexprs: Mapping[str, object],
    options: Mapping[str, object],
    where: Callable[[Configuration], bool] | None,
) -> list[Candidate]:
    """Every configuration of a space. The TTIR of each tile shape is printed once. Raises `InputError`."""
    source = _source(what, signature, constexprs, machine)
    axes = {name: _values(name, values) for name, values in space.items()}
    for name in set(axes) & {*constexprs, *options}:
        raise InputError(f"{name} has a fixed value and values to sweep; give it once")
    fixed = {name: value for name, value in options.items() if name not in LIMITS}
    for name, values in axes.items():
        if not source.has(name):
            _check_option(name, values, source.names)
    checked(options)
    found: list[Candidate] = []
    for configuration in source.configurations(axes):
        if where is not None and not where(configuration):
            continue
        own = {name: value for name, value in configuration.items() if not source.has(name)}
        question, reason = _question(source.kernel(configuration), machine, {**fixed, **own})
        tile = source.constexprs_of(configuration)
        found.append(Candidate(len(found), dict(configuration), tile, {**fixed, **own}, question, reason))
    if not found:
        raise InputError("the space has no configuration; `where` may have refused all of them")
    return found


def _question(
    kernel: tuple[str, str] | InputError, machine: Machine, options: Mapping[str, object]
) -> tuple[_twill.Question | None, str | None]:
    """The question about a configuration, or the reason for none."""
    if isinstance(kernel, InputError):
        return None, str(kernel)
    try:
        return question("kernel", *kernel, machine, options), None
    except InputError as error:
        return None, str(error)


def fill(text: str, constexprs: Mapping[str, object]) -> str:
    """A type with its {NAME}s replaced by values of constexprs."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in constexprs:
            raise InputError(f"signature: {text}: there is no constexpr {match[1]}, only {', '.join(constexprs)}")
        return str(constexprs[match[1]])

    return re.sub(r"\{(\w+)\}", value, text)


def signature_of(text: str) -> dict[str, str]:
    """Types by name of `a=tensordesc<fp16[128, 64]>,K=i32:16`; commas in brackets part nothing."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "<[({") - (letter in ">])}")
        if letter in ",;" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    types = {}
    for part in filter(None, map(str.strip, parts)):
        name, equals, kind = part.partition("=")
        if not equals:
            raise InputError(f"signature: {part!r} should read NAME=TYPE, such as K=i32:16")
        types[name.strip()] = kind.strip()
    return types


class _Function:
    """A Triton function, whose TTIR depends on constexprs."""

    def __init__(self, function: Any, signature: Any, constexprs: Mapping[str, object], machine: Machine):
        needs.triton("scheduling a Triton function")
        if signature is None:
            raise InputError(
                "a Triton function needs signature=…, the types of its parameters, such as {'x_ptr': '*fp16:16'}"
            )
        while not hasattr(function, "arg_names") and hasattr(function, "fn"):
            function = function.fn
        if not hasattr(function, "arg_names"):
            raise InputError(f"{function!r} is no Triton function: decorate it with triton.jit or twill_gpu.jit")
        self._function, self._machine, self._fixed = function, machine, dict(constexprs)
        self._types = signature_of(signature) if isinstance(signature, str) else dict(signature)
        self._printed: dict[str, tuple[str, str] | InputError] = {}

    @property
    def names(self) -> Collection[str]:
        """The parameters that a configuration may give a value, besides options."""
        return list(self._function.arg_names)

    def has(self, name: str) -> bool:
        return name in self.names

    def configurations(self, axes: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
        return _combinations(axes)

    def constexprs_of(self, configuration: Configuration) -> dict[str, object]:
        return {**self._fixed, **{name: value for name, value in configuration.items() if self.has(name)}}

    def kernel(self, configuration: Configuration) -> tuple[str, str] | InputError:
        """Name and TTIR, or why there is none."""
        constexprs = self.constexprs_of(configuration)
        shape = repr(sorted(constexprs.items()))
        if shape not in self._printed:
            self._printed[shape] = self._print(constexprs)
        return self._printed[shape]

    def _print(self, constexprs: dict[str, object]) -> tuple[str, str] | InputError:
        from ..front_end import ttir_of

        types = {
            name: kind(constexprs) if callable(kind) else fill(kind, constexprs) for name, kind in self._types.items()
        }
        try:
            return ttir_of(self._function, types, constexprs, self._machine)
        except InputError as error:
            if error.__cause__ is None:
                # The signature is wrong, for every tile.
                raise
            # The last line says why; those before it show the source.
            return InputError(f"Triton refuses it: {str(error).strip().splitlines()[-1]}", error.place)


class _Files:
    """TTIR that is printed already: the configurations are its files times values of options."""

    def __init__(self, inputs: Sequence[str | os.PathLike[str]]):
        self._kernels: dict[str, tuple[str, str]] = {}
        for one in inputs:
            text = one if isinstance(one, str) and "\n" in one else None
            name = os.fspath(one) if text is None else f"kernel{len(self._kernels)}"
            if name in self._kernels:
                raise InputError(f"{name} is given twice")
            try:
                self._kernels[name] = name, Path(name).read_text(encoding="utf-8") if text is None else text
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"cannot read {name}: {error}") from error

    names = (INPUT,)

    def has(self, name: str) -> bool:
        return name in self.names

    def configurations(self, axes: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
        return _combinations({INPUT: list(self._kernels), **axes})

    def constexprs_of(self, configuration: Configuration) -> dict[str, object]:
        return {}

    def kernel(self, configuration: Configuration) -> tuple[str, str]:
        return self._kernels[str(configuration[INPUT])]


def _source(what: Any, signature: Any, constexprs: Mapping[str, object], machine: Machine) -> _Function | _Files:
    if callable(what) or hasattr(what, "fn"):
        return _Function(what, signature, constexprs, machine)
    if signature is not None or constexprs:
        raise InputError("signature and constexprs are for Triton functions; TTIR has its own already")
    inputs = [what] if isinstance(what, (str, os.PathLike)) else list(what)
    if not inputs:
        raise InputError("there is nothing to sweep: give a Triton function or TTIR files")
    return _Files(inputs)


def _combinations(axes: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values))


def _values(name: str, values: Any) -> list[object]:
    if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__iter__"):
        raise InputError(f"{name}: give a list of values, such as {name}=[{values!r}]")
    all: list[object] = list(values)
    if not all:
        raise InputError(f"{name}: the list of values is empty")
    for value in all:
        if not isinstance(value, (int, float, str, bool, type(None))):
            raise InputError(f"{name}: {value!r} is neither a number, a text, a boolean nor None")
    return all


def _check_option(name: str, values: list[object], parameters: Collection[str]) -> None:
    """Raises where the name is no option's, or no value is possible. Other values are rejected one by one."""
    if name not in known():
        best = meant(name, {*parameters, *known()})
        hint = f"; did you mean {best!r}?" if best else ""
        raise OptionError(f"{name!r} is neither a parameter of the kernel nor an option{hint}")
    errors = []
    for value in values:
        try:
            checked({name: value})
        except InputError as error:
            errors.append(error)
    if len(errors) == len(values):
        raise errors[0]
