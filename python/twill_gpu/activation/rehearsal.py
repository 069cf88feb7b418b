"""`TWILL=wait`: who is the fastest is settled on copies of a launch's memory, before the launch itself.

So all launches of a run are made by one side. The processes of a job that share a cache have the same: the first of them settles,
and the others find its record.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..contest import STOCK, Contest, Side
from .copies import Copies

if TYPE_CHECKING:
    from .activity import Activity
    from .specialisation import Specialised

LAUNCHES = 64
"""Launches of each side after which there is no winner."""
LOCK_SECONDS = 120.0
"""How long a process waits for another one that settles."""

Launcher = Callable[[Side, dict[str, Any]], "Callable[[dict[str, Any]], Any] | None"]
"""What launches a side on arguments; None where it cannot be launched now."""


def settled(activity: Activity, found: Specialised, key: tuple[int, ...], bound: dict[str, Any], launcher: Launcher) -> Contest:
    """The contest of a class of launches, with a winner: stock Triton, in this process, where nothing can be tried."""
    import torch

    gpu = activity.gpu
    assert gpu is not None, "there is a contest"
    try:
        contest = _recalled(found, key)
        if contest.winner is not None:
            return contest
        # What other processes have to do with is behind this one before they may wait for it.
        torch.cuda.synchronize()
        with activity.records.alone(found.record_of(key), LOCK_SECONDS):
            contest = _recalled(found, key)
            if contest.winner is None:
                _settle(found, contest, bound, launcher)
            return contest
    except Exception as error:
        contest = found.contests[key] = Contest.settled(gpu, STOCK, {})
        activity.end_trial(found.digest)
        activity.note(found, f"nothing is tried: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
        return contest


def _recalled(found: Specialised, key: tuple[int, ...]) -> Contest:
    """The contest as records have it: another process may have settled it."""
    found.contests.pop(key, None)
    found.activity.outcomes.forget(found.record_of(key))
    contest = found.contest_for(key)
    assert contest is not None, "there is a GPU"
    return contest


def _settle(found: Specialised, contest: Contest, bound: dict[str, Any], launcher: Launcher) -> None:
    """Launches on copies until there is a winner. Raises what stands in the way."""
    import torch

    why = found.why_not_on_copies
    if why is not None:
        raise ValueError(why)
    copies = Copies(bound, found.read_only)
    for _ in range(LAUNCHES * len(contest.sides)):
        side = contest.turn()
        if contest.winner is not None:
            return
        copies.restore()
        try:
            launch = launcher(side, copies.values)
        except Exception as error:
            # It refuses these arguments.
            found.give_up(side, f"{type(error).__name__}: {error}")
            contest.forfeit(side)
            continue
        if launch is not None:
            contest.launch(side, partial(launch, copies.values))
        elif side in found.challengers:
            raise ValueError("a kernel cannot be launched on this device")
        else:
            contest.forfeit(side)
        torch.cuda.current_stream().synchronize()
    raise ValueError("launches on copies took no time that can be told")
