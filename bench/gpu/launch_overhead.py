"""What a launch costs the host: by @twill_gpu.jit, and of @triton.jit under `TWILL=1`, compared with stock Triton's.

    python -m bench.gpu.launch_overhead                # writes bench/results/launch-overhead.json with --keep
    python -m bench.gpu.launch_overhead --rehearse     # without a GPU: launches do nothing, only Python's part is timed

Needs torch, Triton 3.6 and twill_gpu. Contenders alternate in short blocks, with the GPU idle before each, so that no
queue of launches fills up; a figure is the median over all blocks of a block's mean. Kernels and tensors are the same.
Under `TWILL=1` who has the launches is settled: stock Triton, or Twill's kernel in Gluon or in CUDA; under `triton.autotune`
the configuration that it chose by stock Triton, or another one by Twill's kernel.
"""

import argparse
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.common import ROOT, keep

LIMIT = 20.0
"""Microseconds that a launch may cost more than a stock one."""
OTHERS = 512
"""Sets of tensors in the case where each launch has others."""
SIZE = 128
"""Rows and columns of all matrices: one program."""


def main() -> int:
    options = arguments()
    sys.path[:0] = [str(ROOT / "examples")]
    device, synchronise = rehearsal() if options.rehearse else gpu()
    rows = []
    for kernel, calls in cases(device, not options.rehearse).items():
        for case, (stock, by) in calls.items():
            stock_us, *times = interleaved([stock, *by.values()], options.blocks, options.launches, synchronise)
            rows += [{"kernel": kernel, "case": case, "by": one, **summary(stock_us, us)} for one, us in zip(by, times)]
    print(table(rows))
    result = {"device": name(options.rehearse), "blocks": options.blocks, "launches": options.launches, "rows": rows}
    if options.keep:
        keep("launch-overhead.json", json.dumps(result, indent=1))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["more_us"] <= LIMIT for row in rows) else 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=200, metavar="N", help="blocks of each contender (default: 200)")
    parser.add_argument("--launches", type=int, default=50, metavar="N", help="launches of a block (default: 50)")
    parser.add_argument("--rehearse", action="store_true", help="without a GPU, with launches that do nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--keep", action="store_true", help="write bench/results/launch-overhead.json")
    return parser.parse_args()


def cases(device: str, has_gpu: bool) -> dict[str, dict[str, tuple[Callable, dict[str, Callable]]]]:
    """By kernel and case, a launch by stock Triton, and launches by Twill; each was made once."""
    import gemm_pointers
    import gemm_tma
    import torch
    import triton
    import twill_gpu
    from triton.runtime.autotuner import Autotuner
    from triton.tools.tensor_descriptor import TensorDescriptor
    from twill_gpu.marks import OWN_LAUNCHES

    tiles = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
    # Before Twill stands in its place.
    stock_tuner = type("StockAutotuner", (Autotuner,), {"run": Autotuner.run})

    def matrices() -> list:
        return [torch.zeros(SIZE, SIZE, device=device, dtype=torch.float16) for _ in range(3)]

    def descriptors(a: object, b: object, c: object) -> tuple:
        blocks = [128, 64], [128, 64], [128, 128]
        return (*[TensorDescriptor.from_tensor(*one) for one in zip((a, b, c), blocks)], SIZE)

    def pointers(a: object, b: object, c: object) -> tuple:
        return (a, b, c, SIZE, SIZE, SIZE, SIZE, SIZE, SIZE)

    def launches(function: Callable, arguments: Callable) -> dict[str, tuple[Callable, dict[str, Callable]]]:
        same = matrices()
        sets = [arguments(*matrices()) for _ in range(OTHERS)]
        few = [arguments(*same) for _ in range(8)]

        def launch(kernel: object, sets: list) -> Callable:
            def one(number: int) -> None:
                kernel[(1, 1)](*sets[number % len(sets)], **tiles, num_warps=8, num_stages=3)

            one(0)
            return one

        stock, ours = triton.jit(function), twill_gpu.jit(on_failure="error")(function)
        # Activation leaves it alone.
        setattr(stock, OWN_LAUNCHES, True)
        by = {"twill_gpu.jit": ours, **activated(function, lambda kernel: launch(kernel, few), has_gpu)}

        def tuned_launch(kernel: object) -> Callable:
            return lambda number: kernel[(1, 1)](*few[number % len(few)])

        found = {
            case: (launch(stock, sets), {name: launch(kernel, sets) for name, kernel in by.items()})
            for case, sets in {"same tensors": few, "other tensors each time": sets}.items()
        }
        if arguments is pointers:
            # Its tensors are those of any tiles.
            tuned = {name: tuned_launch(kernel) for name, kernel in autotuned(function, tiles, tuned_launch).items()}
            stock_tuned = tuned_launch(tuned_by(stock_tuner, stock, tiles))
            stock_tuned(0)
            found["triton.autotune"] = stock_tuned, tuned
        return found

    return {
        "gemm_tma": launches(gemm_tma.gemm_tma.fn, descriptors),
        "gemm_pointers": launches(gemm_pointers.gemm_pointers.fn, pointers),
    }


