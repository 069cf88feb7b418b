"""Launches of generated kernels: time predicted and time measured. No GPU.

    python -m bench.gpu --kernels kernels --output DIR                              # on the GPU
    python -m bench.gpu.fidelity --kernels kernels --measured DIR/gpu.json

Kernels are those of the measurement, one folder each. A launch is predicted from a kernel's kernel.json (cycles of an iteration
by the SASS estimate where there is one, prologue and epilogue, tiles one after another) at the clock that the power limit leaves,
sustained and in bursts (docs/simulation.md, "A launch"). Of the backward pass the kernel alone counts. Writes a table (Markdown).
"""

import argparse
import json
import statistics
from pathlib import Path

from bench.common import TWILL
from bench.gpu import kernel_folders, sweep
from bench.gpu.rows import ROWS, Row

ALONE = ", kernel alone"


def amounts(example: str, tile: dict, row: Row) -> tuple[list[int], list[float]]:
    """Programs of a row's grid along each axis, and trips of each loop, the mean over programs."""
    shape = row.shape
    if example == "attention_backward":
        programs = [shape["length"] // tile["BLOCK_N"], shape["batch"] * shape["heads"]]
        return programs, [shape["length"] // tile["BLOCK_M"]]
    programs, trips = sweep.amounts({"constants": tile}, row)
    if shape.get("causal"):
        masked = max(1, tile["BLOCK_M"] // tile["BLOCK_N"])
        return programs, [(trips[0] - masked) / 2, masked]
    return programs, trips


def compared(measured: dict, kernels: list[kernel_folders.Generated], gpus: dict[str, object]) -> list[dict]:
    """A dictionary for each kernel of each row: milliseconds, predicted and measured."""
    rows = {row.name: row for row in ROWS}
    found = []
    for one in measured["rows"]:
        times = {contender["name"]: contender for contender in one["contenders"]}
        for kernel in kernels:
            contender = times.get(kernel.name + ALONE) or times.get(kernel.name)
            if contender is None or one["row"] not in rows:
                continue
            said = json.loads((kernel.folder / "kernel.json").read_text())
            work = amounts(kernel.example, kernel.constants, rows[one["row"]])
            for kind, key in (("sustained", "ms"), ("burst", "burst_ms")):
                times_of = {"predicted": sweep.LAUNCH.milliseconds(said, work, gpus[kind]), "measured": contender[key]}
                if times_of["predicted"] is not None:
                    found.append({"row": one["row"], "kernel": kernel.name, "kind": kind} | times_of)
    return found


def error(one: dict) -> float:
    return one["predicted"] / one["measured"] - 1


def table(found: list[dict]) -> str:
    """As Markdown."""
    lines = [
        "| row | kernel | burst, ms | predicted | | sustained, ms | predicted | |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for row, kernel in dict.fromkeys((one["row"], one["kernel"]) for one in found):
        each = {one["kind"]: one for one in found if (one["row"], one["kernel"]) == (row, kernel)}
        cells = [
            f"{one['measured']:.4f} | {one['predicted']:.4f} | {100 * error(one):+.1f} %"
            for one in (each["burst"], each["sustained"])
        ]
        lines.append(f"| {row} | {kernel} | {' | '.join(cells)} |")
    for kind in ("burst", "sustained"):
        errors = [error(one) for one in found if one["kind"] == kind]
        if errors:
            middle, worst = statistics.median(map(abs, errors)), max(errors, key=abs)
            lines.append(f"\n{kind}: {len(errors)} launches, median error {100 * middle:.1f} %, worst {100 * worst:+.1f} %")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--kernels", type=Path, required=True, action="append", metavar="DIR", help="one folder for each kernel")
    add("--measured", type=Path, required=True, metavar="FILE", help="as python -m bench.gpu writes it")
    add("--machine", default="h200", metavar="NAME", help="that times are predicted for [default: h200]")
    add("--twill", default=str(TWILL), metavar="PATH")
    add("--output", type=Path, metavar="FILE", help="the table goes there as well")
    told = parser.parse_args()
    gpus = {kind: sweep.gpu_of(told.machine, told.twill, kind == "sustained") for kind in ("burst", "sustained")}
    found = compared(json.loads(told.measured.read_text()), kernel_folders.find(told.kernels), gpus)
    if not found:
        parser.error(f"{told.measured} has no times of kernels in {', '.join(map(str, told.kernels))}")
    text = table(found)
    if told.output:
        told.output.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
