"""Twill's kernels under compute-sanitizer: memcheck, racecheck, synccheck, initcheck; stock Triton's beside them.

    python -m bench.sanitizer --programs 4000:4050 --ttir kernels --section docs/reports/trust/sanitizer.json

Needs a Hopper GPU, torch, Triton, and `compute-sanitizer` (CUDA's) on the path. `--programs` are random programs
(`bench.random_programs`): each pointer is an allocation of its own, so that what is read or written beyond one is found.
`--ttir` has other people's kernels, with arguments as `bench.differential` makes them up. What is said of stock Triton's kernel
of the same TTIR with the same arguments, too, is not Twill's. The exit code is 1 if something is said of Twill's alone.
"""

import argparse
import collections
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.common import write_section
from bench.differential.processes import Worker, each, visible
from bench.random_programs import __main__ as programs
from bench.random_programs.generate import program
from bench.random_programs.sides import compile_all, forms

from .compiling import arrive_by_all_lanes, compile_zoo
from .reports import Said, is_dispatch, read

NOT_OF_TORCH = ["--kernel-name-exclude", "kns=at6native", "--kernel-name-exclude", "kns=at::native"]
"""PyTorch's kernels only fill memory: watching them takes longer than all else. initcheck has to see what they write."""
TOOLS = {
    "memcheck": ["--destroy-on-device-error", "kernel", *NOT_OF_TORCH],
    "racecheck": ["--racecheck-report", "analysis", *NOT_OF_TORCH],
    "synccheck": NOT_OF_TORCH,
    "initcheck": [],
}
SHARE = {"racecheck": 3}
"""How many times as many processes a tool gets as the others, as it takes longer."""
PORTS = 10
"""A tool's process talks to what it watches through one of so many ports from its first on."""
COMPILE_SECONDS = 120
STOPPED = threading.Event()
"""Set by Ctrl-C."""
FORMS = ("gluon", "multistage")
VERDICTS = ("silent", "dispatch", "alone", "as stock", "reported", "not run")


TASKS = {"compile": compile_all, "compile zoo": compile_zoo, "all lanes": arrive_by_all_lanes}


def compiled(worker: Worker, row: dict) -> dict:
    if row["kind"] == "program":
        row = programs.compiled(worker, row)
    else:
        row = row | worker.ask({"task": "compile zoo", **row["task"]}, COMPILE_SECONDS)
    if row.get("sides", {}).get("gluon") == "":
        answer = worker.ask({"task": "all lanes", "folder": row["task"]["folder"] / "gluon"}, COMPILE_SECONDS)
        row["sides"]["gluon"] = answer.get("error", "")
    return row


def kernels_of(rows: list[dict]) -> list[tuple[str, str, str]]:
    """Each kernel that there is: its name, its form, and its line for the runner without its number."""
    found, of_stock = [], set()
    for row in rows:
        folder = row["task"]["folder"]
        made = [name for name, error in row.get("sides", {}).items() if not error]
        if row["kind"] == "program" and "failed" not in row:
            for side in ["stock", *made]:
                found.append((row["name"], side, f"program\t{folder}\t{side}\t-"))
        elif row["kind"] == "zoo":
            for name in made:
                sides = [name] if row["name"] in of_stock else ["stock", name]
                of_stock.add(row["name"])
                for side in sides:
                    found.append((row["name"], side, f"zoo\t{folder / name}\t{side}\t{row['task']['ttir']}"))
    return found


