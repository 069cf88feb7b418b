"""Who has the launches of a specialisation, by their class: the contests, and what is on record of them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from .._twill import MOST_BITS
from ..contest import STOCK, Contest, Gpu, Side
from ..scheduled import ScheduledKernel
from .configurations import Configuration
from .kept import Kept
from .records import digest_of
from .settings import Mode

if TYPE_CHECKING:
    from .activity import Activity
    from .unfinished import Unfinished

SHARE = 0.01
"""The part of a kernel's time so far that trials in the background may cost."""
REMEMBERED = 256
"""Contests that are kept for a specialisation."""
CONTESTS = 16384
"""Contests that are kept for all of them. What is forgotten is read again, from `Outcomes`."""
OPEN = 16
"""Contests of a specialisation that stay when room is made, as what they have found out so far is nowhere else."""


class Contested(ABC):
    """What has contests: a specialisation, as far as they need it."""

    activity: Activity
    device: int
    digest: str
    """Of all that its kernels depend on."""
    numbers: list[str] | None
    """Names of the whole numbers that tell launches apart; known after a launch."""
    contests: dict[Any, Contest]
    _unfinished: Unfinished
    assembled_again: set[Side]
    """Kernels whose machine code was gone, and is made by another process. What is on record of them counts when it is there."""

    @property
    @abstractmethod
    def challengers(self) -> tuple[Side, ...]:
        """Who may be faster than stock Triton as its author has it."""

    @property
    @abstractmethod
    def _own(self) -> Configuration | None:
        """Its author's warps and stages, as far as they are known."""

    @abstractmethod
    def finished(self, side: Side) -> ScheduledKernel | None:
        """One of Twill's kernels with its machine code."""

    @abstractmethod
    def tell(self) -> None:
        """Says on stderr what became of it, where that was asked for."""

    def class_of(self, bound: dict[str, Any], grid: tuple[int, ...]) -> tuple[int, ...]:
        """The grid, and the bits of the whole numbers among the arguments: launches that differ in no more are alike in work.

        Large numbers are alike.
        """
        if self.numbers is None:
            # There is no kernel of Twill's that says which they are.
            self.numbers = [name for name, value in bound.items() if type(value) is int]
        return (*grid, *[min(int(bound[name]).bit_length(), MOST_BITS) for name in self.numbers])

    def make_room(self) -> None:
        """Forgets contests that are settled, which are read again, and all but the newest of those that are open."""
        under_way = [(key, one) for key, one in list(self.contests.items()) if one.winner is None]
        self.contests = dict(under_way[-OPEN:])

    def contest_for(self, key: tuple[int, ...]) -> Contest | None:
        """The contest for a class of launches; None where nothing can be timed, and stock Triton has it.

        While machine code of kernels is loaded or made, launches of which nothing is on record are stock Triton's, by a contest
        that is not kept: the launcher forgets what is settled by it once that is done.
        """
        found = self.contests.get(key)
        if found is None:
            gpu = self.activity.gpu
            if gpu is None:
                return None
            if len(self.contests) >= min(REMEMBERED, CONTESTS // max(1, self.activity.kernels)):
                self.make_room()
            record = self.record_of(key)
            found = self._on_record(gpu, record)
            if found is None and self.assembled_again:
                return Contest.settled(gpu, STOCK, {})
            if found is None and self._unfinished:
                self._unfinished.finish_behind()
                return Contest.settled(gpu, STOCK, {})
            winner = None if found is None else found.winner
            if winner is not None and winner in self._unfinished and self.finished(winner) is None:
                return None
            found = self.contests[key] = found or self._contest(gpu, record)
        return found

    def record_of(self, key: tuple[int, ...]) -> str:
        """Where the outcome of a class is kept."""
        return digest_of(json.dumps([self.digest, self._own, self.activity.gpu_name(self.device), *key]))

    def _on_record(self, gpu: Gpu, key: str) -> Contest | None:
        """A contest whose winner is on record, or that nobody may settle; None where it is to be found out."""
        sides = (STOCK, *self.challengers)
        kept = self.activity.outcomes.read(key)
        if kept is not None:
            try:
                times = {Side(side): float(milliseconds) for side, milliseconds in kept["times"].items()}
                # One that was not there then may be the fastest.
                if kept["winner"] in sides and set(sides) <= set(kept["sides"]):
                    return Contest.settled(gpu, Side(kept["winner"]), times)
            except (AttributeError, KeyError, TypeError, ValueError):
                # Of another version.
                pass
            # What another process has found out since may do.
            self.activity.outcomes.forget(key)
        if self.activity.settings.mode is Mode.FROZEN or self.activity.is_deterministic() or self.activity.is_forked:
            return Contest.settled(gpu, STOCK, {})
        return None

    def _contest(self, gpu: Gpu, key: str) -> Contest:
        """A contest that is open."""
        waits = self.activity.settings.mode is not Mode.BACKGROUND
        self.activity.begin_trial(self.digest)
        return Kept(gpu, (STOCK, *self.challengers), None if waits else SHARE, lambda won: self._keep(key, won), self._end_trial)

    def _keep(self, key: str, settled: Contest) -> None:
        assert settled.winner is not None, "it is settled"
        record = {"winner": settled.winner, "times": settled.milliseconds, "sides": settled.sides}
        self.activity.outcomes.write(key, record)
        self._end_trial()
        self.tell()

    def _end_trial(self) -> None:
        """What was launched for the first time has ended well, if no other contest has something under way."""
        if all(one.winner is not None or one.has_run for one in list(self.contests.values())):
            self.activity.end_trial(self.digest)
