"""The launcher in the place of a compiled kernel's: whose launch it is, and what it leaves to a `Runner`."""

import dataclasses
import gc
import threading
import weakref
from types import SimpleNamespace

import pytest
from twill_gpu import _twill
from twill_gpu._twill import SettledLauncher

BEFORE = "function", "metadata", "of the launch", "enter", "leave"
GRID = 4, 3, 1
STREAM = 7


@dataclasses.dataclass
class Tensor:
    address: int = 1 << 20
    dtype: str = "fp16"
    device: int = 0
    shape: tuple = (8, 16)

    def data_ptr(self):
        return self.address

    def get_device(self):
        return self.device

    def stride(self):
        return (self.shape[1], 1)


@dataclasses.dataclass
class Descriptor:
    base: Tensor
    shape: list
    strides: list
    block_shape: list
    padding: str = "zero"


class Reading:
    def __init__(self, sizes=(), memory=(), counts=(), reals=()):
        self.sizes, self.memory, self.counts, self.reals = list(sizes), list(memory), list(counts), list(reals)


class Resting:
    """A contest that rests for so many launches, each time it is asked."""

    def __init__(self, *rests):
        self.left = list(rests)

    def rest(self):
        return self.left.pop(0) if self.left else 0


class Launches:
    """A launcher of a kernel with arguments of these names, and what it was left with."""

    def __init__(self, names=("a", "m", "n"), numbers=("m", "n"), device=None, launch_function=None):
        self.stock, self.left, self.names, self.numbers = [], [], list(names), list(numbers)
        hooks = [SimpleNamespace(calls=[]) for _ in range(2)]
        self.runtime = SimpleNamespace(launch_enter_hook=hooks[0], launch_exit_hook=hooks[1])
        self.knobs = SimpleNamespace(runtime=self.runtime)
        self.is_capturing, self.device = False, 0
        self.activity = SimpleNamespace(
            switch=_twill.Switch(),
            triton=SimpleNamespace(knobs=self.knobs),
            device=lambda: self.device,
            asks_capture=lambda: lambda: self.is_capturing,
        )
        self.launcher = SettledLauncher(
            lambda *args: self.left.append(args) or "left", Original(self.stock), launch_function, self.activity, self.names, len(BEFORE), device
        )

    def args(self, *values, grid=GRID):
        return (*grid, STREAM, *BEFORE, *values)

    def __call__(self, *values, grid=GRID):
        return self.launcher(*self.args(*values, grid=grid))

    def settle(self, *values, side="stock", contest=None):
        return self.launcher.settle_stock((self.args(*values), self.numbers, self.launcher.epoch, side), contest)

    def own(self, *values, reading, launch, function=None):
        launched = self.args(*values), self.numbers, self.launcher.epoch, "twill"
        return self.launcher.settle_own(launched, reading, (launch, function))

    def counts(self):
        return {side: launched for side, launched, _ in self.launcher.counts() if launched}


class Original:
    name = "its own"

    def __init__(self, launched):
        self.launched = launched

    def __call__(self, *args):
        self.launched.append(args)
        return "stock"


@pytest.fixture
def launches():
    return Launches()


def test_classes_are_grids_and_the_bits_of_numbers(launches):
    assert launches("tensor", 9, 0) == "left"
    assert launches.settle("tensor", 9, 0)
    assert launches("tensor", 9, 0) == launches("other", 15, 0) == "stock"
    assert launches.stock[0] == (*GRID, STREAM, *BEFORE, "tensor", 9, 0)
    assert launches("tensor", 16, 0) == launches("tensor", 9, 1) == launches("tensor", 9, 0, grid=(4, 3, 2)) == "left"
    assert launches.counts() == {"stock": 2}
    # A negative number has as many bits as the other one.
    assert launches("tensor", -9, 0) == "stock"
    launches.launcher.forget()
    assert launches("tensor", 9, 0) == "left"


@pytest.mark.parametrize("number", [9.0, "9", 1 << 63, 1 << 70, None, [9]])
def test_numbers_that_are_none_are_left(launches, number):
    launches.settle("tensor", 9, 0)
    assert launches("tensor", number, 0) == "left"
    assert launches("tensor", 9, 0, grid=(number, 3, 1)) == "left"
    try:
        assert not launches.settle("tensor", number, 0)
    except OverflowError:
        assert number in (1 << 63, 1 << 70)


