"""The `twill collect` command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ..command_line import Parser
from ..errors import InputError, TwillError
from . import VARIABLE, folder

ERROR, INTERRUPTED = 1, 130
"""Exit code."""

EXAMPLES = """examples:
  twill collect -o kernels -- python app.py --batch 8
  twill coverage kernels                what is scheduled and generated of it, most time first
  twill fit kernels                     does it fit, and the most it can reach
  twill collect --rank -o kernels       which would gain most from a better schedule
"""


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command with these words, by default those of this process; its exit code."""
    words = list(sys.argv[1:] if words is None else words)
    own, program = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    told = parser().parse(own)
    place = Path(told.output)
    try:
        if told.rank:
            if program:
                raise InputError("--rank is of kernels that are there: collect first, then twill collect --rank -o DIR")
            from .ranking import rank
            from .ranking import table as ranked

            def tell(text: str) -> None:
                print(text, file=sys.stderr)

            try:
                print(ranked(rank(place, told.machine, progress=tell)))
            except KeyboardInterrupt:
                # Searches in other threads end at their limits; nobody waits for them, and nothing is written.
                print("interrupted", file=sys.stderr, flush=True)
                os._exit(INTERRUPTED)
            return 0
        if not program:
            raise InputError("name the program after --, as in: twill collect -- python app.py")
        folder.check(place)
        code = _run(program, place)
        folder.merge(place)
        print(table(folder.read(place), place), file=sys.stderr)
    except TwillError as error:
        print(f"error: {error}", file=sys.stderr)
        return ERROR
    return code


def parser() -> Parser:
    """What the command takes."""
    made = Parser(
        "twill collect",
        "[OPTIONS] [-- PROGRAM...]",
        "Run a program, and record every Triton kernel that it compiles: TTIR, signature,\nconstexprs, grids, counts and times",
        "that of the program, 1 also if nothing is recorded",
        EXAMPLES,
        ("output", "rank", "machine"),
    )
    made.add_argument(
        "-o", "--output", metavar="DIR", default="kernels", help="folder for the kernels; more are added [default: kernels]"
    )
    made.add_argument(
        "--rank", action="store_true", help="run nothing: rank the folder's kernels by the time that a better schedule would save"
    )
    made.add_argument("-m", "--machine", metavar="NAME", default="h200", help="with --rank: machine or machine file [default: h200]")
    return made


def _run(program: Sequence[str], place: Path) -> int:
    """Runs a program whose Triton kernels are recorded, with all that it starts; its exit code."""
    folder.prepare(place)
    # Stock Triton has all launches: Twill's own are not what the program is without it.
    environment = {**os.environ, "TWILL": "0", VARIABLE: str(place.resolve())}
    # Ctrl-C is for the program, which may end as it likes; what there is until then is merged.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code = subprocess.run(list(program), env=environment, check=False, preexec_fn=_interruptible).returncode
    except OSError as error:
        raise InputError(f"cannot run {program[0]}: {error.strerror}") from error
    finally:
        signal.signal(signal.SIGINT, before)
    if code:
        print(f"twill collect: the program ended with {code}", file=sys.stderr)
    return code if code >= 0 else 128 - code


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def table(found: Sequence[folder.Collected], place: Path) -> str:
    """Kernels with their launches and times, and what to do next."""
    total = sum(one.record.milliseconds or 0.0 for one in found)
    rows = [("kernel", "launches", "ms", "share")]
    for one in found:
        time = one.record.milliseconds
        share = "" if time is None or not total else f"{100 * time / total:.1f} %"
        rows.append((one.ttir.stem, f"{one.record.count:,}", "-" if time is None else f"{time:.1f}", share))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]).rstrip()
        for row in rows
    ]
    counted = f"{len(found)} kernel{'s' if len(found) > 1 else ''}"
    return "\n".join([*lines, f"{counted} in {place}; twill coverage {place} says what Twill makes of them"])
