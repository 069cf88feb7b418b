"""Times of launches that `twill_gpu.sweep` predicts without a GPU."""

import json
import math
import statistics
from dataclasses import replace

import pytest
import twill_gpu
from sweeps import EXAMPLES
from twill_gpu.errors import InputError
from twill_gpu.sweeping.amounts import amounts_of
from twill_gpu.sweeping.launch_time import LAUNCH_MILLISECONDS, Gpu, fastest_first, milliseconds

SIMULATED = {"iterations": [100, 50], "tile": 1000, "start": 500}
COUNTS = json.loads((EXAMPLES.parent / "tests" / "runtime" / "cta_counts.json").read_text())
"""The `ctas` of kernel.json, of a persistent kernel in linear order and of one in serpentine order."""
PERSISTENT = {"kind": "persistent", "cta_coarsening": [1, 1, 1], "ctas_per_sm": 1, "ctas": COUNTS["persistent"]}
SERPENTINE = PERSISTENT | {"ctas": COUNTS["serpentine"]}
ONE_PER_PROGRAM = {"kind": "one_per_program", "cta_coarsening": [1, 1, 1], "ctas_per_sm": 1}


FOUR = Gpu(multiprocessors=4, clock_mhz=1000.0)


def cycles(programs, trips, grid=PERSISTENT, gpu=FOUR, **more):
    """Nanoseconds of a GPU with four multiprocessors, cycles at 1 GHz."""
    time = milliseconds({"simulated": SIMULATED | more, "grid": grid}, (programs, trips), gpu)
    return round((time - LAUNCH_MILLISECONDS) * 1e6)


def test_tiles_come_in_waves():
    assert cycles(4, [10, 2]) == 500 + 1000 + 1100
    assert cycles(5, [10, 2]) == 500 + 2 * 2100
    assert cycles(8, [10, 2]) == 500 + 2 * 2100
    assert cycles(8, [10, 2], PERSISTENT | {"cta_coarsening": [2, 1, 1]}) == 2600
    # Without CTAs that go from tile to tile, each begins anew.
    assert cycles(8, [10, 2], ONE_PER_PROGRAM) == 2 * 2600
    # Serpentine order, where pairs of waves are whole swizzle groups of two columns: 4 × 2 tiles on four CTAs; 4 × 3 are not.
    assert cycles([4, 2], [10, 2], SERPENTINE) == 500 + 2 * 2100
    assert cycles([4, 3], [10, 2], SERPENTINE) == 3 * 2600
    # Three waves become four, so that there are pairs: 12 tiles on three CTAs.
    assert cycles([6, 2], [3, 0], SERPENTINE) == 500 + 4 * 1300


def test_machine_code_is_preferred():
    assert cycles(4, [10, 2], sass=[200, 50]) == 500 + 1000 + 2100


def test_loops_and_trip_counts_must_agree():
    with pytest.raises(ValueError, match="2 loops, and there are 1 trip counts"):
        cycles(4, [10])
    assert milliseconds({"simulated": None, "grid": PERSISTENT}, (4, [10]), FOUR) is None


def test_bytes_that_neighbours_do_not_share_bound_an_iteration():
    gpu = replace(FOUR, l2_bytes_per_cycle=10.0)

    def loop(amount, common):
        return [{"global": amount, "common": common, "flop": 1}, {"global": 0, "common": 0, "flop": 1}]

    plain = cycles(4, [10, 2])
    assert cycles(4, [10, 2], gpu=gpu, traffic=loop(1000, 0)) == plain  # As long as its work of 100 cycles.
    assert cycles(4, [10, 2], gpu=gpu, traffic=loop(1500, 0)) == plain + 10 * 50
    assert cycles(4, [10, 2], gpu=gpu, traffic=loop(1500, 500)) == plain
    assert cycles(4, [10, 2], traffic=loop(10**9, 0)) == plain


def test_the_clock_falls_until_power_is_at_the_limit():
    gpu = Gpu(4, 1000.0, watts=100.0, base_watts=20.0, tensor_pj_per_flop=2.0, l2_pj_per_byte=10.0)
    # 20 W and 2 pJ times 10^4 FLOP a cycle at 1 GHz, 20 W; and bytes, 60 W.
    assert gpu.clock(10_000, 0) == gpu.clock(0, 0) == gpu.clock(10_000, 6_000) == 1000.0
    for flop, moved, watts in ((90_000, 0, 200.0), (10_000, 16_000, 200.0), (90_000, 20_000, 400.0)):
        # Energy of an operation goes with the clock: what is left is the limit.
        assert watts * (gpu.clock(flop, moved) / 1000.0) ** 2 == pytest.approx(100.0)
    # The work of all multiprocessors counts, so half of them draw less.
    traffic = [{"global": 0, "common": 0, "flop": 10**7}, {"global": 0, "common": 0, "flop": 0}]
    busy, half = (cycles(count, [1000, 0], gpu=gpu, traffic=traffic) for count in (4, 2))
    at_full_clock = cycles(4, [1000, 0], traffic=traffic)
    watts = 20.0 + 2e-12 * 4 * 1000 * 10**7 / (at_full_clock * 1e-9)
    assert busy / at_full_clock == pytest.approx(math.sqrt(watts / 100.0), rel=1e-3)
    assert at_full_clock < half < busy


