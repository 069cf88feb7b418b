"""Twill under kernels that nobody changed, without a GPU: who launches what, in this process and in the next."""

import copy
import dataclasses
import functools
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import Future

import gemm_pointers
import gemm_tma as gemm
import pytest
import triton
import triton.language as tl
import twill_gpu
from test_jit import TILES, gemm_arguments
from torch_clock import Clock
from twill_gpu import activation, backend
from twill_gpu.activation import forms, launches, specialisation, workers
from twill_gpu.activation.contested import Contested
from twill_gpu.activation.records import Records, digest_of
from twill_gpu.activation.settings import Mode, Settings
from twill_gpu.activation.sources import may_multiply
from twill_gpu.activation.unfinished import Unfinished
from twill_gpu.contest import FEW, MULTISTAGE, ONE_STAGE, OWN, SAMPLES, STOCK, TWILL
from twill_gpu.scheduled import ScheduledKernel

TRIALS = 2 * SAMPLES + 2


@triton.jit
def copies(x_ptr, y_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at))


@triton.jit
def multiplies(a, b):
    return tl.dot(a, b)


@triton.jit
def calls_one_that_multiplies(a, b):
    return multiplies(a, b)


@triton.jit
def calls_a_parameter(a, f: tl.constexpr):
    return f(a)


@pytest.fixture
def gpu(fake_gpu, monkeypatch, tmp_path, tmp_path_factory, request):
    """A fake GPU with a clock: Twill's kernels take 2 ms and stock Triton's 3 unless a test says otherwise."""
    torch, clock = sys.modules["torch"], Clock()
    torch.cuda.Event = lambda enable_timing: clock.event()
    fake_gpu.capturing = False
    torch.cuda.is_current_stream_capturing = lambda: fake_gpu.capturing
    fake_gpu.clock, fake_gpu.milliseconds = clock, {8: 3.0}
    append = fake_gpu.launched.append

    class Timed(list):
        def append(self, one):
            super().append(one)
            # Stock Triton is asked for 8 warps here; ours have warps of their own.
            clock.run(fake_gpu.milliseconds.get(one.num_warps, 2.0))
            clock.synchronize()

    del append
    fake_gpu.launched = Timed()
    cache = tmp_path / "cache"
    monkeypatch.setenv("TWILL_CACHE", str(cache))
    # Compiled in the background too: tests of that have them.
    monkeypatch.setattr(activation, "install", functools.partial(activation.install, configurations=False))
    # What NVRTC compiles takes its time.
    monkeypatch.setattr(forms, "has_nvrtc", lambda: False)
    # Launches on copies are tested on their own.
    with_settings = activation.install_with
    monkeypatch.setattr(activation, "install_with", lambda one: with_settings(dataclasses.replace(one, alternates=True)))
    module = request.module.__name__
    if request.node.originalname not in COLD and module in _made:
        shutil.copytree(_made[module] / KERNELS, cache / KERNELS)
    yield fake_gpu
    activation.uninstall()
    if module not in _made and (cache / KERNELS / "kernel").is_dir():
        _made[module] = tmp_path_factory.mktemp("made")
        shutil.copytree(cache / KERNELS, _made[module] / KERNELS)


COLD = {
    "test_background_then_alternation_then_the_faster_and_a_second_process_starts_settled",
    "test_deterministic_programs_keep_to_what_is_settled",
}
"""Tests that begin without a kernel."""
KERNELS = "twill-cache-v1"
_made = {}
"""What the first test of a module has made is there for its others."""
"""A cache with the kernel that the first test had made by a background process: most others begin with it."""


def launch(kernel, tensor, count=1):
    """The sides of launches of a GEMM."""
    for _ in range(count):
        kernel[(4, 3)](*gemm_arguments(tensor), **TILES, num_warps=8)


