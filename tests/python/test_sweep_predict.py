"""Times of launches that `twill_gpu.sweep` predicts without a GPU."""

import pytest
import twill_gpu
from sweeps import EXAMPLES
from twill_gpu.errors import InputError
from twill_gpu.sweeping.predicting import LAUNCH_MILLISECONDS, amounts_of, fastest_first, milliseconds

SIMULATED = {"iterations": [100, 50], "tile": 1000, "start": 500}
PERSISTENT = {"kind": "persistent", "programs_per_cta": [1, 1, 1], "ctas_per_sm": 1}


def cycles(programs, trips, grid=PERSISTENT, **more):
    """Of a GPU with four multiprocessors."""
    time = milliseconds({"simulated": SIMULATED | more, "grid": grid}, (programs, trips), 4, 1000.0)
    return round((time - LAUNCH_MILLISECONDS) * 1e6)


def test_tiles_come_in_waves():
    assert cycles(4, [10, 2]) == 500 + 1000 + 1100
    assert cycles(5, [10, 2]) == 500 + 2 * 2100
    assert cycles(8, [10, 2]) == 500 + 2 * 2100
    assert cycles(8, [10, 2], PERSISTENT | {"programs_per_cta": [2, 1, 1]}) == 2600
    # Without CTAs that go from tile to tile, each begins anew.
    assert cycles(8, [10, 2], PERSISTENT | {"kind": "one_per_program"}) == 2 * 2600


def test_machine_code_is_preferred():
    assert cycles(4, [10, 2], assembled=[200, 50]) == 500 + 1000 + 2100


def test_loops_and_trip_counts_must_agree():
    with pytest.raises(InputError, match="2 loops, and there are 1 trip counts"):
        cycles(4, [10])
    assert milliseconds({"simulated": None, "grid": PERSISTENT}, (4, [10]), 4, 1000.0) is None


def test_amounts_by_expressions():
    amounts = amounts_of("3 * (100 / BLOCK_M) - 1", "100 // BLOCK_N, 7")
    assert amounts({"BLOCK_M": 64, "BLOCK_N": 32}) == (5, [3, 7])
    for text in ("BLOCK_M +", "__import__('os')", "BLOCK_M ** 9", "1.5", "'a'", "(" * 10_000, "a.b", "[1]"):
        with pytest.raises(InputError):
            amounts_of(text, "1")({"BLOCK_M": 64})
    with pytest.raises(InputError, match="BLOCK_K is no constexpr"):
        amounts_of("BLOCK_K", "1")({"BLOCK_M": 64})
    with pytest.raises(InputError, match="divides by 0"):
        amounts_of("1 / (BLOCK_M - 64)", "1")({"BLOCK_M": 64})


def test_what_moves_less_comes_first_among_those_that_take_as_long():
    times = {"a": 1.0, "b": 1.009, "c": 1.011, "d": 1.02}
    moved = {"a": 3, "b": 2, "c": 1, "d": 0}
    assert fastest_first(list(times), times.get, moved.get, lambda _: 1) == ["b", "a", "d", "c"]
    longer = {"a": 1, "b": 1, "c": 1, "d": 2}
    assert fastest_first(list(times), times.get, lambda _: 0, longer.get) == ["a", "b", "d", "c"]


def test_a_sweep_ranks_by_time():
    files = [EXAMPLES / "gemm_tma.ttir", EXAMPLES / "gemm_tma_n256.ttir"]
    # A wave of 132 tiles of 128 × 128 is one, a wave of 128 × 256 half of one.
    found = twill_gpu.sweep(
        files,
        machine="h200",
        solve=2,
        options={"emit": "cuda", "no_assemble": True},
        amounts=lambda _: (132, [64]),
        progress=False,
    )
    assert [row.predicted_milliseconds is not None for row in found.rows] == [True, True]
    first, second = found.rows
    assert first.predicted_milliseconds < second.predicted_milliseconds and first.ii < second.ii
    assert "predicted ms" in str(found) and found.best is first