def activated(function: Callable, launch: Callable, has_gpu: bool) -> dict[str, object]:
    """The kernel under `TWILL=wait` by who has its launches. launch: makes one."""
    import triton
    from twill_gpu import activation
    from twill_gpu.contest import CUDA, STOCK, TWILL, Contest

    activation.install("wait")
    found = activation._activity.found
    kernels = {}
    for name, side in {"stock Triton": STOCK, "Gluon": TWILL, **({"CUDA": CUDA} if has_gpu else {})}.items():
        known = len(found)
        kernel = triton.jit(function)
        launch(kernel)
        (one,) = found[known:]
        if side == STOCK or side in one.kernels:
            decide(one, Contest.settled(None, side, {}), lambda: launch(kernel))
            kernels[f"TWILL=1: {name}"] = kernel
    return kernels


def tuned_by(tuner: type, function: object, tiles: dict[str, int]) -> object:
    """A kernel under an autotuner of two configurations, which finds the first one faster."""
    import triton

    configs = [triton.Config({**tiles, "BLOCK_N": columns}, num_warps=8, num_stages=3) for columns in (tiles["BLOCK_N"], 64)]
    made = tuner(function, function.arg_names, configs, ["K"], None, None)
    times = itertools.cycle([1.0, 2.0])

    def measured(call: Callable, quantiles: object) -> list[float]:
        call()
        return [next(times)] * 3

    made._do_bench = measured
    return made


def autotuned(function: Callable, tiles: dict[str, int], launch: Callable) -> dict[str, object]:
    """Kernels under `triton.autotune`, by who has their launches under `TWILL=wait`. launch: makes one."""
    import triton
    from triton.runtime.autotuner import Autotuner
    from twill_gpu import activation
    from twill_gpu.activation.rounds import Try
    from twill_gpu.contest import STOCK, TWILL, Contest, Side

    found = activation._activity.found
    choice = tuned_by(Autotuner, triton.jit(function), tiles)
    launch(choice)(0)
    decide(found[-1], Contest.settled(None, STOCK, {}), lambda: launch(choice)(0))
    other = tuned_by(Autotuner, triton.jit(function), tiles)
    # What is not chosen is launched once, as a comparison that waits for kernels would.
    other.configs.reverse()
    launch(other)(0)
    (one,), winner = found[-1:], Side("another configuration")
    other.cache.clear()
    other.configs.reverse()
    for number in range(2):
        launch(other)(number)
    (known,) = [one for one in other.cache.tuning._rounds.values() if one.chosen is other.configs[0]]
    known.is_over, known._contest = False, Contest.settled(None, winner, {})
    known._tries, one.contests = {winner: Try(other.configs[1], TWILL, one)}, {}
    one.launcher.forget()
    other.cache.tuning.settled.forget()
    return {"TWILL=1: the choice by stock Triton": choice, "TWILL=1: another one in Gluon": other}


