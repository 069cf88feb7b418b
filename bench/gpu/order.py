"""Schedules of one interval: their order by the SASS estimate and their order by measurement.

    twill compile examples/attention_forward.ttir --machine h200 --emit cuda --top 8 -o tops/attention_forward    # and others
    python -m bench.gpu.order tops/* --output DIR

Each folder holds the kernels of different schedules of one loop (1, 2, …), the one `twill compile` takes first. What is
measured is cycles (`sm__cycles_active.max`, by ncu) of whole launches, which neither clock nor power limit changes. One
kernel loaded anew stands elsewhere in memory and takes up to 3 % longer or shorter, so every kernel is loaded several times.
Results are compared with those of the first. Writes DIR/order.md and DIR/order.json: rank correlation (Spearman) of the two
orders; how much slower the first by prediction is than the fastest; and how well the order by measurement repeats, as the mean
rank correlation of two halves of the loads, which no prediction can surpass by much.

`--measured FILE` takes the cycles of an earlier run (an order.json) and needs no GPU: a new model on old measurements.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bench.common import ROOT
from bench.gpu import kernel_folders, ncu
from bench.gpu.sweep import build, spearman
from bench.gpu.trace import row_of

sys.path.insert(0, str(ROOT / "examples"))
CYCLES = "sm__cycles_active.max"
LAUNCHES = 2
"""Launches of each that are counted, after one that is not."""
SEED = 7
TOLERANCE = 3e-3
"""Relative, between schedules: they add in different order."""


def launches(folders: list[Path], listing: Path, loads: int, until: float) -> None:
    """Run under ncu: every kernel launched between the profiler's marks; writes which, in order."""
    import torch

    from bench.gpu.contenders import generated
    from bench.gpu.problems import problem, relative_error

    said, errors = [], {}
    for load in range(loads):
        started = time.monotonic()
        kernel_folders.LOADED.clear()
        for top in folders:
            kernels = sorted(kernel_folders.find([top]), key=lambda kernel: int(kernel.name))
            row = row_of(kernels[0], None)
            given, right = problem(row.example, row.shape, SEED, "cuda"), {}
            for kernel in kernels if load % 2 == 0 else reversed(kernels):
                launch = generated(kernel, given, whole=False)
                launch.poison()
                launch.run()
                torch.cuda.synchronize()
                if load == 0:
                    got = {name: value.clone() for name, value in launch.results().items()}
                    right = got if kernel is kernels[0] else right
                    errors[kernel.folder] = max(relative_error(got[name], right[name]) for name in got)
                torch.cuda.cudart().cudaProfilerStart()
                for _ in range(LAUNCHES):
                    launch.run()
                    torch.cuda.synchronize()
                torch.cuda.cudart().cudaProfilerStop()
                one = {"top": top.name, "kernel": kernel.name, "load": load, "row": row.name}
                one["error"] = errors[kernel.folder]
                said += [one] * LAUNCHES
            del given
        listing.write_text(json.dumps(said))
        print(f"load {load}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
        if time.time() + 1.2 * (time.monotonic() - started) > until:
            return


def measure(folders: list[Path], output: Path, loads: int, until: float) -> list[dict]:
    """The launches, each with its cycles."""
    with ProcessPoolExecutor() as pool:
        list(pool.map(build, [kernel.folder for top in folders for kernel in kernel_folders.find([top])]))
    listing = output / "launches.json"
    command = ncu.command([CYCLES])
    inner = [sys.executable, "-m", "bench.gpu.order", *map(str, folders), "--output", str(output)]
    inner += ["--loads", str(loads), "--until", str(until)]
    done = subprocess.run([*command, *inner], stdout=subprocess.PIPE, text=True, check=False, cwd=ROOT, env=os.environ)
    (output / "ncu.csv").write_text(done.stdout)
    cycles = [ncu.number(row.get(CYCLES)) for row in ncu.launches(done.stdout)]
    said = json.loads(listing.read_text())
    if len(cycles) != len(said):
        print(f"{len(said)} launches, ncu counted {len(cycles)}", file=sys.stderr)
    return [one | {"cycles": count} for one, count in zip(said, cycles)]


def packed(found: list[dict]) -> dict:
    """The launches by folder and kernel: cycles, a list for each load."""
    tops: dict[str, dict] = {}
    for one in found:
        top = tops.setdefault(one["top"], {"row": one["row"], "kernels": {}})
        kernel = top["kernels"].setdefault(one["kernel"], {"error": one["error"], "loads": []})
        kernel["loads"] += [[] for _ in range(one["load"] + 1 - len(kernel["loads"]))]
        kernel["loads"][one["load"]].append(one["cycles"])
    return tops


def unpacked(tops: dict) -> list[dict]:
    """The launches of `packed`."""
    return [
        {"top": name, "kernel": kernel, "load": load, "row": top["row"], "error": one["error"], "cycles": cycles}
        for name, top in tops.items()
        for kernel, one in top["kernels"].items()
        for load, counted in enumerate(one["loads"])
        for cycles in counted
    ]


def middle(found: list[dict]) -> float:
    """Cycles of a kernel: the median over its loads of the least of each."""
    loads = {one["load"] for one in found}
    return statistics.median(min(one["cycles"] for one in found if one["load"] == load) for load in loads)


def halves(found: dict[str, list[dict]]) -> float:
    """How well the order repeats: rank correlation of half of the loads with the others, the mean over all such halves."""
    loads = sorted({one["load"] for some in found.values() for one in some})
    agreed = []
    for half in itertools.combinations(loads, len(loads) // 2):
        if loads[0] in half:
            part = lambda some, wanted: middle([one for one in some if (one["load"] in half) == wanted])
            agreed.append(spearman(*([part(some, wanted) for some in found.values()] for wanted in (True, False))))
    return statistics.mean(agreed)


def predicted(kernel: dict) -> float:
    """Cycles of an iteration by the SASS estimate, of all loops of which there is machine code: others stand as simulated."""
    simulated = kernel["simulated"]
    both = list(zip(simulated["sass"], simulated["iterations"]))
    return sum(own for own, program in both if own != program) or sum(own for own, _ in both)


def report(folders: list[Path], found: list[dict]) -> list[dict]:
    """A dictionary for each folder of schedules."""
    answer = []
    for top in folders:
        own = [one for one in found if one["top"] == top.name]
        wrong = sorted({one["kernel"] for one in own if not one["error"] < TOLERANCE})
        names = sorted({one["kernel"] for one in own} - set(wrong), key=int)
        if len(names) < 2:
            continue
        each = {name: [one for one in own if one["kernel"] == name] for name in names}
        cycles = {name: middle(some) for name, some in each.items()}
        guess = {name: predicted(json.loads((top / name / "kernel.json").read_text())) for name in names}
        first = min(names, key=lambda name: (guess[name], int(name)))
        least = min(cycles.values())
        answer.append(
            {
                "kernel": top.name,
                "row": own[0]["row"],
                "cycles": cycles,
                "predicted": guess,
                "spearman": spearman(list(guess.values()), list(cycles.values())),
                "repeats": halves(each),
                "range": max(cycles.values()) / least - 1,
                "first": first,
                "slower": cycles[first] / least - 1,
                "compiled_slower": cycles[names[0]] / least - 1,
                "wrong": wrong,
            }
        )
    return answer


def table(answer: list[dict]) -> str:
    """As Markdown."""
    lines = [
        "| kernel | row | schedules | slowest above fastest | Spearman | order repeats | first by prediction | slower than the fastest | compiled, slower |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for one in answer:
        numbers = [len(one["cycles"]), f"{100 * one['range']:.1f} %", f"{one['spearman']:.2f}", f"{one['repeats']:.2f}"]
        last = [one["first"], f"{100 * one['slower']:.1f} %", f"{100 * one['compiled_slower']:.1f} %"]
        lines.append("| " + " | ".join(map(str, [one["kernel"], one["row"], *numbers, *last])) + " |")
    for one in answer:
        lines += ["", f"{one['kernel']}", "", "| | " + " | ".join(one["cycles"]) + " |", "|---|" + "--:|" * len(one["cycles"])]
        lines.append("| M cycles | " + " | ".join(f"{value / 1e6:.4f}" for value in one["cycles"].values()) + " |")
        lines.append("| predicted | " + " | ".join(f"{value:g}" for value in one["predicted"].values()) + " |")
        if one["wrong"]:
            lines.append(f"\nWRONG: {', '.join(one['wrong'])}")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="as `twill compile --top 8` writes them")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="results go there")
    parser.add_argument("--measured", type=Path, metavar="FILE", help="an order.json: takes its cycles, needs no GPU")
    parser.add_argument("--loads", type=int, default=6, metavar="N", help="load each kernel so often [default: 6]")
    parser.add_argument("--minutes", type=float, default=5, metavar="M", help="begin no load after this [default: 5]")
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    told = parser.parse_args()
    names = [folder.name for folder in told.folders]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        parser.error(f"two folders have the name {', '.join(twice)}; results go by that name, so rename one")
    told.output.mkdir(parents=True, exist_ok=True)
    if told.until:
        launches(told.folders, told.output / "launches.json", told.loads, told.until)
        return
    if told.measured:
        found = unpacked(json.loads(told.measured.read_text())["launches"])
    else:
        found = measure(told.folders, told.output, told.loads, time.time() + 60 * told.minutes)
    (told.output / "order.json").write_text(json.dumps({"rows": [], "launches": packed(found)}))
    answer = report(told.folders, found)
    (told.output / "order.json").write_text(json.dumps({"rows": answer, "launches": packed(found)}))
    (told.output / "order.md").write_text(table(answer))
    print(table(answer))


if __name__ == "__main__":
    main()
