"""Calls of an autotuner that are alike: which configuration has them, in stock Triton's form or in one of Twill's."""

from __future__ import annotations

import json
import math
import re
import statistics
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import backend
from ..contest import OWN, STOCK, Contest, Side
from . import turn
from .contested import SHARE
from .kept import Kept
from .records import digest_of
from .settings import Mode
from .specialisation import WAIT_SECONDS, Specialised, Status

if TYPE_CHECKING:
    from .activity import Activity
    from .launches import Runner
    from .tuning import Call, Tuning

AUTHOR = Side("the configuration of triton.autotune")
"""What stock Triton's comparison chose, launched by whoever is the fastest for it."""
MOST = 2
"""Other configurations that are tried: those of the best bounds."""
FAR = 2.0
"""Configurations that take stock Triton so many times as long as its choice are none of them."""
BETTER = 1.02
"""By how much a bound must beat that of stock Triton's choice: less is not seen in a contest either."""
REMEMBERED = 1024
"""Calls that may go into a CUDA graph."""
LOOKS = 32
"""Calls between two looks whether there may be a contest."""
MULTIPROCESSORS = 132
"""Of a Hopper GPU, where torch does not say."""
_DOT = re.compile(r"\btt\.dot(?:_scaled)?\b[^\n]*? : tensor<([\dx]+)x[^>]*>[^*\n]*\* tensor<([\dx]+)x[^>]*>")


class Seen(NamedTuple):
    """The first launch of a configuration while stock Triton compares them."""

    runner: Runner
    grid: tuple[int, ...]


class Try(NamedTuple):
    """A configuration, and the side of its specialisation that may be launched."""

    configuration: Any
    side: Side
    found: Specialised | None
    """Known once it was launched, or its kernel was made."""


class Taken(NamedTuple):
    """A configuration that has won, and the kernel that has its launches."""

    tuning: Tuning
    key: Any
    chosen: Any
    """What stock Triton's comparison chose for the key."""
    configuration: Any
    found: Specialised
    side: Side

    def holds(self, activity: Activity) -> bool:
        """Whether a call may have it now without a further look.

        Into a CUDA graph too: what went before, to warm up, was launched by it.
        """
        return self.side in self.found.kernels and not turn.is_hooked(activity)


