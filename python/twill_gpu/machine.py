"""Machine descriptions: the resources of a GPU, and the costs of operations on it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import _twill
from .errors import InputError
from .keywords import meant


@dataclass(frozen=True)
class Number:
    """One number of a machine."""

    value: float
    unit: str
    """For people, such as `cycles`."""
    provenance: str
    """`measured`, `specified` or `derived`."""
    source: str
    """Its source."""


class Machine:
    """A machine. `Machine("h200")` is built in, `Machine("path/to/mine.toml")` is read; neither changes.

    Another one is made by `with_numbers`, and saved by `save`. Wherever a machine is asked for, its name or path does too.
    """

    def __init__(self, name_or_path: str | os.PathLike[str]):
        self._text = _twill.machine_text(os.fspath(name_or_path))
        self._numbers: dict[str, Number] | None = None

    @classmethod
    def of(cls, machine: str | os.PathLike[str] | Machine) -> Machine:
        """A machine by itself, its name or its path."""
        return machine if isinstance(machine, Machine) else cls(machine)

    @classmethod
    def from_text(cls, text: str) -> Machine:
        """A machine of the text of its file. Raises `InputError` with all that is wrong with it."""
        made = cls.__new__(cls)
        made._text, made._numbers = _twill.machine_text("", text), None
        return made

    @property
    def text(self) -> str:
        """A file that says all of it, without extending another."""
        return self._text

    @property
    def name(self) -> str:
        """Its name."""
        return self._top("name")

    @property
    def architecture(self) -> str:
        """The compiler's target, such as `sm_90a`."""
        return self._top("architecture")

    def _top(self, key: str) -> str:
        line = next(line for line in self._text.splitlines() if line.startswith(f"{key} = "))
        return str(json.loads(line.split(" = ", 1)[1]))

    @property
    def numbers(self) -> Mapping[str, Number]:
        """Every number by its key, such as `latency.transfer`."""
        if self._numbers is None:
            self._numbers = {row[0]: Number(*row[1:]) for row in _twill.machine_numbers(self._text)}
        return dict(self._numbers)

    def with_numbers(self, name: str, numbers: Mapping[str, float], source: str = "chosen by hand") -> Machine:
        """Another machine that differs in these numbers.

            Machine("h200").with_numbers("h200-small", {"memory.shared_bytes": 131072})

        Raises `InputError` for a key that there is not, or a number that makes no sense.
        """
        for key in numbers:
            if key not in self.numbers:
                best = meant(key, self.numbers)
                hint = f"did you mean {best!r}?" if best else f"it has {', '.join(sorted(self.numbers))}"
                raise InputError(f"{self.name} has no number {key!r}; {hint}")
        changed = {key: f"{{ derived = {_toml(value)}, source = {json.dumps(source)} }}" for key, value in numbers.items()}
        lines, table = [], ""
        for line in self._text.splitlines():
            if line.startswith("["):
                table = line.strip("[]") + "."
            key = table + line.split(" = ", 1)[0]
            if line.startswith("name = "):
                line = f"name = {json.dumps(name)}"
            lines.append(f"{line.split(' = ', 1)[0]} = {changed[key]}" if key in changed else line)
        return Machine.from_text("\n".join(lines) + "\n")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes its file, which may be named wherever a machine is asked for (its name must end in .toml)."""
        path = Path(path)
        partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
        partial.write_text(self._text, encoding="utf-8")
        partial.replace(path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Machine) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return f"Machine({self.name!r})"


def machines() -> list[str]:
    """Names of the machines that are built in."""
    return _twill.machine_names()


def _toml(value: float) -> str:
    """A number as machine files have it."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))
