"""What bench.gpu.trace makes of buffers, without a GPU. Needs no torch."""

import contextlib
import io
import json
import struct
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

from bench.gpu import trace
from bench.gpu.kernel_folders import Generated

TRACE = {
    "parameter": "trace_buffer",
    "iterations": 4,
    "bytes": 64,
    "detail": "segments",
    "groups": [{"id": 1, "name": "compute_1"}],
    "timestamps": [
        {"id": 0, "loop": 0, "operation": "dot", "group": 1, "what": "issue"},
        {"id": 1, "loop": 0, "operation": "dot", "group": 1, "what": "completed"},
    ],
}


class Numbers:
    """A tensor, as far as it is read."""

    def __init__(self, numbers):
        self.numbers = numbers

    def cpu(self):
        return self

    def tolist(self):
        return self.numbers


class Recorded:
    """A kernel that ran."""

    def __init__(self, folder, numbers, error=1e-5):
        self.kernel, self.trace = Generated("gemm.traced", folder, "gemm_tma", {}), TRACE
        self.buffer, self.error, self.launches = Numbers(numbers), error, 0

    def once(self, reference):
        self.launches += 1
        return {"c": self.error}


class Traced(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name)
        kernel = {"name": "gemm_tma", "trace": TRACE, "schedule": {"stages": 1}}
        (self.folder / "kernel.json").write_text(json.dumps(kernel))
        limits = types.SimpleNamespace(LIMITS={"c": 5e-4})
        patched = mock.patch.dict(sys.modules, {"bench.gpu.problems": limits})
        patched.start()
        self.addCleanup(patched.stop)

    def record(self, launches, count=1):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            next_to_it = {"gpu": "H200", "date": "2026-01-31"}
            fine = trace.record(launches, {}, count, self.folder / "trace.bin", next_to_it)
        return fine, said.getvalue()

    def test_intervals_are_medians_without_the_first_iterations(self):
        numbers = [100, 150, 1100, 1150, 1600, 1650, 2104, 2150]
        self.assertEqual(trace.intervals(numbers, TRACE, 1), {0: 502})
        self.assertEqual(trace.intervals(numbers + [1, 1, 9, 9, 509, 1, 1009, 1], TRACE, 1), {0: 500})
        self.assertEqual(trace.intervals([0] * 8, TRACE, 1), {})

    def test_what_was_recorded_is_written_launch_by_launch(self):
        numbers = [100, 150, 1100, 1150, 1600, 1650, 2100, 2150]
        launches = Recorded(self.folder, numbers)
        fine, said = self.record(launches, count=2)
        self.assertTrue(fine)
        self.assertIn("500 cycles an iteration", said)
        self.assertEqual(launches.launches, trace.WARM_UP + 2)
        self.assertEqual(struct.unpack("<16q", (self.folder / "trace.bin").read_bytes()), tuple(numbers * 2))
        next_to_it = json.loads((self.folder / "trace.bin.json").read_text())
        self.assertEqual((next_to_it["gpu"], next_to_it["intervals"]), ("H200", {"0": 500}))

    def test_wrong_results_and_empty_buffers_fail(self):
        self.assertFalse(self.record(Recorded(self.folder, [1, 2, 3, 4, 5, 6, 7, 8], error=float("nan")))[0])
        fine, said = self.record(Recorded(self.folder, [0] * 8))
        self.assertFalse(fine)
        self.assertIn("NOTHING was recorded", said)

    def test_a_kernel_is_run_at_the_first_row_that_it_serves(self):
        kernel = Generated("gemm", self.folder, "gemm_tma", {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64})
        self.assertEqual(trace.row_of(kernel, None).name, "gemm-8192")
        with self.assertRaises(SystemExit):
            trace.row_of(kernel, "forward-d128-16k")


if __name__ == "__main__":
    unittest.main()