def test_what_was_found_out_before_a_change_is_not_settled(launches):
    epoch = launches.launcher.epoch
    launches.launcher.forget()
    assert not launches.launcher.settle_stock((launches.args("tensor", 9, 0), ["m", "n"], epoch, "stock"))
    assert launches("tensor", 9, 0) == "left"


def test_other_numbers_tell_other_classes(launches):
    launches.settle("tensor", 9, 0)
    launches.numbers = ["n"]
    launches.settle("tensor", 0, 9)
    assert launches("tensor", 1000, 9) == "stock" and launches("tensor", 9, 0) == "left"
    launches.numbers = ["gone"]
    with pytest.raises(KeyError, match="gone"):
        launches.settle("tensor", 9, 0)


def test_contests_that_wait_for_their_share_are_stock_triton_s(launches):
    launches.settle("tensor", 9, 0, contest=Resting(2, 0, 1))
    assert [launches("tensor", 9, 0) for _ in range(5)] == ["stock", "stock", "left", "stock", "left"]
    assert launches.counts() == {"stock": 3}


def test_not_all_is_remembered(launches):
    for grid in range(3000):
        launches.launcher.settle_stock((launches.args("tensor", 9, 0, grid=(grid, 1, 1)), ["m", "n"], 0, "stock"))
    results = [launches("tensor", 9, 0, grid=(grid, 1, 1)) for grid in range(3000)]
    assert results[-1] == "stock" and 0 < results.count("stock") <= 1024


def test_other_numbers_of_arguments_are_left(launches):
    launches.settle("tensor", 9, 0)
    assert launches("tensor", 9) == launches("tensor", 9, 0, 0) == "left"


def test_paused_and_suspended_launches_are_stock_triton_s(launches):
    for begin, end in (
        (lambda: launches.activity.switch.turn(False), lambda: launches.activity.switch.turn(True)),
        (_twill.suspend, _twill.resume),
    ):
        begin()
        assert launches("tensor", 9, 0) == "stock"
        _twill.set_in_call(True)
        # An autotuner wants to know of it.
        assert launches("tensor", 9, 0) == "left"
        _twill.set_in_call(False)
        end()
        assert launches("tensor", 9, 0) == "left"
    assert not launches.counts()


def test_calls_of_autotuners_are_left(launches):
    launches.settle("tensor", 9, 0)
    _twill.set_in_call(True)
    assert launches("tensor", 9, 0) == "left"
    other = []
    thread = threading.Thread(target=lambda: other.append(launches("tensor", 9, 0)))
    thread.start()
    thread.join()
    _twill.set_in_call(False)
    assert other == ["stock"] and launches("tensor", 9, 0) == "stock"


def test_without_another_kernel_all_are_stock_triton_s(launches):
    launches.launcher.leave("stock")
    assert launches("tensor", 9.5, 0) == "stock" and launches.counts() == {"stock": 1}


