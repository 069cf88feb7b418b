"""Suggestions for keywords that a call does not have."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection
from typing import TypeVar

from .errors import OptionError

Call = TypeVar("Call", bound=Callable[..., object])


def meant(name: str, names: Collection[str]) -> str | None:
    """The name that is most like a misspelt one, if any is."""
    close = difflib.get_close_matches(name.replace("-", "_"), names, n=1)
    return close[0] if close else None


def spelled(
    more: Callable[[], Collection[str]] = tuple, options: Callable[[], Collection[str]] = tuple
) -> Callable[[Call], Call]:
    """A call that says what was meant where it is given a keyword that it does not have.

    more: keywords that it takes besides its parameters. options: names that go into its parameter `options`.
    """

    def decorate(call: Call) -> Call:
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        own = {name for name, one in inspect.signature(call).parameters.items() if one.kind in kinds}

        @functools.wraps(call)
        def checked(*args: object, **named: object) -> object:
            others = named.keys() - own
            for name in sorted(others - set(more())) if others else ():
                raise OptionError(_unexpected(call.__name__, name, {*own, *more()}, options()))
            return call(*args, **named)

        return checked  # type: ignore[return-value]  # it takes and gives back what the call does

    return decorate


def _unexpected(call: str, name: str, names: Collection[str], options: Collection[str]) -> str:
    said, best = f"{call}() got an unexpected keyword argument {name!r}", meant(name, {*names, *options})
    if best is None:
        return said
    return f"{said}; did you mean {best!r}?" if best in names else f"{said}; did you mean options={{{best!r}: …}}?"
