"""`python -m twill_gpu run script.py …`: runs a Python program with Twill under its Triton kernels."""

from __future__ import annotations

import os
import runpy
import sys

USAGE = """usage: python -m twill_gpu run (SCRIPT | -m MODULE) [ARGUMENTS …]

Runs a Python program with Twill under its Triton kernels, as TWILL=1 does. The command `twill` does everything else."""


def main(words: list[str]) -> None:
    """Runs the program of a command line."""
    if words in (["--help"], ["-h"], ["run", "--help"], ["run", "-h"]):
        print(USAGE)
        return
    if len(words) < 2 or words[0] != "run" or words[1:] == ["-m"]:
        raise SystemExit(USAGE)
    # Processes that the program starts do the same, where the package is installed.
    os.environ.setdefault("TWILL", "1")
    from .activation import install_with
    from .activation.settings import Settings
    from .errors import TwillError

    try:
        settings = Settings.of_environment()
        if settings is not None:
            install_with(settings)
    except TwillError as error:
        raise SystemExit(f"twill: {error}") from None
    if words[1] == "-m":
        sys.argv = words[2:]
        sys.path[0] = os.getcwd()
        runpy.run_module(words[2], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words[1:]
        sys.path[0] = os.path.dirname(os.path.abspath(words[1]))
        runpy.run_path(words[1], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
