"""The parts of random programs that need no GPU."""

import importlib.util
import tempfile
import unittest
from pathlib import Path

from .generate import program
from .program import Program
from .reduce import reduced

HAS_TRITON = all(importlib.util.find_spec(name) for name in ("triton", "twill_gpu"))


class Programs(unittest.TestCase):
    def test_a_seed_is_a_program(self):
        self.assertEqual(program(5), program(5))
        self.assertEqual(len({program(seed).source for seed in range(50)}), 50)

    def test_a_program_is_read_as_it_was_written(self):
        with tempfile.TemporaryDirectory() as scratch:
            program(3).write(Path(scratch))
            self.assertEqual(Program.read(Path(scratch)), program(3))

    def test_every_call_has_the_same_numbers(self):
        for seed in range(50):
            made = program(seed)
            names = list(made.calls[0].numbers)
            self.assertTrue(all(list(call.numbers) == names for call in made.calls))
            self.assertTrue(all(call.numbers[name] % 16 == 0 for call in made.calls for name in made.multiples))

    @unittest.skipUnless(HAS_TRITON, "Triton or twill_gpu is missing")
    def test_triton_takes_them(self):
        from .sides import write_ttir

        with tempfile.TemporaryDirectory() as scratch:
            for seed in range(25):
                folder = Path(scratch) / str(seed)
                write_ttir(program(seed), folder)
                self.assertIn("tt.func public @kernel", (folder / "kernel.ttir").read_text())


class Reducer(unittest.TestCase):
    SOURCE = """
import triton

@triton.jit
def kernel(x, y):
    a = x + 1
    for i in range(0, 4):
        if a > 2:
            b = max(min(a, 3), y)
        else:
            b = 0
        c = b * 2
    return c
"""

    def test_what_does_not_matter_goes(self):
        small = reduced(self.SOURCE, lambda text: "min(" in text, 500)
        self.assertEqual(small.split("def kernel(x, y):\n")[1].strip(), "b = min(a, 3)")

    def test_nothing_is_left_out_where_everything_matters(self):
        whole = reduced(self.SOURCE, lambda text: False, 500)
        self.assertEqual(whole.count("\n"), self.SOURCE.strip().count("\n"))

    def test_it_asks_no_more_than_it_may(self):
        asked = []
        reduced(self.SOURCE, lambda text: asked.append(text) or True, 3)
        self.assertLessEqual(len(asked), 3)


if __name__ == "__main__":
    unittest.main()
