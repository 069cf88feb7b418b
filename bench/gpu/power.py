"""Fits `[power]` of machines/h200.toml on clocks measured under load, and says how well it predicts others.

    python -m bench.gpu.power bench/results/power.json

Reads results of `python -m bench.gpu --cycles`: cycles over time is the clock, both sustained and in a burst after a rest,
whatever a simulation may say. Contenders whose tiles are known count: generated, hand-written and stock Triton's. Numbers
are fitted on the rows gemm-8192 and forward-d128-16k; the errors on all other rows are a test. No GPU; needs scipy.
"""

import argparse
import json
import math
import re
import statistics
from dataclasses import dataclass
from pathlib import Path

FITTED_ON = ("gemm-8192", "forward-d128-16k")
MULTIPROCESSORS = 132
FLOP_PER_CYCLE = 4096
LIMIT_WATTS = 700.0
"""NVIDIA H200 data sheet; the card's own `power.limit` too."""


@dataclass(frozen=True)
class Load:
    """A kernel at work."""

    row: str
    name: str
    flop_per_cycle: float
    """Of all multiprocessors on average, from the first to the last cycle of a launch."""
    bytes_per_cycle: float
    """That they load from the second-level cache."""
    burst_mhz: float
    sustained_mhz: float

    @property
    def is_fitted(self) -> bool:
        return self.row in FITTED_ON


def tile_of(row: str, name: str) -> tuple[int, int] | None:
    """Rows of a thread block's tile, and columns of it where it is a matrix product; None where that is not known."""
    is_product = row.startswith(("gemm", "swiglu"))
    if shape := re.match(r"stock Triton, (\d+) × (\d+)", name):
        return int(shape[1]), int(shape[2]) if is_product else 0
    if name.startswith(("cuDNN", "cuBLAS", "FlashAttention")) or "cluster" in name:
        return None
    if is_product:
        return 128, 256
    return (192 if "3x64" in name or "d64_m64" in name else 128), 0


def loads(files: list[Path]) -> list[Load]:
    """Of all results whose tiles and cycles are known."""
    found = []
    for file in files:
        for row in json.loads(file.read_text())["rows"]:
            for one in row["contenders"]:
                tile = tile_of(row["row"], one["name"])
                # Causal rows have tiles of different length, backward has several kernels, and 1k is half prologue.
                if not one.get("cycles") or tile is None or re.search("causal|backward|1k", row["row"]):
                    continue
                found.append(load(row, one, *tile))
    return found


def load(row: dict, one: dict, rows: int, columns: int) -> Load:
    if columns:
        m, n, k = map(int, row["size"].split(" × "))
        programs = math.ceil(m / rows) * math.ceil(n * (2 if row["row"] == "swiglu" else 1) / columns)
        moved = programs * (rows + columns) * k * 2
    else:
        size = {key: int(value) for key, value in re.findall(r"(length|head dim|batch) (\d+)", row["size"])}
        heads = int(re.search(r"(\d+) heads", row["size"])[1]) * size["batch"]
        programs = heads * math.ceil(size["length"] / rows)
        moved = programs * 2 * size["length"] * size["head dim"] * 2
    # The counter is the mean of cycles in which a multiprocessor has work; the last wave is not full.
    cycles = one["cycles"]["cycles"] * math.ceil(programs / MULTIPROCESSORS) * MULTIPROCESSORS / programs
    flop = one["cycles"]["tensor_percent"] / 100 * one["cycles"]["cycles"] * MULTIPROCESSORS * FLOP_PER_CYCLE
    clocks = (cycles / one[key] / 1000 for key in ("burst_ms", "ms"))
    return Load(row["row"], one["name"], flop / cycles, moved / cycles, *clocks)


def clock(numbers: dict, one: Load, limit: float) -> float:
    """In MHz, as `Power` of crates/twill-machine/src/machine.rs says."""
    highest = numbers["clock_mhz"]
    picojoules = one.flop_per_cycle * numbers["tensor_pj_per_flop"] + one.bytes_per_cycle * numbers["l2_pj_per_byte"]
    watts = numbers["base_watts"] + picojoules * highest * 1e-6
    return highest * min(1.0, math.sqrt(limit / watts))


def errors(numbers: dict, some: list[Load]) -> tuple[list[float], list[float]]:
    """Of bursts and of sustained clocks, as parts of what was measured."""
    burst = [clock(numbers, one, numbers["burst_watts"]) / one.burst_mhz - 1 for one in some]
    return burst, [clock(numbers, one, LIMIT_WATTS) / one.sustained_mhz - 1 for one in some]


def fitted(some: list[Load]) -> dict:
    """Numbers with which few clocks are far off: least squares, robust against single ones."""
    from scipy.optimize import least_squares

    start = dict(clock_mhz=1780.0, burst_watts=940.0, base_watts=270.0, tensor_pj_per_flop=0.9, l2_pj_per_byte=30.0)

    def off(values: list[float]) -> list[float]:
        return [error for part in errors(dict(zip(start, values)), some) for error in part]

    values = list(start.values())
    found = least_squares(off, values, loss="soft_l1", f_scale=0.02, x_scale=values, bounds=(0, math.inf))
    return dict(zip(start, map(float, found.x)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+", metavar="FILE", help="results of bench.gpu, as JSON")
    every = loads(parser.parse_args().results)
    numbers = fitted([one for one in every if one.is_fitted])
    print(", ".join(f"{name} = {value:.4g}" for name, value in numbers.items()))
    for words, part in (("fitted on", True), ("tested on", False)):
        some = [one for one in every if one.is_fitted == part]
        for kind, off in zip(("burst", "sustained"), errors(numbers, some)):
            middle, worst = statistics.median(map(abs, off)), max(off, key=abs)
            print(f"{words} {len(some)} clocks, {kind}: median error {100 * middle:.1f} %, worst {100 * worst:+.1f} %")
    print("\n| row | kernel | kFLOP a cycle | bytes a cycle | burst MHz | predicted | sustained MHz | predicted |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for one in sorted(every, key=lambda one: (not one.is_fitted, one.row)):
        guess = [clock(numbers, one, limit) for limit in (numbers["burst_watts"], LIMIT_WATTS)]
        off = [100 * (a / b - 1) for a, b in zip(guess, (one.burst_mhz, one.sustained_mhz))]
        row = f"{one.row}{' *' if one.is_fitted else ''}"
        amounts = f"{one.flop_per_cycle / 1000:.0f} | {one.bytes_per_cycle:.0f}"
        seen = [f"{m:.0f} | {g:.0f} ({e:+.1f} %)" for m, g, e in zip((one.burst_mhz, one.sustained_mhz), guess, off)]
        print(f"| {row} | {one.name} | {amounts} | {' | '.join(seen)} |")


if __name__ == "__main__":
    main()
