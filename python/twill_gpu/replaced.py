"""Attributes of other packages' classes and modules in whose place something of Twill's is, until they are given back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .importing import AfterImport


class Replaced:
    """What has to be undone in the end."""

    def __init__(self) -> None:
        self._originals: list[tuple[Any, str, Any]] = []
        self._waiting: list[AfterImport] = []

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Puts something in the place of an attribute."""
        self._originals.append((owner, name, vars(owner).get(name)))
        setattr(owner, name, value)

    def wait(self, waiting: Iterable[AfterImport]) -> None:
        """Has imports forgotten in the end that something waits for."""
        self._waiting.extend(waiting)

    def restore(self) -> None:
        """Gives all back."""
        while self._waiting:
            self._waiting.pop().forget()
        while self._originals:
            owner, name, original = self._originals.pop()
            if original is None:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
