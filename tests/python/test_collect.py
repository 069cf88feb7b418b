"""`twill collect` without a GPU: what is recorded of a program's kernels, by which process, and what is not."""

import json
import subprocess
import sys
from pathlib import Path

import gemm_tma as gemm
import pytest
import triton
import triton.language as tl
import twill_gpu
from conftest import ROOT
from test_inductor import arguments, heuristics, made  # noqa: F401
from test_jit import TILES, gemm_arguments
from torch_clock import Clock
from twill_gpu import collecting
from twill_gpu.collecting import folder
from twill_gpu.collecting.command import main
from twill_gpu.collecting.folder import Launches, Record
from twill_gpu.collecting.ranking import rank
from twill_gpu.collecting.recorder import TIMED
from twill_gpu.collecting.trips import trip_counts
from twill_gpu.sweeping.command import main as sweep


@triton.jit
def copies(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


@pytest.fixture
def gpu(fake_gpu):
    """A fake GPU on which a launch takes as many milliseconds as it has warps."""
    torch, clock = sys.modules["torch"], Clock()
    torch.cuda.Event = lambda enable_timing: clock.event()
    fake_gpu.capturing = False
    torch.cuda.is_current_stream_capturing = lambda: fake_gpu.capturing
    fake_gpu.clock = clock

    class Timed(list):
        def append(self, one):
            super().append(one)
            clock.run(float(one.num_warps))
            clock.synchronize()

    fake_gpu.launched = Timed()
    yield fake_gpu
    collecting.stop()


def launch_gemm(kernel, tensor, k=256, grid=(4, 3), **options):
    kernel[grid](*gemm_arguments(tensor, k), **TILES, **options)


def launch_copy(tensor, n=64):
    copies[(1,)](tensor([64], "float32", address=1 << 20), tensor([64], "float32", address=2 << 20), n, BLOCK=64)


def merged(place):
    collecting.stop()
    folder.merge(place)
    return {one.record.kernel: one for one in collecting.read(place)}


def test_kernels_of_torch_compile(gpu, tensor, heuristics, made, tmp_path):  # noqa: F811
    triton_cache, place = tmp_path, tmp_path / "kernels"
    for is_static in (False, True):
        collecting.record(place)
        results = heuristics.StaticTritonCompileResult, heuristics.TritonCompileResult
        result = results[0](made, triton_cache) if is_static else results[1](made)
        launcher = result.make_launcher()
        tuner = heuristics.CachingAutotuner()
        tuner.bench(launcher, *arguments(tensor))
        for _ in range(5):
            launcher(*arguments(tensor), stream=7)
        collecting.stop()
        launcher(*arguments(tensor), stream=7)
    found = merged(place)
    (one,) = found.values()
    assert (one.record.kernel, one.record.file, one.record.constexprs) == ("gemm_tma", "torch.compile", TILES)
    assert one.record.signature["K"] == "i32" and one.record.target == "cuda:90" and "tt.dot" in one.ttir.read_text()
    (launches,) = one.record.launches
    assert (launches.grid, launches.count, launches.milliseconds) == ([4, 3, 1], 10, 8.0), "neither a comparison's nor what came after"
    assert launches.arguments["K"] == 256 and launches.options["num_warps"] == 8


class TestRecorded:
    def test_ttir_signature_constexprs_and_launches(self, gpu, tensor, tmp_path):
        collecting.record(tmp_path)
        kernel = triton.jit(gemm.gemm_tma.fn)
        for _ in range(5):
            launch_gemm(kernel, tensor, num_warps=8)
        launch_gemm(kernel, tensor, k=512, num_warps=8)
        launch_gemm(kernel, tensor, grid=lambda given: (given["K"] // 64, 3), num_warps=8)
        launch_copy(tensor)
        assert len(gpu.launched) == 8, "each is launched once"
        found = merged(tmp_path)
        one = found["gemm_tma"]
        assert "tt.dot" in one.ttir.read_text() and one.ttir.name == f"gemm_tma-{one.ttir.stem[-12:]}.ttir"
        assert one.record.constexprs == TILES and one.record.target == "cuda:90"
        assert one.record.signature["K"] == "i32" and one.record.signature["a_desc"].startswith("tensordesc<fp16")
        assert one.record.file.endswith("gemm_tma.py") and one.record.line > 1
        launches = {(*each.grid, each.arguments["K"]): each for each in one.record.launches}
        assert {key: each.count for key, each in launches.items()} == {(4, 3, 256): 6, (4, 3, 512): 1}
        assert launches[4, 3, 256].options["num_warps"] == 8 and launches[4, 3, 256].milliseconds == 8.0
        assert found["copies"].record.count == 1 and found["copies"].record.launches[0].arguments == {"n": 64}

    def test_the_ttir_is_one_that_twill_reads(self, gpu, tensor, tmp_path):
        collecting.record(tmp_path)
        launch_gemm(triton.jit(gemm.gemm_tma.fn), tensor)
        assert twill_gpu.fit(str(merged(tmp_path)["gemm_tma"].ttir), machine="h200").fits

    def test_those_that_take_most_time_are_first(self, gpu, tensor, tmp_path):
        collecting.record(tmp_path)
        for _ in range(3):
            launch_copy(tensor)
        kernel = triton.jit(gemm.gemm_tma.fn)
        for _ in range(40):
            launch_gemm(kernel, tensor, num_warps=8)
        assert list(merged(tmp_path)) == ["gemm_tma", "copies"]

    def test_few_of_many_launches_are_timed(self, gpu, tensor, tmp_path):
        collecting.record(tmp_path)
        kernel = triton.jit(gemm.gemm_tma.fn)
        for _ in range(200):
            launch_gemm(kernel, tensor)
        (one,) = merged(tmp_path)["gemm_tma"].record.launches
        assert one.count == 200 and TIMED - 2 <= one.samples <= TIMED + 5

    def test_launches_into_graphs_are_not_timed(self, gpu, tensor, tmp_path):
        collecting.record(tmp_path)
        gpu.capturing = True
        for _ in range(4):
            launch_copy(tensor)
        gpu.capturing = False
        (one,) = merged(tmp_path)["copies"].record.launches
        assert (one.count, one.samples, one.milliseconds) == (4, 0, None)

    def test_a_tuning_is_not_the_programs(self, gpu, tensor, tmp_path):
        collecting.record(tmp_path)
        configs = [triton.Config(TILES, num_warps=8, num_stages=stages) for stages in (2, 3)]
        kernel = triton.autotune(configs, key=["K"])(triton.jit(gemm.gemm_tma.fn))
        kernel._do_bench = lambda call, quantiles: (call(), [float(len(gpu.launched))] * 3)[1]
        kernel[(4, 3)](*gemm_arguments(tensor))
        assert len(gpu.launched) == 3
        (one,) = merged(tmp_path)["gemm_tma"].record.launches
        assert (one.count, one.options["num_stages"]) == (1, 2), "the winner's own launch"

    def test_options_that_leave_the_ttir_alone_are_classes_of_one_kernel(self, gpu, tensor, tmp_path):
        collecting.record(tmp_path)
        kernel = triton.jit(gemm.gemm_tma.fn)
        for warps in (4, 8, 8):
            launch_gemm(kernel, tensor, num_warps=warps)
        launches = merged(tmp_path)["gemm_tma"].record.launches
        assert [(one.options["num_warps"], one.count) for one in launches] == [(4, 1), (8, 2)]

    def test_what_is_only_compiled_is_recorded(self, gpu, tensor, tmp_path):
        collecting.record(tmp_path)
        copies.warmup(tensor([64], "float32"), tensor([64], "float32"), 64, BLOCK=64, grid=(1,))
        assert merged(tmp_path)["copies"].record.launches == []

    def test_stopped_is_as_before(self, gpu, tensor, tmp_path):
        before = triton.runtime.jit.JITFunction.run
        collecting.record(tmp_path)
        assert triton.runtime.jit.JITFunction.run is not before
        collecting.stop()
        assert triton.runtime.jit.JITFunction.run is before
        launch_copy(tensor)
        with pytest.raises(twill_gpu.InputError, match="no kernel of twill collect"):
            collecting.read(tmp_path)

    def test_what_cannot_be_recorded_is_launched_and_named_once(self, gpu, tensor, tmp_path, monkeypatch, capsys):
        collecting.record(tmp_path)
        monkeypatch.setattr(folder, "write_ttir", None)
        kernel = triton.jit(gemm.gemm_tma.fn)
        launch_gemm(kernel, tensor)
        launch_gemm(kernel, tensor)
        collecting.stop()
        assert len(gpu.launched) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("twill: not all launches are recorded: gemm_tma: TypeError")

    def test_a_folder_that_cannot_be_written(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(twill_gpu.InputError, match="cannot write"):
            collecting.record(tmp_path / "file")


class TestFolder:
    RECORD = Record("f", "f.py", 3, "cuda:90", {"x": "*fp16"}, {"B": 64})

    def launches(self, count, milliseconds, samples=4):
        return Launches([2], {"n": 5}, {"num_warps": 4}, count, samples, milliseconds)

    def test_parts_of_processes_and_of_runs_are_added_up(self, tmp_path):
        ttir = folder.write_ttir(tmp_path, "f", "module {}")
        for process, milliseconds in (("1", 1.0), ("2", 3.0)):
            folder.write_part(ttir, process, self.RECORD, [self.launches(10, milliseconds)])
            # What a process writes again stands for what it wrote before.
            folder.write_part(ttir, process, self.RECORD, [self.launches(20, milliseconds)])
        folder.merge(tmp_path)
        folder.write_part(ttir, "3", self.RECORD, [self.launches(5, None, 0)])
        folder.merge(tmp_path)
        folder.merge(tmp_path)
        (found,) = folder.read(tmp_path)
        (one,) = found.record.launches
        assert (one.count, one.samples, one.milliseconds) == (45, 8, 2.0)
        assert sorted(file.suffix for file in tmp_path.iterdir()) == [".json", ".ttir"]

    def test_places_in_sources_tell_nothing_apart(self, tmp_path):
        texts = [f'#loc = loc("{path}/f.py":3:0)\nmodule {{\n  %0 = f() : i32 loc("x"(#loc)) loc(#loc)\n}}\n' for path in ("a", "b")]
        assert len({folder.write_ttir(tmp_path, "f", text) for text in texts}) == 1
        assert folder.write_ttir(tmp_path, "f", texts[0].replace("f()", "g()")) != folder.write_ttir(tmp_path, "f", texts[0])

    @pytest.mark.parametrize("text", ["{", "[]", '{"format": "other", "version": 1}', '{"format": "twill-collected", "version": 1}'])
    def test_a_record_that_is_none(self, text):
        with pytest.raises(twill_gpu.InputError, match="x.json: it is no record of twill collect"):
            Record.from_json(text, "x.json")

    def test_somebody_elses_folder_is_refused(self, tmp_path, capsys):
        (tmp_path / "notes.txt").write_text("")
        assert main(["-o", str(tmp_path), "--", sys.executable, "-c", "1 / 0"]) == 1
        assert "it holds notes.txt" in capsys.readouterr().err


def example(name):
    return (ROOT / "examples" / f"{name}.ttir").read_text()


class TestTrips:
    @pytest.mark.parametrize(
        ("kernel", "arguments", "grid", "counts"),
        [
            ("gemm_tma", {"K": 4096}, (8, 8), [64]),
            ("gemm_pointers", {"K": 1000, "M": 512, "N": 512}, (8,), [16]),
            ("attention_forward", {"length": 16384}, (128, 16), [128]),
            # Half of the keys in the mean, and the block on the diagonal.
            ("attention_forward_causal", {"length": 4096}, (32,), [15.5, 1]),
            ("gemm_tma", {}, (8, 8), None),
            ("fixtures/nested_loops", {"length": 64}, (1,), None),
            ("fixtures/in_order/while_loop", {}, (1,), None),
            ("fixtures/no_loop", {}, (1,), None),
        ],
    )
    def test_of_arguments_and_grid(self, kernel, arguments, grid, counts):
        assert trip_counts(example(kernel), arguments, grid) == counts


class TestRanking:
    def folder(self, tmp_path, **kernels):
        folder.prepare(tmp_path)
        for name, (kernel, launches) in kernels.items():
            ttir = folder.write_ttir(tmp_path, name, example(kernel))
            folder.write_part(ttir, "1", Record(name, "f.py", 3, "cuda:90", {}, {}), launches)
        folder.merge(tmp_path)
        return tmp_path

    def test_a_sweep_takes_the_folder(self, tmp_path, capsys):
        place = self.folder(tmp_path / "kernels", one=("gemm_tma", []), other=("gemm_tma_n256", []))
        assert sweep([str(place), "--solve", "0", "-q", "--format", "json"]) == 0
        out = capsys.readouterr().out
        assert "one-" in out and "other-" in out
        (tmp_path / "empty").mkdir()
        assert sweep([str(tmp_path / "empty")]) == 1 and "no .ttir" in capsys.readouterr().err

    def test_the_kernel_that_would_gain_most_is_first_and_reasons_are_said(self, tmp_path, capsys):
        def launches(milliseconds, **arguments):
            return [Launches([8, 8], arguments, {}, 10, 4, milliseconds)]

        place = self.folder(
            tmp_path,
            fast=("gemm_tma", launches(0.001, K=4096)),
            slow=("gemm_tma_n256", launches(2.0, K=4096)),
            unknown=("gemm_tma_m256", launches(9.0)),
            untimed=("swiglu", launches(None, K=4096)),
        )
        assert main(["--rank", "-o", str(place)]) == 0
        rows = [line.split("  (")[0].split() for line in capsys.readouterr().out.splitlines()]
        assert [row[0].rsplit("-", 1)[0] for row in rows[1:5]] == ["slow", "unknown", "fast", "untimed"]
        _, launched, measured, predicted, saved = rows[1]
        assert (launched, measured) == ("10", "20.00") and 0 < float(predicted) < 20
        assert float(saved) == pytest.approx(20 - float(predicted), abs=0.011)
        assert rows[2][3:5] == ["-", "-"] and rows[3][4] == "0.00"
        found = {one.collected.record.kernel: one for one in rank(place)}
        assert "trip counts" in found["unknown"].reason and "no launch was timed" in found["untimed"].reason


PROGRAM = """
import os, sys
sys.path[:0] = {paths!r}
import triton
from conftest import FakeGpu
from test_launch import Tensor
triton.runtime.driver._active = FakeGpu()
from test_collect import copies, launch_copy
assert os.environ["TWILL"] == "0"
launch_copy(lambda shape, kind, address: Tensor(shape, kind, address=address))
sys.exit({code})
"""


class TestCommand:
    def collect(self, tmp_path, code=0, words=()):
        program = tmp_path / "app.py"
        paths = [str(ROOT / "tests" / place) for place in ("python", "runtime")] + [str(ROOT / "examples")]
        program.write_text(PROGRAM.format(paths=paths, code=code))
        command = [sys.executable, "-m", "twill_gpu.collecting", "-o", "found", *words, "--", sys.executable, str(program)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900)

    def test_a_program_and_its_exit_code(self, tmp_path):
        ran = self.collect(tmp_path, code=7)
        assert ran.returncode == 7, ran.stderr
        assert "the program ended with 7" in ran.stderr and "1 kernel in found" in ran.stderr
        record = json.loads(next((tmp_path / "found").glob("copies-*.json")).read_text())
        assert record["constexprs"] == {"BLOCK": 64} and record["launches"][0]["count"] == 1
        # The second run adds to it.
        assert self.collect(tmp_path).returncode == 0
        record = json.loads(next((tmp_path / "found").glob("copies-*.json")).read_text())
        assert record["launches"][0]["count"] == 2

    def test_what_cannot_be_run(self, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert main(["--"]) == 1 and "name the program after --" in capsys.readouterr().err
        assert main(["--", str(tmp_path / "absent")]) == 1 and "cannot run" in capsys.readouterr().err
        assert main(["--", sys.executable, "-c", ""]) == 1
        assert "no kernel of twill collect" in capsys.readouterr().err
        assert Path("kernels").is_dir()
