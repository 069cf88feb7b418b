"""Speed of generated kernels on a Hopper GPU, compared with libraries, stock Triton and hand-written kernels.

    python -m bench.gpu --twill target/release/twill --flash-attention flash_cute.tar.xz --keep

makes the kernels by `twill compile` with its defaults. Those of other options, and several of one example, come by folder:

    twill compile examples/gemm_tma.ttir --emit cuda --output kernels/gemm_tma.cuda
    python -m bench.gpu --kernels kernels

Every kernel is checked against float64 first, in a process of its own; one that is wrong, faults or hangs is reported
and not timed. Then all contenders of a row are timed in turn: cuDNN, FlashAttention CuTe or cuBLAS, and ours. Needs
torch, triton 3.6.0 and nvidia-smi; --cycles needs ncu.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from pathlib import Path

from bench.common import RESULTS, revision
from bench.gpu import kernel_folders, report
from bench.gpu.compiling import compile_all
from bench.gpu.jobs import stop_all
from bench.gpu.kernel_folders import Generated, Unreadable
from bench.gpu.rows import ROWS, Row
from bench.gpu.run import Run
from bench.gpu.timing import ROUNDS


def main() -> int:
    options = arguments()
    if options.report:
        return rewritten(options.output or RESULTS)
    with tempfile.TemporaryDirectory(prefix="gpu-kernels-") as made:
        failed = []
        if options.twill and not options.list:
            failed = compile_all(options.twill, {row.example for row in wanted(options)}, Path(made))
            options.kernels.append(Path(made))
        return measured(options, failed)


def measured(options: argparse.Namespace, failed: list[str]) -> int:
    try:
        kernels = kernel_folders.find(options.kernels)
    except Unreadable as error:
        sys.exit(f"bench.gpu: {error}")
    rows, notes = choose(options, kernels)
    notes += failed
    if options.rows:
        kernels = [kernel for kernel in kernels if any(kernel.serves(row) for row in rows)]
    if options.list:
        return listing(rows, kernels, notes)
    with tempfile.TemporaryDirectory(prefix="gpu-bench-") as scratch:
        answer = report.begin(options, kernels, rows, notes, options.revision or revision("crates", "examples"))
        run = Run(options, kernels, rows, answer, Path(scratch))
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        try:
            run.everything()
        finally:
            # What there is is shown, also when the run is cut short.
            stop_all()
            run.sensors.stop()
            print(report.markdown(answer))
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "rows",
        nargs="*",
        metavar="ROW",
        help="rows whose name contains this; default: all that a kernel serves (--list)",
    )
    parser.add_argument(
        "--kernels",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="folder with one folder for each kernel, as `twill compile` writes it; may be given again",
    )
    parser.add_argument(
        "--twill", metavar="PROGRAM", help="compile the examples of the rows with this command, by its defaults; kernels of --kernels come beside"
    )
    parser.add_argument(
        "--flash-attention",
        type=Path,
        metavar="ARCHIVE",
        help="FlashAttention CuTe and what it needs: a packed archive or its unpacked folder",
    )
    parser.add_argument(
        "--hand-written", type=Path, metavar="DIR", help="folder of hand-written kernels with their bench_h200.py"
    )
    parser.add_argument(
        "--minutes", type=float, default=7.5, help="rows that do not fit into this are left out (default: 7.5)"
    )
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, metavar="N", help=f"blocks of launches for each contender (default: {ROUNDS})"
    )
    parser.add_argument(
        "--check-seconds",
        type=float,
        default=60.0,
        metavar="S",
        help="a check that is silent for so long hangs (default: 60)",
    )
    parser.add_argument(
        "--no-checks", action="store_true", help="leave out the checks at small sizes; each row still checks its own"
    )
    parser.add_argument(
        "--cycles",
        nargs="?",
        const="",
        metavar="PART",
        help="also count cycles by ncu, for contenders whose `row/name` contains this",
    )
    parser.add_argument(
        "--seed", type=int, default=int(time.time()) % 2**31, help="of the random inputs (default: new ones)"
    )
    parser.add_argument("--revision", help="what was built, if not the checkout's HEAD")
    parser.add_argument("--list", action="store_true", help="show the rows and the kernels that serve them, and stop")
    parser.add_argument(
        "--rehearsal",
        action="store_true",
        help="try this script without a GPU: small sizes on the CPU through Triton's interpreter; times mean nothing",
    )
    parser.add_argument("--keep", action="store_true", help="write these rows into bench/results/gpu.json and gpu.md")
    parser.add_argument("--output", type=Path, metavar="DIR", help="write the results here instead, these rows alone")
    parser.add_argument(
        "--report", action="store_true", help="measure nothing: write gpu.md anew from the gpu.json that is there"
    )
    options = parser.parse_args()
    if options.minutes <= 0 or options.check_seconds <= 0 or options.rounds <= 0:
        parser.error("--minutes, --check-seconds and --rounds must be positive")
    for path in (options.flash_attention, options.hand_written):
        if path and not path.exists():
            parser.error(f"{path} does not exist")
    if options.hand_written and not (options.hand_written / "bench_h200.py").is_file():
        parser.error(f"{options.hand_written} has no bench_h200.py, by which hand-written kernels are called")
    if unknown := [part for part in options.rows if not any(part in row.name for row in ROWS)]:
        parser.error(f"no row's name contains {', '.join(unknown)}; there are {', '.join(row.name for row in ROWS)}")
    return options


def wanted(options: argparse.Namespace) -> list[Row]:
    """The rows that were named, or all."""
    return [row for row in ROWS if not options.rows or any(part in row.name for part in options.rows)]


def choose(options: argparse.Namespace, kernels: list[Generated]) -> tuple[list[Row], list[str]]:
    """The rows that were named; without names, those that a kernel serves, or all where there are no kernels."""
    notes = [
        f"{kernel.name} ({kernel.example}, {tiles(kernel)}) serves no row; it is checked only"
        for kernel in kernels
        if not any(kernel.serves(row) for row in ROWS)
    ]
    if options.rows:
        return wanted(options), []
    if not kernels:
        return ROWS, notes
    served = [row for row in ROWS if any(kernel.serves(row) for kernel in kernels)]
    notes += [f"{row.name}: no kernel serves it" for row in ROWS if row not in served]
    return served, notes


def rewritten(folder: Path) -> int:
    try:
        answer = json.loads((folder / "gpu.json").read_text(encoding="utf-8"))
    except OSError as error:
        sys.exit(f"bench.gpu: {error}")
    report.save(answer, folder)
    return 0


def tiles(kernel: Generated) -> str:
    return ", ".join(f"{key} {value}" for key, value in kernel.constants.items())


def listing(rows: list[Row], kernels: list[Generated], notes: list[str]) -> int:
    for row in rows:
        print(
            f"{row.name:24} {row.size():60} {', '.join(kernel.name for kernel in kernels if kernel.serves(row)) or '-'}"
        )
    for note in notes:
        print(f"note: {note}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
