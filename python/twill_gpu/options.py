"""Options of Twill, as keywords. Which there are, and what values they have, is what Twill itself says."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from . import _twill
from .errors import InputError, OptionError
from .keywords import meant

OURS: Mapping[str, frozenset[str]] = {"compile": frozenset({"machine"}), "gaus": frozenset()}
"""What the package has a parameter for."""


@functools.cache
def known(command: str = "compile") -> tuple[str, ...]:
    """Options of a command by name, with underscores."""
    return tuple(name for name in _twill.option_names(command) if name not in OURS[command])


def checked(options: Mapping[str, object], command: str = "compile", has_input: bool = True) -> dict[str, object]:
    """Those options that are given. None leaves an option at its default.

    has_input: of `gaus`, whether a graph is given besides.
    Raises `OptionError` for an option that there is not, `InputError` for a value that it cannot have.
    """
    given = {name: value for name, value in options.items() if value is not None}
    for name in options:
        if name not in known(command):
            raise OptionError(_unknown(name, command))
    wrong = _twill.wrong_option(command, given, has_input)
    if wrong is not None:
        option, why = wrong
        if option is None:
            raise InputError(why)
        value = options.get(option)
        which = f"each of {option}" if isinstance(value, (list, tuple)) else option
        raise InputError(f"{which} {why}, not {value!r}")
    return given


def is_on(options: Mapping[str, object], name: str) -> bool:
    """Whether a flag is set."""
    return options.get(name) in (True, "on")


def _unknown(name: str, command: str) -> str:
    if name in OURS[command]:
        return f"{name!r} is no option here: the package has a parameter for it"
    best = meant(name, known(command))
    return f"there is no option {name!r}; " + (f"did you mean {best!r}?" if best else f"twill {command} --help-all lists them")
