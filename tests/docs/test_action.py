"""The script of action.yml: what it runs, what it annotates, and when it fails. Python's package need not be installed."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from markdown import ROOT
from running import TWILL

KERNEL = "examples/gemm_tma.ttir"
HAZARD = "crates/twill-lint/tests/listings/scaled_rows.ptxas-12.9.86.sass"


def script() -> str:
    """The block of shell after the last `run: |`: to read YAML for that would take a package."""
    lines = (ROOT / "action.yml").read_text(encoding="utf-8").split("run: |\n")[-1].splitlines()
    margin = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[margin:] for line in lines) + "\n"


class Action(unittest.TestCase):
    def setUp(self) -> None:
        self.assertTrue(TWILL.exists(), f"{TWILL} is missing: cargo build --release, or set TWILL")
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        commands = self.folder / "commands"
        commands.mkdir()
        (commands / "twill").symlink_to(TWILL)
        self.output = self.folder / "output"
        self.given = {"KERNELS": "", "MACHINE": "h200", "BASELINE": "", "LINT": "", "FORMAT": "github"}
        self.environment = os.environ | {
            "PATH": os.pathsep.join([str(commands), os.environ["PATH"]]),
            "SARIF_FOLDER": str(self.folder / "sarif"),
            "GITHUB_OUTPUT": str(self.output),
            "TWILL_CACHE": "off",
        }

    def run_with(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        environment = self.environment | self.given | inputs
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script()]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    def baseline(self) -> Path:
        path = self.folder / "baseline.json"
        command = [str(TWILL), "check-perf", str(path), KERNEL, "--write"]
        subprocess.run(command, cwd=ROOT, env=self.environment, check=True, capture_output=True)
        return path

    def test_inputs_are_those_of_the_script(self) -> None:
        text = (ROOT / "action.yml").read_text(encoding="utf-8")
        for name in ("kernels", "machine", "baseline", "lint", "format", "sarif-folder"):
            variable = name.upper().replace("-", "_")
            self.assertIn(f"{variable}: ${{{{ inputs.{name} }}}}", text)
        self.assertNotIn("${{", script(), "an input in the script would be code")

    def test_nothing_to_check_passes(self) -> None:
        ran = self.run_with()
        self.assertEqual((ran.returncode, ran.stdout), (0, ""), ran.stderr)

    def test_each_check_runs_and_annotates_whatever_became_of_the_others(self) -> None:
        ran = self.run_with(KERNELS=f"{KERNEL}\n\nabsent.ttir\n", BASELINE=str(self.baseline()), LINT=HAZARD)
        self.assertEqual(ran.returncode, 1, ran.stderr)
        titles = [line.split("title=twill ")[1].split("::")[0] for line in ran.stdout.splitlines()]
        self.assertEqual(titles, ["fits", "not-lowered", "wgmma-operand-written"])

    def test_a_kernel_that_got_worse_fails(self) -> None:
        path = self.baseline()
        self.assertEqual(self.run_with(BASELINE=str(path)).returncode, 0)
        file = json.loads(path.read_text(encoding="utf-8"))
        file["kernels"][KERNEL]["registers"] -= 8
        path.write_text(json.dumps(file), encoding="utf-8")
        ran = self.run_with(BASELINE=str(path))
        self.assertEqual(ran.returncode, 1)
        self.assertIn("title=twill worse::", ran.stdout)

    def test_sarif_is_a_file_for_each_check(self) -> None:
        ran = self.run_with(KERNELS=KERNEL, LINT=HAZARD, FORMAT="sarif")
        self.assertEqual(ran.returncode, 1, ran.stderr)
        folder = self.folder / "sarif"
        found = {file.name: json.loads(file.read_text(encoding="utf-8"))["version"] for file in folder.iterdir()}
        self.assertEqual(found, {"fit.sarif": "2.1.0", "lint.sarif": "2.1.0"})
        self.assertEqual(self.output.read_text(encoding="utf-8"), f"sarif-folder={folder}\n")

    def test_another_format_is_an_error(self) -> None:
        ran = self.run_with(FORMAT="xml")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("::error::", ran.stdout)


if __name__ == "__main__":
    unittest.main()
