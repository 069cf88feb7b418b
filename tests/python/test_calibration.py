"""Calibration without a GPU: fits, figures and machine files of known numbers, kernels as NVRTC compiles them."""

import importlib.util
import json
import random

import pytest
import twill_gpu
from twill_gpu import TwillError
from twill_gpu.calibration import calibrating, command, machine_file, mma, passes, synchronization
from twill_gpu.calibration.benchmark import SERIES, STEPS, STRIDE, Launch, Samples
from twill_gpu.calibration.fits import Measured, latest, line, pooled

LAUNCHES = 21


def repeated(value, noise=0.0, seed=1):
    """A number as launches give it."""
    chosen = random.Random(seed)
    return Measured(tuple(value + noise * chosen.uniform(-1, 1) for _ in range(LAUNCHES)))


class TestFits:
    def test_a_line_without_noise_is_found_exactly(self):
        over = line([(x, repeated(43 + 31.25 * x)) for x in (2, 4, 8, 16, 32)])
        assert over.intercept.value == pytest.approx(43) and over.slope.value == pytest.approx(31.25)
        assert over.residual == pytest.approx(0, abs=1e-12) and over.slope.spread == pytest.approx(0, abs=1e-9)
        assert over.at(10).value == pytest.approx(355.5)

    def test_noise_is_spread(self):
        over = line([(x, repeated(50 + 8 * x, noise=4, seed=x)) for x in range(8, 48, 8)])
        assert over.slope.value == pytest.approx(8, rel=0.02)
        assert 0 < over.slope.relative_spread < 0.05

    def test_disturbed_launches_do_not_move_a_number(self):
        launches = [100.0] * LAUNCHES
        launches[3] = launches[11] = 1e6
        assert Measured(tuple(launches)).value == 100 and Measured(tuple(launches)).spread == 0
        points = [
            (x, Measured(tuple(10 * x + (1e5 if number in (3, 11) else 0) for number in range(LAUNCHES))))
            for x in (1, 2)
        ]
        assert line(points).slope.value == pytest.approx(10)

    def test_what_is_no_line_has_a_residual(self):
        bent = line([(x, repeated(max(64, x))) for x in (16, 32, 64, 128)])
        assert bent.residual > 0.1
        assert bent.points == ((16, 64), (32, 64), (64, 64), (128, 128))

    def test_differences_are_of_the_same_launch(self):
        drifting = Measured(tuple(float(number) for number in range(LAUNCHES)))
        more = drifting + Measured((7.0,) * LAUNCHES)
        assert (more - drifting).value == 7 and (more - drifting).spread == 0
        assert latest([drifting, more]) == more
        assert len(pooled([drifting, more]).launches) == 2 * LAUNCHES
        assert Measured((4.0, 4.0, 4.0)).reciprocal(512).value == 128


class Model:
    """Samples of a GPU whose cycles are known: those of a round, by kernel, series and launch."""

    def __init__(self, benchmark, cycles, noise=0.0):
        self.samples = Samples(multiprocessors=2)
        chosen = random.Random(5)
        for program in benchmark.programs():
            for kernel in program.kernels:
                for launch in kernel.launches:
                    for _ in range(LAUNCHES):
                        numbers = [0] * (SERIES * kernel.series * (launch.ctas or 2))
                        for at in range(0, len(numbers), SERIES):
                            series = at // SERIES % kernel.series
                            for group in range(launch.groups):
                                for step in range(STEPS):
                                    exact = 40 + STRIDE * (step + 1) * cycles(kernel.name, series, launch)
                                    moved = exact + noise * chosen.uniform(-1, 1)
                                    numbers[at + group * STEPS + step] = moved
                        self.samples.numbers.setdefault((kernel.name, launch), []).append(numbers)
        self.figures = {one.name: one for one in benchmark.figures(self.samples)}

    def value(self, name):
        return self.figures[name].value


