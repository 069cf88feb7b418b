"""A test in a process of its own, with a limit of time; its row."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.common import ROOT

from .report import DIED
from .suite import Suite

GRACE = 45.0
"""Seconds after the limit in which the test that is under way may end."""
PLUGIN = "bench.applications.suites.plugin"
PYTEST = ["-p", PLUGIN, "-p", "no:cacheprovider", "-q", "--tb=short", "-o", "addopts=", "-o", "log_cli=false"]


def environment(suite: Suite, folder: Path, jobs: int) -> dict[str, str]:
    """The variables of the process: the repository's package is found first, and nothing switches Twill on but the plugin."""
    places = [str(folder / one) for one in suite.packages] + [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places)), "TWILL": "0", "TWILL_JOBS": str(jobs)}


def run(suite: Suite, folder: Path, test: str, options: Sequence[str], seconds: float, jobs: int) -> dict[str, Any]:
    """What became of a test."""
    with tempfile.TemporaryDirectory() as place:
        out, said = Path(place, "found.json"), Path(place, "said.txt")
        asked = ["--twill-out", str(out), "--twill-seconds", str(seconds), *options]
        with said.open("w", encoding="utf-8") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *PYTEST, *asked, test],
                cwd=folder,
                env=environment(suite, folder, jobs),
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            ended = _wait(process, seconds + GRACE)
        row = {"test": test, **(json.loads(out.read_text("utf-8")) if out.exists() else {})}
        if ended or not row.get("outcomes"):
            row["ended"] = ended or "no test was run"
            row["said"] = said.read_text("utf-8", "replace")[-1500:]
        return row


def _wait(process: subprocess.Popen[bytes], seconds: float) -> str:
    """How a process ended, if not by itself."""
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"killed after {seconds:.0f} s"
    if code < 0:
        return f"{DIED}: signal {-code}"
    # Exit code 1: tests failed.
    return "" if code in (0, 1) else f"pytest ended with {code}"
