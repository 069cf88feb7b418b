"""Which of several kernels is the fastest for a grid and sizes: by the times of a program's own launches.

No launch is made twice, since a kernel may change what it reads: launches go round all sides until each has its samples,
and the fastest one has all that follow. One side is the incumbent: it has the launches before, and another one has to be
faster beyond doubt. A side that is clearly behind gets no more launches. Rounds are in random order: launches that look
alike may be of different work by turns, all of one kind for one side if sides took turns as well.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NewType, Protocol

SAMPLES = 6
"""Launches of each side that are timed, after a first that is not: it may compile and load."""
GAIN = 0.02
"""The part by which the challenger must be faster than the incumbent, at the lower bound of its speed-up."""
ERRORS = 2.0
"""Standard errors between a speed-up and its lower bound: 97.7 % of a normal distribution lie above."""
MORE_ERRORS = 0.7
"""As many more where the best of eight challengers is taken: the same part of a normal distribution, divided by eight."""
FAR = 1.5
"""A challenger whose two first launches each take so many times the incumbent's time has lost."""
BEHIND = 1.05
"""So has one whose `FEW` first launches each take so many times the time of another side's."""
ALIKE = 1.01
"""Of sides whose times are within this of the fastest, the first is taken: later ones cost the CPU more, or gain by chance."""
FEW = 3
SPIN = 200_000
"""Cycles that an idle stream waits before a timed launch, some 0.1 ms: otherwise its time would be that of the CPU's launch."""
SPIN_MILLISECONDS = 0.12
EVENTS_MILLISECONDS = 0.02
"""What the events of a timed launch cost."""
PATIENCE = 8
"""Looks at an idle stream, less twice those at one at work, after which trials wait for work no longer."""
GAPS = 8
"""Launches that the stream's work ended before, after which a spin is before each; and so many more, after which they count."""
REST = 8
"""Launches at most between two such looks, and two at what was timed. Their number is random: the stream may be idle at each so many."""

Side = NewType("Side", str)
"""Whose kernel is launched."""
TWILL, MULTISTAGE, ONE_STAGE, STOCK = Side("twill"), Side("twill, multistage"), Side("twill, one stage"), Side("stock")
CUDA = Side("twill, cuda")
OWN = (TWILL, CUDA, MULTISTAGE, ONE_STAGE)
"""Those of Twill's kernels: by the schedule, in Gluon and in CUDA, and without warp specialisation, the last with nothing loaded ahead."""


class Event(Protocol):
    """A point on a stream, as `torch.cuda.Event` is one."""

    def record(self) -> object: ...
    def query(self) -> bool: ...
    def elapsed_time(self, end: Any) -> float: ...


class Gpu(NamedTuple):
    """What a contest needs of torch."""

    event: Callable[[], Event]
    is_capturing: Callable[[], bool]
    """Whether launches go into a CUDA graph."""
    is_idle: Callable[[], bool]
    """Whether the stream in use has no work."""
    spin: Callable[[], object] | None
    """Has the stream in use wait for about as long as the CPU takes to launch a kernel; None where nothing does that."""


