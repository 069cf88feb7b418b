"""Machine code of kernels that the cache has: of those alone that may be launched, and of each once."""

import threading
from types import SimpleNamespace

import pytest
from twill_gpu.activation.unfinished import Unfinished
from twill_gpu.contest import CUDA, TWILL

PATIENCE = 20


class Kernel:
    """One of Twill's; error: what its machine code ends with."""

    def __init__(self, error=None):
        self.made, self.is_shed, self._error = 0, False, error

    def compile(self):
        self.made += 1
        if self._error is not None:
            raise self._error

    def shed(self):
        self.is_shed = True


@pytest.fixture
def made(tmp_path):
    """Those of a specialisation, with two kernels; what was told of them."""
    told = SimpleNamespace(failed=[], all=threading.Event(), kernels={TWILL: Kernel(), CUDA: Kernel(ValueError("no"))}, folders={})
    activity = SimpleNamespace(loading=threading.RLock(), has_ended=False)
    told.unfinished = Unfinished(activity, lambda side, error: told.failed.append((side, str(error))), told.all.set)
    for number, (side, kernel) in enumerate(told.kernels.items()):
        folder = told.folders[side] = tmp_path / str(number)
        folder.mkdir()
        told.unfinished.add(side, kernel, folder)
    return told


def test_one_is_made_once_and_the_others_are_not(made):
    for _ in range(2):
        made.unfinished.finish(TWILL)
    assert (made.kernels[TWILL].made, made.kernels[TWILL].is_shed, made.kernels[CUDA].made) == (1, True, 0)
    assert TWILL not in made.unfinished and CUDA in made.unfinished
    assert not made.folders[TWILL].exists() and made.folders[CUDA].exists()


def test_all_are_made_behind_and_a_failure_is_told(made):
    made.unfinished.finish_behind()
    assert made.all.wait(PATIENCE)
    assert [kernel.made for kernel in made.kernels.values()] == [1, 1]
    assert made.failed == [(CUDA, "no")] and not made.unfinished
    assert not any(folder.exists() for folder in made.folders.values())


def test_what_is_dropped_is_not_made(made):
    made.unfinished.drop(CUDA)
    made.unfinished.finish(CUDA)
    assert made.kernels[CUDA].made == 0 and not made.folders[CUDA].exists() and not made.failed