class TestFigures:
    def test_passes_are_what_two_more_of_them_take(self):
        def cycles(kernel, series, launch):
            columns = int(kernel.rsplit("_", 1)[1])
            fixed = 58 if "row" in kernel else 0
            return 31 + (4 if series else 2) * launch.groups * (fixed + 64 * columns / 128)

        found = Model(passes.PASSES_BENCHMARK, cycles, noise=1)
        assert found.value("passes.fma.64x128") == pytest.approx(64, rel=0.02)
        assert found.value("passes.fma.64x128.3_groups") == pytest.approx(192, rel=0.02)
        assert found.value("passes.fma.rate.2_groups") == pytest.approx(128, rel=0.02)
        assert found.value("passes.row_maximum.64x64") == pytest.approx(90, rel=0.02)
        fixed, _, slope, *_ = found.figures["passes.row_maximum.rate"].fit.split()
        assert float(fixed) == pytest.approx(58, rel=0.02) and float(slope) == pytest.approx(1 / 128, rel=0.02)

    def test_synchronization(self):
        taken = {("barrier", 0): 4 * 16, ("barrier", 1): 4 * 48, ("handoff", 0): 4 * 77, ("handoff", 2): 4 * 30}
        found = Model(synchronization.SYNCHRONIZATION, lambda kernel, series, launch: taken.get((kernel, series), 100))
        names = ("arrive", "wait", "handoff", "named_barrier")
        assert [found.value(f"synchronization.{name}") for name in names] == pytest.approx([16, 48, 77, 30])

    def test_mmas(self):
        found = Model(mma.MMAS, tensor_core)
        assert found.value("mma.f16.m64n128k16.shared.interval") == pytest.approx(64)
        assert found.value("mma.f16.m64n128k16.registers.interval.2_groups") == pytest.approx(64)
        assert found.value("mma.f16.m64n128k16.shared.wait_latency") == pytest.approx(54)
        assert found.value("mma.f16.rate") == pytest.approx(4096)
        assert found.value("mma.e4m3.rate") == pytest.approx(8192)
        # 16, 32 columns, whose operands take longer to read than the MMA takes.
        assert found.value("mma.shared_bytes_per_cycle") == pytest.approx(128)

    @pytest.mark.parametrize("order", ["in_order", "interleaved"])
    def test_who_is_served_first(self, order):
        figures = {}
        for delay in mma.DELAYS:
            left = max(0, 1125 - delay)
            what = f"mma.sharing.16_and_1.after_{delay}"
            takes = 137 + (left if order == "in_order" else min(64, left))
            for name, value in (("first_done", 1125), ("second_takes", takes)):
                figures[f"{what}.{name}"] = calibrating.Figure(f"{what}.{name}", value, "cycles", 0)
        assert machine_file.sharing(figures) == order
        assert machine_file.sharing({}) is None


def tensor_core(kernel, series, launch):
    """Chains on a tensor core that takes N / 2 cycles an instruction, and reads 128 bytes a cycle."""
    if not kernel.startswith("chains"):
        return 1000 + series
    _, kind, columns, left = kernel.split("_")
    operands = (64 * (left == "shared") + int(columns)) * 32
    interval = max(16, int(columns) / 2, operands / 128)
    count, times = ((2, 2), (4, 2), (8, 2), (16, 2), (4, 4))[series]
    waiting = 54 if launch == Launch() else 0
    return times * (launch.groups * count * interval + waiting) + 9


def calibration(figures):
    where = ("h200", "NVIDIA H200", "580.1", "2026-11-22", 1980.0, LAUNCHES, 1.5)
    return calibrating.Calibration(*where, tuple(figures.values()))


