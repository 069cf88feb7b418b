"""What the environment asks of activation: `TWILL`, and variables whose names begin with it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from ..errors import InputError


class Mode(Enum):
    """When kernels are made, and which are launched."""

    BACKGROUND = "1"
    """Stock Triton runs until background processes have made a kernel."""
    WAIT = "wait"
    """The first launch of a specialisation waits for its kernel, and for who is the fastest."""
    FROZEN = "frozen"
    """Nothing is made or tried: what earlier processes settled is used."""
    CHECK = "check"
    """Kernels are made at the first launch and compared with stock Triton's, which has all launches."""


class Log(Enum):
    """What is written to stderr."""

    OFF = "off"
    SUMMARY = "summary"
    """A table when the process ends."""
    EACH = "each"
    """A line for each kernel when its status changes, and the table."""


@dataclass(frozen=True)
class Settings:
    """How Twill is put under other people's kernels."""

    mode: Mode = Mode.BACKGROUND
    only: re.Pattern[str] | None = None
    """Names of the kernels that Twill may take, searched for; None for all."""
    skip: re.Pattern[str] | None = None
    """Names of the kernels that it leaves to stock Triton."""
    jobs: int = 1
    """Background processes, each with less than 2 GB."""
    log: Log = Log.OFF
    configurations: bool = True
    """Try stock Triton's compiler with other numbers of stages and warps, too."""
    blackwell: bool = False
    """Take kernels on Blackwell too, whose kernels were never run by us."""
    alternates: bool = False
    """`Mode.WAIT` settles by launches in turns, as the background does, rather than on copies: for benchmarks and tests."""

    @property
    def settles_first(self) -> bool:
        """Whether it is settled before a launch who has it."""
        return self.mode is Mode.WAIT and not self.alternates

    def excludes(self, name: str) -> str | None:
        """Why a kernel of this name is left to stock Triton; None where it is not."""
        if self.skip is not None and self.skip.search(name):
            return "TWILL_SKIP names it"
        if self.only is not None and not self.only.search(name):
            return "TWILL_ONLY does not name it"
        return None

    @staticmethod
    def of_environment(environment: Mapping[str, str] = os.environ) -> Settings | None:
        """The settings of an environment; None where `TWILL` is unset, empty, `0` or `off`.

        Raises `InputError` for a value that a variable cannot have.
        """
        asked = environment.get("TWILL", "").strip().lower()
        if asked in ("", "0", "off"):
            return None
        return Settings(
            _one_of("TWILL", asked, Mode),
            _pattern("TWILL_ONLY", environment),
            _pattern("TWILL_SKIP", environment),
            _jobs(environment),
            _one_of("TWILL_LOG", environment.get("TWILL_LOG", "").strip().lower() or "off", Log),
            environment.get("TWILL_CONFIGURATIONS", "") != "0",
            environment.get("TWILL_BLACKWELL", "") not in ("", "0"),
        )


def default_jobs() -> int:
    """A quarter of the CPU's cores, one to four."""
    return max(1, min(4, (os.cpu_count() or 1) // 4))


_Choice = TypeVar("_Choice", bound=Enum)


def _one_of(variable: str, value: str, kind: type[_Choice]) -> _Choice:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(str(one.value) for one in kind)
        raise InputError(f"{variable}={value}: it may be {known}") from None


def _pattern(variable: str, environment: Mapping[str, str]) -> re.Pattern[str] | None:
    text = environment.get(variable)
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise InputError(f"{variable}={text}: no regular expression: {error}") from None


def _jobs(environment: Mapping[str, str]) -> int:
    text = environment.get("TWILL_JOBS")
    if not text:
        return default_jobs()
    if not text.isdecimal() or not 1 <= int(text) <= 256:
        raise InputError(f"TWILL_JOBS={text}: it must be a whole number from 1 to 256")
    return int(text)
