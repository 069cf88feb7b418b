"""Times launches side by side on a card at its power limit. No torch at import.

Sustained: blocks of launches, contenders in turn and in opposite order every other round; only the second half of a
block counts, when clocks have settled. Burst: one short run of launches after a rest, submitted during a pause of the GPU that
hides the host.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

ROUNDS = 6
REHEARSED = 2
"""Rounds of a rehearsal."""
BLOCK_MS = 110.0
GROUP_MS = 2.0
"""Launches between two events, in time: events hinder launches that follow each other closely."""
BURSTS = 9
REST_SECONDS = 0.015


@dataclass
class Times:
    """Milliseconds a launch."""

    rounds: list[list[float]] = field(default_factory=list)
    burst: list[float] = field(default_factory=list)
    host: float = 0.0
    """What the host needs to submit one."""

    def summary(self) -> dict:
        every = sorted(time for one in self.rounds for time in one)
        low, middle, high = quartiles(every)
        return {
            "ms": middle,
            "ms_quartiles": [low, high],
            "ms_rounds": [statistics.median(one) for one in self.rounds],
            "burst_ms": statistics.median(self.burst) if self.burst else None,
            "host_ms": self.host,
            "host_bound": self.host > 0.9 * middle,
            "samples": len(every),
        }


def quartiles(values: list[float]) -> tuple[float, float, float]:
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


class GpuClock:
    """Events on the GPU's current stream."""

    def __init__(self):
        import torch

        self.cuda = torch.cuda

    def event(self) -> object:
        event = self.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, first: object, last: object) -> float:
        """Milliseconds; both must have happened."""
        return first.elapsed_time(last)

    def finish(self) -> None:
        self.cuda.synchronize()

    def pause(self) -> None:
        """Keep the GPU waiting while the host submits, about a millisecond."""
        self.cuda._sleep(2_000_000)

    def rest(self, seconds: float) -> None:
        time.sleep(seconds)


class HostClock:
    """The same on the CPU, where a launch is over when it returns."""

    def event(self) -> float:
        return time.perf_counter()

    def between(self, first: float, last: float) -> float:
        return (last - first) * 1000

    def finish(self) -> None:
        pass

    def pause(self) -> None:
        pass

    def rest(self, seconds: float) -> None:
        pass


def estimate(run: Callable[[], object], clock) -> float:
    """Milliseconds of a launch, roughly."""
    run()
    clock.finish()
    first = clock.event()
    run()
    run()
    last = clock.event()
    clock.finish()
    return max(clock.between(first, last) / 2, 0.005)


def block(run: Callable[[], object], launches: int, group: int, clock) -> tuple[list[float], float]:
    """Milliseconds of the launches in the second half, averaged over groups, and of the host for each."""
    groups = max(1, (launches // 2) // group)
    started = time.perf_counter()
    for _ in range(launches - groups * group):
        run()
    events = [clock.event()]
    for _ in range(groups):
        for _ in range(group):
            run()
        events.append(clock.event())
    host = (time.perf_counter() - started) * 1000 / launches
    clock.finish()
    return [clock.between(a, b) / group for a, b in zip(events, events[1:])], host


def measure(
    runs: dict[str, Callable[[], object]],
    clock,
    rounds: int = ROUNDS,
    block_ms: float = BLOCK_MS,
    bursts: int = BURSTS,
    turn_of: Callable[[str], object] = lambda name: None,
) -> dict[str, Times]:
    """Times of every launch; each must have run before. `turn_of` is told whose turn it is, should one never end."""
    one = {}
    for name, run in runs.items():
        turn_of(name)
        one[name] = estimate(run, clock)
    times = {name: Times() for name in runs}
    for turn in range(rounds):
        for name, run in list(runs.items())[:: 1 if turn % 2 == 0 else -1]:
            turn_of(name)
            launches = max(3, int(block_ms / one[name]))
            samples, host = block(run, launches, max(1, round(GROUP_MS / one[name])), clock)
            times[name].rounds.append(samples)
            times[name].host = host if turn == 0 else min(host, times[name].host)
            one[name] = statistics.median(samples)
    clock.rest(0.5)
    for _ in range(bursts):
        for name, run in runs.items():
            turn_of(name)
            launches = min(4, max(1, round(1 / one[name])))
            clock.rest(REST_SECONDS)
            clock.pause()
            first = clock.event()
            for _ in range(launches):
                run()
            last = clock.event()
            clock.finish()
            times[name].burst.append(clock.between(first, last) / launches)
    return times


def quickest(runs: dict[str, Callable[[], object]], clock) -> list[str]:
    """Names by speed, measured briefly, the fastest first."""
    once = {name: estimate(run, clock) for name, run in runs.items()}
    near = sorted(once, key=once.get)
    near = [name for name in near if once[name] < 1.3 * once[near[0]]]
    found = {name: [] for name in near}
    for turn in range(4):
        for name in near[:: 1 if turn % 2 == 0 else -1]:
            launches = max(2, int(20 / once[name]))
            found[name] += block(runs[name], launches, max(1, launches // 2), clock)[0]
    return sorted(near, key=lambda name: statistics.median(found[name]))
