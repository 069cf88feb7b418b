"""What activation may not do to an application: grow without limits, change the order of its hooks, the device of a launch, wait for ever."""

import contextlib
import gc
import os
import sys
import time
import weakref
from concurrent.futures import Future

import gemm_tma as gemm
import pytest
import triton
from test_activation import TRIALS, copies, gpu, launch, sides  # noqa: F401  `gpu` is a fixture
from test_jit import TILES, gemm_arguments
from test_launch import Device
from twill_gpu import activation, backend
from twill_gpu.activation import activity, contested, records, specialisation, workers as background
from twill_gpu.activation.records import Records
from twill_gpu.contest import STOCK, TWILL
from twill_gpu.scheduled import ScheduledKernel, without_bytecode


def found_of(found):
    """What the cache is asked for a kernel."""
    return found.kernel.ttir, found.name, found.kernel.machine, {}


def new():
    """A function of its own."""
    return triton.jit(gemm.gemm_tma.fn)


class TestGrowth:
    def test_kernels_of_a_process(self, gpu, tensor, monkeypatch):
        monkeypatch.setattr(activity, "KERNELS", 2)
        monkeypatch.setattr(activity, "LISTED", 4)
        activation.install("wait")
        functions = [new() for _ in range(6)]
        for kernel in functions:
            launch(kernel, tensor, 3)
        assert [one.status for one in activation.status()] == ["scheduled"] * 2 + ["stock"] * 2
        assert "as many kernels" in activation.status()[-1].reason
        assert sides(gpu)[2] == "twill" and set(sides(gpu)[6:]) == {"stock"} and len(gpu.launched) == 18
        assert activation._activity.unlisted == 2

    def test_one_that_was_refused_makes_room(self, gpu, tensor, monkeypatch):
        monkeypatch.setattr(activity, "KERNELS", 1)
        activation.install("wait")
        before = set(sys.modules)
        launch(new(), tensor, 2)
        (found,) = activation._activity.found
        files = [name for name in sys.modules if name.startswith("twill_kernel_") and name not in before]
        assert files
        found.refuse("no more")
        assert not [name for name in files if name in sys.modules]
        launch(new(), tensor, 2)
        assert [one.status for one in activation.status()] == ["stock", "scheduled"]

    def test_functions_are_not_kept_alive(self, gpu, tensor):
        activation.install("wait")
        gone = []
        for _ in range(3):
            kernel = triton.jit(copies.fn)
            kernel[(1,)](tensor([64], "float32", address=1 << 20), tensor([64], "float32", address=2 << 20), BLOCK=64)
            gone.append(weakref.ref(kernel))
        del kernel
        gc.collect()
        assert [one() for one in gone] == [None] * 3 and not activation._activity._attributes

    def test_contests_of_a_specialisation(self, gpu, tensor, monkeypatch):
        monkeypatch.setattr(contested, "REMEMBERED", 8)
        monkeypatch.setattr(contested, "OPEN", 3)
        activation.install("wait")
        kernel = new()
        launch(kernel, tensor, TRIALS)
        for rows in range(5, 34):
            kernel[(rows, 3)](*gemm_arguments(tensor), **TILES, num_warps=8)
        (found,) = activation._activity.found
        # What is under way stays, and what is settled is on record.
        grids = [key[0] for key in found.contests]
        assert len(grids) <= 8 and set(grids) >= {31, 32, 33} and 4 not in grids

    def test_an_outcome_outlives_its_contest_and_its_file(self, gpu, tensor):
        activation.install("wait")
        kernel = new()
        launch(kernel, tensor, TRIALS + 2)
        (found,) = activation._activity.found
        ((key, contest),) = found.contests.items()
        assert contest.winner is not None
        Records().clear()
        found.make_room()
        found.launcher.forget()
        launch(kernel, tensor, 1)
        # Another specialisation of the same kernel, as after Triton's own cache was emptied.
        launch(new(), tensor, 2)
        same, other = activation._activity.found
        assert [one.contests[key].winner for one in (same, other)] == [contest.winner] * 2
        assert found.contests[key].milliseconds == contest.milliseconds and not list(Records().folder.iterdir())

    def test_records_of_a_folder(self, tmp_path, monkeypatch):
        monkeypatch.setattr(records, "LIMIT", 8)
        monkeypatch.setattr(records, "EVERY", 2)
        kept = Records(tmp_path / "records")
        for number in range(20):
            kept.write(str(number), {"number": number})
            os.utime(kept.folder / str(number), (number, number))
        assert len(list(kept.folder.iterdir())) <= 9
        assert kept.read("19") == {"number": 19} and kept.read("0") is None
        # What a process was writing when it was killed, and what one is writing now.
        (kept.folder / ".old").write_text("")
        os.utime(kept.folder / ".old", (0, 0))
        (kept.folder / ".new").write_text("")
        kept.write("20", {})
        assert sorted(one.name for one in kept.folder.iterdir() if one.name[0] == ".") == [".new"]