def test_kernels_are_launched_by_plans_of_the_same_form():
    launches, launched = Launches(("a", "d", "e", "size", "count", "scale"), ()), []
    reading = Reading(
        sizes=["size"],
        memory=[("a", False, 0), ("d", True, 0), ("e", True, 256)],
        counts=[("count", 1, 100, 15)],
        reals=[("scale", 0.5, 2.0)],
    )
    a, e = Tensor((1 << 20) + 4), Tensor(3 << 20)
    d = Descriptor(Tensor(2 << 20), [8, 16], [16, 1], [8, 8])
    same = a, d, e, 5, 32, 1.0
    assert launches.own(*same, reading=reading, launch=lambda *launch: launched.append(launch))
    assert launches(*same) is None
    assert launched == [(STREAM, [a.address, 2 << 20, 3 << 20, 32, 1.0])]
    # Addresses and the numbers left open may be others.
    assert launches(Tensor((5 << 20) + 4), d, Tensor(4 << 20), 5, 64, 2) is None
    assert launched[1] == (STREAM, [(5 << 20) + 4, 2 << 20, 4 << 20, 64, 2.0])
    assert launches.counts() == {"twill": 2}
    for other in (
        (Tensor(), d, e, 5, 32, 1.0),
        (a, Descriptor(d.base, [8, 32], [32, 1], [8, 8]), e, 5, 32, 1.0),
        (a, Descriptor(d.base, [8, 16], [16, 1], [8, 8], "nan"), e, 5, 32, 1.0),
        (a, d, Tensor(128), 5, 32, 1.0),
        (a, d, Tensor(3 << 20, shape=(16, 8)), 5, 32, 1.0),
        (a, d, e, 6, 32, 1.0),
        (a, d, e, 5, 33, 1.0),
        (a, d, e, 5, 112, 1.0),
        (a, d, e, 5, 0, 1.0),
        (a, d, e, 5, 32, 3.0),
        (a, d, e, 5, 32, float("nan")),
        (a, d, e, 5, 32, "1"),
        (7, d, e, 5, 32, 1.0),
        (a, d, None, 5, 32, 1.0),
    ):
        assert launches(*other) == "left", other
    assert len(launched) == 2


class Signal(Exception):
    """What a signal's handler raises."""


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError, Signal])
def test_what_cannot_be_launched_is_left_and_what_a_handler_raises_is_not(error):
    launches = Launches(("a",), ())
    errors = [RuntimeError("not launched"), error()]

    def fails(stream, varying):
        raise errors.pop(0)

    launches.own(Tensor(), reading=Reading(memory=[("a", False, 0)]), launch=fails)
    assert launches(Tensor()) == "left"
    with pytest.raises(error):
        launches(Tensor())
    assert not launches.counts() and len(launches.left) == 1


def test_a_function_takes_the_arguments_that_a_plan_makes():
    launches, called, made = Launches(("a",), ()), [], lambda stream, varying: ("made", stream, *varying)
    reading = Reading(memory=[("a", False, 0)])
    launches.own(Tensor(), reading=reading, launch=made, function=lambda *args: called.append(args))
    assert launches(Tensor()) is None and called == [("made", STREAM, 1 << 20)]

    def fails(*args):
        called.append(args)
        raise RuntimeError("Triton Error [CUDA]: invalid argument")

    launches.own(Tensor(), reading=reading, launch=made, function=fails)
    assert launches(Tensor()) == "left" and len(called) == 2 and launches.counts() == {"twill": 1}


def test_a_kernel_has_plans_of_all_its_forms():
    launches, launched = Launches(("a", "b"), ()), []
    reading = Reading(memory=[("a", False, 0)], sizes=["b"])
    for b in (5, 6):
        launches.own(Tensor(), b, reading=reading, launch=lambda stream, varying, b=b: launched.append(b))
    assert [launches(Tensor(), b) for b in (5, 6, 7)] == [None, None, "left"] and launched == [5, 6]
    # Another kernel in its place.
    launches.launcher.forget()
    launches.own(Tensor(), 7, reading=Reading(memory=[("a", False, 0)]), launch=lambda *_: launched.append("other"))
    assert launches(Tensor(), 5) is None and launched == [5, 6, "other"]


def test_other_stages_and_warps_get_the_same_arguments():
    launches, other = Launches(("a",), ()), []
    launcher = lambda *args: other.append(args) or "other"
    direct = launcher, "other function", "other metadata", None
    assert launches.launcher.settle_other((launches.args("tensor"), [], 0, "num_warps=4"), direct)
    assert launches("tensor") == "other"
    assert other == [(*GRID, STREAM, "other function", "other metadata", None, None, None, "tensor")]
    quick = launcher, "cooperates", "overlaps"
    assert launches.launcher.settle_other((launches.args("tensor"), [], 0, "num_warps=4"), (print, *direct[1:3], quick))
    assert launches("tensor") == "other"
    metadata = "other function", "cooperates", "overlaps", None, None, "other metadata", None, None, None
    assert other[1] == (*GRID, STREAM, *metadata, "tensor")
    assert launches.counts() == {"num_warps=4": 2}

    def fails(*args):
        raise RuntimeError("out of resources")

    # Somebody else finds out that it cannot be launched.
    launches.launcher.settle_other((launches.args("tensor"), [], 0, "num_warps=4"), (fails, *direct[1:]))
    assert launches("tensor") == "left" and launches.counts() == {"num_warps=4": 2}


