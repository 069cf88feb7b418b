"""Machine code of kernels that the cache has is loaded of those alone that may be launched, of each once; no compiler runs."""

import threading
from types import SimpleNamespace

import pytest
from twill_gpu.activation.unfinished import Unfinished
from twill_gpu.contest import CUDA, TWILL

PATIENCE = 20


class Kernel:
    """One of Twill's; error: what its machine code ends with. is_kept: whether that is there."""

    def __init__(self, error=None, is_kept=True):
        self.made, self.is_shed, self._error, self.is_kept = 0, False, error, is_kept

    def compile(self):
        self.made += 1
        if self._error is not None:
            raise self._error

    def shed(self):
        self.is_shed = True


@pytest.fixture
def made():
    """Those of a specialisation, with two kernels; what was told of them."""
    told = SimpleNamespace(failed=[], absent=[], all=threading.Event(), kernels={TWILL: Kernel(), CUDA: Kernel(ValueError("no"))})
    activity = SimpleNamespace(loading=threading.RLock(), has_ended=False)
    failed = lambda side, error: told.failed.append((side, str(error)))  # noqa: E731
    told.unfinished = Unfinished(activity, failed, told.absent.append, told.all.set)
    for side, kernel in told.kernels.items():
        told.unfinished.add(side, kernel)
    return told


def test_one_is_made_once_and_the_others_are_not(made):
    for _ in range(2):
        made.unfinished.finish(TWILL)
    assert (made.kernels[TWILL].made, made.kernels[TWILL].is_shed, made.kernels[CUDA].made) == (1, True, 0)
    assert TWILL not in made.unfinished and CUDA in made.unfinished


def test_all_are_made_behind_and_a_failure_is_told(made):
    made.unfinished.finish_behind()
    assert made.all.wait(PATIENCE)
    assert [kernel.made for kernel in made.kernels.values()] == [1, 1]
    assert made.failed == [(CUDA, "no")] and not made.unfinished


def test_what_is_dropped_is_not_made(made):
    made.unfinished.drop(CUDA)
    made.unfinished.finish(CUDA)
    assert made.kernels[CUDA].made == 0 and not made.failed


def test_what_has_to_be_assembled_is_left_to_another_process(made):
    made.kernels[TWILL].is_kept = False
    made.unfinished.finish(TWILL)
    assert made.absent == [TWILL] and made.kernels[TWILL].made == 0
    assert TWILL not in made.unfinished
