"""The `twill` command of this package."""

from __future__ import annotations

import os
import pathlib
import signal
import sys

from . import _twill


def main() -> int:
    """Runs `twill` with the arguments of this process; its exit code."""
    if sys.argv[1:2] == ["sweep"]:
        from .sweeping.command import main as sweep

        return sweep(sys.argv[2:])
    if sys.argv[1:2] == ["collect"]:
        from .collecting.command import main as collect

        return collect(sys.argv[2:])
    if sys.argv[1:3] == ["machine", "calibrate"]:
        from .calibration.command import main as calibrate

        return calibrate(sys.argv[3:])
    # Python source is read by this Python, which has the package.
    os.environ.setdefault("TWILL_PYTHON", sys.executable)
    playground = pathlib.Path(__file__).with_name("playground.html")
    if playground.is_file():
        os.environ.setdefault("TWILL_PLAYGROUND", str(playground))
    # The command handles Ctrl-C by itself, and a closed pipe ends it quietly.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _twill.run_command(["twill", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
