"""`python -m twill_gpu.ttir FILE.py::KERNEL`: prints the TTIR of a Triton function in Python source, without a GPU.

The commands of `twill` ask here for inputs that are called so.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import needs
from .errors import InputError, TwillError
from .example import ATTRIBUTE

TENSOR = re.compile(r"(?P<element>[a-z]\w*)\s*\[[\s\w*,]*\]")
"""`fp16[128, 128]`: its extents say nothing of the kernel that is compiled, only that it begins at a multiple of 16."""
INTEGER = re.compile(r"[-+]?\d[\d_]*")
FLOAT = re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+)([eE][-+]?\d+)?")
PLAIN = {"True": True, "False": False, "None": None}


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command with these words; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m twill_gpu.ttir")
    parser.add_argument("place", metavar="FILE.py::KERNEL")
    parser.add_argument("--arg", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--call", metavar="SCRIPT")
    parser.add_argument("--machine", metavar="NAME")
    told = parser.parse_args(words)
    try:
        if told.call:
            text = of_call(told.place, told.call)
        else:
            text = of_source(told.place, dict(_pair(text) for text in told.arg), told.machine)
    except TwillError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    sys.stdout.write(text)
    return 0


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise InputError(f"--arg {text}: it should read NAME=VALUE, as in --arg q_ptr=fp16[128,128]")
    return name, value.strip()


# ------------------------------------------------------------------------------------------------- from the source
def of_source(place: str, given: Mapping[str, object], machine: str | None = None) -> str:
    """The TTIR of FILE.py::KERNEL, given these values of its parameters and those beside it.

    Raises `InputError` where there is no such function, or a parameter has no value.
    """
    needs.triton(place)
    from .front_end import ttir_of

    function, beside = _function(place)
    signature, constexprs = arguments_of(place, function, {**beside, **given})
    return ttir_of(function, signature, constexprs, machine)[1]


def _function(place: str) -> tuple[Any, dict[str, object]]:
    """A Triton function, and what stands beside it: an example, the first configuration of an autotuner."""
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    from .jit_kernel import JitKernel
    from .sweeping.command import named

    file, _, name = place.rpartition("::")
    if not Path(file).is_file():
        raise InputError(f"{place}: there is no file {file}")
    # What the file prints is no part of the TTIR.
    with contextlib.redirect_stdout(sys.stderr):
        found: Any = named(f"{file}:{name}")
    beside: dict[str, object] = {}
    while not isinstance(found, JITFunction):
        beside = {**getattr(found, ATTRIBUTE, {}), **beside}
        if isinstance(found, Autotuner) and found.configs:
            beside = {**found.configs[0].kwargs, **beside}
        found = found._function if isinstance(found, JitKernel) else getattr(found, "fn", None)
        if found is None:
            raise InputError(f"{place}: it is no Triton function; decorate it with triton.jit, or name another one")
    return found, {**getattr(found, ATTRIBUTE, {}), **beside}


def arguments_of(place: str, function: Any, given: Mapping[str, object]) -> tuple[dict[str, str], dict[str, object]]:
    """Types of the run-time parameters and values of the others. Raises `InputError` where one has none."""
    parameters = {parameter.name: parameter for parameter in function.params}
    unknown = [name for name in given if name not in parameters]
    if unknown:
        raise InputError(f"{place} has no parameter {', '.join(unknown)}; it has {', '.join(parameters)}")
    signature: dict[str, str] = {}
    constexprs: dict[str, object] = {}
    missing: list[str] = []
    for name, parameter in parameters.items():
        if name not in given and not parameter.has_default:
            missing.append(name)
            continue
        value = _value(given[name]) if name in given else parameter.default
        kind = None if parameter.is_constexpr else type_of(name, value, not parameter.do_not_specialize)
        if kind is None:
            constexprs[name] = value
        else:
            signature[name] = kind
    if missing:
        one = missing[0]
        shown = "128" if parameters[one].is_constexpr else "fp16[128,128]"
        raise InputError(
            f"{place}: nothing is said of {', '.join(missing)}; give --arg {one}={shown} for each, "
            f"put @twill_gpu.example({one}=…) above the function, or name a program that launches it with --call"
        )
    return signature, constexprs


def type_of(name: str, value: object, specialise: bool = True) -> str | None:
    """The type of a run-time parameter that is given this; None for what Triton compiles in: 1, None."""
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        if specialise and value == 1:
            return None
        wide = "i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"
        return wide + (":16" if specialise and value % 16 == 0 else "")
    if isinstance(value, float):
        return "fp32"
    if value is None:
        return None
    text = str(value)
    tensor = TENSOR.fullmatch(text)
    if tensor:
        return f"*{tensor['element']}:16"
    if re.fullmatch(r"(\*?[a-z]\w*|tensordesc<.+>)(:16)?", text):
        return text
    raise InputError(
        f"{name}={text}: it is neither a tensor (fp16[128,128]), nor a type as Triton writes it (*fp16:16, i32, "
        "tensordesc<fp16[128, 64]>), nor a number"
    )


def _value(given: object) -> object:
    """What a text of the command line says: a number, a boolean, nothing, or itself."""
    if not isinstance(given, str):
        return given
    if given in PLAIN:
        return PLAIN[given]
    if INTEGER.fullmatch(given):
        return int(given)
    return float(given) if FLOAT.fullmatch(given) else given


# ------------------------------------------------------------------------------------------------- from a program
def of_call(place: str, script: str) -> str:
    """The TTIR that a program launches FILE.py::KERNEL with: that of the specialisation that took most time.

    Raises `InputError` where it launches no such kernel.
    """
    from . import collecting

    name = place.rpartition("::")[2]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "twill_gpu.collecting", "-o", folder, "--", sys.executable, script]
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        try:
            found = [one for one in collecting.read(folder) if one.record.kernel == name]
            others = sorted({one.record.kernel for one in collecting.read(folder)})
        except InputError:
            found, others = [], []
        if not found:
            ended = f"it ended with {ran.returncode}: {ran.stderr.strip()[-600:]}" if ran.returncode else ""
            launched = f"it launches {', '.join(others)}" if others else "it launches no kernel"
            raise InputError(f"{script} does not launch {name}: {ended or launched}")
        return found[0].ttir.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
