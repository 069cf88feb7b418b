"""`measure` of a sweep, with a GPU that is not there: all is real up to the launch."""

import sys

import gemm_tma as gemm
import pytest
import twill_gpu
from sweeps import GEMM, plain
from twill_gpu.sweeping import measuring


class TestMeasured:
    """With a GPU that is not there: what is compiled and launched is real up to the launch."""

    ARGUMENTS = {"measure": 2, "solve": 2, **GEMM}

    @pytest.fixture
    def clock(self, monkeypatch, fake_gpu):
        """Launches of 128 columns take twice as long as others."""
        torch = sys.modules["torch"]
        torch.cuda.current_device = lambda: 0
        torch.cuda.is_available = lambda: True
        launched = fake_gpu.launched

        class Event:
            def __init__(self, enable_timing):
                pass

            def record(self):
                self.at = len(launched)

            def synchronize(self):
                pass

            def elapsed_time(self, other):
                return sum(1.0 if max(one.grid) == 4 else 2.0 for one in launched[self.at : other.at])

        torch.cuda.Event = Event
        return launched

    def arguments(self, tensor):
        from triton.tools.tensor_descriptor import TensorDescriptor

        def make(tile):
            matrices = (
                tensor([512, 256], address=1 << 20),
                tensor([512, 256], address=2 << 20),
                tensor([512, 512], address=3 << 20),
            )
            m, n, k = (tile[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
            blocks = [m, k], [n, k], [m, n]
            return [*map(TensorDescriptor.from_tensor, matrices, blocks), 256], (512 // m, 512 // n)

        return make

    def test_the_fastest_is_the_best(self, clock, tensor, tmp_path):
        tiles = {"BLOCK_M": [128], "BLOCK_N": [128, 256], "BLOCK_K": [64]}
        given = {**self.ARGUMENTS, "arguments": self.arguments(tensor), "state": tmp_path / "state"}
        found = twill_gpu.sweep(gemm.gemm_tma, tiles, **given)
        assert all(row.milliseconds is not None for row in found.rows) and found.best.milliseconds == min(
            row.milliseconds for row in found.rows
        )
        launches = len(clock)
        assert launches >= 2 * measuring.ROUNDS
        again = twill_gpu.sweep(gemm.gemm_tma, tiles, **given)
        assert len(clock) == launches and plain(again) == plain(found)

    def test_a_wrong_result_is_not_timed(self, clock, tensor):
        class Values(list):
            double = abs = max = lambda self: self

            def __sub__(self, other):
                return Values([abs(self[0] - other[0])])

            def item(self):
                return self[0]

        reference = lambda a, b, c, k: (Values([1.0]), Values([1.0 if c.block_shape[1] == 128 else 1.5]))
        tiles = {"BLOCK_M": [128], "BLOCK_N": [128, 256], "BLOCK_K": [64]}
        found = twill_gpu.sweep(
            gemm.gemm_tma, tiles, arguments=self.arguments(tensor), reference=reference, **self.ARGUMENTS
        )
        by_columns = {row.constexprs["BLOCK_N"]: row for row in found.rows}
        assert by_columns[128].error == 0 and by_columns[128].milliseconds is not None
        assert by_columns[256].milliseconds is None and "wrong" in by_columns[256].reason
        assert found.best is by_columns[128]
