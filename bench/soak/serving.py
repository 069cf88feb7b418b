"""A serving process: calls at random, stock Triton and Twill by turns, and a line of JSON for whatever happens.

    python -m bench.soak.serving PLAN

| line | |
|---|---|
| `made` | a call was made, or why it was not |
| `begin` | the loop begins, and how long it is |
| `segment` | the steps of a time that one side had |
| `sample` | memory, and what Twill holds |
| `wrong`, `failed` | a call whose results differ, or that raised something |
| `end` | what there was in all |
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

from . import resources
from .application import Application, Request
from .plan import Plan

CALLS = (1, 2, 4, 8)
"""How often a step makes its call before it waits: all but the first find the GPU at work."""
CHECKED_EVERY = 50
"""Steps of which one has its results compared; those in which Twill tried something have it too."""
STOCK_WHILE_WARM = 0.125
"""Stock Triton's part of the segments that do not count: it has nothing to find out."""
TOLD = 20
"""Differences that are told one by one."""

Tell = Callable[[dict[str, Any]], None]


class Serving:
    """The loop of a process. twill: as `twill.Twill`."""

    def __init__(self, plan: Plan, application: Application, twill: Any, tell: Tell):
        self._plan, self._application, self._twill, self._tell = plan, application, twill, tell
        self._requests = dict(enumerate(application.requests))
        self._chance = random.Random(f"{plan.seed} {plan.number}")
        self._steps = 0
        self._checked: Counter[str] = Counter()
        self._wrong: Counter[str] = Counter()
        self._worst: dict[str, list[float]] = {}
        self._evictions = self._drops = 0
        now = time.monotonic()
        self._begun = now
        self._seconds = max(0.0, min(plan.seconds, plan.until - now))
        self._warm = self._seconds * plan.warm_part
        self._evicts_at, self._samples_at = self._warm, 0.0
        third = (self._seconds - self._warm) / 3
        self._thirds = [self._warm + third, self._warm + 2 * third]
        self._drops_at = [self._thirds[0] + third * (number + 0.5) / plan.drops for number in range(plan.drops)]

    def run(self) -> None:
        """Serves until its time is over."""
        names = [one.name for one in self._application.requests]
        self._tell({"is": "begin", "requests": names, "seconds": self._seconds, "warm": self._warm})
        while self._now() < self._seconds and self._requests:
            self._sample()
            is_warm = self._now() < self._warm
            sides = [self._chance.random() < STOCK_WHILE_WARM] if is_warm else self._chance.choice([[True, False], [False, True]])
            dropped = None if is_warm else self._function_to_drop()
            for by_stock in sides:
                if dropped is not None:
                    self._twill.drop(dropped)
                self._segment(by_stock, not is_warm)
        self._twill.pause(False)
        self._sample(last=True)
        self._tell({
            "is": "end",
            "steps": self._steps,
            "checked": self._checked.total(),
            "wrong": dict(self._wrong),
            "worst": self._worst,
            "evictions": self._evictions,
            "drops": self._drops,
            "status": self._twill.status(),
        })  # fmt: skip

    def _now(self) -> float:
        return time.monotonic() - self._begun

    @property
    def phase(self) -> str:
        """What part of the loop this is."""
        now = self._now()
        return "warm" if now < self._warm else ["first", "middle", "last"][sum(now >= one for one in self._thirds)]

    # --------------------------------------------------------------------------------------------- steps
    def _segment(self, by_stock: bool, counts: bool) -> None:
        """One side has some steps."""
        self._twill.pause(by_stock)
        begin = self._now()
        end, steps = min(begin + self._plan.segment, self._seconds), []
        while self._now() < end and self._requests:
            if not by_stock and self._now() >= self._evicts_at:
                self._evicts_at = self._now() + self._plan.evict
                self._evictions += self._twill.evict(self._chance)
            number = self._chance.choice(list(self._requests))
            try:
                steps.append(self._step(number, self._requests[number], by_stock))
            except Exception as error:
                self._fail(number, error)
            if not by_stock:
                self._twill.after_step()
        side = "stock" if by_stock else "twill"
        self._tell({"is": "segment", "side": side, "at": round(begin, 3), "counts": counts, "steps": steps})

    def _step(self, number: int, request: Request, by_stock: bool) -> list[float]:
        """A call, some times, and a wait: its number, µs until the GPU was done, contests that were missing, trials, µs of each."""
        calls = self._chance.choice(CALLS)
        twill, clock, call, synchronise = self._twill, time.perf_counter, request.call, self._application.synchronise
        misses, trials, hosts = twill.misses, twill.trials, []
        begin = before = clock()
        for _ in range(calls):
            results = call()
            after = clock()
            hosts.append(after - before)
            before = after
        synchronise()
        latency = clock() - begin
        misses, trials = twill.misses - misses, twill.trials - trials
        self._steps += 1
        if trials or self._steps % CHECKED_EVERY == 0:
            self._check(request, results, by_stock)
        return [number, round(latency * 1e6, 1), misses, trials, *[round(one * 1e6, 1) for one in hosts]]

    def _check(self, request: Request, results: Any, by_stock: bool) -> None:
        """Compares results with those of the beginning."""
        difference, allowed = request.check(results)
        self._checked[request.name] += 1
        worst = self._worst.setdefault(request.name, [0.0, allowed])
        worst[0] = max(worst[0], difference)
        # That is so for one that is no number, too.
        if not difference <= allowed:
            self._wrong[request.name] += 1
            if self._wrong.total() <= TOLD:
                side = "stock" if by_stock else "twill"
                self._tell({"is": "wrong", "request": request.name, "side": side, "difference": difference, "allowed": allowed})

    def _fail(self, number: int, error: Exception) -> None:
        """Goes on without a call. After a fault of the GPU none is left in the end."""
        name = self._requests.pop(number).name
        trace = traceback.format_exc()[-1500:]
        self._tell({"is": "failed", "request": name, "error": f"{type(error).__name__}: {error}"[:600], "trace": trace})

    def _function_to_drop(self) -> Any:
        """A function whose compiled kernels are thrown away, if it is time for that."""
        functions = self._twill.functions() if self._drops_at and self._now() >= self._drops_at[0] else []
        if not functions:
            return None
        del self._drops_at[0]
        self._drops += 1
        return self._chance.choice(functions)

    def _sample(self, last: bool = False) -> None:
        """Tells what there is of memory, each second, after what is garbage was collected."""
        if self._now() < self._samples_at and not last:
            return
        self._samples_at = self._now() + self._plan.sample
        gc.collect()
        held = {**resources.of_process(), **self._application.memory(), **self._twill.counts()}
        self._tell({"is": "sample", "at": round(self._now(), 3), "phase": self.phase, **held})


def teller() -> Tell:
    """Writes lines of JSON to what was the standard output. Whatever else is printed goes to stderr."""
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(line: dict[str, Any]) -> None:
        lines.write(json.dumps(line) + "\n")
        lines.flush()

    return tell


def main() -> None:
    """Serves as it is told."""
    plan, tell = Plan.of_json(sys.argv[1]), teller()
    sys.path[:0] = [one for one in plan.sources.split(":") if one]
    mix = importlib.import_module(plan.mix)
    twill = mix.beneath(plan)
    # What is compared and timed first is stock Triton's.
    twill.pause(True)
    application = mix.begin(plan, tell)
    twill.count_trials()
    Serving(plan, application, twill, tell).run()


if __name__ == "__main__":
    main()
