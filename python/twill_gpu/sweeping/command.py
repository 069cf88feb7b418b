"""The `twill sweep` command."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ..command_line import Parser
from ..errors import InputError, TwillError
from .amounts import amounts_of
from .results import Sweep
from .sweep_call import TIME_LIMIT, sweep

DONE, ERROR, INTERRUPTED = 0, 1, 3
"""Exit codes."""

EXAMPLES = """examples:
  twill sweep gemm.py:gemm --signature 'a=tensordesc<fp16[{BLOCK_M}, {BLOCK_K}]>,...,K=i32:16' \\
      --constexpr BLOCK_M=64,128,256 --constexpr BLOCK_K=64 --option sub_tiles=1,2 --machine h200 --state sweep.jsonl
  twill sweep tile128.ttir tile256.ttir --option compute_groups=1,2,3 --format svg -o sweep.svg
"""
SHORT = ("machine", "signature", "constexpr", "option", "solve", "time_limit", "measure", "state", "format", "output")
"""Options in short help."""


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command with these words, by default those of this process; its exit code."""
    told = parser().parse(words)
    try:
        found = _sweep(told)
        _write(found, told)
    except TwillError as error:
        print(f"error: {error}", file=sys.stderr)
        return ERROR
    except KeyboardInterrupt:
        print("interrupted before there was anything", file=sys.stderr)
        return INTERRUPTED
    return INTERRUPTED if found.interrupted else DONE


def parser() -> Parser:
    """What the command takes."""
    made = Parser(
        "twill sweep",
        "[OPTIONS] INPUT...",
        "Compare tile shapes and options: reject what cannot fit, rank by proved bounds,\nand solve the best",
        "0 done, 1 error, 3 interrupted, with what there is",
        EXAMPLES,
        SHORT,
    )
    add = made.add_argument
    add("inputs", nargs="+", metavar="INPUT", help="FILE.py:FUNCTION (Triton), TTIR, or folders of it")
    add("-m", "--machine", metavar="NAME", default="h200", help="machine or machine file [default: h200]")
    add("--signature", metavar="TYPES", help="NAME=TYPE,... of run-time parameters")
    add(
        "--constexpr",
        action="append",
        default=[],
        metavar="N=VALUES",
        help="values of a constexpr, between commas",
    )
    add(
        "--option",
        action="append",
        default=[],
        metavar="N=VALUES",
        help="values of an option of twill compile",
    )
    add(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="one value of an option for all configurations",
    )
    add("--solve", type=int, default=5, metavar="K", help="solve until the best K are certain [default: 5]")
    add(
        "--programs",
        metavar="EXPRESSIONS",
        help="programs along each axis of the grid, such as '4096 / BLOCK_M, 16' (/ rounds up, // down): with --trips, kernels are "
        "generated, simulated and ranked by the time of a launch",
    )
    add(
        "--trips",
        metavar="EXPRESSIONS",
        help="trip count of each loop, such as '4096 / BLOCK_N', parted by commas",
    )
    add(
        "--rested",
        action="store_true",
        help="with --programs: launches are the first few milliseconds after a rest, when the GPU may draw more power",
    )
    add(
        "--time-limit",
        type=float,
        default=TIME_LIMIT,
        metavar="SECONDS",
        help=f"limit of each search [default: {TIME_LIMIT:g}]",
    )
    add("--measure", type=int, default=0, metavar="K", help="compile and time the best K on this GPU")
    add("--arguments", metavar="FILE.py:FUNCTION", help="with --measure: function that gives arguments and grid for constexprs")
    add(
        "--reference",
        metavar="FILE.py:FUNCTION",
        help="with --measure: function that gives what was computed, and what should have been",
    )
    add("--workers", type=int, metavar="N", help="threads [default: one for each CPU]")
    add("--ray", metavar="ADDRESS", help="a Ray cluster that does the work; auto; or local")
    add("--state", metavar="FILE", help="file that keeps results, to go on from")
    add("--format", choices=("text", "json", "svg"), metavar="FORMAT", default="text", help="text, json, or svg [default: text]")
    add("--rows", type=int, metavar="N", help="most rows of text [default: all]")
    add("--width", type=int, metavar="COLUMNS", help="columns of text [default: the terminal's, or 100]")
    add("-o", "--output", metavar="FILE", help="output file, or - for standard output")
    add("-q", "--quiet", action="store_true", help="do not report progress")
    return made