def test_numbers_of_machines():
    numbers = {key: number.value for key, number in twill_gpu.Machine("h200").numbers.items()}
    long, rested = Gpu.of(numbers), Gpu.of(numbers, sustained=False)
    assert (long.watts, rested.watts) == (numbers["power.limit_watts"], numbers["power.burst_watts"])
    assert replace(long, watts=0.0) == replace(rested, watts=0.0) and long.watts < rested.watts
    # GEMM with tiles of 128 × 256 that keep the tensor core busy, in MHz.
    for gpu, measured in ((long, 1274), (rested, 1490)):
        assert gpu.clock(513e3, 6.0e3) == pytest.approx(measured, rel=0.05)
    # A machine that says nothing of power has one clock.
    h100 = Gpu.of({key: number.value for key, number in twill_gpu.Machine("h100").numbers.items()})
    assert h100.clock(1e9, 1e9) == h100.clock_mhz == 1830 and h100.l2_bytes_per_cycle == math.inf


def test_amounts_by_expressions():
    amounts = amounts_of("3 * (100 / BLOCK_M) - 1, 16", "100 // BLOCK_N, 7")
    assert amounts({"BLOCK_M": 64, "BLOCK_N": 32}) == ([5, 16], [3, 7])
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
    nothing = dict.fromkeys(times, 0).get
    assert fastest_first(list(times), times.get, moved.get, nothing, nothing) == ["b", "a", "d", "c"]
    longer = {"a": 1, "b": 1, "c": 1, "d": 2}
    assert fastest_first(list(times), times.get, nothing, longer.get, nothing) == ["a", "b", "d", "c"]
    options = {"a": 2, "b": 1, "c": 1, "d": 0}
    assert fastest_first(list(times), times.get, nothing, nothing, options.get) == ["b", "a", "d", "c"]


def test_a_sweep_ranks_by_time():
    files = [EXAMPLES / "gemm_tma.ttir", EXAMPLES / "gemm_tma_n256.ttir"]
    # A wave of 132 tiles of 128 × 128 is one, a wave of 128 × 256 half of one.
    options = dict(machine="h200", solve=2, options={"emit": "cuda", "no_assemble": True}, progress=False)
    options["amounts"] = lambda _: (132, [64])
    found = twill_gpu.sweep(files, **options)
    assert [row.predicted_milliseconds is not None for row in found.rows] == [True, True]
    first, second = found.rows
    rested = twill_gpu.sweep(files, sustained=False, **options)
    assert all(b.predicted_milliseconds < a.predicted_milliseconds for a, b in zip(found.rows, rested.rows))
    assert first.predicted_milliseconds < second.predicted_milliseconds and first.ii < second.ii
    assert "predicted" in str(found) and found.best is first


def test_trip_counts_that_do_not_fit_are_an_error():
    with pytest.raises(InputError, match="1 loops, and there are 2 trip counts"):
        twill_gpu.sweep(
            EXAMPLES / "gemm_tma.ttir",
            machine="h200",
            options={"emit": "cuda", "no_assemble": True},
            amounts=lambda _: (132, [64, 64]),
            progress=False,
        )


LAUNCHES = json.loads((EXAMPLES.parent / "bench/results/launches.json").read_text())["rows"]
for _kernel in (kernel for row in LAUNCHES for kernel in row["kernels"].values()):
    # All are persistent, in linear order, which the file does not repeat.
    assert _kernel["grid"]["kind"] == "persistent"
    _kernel["grid"].setdefault("ctas", COUNTS["persistent"])


@pytest.mark.parametrize("row", LAUNCHES, ids=[row["row"] for row in LAUNCHES])
def test_launches_that_were_measured(row):
    """At least 30 configurations of a row: kernels as they were simulated, times as they were measured on an H200."""
    gpu = Gpu.of({key: number.value for key, number in twill_gpu.Machine("h200").numbers.items()}, sustained=False)
    names, measured = list(row["kernels"]), row["measured_ms"]
    amounts = {name: row["amounts"][name] for name in names}
    times = {name: milliseconds(row["kernels"][name], amounts[name], gpu) for name in names}

    def moved(name):
        (traffic,) = row["kernels"][name]["simulated"]["traffic"]
        return (traffic["shared"] + traffic["global"]) / traffic["flop"]

    def flop(name):
        return row["kernels"][name]["simulated"]["traffic"][0]["flop"]

    first = fastest_first(names, times.get, moved, flop, lambda name: row["options"][name])[0]
    assert measured[first] <= 1.03 * min(measured.values())
    places = [sorted(found.values()) for found in (times, measured)]
    ranks = ([order.index(found[name]) for name in names] for order, found in zip(places, (times, measured)))
    assert statistics.correlation(*ranks) >= 0.85
    errors = [abs(times[name] / measured[name] - 1) for name in names]
    assert statistics.median(errors) < 0.06
    # A clock that does not fall under load is 10 to 28 % off.
    plain = replace(gpu, clock_mhz=1980.0, watts=math.inf, l2_bytes_per_cycle=math.inf)
    at_once = [abs(milliseconds(row["kernels"][name], amounts[name], plain) / measured[name] - 1) for name in names]
    assert statistics.median(at_once) > 1.3 * statistics.median(errors)
