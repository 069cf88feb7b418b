"""The parts of the edges that need no GPU."""

import importlib.util
import tempfile
import unittest
from pathlib import Path

from .__main__ import verdict
from .cases import edges

HAS_TRITON = all(importlib.util.find_spec(name) for name in ("triton", "twill_gpu"))


class Edges(unittest.TestCase):
    def test_each_has_a_name_and_a_number_of_its_own(self):
        found = edges()
        self.assertEqual(len({edge.name for edge in found}), len(found))
        self.assertEqual(len({edge.program.seed for edge in found}), len(found))

    def test_a_row_has_the_worst_verdict_of_its_calls(self):
        row = {"sides": {"gluon": "", "cuda": "CUDA writes no atomics"}, "verdicts": {"gluon": ["equal", "DIFFERENT", "close"]}}
        self.assertEqual([verdict(row, form) for form in ("gluon", "cuda")], ["DIFFERENT", "refused"])
        row["verdicts"]["gluon"] = ["nothing", "equal"]
        self.assertEqual(verdict(row, "gluon"), "equal")

    @unittest.skipUnless(HAS_TRITON, "Triton or twill_gpu is missing")
    def test_triton_takes_them(self):
        from bench.random_programs.sides import write_ttir

        with tempfile.TemporaryDirectory() as scratch:
            for edge in {edge.program.source: edge for edge in edges()}.values():
                folder = Path(scratch) / str(edge.program.seed)
                write_ttir(edge.program, folder)
                self.assertIn("tt.func public @kernel", (folder / "kernel.ttir").read_text(), edge.name)


if __name__ == "__main__":
    unittest.main()