class Round:
    """Calls that are alike, under one key of the autotuner."""

    def __init__(self, tuning: Tuning, key: Any, chosen: Any, likeness: tuple[Any, ...]):
        self._tuning, self._activity, self.key, self.chosen = tuning, tuning.activity, key, chosen
        self._likeness = likeness
        self._author: Specialised | None = None
        """What launches of stock Triton's choice came to."""
        self._bounds: Future[dict[str, Any]] | None = None
        self._others: list[tuple[Any, Seen]] = []
        self._made: list[tuple[Any, Specialised]] | None = None
        self._tries: dict[Side, Try] = {}
        self._contest: Contest | None = None
        self._ran: set[Any] = set()
        """Calls that a kernel of Twill's for another configuration than stock Triton's choice has had."""
        self.is_over = False
        """Stock Triton's choice has all calls."""
        self._taken: Taken | None = None
        """What has won, once it was launched."""
        self._lock = threading.Lock()
        if self._activity.settings.mode is not Mode.CHECK:
            self._recall()
        if self._contest is None and (self._activity.settings.mode is Mode.CHECK or self._activity.settings.settles_first):
            self.is_over = True

    def next(self, call: Call) -> tuple[Side, Any]:
        """Whose turn it is, and its configuration if it is not stock Triton's choice."""
        activity = self._activity
        is_capturing = activity.is_capturing()
        if not self.is_over and self._contest is None and not is_capturing and self._lock.acquire(blocking=False):
            try:
                self._advance()
            except Exception:
                self.is_over = True
            finally:
                self._lock.release()
        contest = self._contest
        # Profilers are told of stock Triton's kernels.
        if self.is_over or contest is None or turn.is_hooked(activity) or (contest.winner is None and activity.is_forked):
            return AUTHOR, None
        side = contest.turn()
        if side == AUTHOR:
            return AUTHOR, None
        # What was not launched like this before cannot be launched into a graph.
        is_known = call.exactly() in self._ran
        if is_capturing and not is_known:
            return AUTHOR, None
        return side, self._tries[side].configuration

    def launch(self, side: Side, one: turn.Launch, exactly: Any) -> Any:
        """Launches what has the turn. one: by the specialisation of its configuration. exactly: as `Call.exactly`."""
        contest, found = self._contest, one.found
        if side == AUTHOR or contest is None:
            self._author = found
            is_trial = contest is not None and contest.winner is None
            return contest.launch(AUTHOR, lambda: turn.launch(one)) if contest is not None and is_trial else turn.launch(one)
        own = self._tries[side].side
        if not self._activity.is_capturing():
            found.wait_until_begun()
        if own in found.assembled_again:
            return one.by_stock()
        if own not in found.kernels:
            # Its kernel is gone, or was never there.
            self._forfeit(contest, side)
            return one.by_stock()
        result = turn.launch(one, (own, _Trial(contest, side)))
        if own in found.assembled_again:
            return result
        if own not in found.kernels:
            self._forfeit(contest, side)
            return result
        if len(self._ran) < REMEMBERED:
            self._ran.add(exactly)
        if contest.winner == side:
            self._take(contest, self._tries[side], one)
        return result

    def _take(self, contest: Contest, won: Try, one: turn.Launch) -> None:
        """Has launches like one, of the configuration that has won, made by the kernel that has."""
        found, known = one.found, one.found.contests
        key = found.class_of(one.bound, one.grid)
        if key not in known:
            # What the status shows of it.
            shown = known.pop((AUTHOR, self.key), None)
            is_own = shown is not None and shown.winner == won.side
            known[key] = shown if shown is not None and is_own else Contest.settled(contest.gpu, won.side, {})
        taken = Taken(self._tuning, self.key, self.chosen, won.configuration, found, won.side)
        self._taken = taken if known[key].winner == won.side else None

    def settled(self) -> tuple[bool | Taken, int | None] | None:
        """What has these calls without a further look, `True` for stock Triton's choice, and how many of them, if not all."""
        contest = self._contest
        if self.is_over:
            return True, None
        if contest is None:
            waits = self._activity.settings.mode is not Mode.BACKGROUND
            return None if waits or self._author is None else (True, LOOKS)
        if contest.winner is None:
            rest = contest.rest()
            return (True, rest) if rest else None
        return None if self._taken is None else (self._taken, None)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to be found out."""
        return self.is_over or (self._contest is not None and self._contest.winner is not None)

    def _forfeit(self, contest: Contest, side: Side) -> None:
        contest.forfeit(side)
        self.is_over = contest.winner == AUTHOR

    # --------------------------------------------------------------------------------------------- towards a contest
    def _advance(self) -> None:
        """Goes on as far as can be without waiting; in modes that wait for kernels, as far as it goes."""
        waits = self._activity.settings.mode is not Mode.BACKGROUND
        if self._bounds is None:
            if self._author is None or not self._is_settled(self._author):
                return
            self._others = self._worth_a_bound()
            if not self._others:
                self.is_over = True
                return
            texts = [seen.runner.ttir for _, seen in self._others]
            self._bounds = self._activity.workers.bound(texts, self._tuning.function.__name__, self._author.machine)
        if self._made is None:
            if waits:
                self._bounds.exception(WAIT_SECONDS)
            elif not self._bounds.done():
                return
            better = self._better(self._bounds.result()["bounds"])
            self._made = [(one, seen.runner.adopt()) for one, seen in better]
        if any(found.status is Status.WAITING for _, found in self._made):
            return
        for configuration, found in self._made:
            for side in OWN:
                if side in found.kernels:
                    self._tries[Side(f"{configuration}: {side}")] = Try(configuration, side, found)
        gpu = self._activity.gpu
        if not self._tries or gpu is None:
            self.is_over = True
            return
        for one in self._tries.values():
            self._activity.begin_trial(one.found.digest if one.found else "")
        self._contest = Kept(gpu, (AUTHOR, *self._tries), None if waits else SHARE, self._settled, self._end_trials)

    def _is_settled(self, author: Specialised) -> bool:
        """Whether it is known who is the fastest for stock Triton's choice, and something may be made beside it."""
        if author.status is Status.WAITING:
            return False
        contests = list(author.contests.values())
        if author.challengers and not (contests and all(one.winner is not None for one in contests)):
            return False
        if author.may_make() is not None or author.is_left:
            self.is_over = True
            return False
        return True

    def _worth_a_bound(self) -> list[tuple[Any, Seen]]:
        """Stock Triton's choice, and other configurations with another TTIR that it found not far behind."""
        compared = self._tuning.compared.get(self.key, {})
        own = compared.get(self.chosen)
        if own is None:
            return []
        found = {own.seen.runner.ttir: (self.chosen, own.seen)}
        for configuration, one in sorted(compared.items(), key=lambda item: item[1].milliseconds):
            if one.milliseconds <= FAR * own.milliseconds:
                found.setdefault(one.seen.runner.ttir, (configuration, one.seen))
        return list(found.values()) if len(found) > 1 else []

    def _better(self, bounds: Sequence[float | None]) -> list[tuple[Any, Seen]]:
        """Those of the best bounds that beat stock Triton's choice."""
        rates = [rate(seen, bound) for (_, seen), bound in zip(self._others, bounds)]
        if not rates[0]:
            return []
        ranked = sorted(range(1, len(rates)), key=lambda i: -rates[i])
        return [self._others[i] for i in ranked[:MOST] if rates[i] > BETTER * rates[0]]

    # --------------------------------------------------------------------------------------------- what is kept
    def _record(self) -> str:
        """Where it is kept who has won."""
        activity, function = self._activity, self._tuning.function
        configurations = [str(one) for one in self._tuning.configurations]
        device = activity.triton.runtime.driver.active.get_current_device()
        known = [function.cache_key, repr(self.key), repr(self._likeness), str(self.chosen), configurations]
        return digest_of(json.dumps([*known, activity.gpu_name(device), backend.toolchain(), activity.version]))

    def _recall(self) -> None:
        """Takes what an earlier process settled."""
        try:
            kept = self._activity.records.read(self._record())
            gpu = self._activity.gpu
            if kept is None or gpu is None:
                return
            times = {Side(side): float(milliseconds) for side, milliseconds in kept["times"].items()}
            winner = Side(kept["winner"])
            if winner == AUTHOR:
                self.is_over = True
                return
            chosen = next(one for one in self._tuning.configurations if str(one) == kept["configuration"])
            self._tries = {winner: Try(chosen, Side(kept["side"]), None)}
            self._contest = Contest.settled(gpu, winner, {AUTHOR: times[AUTHOR], winner: times[winner]})
        except (AttributeError, KeyError, TypeError, ValueError, StopIteration):
            # Of another version.
            return

    def _end_trials(self) -> None:
        """Everything that is tried was launched and has ended well."""
        for one in self._tries.values():
            if one.found is not None:
                self._activity.end_trial(one.found.digest)

    def _settled(self, contest: Contest) -> None:
        """Keeps who has won, and shows it with the specialisations that took part."""
        self._end_trials()
        winner = contest.winner or AUTHOR
        self.is_over = winner == AUTHOR
        record: dict[str, Any] = {"winner": winner, "times": contest.milliseconds}
        if winner in self._tries:
            record |= {"configuration": str(self._tries[winner].configuration), "side": self._tries[winner].side}
        self._activity.records.write(self._record(), record)
        own = contest.milliseconds.get(AUTHOR, 0.0)
        gains = [one.speed_of(one.winner) or 1.0 for one in self._author.contests.values()] if self._author else []
        stock = own * statistics.median(gains or [1.0])
        for side, one in self._tries.items():
            if one.found is not None:
                times = {STOCK: stock, one.side: contest.milliseconds.get(side, 0.0)}
                won = one.side if side == winner else STOCK
                if won == one.side or one.found.contests.get((AUTHOR, self.key)) is None:
                    one.found.contests[AUTHOR, self.key] = Contest.settled(contest.gpu, won, times)
                self._activity.tell(one.found)