class Contest:
    """A contest for launches that are alike; until it is settled, `turn` says who is next.

    sides: the incumbent, then its challengers.
    share: the part of the time of all launches so far that trials may cost; None for no limit.
    """

    def __init__(self, gpu: Gpu, sides: Sequence[Side] = (TWILL, STOCK), share: float | None = None):
        self.gpu, self._share = gpu, share
        self.sides = tuple(sides)
        self._running = list(sides)
        """Those that have not lost."""
        self._order = list(sides)
        """That of a round; of the first, which is not timed, as they are given."""
        self._random, self._round = random.Random(0), 0
        self._lock = threading.Lock()
        self._launched = 0
        self._spins = 0
        self._gaps = 0
        """Launches whose time is not known, as the GPU waited for the CPU in it."""
        self._idle = 0
        """Looks at an idle stream, less twice those at one at work."""
        self._rests_until = 0
        """So many launches must have been made before the next trial: until then it is not looked at."""
        self._looks_at = 0
        """So many before the next look at the stream, or at what was timed on it."""
        self._trials = dict.fromkeys(sides, 0)
        """Launches of each side that count as trials."""
        self._pending: list[tuple[Side, Event, Event, bool]] = []
        """Launches between events, and whether their time is that of a trial."""
        self._left_out: list[tuple[Side, float]] = []
        """Times of those that are none: what they cost at most."""
        self._failures = 0
        """Launches of which the events failed."""
        self._times: dict[Side, list[float]] = {side: [] for side in sides}
        self.milliseconds: dict[Side, float] = {}
        """Medians, once it is settled."""
        self.winner: Side | None = None

    @classmethod
    def settled(cls, gpu: Gpu, winner: Side, milliseconds: dict[Side, float]) -> Contest:
        """A contest that was settled before."""
        contest = cls(gpu, tuple(milliseconds) or (winner,))
        contest.winner, contest.milliseconds = winner, dict(milliseconds)
        return contest

    @property
    def incumbent(self) -> Side:
        """Who has the launches that are no trials."""
        return self._running[0]

    def speed_of(self, side: Side | None) -> float | None:
        """Stock Triton's time by that of a side; None where one of them was not timed."""
        stock, other = self.milliseconds.get(STOCK), None if side is None else self.milliseconds.get(side)
        return stock / other if stock and other else None

    def rest(self) -> int:
        """How many of the next launches are the incumbent's without a look, as trials have cost what they may; counts them.

        Most launches before a contest is settled are of this kind.
        """
        if self.winner is not None:
            return 0
        until = self._looks_at if self._pending else max(self._looks_at, self._rests_until)
        rest = max(0, until - self._launched)
        self._launched += rest
        return rest

    def turn(self) -> Side:
        """The side that has the next launch; the incumbent's into a CUDA graph, where none can be timed."""
        if self.winner is not None:
            return self.winner
        # Another thread may be at it; and what a stream says of itself may be refused while another one is captured.
        if self._launched < self._looks_at or self.gpu.is_capturing() or not self._lock.acquire(blocking=False):
            return self.incumbent
        try:
            self._collect()
            if self.winner is not None:
                return self.winner
            if self._is_over() or not self._may_try() or self._waits_for_work():
                return self.incumbent
            return self._next()
        except Exception:
            return self.incumbent
        finally:
            self._lock.release()

    def _next(self) -> Side:
        """The side of the next trial."""
        fewest = min(map(self._trials.__getitem__, self._running))
        if fewest > self._round:
            self._round = fewest
            self._random.shuffle(self._order)
        return next(side for side in self._order if side in self._running and self._trials[side] == fewest)

    def launch(self, side: Side, launch: Callable[[], object]) -> object:
        """Launches, and records the time unless there are enough of them."""
        self._launched += 1
        is_early = self._trials[side] > min(map(self._trials.__getitem__, self._running))
        is_resting = self._launched <= max(self._looks_at, self._rests_until)
        if self._is_over() or is_early or is_resting or self.gpu.is_capturing():
            return launch()
        if self._trials[side] == 0:
            result = launch()
            self._trials[side] += 1
            return result
        spin = self.gpu.spin
        try:
            if spin is not None and (self._gaps > GAPS or self.gpu.is_idle()):
                self._spins += 1
                spin()
            before, after = self.gpu.event(), self.gpu.event()
            before.record()
        except Exception:
            return launch()
        # A launch that fails is none.
        result = launch()
        try:
            after.record()
            is_behind = spin is None or not before.query()
        except Exception:
            self._fail()
            return result
        # The GPU may have waited for the CPU in between; where it always does, that is what a launch takes.
        counts = is_behind or self._gaps >= 2 * GAPS
        self._trials[side] += counts
        self._gaps = max(0, self._gaps - 1) if is_behind else self._gaps + 1
        self._pending.append((side, before, after, counts))
        self._rest_a_while()
        return result

    def _fail(self) -> None:
        """An event failed; where they go on failing, nothing can be found out."""
        self._failures += 1
        if self._failures > GAPS and self.winner is None:
            self.winner = self.incumbent

    @property
    def has_run(self) -> bool:
        """Whether a launch of each side that has not lost has ended well."""
        return all(self._times[side] for side in self._running)

    def forfeit(self, side: Side) -> None:
        """A side cannot launch: it has lost, whatever was found before."""
        with self._lock:
            if side in self._running:
                self._running.remove(side)
            if self.winner == side or (self.winner is None and len(self._running) == 1):
                self.winner = self._running[0]

    def leave(self) -> None:
        """Nothing can be tried: the incumbent has it, and nobody is told."""
        with self._lock:
            self.winner = self.incumbent

    @property
    def cost(self) -> float:
        """Milliseconds that trials took more than the incumbent's launches would have."""
        usual = statistics.median(self._times[self.incumbent] or [0.0])
        timed = [(side, time) for side, times in self._times.items() for time in times] + self._left_out
        slower = sum(max(0.0, time - usual) for side, time in timed if side != self.incumbent)
        return slower + SPIN_MILLISECONDS * self._spins + EVENTS_MILLISECONDS * len(timed)

    def _waits_for_work(self) -> bool:
        """Whether a trial is left for later, as the stream is idle: on one at work it needs no spin. Who waits for trials has them now."""
        if self._share is None or self.gpu.spin is None or self._idle >= PATIENCE:
            return False
        if not self.gpu.is_idle():
            self._idle = max(0, self._idle - 2)
            return False
        self._idle += 1
        self._rest_a_while()
        return True

    def _rest_a_while(self) -> None:
        if self._share is not None:
            self._looks_at = self._launched + self._random.randint(1, REST)

    def _may_try(self) -> bool:
        if self._share is None or not self._times[self.incumbent]:
            return True
        usual = statistics.median(self._times[self.incumbent])
        if usual > 0.0:
            self._rests_until = math.ceil((self.cost + SPIN_MILLISECONDS) / (self._share * usual))
        return self._rests_until <= self._launched

    def _is_over(self) -> bool:
        return self.winner is not None or min(map(self._trials.__getitem__, self._running)) > SAMPLES

    def _collect(self) -> None:
        """Takes the times of launches that have ended; nobody waits for them."""
        while self._pending and self._pending[0][2].query():
            side, before, after, counts = self._pending.pop(0)
            try:
                time = before.elapsed_time(after)
            except Exception:
                self._trials[side] -= counts
                self._fail()
                return
            if counts:
                self._times[side].append(time)
            else:
                self._left_out.append((side, time))
        for side in self._running[1:]:
            if self._has_lost(side):
                self._running.remove(side)
        if len(self._running) == 1 or min(len(self._times[side]) for side in self._running) >= SAMPLES:
            self._settle()

    def _has_lost(self, side: Side) -> bool:
        """Whether a challenger is clearly behind the incumbent, or behind anybody."""
        mine, usual = self._times[side], self._times[self.incumbent]
        if min(len(mine), len(usual)) > 1 and min(mine) > FAR * max(usual):
            return True
        others = [self._times[other] for other in self._running if other != side]
        return len(mine) >= FEW and any(len(one) >= FEW and min(mine) > BEHIND * max(one) for one in others)

    def _settle(self) -> None:
        self._pending.clear()
        times = {side: of for side, of in self._times.items() if of}
        self.milliseconds = {side: statistics.median(of) for side, of in times.items()}
        fastest = min(self.milliseconds[side] for side in self._running)
        best = next(side for side in self._running if self.milliseconds[side] <= ALIKE * fastest)
        # The best of several is the luckiest of them, too.
        errors = ERRORS + (MORE_ERRORS if len(self.sides) > 2 else 0.0)
        bound = lower_bound(times[self.incumbent], times[best], errors)
        self.winner = best if bound > 1 + GAIN else self.incumbent
        # Thousands of contests are kept.
        self._times, self._left_out = {side: [time] for side, time in self.milliseconds.items()}, []


