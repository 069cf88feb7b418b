"""A time limit counts from its call, however long the process has been running."""

import subprocess
import sys
import time
from pathlib import Path

import twill_gpu

ATTENTION = Path(__file__).resolve().parents[2] / "examples" / "attention_forward.ttir"
LIMIT = 3
"""Seconds: many times what the schedule takes."""


def test_of_schedule():
    for pause in (LIMIT, 0):
        assert twill_gpu.schedule(ATTENTION, "h200", time_limit=LIMIT, no_cache=True).status == "optimal"
        time.sleep(pause)


def test_of_the_command(tmp_path):
    words = ["twill", "schedule", str(ATTENTION), "--machine=h200", f"--time-limit={LIMIT}", "--no-cache", "--quiet", "--format=json"]
    words += ["--output", str(tmp_path / "schedule.json")]
    run = f"_twill.run_command({words!r})"
    program = f"import time; from twill_gpu import _twill; first = {run}; time.sleep({LIMIT}); print(first, {run})"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["0", "0"], ran.stderr
