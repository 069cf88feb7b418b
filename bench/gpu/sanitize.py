"""Generated kernels under compute-sanitizer: memcheck, racecheck and synccheck at small sizes, results compared with float64.

    python -m bench.gpu.sanitize --kernels kernels        # one folder a kernel, as `twill compile` writes it

Needs a Hopper GPU, torch and compute-sanitizer. The exit code is 1 if a result is wrong or a tool has found something.
"""

import argparse
import math
import re
import subprocess
import sys
from pathlib import Path

from bench.gpu import kernel_folders
from bench.gpu.rows import check_shapes

TOOLS = ("memcheck", "racecheck", "synccheck")
SUMMARY = re.compile(r"=+ (ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard).*")
SIZES = 3
SECONDS = 120


def size(shape: dict) -> int:
    sides = ("batch", "heads", "length") if "length" in shape else ("M", "N", "K")
    return math.prod(shape[side] for side in sides)


def run_here(folder: Path) -> bool:
    """The kernel at its smallest sizes, in this process; whether all results are right."""
    import torch

    from bench.gpu.contenders import generated
    from bench.gpu.problems import LIMITS, problem, relative_error

    kernel = kernel_folders.exact(kernel_folders.read(folder))
    right = True
    for shape in sorted(check_shapes(kernel.example, kernel.constants, kernel.whole, kernel.least), key=size)[:SIZES]:
        given = problem(kernel.example, shape, 7, "cuda")
        reference = given.reference()
        launch = generated(kernel, given, whole=False)
        launch.poison()
        launch.run()
        torch.cuda.synchronize()
        results = launch.results()
        errors = {name: relative_error(results[name], reference[name]) for name in reference if name in results}
        right &= all(error <= LIMITS[name] for name, error in errors.items())
        print(shape, errors)
    return right


def sanitized(kernel: kernel_folders.Generated, tool: str) -> bool:
    """Only launches of the kernel itself are looked at; cuda-bindings asks the driver for functions that it lacks."""
    command = ["compute-sanitizer", "--tool", tool, "--kernel-name", f"kns={kernel.example}"]
    command += ["--report-api-errors", "no", sys.executable, "-m", "bench.gpu.sanitize", "--here", str(kernel.folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        print(f"{kernel.name} {tool}: nothing after {SECONDS} s")
        return False
    found = SUMMARY.search(done.stdout)
    clean = done.returncode == 0 and found is not None and (found[2] or found[3]) == "0"
    print(f"{kernel.name} {tool}: " + (found[1] + "s" if found else "no summary"))
    if not clean:
        print(done.stdout[-4000:] + done.stderr[-1000:])
    return clean


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", metavar="DIR", type=Path, action="append", default=[], help="as for bench.gpu")
    parser.add_argument("--here", metavar="FOLDER", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        return 0 if run_here(options.here) else 1
    try:
        kernels = kernel_folders.find(options.kernels)
    except kernel_folders.Unreadable as error:
        parser.error(str(error))
    return 0 if all([sanitized(kernel, tool) for kernel in kernels for tool in TOOLS]) else 1


if __name__ == "__main__":
    sys.exit(main())
