"""Random Triton programs, run on a GPU as stock Triton, Twill and an interpreter understand them.

    python -m bench.random_programs --seeds 0:500 --total total.json          # needs a Hopper GPU, torch and Triton
    python -m bench.random_programs --seeds 0:20 --compile-only               # needs Triton alone
    python -m bench.random_programs --reduce 17 --side gluon                  # the smallest program that still differs
    python -m bench.random_programs --seeds 1213,1857,1889,1910,2269,2630     # those that found something, again

Each seed is a program (generate.py): loops, branches, loads of many kinds, MMAs of many types. It is compiled by stock
Triton and by Twill in up to three forms: Gluon with the best schedule, multistage, and CUDA. Each is run with three sizes:
whole tiles, parts of tiles, and a small one. All memory must then be that of stock Triton's kernel: bit for bit (`equal`),
or within the tolerance of the type (`close`). So must that of the interpreter, where it knows the operations. Where stock Triton
alone has something else than the interpreter, it is the one that is wrong (`as interpreted`).

`--total` adds up over commands: it keeps which seeds were tried, and tries none twice. A program whose result differs, or
that faults, is reduced, and its smallest form printed. The exit code is 1 if there is one.
"""

import argparse
import collections
import contextlib
import dataclasses
import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from bench.differential.processes import IS_OVER, Lent, Worker, each

from . import report
from .execute import compare
from .generate import program
from .program import Program
from .reduce import reduced
from .sides import FAILS, NONE, compile_all, forms, write_ttir

TASKS = {"compile": compile_all, "compare": compare}
COMPILE_SECONDS, RUN_SECONDS, SAVE_SECONDS = 300, 60, 20
WRONG = ("DIFFERENT", "fails")


def compiled(worker: Worker, row: dict) -> dict:
    """The row with what came of compiling each side. A side that crashes or does not end is left out, the others go on."""
    crashed: dict[str, str] = {}
    while True:
        asked = [name for name in row["task"]["forms"] if name not in crashed]
        answer = worker.ask({"task": "compile", **row["task"], "forms": asked}, COMPILE_SECONDS)
        if "error" not in answer:
            return row | answer | {"sides": answer["sides"] | crashed}
        if answer["stage"] not in asked:
            return row | {"failed": answer["stage"], "error": answer["error"]}
        crashed[answer["stage"]] = FAILS + answer["error"]


def run(worker: Worker, row: dict) -> dict:
    """The row with verdicts of each side and call. A side that faults is left out, and the others run again."""
    sides = [name for name, error in row["sides"].items() if not error]
    sides += [] if row["interpreter"] else ["interpreter"]
    broken: dict[str, list[str]] = {}
    notes: list[str] = []
    while True:
        task = {"task": "compare", "folder": row["task"]["folder"], "sides": sides}
        answer = worker.ask(task, RUN_SECONDS)
        if "error" not in answer:
            return row | {"verdicts": answer["verdicts"] | broken, "notes": notes + answer["notes"]}
        if answer["stage"] not in sides:
            return row | {"failed": answer["stage"], "error": answer["error"]}
        broken[answer["stage"]] = ["fails"]
        notes.append(f"{answer['stage']}: {answer['error']}")
        sides.remove(answer["stage"])


def is_wrong(row: dict) -> list[str]:
    """Sides whose result differs, that fault, or that do not compile without saying why."""
    failed = [side for side, error in row.get("sides", {}).items() if error.startswith(FAILS)]
    return failed + [side for side, found in row.get("verdicts", {}).items() if any(one in WRONG for one in found)]


def row_of(made: Program, options: argparse.Namespace) -> dict:
    task = {
        "program": made,
        "folder": options.folder / str(made.seed),
        "forms": list(forms(made.seed)) if options.forms is None else options.forms,
        "interpreter": options.interpreter,
        "launchers": not options.compile_only,
    }
    return {"seed": made.seed, "task": task}