def lower_bound(usual: list[float], others: list[float], errors: float = ERRORS) -> float:
    """The lower bound of the speed-up of the others: the ratio of medians, less its standard errors.

    A median's is 1.2533 σ / √n for a normal distribution, whose σ is 1.4826 times the median deviation from the median. Where
    launches are of two kinds, that may be nothing: no error is less than that of a mean without the longest time.
    """

    def error(times: list[float]) -> float:
        middle = statistics.median(times)
        deviation = statistics.median(abs(time - middle) for time in times)
        spread = statistics.pstdev(sorted(times)[:-1]) if len(times) > 1 else 0.0
        return max(1.4826 * 1.2533 * deviation, spread) / middle / math.sqrt(len(times)) if middle else 0.0

    middle = statistics.median(others)
    if not middle:
        return 1.0
    return statistics.median(usual) / middle * math.exp(-errors * math.hypot(error(usual), error(others)))


def gpu() -> Gpu | None:
    """The GPU in use as torch knows it; None where nothing can be timed."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not hasattr(cuda, "Event") or not hasattr(cuda, "is_current_stream_capturing"):
        return None

    sleep = getattr(cuda, "_sleep", None)
    return Gpu(
        lambda: cuda.Event(enable_timing=True),
        cuda.is_current_stream_capturing,
        lambda: bool(cuda.current_stream().query()),
        None if sleep is None else lambda: sleep(SPIN),
    )


def begin() -> Contest | None:
    """A contest on the GPU in use, Twill's kernel the incumbent; None where nothing can be timed."""
    found = gpu()
    return None if found is None else Contest(found)
