"""Launches and clocks: what `[power]` of machines/h200.toml says of those that were measured. No GPU."""

import statistics
import tomllib
import unittest

from bench.common import RESULTS, ROOT
from bench.gpu import fidelity, power, sweep
from bench.gpu.power import Load

FILES = [RESULTS / "power.json"]


def numbers() -> dict[str, float]:
    """`[power]` as the machine file has it."""
    table = tomllib.loads((ROOT / "machines/h200.toml").read_text())["power"]
    return {name: value.get("measured", value.get("derived", value.get("specified"))) for name, value in table.items()}


class Clocks(unittest.TestCase):
    def test_those_that_took_no_part_in_the_fit(self) -> None:
        every = power.loads(FILES)
        for part, least in ((True, 14), (False, 8)):
            some = [one for one in every if one.is_fitted == part]
            self.assertGreaterEqual(len(some), least)
            for off in power.errors(numbers(), some):
                self.assertLess(statistics.median(map(abs, off)), 0.025)
                self.assertLess(max(map(abs, off)), 0.07)

    def test_the_benchmark_predicts_the_same_clock(self) -> None:
        limits = {f"power.{name}": value for name, value in numbers().items()}
        chip = {"chip.streaming_multiprocessors": 132.0, "chip.clock_mhz": 1830.0}
        one = Load("", "", 500e3, 6e3, 0, 0)
        for sustained, limit in ((True, numbers()["limit_watts"]), (False, numbers()["burst_watts"])):
            gpu = sweep.LAUNCH.Gpu.of(chip | limits, sustained)
            expected = power.clock(numbers(), one, limit)
            self.assertAlmostEqual(gpu.clock(one.flop_per_cycle, one.bytes_per_cycle), expected, places=6)

    def test_tiles_that_are_not_known_do_not_count(self) -> None:
        self.assertEqual(power.tile_of("gemm-8192", "stock Triton, 128 × 64 × 32, 4 warps"), (128, 64))
        self.assertEqual(power.tile_of("forward-d128-16k", "stock Triton, 64 × 128, 4 warps"), (64, 0))
        self.assertEqual(power.tile_of("forward-d64-16k", "attention_forward_d64_m64.cuda"), (192, 0))
        self.assertIsNone(power.tile_of("gemm-8192", "cuBLAS"))


class Order(unittest.TestCase):
    def test_as_a_sweep_ranks(self) -> None:
        traffic = {"shared": 2, "global": 1, "common": 0, "flop": 10}
        kernels = {name: {"simulated": {"traffic": [traffic]}} for name in "abc"}
        options = {"a": {"ring-depth": 3}, "b": {"ring-depth": None}, "c": {"ring-depth": None}}
        times = {"a": 1.0, "b": 1.005, "c": 1.2}
        self.assertEqual(sweep.in_order(times, kernels, options), ["b", "a", "c"])


class Fidelity(unittest.TestCase):
    def test_programs_and_trips(self) -> None:
        rows = {row.name: row for row in fidelity.ROWS}
        square = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
        for name, example, tile, expected in (
            ("gemm-4096", "gemm_tma", square, ([32, 32], [64])),
            ("forward-d128-16k", "attention_forward", square, ([128, 16], [128])),
            # Program x has x whole blocks and the one on the diagonal.
            ("forward-causal-d128-16k", "attention_forward", square, ([128, 16], [63.5, 1])),
            ("backward-d128-16k", "attention_backward", {"BLOCK_M": 64, "BLOCK_N": 128}, ([128, 16], [256])),
        ):
            self.assertEqual(fidelity.amounts(example, tile, rows[name]), expected, name)

    def test_a_table_of_what_was_measured(self) -> None:
        times = {"burst": (1.1, 1.0), "sustained": (1.8, 2.0)}
        found = [
            {"row": "r", "kernel": "k", "kind": kind, "predicted": predicted, "measured": measured}
            for kind, (predicted, measured) in times.items()
        ]
        text = fidelity.table(found)
        self.assertIn("| r | k | 1.0000 | 1.1000 | +10.0 % | 2.0000 | 1.8000 | -10.0 % |", text)
        self.assertIn("sustained: 1 launches, median error 10.0 %, worst -10.0 %", text)


if __name__ == "__main__":
    unittest.main()
