"""The `twill machine calibrate` command."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from ..command_line import Parser
from ..errors import InputError, TwillError
from . import machine_file, table
from .calibrating import BENCHMARKS, LAUNCHES, Calibration, calibrate_times, progress

DONE, ERROR, INTERRUPTED = 0, 1, 3
"""Exit codes."""
AGREEMENT = 0.03
"""How far two calibrations may be apart, as a part."""

DESCRIPTION = "Measure this GPU, and write its machine file; nothing else should run on the GPU"
EPILOG = """examples:
  twill machine calibrate --machine h200 -o mine.toml
  twill machine diff h200 mine.toml
  twill machine calibrate --machine h200 --only mma --format json

With --repeat-check, the exit code is 1 if a number of the machine file is more than 3 % off.
"""
SHORT = ("machine", "output", "name", "only", "repeat_check", "format", "quiet")
"""Options in short help."""


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command with these words, by default those of this process; its exit code."""
    told = parser().parse(words)
    say = (lambda text: None) if told.quiet else progress
    try:
        found, *again = calibrate_times(1 + told.repeat_check, told.machine, told.only, told.launches, say)
        if told.output:
            _write(told.output, machine_file.text(found, told.name or f"{told.machine}-calibrated"))
        apart = [entry for other in again for entry in differences(found, other)]
        sys.stdout.write(_json(found, apart) if told.format == "json" else table.text(found) + _apart(apart))
    except TwillError as error:
        print(f"error: {error}", file=sys.stderr)
        return ERROR
    except KeyboardInterrupt:
        print("interrupted: nothing was written", file=sys.stderr)
        return INTERRUPTED
    return ERROR if any(part > AGREEMENT and name in machine_file.FIGURES for name, part in apart) else DONE


def parser() -> Parser:
    """What the command takes."""
    made = Parser("twill machine calibrate", "[OPTIONS]", DESCRIPTION, "0 done, 1 error, 3 interrupted", EPILOG, SHORT)
    add = made.add_argument
    add("-m", "--machine", metavar="NAME", default="h200", help="machine that the file extends [default: h200]")
    add("-o", "--output", metavar="FILE.toml", help="machine file to write")
    add("--name", help="name of the machine [default: NAME-calibrated]")
    names = ", ".join(one.name for one in BENCHMARKS)
    add("--only", nargs="+", default=[], metavar="NAME", help=f"benchmarks to run: {names}")
    add("--launches", type=_count, default=LAUNCHES, metavar="N", help=f"launches of each kernel [default: {LAUNCHES}]")
    add("--repeat-check", action="store_true", help="measure twice and compare")
    add("--format", choices=("text", "json"), metavar="FORMAT", default="text", help="text or json [default: text]")
    add("-q", "--quiet", action="store_true", help="do not report progress")
    return made


def _count(text: str) -> int:
    count = int(text)
    if not 3 <= count <= 1000:
        raise argparse.ArgumentTypeError("must be from 3 to 1000")
    return count


def differences(one: Calibration, other: Calibration) -> list[tuple[str, float]]:
    """How far two calibrations are apart, figure by figure, as a part of the first; the farthest first."""
    others = other.by_name
    parts = [
        (figure.name, abs(others[figure.name].value - figure.value) / abs(figure.value))
        for figure in one.figures
        if figure.name in others and figure.value
    ]
    return sorted(parts, key=lambda entry: -entry[1])


def _apart(apart: list[tuple[str, float]]) -> str:
    if not apart:
        return ""
    beyond = [(name, part) for name, part in apart if part > AGREEMENT]
    lines = [
        f"\nMeasured again: {len(apart) - len(beyond)} of {len(apart)} figures agree within {table.percent(AGREEMENT)}."
    ]
    return "\n".join([*lines, *(f"  {name}: {table.percent(part)} apart{_used(name)}" for name, part in beyond)]) + "\n"


def _used(name: str) -> str:
    return ", and in the machine file" if name in machine_file.FIGURES else ""


def _json(found: Calibration, apart: list[tuple[str, float]]) -> str:
    said = {
        "machine": found.machine,
        "gpu": found.gpu,
        "driver": found.driver,
        "date": found.date,
        "clock_mhz": found.clock_mhz,
        "launches": found.launches,
        "seconds": found.seconds,
        "sharing": machine_file.sharing(found.by_name),
        "figures": [figure.as_json() for figure in found.figures],
        "apart": dict(apart),
    }
    return json.dumps(said, indent=1) + "\n"


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
