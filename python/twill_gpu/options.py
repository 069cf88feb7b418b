"""Options of the `twill` command, as keywords. The command itself lists them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from . import _twill
from .errors import InputError, OptionError
from .keywords import meant

OURS = {
    "compile": frozenset({"machine", "output", "python", "top", "within"}),
    "gaus": frozenset({"color", "format", "output", "width"}),
}
"""The options that the package itself sets, or has a parameter for."""
SWITCH: tuple[str, ...] = ("on", "off")


class Option(NamedTuple):
    """The value of an option."""

    value: str
    """`no` for a flag, `maybe` or `yes`."""
    values: tuple[str, ...]
    """All that there are; none where there are too many to name."""


@functools.cache
def known(command: str = "compile") -> Mapping[str, Option]:
    """Options of a command by name, with underscores."""
    all = {name: Option(value, tuple(values)) for name, value, values in _twill.option_names(command)}
    return {name: option for name, option in all.items() if name not in OURS[command]}


def words(options: Mapping[str, object], command: str = "compile", before: Sequence[str] = ()) -> list[str]:
    """Options as the command has them, such as `--sub-tiles=2`. None leaves an option at what the command does by itself.

    before: what the command is told ahead of them.
    Raises `OptionError` for an option that there is not, `InputError` for a value that it cannot have.
    """
    told = [word for name, value in options.items() for word in _word(name, value, command)]
    wrong = _twill.wrong_option(command, [*before, *told])
    if wrong is not None:
        name, why = wrong
        if name is None:
            raise InputError(why)
        value = options.get(name)
        which = f"each of {name}" if isinstance(value, (list, tuple)) else name
        raise InputError(f"{which} {why}, not {value!r}")
    return told


def _word(name: str, value: object, command: str) -> list[str]:
    """An option in words: one, or none where it is left alone."""
    option = known(command).get(name)
    if option is None:
        raise OptionError(_unknown(name, command))
    word = "--" + name.replace("_", "-")
    switch = option.value == "no" or option.values == SWITCH
    if isinstance(value, bool) and (switch or option.value == "maybe"):
        value = SWITCH[not value]
    if value is None or (value == "off" and option.value != "yes"):
        return []
    if value == "on" and option.value != "yes":
        return [word]
    allowed = SWITCH if option.value == "no" else option.values
    if allowed and value not in allowed:
        raise InputError(f"{name} must be {_listed(allowed, switch)}, not {value!r}")
    if isinstance(value, (list, tuple)):
        value = ",".join(map(str, value))
    return [f"{word}={value}"]


def _unknown(name: str, command: str) -> str:
    if name in OURS[command]:
        return f"{name!r} is no option here: the package sets it, or has a parameter for it"
    best = meant(name, known(command))
    return f"there is no option {name!r}; " + (f"did you mean {best!r}?" if best else f"twill {command} --help lists them")


def _listed(values: Sequence[str], switch: bool) -> str:
    shown = [*map(repr, values), *(("True", "False") if switch else ())]
    return f"{', '.join(shown[:-1])} or {shown[-1]}" if shown[1:] else shown[0]
