"""Twill under a serving process: on and off, what is thrown away of it, and what it says of itself."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

SQUEEZED = 20
"""Steps for which a specialisation may have one contest after its contests were forgotten: they push each other out."""


class Twill:
    """As `TWILL=1` has it, with counters where launches come by rarely."""

    def __init__(self, jobs: int | None):
        from twill_gpu import activation
        from twill_gpu.activation import contested, hooks, launches

        activation.install("1", jobs=jobs)
        self.activity: Any = activation._activity
        self.misses = 0
        """Launches whose contest was not there: it was read from a record, or begun."""
        self.trials = 0
        """Events of launches that were timed, so that they may have waited for a spin."""
        self._contested = contested
        self._functions: dict[int, Any] = {}
        self._note_functions(hooks, launches.SettledLauncher)
        self._remembered, self._squeezed = contested.REMEMBERED, 0
        self._launches: dict[int, int] = {}
        self._count_misses()

    def _note_functions(self, hooks: Any, runner: type) -> None:
        launcher_of = hooks.launcher_of

        def noted(activity: Any, kernel: Any, original: Any) -> Any:
            launcher = launcher_of(activity, kernel, original)
            if isinstance(launcher, runner):
                self._functions[id(kernel.src.fn)] = kernel.src.fn
            return launcher

        hooks.launcher_of = noted

    def _count_misses(self) -> None:
        contest_for = self._contested.Contested.contest_for

        def counted(found: Any, key: tuple[int, ...]) -> Any:
            self.misses += 1
            return contest_for(found, key)

        self._contested.Contested.contest_for = counted

    def count_trials(self) -> None:
        """Counts launches that are timed, from now on: once torch is there."""
        gpu = self.activity.gpu
        if gpu is None:
            return

        def event() -> Any:
            self.trials += 1
            return gpu.event()

        self.activity._gpu = gpu._replace(event=event)

    def pause(self, paused: bool) -> None:
        """Leaves all launches to stock Triton, or no longer."""
        self.activity.is_paused = paused

    # --------------------------------------------------------------------------------------------- what is thrown away
    def evict(self, chance: random.Random) -> bool:
        """Forgets the contests of a specialisation that is launched, as Twill does at its limit, which is one for some steps."""
        now = {id(one): one.launched.total() for one in self.activity.found}
        served = [one for one in self.activity.found if one.contests and one.launched.total() > self._launches.get(id(one), 0)]
        self._launches = now
        if not served:
            return False
        evicted = chance.choice(served)
        evicted.make_room()
        evicted.launcher.forget()
        self._contested.REMEMBERED, self._squeezed = 1, SQUEEZED
        return True

    def after_step(self) -> None:
        """Gives the limit back after some steps."""
        if self._squeezed:
            self._squeezed -= 1
            if not self._squeezed:
                self._contested.REMEMBERED = self._remembered

    def functions(self) -> list[Any]:
        """Triton's functions that were launched and that Twill may have something for."""
        return list(self._functions.values())

    @staticmethod
    def drop(function: Any) -> None:
        """Throws away what Triton compiled of a function: what is launched next is launched for the first time."""
        for caches in list(function.device_caches.values()):
            caches[0].clear()

    # --------------------------------------------------------------------------------------------- what it says
    def counts(self) -> dict[str, int]:
        """What changes while it runs."""
        found = list(self.activity.found)
        contests = [contest for one in found for contest in list(one.contests.values())]
        return {
            "specialisations": len(found),
            "loaded": sum(len(one.kernels) + sum(made.kernel is not None for made in one.configurations.values()) for one in found),
            "waiting": sum(one.status.value == "waiting" for one in found),
            "contests": len(contests),
            "open": sum(one.winner is None for one in contests),
        }

    def status(self) -> dict[str, Any]:
        """What became of each specialisation, by `twill_gpu.status()`."""
        from twill_gpu import activation

        report = activation.status()
        return {
            "kernels": len(report),
            "by_status": dict(Counter(one.status for one in report)),
            "launches": sum(one.launches for one in report),
            "settled": sum(one.grids for one in report),
            "twill": sum(one.wins for one in report),
            "tuned": sum(sum(one.configurations.values()) for one in report),
            "condemned": sorted({one.name for one in report if one.reason.startswith("a process ended")}),
            "reasons": sorted({f"{one.name}: {' '.join(one.reason.split())[:160]}" for one in report if one.reason}),
        }