def test_what_the_launcher_calls_in_the_end_is_called_at_once():
    called = []
    launches = Launches(launch_function=(lambda *args: called.append(args) or "function", "cooperates", "overlaps"))
    launches.settle("tensor", 9, 0)
    assert launches("tensor", 9, 0) == "function"
    assert called == [(*GRID, STREAM, "function", "cooperates", "overlaps", None, None, *BEFORE[1:], "tensor", 9, 0)]
    # For measurements all is as it would be.
    launches.activity.switch.turn(False)
    assert launches("tensor", 9, 0) == "stock" and len(called) == 1


def test_hooks_are_told_of_stock_triton_s_kernels():
    launches = Launches(("a",), ())
    launches.own(Tensor(), reading=Reading(memory=[("a", False, 0)]), launch=lambda *_: None)
    assert launches(Tensor()) is None
    launches.runtime.launch_exit_hook.calls.append(print)
    assert launches(Tensor()) == "left"
    launches.runtime.launch_exit_hook = print
    assert launches(Tensor()) == "left"
    launches.runtime.launch_exit_hook = None
    assert launches(Tensor()) is None
    # As Triton's own tests begin anew.
    launches.knobs.runtime = SimpleNamespace(launch_enter_hook=print, launch_exit_hook=None)
    assert launches(Tensor()) == "left"


@pytest.mark.parametrize("device", [-1, 1])
def test_memory_of_another_device_is_looked_at(device):
    launches = Launches(("a", "d"), ())
    here, there = Tensor(), Tensor(device=device)
    reading = Reading(memory=[("a", False, 0), ("d", True, 0)])
    launches.own(here, here, reading=reading, launch=lambda *_: None)
    assert launches(here, here) is None
    assert launches(here, there) == launches(there, here) == "left"


def test_another_device_in_use_is_looked_at():
    launches = Launches(("a",), (), device=0)
    launches.own(Tensor(), reading=Reading(memory=[("a", False, 0)]), launch=lambda *_: None)
    assert launches(Tensor()) is None
    for launches.device in (1, None):
        assert launches(Tensor()) == "left"


def test_launches_into_graphs_are_counted(launches):
    launches.settle("tensor", 9, 0)
    launches("tensor", 9, 0)
    launches.is_capturing = True
    launches("tensor", 9, 0)
    assert launches.launcher.counts() == [("stock", 2, 1)]
    # Nothing is captured on the legacy default stream.
    launches.launcher(*GRID, 0, *BEFORE, "tensor", 9, 0)
    assert launches.launcher.counts() == [("stock", 3, 1)]


def test_errors_of_stock_triton_are_its_own(launches):
    launches.settle("tensor", 9, 0)
    launches.launcher.original.launched = None
    with pytest.raises(AttributeError, match="append"):
        launches("tensor", 9, 0)
    assert not launches.left


def test_it_says_what_the_launcher_says(launches):
    assert launches.launcher.name == "its own"
    with pytest.raises(AttributeError):
        launches.launcher.other  # noqa: B018


def test_it_is_collected_with_a_contest_that_knows_it():
    launches, contest = Launches(), Resting(1)
    contest.knows = launches
    launches.settle("tensor", 9, 0, contest=contest)
    gone = weakref.ref(contest)
    del contest, launches
    gc.collect()
    assert gone() is None


def test_threads_launch_at_once():
    launches, launched = Launches(("a",), ()), []
    reading = Reading(memory=[("a", False, 0)])

    def launch():
        for number in range(500):
            launches(Tensor())
            if number % 50 == 0:
                launches.launcher.forget()
                launches.own(Tensor(), reading=reading, launch=lambda *launch: launched.append(launch))

    threads = [threading.Thread(target=launch) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(launched) + len(launches.left) == 2000 and launches.counts().get("twill", 0) == len(launched)