def launch_pointers(tensor, count, kernel=None):
    """Launches of a GEMM through pointers, of which Twill has two kernels."""
    kernel = kernel or triton.jit(gemm_pointers.gemm_pointers.fn)
    shapes = [[512, 256], [256, 384], [512, 384]]
    matrices = [tensor(shape, address=(number + 1) << 20) for number, shape in enumerate(shapes)]
    for _ in range(count):
        kernel[(4, 3)](*matrices, 512, 384, 256, 256, 384, 384, **TILES, num_warps=8)
    return kernel


def sides(gpu):
    return ["stock" if one.num_warps == 8 else "twill" for one in gpu.launched]


def finish():
    """Waits until background processes have answered."""
    for _ in range(1200):
        if all(one.status != "waiting" for one in activation.status()):
            return
        time.sleep(0.1)
    raise TimeoutError(str(activation.status()))


class TestTiers:
    def test_background_then_alternation_then_the_faster_and_a_second_process_starts_settled(self, gpu, tensor):
        activation.install()
        kernel = triton.jit(gemm.gemm_tma.fn)
        launch(kernel, tensor, 3)
        assert sides(gpu) == ["stock"] * 3 and activation.status()[0].status == "waiting"
        finish()
        gpu.launched.clear()
        launch(kernel, tensor, 1000)
        made = sides(gpu)
        assert made[:3] == ["stock", "twill", "stock"]
        # Spins cost more than the share allows at once, so trials are spread out.
        assert made.count("twill") > SAMPLES and made[-1] == "twill"
        (status,) = activation.status()
        assert (status.status, status.wins, status.grids, status.launches) == ("scheduled", 1, 1, 1003)
        assert status.speed == pytest.approx(1.5) and status.interval
        activation.uninstall()
        launch(kernel, tensor)
        assert sides(gpu)[-1] == "stock"

        # A new process: nothing is known but what is on disk.
        activation.install("frozen")
        gpu.launched.clear()
        launch(triton.jit(gemm.gemm_tma.fn), tensor, 3)
        assert sides(gpu) == ["twill"] * 3, activation.status()

    def test_both_of_twills_kernels_take_part_and_one_that_refuses_leaves_the_other(self, gpu, tensor, monkeypatch):
        # As good as any for that, and made sooner.
        monkeypatch.setitem(forms.OPTIONS, TWILL, {"schedule": "in-order"})
        activation.install("wait")
        launch_pointers(tensor, 6 * SAMPLES)
        (found,) = activation._activity.found
        (contest,) = found.contests.values()
        assert contest.sides == (STOCK, TWILL, MULTISTAGE) and contest.winner in OWN
        assert set(contest.milliseconds) == set(contest.sides)
        (status,) = activation.status()
        assert (status.status, status.wins, status.grids) == ("scheduled", 1, 1)
        found.refuse("no such rows", TWILL)
        assert found.challengers == (MULTISTAGE,) and activation.status()[0].reason == ""
        assert activation.status()[0].status == "scheduled" and "multistage" in str(activation.status())
        found.refuse("nothing")
        assert found.challengers == () and activation.status()[0].reason == "nothing"

    def test_a_kernel_whose_machine_code_may_be_loaded_later_keeps_no_files(self, gpu, tensor, monkeypatch):
        monkeypatch.setitem(forms.OPTIONS, TWILL, {"schedule": "in-order"})
        activation.install("wait")
        launch_pointers(tensor, 6 * SAMPLES)
        activation.uninstall()
        monkeypatch.setattr(Unfinished, "finish_behind", lambda kernels: None)
        # Those of `twill_gpu.jit` last as long as the process.
        before = set(backend.folder().iterdir())
        activation.install()
        launch_pointers(tensor, 3)
        (found,) = activation._activity.found
        assert found._unfinished
        assert not {one for one in backend.folder().iterdir() if one.name.endswith("-cached")} - before

    def test_while_machine_code_is_made_again_launches_look_for_nothing(self, gpu, tensor, monkeypatch):
        activation.install("wait")
        launch_pointers(tensor, 6 * SAMPLES)
        (won,) = [contest.winner for contest in activation._activity.found[0].contests.values()]
        assert won in OWN
        activation.uninstall()
        looked, asked, done, make = [], [], Future(), workers.Workers.make
        contest_for = Contested.contest_for
        monkeypatch.setattr(Contested, "contest_for", lambda found, key: looked.append(key) or contest_for(found, key))
        monkeypatch.setattr(ScheduledKernel, "is_kept", False)
        monkeypatch.setattr(workers.Workers, "make", lambda *given: asked.append(given) or done)
        activation.install()
        kernel = launch_pointers(tensor, 5)
        assert len(asked) == 1 and activation._activity.found[0].kernels
        looked.clear()
        gpu.launched.clear()
        launch_pointers(tensor, 50, kernel)
        assert not looked and set(sides(gpu)) == {"stock"}
        done.set_result(make(*asked[0]).result())
        launch_pointers(tensor, 1, kernel)
        (contest,) = activation._activity.found[0].contests.values()
        assert len(looked) == 1 and contest.winner == won

    def test_of_one_stage_there_is_a_kernel_that_loads_ahead_and_one_that_does_not(self, gpu, tensor, monkeypatch):
        monkeypatch.setitem(forms.OPTIONS, TWILL, {"schedule": "in-order"})
        activation.install("wait")
        kernel = triton.jit(gemm_pointers.gemm_pointers.fn)
        matrices = [tensor(shape, address=(k + 1) << 20) for k, shape in enumerate([[512, 256], [256, 384], [512, 384]])]
        kernel[(4, 3)](*matrices, 512, 384, 256, 256, 384, 384, **TILES, num_warps=8, num_stages=1)
        (found,) = activation._activity.found
        assert found.challengers[:3] == (TWILL, MULTISTAGE, ONE_STAGE)
        shared = {side: made.metadata["assembly"]["shared_memory"] for side, made in found.kernels.items()}
        assert shared[ONE_STAGE] < shared[MULTISTAGE]

    def test_the_slower_has_no_more_launches(self, gpu, tensor):
        gpu.milliseconds[8] = 1.9
        activation.install("wait")
        launch(triton.jit(gemm.gemm_tma.fn), tensor, TRIALS + 20)
        made = sides(gpu)
        assert made.count("twill") == 1 + FEW and set(made[-19:]) == {"stock"}
        assert (activation.status()[0].wins, activation.status()[0].grids) == (0, 1)

    def test_graphs_take_what_is_settled_and_nothing_else(self, gpu, tensor):
        activation.install("wait")
        kernel = triton.jit(gemm.gemm_tma.fn)
        gpu.capturing = True
        launch(kernel, tensor, 3)
        (status,) = activation.status()
        assert set(sides(gpu)) == {"stock"} and (status.launches, status.captured) == (3, 3)
        assert status.reason == "it was launched into CUDA graphs only"
        gpu.capturing = False
        launch(kernel, tensor, TRIALS + 2)
        assert sides(gpu)[-1] == "twill"
        gpu.capturing = True
        launch(kernel, tensor)
        assert sides(gpu)[-1] == "twill"
        (status,) = activation.status()
        assert (status.launches, status.captured, status.captured_wins) == (TRIALS + 6, 4, 1)
        assert "1 of 4 launches in CUDA graphs" in str(activation.status())

    def test_the_winner_of_a_tuning_alone_is_taken(self, gpu, tensor, monkeypatch):
        activation.install("wait")
        configs = [triton.Config(TILES, num_warps=8, num_stages=stages) for stages in (2, 3)]
        kernel = triton.autotune(configs, key=["K"])(triton.jit(gemm.gemm_tma.fn))
        kernel._do_bench = lambda call, quantiles: (call(), [float(len(gpu.launched))] * 3)[1]
        kernel[(4, 3)](*gemm_arguments(tensor))
        assert [one.name for one in activation.status()] == ["gemm_tma"]
        assert sides(gpu) == ["stock"] * 3

    def test_what_cannot_be_made_is_known_to_the_next_process(self, gpu, tensor, monkeypatch):
        monkeypatch.setattr("twill_gpu.backend.cached_kernel", lambda *_: None)
        monkeypatch.setattr(activation.activity.Workers, "make", fails)
        activation.install()
        launch(triton.jit(gemm.gemm_tma.fn), tensor, 3)
        assert (activation.status()[0].status, activation.status()[0].reason) == ("stock", "no schedule")
        activation.uninstall()
        monkeypatch.setattr(activation.activity.Workers, "make", None)
        activation.install()
        launch(triton.jit(gemm.gemm_tma.fn), tensor, 3)
        assert activation.status()[0].reason == "no schedule" and set(sides(gpu)) == {"stock"}

    def test_what_was_under_way_when_a_process_died_is_stock_in_the_next(self, gpu, tensor):
        activation.install("wait")
        launch(triton.jit(gemm.gemm_tma.fn), tensor, 4)
        assert sides(gpu) == ["stock", "stock", "twill", "stock"]
        # As if it were killed now.
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        (trial,) = Records().folder.glob("*.trial")
        note = {**Records().read(trial.name), "pid": ended.pid}
        activation._activity._trials.clear()
        activation.uninstall()
        Records().write(trial.name, note)
        activation.install("wait")
        gpu.launched.clear()
        launch(triton.jit(gemm.gemm_tma.fn), tensor, 4)
        assert set(sides(gpu)) == {"stock"} and "a process ended" in activation.status()[0].reason

    def test_names_that_are_left_alone(self, gpu, tensor):
        activation.install("wait", skip="gemm_")
        launch(triton.jit(gemm.gemm_tma.fn), tensor, 3)
        assert activation.status()[0].reason == "TWILL_SKIP names it" and set(sides(gpu)) == {"stock"}

    def test_deterministic_programs_keep_to_what_is_settled(self, gpu, tensor):
        sys.modules["torch"].are_deterministic_algorithms_enabled = lambda: True
        activation.install()
        launch(triton.jit(gemm.gemm_tma.fn), tensor, TRIALS)
        assert set(sides(gpu)) == {"stock"} and "none may be made" in activation.status()[0].reason

    def test_kernels_of_twill_keep_their_own_launches(self, gpu, tensor):
        activation.install("wait")
        kernel = twill_gpu.jit(on_failure="error")(gemm.gemm_tma.fn)
        launch(kernel, tensor, 2)
        assert set(sides(gpu)) == {"twill"} and not activation.status()

    def test_what_was_compiled_and_is_launched_directly(self, gpu, tensor):
        activation.install("wait")
        compiled = triton.jit(gemm.gemm_tma.fn)[(4, 3)](*gemm_arguments(tensor), **TILES, num_warps=8)
        for _ in range(TRIALS + 3):
            compiled[(4, 3, 1)](*gemm_arguments(tensor), *TILES.values())
        assert sides(gpu)[:4] == ["stock", "stock", "twill", "stock"] and sides(gpu)[-1] == "twill"

    def test_kernels_without_an_mma_are_not_looked_at(self, gpu, tensor):
        activation.install("wait")
        copies[(1,)](tensor([64], "float32", address=1 << 20), tensor([64], "float32", address=2 << 20), BLOCK=64)
        assert len(gpu.launched) == 1 and not activation._activity.found