def line(row: dict) -> str:
    """A row in words."""
    words = [str(row["seed"])]
    if "failed" in row:
        return f"{words[0]}: {row['failed']} fails: {row['error']}"
    for side, error in row["sides"].items():
        words.append(f"{side}: {error or ' '.join(row.get('verdicts', {}).get(side, ['compiled']))}")
    if "interpreter" in row.get("verdicts", {}):
        words.append(f"interpreter: {' '.join(row['verdicts']['interpreter'])}")
    return "; ".join(words + row.get("notes", []))


def rows_of(made: list[Program], options: argparse.Namespace) -> Iterator[dict]:
    """Rows of programs as they are done: compiled by all processors, and run by a few. Ends with the time that there is."""
    runners = None if options.compile_only else Lent(options.runners * options.gpus, options.gpus, TASKS)

    def work(worker: Worker, row: dict) -> dict:
        row = compiled(worker, row)
        if runners is None or "failed" in row:
            return row
        with runners.borrow() as runner:
            return run(runner, row)

    rows = each([row_of(one, options) for one in made], work, options.jobs, 0, TASKS, options.seconds)
    if runners is None:
        yield from rows
        return
    # Nobody waits for a program that is being run when the time is over.
    timer = threading.Timer(options.seconds or 1e6, runners.end)
    timer.daemon = True
    timer.start()
    try:
        # What was stopped with the run was not tried.
        yield from (row for row in rows if row.get("error") != IS_OVER and IS_OVER not in str(row.get("notes")))
    finally:
        timer.cancel()
        runners.end()
        rows.close()


def reduce(seed_program: Program, side: str, options: argparse.Namespace) -> str:
    """The smallest source that this side still does something else with than stock Triton."""
    own = argparse.Namespace(**vars(options) | {"forms": [side] if side != "interpreter" else [], "jobs": 1, "runners": 1})
    with tempfile.TemporaryDirectory() as logs:
        compiling, running = Worker(logs, None, TASKS), Worker(logs, 0, TASKS)

        def holds(source: str) -> bool:
            row = row_of(dataclasses.replace(seed_program, source=source), own)
            row["task"]["folder"] = own.folder / "reduced"
            row = compiled(compiling, row)
            return "failed" not in row and side in is_wrong(run(running, row))

        try:
            return reduced(seed_program.source, holds, options.questions)
        finally:
            compiling.stop()
            running.stop()


def tried(total: dict) -> set[int]:
    """Seeds of earlier commands."""
    return {seed for first, end in total.get("seeds", []) for seed in range(first, end)}


def spans(seeds: list[int]) -> list[list[int]]:
    """Sorted seeds, as ranges: the first of each, and the one after its last."""
    found: list[list[int]] = []
    for seed in seeds:
        if found and found[-1][1] == seed:
            found[-1][1] += 1
        else:
            found.append([seed, seed + 1])
    return found


