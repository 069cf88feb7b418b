"""Configurations of attention and GEMM: launches predicted by simulation and launches measured.

    python -m bench.gpu.sweep --output DIR [--twill target/release/twill] [--space gemm]
    python -m bench.gpu.sweep --output DIR --measured bench/results/launches.json

Compiles every configuration of each space with `twill compile --emit cuda`, as many at a time as there are CPUs; runs those that
fit and compares their results with each other (bench.gpu compares with float64); times them
side by side after rests, so that the power limit of long launches does not bind; and writes DIR/sweep.md and
DIR/sweep.json: rank correlation (Spearman) of predicted and measured time, how much slower the configuration that comes first is
than the fastest, and how far predicted times are from those measured.

Needs an H200, Triton 3.6 (for TTIR and nvdisasm), torch, NVRTC; `pip install .` is not needed. With --measured the times
are those of an earlier run, and neither a GPU nor torch is needed: a new model on old measurements.
"""

import argparse
import importlib.util
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench.common import ROOT, TWILL
from bench.gpu import kernel_folders
from bench.gpu.rows import ROWS, Row

sys.path.insert(0, str(ROOT / "examples"))


def launch_time() -> object:
    """The module by which `twill sweep` predicts; by itself, as the package need not be installed."""
    file = ROOT / "python/twill_gpu/sweeping/launch_time.py"
    spec = importlib.util.spec_from_file_location("launch_time", file)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LAUNCH = launch_time()
ROUNDS, REST_SECONDS, LAUNCHES = 5, 0.004, 3
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
            if one.get("cta-coarsening") and one["BLOCK_M"] != 64:
                continue
            found.append(({name: one[name] for name in self.constants}, {name: one[name] for name in self.options}))
        return found


def attention(head_dim: int, rows: list[int], columns: list[int], *names: str) -> Space:
    constants = {"BLOCK_M": rows, "BLOCK_N": columns, "HEAD_DIM": [head_dim], "CAUSAL": [False]}
    options = {"cta-coarsening": [None, 2, 3], "ring-depth": [None, 2, 4]}
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
    short = {"BLOCK_M": "M", "BLOCK_N": "N", "BLOCK_K": "K", "cta-coarsening": "p", "ring-depth": "r"}
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
        command += ["--candidates", "1"]
        done = subprocess.run([*command, "--time-limit", "60", *map(str, words)], capture_output=True, text=True)
        why = done.stderr.strip().splitlines()
        return f"{words[2].name}: {why[-1] if why else done.returncode}" if done.returncode else None

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [why for why in pool.map(one, jobs) if why]


def gpu_of(machine: str, twill: str, sustained: bool) -> object:
    """What limits a launch on a machine, by its numbers as `twill machine show` prints them."""
    shown = subprocess.run([twill, "machine", "show", machine], capture_output=True, text=True, check=True).stdout
    words = [line.split() for line in shown.splitlines()]
    numbers = {line[0]: float(line[1]) for line in words if len(line) > 2 and line[0].startswith(("chip.", "power."))}
    return LAUNCH.Gpu.of(numbers, sustained)


