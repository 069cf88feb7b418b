"""Options of the `twill` command, as keywords."""

from __future__ import annotations

from collections.abc import Mapping

from .errors import InputError

FLAGS = ("in_step", "no_assemble", "no_cache", "no_contract", "no_siblings", "quiet")
"""Options without a value: True is the flag, False or None its absence. Other booleans are `on` and `off`."""

OURS = ("machine", "output", "python", "top", "within")
"""What the package itself tells the command."""


def words(options: Mapping[str, object]) -> list[str]:
    """Options as the command has them, such as `--sub-tiles=2`. None leaves an option at what the command does by itself."""
    others = [name for name in options if name in OURS]
    if others:
        raise InputError(f"{', '.join(others)}: no option here; the package sets it, or has a parameter for it")
    told = []
    for name, value in options.items():
        word = "--" + name.replace("_", "-")
        if value is None or (name in FLAGS and not value):
            continue
        if name in FLAGS:
            told.append(word)
        elif isinstance(value, bool):
            told.append(f"{word}={'on' if value else 'off'}")
        elif isinstance(value, (list, tuple)):
            told.append(f"{word}={','.join(map(str, value))}")
        else:
            told.append(f"{word}={value}")
    return told
