"""Solves what `twill schedule --emit smtlib2` writes with Z3, for random small problems.

    python tests/cross_check/exported.py [--count 150] [--seed 0] [--jobs 2] [--twill target/release/twill] [--only K]

For every case, under one model variant each: at the interval I of twill's answer the text is satisfiable with its N stages,
and Z3's schedule passes `replay`; at I - 1 it is not, with N and with N + 1 stages; where the text states the answer, that is Z3's;
and it always is that of `model.py`, also with N - 1 stages. Exit status 0 if all agree, 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from multiprocessing import Pool
from pathlib import Path

import z3

from bounds import earliest, resource_bound
from generate import generate
from model import Model
from problem import COMPUTE, PAPER, Options, Problem, build
from replay import replay

HERE = Path(__file__).resolve().parent
MAX_INTERVAL = 12

VARIANTS: list[tuple[Options, list[str]]] = [
    (Options(), []),
    (PAPER, ["--model=paper"]),
    (Options(liveness="paper"), ["--liveness=paper"]),
    (Options(), []),
    (
        Options(exclusive_issue=False, concurrency_window="literal"),
        ["--exclusive-issue=off", "--concurrency-window=literal"],
    ),
    (
        Options(consumer_registers=False, cross_group_registers=False, stage_window="paper"),
        ["--consumer-registers=off", "--cross-group-registers=off", "--stage-window=paper"],
    ),
    (Options(warp_assignment="by_sub_tile"), ["--warp-assignment=by-sub-tile"]),
]


def main() -> int:
    arguments = parse()
    if not Path(arguments.twill).is_file():
        print(f"there is no {arguments.twill}: build it (cargo build --release) or give its path with --twill")
        return 1
    cases = [arguments.only] if arguments.only is not None else list(range(arguments.count))
    failed, questions, began = 0, 0, time.perf_counter()
    with Pool(arguments.jobs) as pool:
        for number, wanted, differences in pool.imap(check, [(arguments, number) for number in cases]):
            questions += wanted
            failed += bool(differences)
            for difference in differences:
                print(f"case {number}, {VARIANTS[number % len(VARIANTS)][1] or 'default model'}: {difference}")
    print(f"{questions} exported questions in {time.perf_counter() - began:.0f} s")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Solves exported questions with Z3.")
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int, metavar="K", help="this case alone")
    parser.add_argument("--twill", default=str(HERE.parents[1] / "target/release/twill"))
    return parser.parse_args()


def check(work: tuple[argparse.Namespace, int]) -> tuple[int, int, list[str]]:
    arguments, number = work
    options, flags = VARIANTS[number % len(VARIANTS)]
    case = generate(arguments.seed, number)
    problem = build(case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.json"
        path.write_text(json.dumps(case))
        command = [arguments.twill, "schedule", str(path), "--max-interval", str(MAX_INTERVAL), *flags]
        run = lambda *more: subprocess.run([*command, *more], capture_output=True, text=True, timeout=900)
        answer = run("--format", "json")
        # Under the paper's liveness every number of stages is a question of its own, so nothing is proved of all.
        if answer.returncode not in ((0, 2, 3) if options.liveness == "paper" else (0, 2)):
            return number, 0, [f"twill exits with {answer.returncode}: {answer.stderr.strip()}"]
        file = json.loads(answer.stdout)
        if "initiation_interval" not in file:
            points, expected = [(MAX_INTERVAL, 1), (MAX_INTERVAL, 2)], {}
        else:
            least, stages = file["initiation_interval"], file["stages"]
            points = [(least, stages), (least - 1, stages), (least - 1, stages + 1), (least, stages - 1)]
            expected = {(least, stages): "sat"}
            if options.stage_window == "complete":
                # The window of the paper has another width at every interval.
                expected |= {point: "unsat" for point in points[1:]}
        points = [(interval, stages) for interval, stages in points if interval > 0 and stages > 0]
        texts = [(i, n, run("--emit", "smtlib2", "--interval", str(i), "--stages", str(n), "-o", "-")) for i, n in points]
        if "initiation_interval" in file:
            # Both again as twill itself would ask, with what it claims of them.
            texts.append((least, None, run("--emit", "smtlib2", "--interval", str(least))))
            if least > 1:
                texts.append((least - 1, None, run("--emit", "smtlib2")))
    differences = []
    for interval, stages, text in texts:
        if text.returncode != (0 if stages else answer.returncode):
            differences.append(f"I = {interval}, N = {stages}: exit code {text.returncode}, {text.stderr.strip()}")
            continue
        claimed, stages = claim(text.stdout, stages)
        solver = z3.Solver()
        solver.from_string(text.stdout)
        said = str(solver.check())
        where = f"I = {interval}, N = {stages}: Z3 answers {said}"
        for what, other in (("twill", expected.get((interval, stages))), ("the text", claimed)):
            if other not in (None, "unknown", said):
                differences.append(f"{where}, {what} {other}")
        modelled = by_model(problem, options, interval, stages)
        if said != modelled:
            differences.append(f"{where}, model.py {modelled}")
        if said == "sat":
            differences += [f"{where}, but its schedule violates {why}" for why in violations(problem, options, interval, solver.model())]
    return number, len(texts), differences


def claim(text: str, stages: int | None) -> tuple[str, int]:
    """The status that the text states, and the number of stages that it asks for."""
    claimed = re.search(r"^\(set-info :status (\w+)\)$", text, re.MULTILINE).group(1)
    wanted = int(re.search(r"^; Is there .* (?:at most|exactly) (\d+) stages?\?$", text, re.MULTILINE).group(1))
    assert stages in (None, wanted), (stages, wanted)
    return claimed, wanted


def by_model(problem: Problem, options: Options, interval: int, stages: int) -> str:
    if any(not groups for groups in problem.candidates(options)) or interval < resource_bound(problem) or earliest(problem, interval) is None:
        return "unsat"
    exactly = stages if options.liveness == "paper" else None
    return "sat" if Model(problem, options, interval, stages * interval, exactly).check() else "unsat"


def violations(problem: Problem, options: Options, interval: int, model: z3.ModelRef) -> list[str]:
    """The violations of the schedule in a model of the text, replayed."""
    true = {str(d) for d in model.decls() if z3.is_true(model[d])}
    find = lambda pattern: [tuple(map(int, m.groups())) for m in map(re.compile(pattern).fullmatch, true) if m]
    cycles, groups = dict(find(r"op_(\d+)_(\d+)")), dict(find(r"warp_(\d+)_(\d+)"))
    everyone = range(len(problem.operations))
    given = {g: problem.register_choices()[0] for g, group in enumerate(problem.groups) if group.role == COMPUTE}
    for group, registers in find(r"given_(\d+)_(\d+)"):
        given[group] = max(given[group], registers)
    placed = tuple(cycles[v] for v in everyone), tuple(groups[v] for v in everyone)
    result = replay(problem, interval, *placed, given, options)
    return [f"{family}: {why}" for family, why in result.violations.items()]


if __name__ == "__main__":
    sys.exit(main())
