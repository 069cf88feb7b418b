"""Which tests of packages are run, and what their rows say; no GPU, no torch."""

import tempfile
import unittest
from pathlib import Path
from typing import Any

from bench.applications.suites import listing, report
from bench.applications.suites.process import environment
from bench.applications.suites.suite import SUITES, Suite

FILE = """
import missing

@decorated
def test_chunk(n): ...

def help(): ...

class TestMore:
    def test_parallel(self): ...
    def help(self): ...
"""


class Listing(unittest.TestCase):
    def test_functions_and_methods_without_an_import(self) -> None:
        self.assertEqual(listing.functions_of(FILE), ["test_chunk", "TestMore::test_parallel"])

    def test_files_below_the_folder_of_tests(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            suite = Suite("repository", "tests", ("",), (r"test_b\.py::test_chunk$",))
            folder = suite.folder(Path(place))
            (folder / "tests/ops").mkdir(parents=True)
            for name in ("tests/ops/test_b.py", "tests/test_a.py", "test_not.py"):
                (folder / name).write_text(FILE)
            tests = listing.tests_of(suite, folder)
        self.assertEqual(len(tests), 4)
        self.assertEqual(listing.chosen(tests, suite.first, None), ["tests/ops/test_b.py::test_chunk"])
        every = listing.chosen(tests, suite.first, "chunk")
        self.assertEqual(every, ["tests/ops/test_b.py::test_chunk", "tests/test_a.py::test_chunk"])

    def test_some_of_many(self) -> None:
        self.assertEqual(listing.spread(range(8), 0), list(range(8)))
        self.assertEqual(listing.spread(range(8), 9), list(range(8)))
        self.assertEqual(listing.spread(range(8), 1), [7])
        self.assertEqual(listing.spread(range(8), 3), [0, 4, 7])
        self.assertEqual(listing.middle(range(8), 1), [4])
        self.assertEqual(listing.middle([], 1), [])
        self.assertEqual(listing.middle(range(3), 0), [0, 1, 2])


class Processes(unittest.TestCase):
    def test_the_repository_is_found_first_and_nothing_else_switches_twill_on(self) -> None:
        variables = environment(SUITES["liger"], Path("/suites/Liger-Kernel"), 3)
        self.assertTrue(variables["PYTHONPATH"].startswith("/suites/Liger-Kernel/src:"))
        self.assertEqual((variables["TWILL"], variables["TWILL_JOBS"]), ("0", "3"))


def row(checked: list[str], outcome: str = "passed", stock: str = "passed", status: str = "scheduled") -> dict[str, Any]:
    kernel = {"name": "kernel", "status": status, "checked": checked}
    outcomes = {"stock": {"t[1]": {"outcome": stock, "why": "too large"}}, "check": {"t[1]": {"outcome": outcome, "why": "other"}}}
    return {"test": "t", "phase": "", "outcomes": outcomes, "kernels": {"1": [kernel], "check": [kernel]}, "seconds": 3.0}


DIFFERS = "multistage: c: at [0, 1] 2.0 instead of 1.0; 3 of 16 elements differ"


class Rows(unittest.TestCase):
    def test_what_a_comparison_found(self) -> None:
        lines = ["no difference", "multistage: no difference", DIFFERS, "not checked: no memory", "InputError: no"]
        self.assertEqual(list(map(report.verdict, lines)), ["same", "same", "different", "unchecked", "refused"])

    def test_tests_that_fail_with_twill_alone(self) -> None:
        self.assertFalse(report.is_wrong(row([])))
        self.assertFalse(report.is_wrong(row([], outcome="failed", stock="failed")))
        self.assertTrue(report.is_wrong(row([], outcome="failed")))
        self.assertTrue(report.is_wrong(row([DIFFERS])))
        self.assertTrue(report.is_wrong({**row([]), "ended": "died: signal 11", "phase": "check"}))
        self.assertFalse(report.is_wrong({**row([]), "ended": "died: signal 11", "phase": "stock"}))
        self.assertFalse(report.is_wrong({**row([]), "ended": "killed after 9 s", "phase": "check"}))
        text = report.report([row([], outcome="failed"), row([], stock="failed")])
        self.assertIn("fails with Twill (check): `t[1]`: other", text)
        self.assertIn("fails by stock Triton alone: `t[1]`: too large", text)

    def test_kernels_that_were_made(self) -> None:
        self.assertEqual(report.kernels(row([])), (1, 1))
        self.assertEqual(report.kernels(row([], status="stock")), (1, 0))
        self.assertEqual(report.kernels(row([DIFFERS], status="stock")), (1, 1))

    def test_a_table_of_rows_with_and_without_a_result(self) -> None:
        ended = {"test": "u", "ended": "not begun: the time was over"}
        text = report.report([row(["no difference"]), ended, {**row([]), "ended": "died: signal 11", "phase": "wait"}])
        self.assertIn("| t | 1 passed | check: 1 passed | 1 of 1 | 2, 0 | 3.0  |", text)
        self.assertIn("died: signal 11; not done: wait", text)
        self.assertIn("3 functions, 1 without a result; by stock Triton 2 passed", text)


if __name__ == "__main__":
    unittest.main()
