"""Applications as processes of their own: whatever happens to Twill, their results are stock Triton's.

activation_kills.py has what takes longer.
"""

import errno
import os
import shutil

import pytest
from applications import run


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache that an application left, whose kernel a background process made."""
    folder, scratch = tmp_path_factory.mktemp("cache"), tmp_path_factory.mktemp("scratch")
    left = run("plain", 60, TWILL="wait", TWILL_CACHE=folder, TMPDIR=scratch)
    right(left)
    assert left.twill > 5
    # Neither it nor the processes that it killed leave anything else.
    assert not [one for one in os.listdir(scratch) if one.startswith("twill-")]
    return folder


def right(ended):
    """That an application ended well, and each launch was made once with its arguments."""
    assert ended.code == 0 and not ended.error and ended.lines, ended
    assert [line["memory"] for line in ended.lines] == [line["asked"] for line in ended.lines]


def test_a_fork_after_launches(cache):
    ended = run("forking", 5, TWILL="1", TWILL_CACHE=cache)
    right(ended)
    assert sorted(line["child"] for line in ended.lines) == [False, True]
    # What is settled is for both; and the parent goes on after the child has ended.
    assert min(line["twill"] for line in ended.lines) > 10


def test_a_child_tries_nothing(cache, tmp_path):
    """Its end says nothing about a kernel: it may leave by `os._exit`."""
    copy = shutil.copytree(cache, tmp_path / "cache")
    shutil.rmtree(copy / "activation-v1")
    # Machine code of kernels that nothing is on record of is made behind launches.
    ended = run("processes", "fork", 5, 12, TWILL="1", TWILL_CACHE=copy)
    right(ended)
    assert not list((copy / "activation-v1").glob("*.trial"))
    assert sorted(bool(line["twill"]) for line in ended.lines) == [False, False, True]


def test_a_fork_while_a_kernel_is_loaded(cache):
    ended = run("forking_while_loading", 5, TWILL="1", TWILL_CACHE=cache)
    right(ended)
    twill = {line["child"]: line["twill"] for line in ended.lines}
    # Whether a second function's kernel is loaded before the parent's last launch is for the machine to say.
    assert twill[True] == 5 and 5 <= twill[False] < 10, twill


def test_the_end_while_a_kernel_is_loaded(cache):
    ended = run("ending_while_loading", 2, TWILL="1", TWILL_CACHE=cache)
    right(ended)
    assert ended.lines[0]["whole"]


def test_threads(cache):
    ended = run("threads", 6, TWILL="1", TWILL_CACHE=cache)
    right(ended)
    assert ended.twill > 40


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_of_multiprocessing(cache, method):
    ended = run("processes", method, 5, TWILL="1", TWILL_CACHE=cache)
    right(ended)
    assert [line["twill"] for line in ended.lines] == [4, 4, 4]


def test_a_disk_without_space_condemns_no_kernel(cache, tmp_path):
    """Nor does it stop an application that needs none."""
    kept = tmp_path / "cache"
    ended = run("without_space", 5, TWILL="wait", TWILL_LOG="summary", TWILL_CACHE=kept)
    assert (ended.code, ended.twill) == (0, 0) and ended.lines[0]["memory"] == ended.lines[0]["asked"]
    assert os.strerror(errno.EFBIG) in ended.error
    shutil.copytree(cache / "twill-cache-v1", kept / "twill-cache-v1", dirs_exist_ok=True)
    assert run("plain", 5, TWILL="wait", TWILL_CACHE=kept).twill > 0


def test_a_cache_that_cannot_be_written(cache, tmp_path):
    (tmp_path / "file").write_text("")
    ended = run("plain", 5, TWILL="1", TWILL_CACHE=tmp_path / "file" / "cache")
    right(ended)
