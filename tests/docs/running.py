"""Runs what the documentation says to run, in a folder of its own for each chapter."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from markdown import ROOT

SECONDS = 120
"""After which a command has failed."""

KERNELS = {"kernel.ttir": "attention_forward.ttir", "causal.ttir": "attention_forward_causal.ttir"}
"""Kernels that the documentation calls by these names."""

LISTINGS = ROOT / "crates" / "twill-lint" / "tests" / "listings"
"""Machine code; a chapter's is `kernel.sass`."""

TWILL = Path(os.environ.get("TWILL_COMMAND", ROOT / "target" / "release" / "twill")).resolve()
"""The command under test."""

TIME = re.compile(r"\b\d+(\.\d+)?( ?)(µs|ms|s)\b")


class Folder:
    """A fresh folder with what chapters take for granted: kernels, the checkout's folders, and the files of given/."""

    def __init__(self) -> None:
        self._holder = tempfile.TemporaryDirectory()
        self.path = Path(self._holder.name)
        for name in ("bench", "crates", "examples", "machines", "python", "tests"):
            (self.path / name).symlink_to(ROOT / name)
        for name, kernel in KERNELS.items():
            shutil.copy(ROOT / "examples" / kernel, self.path / name)
        shutil.copy(LISTINGS / "scaled_rows.ptxas-13.4.59.sass", self.path / "kernel.sass")
        shutil.copytree(ROOT / "tests" / "docs" / "given", self.path, dirs_exist_ok=True)
        commands = self.path / ".commands"
        commands.mkdir()
        (commands / "twill").symlink_to(TWILL)
        installed = Path(sys.executable).parent
        self._environment = os.environ | {
            "PATH": os.pathsep.join([str(commands), str(installed), os.environ["PATH"]]),
            "TWILL_CACHE": str(self.path / ".cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "100",
        }

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """A line of shell, with what it prints."""
        # A pipeline fails with its first command, not its last.
        return self._run(["bash", "-o", "pipefail", "-c", command])

    def python(self, program: str, name: str) -> subprocess.CompletedProcess[str]:
        """A program in Python, which stands in a file of this name: decorators read it."""
        (self.path / name).write_text(program, encoding="utf-8")
        return self._run([sys.executable, name])

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.path, env=self._environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )

    def close(self) -> None:
        """Removes it."""
        self._holder.cleanup()


def commands(text: str) -> list[str]:
    """The commands of a block of shell; one that ends in a backslash goes on."""
    joined = re.sub(r"\\\n\s*", "", text)
    return [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]


def same(expected: str, printed: str) -> bool:
    """Whether this is what was printed: times may differ, `…` stands for anything, ends of lines are trimmed."""
    wanted, got = (
        "\n".join(TIME.sub(r"0\2\3", line).rstrip() for line in text.strip("\n").splitlines())
        for text in (expected, printed)
    )
    pattern = ".*?".join(re.escape(part) for part in wanted.split("…"))
    return re.fullmatch(pattern, got, re.DOTALL) is not None