def test_hooks_see_each_launch_once_and_before_everything_else(gpu, tensor):
    """Of the first launch, of trials, and of those that follow: as stock Triton calls them."""
    told = []

    def launches(kernel):
        told.clear()
        gpu.launched.clear()
        kernel.pre_run_hooks.append(lambda *args, **named: told.append(("hook", len(gpu.launched), sorted(named))))
        for _ in range(TRIALS + 4):
            kernel[lambda meta: told.append(("grid", len(gpu.launched))) or (4, 3)](
                *gemm_arguments(tensor), **TILES, num_warps=8
            )
        # A launch without its arguments is refused after its hooks were called.
        with pytest.raises(TypeError):
            kernel[(4, 3)](**TILES, num_warps=8)
        return list(told)

    expected = launches(new())
    activation.install("wait")
    made = launches(new())
    assert sides(gpu)[-1] == "twill" and len(gpu.launched) == TRIALS + 4
    assert made == expected


class TestDevices:
    @pytest.fixture
    def two(self, gpu):
        """Two H200 of which one is the current one, for torch and for Triton."""
        torch = sys.modules["torch"]
        torch.cuda.get_device_capability = lambda index: (9, 0)
        gpu.get_current_device = lambda: torch.current
        return torch

    def arguments(self, tensor, index):
        return gemm_arguments(lambda *words, **named: tensor(*words, device=Device(index=index), **named))

    def test_memory_of_another_device_is_left_to_stock_triton(self, two, gpu, tensor):
        activation.install("wait")
        kernel = new()
        for _ in range(TRIALS + 4):
            kernel[(4, 3)](*self.arguments(tensor, 1), **TILES, num_warps=8)
        (status,) = activation.status()
        assert set(sides(gpu)) == {"stock"} and status.status == "scheduled" and status.grids == 0
        # That says nothing about memory of its own.
        launch(kernel, tensor, TRIALS + 4)
        assert sides(gpu)[-1] == "twill"
        kernel[(4, 3)](*self.arguments(tensor, 1), **TILES, num_warps=8)
        assert sides(gpu)[-1] == "stock"

    def test_each_device_has_contests_of_its_own(self, two, gpu, tensor):
        activation.install("wait")
        kernel = new()
        launch(kernel, tensor, TRIALS + 2)
        assert sides(gpu)[-1] == "twill"
        two.current = 1
        gpu.launched.clear()
        # Of the same name, so that what was settled is known.
        two.cuda.get_device_name = lambda index: f"number {index}"
        gpu.milliseconds[8] = 1.0
        for _ in range(TRIALS + 2):
            kernel[(4, 3)](*self.arguments(tensor, 1), **TILES, num_warps=8)
        assert sides(gpu)[:3] == ["stock", "stock", "twill"] and sides(gpu)[-1] == "stock"
        assert [one.contests and [*one.contests.values()][0].winner for one in activation._activity.found] == [
            TWILL,
            STOCK,
        ]

    def test_what_was_compiled_on_another_device(self, two, gpu, tensor):
        activation.install("wait")
        compiled = new()[(4, 3)](*gemm_arguments(tensor), **TILES, num_warps=8)
        two.current = 1
        for _ in range(3):
            compiled[(4, 3, 1)](*gemm_arguments(tensor), *TILES.values())
        assert set(sides(gpu)) == {"stock"} and len(gpu.launched) == 4


def test_a_launch_does_not_wait_for_ever(gpu, tensor, monkeypatch, capsys):
    made, places, cached = Future(), [], backend.cached_kernel
    found = []

    def make(self, *job):
        # As a background process makes it, but later.
        found.append(cached(*job[:4]))
        places.append(job[4])
        return made

    monkeypatch.setattr(specialisation, "WAIT_SECONDS", 0.05)
    launch_once = new()
    activation.install("wait")
    launch(launch_once, tensor, 1)
    activation.uninstall()
    monkeypatch.setattr(backend, "cached_kernel", lambda *_: None)
    monkeypatch.setattr(activity.Workers, "make", make)
    activation.install("wait")
    kernel = new()
    launch(kernel, tensor, 2)
    assert set(sides(gpu)) == {"stock"} and activation.status()[0].status == "waiting"
    assert "the launch waited" in activation.status()[0].reason
    assert "gemm_tma: there is no kernel after 0 s" in capsys.readouterr().err
    found[0].rename(places[0])
    made.set_result(None)
    launch(kernel, tensor, 2)
    assert activation.status()[0].status == "scheduled" and sides(gpu)[-1] == "twill"