class Index:
    """As numpy's numbers are."""

    def __init__(self, number):
        self._number = number

    def __index__(self):
        return self._number

    def __int__(self):
        return self._number


def fails(self, *_):
    from concurrent.futures import Future

    future = Future()
    future.set_exception(RuntimeError("no schedule"))
    return future


def test_functions_with_an_mma():
    assert not may_multiply(copies)
    assert may_multiply(multiplies) and may_multiply(calls_one_that_multiplies) and may_multiply(calls_a_parameter)


class TestSettings:
    def test_of_an_environment(self):
        assert Settings.of_environment({}) is None and Settings.of_environment({"TWILL": "0"}) is None
        settings = Settings.of_environment({"TWILL": "wait", "TWILL_ONLY": "attn", "TWILL_JOBS": "3"})
        assert settings.mode is Mode.WAIT and settings.jobs == 3
        assert settings.excludes("gemm") == "TWILL_ONLY does not name it" and settings.excludes("_attn_fwd") is None

    @pytest.mark.parametrize(
        ("variables", "match"),
        [
            ({"TWILL": "fast"}, "TWILL=fast: it may be 1, wait"),
            ({"TWILL": "1", "TWILL_SKIP": "("}, "TWILL_SKIP=.: no regular expression"),
            ({"TWILL": "1", "TWILL_JOBS": "0"}, "TWILL_JOBS=0: it must be"),
        ],
    )
    def test_values_that_there_are_not(self, variables, match):
        with pytest.raises(twill_gpu.InputError, match=match):
            Settings.of_environment(variables)


