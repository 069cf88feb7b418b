"""When serving processes begin and end, and what happens in them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

FIRST = 1.5
"""The first process has so many times the time of another: kernels are made in it."""
WARM = 0.4
"""The part of a process's loop after which its times and its memory count."""
FIRST_WARM = 0.6
"""The same of the first process."""
KILLED_AFTER = 0.75
"""The part of its loop after which a process is killed that does not end by itself."""
UNLIMITED = 3600.0
"""Seconds beyond its loop that a process may take where no limit was given."""


@dataclass(frozen=True)
class Plan:
    """What a serving process is told."""

    number: int
    """Of the processes, from 0 on."""
    seconds: float
    """How long its loop is."""
    until: float
    """When it ends at the latest, whatever it is at: on the monotonic clock, which all processes share."""
    seed: int = 0
    jobs: int | None = None
    """Background processes of Twill; its default where that is None."""
    only: str = ""
    """Calls in whose name this regular expression is found."""
    sources: str = ""
    """Folders with the Python of packages, separated by colons."""
    mix: str = "bench.soak.mix"
    """The module that has the calls."""
    segment: float = 0.2
    """Seconds that one side has."""
    evict: float = 2.0
    """Seconds between two specialisations whose contests are forgotten."""
    drops: int = 3
    """How often Triton's compiled kernels of a function are thrown away, in the middle third of what counts."""
    sample: float = 1.0
    """Seconds between two samples of memory."""

    @property
    def warm_part(self) -> float:
        """The part of the loop that does not count."""
        return WARM if self.number else FIRST_WARM

    def to_json(self) -> str:
        """As a process is told it."""
        return json.dumps(asdict(self))

    @staticmethod
    def of_json(text: str) -> Plan:
        """What `to_json` wrote."""
        return Plan(**json.loads(text))


def weights(processes: int) -> list[float]:
    """The shares of the processes in the whole time."""
    return [FIRST, *[1.0] * (processes - 1)]


def loop_seconds(total: float, processes: int, number: int) -> float:
    """The loop of a process where all loops take so many seconds."""
    shares = weights(processes)
    return total * shares[number] / sum(shares)


def share_of_rest(left: float, processes: int, number: int) -> float:
    """The seconds from now on that a process may take, so that as much is left for each that follows."""
    shares = weights(processes)[number:]
    return left * shares[0] / sum(shares)


def killed(processes: int) -> int | None:
    """The process that is killed: the last but one, so that one stands before it and one after it. None of a single one."""
    return processes - 2 if processes > 1 else None
