"""Edges of numbers, sizes and memory: Twill's kernels on a GPU beside stock Triton's.

    python -m bench.edges --section docs/reports/trust/edges.json     # needs a Hopper GPU, torch and Triton
    python -m bench.edges --only attention                            # rows whose name has this
    python -m bench.edges --compile-only                              # needs Triton alone

Each row (cases.py) is a kernel (kernels.py) with memory and calls. It is compiled and run as a random program is
(`bench.random_programs`): all memory must be as stock Triton leaves it, bit for bit (`equal`) or within the tolerance of the
type (`close`); what is no number must be none in both. The exit code is 1 if a row differs or faults.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from bench.common import write_section
from bench.random_programs import __main__ as programs
from bench.random_programs.sides import forms

from .cases import edges

HEADS = {"gluon": "Gluon", "multistage": "multistage", "cuda": "CUDA"}
TEXT = (
    "Numbers, sizes and places in memory at which kernels break, as stock Triton has them. A row is a kernel with an MMA "
    "(`bench/edges`), executed by stock Triton and in each form of Twill's from the same memory. All memory must be the same "
    "afterwards; what is no number in one must be none in the other. `equal` is bit for bit, `close` within the tolerance of the "
    "type, `refused` means that stock Triton runs.",
)
WORST = ("fails", "DIFFERENT", "as interpreted", "close", "equal", "nothing")


def verdict(row: dict, form: str) -> str:
    """Of a row in one form: the worst of its calls."""
    if "failed" in row:
        return f"{row['failed']} fails"
    if form not in row["sides"]:
        return "not asked for"
    if row["sides"][form]:
        return "fails" if row["sides"][form].startswith(programs.FAILS) else "refused"
    found = row.get("verdicts", {}).get(form, [])
    return next((word for word in WORST if word in found), "compiled" if not found else found[0])


def section(names: dict[int, str], rows: list[dict], path: Path, card: str) -> None:
    """Writes the section of docs/reports/trust.md."""
    table = [[names[row["seed"]], *(verdict(row, form) for form in HEADS)] for row in rows]
    command = f"python -m bench.edges --section docs/reports/trust/{path.name}"
    write_section(path, "Edges on a GPU", 26, command, card, list(TEXT), ["edge", *HEADS.values()], table)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name contains this")
    parser.add_argument("--forms", nargs="*", choices=list(forms(0)), help="forms of Twill's (default: all)")
    parser.add_argument("--section", type=Path, metavar="FILE", help="write the table as a section of docs/reports/trust.md")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="keep kernels there")
    parser.add_argument("--jobs", type=int, default=14, metavar="N", help="processes that compile (default: 14)")
    parser.add_argument("--compile-only", action="store_true", help="run nothing")
    options = parser.parse_args()
    options.seconds, options.interpreter, options.runners, options.gpus = None, None, 2, 1
    chosen = [one for one in edges() if options.only in one.name]
    names = {one.program.seed: one.name for one in chosen}
    scratch = None if options.folder else tempfile.mkdtemp(prefix="twill-edges-")
    options.folder = (options.folder or Path(scratch)).resolve()
    rows = []
    try:
        for row in programs.rows_of([one.program for one in chosen], options):
            rows.append(row)
            print(names[row["seed"]], programs.line(row).partition(" ")[2], sep=": ", flush=True)
    finally:
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)
    order = list(names)
    rows.sort(key=lambda row: order.index(row["seed"]))
    if options.section:
        section(names, rows, options.section, programs.card(options))
    wrong = [row for row in rows if programs.is_wrong(row) or "failed" in row]
    print(f"-- {len(rows)} rows, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