class _Trial:
    """A contest as `turn.launch` sees it, when the turn is that of one side."""

    def __init__(self, contest: Contest, side: Side):
        self._contest, self._side = contest, side

    @property
    def winner(self) -> Side | None:
        return self._contest.winner

    def launch(self, _: Side, launch: Callable[[], object]) -> object:
        return self._contest.launch(self._side, launch)


def rate(seen: Seen, bound: float | None) -> float:
    """Products of a cycle that the proven bound allows: those of an iteration by its interval, where all programs take equally long.

    The last programs leave multiprocessors idle. 0 where nothing is known.
    """
    if not bound:
        return 0.0
    programs, multiprocessors = max(1, math.prod(seen.grid)), _multiprocessors(seen.runner.device)
    at_once = programs / math.ceil(programs / multiprocessors)
    return products(seen.runner.ttir) / bound * at_once


def products(ttir: str) -> int:
    """Multiplications of all MMAs of a TTIR, each once."""
    total = 0
    for left, right in _DOT.findall(ttir):
        a, b = ([int(size) for size in sizes.split("x")] for sizes in (left, right))
        total += math.prod(a) * b[-1]
    return total


def _multiprocessors(device: int) -> int:
    try:
        return int(sys.modules["torch"].cuda.get_device_properties(device).multi_processor_count)
    except Exception:
        return MULTIPROCESSORS