def _sweep(told: argparse.Namespace) -> Sweep:
    is_function = ".py:" in told.inputs[0]
    if is_function and len(told.inputs) > 1:
        raise InputError("give one Triton function, or TTIR files")
    what = named(told.inputs[0]) if is_function else [file for place in told.inputs for file in _files(place)]
    if told.constexpr and not is_function:
        raise InputError("--constexpr is for Triton functions; TTIR has its own already")
    if (told.programs is None) != (told.trips is None):
        raise InputError("--programs and --trips go together")
    if told.rested and told.programs is None:
        raise InputError("--rested says of which launches times are predicted, so it needs --programs and --trips")
    space = dict(_values(text) for text in [*told.constexpr, *told.option])
    if len(space) < len(told.constexpr) + len(told.option):
        raise InputError("a name is given twice; give all its values at once, parted by commas")
    return sweep(
        what,
        space,
        machine=told.machine,
        signature=told.signature,
        options=dict(_pair(text) for text in told.set),
        solve=told.solve,
        time_limit=told.time_limit,
        measure=told.measure,
        arguments=named(told.arguments) if told.arguments else None,
        reference=named(told.reference) if told.reference else None,
        amounts=amounts_of(told.programs, told.trips) if told.programs else None,
        sustained=not told.rested,
        workers=told.workers,
        ray=told.ray,
        state=told.state,
        progress=not told.quiet,
    )


def _files(place: str) -> list[str]:
    """A TTIR file, or those of a folder."""
    if not Path(place).is_dir():
        return [place]
    found = sorted(str(file) for file in Path(place).glob("*.ttir"))
    if not found:
        raise InputError(f"{place}: there is no .ttir in this folder; name a folder of kernels, or the kernels")
    return found


def _width(told: argparse.Namespace) -> int:
    if told.width is not None:
        return int(told.width)
    is_shown = told.output in (None, "-") and sys.stdout.isatty()
    return os.get_terminal_size(sys.stdout.fileno()).columns if is_shown else 100


def _write(found: Sweep, told: argparse.Namespace) -> None:
    shown = {"text": lambda: found.table(told.rows, _width(told)) + "\n", "json": lambda: found.to_json() + "\n", "svg": found.svg}
    text = shown[told.format]()
    if told.output in (None, "-"):
        sys.stdout.write(text)
        return
    try:
        Path(told.output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {told.output}: {error.strerror}") from error


def named(place: str) -> Any:
    """What FILE.py:NAME names. The file may import what lies next to it."""
    file, colon, name = place.rpartition(":")
    path = Path(file).resolve()
    if not colon or not path.is_file() or path.suffix != ".py":
        raise InputError(f"{place}: there is no such file; write FILE.py:FUNCTION")
    module = _modules.get(path)
    if module is None:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec and spec.loader, "it ends in .py"
        module = _modules[path] = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        if str(path.parent) not in sys.path:
            sys.path.insert(0, str(path.parent))
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise InputError(f"{file}: {type(error).__name__}: {error}") from error
    if not hasattr(module, name):
        raise InputError(f"{file} has no {name}")
    return getattr(module, name)


_modules: dict[Path, ModuleType] = {}


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InputError(f"{text!r} should read NAME=VALUE")
    return name.strip().replace("-", "_"), value


def _values(text: str) -> tuple[str, list[object]]:
    name, values = _pair(text)
    return name, [_value(value.strip()) for value in values.split(",")]


def _value(text: str) -> object:
    """A number, a boolean, nothing (`-`), or the text itself."""
    plain = {"on": True, "true": True, "off": False, "false": False, "-": None}
    if text.lower() in plain:
        return plain[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
