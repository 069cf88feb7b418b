"""Tests of the Z3 model itself, without twill: python -m unittest (in this folder). With TWILL_LONG=1 they look at more problems."""

import dataclasses
import json
import os
import random
import unittest
from multiprocessing import Pool
from pathlib import Path

import generate
from bounds import stage_bound
from problem import LEVELS, PAPER, Options, build
from replay import enumerate_all, replay
from search import feasible, solve

LONG = bool(os.environ.get("TWILL_LONG"))
GRAPHS = Path(__file__).resolve().parents[2] / "crates/twill-graph/graphs"


class Toys(unittest.TestCase):
    def solve(self, name: str, maximum: int, options: Options = Options()):
        file = json.loads((GRAPHS / f"{name}.json").read_text())
        file["machine"]["compute_groups"]["maximum"] = maximum
        problem = build(file)
        solution = solve(problem, options)
        return solution.interval, dict(zip(LEVELS, solution.objectives))

    def test_attention_takes_two_cycles(self):
        interval, levels = self.solve("toy-attention", 2)
        self.assertEqual((interval, levels["stages"], levels["length"]), (2, 2, 4))

    def test_attention_on_one_group_under_the_papers_reading(self):
        # Without exclusive issue one group does it.
        interval, levels = self.solve("toy-attention", 1, PAPER)
        self.assertEqual((interval, levels["stages"], levels["length"]), (2, 2, 4))

    def test_waiting_costs_a_cycle_on_one_group(self):
        self.assertEqual(self.solve("toy-attention-blocking", 1)[0], 3)
        self.assertEqual(self.solve("toy-attention-blocking", 2)[0], 2)


def tiny(number: int) -> dict:
    """A problem of three operations with short times, which can be enumerated."""
    for attempt in range(1000):
        case = generate.generate(number, 10_000 + attempt)
        ops = case["operations"]
        short = all(
            max([u.get("start", 0) + u["cycles"] for u in op.get("units", [])], default=0) <= 2 for op in ops
        ) and all(op.get("cycles", 0) <= 2 and op.get("latency", 0) <= 3 for op in ops)
        if len(ops) == 3 and short and len(case["dependences"]) >= 2:
            return case
    raise AssertionError("no tiny case")


def against_enumeration(number: int) -> str | None:
    rng = random.Random(number)
    problem = build(tiny(number))
    options = Options()
    if number % 3 == 2:
        options = Options(
            exclusive_issue=rng.random() < 0.5,
            concurrency_window=rng.choice(("issue", "literal")),
            consumer_registers=rng.random() < 0.5,
            cross_group_registers=rng.random() < 0.5,
            liveness=rng.choice(("folded", "paper")),
            warp_assignment=rng.choice(("free", "by_sub_tile")),
        )
    solution = solve(problem, options, max_interval=5, max_stages=3)
    ours = solution and (solution.interval, solution.objectives)
    theirs = enumerate_all(problem, 5, 3, options)
    return None if ours == theirs else f"{problem.name}: Z3 {ours}, enumeration {theirs}"


class Enumeration(unittest.TestCase):
    def test_tiny_problems(self):
        with Pool(2) as pool:
            self.assertEqual([d for d in pool.imap_unordered(against_enumeration, range(160 if LONG else 64)) if d], [])


class Random(unittest.TestCase):
    def test_schedules_replay(self):
        for number in range(40 if LONG else 16):
            problem = build(generate.generate(1, number))
            solution = solve(problem, max_interval=12)
            if solution is not None:
                result = replay(problem, solution.interval, solution.cycles, solution.groups)
                self.assertEqual(result.violations, {}, number)
                self.assertEqual(result.objectives, solution.objectives, number)

    def test_more_stages_than_the_bound_change_nothing(self):
        for number in range(20 if LONG else 8):
            problem = build(generate.generate(2, number))
            bounded = solve(problem, max_interval=8)
            most = 2 * max(stage_bound(problem, interval) for interval in range(1, 9))
            free = solve(problem, max_interval=8, max_stages=most)
            objectives = [s and (s.interval, s.objectives) for s in (bounded, free)]
            self.assertEqual(*objectives, number)

    def test_feasibility_is_monotone_in_the_interval(self):
        # docs/model.md, "Why one proof rejects every smaller interval".
        for number in range(40 if LONG else 16):
            problem = build(generate.generate(4, number))
            solution = solve(problem, max_interval=8)
            if solution is None or any(r.start for op in problem.operations for r in op.reservations):
                continue
            for interval in range(solution.interval + 1, solution.interval + 5):
                self.assertTrue(feasible(problem, interval), (number, interval))

    def test_the_papers_liveness_is_no_stricter(self):
        # The straight-line program holds no more copies than the steady state.
        for number in range(15 if LONG else 6):
            problem = build(generate.generate(3, number))
            folded = solve(problem, max_interval=8)
            if folded is not None:
                paper = dataclasses.replace(Options(), liveness="paper")
                self.assertLessEqual(solve(problem, paper, 8).interval, folded.interval, number)

    def test_cases_depend_on_seed_and_number_alone(self):
        self.assertEqual(generate.generate(0, 5), generate.generate(0, 5))
        self.assertNotEqual(generate.generate(0, 5), generate.generate(1, 5))


if __name__ == "__main__":
    unittest.main()
