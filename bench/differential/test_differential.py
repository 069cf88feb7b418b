"""The parts of the comparison that need no GPU."""

import unittest
from pathlib import Path

from .arguments import TRIALS, numbers_of
from .interpreted import program_of
from .signature import Argument, arguments_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


class Arguments(unittest.TestCase):
    def test_a_descriptor_has_its_shape_and_strides(self):
        found = arguments_of((EXAMPLES / "gemm_tma.ttir").read_text())
        self.assertEqual([argument.name for argument in found], ["a_desc", "b_desc", "c_desc", "K"])
        self.assertEqual(found[0], Argument("a_desc", "descriptor", "f16", (128, 64), False))
        self.assertEqual((found[3].kind, found[3].element, found[3].divisible), ("scalar", "i32", True))

    def test_pointers_and_numbers(self):
        found = {argument.name: argument for argument in arguments_of((EXAMPLES / "gemm_pointers.ttir").read_text())}
        self.assertEqual((found["a_ptr"].kind, found["a_ptr"].element), ("pointer", "f16"))

    def test_sizes_of_groups_are_sizes(self):
        """A kernel divides by them."""
        arguments = [Argument(name, "scalar", "i32", (), True) for name in ("M", "groupsize", "group_size", "num_groups")]
        numbers = numbers_of(arguments, TRIALS[0])
        self.assertTrue(all(numbers[name] >= 64 for name in ("M", "groupsize", "group_size")), numbers)
        self.assertTrue(numbers["num_groups"] < numbers["groupsize"], numbers)

    def test_an_interpreter_gets_all_arguments(self):
        """Each parameter of the kernel once: memory with its descriptor, or a number."""
        program = program_of((EXAMPLES / "gemm_tma.ttir").read_text(), TRIALS[0], 1 << 20)
        self.assertEqual([one["name"] for one in program["pointers"]], ["a_desc", "b_desc", "c_desc"])
        self.assertEqual([one["name"] for one in program["tensors"]], ["a_desc", "b_desc", "c_desc"])
        self.assertEqual(program["tensors"][0]["strides"], [256, 1])
        self.assertEqual(program["calls"], [{"grid": (2, 2, 1), "numbers": {"K": 192}}])


if __name__ == "__main__":
    unittest.main()
