"""Runs traced kernels on the GPU and writes what they recorded, for `twill trace`.

    twill compile examples/gemm_tma.ttir --machine h200 --emit cuda -o kernels/gemm
    twill compile examples/gemm_tma.ttir --machine h200 --emit cuda --trace -o kernels/gemm.traced
    python -m bench.gpu.trace kernels/gemm kernels/gemm.traced     # writes trace.bin and trace.bin.json into the latter
    twill trace kernels/gemm.traced

Needs a Hopper GPU and torch. Results are compared with float64, as test_kernel.py does, in every launch that is
recorded. Of a traced kernel and one of the same example and tiles that is not traced, both times are said: what the
recording costs. The exit code is 1 if a result is wrong or nothing was recorded.

With --table, cycles of an iteration as scheduled, as simulated and as measured are written as a table (Markdown); it takes kernels
made with `--trace-detail iterations`, whose timestamps cost nothing.
"""

import argparse
import datetime
import json
import statistics
import struct
import sys
from pathlib import Path

from bench.common import revision
from bench.gpu import kernel_folders
from bench.gpu.kernel_folders import Generated
from bench.gpu.rows import ROWS, Row

WARM_UP = 3
"""Launches before those that are recorded."""
SEED = 7


def trace_of(kernel: Generated) -> dict | None:
    """What the kernel records, as its kernel.json says; None if it is not traced."""
    return json.loads((kernel.folder / "kernel.json").read_text()).get("trace")


def row_of(kernel: Generated, name: str | None) -> Row:
    """The row of the benchmark whose sizes the kernel is run with: the first that it serves, or the one named."""
    served = [row for row in ROWS if kernel.serves(row) and (name is None or row.name == name)]
    if not served:
        known = ", ".join(row.name for row in ROWS if row.example == kernel.example)
        wanted = f" {name}" if name else ""
        raise SystemExit(f"{kernel.folder}: it serves no row{wanted}; of its example there are: {known}")
    return served[0]


def intervals(numbers: list[int], trace: dict, stages: int) -> dict[int, float]:
    """By loop, cycles from one iteration to the next: the median over timestamps and launches, without prologue and epilogue.
    Rows are those of the last iterations, in no order."""
    timestamps, rows = len(trace["timestamps"]), trace["iterations"]
    found = {}
    for first in range(0, len(numbers), timestamps * rows):
        for timestamp in trace["timestamps"]:
            if timestamp["what"] != "issue":
                continue
            column = sorted(filter(None, (numbers[first + row * timestamps + timestamp["id"]] for row in range(rows))))
            steady = column[stages : len(column) - stages + 1]
            steps = [b - a for a, b in zip(steady, steady[1:])]
            found.setdefault(timestamp["loop"], []).extend(steps)
    return {loop: statistics.median(each) for loop, each in found.items() if each}


def fidelity(kernel: Generated, row: Row, found: dict[int, float]) -> list[str]:
    """Lines of the table: cycles of an iteration of each loop that was measured."""
    scheduled = json.loads((kernel.folder / "schedule.json").read_text())
    loops = scheduled["loops"] if isinstance(scheduled, dict) and "loops" in scheduled else scheduled
    loops = loops if isinstance(loops, list) else [loops]
    simulated = json.loads((kernel.folder / "kernel.json").read_text()).get("simulated", {}).get("iterations", [])
    lines = []
    for loop, measured in sorted(found.items()):
        interval = loops[loop]["initiation_interval"]
        own = simulated[loop] if loop < len(simulated) else None
        told = "–" if own is None else f"{own} | {100 * (own / measured - 1):+.1f} %"
        name = kernel.name if len(loops) == 1 else f"{kernel.name}, loop {loop + 1} of {len(loops)}"
        lines.append(f"| {name} | {row.name} | {interval} | {told} | {measured:g} | {100 * (measured / interval - 1):+.0f} % |")
    return lines


TABLE = """\
| kernel | sizes | I | simulated | against measured | measured | above I |
|---|---|--:|--:|--:|--:|--:|
"""