class TestRecords:
    def test_kept_and_read(self, tmp_path):
        records = Records(tmp_path / "records")
        assert records.read("a") is None
        records.write("a", {"winner": "twill"})
        assert Records(tmp_path / "records").read("a") == {"winner": "twill"}
        records.remove("a")
        assert records.read("a") is None

    def test_cleared_with_the_cache(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TWILL_CACHE", str(tmp_path))
        Records().write("a", {"winner": "twill"})
        assert Records().read("a")
        twill_gpu.clear_cache()
        assert Records().read("a") is None

    def test_what_was_changed_is_not_believed(self, tmp_path):
        records = Records(tmp_path / "records")
        records.write("a", {"winner": "twill"})
        (tmp_path / "records" / "a").write_text(digest_of("x") + '\n{"winner": "stock"}')
        assert records.read("a") is None

    def test_folders_that_others_write_to_are_not_used(self, tmp_path):
        folder = tmp_path / "records"
        Records(folder).write("a", {"winner": "twill"})
        folder.chmod(0o777)
        records = Records(folder)
        assert records.read("a") is None and "may be written to by others" in records.unsafe
        folder.chmod(0o700)
        (tmp_path / "link").symlink_to(folder)
        assert Records(tmp_path / "link").read("a") is None

    def test_links_are_not_followed(self, tmp_path):
        records = Records(tmp_path / "records")
        records.write("a", {})
        text = '{"winner": "twill"}'
        digest = digest_of(f"b\n{text}")
        (tmp_path / "other").write_text(f"{digest}\n{text}")
        (tmp_path / "other").chmod(0o600)
        (tmp_path / "records" / "b").symlink_to(tmp_path / "other")
        assert records.read("b") is None
        (tmp_path / "records" / "b").unlink()
        (tmp_path / "other").rename(tmp_path / "records" / "b")
        assert records.read("b") == {"winner": "twill"}

    def test_a_folder_that_cannot_be_written_is_no_failure(self, tmp_path):
        (tmp_path / "file").write_text("")
        records = Records(tmp_path / "file" / "records")
        records.write("a", {})
        assert records.read("a") is None


class TestProcesses:
    PROGRAM = "import sys, triton; print(triton.runtime.jit.JITFunction.run.__module__, 'twill_gpu' in sys.modules)"

    def python(self, *words, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TWILL")}
        done = subprocess.run(
            [sys.executable, *words], env={**environment, **variables}, capture_output=True, text=True, timeout=900
        )
        return done.stdout.strip(), done.stderr.strip()

    def test_the_variable_alone_switches_it_on(self):
        original = "twill_gpu.activation.hooks"
        off, on = self.python("-c", self.PROGRAM), self.python("-c", self.PROGRAM, TWILL="1")
        # `functools.wraps` keeps the name of the module that it replaces.
        assert off == ("triton.runtime.jit False", "") and on == ("triton.runtime.jit True", ""), (original, on)

    def test_without_triton_nothing_is_imported(self):
        program = "import sys; print([name for name in sys.modules if 'twill' in name and not name.startswith('__editable')])"
        assert self.python("-c", program)[0] == "[]"
        assert self.python("-c", program, TWILL="1")[0] == "['_twill_start']"

    def test_a_value_that_there_is_not_is_one_line(self):
        out, error = self.python("-c", "import triton; print(1)", TWILL="fast")
        assert out == "1" and error.splitlines() == ["twill: switched off: TWILL=fast: it may be 1, wait, frozen, check"]

    def test_run(self, tmp_path):
        script = tmp_path / "script.py"
        script.write_text("import sys, triton, twill_gpu.activation as a; print(sys.argv[1:], a._activity is not None)")
        assert self.python("-m", "twill_gpu", "run", str(script), "x")[0] == "['x'] True"
        assert "usage" in self.python("-m", "twill_gpu", "walk")[1]

    def test_nothing_in_the_working_directory_is_imported_by_background_processes(self, tmp_path):
        (tmp_path / "twill_gpu.py").write_text("raise SystemExit('planted')")
        (tmp_path / "json.py").write_text("raise SystemExit('planted')")
        done = subprocess.run(
            [sys.executable, "-c", workers.START, workers._package_folder()],
            input="", capture_output=True, text=True, cwd=tmp_path, timeout=60, start_new_session=True,
        )
        assert done.returncode == -signal.SIGKILL and not done.stderr


class TestNeverWrong:
    def test_a_trial_of_a_process_that_runs_condemns_nothing(self, gpu, tensor):
        activation.install("wait")
        for _ in range(2):
            # Another function with the same TTIR.
            launch(triton.jit(gemm.gemm_tma.fn), tensor, 4)
        assert [one.status for one in activation.status()] == ["scheduled", "scheduled"]

    def test_a_process_that_is_killed_after_its_trials_condemns_nothing(self, gpu, tensor):
        activation.install("wait")
        launch(triton.jit(gemm.gemm_tma.fn), tensor, TRIALS + 2)
        assert not list(Records().folder.glob("*.trial"))

    def test_numbers_of_a_grid_that_are_no_int(self, gpu, tensor):
        activation.install("wait")
        kernel = triton.jit(gemm.gemm_tma.fn)
        for _ in range(3):
            kernel[(Index(4), 3)](*gemm_arguments(tensor), **TILES, num_warps=8)
        assert sides(gpu) == ["stock", "stock", "twill"]

    def test_a_kernel_that_was_interrupted_is_not_condemned(self, gpu, tensor, monkeypatch):
        monkeypatch.setattr("twill_gpu.backend.cached_kernel", lambda *_: None)
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        activation.install("wait")
        launch(triton.jit(gemm.gemm_tma.fn), tensor, 2)
        assert "could be started" in activation.status()[0].reason and set(sides(gpu)) == {"stock"}
        folder = Records().folder
        assert not folder.exists() or not list(folder.iterdir())

    def test_wrappers_and_copies_of_functions_keep_what_they_are(self, gpu, tensor):
        activation.install("wait")
        kernel, calls = triton.jit(gemm.gemm_tma.fn), []
        original = kernel.run
        kernel.run = lambda *args, **named: (calls.append(1), original(*args, **named))[1]
        launch(kernel, tensor, 3)
        assert len(calls) == 3 and len(activation._activity.found) == 1
        other = triton.jit(gemm.gemm_tma.fn)
        launch(other, tensor, 2)
        launch(copy.copy(other), tensor, 2)
        assert len(activation._activity.found) == 2, "a copy has what was compiled"
        assert not any(name.startswith("_twill") for name in vars(other))
        (compiled,) = other.device_caches[0][0].values()
        assert any(name.startswith("_twill") for name in vars(compiled))
        activation.uninstall()
        assert "run" in vars(kernel) and not any(name.startswith("_twill") for name in vars(compiled))
        launch(other, tensor, 1)
        assert sides(gpu)[-1] == "stock"

    def test_kernels_that_were_compiled_before_are_taken_too(self, gpu, tensor):
        kernel = triton.jit(gemm.gemm_tma.fn)
        launch(kernel, tensor, 2)
        activation.install("wait")
        launch(kernel, tensor, TRIALS + 2)
        assert sides(gpu)[-1] == "twill"

    def test_functions_whose_code_was_thrown_away_are_compiled_again(self, gpu, tensor):
        activation.install("wait")
        kernel = triton.jit(gemm.gemm_tma.fn)
        launch(kernel, tensor, TRIALS + 2)
        assert sides(gpu)[-1] == "twill"
        kernel.device_caches.clear()
        launch(kernel, tensor)
        assert sides(gpu)[-1] == "stock" and len(activation._activity.found) == 2

    def test_a_kernel_that_does_not_launch_is_stock_tritons_for_good(self, gpu, tensor, monkeypatch):
        activation.install("wait")
        kernel = triton.jit(gemm.gemm_tma.fn)
        launch(kernel, tensor, 2)
        (found,) = activation._activity.found

        class Plan:
            def launch_on(self, stream, varying):
                raise RuntimeError("no such launch")

            index = 0

        monkeypatch.setattr(found.kernel, "plan", lambda values, grid: (Plan(), []))
        launch(kernel, tensor, 3)
        assert set(sides(gpu)) == {"stock"} and len(gpu.launched) == 5
        assert activation.status()[0].reason == "RuntimeError: no such launch"

    def test_a_contest_that_another_thread_ends_during_a_launch(self, gpu, tensor):
        activation.install("wait")
        kernel = triton.jit(gemm.gemm_tma.fn)
        launch(kernel, tensor, 2)
        (found,) = activation._activity.found
        asked = []
        (contest,) = found.contests.values()
        turn_of = contest.turn
        launch_of = contest.launch

        def launched(side, launch):
            result = launch_of(side, launch)
            # Twill's kernel wins while stock Triton's is launched.
            contest.winner = "twill"
            asked.append(side)
            return result

        contest.turn, contest.launch = lambda: "stock", launched
        launch(kernel, tensor, 1)
        contest.turn, contest.launch = turn_of, launch_of
        launch(kernel, tensor, 2)
        assert asked == ["stock"] and sides(gpu)[-2:] == ["twill", "twill"]

    def test_changes_while_it_is_launched_are_no_failures(self, gpu, tensor, monkeypatch):
        activation.install("wait")
        kernel = triton.jit(gemm.gemm_tma.fn)
        launch(kernel, tensor, TRIALS)
        (found,) = activation._activity.found
        for _ in range(2 * launches.FAILURES):
            found.launcher.forget()
            launch(kernel, tensor, 1)
        before = found.looked_at.total()
        launch(kernel, tensor, 5)
        assert found.looked_at.total() == before, "they are settled"

    def test_arguments_that_a_kernel_refuses(self, gpu, tensor):
        activation.install("wait")
        kernel = triton.jit(gemm.gemm_tma.fn)
        launch(kernel, tensor, 2)
        (found,) = activation._activity.found
        a, b, c, k = gemm_arguments(tensor)
        c.padding = "nan"
        kernel[(4, 3)](a, b, c, k, **TILES, num_warps=8)
        assert "must be padded with zero" in activation.status()[0].reason and found.kernel is None
        assert set(sides(gpu)) == {"stock"}

    def test_a_record_that_is_none(self, gpu, tensor):
        activation.install("wait")
        kernel = triton.jit(gemm.gemm_tma.fn)
        launch(kernel, tensor, TRIALS + 2)
        activation.uninstall()
        records = Records()
        for record in records.folder.iterdir():
            records.write(record.name, {"winner": "nobody"})
        activation.install("wait")
        gpu.launched.clear()
        launch(triton.jit(gemm.gemm_tma.fn), tensor, 4)
        assert sides(gpu) == ["stock", "stock", "twill", "stock"]