def amounts(kernel: dict, row: Row) -> tuple[list[int], list[int]]:
    """Programs of a row's grid along each axis, and trips of the loop."""
    shape, tile = row.shape, kernel["constants"]
    if "M" in shape:
        programs = [shape["M"] // tile["BLOCK_M"], shape["N"] // tile["BLOCK_N"]]
        return programs, [shape["K"] // tile["BLOCK_K"]]
    programs = [shape["length"] // tile["BLOCK_M"], shape["batch"] * shape["heads"]]
    return programs, [shape["length"] // tile["BLOCK_N"]]


# ------------------------------------------------------------------------------------------------------------- times
def build(folder: Path) -> None:
    """Compiles a kernel with NVRTC, which keeps it on disk; in a process of its own, as NVRTC compiles one at a time."""
    kernel_folders.load(kernel_folders.read(folder)).compile()


def measured(row: Row, folders: list[Path]) -> dict[str, float]:
    """Milliseconds of a launch by configuration, of those whose results agree."""
    import torch

    from bench.gpu.contenders import generated
    from bench.gpu.problems import problem, relative_error

    given = problem(row.example, row.shape, SEED, "cuda")
    runs, first = {}, None
    for folder in folders:
        launch = generated(kernel_folders.exact(kernel_folders.read(folder)), given, whole=False)
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


def in_order(times: dict[str, float], kernels: dict[str, dict], options: dict[str, dict]) -> list[str]:
    """As `twill sweep` ranks."""

    def moved(name: str) -> float:
        (traffic,) = kernels[name]["simulated"]["traffic"]
        return (traffic["shared"] + traffic["global"]) / traffic["flop"]

    def flop(name: str) -> int:
        return kernels[name]["simulated"]["traffic"][0]["flop"]

    return LAUNCH.fastest_first(list(times), times.get, moved, flop, lambda name: given(options[name]))


def given(options: dict) -> int:
    """Options that are not left alone."""
    return sum(value is not None for value in options.values())


# ------------------------------------------------------------------------------------------------------------ report
def report(space: Space, folder: Path, gpu: object, known: dict[str, dict[str, float]]) -> list[dict]:
    """A dictionary for each row of a space. `known`: milliseconds by row and configuration that need not be measured."""
    folders = sorted(path.parent for path in (folder / space.name).glob("*/kernel.json"))
    kernels = {one.name: json.loads((one / "kernel.json").read_text()) for one in folders}
    options = {name_of(*configuration): configuration[1] for configuration in space.configurations()}
    found = []
    for row in (row for row in ROWS if row.name in space.rows):
        times = known[row.name] if known else measured(row, folders)
        times = {name: time for name, time in times.items() if name in kernels}
        work = {name: amounts(kernels[name], row) for name in times}
        guess = {name: LAUNCH.milliseconds(kernels[name], work[name], gpu) for name in times}
        first, fastest = in_order(guess, kernels, options)[0], min(times, key=times.get)
        errors = {name: guess[name] / times[name] - 1 for name in times}
        found.append(
            {
                "space": space.name,
                "row": row.name,
                "configurations": len(times),
                "spearman": spearman(list(guess.values()), list(times.values())),
                "first": first,
                "fastest": fastest,
                "slower": times[first] / times[fastest] - 1,
                "median_error": statistics.median(map(abs, errors.values())),
                "worst": max(errors, key=lambda name: abs(errors[name])),
                "worst_error": max(errors.values(), key=abs),
                "predicted_ms": guess,
                "measured_ms": times,
                # What they were predicted from, for other models.
                "kernels": {name: LAUNCH.of_kernel(kernels[name]) for name in times},
                "amounts": work,
                "options": {name: given(options[name]) for name in times},
            }
        )
    return found


def table(found: list[dict]) -> str:
    """As Markdown."""
    lines = [
        "| space | row | configurations | Spearman | first by prediction | fastest | first, slower | error, median | worst |",
        "|---|---|--:|--:|---|---|--:|--:|---|",
    ]
    for one in found:
        numbers = f"{one['configurations']} | {one['spearman']:.3f} | {one['first']} | {one['fastest']}"
        errors = f"{100 * one['median_error']:.1f} % | {100 * one['worst_error']:+.0f} % {one['worst']}"
        lines.append(f"| {one['space']} | {one['row']} | {numbers} | {100 * one['slower']:.1f} % | {errors} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="kernels and results go there")
    parser.add_argument("--twill", default=str(TWILL), metavar="PATH")
    parser.add_argument("--space", action="append", choices=[space.name for space in SPACES])
    parser.add_argument("--no-compile", action="store_true", help="the kernels are in DIR, from a run before")
    parser.add_argument("--machine", default="h200", metavar="NAME", help="that times are predicted for [default: h200]")
    parser.add_argument("--sustained", action="store_true", help="predict launches that follow each other for long")
    parser.add_argument("--measured", type=Path, metavar="FILE", help="a sweep.json: takes its times, needs no GPU")
    told = parser.parse_args()
    spaces = [space for space in SPACES if not told.space or space.name in told.space]
    earlier = json.loads(told.measured.read_text()) if told.measured else {"rows": []}
    known = {row["row"]: row["measured_ms"] for row in earlier["rows"]}
    refused = [] if told.no_compile else compile_all(spaces, told.output, told.twill)
    print(f"{len(refused)} configurations are refused", flush=True)
    if not known:
        folders = [path.parent for space in spaces for path in (told.output / space.name).glob("*/kernel.json")]
        with ProcessPoolExecutor() as pool:
            list(pool.map(build, folders))
    gpu = gpu_of(told.machine, told.twill, told.sustained)
    found = [one for space in spaces for one in report(space, told.output, gpu, known)]
    (told.output / "sweep.json").write_text(json.dumps({"refused": refused, "rows": found}))
    (told.output / "sweep.md").write_text(table(found))
    print(table(found))


if __name__ == "__main__":
    main()
