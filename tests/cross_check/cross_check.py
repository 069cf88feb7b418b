"""Compares the exact solver with Z3 on random small problems.

    python tests/cross_check/cross_check.py [--count 300] [--seed 0] [--jobs 2] [--twill target/release/twill] [--only K]

For every case: Z3 and `twill schedule` must agree whether there is a schedule up to `--max-interval`, on the least interval, on every
level of the objective, and on the interval and length of phase 1; and twill's schedule must pass `replay`. A case on which they
differ is kept in `--keep`. Exit status 0 if all agree, 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from multiprocessing import Pool
from pathlib import Path

from generate import generate
from model import Solution
from problem import LEVELS, Options, build
from replay import replay
from search import phase_1, solve

HERE = Path(__file__).resolve().parent
OPTIMAL, INFEASIBLE = 0, 2


def main() -> int:
    arguments = parse()
    cases = [arguments.only] if arguments.only is not None else list(range(arguments.count))
    if not arguments.z3_only and not Path(arguments.twill).is_file():
        print(f"there is no {arguments.twill}: build it (cargo build --release) or give its path with --twill")
        return 1
    # Leftovers of earlier runs would read as mismatches of this one.
    for number in cases:
        kept_as(arguments, number).unlink(missing_ok=True)
    failed, seconds, began = 0, 0.0, time.perf_counter()
    with Pool(arguments.jobs) as pool:
        for result in pool.imap(check, [(arguments, number) for number in cases]):
            seconds += result["seconds"]
            if result["differences"]:
                failed += 1
                print(f"case {result['number']}:")
                for difference in result["differences"]:
                    print(f"  {difference}")
                print(f"  kept as {result['kept']}; again with --seed {arguments.seed} --only {result['number']}")
    elapsed = time.perf_counter() - began
    print(f"Z3 and replay took {seconds:.0f} s in {arguments.jobs} processes; all together {elapsed:.0f} s")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compares the exact solver with Z3 on random small problems.")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int, metavar="K", help="this case alone")
    parser.add_argument("--twill", default=str(HERE.parents[1] / "target/release/twill"))
    parser.add_argument("--max-interval", type=int, default=12, help="largest interval either solver tries")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for twill on one case")
    parser.add_argument("--keep", default=str(HERE / "mismatches"), help="folder for cases that differ")
    parser.add_argument("--options", type=json.loads, default={}, help="ModelOptions for Z3, as JSON")
    parser.add_argument(
        "--twill-argument", action="append", default=[], help="passed on to twill, to go with --options"
    )
    parser.add_argument("--z3-only", action="store_true", help="only replay Z3's own schedules")
    return parser.parse_args()


def kept_as(arguments: argparse.Namespace, number: int) -> Path:
    return Path(arguments.keep) / f"case-{arguments.seed}-{number}.json"


def check(work: tuple[argparse.Namespace, int]) -> dict:
    arguments, number = work
    case, options = generate(arguments.seed, number), Options(**arguments.options)
    problem = build(case)
    began = time.perf_counter()
    solution = solve(problem, options, arguments.max_interval)
    modulo = phase_1(problem, arguments.max_interval)
    differences = []
    if solution is not None:
        result = replay(problem, solution.interval, solution.cycles, solution.groups, options=options)
        if result.violations:
            differences.append(f"Z3's own schedule does not replay: {result.violations}")
        if result.objectives != solution.objectives:
            differences.append(f"Z3's own objectives are {solution.objectives}, replayed {result.objectives}")
    seconds = time.perf_counter() - began
    if not arguments.z3_only:
        differences += compare(arguments, case, problem, options, solution, modulo)
    kept = None
    if differences:
        kept = kept_as(arguments, number)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(case, indent=2) + "\n")
    return {"number": number, "differences": differences, "seconds": seconds, "kept": kept}


def compare(arguments, case: dict, problem, options: Options, solution: Solution | None, modulo) -> list[str]:
    """The answers of twill that differ from Z3's."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.json"
        path.write_text(json.dumps(case))
        command = [arguments.twill, "schedule", str(path), "--format", "json"]
        command += ["--max-interval", str(arguments.max_interval), *arguments.twill_argument]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=arguments.timeout)
        except subprocess.TimeoutExpired:
            return [f"twill took more than {arguments.timeout:.0f} s"]
    expected = INFEASIBLE if solution is None else OPTIMAL
    if run.returncode != expected:
        answer = f"no schedule up to I = {arguments.max_interval}" if solution is None else f"I = {solution.interval}"
        said = (run.stderr or run.stdout).strip()[-500:]
        return [f"Z3 finds {answer}; twill exits with {run.returncode} instead of {expected}: {said}"]
    try:
        file = json.loads(run.stdout)
    except json.JSONDecodeError as error:
        return [f"twill's answer is not JSON: {error}"]
    return differences_of(file, problem, options, solution, modulo)


def differences_of(file: dict, problem, options: Options, solution: Solution | None, modulo) -> list[str]:
    differences = []

    def same(what: str, ours, theirs) -> None:
        if ours != theirs:
            differences.append(f"{what}: Z3 {ours}, twill {theirs}")

    same("status", "infeasible" if solution is None else "optimal", file["status"])
    if file.get("modulo") and modulo:
        same("interval and length of phase 1", modulo, (file["modulo"]["initiation_interval"], file["modulo"]["length"]))
    if solution is None:
        return differences
    same("initiation_interval", solution.interval, file.get("initiation_interval"))
    same("lower_bound", solution.interval, file["lower_bound"]["interval"])
    theirs = {entry["level"]: entry for entry in file["objectives"]}
    for level, value in zip(LEVELS, solution.objectives):
        entry = theirs.get(level)
        same(level, value, entry and entry["value"])
        if entry and not entry["proved"]:
            differences.append(f"{level}: twill has not proved it")
    same("length", solution.length, file.get("length"))
    same("stages", solution.objectives[0], file.get("stages"))
    placed = {op["name"]: op for op in file["operations"]}
    if placed.keys() != {op.name for op in problem.operations}:
        return [*differences, "twill does not place every operation"]
    cycles = tuple(placed[op.name]["cycle"] for op in problem.operations)
    groups = tuple(placed[op.name]["group"] for op in problem.operations)
    registers = {group["id"]: group["registers_per_thread"] for group in file["groups"]}
    for group in file["groups"]:
        same(f"role of group {group['id']}", problem.groups[group["id"]].role, group["role"])
    result = replay(problem, file["initiation_interval"], cycles, groups, registers, options)
    for family, why in result.violations.items():
        differences.append(f"twill's schedule violates {family}: {why}")
    same("objectives as replayed", result.objectives, tuple(theirs[level]["value"] for level in LEVELS if level in theirs))
    return differences


if __name__ == "__main__":
    sys.exit(main())
