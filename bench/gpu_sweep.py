"""Configurations of attention and GEMM: launches predicted by simulation beside launches measured.

python bench/gpu_sweep.py --output DIR [--twill target/release/twill] [--space gemm]

Compiles every configuration of each space with `twill compile --emit cuda`, as many at a time as there are CPUs; runs those that
fit and compares their results with each other (bench/gpu.py compares with float64); times them
side by side after rests, so that clocks are high; and writes DIR/sweep.md and DIR/sweep.json: rank correlation (Spearman) of
predicted and measured time, and how far the configuration that comes first is behind the fastest.

Needs an H200, Triton 3.6 (for TTIR and nvdisasm), torch, NVRTC; `pip install .` is not needed.
"""

import argparse
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import gpu_kernels
from gpu_rows import ROWS, Row

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))

ROUNDS, REST_SECONDS, LAUNCHES = 5, 0.004, 3
TIE = 0.01
MULTIPROCESSORS = 132
TOLERANCE, SEED = 2e-3, 17


@dataclass(frozen=True)
class Space:
    """Configurations of one kernel, and the rows of the benchmark that they are timed at."""

    name: str
    kernel: str
    constants: dict
    """Lists of values by constexpr."""
    options: dict
    """Lists of values by option of twill compile; None leaves it alone."""
    rows: tuple

    def configurations(self) -> list[tuple[dict, dict]]:
        """Constants and options, without those that make no sense together."""
        names = [*self.constants, *self.options]
        found = []
        for values in itertools.product(*self.constants.values(), *self.options.values()):
            one = dict(zip(names, values))
            # Programs share a CTA where each is a warp group's.
            if one.get("programs-per-cta") and one["BLOCK_M"] != 64:
                continue
            found.append(({name: one[name] for name in self.constants}, {name: one[name] for name in self.options}))
        return found


def attention(head_dim: int, rows: list[int], columns: list[int], *names: str) -> Space:
    constants = {"BLOCK_M": rows, "BLOCK_N": columns, "HEAD_DIM": [head_dim], "CAUSAL": [False]}
    options = {"programs-per-cta": [None, 2, 3], "ring-depth": [None, 2, 4]}
    return Space(f"attention-d{head_dim}", "attention_forward", constants, options, names)


SPACES = [
    attention(128, [64, 128, 256], [32, 64, 128, 256], "forward-d128-4k", "forward-d128-16k"),
    attention(64, [64, 128], [64, 128, 256], "forward-d64-16k"),
    Space(
        "gemm",
        "gemm_tma",
        {"BLOCK_M": [64, 128, 256], "BLOCK_N": [64, 128, 256], "BLOCK_K": [32, 64, 128]},
        {"ring-depth": [None, 3, 6]},
        ("gemm-4096", "gemm-8192"),
    ),
]


def name_of(constants: dict, options: dict) -> str:
    short = {"BLOCK_M": "M", "BLOCK_N": "N", "BLOCK_K": "K", "programs-per-cta": "p", "ring-depth": "r"}
    return "_".join(f"{short[key]}{value}" for key, value in {**constants, **options}.items() if key in short and value)


# ----------------------------------------------------------------------------------------------------------- kernels
def ttir(space: Space, constants: dict) -> str:
    """The kernel's TTIR with these constants."""
    from print_ttir import Variant, print_ttir, tile

    m, n = constants["BLOCK_M"], constants["BLOCK_N"]
    if space.kernel == "gemm_tma":
        k = constants["BLOCK_K"]
        arguments, divisible = {"a_desc": tile(m, k), "b_desc": tile(n, k), "c_desc": tile(m, n), "K": "i32"}, ("K",)
    else:
        d = constants["HEAD_DIM"]
        arguments = {"q_desc": tile(m, d), "k_desc": tile(n, d), "v_desc": tile(n, d), "o_desc": tile(m, d)}
        arguments |= {"lse_ptr": "*fp32", "softmax_scale": "fp32", "length": "i32"}
        divisible = ("lse_ptr", "length")
    return print_ttir(Variant(space.kernel, f"{space.kernel}.{space.kernel}", arguments, constants, divisible))