def add_up(rows: list[dict], total: dict) -> dict:
    """The sums with those of these rows."""
    sums = collections.defaultdict(collections.Counter)
    for name, counted in total.get("sides", {}).items():
        sums[name].update(counted)
    for row in rows:
        if "failed" in row:
            sums["stock"]["fails"] += 1
            continue
        sums["stock"]["compiled"] += 1
        if row["interpreter"] != NONE:
            sums["interpreter"]["refused" if row["interpreter"] else "compiled"] += 1
        for side, error in row["sides"].items():
            sums[side]["fails" if error.startswith(FAILS) else "refused" if error else "compiled"] += 1
        for side, found in row.get("verdicts", {}).items():
            sums[side].update(found)
    seeds = sorted({*tried(total), *(row["seed"] for row in rows)})
    findings = total.get("findings", []) + [line(row) for row in rows if is_wrong(row)]
    sides = {name: dict(one) for name, one in sums.items()}
    notes = total.get("notes", [])
    return {"programs": len(seeds), "sides": sides, "findings": findings, "notes": notes, "seeds": spans(seeds)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seeds_of, default=[], metavar="A:B,C", help="from A to B − 1, and C")
    parser.add_argument("--forms", nargs="*", choices=list(forms(0)), help="forms of Twill's (default: all)")
    parser.add_argument("--total", type=Path, metavar="FILE", help="add what was done to FILE")
    parser.add_argument("--section", type=Path, metavar="FILE", help="write the sums as a section of docs/reports/trust.md")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="keep programs and kernels there")
    parser.add_argument("--interpreter", type=Path, metavar="FILE", help="the command `interpret` of twill-fuzz")
    parser.add_argument("--jobs", type=int, default=14, metavar="N", help="processes that compile (default: 14)")
    parser.add_argument("--runners", type=int, default=6, metavar="N", help="processes for each GPU (default: 6)")
    parser.add_argument("--gpus", type=int, default=1, metavar="N", help="GPUs to run on (default: 1)")
    parser.add_argument("--seconds", type=float, metavar="S", help="stop after S seconds: what is done by then counts")
    parser.add_argument("--compile-only", action="store_true", help="run nothing")
    parser.add_argument("--write-only", action="store_true", help="write programs and their TTIR, and compile nothing")
    parser.add_argument("--show", type=int, metavar="SEED", help="print the program of a seed")
    parser.add_argument("--reduce", type=int, metavar="SEED", help="print a small program that differs as this one does")
    parser.add_argument("--side", default="gluon", choices=[*forms(0), "interpreter"], help="the side that differs (default: gluon)")
    parser.add_argument("--questions", type=int, default=200, metavar="N", help="programs tried to reduce one (default: 200)")
    options = parser.parse_args()
    if options.show is None and options.reduce is None and not options.seeds:
        parser.error("say which programs: --seeds, --show or --reduce")
    if options.show is not None:
        print(program(options.show).source)
        return 0
    scratch = None if options.folder else tempfile.mkdtemp(prefix="twill-programs-")
    options.folder = (options.folder or Path(scratch)).resolve()
    try:
        if options.reduce is not None:
            print(reduce(program(options.reduce), options.side, options))
            return 0
        return many(options)
    finally:
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)


def card(options: argparse.Namespace) -> str:
    """The GPU's name."""
    if options.compile_only:
        return "no GPU"
    import torch

    return torch.cuda.get_device_name()


def seeds_of(text: str) -> list[int]:
    """Seeds as they are given: `3`, `0:500`, or several of these with commas."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, colon, end = part.partition(":")
        found.extend(range(int(first), int(end)) if colon else [int(first)])
    return found


def save(total: dict, path: Path) -> None:
    """Writes the sums, whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(total, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


def many(options: argparse.Namespace) -> int:
    """Programs of all seeds."""
    total = json.loads(options.total.read_text()) if options.total and options.total.exists() else {}
    done = tried(total)
    seeds = [seed for seed in options.seeds if seed not in done]
    if options.write_only:
        for seed in seeds:
            write_ttir(program(seed), options.folder / str(seed))
        return 0
    begin = saved = time.monotonic()
    rows: list[dict] = []
    old = total
    with contextlib.suppress(KeyboardInterrupt):
        for row in rows_of([program(seed) for seed in seeds], options):
            rows.append(row)
            if options.compile_only or is_wrong(row) or row.get("notes") or "failed" in row:
                print(line(row), flush=True)
            elif len(rows) % 100 == 0:
                print(f"-- {len(rows)} of {len(seeds)}", flush=True)
            if options.total and time.monotonic() > saved + SAVE_SECONDS:
                saved = time.monotonic()
                save(add_up(rows, old), options.total)
    total = add_up(rows, old)
    if options.total:
        save(total, options.total)
    if options.section:
        report.write(total, options.section, card(options))
    print(json.dumps(total["sides"], indent=1))
    print(f"-- {len(rows)} programs in {time.monotonic() - begin:.0f} s, {total['programs']} in all")
    wrong = [row for row in rows if is_wrong(row)]
    for row in wrong[:3]:
        side = is_wrong(row)[0]
        print(f"-- seed {row['seed']}, {side}, reduced:\n{reduce(program(row['seed']), side, options)}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