class Launches:
    """Launches of a kernel on a problem."""

    def __init__(self, kernel: Generated, given: object):
        import torch

        self.kernel, self.given, self.trace = kernel, given, trace_of(kernel)
        self.out = given.allocate()
        self.buffer, extra = None, {}
        if self.trace:
            self.buffer = torch.zeros(self.trace["bytes"] // 8, dtype=torch.int64, device=given.device)
            extra = {self.trace["parameter"]: self.buffer}
        grid = given.grid(kernel_folders.exact(kernel).constants)
        self.run = kernel_folders.load(kernel).prepare(*given.arguments(self.out), grid=grid, **extra)

    def once(self, reference: dict) -> dict[str, float]:
        """One launch from poisoned outputs, and the errors of its results."""
        import torch

        from bench.gpu.problems import relative_error

        self.given.reset(self.out)
        if self.buffer is not None:
            self.buffer.zero_()
        torch.cuda.synchronize()
        self.run()
        torch.cuda.synchronize()
        results = self.given.results(self.out)
        errors = {name: relative_error(results[name], reference[name]) for name in reference if name in results}
        return errors | {f"{name} overrun": float("inf") for name in self.given.overrun(self.out)}


def right(errors: dict[str, float]) -> bool:
    from bench.gpu.problems import LIMITS

    return all(error <= LIMITS.get(name, 0.0) for name, error in errors.items())


def record(launches: Launches, reference: dict, count: int, where: Path, said: dict) -> bool:
    """Records launches into a file, with what is known of them in a file next to it."""
    trace, numbers, fine, errors = launches.trace, [], True, {}
    for number in range(WARM_UP + count):
        found = launches.once(reference)
        fine &= right(found)
        errors = {name: max(error, errors.get(name, 0.0)) for name, error in found.items()}
        if number >= WARM_UP:
            numbers += launches.buffer.cpu().tolist()
    stages = json.loads((launches.kernel.folder / "kernel.json").read_text())["schedule"]["stages"]
    found = intervals(numbers, trace, stages)
    where.write_bytes(struct.pack(f"<{len(numbers)}q", *numbers))
    said = said | {"launches": count, "errors": errors, "intervals": found}
    Path(f"{where}.json").write_text(json.dumps(said, indent=1) + "\n")
    print(f"{launches.kernel.name}: {'right' if fine else 'WRONG'}: {errors}")
    for loop, cycles in found.items():
        told = f"{cycles:g} cycles an iteration ({trace['detail']}, {count} launches)"
        print(f"{launches.kernel.name}: loop {loop}: {told}")
    if not found:
        why = "the loop has too few iterations, or the kernel did not run"
        print(f"{launches.kernel.name}: NOTHING was recorded: {why}")
    print(f"{launches.kernel.name}: written to {where}")
    return fine and bool(found)


def times(all_launches: list[Launches]) -> dict[str, float]:
    """Milliseconds of a launch of each, side by side, sustained; in a short run after a rest."""
    from bench.gpu.timing import GpuClock, measure

    found = measure({one.kernel.name: one.run for one in all_launches}, GpuClock(), rounds=4)
    summaries = {name: one.summary() for name, one in found.items()}
    for name, one in summaries.items():
        print(f"{name}: {one['ms']:.4f} ms a launch sustained, {one['burst_ms']:.4f} ms in a burst")
    return {name: one["ms"] for name, one in summaries.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", metavar="DIR", type=Path, nargs="+", help="as for bench.gpu; traced kernels and others")
    parser.add_argument("--output", metavar="OUT", type=Path, help="write to OUT/NAME/ instead of the kernels' folders")
    parser.add_argument("--row", metavar="NAME", help="sizes of this row of bench.gpu [default: the first that fits]")
    parser.add_argument("--launches", metavar="N", type=int, default=5, help="launches to record [default: 5]")
    parser.add_argument("--no-times", action="store_true", help="do not time the kernels")
    parser.add_argument("--table", metavar="FILE", type=Path, help="write scheduled, simulated and measured cycles there, as Markdown")
    parser.add_argument("--revision", help="what was built, if not the checkout's HEAD")
    options = parser.parse_args()
    try:
        kernels = kernel_folders.find(options.kernels)
    except kernel_folders.Unreadable as error:
        parser.error(str(error))
    traced = [kernel for kernel in kernels if trace_of(kernel)]
    if not traced:
        parser.error("none of these kernels is traced: compile one with --emit cuda --trace")

    import torch

    from bench.gpu.problems import problem

    gpu, date, built = torch.cuda.get_device_name(), datetime.date.today().isoformat(), options.revision or revision("crates", "examples")
    fine, lines = True, []
    by_problem: dict[tuple, list[Generated]] = {}
    for kernel in kernels:
        tiles = tuple(sorted(kernel.constants.items()))
        by_problem.setdefault((kernel.example, tiles, row_of(kernel, options.row).name), []).append(kernel)
    for (example, _, name), same in by_problem.items():
        if not any(trace_of(kernel) for kernel in same):
            continue
        row = next(row for row in ROWS if row.name == name)
        given = problem(example, row.shape, SEED, "cuda")
        reference = given.reference()
        all_launches = [Launches(kernel, given) for kernel in same]
        for one in all_launches:
            if one.trace is None:
                errors = one.once(reference)
                fine &= right(errors)
                print(f"{one.kernel.name}: {'right' if right(errors) else 'WRONG'}: {errors}")
        milliseconds = {} if options.no_times else times(all_launches)
        for one in all_launches:
            if one.trace is None:
                continue
            folder = one.kernel.folder if options.output is None else options.output / one.kernel.name
            folder.mkdir(parents=True, exist_ok=True)
            said = {"gpu": gpu, "date": date, "revision": built}
            said |= {"row": name, "shape": row.shape, "milliseconds": milliseconds}
            fine &= record(one, reference, options.launches, folder / "trace.bin", said)
            recorded = json.loads((folder / "trace.bin.json").read_text())["intervals"]
            lines += fidelity(one.kernel, row, {int(loop): cycles for loop, cycles in recorded.items()})
    if options.table:
        options.table.write_text(TABLE + "\n".join(lines) + "\n")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