def compile_all(spaces: list[Space], folder: Path, twill: str) -> list[str]:
    """Writes a folder for each configuration that fits; the reasons of the others."""
    jobs = []
    for space in spaces:
        for constants, options in space.configurations():
            place = folder / space.name / name_of(constants, options)
            place.parent.mkdir(parents=True, exist_ok=True)
            source = place.with_suffix(".ttir")
            source.write_text(ttir(space, constants))
            words = [word for key, value in options.items() if value for word in (f"--{key}", str(value))]
            jobs.append([source, "-o", place, *words])

    def one(words: list) -> str | None:
        command = [twill, "compile", "--machine", "h200", "--emit", "cuda", "--python", sys.executable, "-q"]
        done = subprocess.run([*command, "--time-limit", "10", *map(str, words)], capture_output=True, text=True)
        why = done.stderr.strip().splitlines()
        return f"{words[2].name}: {why[-1] if why else done.returncode}" if done.returncode else None

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [why for why in pool.map(one, jobs) if why]


def predicted(kernel: dict, row: Row, clock_mhz: float) -> float:
    """Milliseconds of a launch, as python/twill_gpu/sweeping/predicting.py has them."""
    shape, tile, simulated, grid = row.shape, kernel["constants"], kernel["simulated"], kernel["grid"]
    if "M" in shape:
        programs = (shape["M"] // tile["BLOCK_M"]) * (shape["N"] // tile["BLOCK_N"])
        trips = shape["K"] // tile["BLOCK_K"]
    else:
        programs = shape["batch"] * shape["heads"] * shape["length"] // tile["BLOCK_M"]
        trips = shape["length"] // tile["BLOCK_N"]
    ctas = -(-programs // math.prod(grid["programs_per_cta"]))
    tiles = -(-ctas // MULTIPROCESSORS)
    (iteration,) = simulated.get("assembled") or simulated["iterations"]
    starts = 1 if grid["kind"] == "persistent" else tiles
    return (starts * simulated["start"] + tiles * (simulated["tile"] + trips * iteration)) / clock_mhz / 1000 + 0.002


# ------------------------------------------------------------------------------------------------------------- times
def build(folder: Path) -> None:
    """Compiles a kernel with NVRTC, which keeps it on disk; in a process of its own, as NVRTC compiles one at a time."""
    gpu_kernels.load(gpu_kernels.read(folder)).compile()


def measured(row: Row, folders: list[Path]) -> dict[str, float]:
    """Milliseconds of a launch by configuration, of those whose results agree."""
    import torch
    from gpu_contenders import generated
    from gpu_problems import problem, relative_error

    given = problem(row.example, row.shape, SEED, "cuda")
    runs, first = {}, None
    for folder in folders:
        launch = generated(gpu_kernels.exact(gpu_kernels.read(folder)), given, whole=False)
        launch.poison()
        launch.run()
        torch.cuda.synchronize()
        got = {name: value.clone() for name, value in launch.results().items()}
        first = first or got
        error = max(relative_error(got[name], first[name].double()) for name in got)
        if not error < TOLERANCE:
            print(f"wrong: {row.name}, {folder.name}: {error:.1e} from {folders[0].name}")
            continue
        runs[folder.name] = launch.run
    times = {name: [] for name in runs}
    for number in range(ROUNDS):
        for name in list(runs) if number % 2 == 0 else reversed(runs):
            time.sleep(REST_SECONDS)
            torch.cuda._sleep(500_000)
            events = [torch.cuda.Event(enable_timing=True) for _ in range(LAUNCHES + 1)]
            events[0].record()
            for event in events[1:]:
                runs[name]()
                event.record()
            torch.cuda.synchronize()
            # The first has what the others find in the L2 cache to load.
            times[name] += [a.elapsed_time(b) for a, b in itertools.pairwise(events[1:])]
    return {name: statistics.median(samples) for name, samples in times.items()}


def spearman(one: list[float], other: list[float]) -> float:
    """Correlation of ranks, of equal values the mean of theirs."""

    def ranks(values: list[float]) -> list[float]:
        order = sorted(values)
        return [order.index(value) + (order.count(value) - 1) / 2 for value in values]

    return statistics.correlation(ranks(one), ranks(other))


def in_order(times: dict[str, float], kernels: dict[str, dict]) -> list[str]:
    """As `twill sweep` ranks: by time; of those within 1 % of the first, what moves fewer bytes for each FLOP, then longer
    iterations."""

    def moved(name: str) -> float:
        traffic = kernels[name]["traffic"]
        return (traffic["shared"] + traffic["global"]) / traffic["flop"]

    order, left = [], sorted(times, key=times.get)
    while left:
        tied = [name for name in left if times[name] <= times[left[0]] * (1 + TIE)]
        order += sorted(tied, key=lambda name: (moved(name), -kernels[name]["traffic"]["flop"], times[name]))
        left = left[len(tied) :]
    return order


# ------------------------------------------------------------------------------------------------------------ report
def report(space: Space, folder: Path, clock_mhz: float) -> list[dict]:
    """A dictionary for each row of a space."""
    folders = sorted(path.parent for path in (folder / space.name).glob("*/kernel.json"))
    kernels = {}
    for one in folders:
        kernels[one.name] = json.loads((one / "kernel.json").read_text())
        graph = json.loads((one / "schedule.json").read_text())["problem"]["graph"]
        moves = [operation.get("traffic", {}) for operation in graph["operations"]]
        kernels[one.name]["traffic"] = {key: sum(m.get(key, 0) for m in moves) for key in ("shared", "global", "flop")}
    found = []
    for row in (row for row in ROWS if row.name in space.rows):
        times = measured(row, folders)
        guess = {name: predicted(kernels[name], row, clock_mhz) for name in times}
        first, fastest = in_order(guess, kernels)[0], min(times, key=times.get)
        found.append(
            {
                "space": space.name,
                "row": row.name,
                "configurations": len(times),
                "spearman": spearman(list(guess.values()), list(times.values())),
                "first": first,
                "fastest": fastest,
                "behind": times[first] / times[fastest] - 1,
                "predicted_ms": guess,
                "measured_ms": times,
            }
        )
    return found


def table(found: list[dict]) -> str:
    """As Markdown."""
    lines = ["| space | row | configurations | Spearman | first by prediction | fastest | first behind |", "|---|---|--:|--:|---|---|--:|"]
    for one in found:
        numbers = f"{one['configurations']} | {one['spearman']:.3f} | {one['first']} | {one['fastest']}"
        lines.append(f"| {one['space']} | {one['row']} | {numbers} | {100 * one['behind']:.1f} % |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="kernels and results go there")
    parser.add_argument("--twill", default=str(ROOT / "target/release/twill"), metavar="PATH")
    parser.add_argument("--space", action="append", choices=[space.name for space in SPACES])
    parser.add_argument("--clock-mhz", type=float, default=1980.0, help="of predictions [default: 1980]")
    told = parser.parse_args()
    spaces = [space for space in SPACES if not told.space or space.name in told.space]
    refused = compile_all(spaces, told.output, told.twill)
    print(f"{len(refused)} configurations are refused", flush=True)
    folders = [path.parent for space in spaces for path in (told.output / space.name).glob("*/kernel.json")]
    with ProcessPoolExecutor() as pool:
        list(pool.map(build, folders))
    found = [one for space in spaces for one in report(space, told.output, told.clock_mhz)]
    (told.output / "sweep.json").write_text(json.dumps({"refused": refused, "rows": found}, indent=1))
    (told.output / "sweep.md").write_text(table(found))
    print(table(found))


if __name__ == "__main__":
    main()