def under(
    tool: str, numbered: list[tuple[int, str]], runner: int, folder: Path, end: float, options: argparse.Namespace
) -> dict[int, Said]:
    """What a tool says of kernels, in as many processes as it takes: the next goes on after the kernel one ended with."""
    said: dict[int, Said] = {}
    environment = os.environ | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    environment["CUDA_VISIBLE_DEVICES"] = visible(runner % options.gpus)
    while numbered and time.monotonic() < end and not STOPPED.is_set():
        listed = folder / f"{tool}-{numbered[0][0]}.txt"
        listed.write_text("".join(f"{number}\t{line}\n" for number, line in numbered), encoding="utf-8")
        command = [options.sanitizer, "--tool", tool, *TOOLS[tool], "--print-limit", "0", "--show-backtrace", "no"]
        command += ["--port", str(49152 + PORTS * runner), "--max-connections", str(PORTS)]
        command += [sys.executable, "-m", "bench.sanitizer.runner", str(listed), tool]
        log = listed.with_suffix(".log")
        with log.open("w") as file:
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment, start_new_session=True)
            last, moved = [], time.monotonic()
            while process.poll() is None:
                time.sleep(1)
                begun = log.read_text(errors="replace").rpartition("## ")[2].split()[:1]
                if begun != last:
                    last, moved = begun, time.monotonic()
                if STOPPED.is_set() or time.monotonic() > min(end, moved + options.patience):
                    os.killpg(process.pid, signal.SIGKILL)
        found = read(log.read_text(errors="replace"))
        for number in found:
            if found[number].state == "begins":
                found[number].state = "does not end" if time.monotonic() < end else "not reached"
        said |= found
        reached = max(found, default=numbered[0][0])
        numbered = [one for one in numbered if one[0] > reached]
    return said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=programs.seeds_of, default=[], metavar="A:B,C", help="seeds of random programs")
    parser.add_argument("--ttir", type=Path, metavar="DIR", help="other people's kernels")
    parser.add_argument("--only", default="", metavar="REGEX", help="only these of them")
    parser.add_argument("--forms", nargs="*", choices=list(forms(0)), default=list(FORMS), help="forms of Twill's")
    parser.add_argument("--tools", nargs="*", choices=list(TOOLS), default=list(TOOLS), help="(default: all)")
    parser.add_argument("--sanitizer", default="compute-sanitizer", metavar="FILE", help="the command")
    parser.add_argument("--jobs", type=int, default=14, metavar="N", help="processes that compile (default: 14)")
    runners_help = "processes for each tool, thrice as many for racecheck (default: 3)"
    parser.add_argument("--runners", type=int, default=3, metavar="N", help=runners_help)
    parser.add_argument("--gpus", type=int, default=1, metavar="N", help="GPUs that they share (default: 1)")
    parser.add_argument("--patience", type=float, default=90, metavar="S", help="seconds for one kernel (default: 90)")
    parser.add_argument("--compile-seconds", type=float, metavar="S", help="compile no longer")
    parser.add_argument("--seconds", type=float, default=3600, metavar="S", help="stop after S seconds")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="keep kernels and what was said there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was said")
    parser.add_argument("--section", type=Path, metavar="FILE", help="write the table as a section of docs/reports/trust.md")
    options = parser.parse_args()
    options.interpreter, options.compile_only = None, False
    end = time.monotonic() + options.seconds
    folder = options.folder = (options.folder or Path(tempfile.mkdtemp(prefix="twill-sanitizer-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for seed in options.programs:
        rows.append({"name": f"program {seed}", "kind": "program"} | programs.row_of(program(seed), options))
    for ttir in sorted(options.ttir.resolve().glob("*.ttir")) if options.ttir else []:
        if re.search(options.only, ttir.stem):
            for name in options.forms:
                task = {"ttir": ttir, "folder": folder / ttir.stem, "forms": [name]}
                rows.append({"name": ttir.stem, "kind": "zoo", "task": task})
    made = list(each(rows, compiled, options.jobs, 0, TASKS, options.compile_seconds))
    kernels = kernels_of(sorted(made, key=lambda row: row["name"]))
    print(f"-- {len(made)} of {len(rows)} sources compiled, {len(kernels)} kernels", flush=True)
    numbered = [(number, line) for number, (_, _, line) in enumerate(kernels)]
    runners = [
        (tool, numbered[part::count])
        for tool in options.tools
        for count in [SHARE.get(tool, 1) * options.runners]
        for part in range(count)
    ]
    with ThreadPoolExecutor(len(runners)) as pool:
        jobs = [
            (tool, pool.submit(under, tool, part, runner, folder, end, options)) for runner, (tool, part) in enumerate(runners)
        ]
        said: dict[str, dict[int, Said]] = collections.defaultdict(dict)
        try:
            for tool, job in jobs:
                said[tool] |= job.result()
        except KeyboardInterrupt:
            STOPPED.set()
            raise
    return told(kernels, said, options)


def told(kernels: list, said: dict[str, dict[int, Said]], options: argparse.Namespace) -> int:
    """Prints and writes what was said; 1 if something was of Twill's kernels alone."""
    counts: dict[tuple[str, str], collections.Counter] = collections.defaultdict(collections.Counter)
    of_stock = {
        (kernels[number][0], tool)
        for tool, all_said in said.items()
        for number, one in all_said.items()
        if kernels[number][1] == "stock" and (one.reports or "CUDA" in one.state)
    }
    ended = {
        (kernels[number][0], tool)
        for tool, all_said in said.items()
        for number, one in all_said.items()
        if kernels[number][1] == "stock" and one.state == "ends" and not one.reports
    }
    written, is_wrong = [], False
    for tool, all_said in said.items():
        if not all_said and kernels:
            print(f"{tool}: no kernel was reached", flush=True)
            is_wrong = True
        for number, (name, side, line) in enumerate(kernels):
            one, group = all_said.get(number, Said()), side
            own = one.reports
            if side == "gluon":
                text = Path(line.split("\t")[1], "" if line.startswith("zoo") else side, "kernel.py").read_text()
                own = [report for report in own if not is_dispatch(report, text)]
            ended_well = "silent" if one.state == "ends" else "not run"
            verdict = "reported" if own else "dispatch" if one.reports else ended_well
            if side != "stock" and (name, tool) in ended and (one.state == "does not end" or "CUDA" in one.state):
                is_wrong = True
                print(f"{tool}: {name}, {side}: {one.state}", flush=True)
            if verdict == "reported" and side != "stock":
                verdict = "as stock" if (name, tool) in of_stock else "alone"
            counts[tool, group][verdict] += 1
            if verdict not in ("silent",):
                written.append({"kernel": name, "side": side, "tool": tool, "verdict": verdict, **vars(one)})
            if verdict == "alone":
                is_wrong = True
                print(f"{tool}: {name}, {side}: {own[0][:300]}", flush=True)
    table = [
        [tool, side, *(counted[word] for word in VERDICTS)]
        for (tool, side), counted in sorted(counts.items())
    ]
    for line in table:
        print(line)
    if options.json:
        options.json.write_text(json.dumps({"table": table, "said": written}, indent=1) + "\n", encoding="utf-8")
    if options.section:
        section(table, options)
    return 1 if is_wrong else 0


def section(table: list, options: argparse.Namespace) -> None:
    """Writes the section of docs/reports/trust.md."""
    heads = ["tool", "kernels", "silent", "of Triton's dispatch alone", "of Twill's alone", "as of stock Triton's"]
    heads += ["of stock Triton's", "not run"]
    text = (
        "NVIDIA's compute-sanitizer over random programs (each pointer an allocation of its own, so that what is read beyond one "
        "is found) and kernels of the zoo (with made-up arguments): memcheck, racecheck, synccheck, initcheck. Stock Triton's "
        "kernel of the same TTIR runs with the same arguments. `not run`: the kernel's launcher refuses the arguments, the "
        "time was over, or the tool did not come to an end."
    )
    command = f"python -m bench.sanitizer --programs … --ttir … --section docs/reports/trust/{options.section.name}"
    card = programs.card(options)
    write_section(options.section, "Kernels under compute-sanitizer", 27, command, card, [text], heads, table)


if __name__ == "__main__":
    sys.exit(main())
