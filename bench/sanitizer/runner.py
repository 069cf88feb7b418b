"""Launches kernels once each; what a tool of compute-sanitizer says in between belongs to the kernel that was announced.

    compute-sanitizer --tool memcheck python -m bench.sanitizer.runner LIST TOOL

LIST has a line for each kernel: its number, `zoo` or `program`, the folder of the kernel or of the program, the side (`stock`
or a form), and the TTIR.
"""

import sys
from pathlib import Path

from bench.differential.arguments import TRIALS, Case, torch_type
from bench.differential.sides import ours, stock
from bench.random_programs.execute import contents, short
from bench.random_programs.program import Program
from bench.random_programs.sides import STOCK_WARPS

MARK = "##"
"""What the lines of this process begin with."""


def launches_of_program(folder: Path, side: str, tool: str) -> None:
    """A random program, each pointer in an allocation of its own that ends with its last element."""
    import torch

    program = Program.read(folder)
    # What nobody has written is found where a kernel reads it; atomic operations read their results.
    leaves_results = tool == "initcheck" and "atomic" not in program.source
    for call in program.calls:
        memory = []
        for index, pointer in enumerate(program.pointers):
            element = torch_type(short(pointer))
            ahead = 0 if pointer.aligned else 1
            own = torch.empty(pointer.count + ahead, dtype=element, device="cuda")[ahead:]
            if pointer.contents != "zeros" or not leaves_results:
                own.copy_(contents(pointer, index, 0, pointer.count))
            memory.append(own[pointer.first :])
        values = [*memory, *call.numbers.values()]
        if side == "stock":
            stock(folder / "kernel.ttir", STOCK_WARPS)[call.grid](*values)
        else:
            ours(folder / side).prepare(*values, grid=call.grid)()
        torch.cuda.synchronize()


def launches_of_zoo(folder: Path, ttir: Path, side: str, name: str) -> None:
    """A kernel of which only types and names are known."""
    case = Case({"trial": TRIALS[0], "folder": folder, "ttir": ttir, "seed": 0, "id": name})
    case.run(case.stock() if side == "stock" else case.ours())


def main() -> None:
    import torch
    import triton

    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        number, kind, folder, side, ttir = line.split("\t")
        print(f"{MARK} {number} begins", flush=True)
        try:
            if kind == "program":
                launches_of_program(Path(folder), side, sys.argv[2])
            else:
                launches_of_zoo(Path(folder), Path(ttir), side, Path(ttir).stem)
            torch.cuda.synchronize()
            print(f"{MARK} {number} ends", flush=True)
        except Exception as error:
            print(f"{MARK} {number} fails {type(error).__name__}: {' '.join(str(error).split())[:200]}", flush=True)
            if "CUDA" in str(error) or "cuda" in type(error).__name__:
                return


if __name__ == "__main__":
    main()