class TestMachineFile:
    def test_it_is_a_machine(self, tmp_path):
        figures = dict(Model(mma.MMAS, tensor_core).figures)
        figures |= {
            name: calibrating.Figure(name, 10.4, "cycles", 0.01, 0.02, "3 + 4 * x")
            for name in machine_file.FIGURES - set(figures)
        }
        found = calibration(figures)
        text = machine_file.text(found, "mine")
        assert "shared_bytes_per_cycle = { measured = 128, source" in text
        (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
        machine = twill_gpu.Machine(tmp_path / "mine.toml")
        numbers, before = machine.numbers, twill_gpu.Machine("h200").numbers
        for entry in machine_file.ENTRIES:
            key = f"{entry.table}.{entry.key}"
            assert numbers[key].provenance == "measured", key
        wait = numbers["tensor_core.wait_latency"]
        assert wait.value == 54
        assert wait.source == (
            "twill machine calibrate, 2026-11-22, NVIDIA H200, driver 580.1, SM clock 1980 MHz; "
            "mma.f16.m64n128k16.shared.wait_latency 54 cycles; spread 0.0 %"
        )
        assert numbers["costs.fma.elements_per_cycle"].value == pytest.approx(8192 / 10.4, abs=0.1)
        assert "fit 3 + 4 * x, residual 2.0 %; spread 1.0 %" in numbers["latency.handoff"].source
        assert 'sharing = "' in machine.text
        assert numbers["chip.l2_mb"] == before["chip.l2_mb"]

    def test_what_was_not_measured_is_inherited(self):
        figures = Model(synchronization.SYNCHRONIZATION, lambda *_: 80).figures
        text = machine_file.text(calibration(figures), "mine")
        tables = [one for one in text.splitlines() if one.startswith("[")]
        assert tables == ["[synchronization]"] and "sharing" not in text
        assert twill_gpu.Machine.from_text(text).numbers["synchronization.arrive"].value == 20


def fake_calibration(monkeypatch, *waits):
    """Calibrations that find these waits, one after the other."""

    def calibrate_times(times, machine, only, launches, say):
        assert times == len(waits)
        where = (machine, "NVIDIA H200", "580.1", "2026-11-22", 1980.0, launches, 1.5)
        figures = [[calibrating.Figure("synchronization.wait", wait, "cycles", 0.01)] for wait in waits]
        return [calibrating.Calibration(*where, tuple(each)) for each in figures]

    monkeypatch.setattr(command, "calibrate_times", calibrate_times)


class TestCommand:
    def test_table_and_file(self, monkeypatch, tmp_path, capsys):
        fake_calibration(monkeypatch, 48.25)
        path = tmp_path / "mine.toml"
        assert command.main(["-o", str(path), "--name", "mine"]) == 0
        out = capsys.readouterr().out
        assert "NVIDIA H200 as h200: 1 figures" in out and "synchronization.wait  48.25  cycles  1.0 %" in out
        assert twill_gpu.Machine(path).numbers["synchronization.wait"].value == 48

    def test_json(self, monkeypatch, capsys):
        fake_calibration(monkeypatch, 48.25, 48.5)
        assert command.main(["--format", "json", "--repeat-check"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert said["figures"][0]["value"] == 48.25 and said["clock_mhz"] == 1980
        assert said["apart"] == {"synchronization.wait": pytest.approx(0.25 / 48.25)}

    def test_two_runs_that_do_not_agree(self, monkeypatch, capsys):
        fake_calibration(monkeypatch, 48.0, 52.0)
        assert command.main(["--repeat-check"]) == 1
        assert "synchronization.wait: 8.3 % apart, and in the machine file" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (["--only", "pases"], "there is no benchmark pases; there are mma, passes,"),
            (["--machine", "a100"], "only sm_90a is calibrated, and a100 is sm_80"),
            (["--machine", "h20"], "there is no machine `h20`"),
        ],
    )
    def test_what_cannot_be_calibrated(self, words, says, capsys):
        assert command.main(words) == 1
        assert says in capsys.readouterr().err

    @pytest.mark.parametrize("words", [["--launches", "1"], ["--launches", "many"], ["--fromat", "json"]])
    def test_wrong_words_are_errors(self, words, capsys):
        with pytest.raises(SystemExit) as ended:
            command.main(words)
        assert ended.value.code == 1 and "twill machine calibrate --help says more" in capsys.readouterr().err

    def test_without_a_gpu_the_way_out_is_said(self, monkeypatch):
        from twill_gpu.calibration import device

        class NoDriver:
            def __getattr__(self, name):
                raise OSError("libcuda.so.1: cannot open shared object file")

        monkeypatch.setattr(device, "cuda_driver", NoDriver)
        with pytest.raises(TwillError, match="calibrating needs a GPU, and there is none: libcuda"):
            device.Gpu()


def has_nvrtc():
    try:
        return importlib.util.find_spec("cuda.bindings.nvrtc") is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.skipif(not has_nvrtc(), reason="needs cuda-bindings and NVRTC")
class TestKernels:
    QUICK = (
        "pass_fma",
        "pass_softmax",
        "chains_e4m3_shared",
        "shared_memory",
        "handoffs",
        "copies",
        "synchronization",
    )

    def test_they_compile_to_what_they_should(self):
        from twill_gpu.calibration import building

        programs = {program.name: program for one in calibrating.BENCHMARKS for program in one.programs()}
        codes = building.build([programs[name] for name in self.QUICK], calibrating.ARCHITECTURE)
        assert all(code[:4] == b"\x7fELF" for code in codes)
        for name, code in zip(self.QUICK, codes):
            assert all(kernel.name.encode() in code for kernel in programs[name].kernels), name

    def test_what_does_not_compile_is_an_error_with_its_line(self):
        from twill_gpu.calibration import building
        from twill_gpu.calibration.benchmark import Kernel, Program

        broken = Program("broken", "passes.cuh", (Kernel("broken", "time_nothing(g)"),))
        with pytest.raises(TwillError, match=r"NVRTC refused broken.cu:\nbroken.cu\(\d+\): error: "):
            building.build([broken], calibrating.ARCHITECTURE)

    def test_mmas_that_ptxas_puts_one_after_another_are_an_error(self):
        from twill_gpu.calibration import building
        from twill_gpu.calibration.benchmark import Kernel, Program
        from twill_gpu.calibration.wgmma import struct, struct_name

        # Three groups leave 168 registers, and the result alone is 128 of them.
        one = struct_name("f16", 256, False)
        call = "scores<256> a, b; fetch(a, g); fetch(b, g); fragments left(g); "
        call += f"chain<{one}, 2>(a, left); chain<{one}, 2>(b, left); done(a); done(b); keep(g, sum_of(a) + sum_of(b))"
        kernel = Kernel("crowded", call)
        crowded = Program("crowded", "mma.cuh", (kernel,), struct("f16", 256, False))
        with pytest.raises(TwillError, match="crowded.cu would measure something else than it should"):
            building.build([crowded], calibrating.ARCHITECTURE)
