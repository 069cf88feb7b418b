"""Runs applications of stand_in.py with Twill and without, and compares what they leave."""

import json
import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().with_name("stand_in.py")


class Ended:
    """What an application left."""

    def __init__(self, code, out, error):
        self.code, self.error = code, error
        self.lines = [json.loads(line) for line in out.splitlines()]
        self.memory = sorted(json.dumps(line["memory"]) for line in self.lines)
        self.twill = sum(line["twill"] for line in self.lines)

    def __eq__(self, other):
        return (self.code, self.memory, self.error) == (other.code, other.memory, other.error)

    def __repr__(self):
        return f"exit code {self.code}, {len(self.memory)} results, {self.twill} launches by Twill\n{self.error}"


def run(name, *words, timeout=600, **variables):
    """Runs an application with these variables, and no others of Twill."""
    environment = {one: value for one, value in os.environ.items() if not one.startswith("TWILL")}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), name, *map(str, words)],
        env={**environment, **{one: str(value) for one, value in variables.items()}},
        capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, done.stderr)