def test_thirty_configurations_cost_what_they_cost_stock_triton(gpu, tensor, monkeypatch):
    compiled, asked, really = [], [], triton.compiler.compile

    def compile_(source, **named):
        compiled.append(source.name)
        return compiled_once[0] if compiled_once else compiled_once.append(really(source, **named)) or compiled_once[0]

    compiled_once = []
    monkeypatch.setattr("triton.compiler.compile", compile_)
    monkeypatch.setattr(backend, "cached_kernel", lambda *_: None)
    monkeypatch.setattr(activity.Workers, "make", lambda self, *job: asked.append(job[1]) or Future())
    configs = [triton.Config(TILES, num_warps=8, num_stages=stages) for stages in range(2, 32)]

    def first_call():
        compiled.clear()
        kernel = triton.autotune(configs, key=["K"])(new())
        kernel._do_bench = lambda call, quantiles: (call(), [1.0 + len(compiled)] * 3)[1]
        kernel[(4, 3)](*gemm_arguments(tensor))
        return len(compiled)

    assert first_call() == 30 and not asked
    activation.install("1")
    assert first_call() == 30 and len(activation.status()) == len(asked) == 1


class TestBytecode:
    def test_several_at_once(self):
        before = sys.dont_write_bytecode
        first, second = contextlib.ExitStack(), contextlib.ExitStack()
        first.enter_context(without_bytecode())
        second.enter_context(without_bytecode())
        first.close()
        assert sys.dont_write_bytecode
        second.close()
        assert sys.dont_write_bytecode == before

    def test_none_is_written(self, gpu, tensor):
        activation.install("wait")
        launch(new(), tensor, 3)
        (found,) = activation._activity.found
        # Nor is anything else left of its folder.
        assert found.kernel and not found.kernel.folder.exists()
        ScheduledKernel(made := backend.cached_kernel(*found_of(found)), "", "h200")
        assert made.exists() and not list(made.rglob("__pycache__"))


class TestWorkers:
    """Background processes that answer without a compiler."""

    ANSWERS = "import sys, time\nfor line in sys.stdin: print('{answer}', flush=True) if {seconds} == 0 else time.sleep({seconds})"

    def workers(self, monkeypatch, tmp_path, answer="{}", seconds=0):
        program = self.ANSWERS.replace("{answer}", answer).replace("{seconds}", str(seconds))
        monkeypatch.setattr(background, "START", program)
        return background.Workers(1, lambda: tmp_path)

    def make(self, workers, tmp_path):
        return workers.make("", "kernel", "h200", {}, tmp_path / "kernel")

    def test_one_that_is_killed_is_followed_by_another(self, monkeypatch, tmp_path):
        workers = self.workers(monkeypatch, tmp_path, seconds=60)
        first = self.make(workers, tmp_path)
        while not workers._processes:
            time.sleep(0.01)
        (process,) = workers._processes
        process.kill()
        assert isinstance(first.exception(30), background.Unanswered)
        self.workers(monkeypatch, tmp_path)
        assert self.make(workers, tmp_path).exception(30) is None
        workers.stop()

    @pytest.mark.parametrize(("lasts", "kind"), [("true", RuntimeError), ("false", background.Unanswered)])
    def test_errors_that_last_and_those_of_a_moment(self, monkeypatch, tmp_path, lasts, kind):
        workers = self.workers(monkeypatch, tmp_path, f'{{"error": "why", "lasts": {lasts}}}')
        error = self.make(workers, tmp_path).exception(30)
        assert type(error) is kind and str(error) == "why"
        workers.stop()

    def test_an_answer_that_is_none(self, monkeypatch, tmp_path):
        workers = self.workers(monkeypatch, tmp_path, "[1")
        assert isinstance(self.make(workers, tmp_path).exception(30), background.Unanswered)
        workers.stop()

    def test_errors_of_the_system(self):
        from twill_gpu.activation.worker import is_of_the_system

        def raised(by):
            try:
                try:
                    raise by
                except Exception as error:
                    raise RuntimeError(f"no kernel.json: {error}") from None
            except RuntimeError as error:
                return error

        assert is_of_the_system(OSError(28, "no space")) and is_of_the_system(raised(OSError(28, "no space")))
        assert is_of_the_system(MemoryError()) and not is_of_the_system(raised(ValueError("wrong")))
