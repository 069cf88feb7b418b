"""Kernels of other people, executed by an interpreter on the CPU: their TTIR against warp programs made of it.

    cargo build --release -p twill-fuzz --bin interpret
    python -m bench.differential.interpreted TTIRFOLDER --interpreter target/release/interpret --json rows.json

Needs no GPU, no torch and no Triton. Arguments are made up as for the comparison on a GPU, smaller. Three warp programs
are executed where there are: in order, with loads ahead, and of a schedule, each under four habits of who goes on next.
With `--compiled FOLDER`, what `twill compile --warp-program --output FOLDER/KERNEL` made takes the place of the last one.
Verdicts:

    equal        every execution leaves what the TTIR says, bit for bit where sums are added in its order, else to 1e-9
    DIFFERENT    one does not, or it faults, or nobody in it can go on
    not executed the TTIR itself faults on made-up arguments, or has an operation that the interpreter does not know
    too long     no end within the time for a kernel

The exit code is 1 if a kernel is DIFFERENT.
"""

import argparse
import collections
import json
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from .arguments import EXPONENTS, FALLBACKS, TORCH, TRIALS, Trial, contents, is_table, numbers_of, tensor_of
from .signature import Argument, arguments_of

COUNTS, BEFORE = (1 << 20, 4 << 20, 40 << 20), 1 << 16
"""Elements of memory for each pointer, more where the TTIR wants more; those of them that are before it."""
SAID = re.compile(r"(\d+) executions, (\d+) findings;")
FORMS = ("in order", "ahead", "scheduled", "compiled")
BEYOND = "masks must keep it out"


def program_of(ttir: str, trial: Trial, count: int) -> dict:
    """What the interpreter calls a kernel with."""
    arguments = arguments_of(ttir)
    numbers = numbers_of(arguments, trial)
    pointers, tensors = [], []
    for one in arguments:
        if one.kind == "scalar":
            continue
        memory = {"name": one.name, "element": TORCH[one.element], "contents": made_of(one, trial)}
        pointers.append(memory | {"count": count, "before": BEFORE})
        if is_table(one):
            memory = {"name": f"*{one.name}", "element": "bfloat16", "contents": "numbers"}
            pointers.append(memory | {"count": count, "before": BEFORE})
        if one.kind == "descriptor":
            shape, strides = tensor_of(one)
            tensors.append({"name": one.name, "shape": shape, "strides": strides})
    return {"pointers": pointers, "tensors": tensors, "calls": [{"grid": trial.grid, "numbers": numbers}]}


def made_of(pointer: Argument, trial: Trial) -> str:
    """What its memory begins with, in words that `twill-fuzz/src/bin/interpret/program.rs` knows."""
    if is_table(pointer):
        return f"addresses *{pointer.name}"
    if pointer.element in ("i8", "ui8") and EXPONENTS.search(pointer.name):
        return "exponents"
    is_integer = pointer.element.startswith(("i", "u")) and pointer.element not in ("i1", "i8")
    return contents(pointer.name, trial) if is_integer else "numbers"


def executed(path: Path, interpreter: Path, seconds: float, compiled: Path | None) -> dict:
    """What came of a kernel: trials until one compares something beyond the usual ones."""
    warps = compiled and compiled / path.stem / "warp_program.txt"
    warps = warps if warps and warps.exists() else None
    forms = FORMS[:2] + (FORMS[3:] if warps else FORMS[2:3])
    row = {"id": path.stem, "executions": 0, "forms": dict.fromkeys(forms, False), "said": []}
    verdicts = []
    for trial in TRIALS + FALLBACKS:
        if trial in FALLBACKS and row["executions"]:
            break
        for count in COUNTS:
            said, counts = tried(path, warps, program_of(path.read_text(), trial, count), interpreter, seconds)
            if not any(BEYOND in line for line in said):
                break
        row["said"] += [f"{trial.name}: {line[:300]}" for line in said]
        if counts is None:
            verdicts.append("too long" if said == [] else "DIFFERENT")
            continue
        executions, findings = counts
        row["executions"] += executions
        row["forms"] |= {form: True for form in forms if executions and not any(form in line for line in said)}
        verdicts.append("DIFFERENT" if findings else "equal" if executions else "not executed")
    return row | {"verdict": next(one for one in ("DIFFERENT", "equal", "too long", "not executed") if one in verdicts)}


def tried(
    path: Path, warps: Path | None, program: dict, interpreter: Path, seconds: float
) -> tuple[list[str], tuple[int, int] | None]:
    """What the interpreter says of one call, and its executions and findings; nothing where it comes to no end."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(path, Path(folder, "kernel.ttir"))
        if warps:
            shutil.copy(warps, folder)
        Path(folder, "program.json").write_text(json.dumps(program))
        try:
            done = subprocess.run([interpreter, "--check", folder], capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            return [], None
    if done.returncode < 0:
        return [f"killed by signal {-done.returncode}: memory does not suffice"], (0, 0)
    counts = SAID.search(done.stderr)
    said = [line.removeprefix(f"{folder}: ") for line in done.stdout.splitlines()]
    return (said, (int(counts[1]), int(counts[2]))) if counts else ([*said, done.stderr[-300:]], None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="with TTIR files")
    parser.add_argument("--interpreter", type=Path, required=True, metavar="FILE", help="`interpret` of twill-fuzz")
    parser.add_argument("--compiled", type=Path, metavar="DIR", help="with a folder for each kernel, of `twill compile`")
    parser.add_argument("--only", default="", metavar="REGEX", help="kernels whose name contains this")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="kernels at a time (default: 2)")
    parser.add_argument("--seconds", type=float, default=120, metavar="N", help="for a trial (default: 120)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    options = parser.parse_args()
    paths = [path for path in sorted(options.folder.glob("*.ttir")) if re.search(options.only, path.stem)]
    rows = []
    with ThreadPoolExecutor(options.jobs) as pool:
        how = (options.interpreter.resolve(), options.seconds, options.compiled)
        running = [pool.submit(executed, path, *how) for path in paths]
        for done in as_completed(running):
            rows.append(row := done.result())
            head = f"{row['id']}: {row['verdict']}, {row['executions']} executions"
            print(head, *row["said"], sep="\n  ", flush=True)
            if options.json:
                rows.sort(key=lambda row: row["id"])
                options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    counted = collections.Counter(row["verdict"] for row in rows)
    print(", ".join(f"{count} {verdict}" for verdict, count in counted.most_common()))
    print(f"{sum(row['executions'] for row in rows)} executions", end="")
    print("".join(f", {sum(row['forms'].get(form, False) for row in rows)} {form}" for form in FORMS))
    return 1 if counted["DIFFERENT"] else 0


if __name__ == "__main__":
    sys.exit(main())
