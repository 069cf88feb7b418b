"""A sample of bench.fit: verdicts of `twill fit` and what Triton allocates. It needs Triton and a built twill, no GPU."""

import sys
import tempfile
import unittest
from pathlib import Path

from folder import HERE
from test_blackwell import twill

sys.path.append(str(HERE.parents[1]))
from bench.fit.configurations import Configuration, print_all  # noqa: E402
from bench.fit.verdicts import ask_fit, because, compile_one, judge, required  # noqa: E402

SECONDS = 5


def gemm(rows, columns, depth, *options, machine="h200", kernel="gemm_tma"):
    return Configuration(kernel, (("BLOCK_M", rows), ("BLOCK_N", columns), ("BLOCK_K", depth)), machine, options)


def attention(dim, rows, columns, causal, *options, machine="h200"):
    tiles = (("HEAD_DIM", dim), ("BLOCK_M", rows), ("BLOCK_N", columns), ("CAUSAL", causal))
    return Configuration("attention_forward", tiles, machine, options)


def backward(dim, rows, columns, *options):
    return Configuration("attention_backward", (("HEAD_DIM", dim), ("BLOCK_M", rows), ("BLOCK_N", columns)), "h200", options)


FIT = [
    gemm(128, 128, 64, "--ring-depth", "6"),
    gemm(128, 256, 64),
    gemm(128, 128, 64, kernel="gemm_pointers", machine="b200"),
    attention(128, 128, 128, 0),
    attention(64, 128, 128, 1, "--ring-depth", "5"),
    # The best schedule takes more than there is: compile takes another.
    attention(256, 128, 64, 0, "--persistent", "off"),
    backward(64, 64, 128),
]
DO_NOT_FIT = [
    gemm(128, 128, 64, "--ring-depth", "7"),
    gemm(256, 256, 128),
    attention(128, 128, 128, 0, "--ring-depth", "4"),
    attention(256, 128, 256, 1),
]
"""Configurations on both sides of the limit."""


@unittest.skipIf(twill() is None, "twill is not built")
class Fit(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def verdicts(self, configurations):
        self.assertEqual(print_all(configurations, self.folder), {})
        return ask_fit(twill(), configurations, self.folder)

    def compiled(self, configuration):
        return compile_one((twill(), configuration, self.folder, self.folder, SECONDS, False))

    def test_verdicts_are_what_becomes_of_the_kernels(self):
        verdicts = self.verdicts(FIT + DO_NOT_FIT)
        for configuration in FIT + DO_NOT_FIT:
            with self.subTest(configuration.name):
                row = self.compiled(configuration)
                expected = "true fit" if configuration in FIT else "true misfit"
                judged = judge(verdicts[configuration.name], row)
                self.assertEqual(judged, expected, because(verdicts[configuration.name], row))

    def test_required_bytes_are_what_triton_allocates(self):
        least = ("--schedule", "no-swp")
        configurations = [
            gemm(128, 128, 64, *least),
            gemm(256, 128, 64, *least, kernel="gemm_pointers"),
            attention(64, 128, 128, 1, *least),
            backward(64, 64, 128, *least),
        ]
        verdicts = self.verdicts(configurations)
        for configuration in configurations:
            with self.subTest(configuration.name):
                needed = required(verdicts[configuration.name])
                allocated = self.compiled(configuration)["shared"]
                # Arguments that a group does not need are counted, and Triton leaves them out.
                self.assertTrue(0 <= needed - allocated <= 160, f"{needed} required, {allocated} allocated")


if __name__ == "__main__":
    unittest.main()
