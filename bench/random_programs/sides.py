"""What is compiled of a program: its TTIR, stock Triton's kernel, and Twill's in each form that it has."""

import importlib.util
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from bench.differential.sides import ours, stock

from .program import Program

MACHINE = "h100"
SEARCH_SECONDS = 3
INTERPRETER_SECONDS = 60
STOCK_WARPS = 4
FAILS, NONE = "fails: ", "no interpreter"


def forms(seed: int) -> dict[str, dict]:
    """Twill's forms of a kernel by name, with the options that ask for them; warps and stages as an author might say.

    Only one program of four looks for several CTAs a multiprocessor, which assembles it up to three times.
    """
    chosen = random.Random(f"forms {seed}")
    warps, stages = chosen.choice((1, 2, 4, 4, 4, 8)), chosen.choice((1, 2, 3, 3, 4))
    return {
        "gluon": {} if chosen.random() < 0.25 else {"ctas_per_sm": 1},
        "multistage": {"schedule": "multistage", "num_warps": warps, "num_stages": stages},
        "cuda": {"emit": "cuda"},
    }


def write_ttir(program: Program, folder: Path) -> None:
    """Writes the program, and `kernel.ttir` as Triton's front end makes it."""
    from twill_gpu.front_end import ttir_of

    program.write(folder)
    spec = importlib.util.spec_from_file_location(f"program_{folder.name}", folder / "kernel.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (folder / "kernel.ttir").write_text(ttir_of(module.kernel, program.signature(), {}, MACHINE)[1], encoding="utf-8")


def compile_all(task: dict, stage: Callable[[str], None]) -> dict:
    """Fills a program's folder, and Triton's cache with its machine code: what came of each side.

    Answers `sides`: by name nothing, a refusal on one line, or a failure, which begins with `fails: `.
    """
    from twill_gpu import backend
    from twill_gpu.errors import TwillError

    folder, program = task["folder"], task["program"]
    stage("program")
    write_ttir(program, folder)
    ttir = folder / "kernel.ttir"
    stage("stock")
    load = launcher if task["launchers"] else lambda compiled: None
    load(stock(ttir, STOCK_WARPS))
    sides: dict[str, str] = {}
    for name, options in forms(program.seed).items():
        if name not in task["forms"]:
            continue
        stage(name)
        try:
            made = backend.compile_kernel(ttir.read_text(), "kernel", MACHINE, {"time_limit": SEARCH_SECONDS, **options})
            shutil.rmtree(folder / name, ignore_errors=True)
            shutil.copytree(made, folder / name)
            if "emit" not in options:
                # Triton's cache keeps it for the process that runs it; of CUDA nothing is kept.
                load(ours(folder / name).compile())
            sides[name] = ""
        except TwillError as error:
            sides[name] = " ".join(str(error).split())[:300] or type(error).__name__
        except Exception as error:
            sides[name] = f"{FAILS}{type(error).__name__}: {' '.join(str(error).split())[-300:]}"
    stage("interpreter")
    return {"sides": sides, "interpreter": interpret(folder, task["interpreter"])}


def launcher(compiled: object) -> None:
    """Makes what launches a kernel, where Triton does that: it is kept in its cache."""
    from triton.backends.nvidia.driver import CudaLauncher

    if hasattr(compiled, "src"):
        CudaLauncher(compiled.src, compiled.metadata)


def interpret(folder: Path, interpreter: Path | None) -> str:
    """Executes the program's TTIR for each call on the CPU; why that is not possible, or nothing."""
    if interpreter is None:
        return NONE
    try:
        said = subprocess.run([interpreter, folder], capture_output=True, text=True, timeout=INTERPRETER_SECONDS)
    except subprocess.TimeoutExpired:
        return "takes too long"
    return said.stdout.removeprefix(f"{folder}: ").strip() or said.stderr.strip()[-300:]
