"""The soak without a GPU: figures, what is thrown away, the loop, and whole runs on stand-ins."""

import contextlib
import importlib.util
import io
import json
import os
import random
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from bench.soak import __main__ as soak, held, plan, process, report, stand_in
from bench.soak.figures import Times, percentile, ratio, slope
from bench.soak.folders import KERNELS, RECORDS, Folders
from bench.soak.plan import Plan
from bench.soak.process import Served
from bench.soak.serving import Serving
from bench.soak.steps import HOST, LATENCY, Steps, figures

HAS_TRITON = all(importlib.util.find_spec(name) for name in ("triton", "twill_gpu", "pytest"))


def times(values, blocks=20) -> Times:
    """Times that are spread over blocks."""
    found = Times()
    for number, value in enumerate(values):
        found.add(value, number % blocks)
    return found


class Figures(unittest.TestCase):
    def test_percentiles(self):
        values = list(range(1, 101))
        random.Random(1).shuffle(values)
        self.assertEqual([percentile(values, part) for part in (0.5, 0.99, 0.999, 1.0)], [50, 99, 100, 100])
        self.assertEqual(percentile([7.0], 0.5), 7.0)

    def test_a_ratio_is_of_the_percentiles_of_all(self):
        chance = random.Random(2)
        stock = [chance.lognormvariate(0, 0.1) for _ in range(20000)]
        twill = [1.1 * chance.lognormvariate(0, 0.1) for _ in range(20000)]
        found = ratio(times(twill), times(stock), 0.99)
        self.assertAlmostEqual(found.value, percentile(twill, 0.99) / percentile(stock, 0.99))
        self.assertTrue(found.low < 1.1 < found.high and found.high - found.low < 0.05, found)

    def test_a_block_that_differs_from_all_others_makes_the_interval_wide(self):
        stock, twill = times([1.0] * 2000), Times()
        for number in range(2000):
            # All that is late is in one block of twenty.
            twill.add(2.0 if number % 20 == 7 and number > 1000 else 1.0, number % 20)
        found = ratio(twill, stock, 0.99)
        self.assertEqual((found.value, found.low, found.high), (2.0, 1.0, 2.0))

    def test_too_few_times_say_nothing(self):
        self.assertIsNone(figures(times([1.0] * 100), times([1.0] * 1000)))

    def test_a_step_is_no_slope(self):
        self.assertEqual(slope([[(at, 100.0 + 4096 * (at > 5)) for at in range(12)]]), 0.0)
        self.assertAlmostEqual(slope([[(at, 7.0 * at) for at in range(12)], [(at, 1000 + 7.0 * at) for at in range(5)]]), 7.0)
        # Nor is a moment with more.
        self.assertEqual(slope([[(at, 100.0 + 4096 * (at == 5)) for at in range(12)]]), 0.0)
        # Several are one.
        self.assertGreater(slope([[(at, 4096.0 * (at // 10)) for at in range(60)]]), 300)
        self.assertEqual(slope([[], [(1.0, 2.0)]]), 0.0)


class Plans(unittest.TestCase):
    def test_loops_take_the_whole_time_and_the_first_is_longer(self):
        loops = [plan.loop_seconds(480, 4, number) for number in range(4)]
        self.assertAlmostEqual(sum(loops), 480)
        self.assertTrue(loops[0] > loops[1] == loops[3])

    def test_what_is_left_is_for_all_that_follow(self):
        self.assertAlmostEqual(plan.share_of_rest(450, 4, 0), 150)
        self.assertAlmostEqual(plan.share_of_rest(300, 4, 1), 100)
        self.assertAlmostEqual(plan.share_of_rest(90, 4, 3), 90)

    def test_one_is_killed_and_others_follow(self):
        self.assertEqual([plan.killed(processes) for processes in (1, 2, 3, 4)], [None, 0, 1, 2])

    def test_a_process_is_told_its_plan(self):
        one = Plan(2, 10.0, 99.5, seed=4, only="fp8", jobs=3)
        self.assertEqual(Plan.of_json(one.to_json()), one)
        self.assertLess(one.warm_part, Plan(0, 10.0, 99.5).warm_part)


class FoldersOfProcesses(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folders = Folders(Path(holder.name), 0)

    def write(self, *parts):
        path = self.folders.cache.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")

    def test_how_a_process_ended_and_what_is_being_written_stays(self):
        for name in ("a", "b", "c.trial", "d.died", ".e"):
            self.write(RECORDS, name)
        self.write(KERNELS, "kernel", "f")
        self.write(KERNELS, "kernel", ".g")
        for _ in range(20):
            self.folders.throw_away()
        left = {one.name for one in self.folders.cache.rglob("*") if one.is_file()}
        self.assertEqual(left, {"c.trial", "d.died", ".e", ".g"})
        self.assertEqual(self.folders.thrown_away, {"records": 2, "kernels": 1, "compiled": 0})
        self.assertEqual([self.folders.records(ending) for ending in (".trial", ".died")], [1, 1])

    def test_an_empty_cache_has_nothing_to_throw_away(self):
        self.folders.throw_away()
        self.folders.throw_away_compiled()
        self.assertEqual(sum(self.folders.thrown_away.values()), 0)

    def test_entries_of_triton_go_as_a_whole(self):
        for number in range(20):
            (self.folders.triton / str(number)).mkdir()
        self.folders.throw_away_compiled()
        self.assertEqual(len(list(self.folders.triton.iterdir())), 18)

    def test_processes_have_these_folders_and_no_twill_of_somebody_else(self):
        with mock.patch.dict(os.environ, TWILL="wait", TWILL_JOBS="7"):
            environment = self.folders.environment()
        self.assertEqual([name for name in environment if name.startswith("TWILL")], ["TWILL_CACHE"])
        self.assertEqual(environment["TMPDIR"], str(self.folders.scratch))


def segment(side, *steps, counts=True):
    return {"side": side, "at": 0.0, "counts": counts, "steps": list(steps)}


class OfSteps(unittest.TestCase):
    def test_times_are_parts_of_stock_tritons_median(self):
        steps = Steps()
        steps.add(segment("twill", [0, 999.0, 0, 0, 9.0], counts=False), ["a", "b"])
        steps.add(segment("stock", [0, 100.0, 0, 0, 10.0], [0, 120.0, 0, 0, 30.0], [1, 50.0, 0, 0, 5.0, 15.0]), ["a", "b"])
        steps.add(segment("twill", [0, 55.0, 2, 0, 40.0], [1, 100.0, 0, 1, 10.0, 20.0]), ["a", "b"])
        self.assertEqual(steps.count, {"stock": 3, "twill": 2, "misses": 1, "trials": 1})
        self.assertEqual(list(steps.normalised(LATENCY, "twill", None, None).values), [0.5, 2.0])
        self.assertEqual(list(steps.normalised(LATENCY, "twill", None, 2).values), [2.0])
        self.assertEqual(list(steps.normalised(HOST, "twill", "b", None).values), [1.0, 2.0])
        # Both segments are one block.
        self.assertEqual(set(steps.normalised(LATENCY, "stock", None, None).blocks), {0})
        self.assertEqual((steps.disturbed("misses"), steps.disturbed("trials")), ([0.5], [2.0]))

    def test_calls_that_stock_triton_did_not_make_do_not_count(self):
        steps = Steps()
        steps.add(segment("twill", [0, 55.0, 0, 0, 40.0]), ["a"])
        self.assertEqual(len(steps.normalised(LATENCY, "twill", None, None)), 0)


def samples(rss=lambda at: 1000.0, loaded=lambda at: 4):
    """Samples of 90 s."""
    phases = {0: "warm", 1: "first", 2: "middle", 3: "last"}
    return [
        {
            "at": float(at),
            "phase": phases[at // 30],
            "rss": rss(at),
            "files": 8,
            "specialisations": 2,
            "loaded": loaded(at),
            "waiting": 0,
        }
        for at in range(120)
    ]


class OfMemory(unittest.TestCase):
    def test_flat(self):
        found = held.held(samples())
        self.assertEqual((found["rss"].first, found["rss"].last, found["rss"].slope, found["rss"].grows), (1000, 1000, 0, None))
        self.assertNotIn("gpu", found)

    def test_what_grows_while_it_warms_up_does_not_count(self):
        self.assertIsNone(held.held(samples(lambda at: 100 * min(at, 30)))["rss"].grows)

    def test_what_grows_all_the_time(self):
        self.assertIn("1,200 KiB a minute", held.held(samples(lambda at: 20.0 * at))["rss"].grows)

    def test_kernels_that_are_loaded_are_counted_apart(self):
        def loaded(at):
            return 4 + (at > 60) + (at > 80)

        found = samples(lambda at: 600.0 * loaded(at), loaded)
        self.assertIsNone(held.held(found)["rss"].grows)
        self.assertEqual(held.of_a_load(found, "rss"), 600)
        self.assertIsNone(held.of_a_load(samples(), "rss"))

    def test_a_process_that_is_killed_says_nothing(self):
        self.assertEqual(held.held(samples()[:80]), {})


class Verdicts(unittest.TestCase):
    def served(self, number=0, twill=1.0, **named):
        """A process whose latencies by Twill are these parts of stock Triton's."""
        one = Served(Plan(number, 10.0, 0.0), requests=["a"], samples=samples(), **named)
        for _ in range(20):
            one.steps.add(segment("stock", *[[0, 100.0, 0, 0, 10.0]] * 30), ["a"])
            one.steps.add(segment("twill", *[[0, 100.0 * twill, 0, 0, 12.0]] * 30), ["a"])
        return one

    END = {
        "steps": 1200, "checked": 20, "wrong": {}, "evictions": 3, "drops": 1,
        "status": {
            "kernels": 1, "by_status": {"tuned": 1}, "launches": 9, "settled": 1, "twill": 0, "tuned": 1, "condemned": ["k"],
        },
    }  # fmt: skip

    def test_all_is_well(self):
        served = [self.served(0, end=self.END), self.served(1, is_killed=True)]
        whole = report.Report(served)
        self.assertEqual(whole.failures(), [])
        self.assertIn("**All as it should be.**", whole.whole({"records": 1}))
        self.assertIn("| a | 1200, 1200 | 100.0 | 100.0 | 1.000 (1.000 … 1.000) | 10.0 | 12.0 | 1.200", whole.each())
        self.assertIn("left to stock Triton since a process ended: k", report.of_process(served[0], 2))
        json.dumps(whole.as_json({}))

    def test_latencies_count_and_host_times_do_not(self):
        (said,) = report.Report([self.served(twill=1.03, end=self.END)]).failures()
        self.assertIn("the 99th percentile of latencies is 1.030", said)

    def test_what_is_wrong_is_said(self):
        wrong = [{"request": "a", "side": "twill", "difference": 1.0, "allowed": 0.1}]
        for named, expected in (
            ({"end": {**self.END, "wrong": {"a": 7}}, "wrong": wrong}, "7 results are wrong, the first one of a"),
            ({"is_killed": True, "wrong": wrong}, "1 results are wrong"),
            ({"end": self.END, "failed": [{"request": "a", "error": "RuntimeError: no"}]}, "a failed: RuntimeError: no"),
            ({}, "it ended without a word"),
            ({"ended": "exit code 1: no memory"}, "exit code 1"),
            ({"end": self.END, "left_processes": [1, 2]}, "2 background processes are left"),
        ):
            (said,) = report.Report([self.served(**named)]).failures()
            self.assertIn(expected, said)


class Loops(unittest.TestCase):
    """The loop in this process, on calls that do nothing."""

    def serve(self, only="", seconds=1.0, **named):
        lines, one = [], Plan(1, seconds, time.monotonic() + 60, only=only, segment=0.02, evict=0.1, sample=0.1, **named)
        twill = stand_in.beneath(one)
        with contextlib.redirect_stdout(io.StringIO()):
            application = stand_in.begin(one, lines.append)
        Serving(one, application, twill, lines.append).run()
        return twill, lines

    def of(self, lines, kind):
        return [line for line in lines if line["is"] == kind]

    def test_sides_have_segments_by_turns(self):
        twill, lines = self.serve()
        self.assertEqual((lines[0]["is"], lines[-1]["is"]), ("begin", "end"))
        counted = [line["side"] for line in self.of(lines, "segment") if line["counts"]]
        for pair in zip(counted[::2], counted[1::2]):
            self.assertEqual(set(pair), {"stock", "twill"})
        warm = [line["side"] for line in self.of(lines, "segment") if not line["counts"]]
        self.assertGreater(warm.count("twill"), warm.count("stock"))
        self.assertFalse(twill.is_paused)
        for number, latency, _, _, *hosts in self.of(lines, "segment")[-1]["steps"]:
            self.assertEqual(number, 0)
            self.assertIn(len(hosts), (1, 2, 4, 8))
            self.assertGreaterEqual(latency, sum(hosts) - 1)

    def test_what_is_thrown_away_and_what_is_held(self):
        twill, lines = self.serve()
        end = lines[-1]
        self.assertEqual((end["evictions"], end["drops"], end["wrong"]), (twill.evictions, 3, {}))
        self.assertTrue(3 <= twill.evictions <= 7)
        # Before the segments of both sides.
        self.assertEqual(len(twill.dropped), 6)
        self.assertEqual([line["phase"] for line in self.of(lines, "sample")][:: len(lines)], ["warm"])
        self.assertLessEqual({"first", "last"}, {line["phase"] for line in self.of(lines, "sample")})
        self.assertLessEqual({"rss", "gpu", "files", "threads", "children", "loaded"}, set(self.of(lines, "sample")[0]))

    def test_results_that_are_wrong(self):
        _, lines = self.serve("wrong")
        self.assertGreater(lines[-1]["wrong"]["wrong"], 0)
        self.assertEqual({line["side"] for line in self.of(lines, "wrong")}, {"twill"})

    def test_a_call_that_fails_is_left_out(self):
        _, lines = self.serve("quick|fail")
        (failed,) = self.of(lines, "failed")
        self.assertEqual((failed["request"], failed["error"]), ("fail", "RuntimeError: no launch"))
        self.assertEqual(lines[-1]["is"], "end")
        # None is left.
        _, lines = self.serve("fail", seconds=30.0)
        self.assertEqual(lines[-1]["is"], "end")

    def test_its_time_may_be_over_before_it_begins(self):
        one, lines = Plan(0, 10.0, time.monotonic() - 1), []
        twill = stand_in.beneath(one)
        with contextlib.redirect_stdout(io.StringIO()):
            Serving(one, stand_in.begin(one, lines.append), twill, lines.append).run()
        self.assertEqual([line["is"] for line in lines], ["begin", "sample", "end"])


class Whole(unittest.TestCase):
    """Processes of their own, on stand-ins."""

    def soak(self, only="", minutes=0.08, processes=1, mix="bench.soak.stand_in", within=None, **named):
        one = Plan(0, 0.0, 0.0, only=only, mix=mix, evict=0.3, sample=0.1, **named)
        out = io.StringIO()
        with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(out), mock.patch.object(soak, "say"):
            file = Path(scratch) / "soak.json"
            failures = soak.soak(one, minutes, processes, within, 1.0, file)
            return failures, out.getvalue(), json.loads(file.read_text())

    def but_for_figures(self, failures):
        """Those of seconds may be anything on a machine that does something else as well."""
        return [one for one in failures if "percentile" not in one and "grows" not in one]

    def test_processes_follow_each_other_and_one_is_killed(self):
        failures, said, written = self.soak(processes=3, minutes=0.15)
        self.assertEqual(self.but_for_figures(failures), [], said)
        self.assertEqual([one["is_killed"] for one in written["processes"]], [False, True, False])
        for head in ("Process 1 of 3: an empty cache, ended well", "Process 2 of 3: the cache of those before it, killed", "All 3"):
            self.assertIn(head, said)

    def test_memory_that_grows_and_processes_that_are_left(self):
        with mock.patch.object(process, "ENDING", 0.2):
            failures, said, _ = self.soak("leak|child")
        for what in ("memory of the process grows", "1 background processes are left"):
            self.assertIn(what, "".join(failures), said)

    def test_a_process_that_hangs_is_ended_in_time(self):
        with mock.patch.object(process, "GRACE", 0.5), mock.patch.object(soak, "REPORTING", 0.0):
            begun = time.monotonic()
            failures, said, _ = self.soak("hang", within=3.0)
        self.assertLess(time.monotonic() - begun, 20)
        self.assertIn("it did not end in time", "".join(failures), said)

    def test_a_process_that_cannot_begin(self):
        failures, said, _ = self.soak(mix="bench.soak.nothing")
        self.assertIn("exit code 1", failures[0])
        self.assertIn("ModuleNotFoundError", failures[0])

    @unittest.skipUnless(HAS_TRITON, "Triton, twill_gpu or pytest is missing")
    def test_twill_itself_on_a_stand_in_for_a_gpu(self):
        failures, said, written = self.soak(mix="bench.soak.stand_in_gpu", processes=2, minutes=0.4, jobs=1)
        self.assertEqual(self.but_for_figures(failures), [], said)
        last = written["processes"][-1]["end"]
        self.assertGreater(last["status"]["launches"], 100)
        self.assertGreater(last["checked"], 0)
        self.assertEqual(last["drops"], 3)


if __name__ == "__main__":
    unittest.main()
