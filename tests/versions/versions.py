#!/usr/bin/env python3
"""Compiles examples with several versions of Triton, each by an interpreter of its own; no GPU and no torch.

    python tests/versions/versions.py PYTHON [PYTHON ...]         a few examples
    python tests/versions/versions.py --all PYTHON [PYTHON ...]   all of examples/, which takes an hour
    python tests/versions/versions.py --download DIR              with 3.6 to 3.9, installed there: 4 GB
    python tests/versions/versions.py --hooks PYTHON [PYTHON ...] also the tests of launches and of activation on a stand-in GPU

Of each example: Triton prints its TTIR; `twill` reads that, finds the interval of the file in examples/, and generates
Gluon; Triton and ptxas make machine code of it. A row says by which ptxas, and what it is like. Exit status 1 if a row has
an error. TWILL_COMMAND names the command, or it is looked for in target/ and on the path. `--hooks` needs pytest and numpy in each
interpreter, and `twill_gpu` where it finds it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("3.6.0", "3.7.1", "3.8.0", "3.9.0")
"""What `--download` installs."""
FEW = (
    "gemm_tma",
    "gemm_pointers",
    "swiglu",
    "attention_forward",
    "attention_backward",
    "fixtures/epilogue_residual_pointers",
    "fixtures/pointers/held",
    "fixtures/pointers/gathered",
    "fixtures/loops/returning",
    "fixtures/product_grouped_order",
)
"""TMA and cp.async, loads and reductions by TMA, one loop and several, a pipeline and none."""
HOOKS = ("tests/runtime/test_plan.py", "tests/runtime/test_ptxas.py", "tests/python/test_activation.py", "tests/python/test_tuning.py", "tests/python/test_jit.py")
SECONDS = 900
"""How long an example may take."""


def twill() -> str:
    """The command that is tested."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = (str(path) for path in (target / "release/twill", target / "debug/twill") if path.is_file())
    found = os.environ.get("TWILL_COMMAND") or next(built, None) or shutil.which("twill")
    if found is None:
        sys.exit("there is no twill: cargo build -p twill-cli, or TWILL=…")
    return found


def run(*command: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A command to its end, without Twill's cache and in the checkout."""
    environment = {**os.environ, "TWILL_CACHE": "off", **more}
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=SECONDS)


def last(text: str) -> str:
    """The last line of what a command complained of; what nanobind prints at the end is not about it."""
    lines = [line for line in text.strip().splitlines() if "nanobind" not in line and not line.startswith(" - ")]
    return lines[-1] if lines else "no reason was given"


def downloaded(folder: Path) -> list[str]:
    """An interpreter with each version, made where it is not there yet."""
    found = []
    for version in VERSIONS:
        place = folder / f"triton-{version}"
        python = place / "bin" / "python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
            pip = [str(python), "-m", "pip", "install", "--quiet", f"triton=={version}", "numpy", "pytest"]
            subprocess.run(pip, check=True)
        found.append(str(python))
    return found


def version_of(python: str) -> str:
    """The version of an interpreter's Triton."""
    done = run(python, "-c", "import triton; print(triton.__version__)")
    if done.returncode != 0:
        sys.exit(f"{python}: {last(done.stderr)}")
    return done.stdout.strip()


def identity(kernel: dict[str, object]) -> object:
    """What must be the same whichever Triton printed the TTIR: the schedule, and how the kernel is called."""
    return kernel["schedule"], kernel["parameters"], kernel["arguments"], kernel["grid"]


def compiled(folder: Path, ttir: Path, options: list[str]) -> tuple[dict[str, object] | None, str]:
    """kernel.json of an example, or why there is none."""
    done = run(twill(), "compile", str(ttir), "--machine", "h200", "-q", "-o", str(folder), *options)
    if done.returncode != 0:
        return None, last(done.stderr)
    return json.loads((folder / "kernel.json").read_text(encoding="utf-8")), ""


def example(python: str, name: str, scratch: Path) -> tuple[bool, str]:
    """Whether an example is compiled by an interpreter's Triton as it should be, and what it is like."""
    printed = run(python, "examples/print_ttir.py", "--into", str(scratch / "ttir"), Path(name).name)
    if printed.returncode != 0:
        return False, f"no TTIR: {last(printed.stderr)}"
    ttir, options = scratch / "ttir" / f"{name}.ttir", ["--attempts", "1"]
    found = []
    for number, file in enumerate((ttir, ROOT / "examples" / f"{name}.ttir")):
        kernel, why = compiled(scratch / f"{number}", file, [*options, "--no-assemble"])
        if kernel is None:
            return False, f"{file.name}: {why}"
        found.append(identity(kernel))
    if found[0] != found[1]:
        return False, "its schedule or its parameters are not those of the file in examples/"
    kernel, why = compiled(scratch / "kernel", ttir, [*options, "--python", python])
    if kernel is None:
        return False, why
    assembly = kernel.get("assembly")
    if not isinstance(assembly, dict):
        return False, "it was not assembled"
    spills = assembly["spill_stores"] + assembly["spill_loads"]
    words = [f"{assembly['registers']} registers", f"{spills} bytes spilled" if spills else "no spills"]
    words += sorted({found["kind"] for found in assembly["findings"]} - {"spilled", "spilled_outside"})
    return True, f"{', '.join(words)}; {assembly['assembler'].split(',')[0]}"


def hooks(python: str) -> bool:
    """Whether the tests of launches and of activation pass with an interpreter's Triton."""
    passed = True
    for tests in HOOKS:
        done = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests)
        passed &= done.returncode == 0
        print(f"| {tests} | {'passed' if done.returncode == 0 else 'FAILED'} | {last(done.stdout)} |", flush=True)
    return passed


def main() -> int:
    parser = argparse.ArgumentParser(description="Compile examples with several versions of Triton.")
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", help="interpreters, each with a Triton")
    parser.add_argument("--download", metavar="DIR", type=Path, help="install the supported versions there")
    parser.add_argument("--all", action="store_true", help="every example, not a few")
    parser.add_argument("--example", action="append", metavar="NAME", help="this one, such as fixtures/pointers/held")
    parser.add_argument("--hooks", action="store_true", help="also run the tests of launches and of activation")
    arguments = parser.parse_args()
    pythons = [*arguments.pythons, *(downloaded(arguments.download) if arguments.download else [])]
    if not pythons:
        parser.error("name an interpreter, or --download DIR")
    files = sorted((ROOT / "examples").rglob("*.ttir"))
    every = [path.relative_to(ROOT / "examples").with_suffix("").as_posix() for path in files]
    names = arguments.example or (every if arguments.all else FEW)
    good = True
    for python in pythons:
        print(f"\n## Triton {version_of(python)}\n\n| example | | |\n|---|---|---|", flush=True)
        count = 0
        for name in names:
            with tempfile.TemporaryDirectory() as scratch:
                try:
                    is_good, says = example(python, name, Path(scratch))
                except subprocess.TimeoutExpired:
                    is_good, says = False, f"not within {SECONDS} s"
            count += is_good
            print(f"| {name} | {'compiled' if is_good else 'FAILED'} | {says} |", flush=True)
        print(f"\n{count} of {len(names)} compiled", flush=True)
        good &= count == len(names)
        if arguments.hooks:
            print("\n| tests | | |\n|---|---|---|")
            good &= hooks(python)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