def decide(one: object, contest: object, launch: Callable) -> None:
    """Has launches of a specialisation that are like this one decided by a contest."""
    classes, class_of = [], one.class_of
    one.class_of = lambda *launched: classes.append(class_of(*launched)) or classes[-1]
    one.contests = {}
    launch()
    one.contests = dict.fromkeys(classes, contest)
    # It is planned now, and what follows has nothing left to find out.
    launch()
    del one.class_of


def interleaved(calls: list[Callable], blocks: int, launches: int, synchronise: Callable) -> list[list[float]]:
    """Microseconds a launch, by contender and block. The order of contenders changes from round to round."""
    times = [[] for _ in calls]
    done = [0] * len(calls)
    for block in range(-10, blocks):
        for which in list(range(len(calls)))[:: 1 if block % 2 else -1]:
            call, first = calls[which], done[which]
            synchronise()
            start = time.perf_counter_ns()
            for number in range(first, first + launches):
                call(number)
            spent = time.perf_counter_ns() - start
            done[which] += launches
            if block >= 0:
                times[which].append(spent / launches / 1000)
    synchronise()
    return times


def summary(stock: list[float], ours: list[float]) -> dict:
    """Medians and quartiles, and by how much a block of ours takes longer than the stock one next to it."""
    more = [one - other for one, other in zip(ours, stock)]
    return {
        "stock_us": statistics.median(stock),
        "twill_us": statistics.median(ours),
        "more_us": statistics.median(more),
        "more_us_quartiles": [statistics.quantiles(more, n=4)[i] for i in (0, 2)],
    }


def table(rows: list[dict]) -> str:
    lines = [
        "| kernel | case | by | stock Triton, µs | Twill, µs | more, µs | quartiles |",
        "|---|---|---|--:|--:|--:|--:|",
    ]
    for row in rows:
        low, high = row["more_us_quartiles"]
        times = f"{row['stock_us']:.1f} | {row['twill_us']:.1f} | {row['more_us']:+.1f} | {low:+.1f} … {high:+.1f}"
        lines.append(f"| {row['kernel']} | {row['case']} | {row['by']} | {times} |")
    return "\n".join(lines)


def name(rehearse: bool) -> str:
    import torch

    return "none: launches do nothing" if rehearse else torch.cuda.get_device_name()


def gpu() -> tuple[str, Callable]:
    import torch

    return "cuda", torch.cuda.synchronize


def rehearsal() -> tuple[str, Callable]:
    """A driver whose launches do nothing, and a torch that says that tensors of the host are on it."""
    from types import SimpleNamespace

    import torch
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia import driver
    from twill_gpu import scheduled

    device = SimpleNamespace(
        get_device_properties=lambda index: {"max_shared_mem": 232448},
        load_binary=lambda name, kernel, shared, index: (name, name, 168, 0, 1024),
        fill_tma_descriptor=lambda *arguments: None,
    )
    # Triton's own launcher, which calls nothing.
    driver.library_dirs = list
    driver.compile_module_from_src = lambda **named: SimpleNamespace(launch=lambda *arguments: None)
    triton.runtime.driver.set_active(
        SimpleNamespace(
            get_current_device=lambda: 0,
            get_current_stream=lambda index: 0,
            get_current_target=lambda: GPUTarget("cuda", 90, 32),
            utils=device,
            launcher_cls=driver.CudaLauncher,
        )
    )
    loaded = scheduled.load

    def load(path: Path) -> object:
        module = loaded(path)
        # Tensors of the host have no index, and are not on a GPU.
        module.Kernel._tensor = lambda kernel, parameter, value, device: None
        return module

    scheduled.load = load
    torch.cuda.current_device = lambda: 0
    torch.cuda.is_current_stream_capturing = torch._C._cuda_isCurrentStreamCapturing = lambda: False
    torch.cuda.get_device_capability = lambda index: (9, 0)
    torch.cuda.get_device_name = lambda index=0: "none"
    torch.cuda.get_device_properties = lambda index: SimpleNamespace(multi_processor_count=132)
    return "cpu", lambda: None


if __name__ == "__main__":
    sys.exit(main())
