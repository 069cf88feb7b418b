"""Contests whose outcome is kept, and outcomes that this process knows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from ..contest import Contest, Gpu, Side
from .records import LIMIT, Records


class Outcomes:
    """Records of contests. What this process has read or written is not looked for on disk again, and survives it there."""

    def __init__(self, records: Records):
        self._records = records
        self._known: dict[str, str] = {}
        """Their text, some hundred bytes each: as many as a folder has."""

    def read(self, key: str) -> Any:
        """A record, if there is one."""
        text = self._known.get(key)
        if text is not None:
            return json.loads(text)
        record = self._records.read(key)
        if record is not None:
            self._know(key, record)
        return record

    def write(self, key: str, record: dict[str, Any]) -> None:
        """Keeps a record."""
        self._know(key, record)
        self._records.write(key, record)

    def forget(self, key: str) -> None:
        """Has the next look at a record go to disk: another process may have written one."""
        self._known.pop(key, None)

    def _know(self, key: str, record: dict[str, Any]) -> None:
        if len(self._known) >= LIMIT:
            self._known.clear()
        self._known[key] = json.dumps(record)


class Kept(Contest):
    """A contest with stock Triton as the incumbent, that says when it is settled."""

    def __init__(
        self,
        gpu: Gpu,
        sides: Sequence[Side],
        share: float | None,
        settled: Callable[[Contest], None],
        has_run: Callable[[], None],
    ):
        """has_run: called once all sides were launched and have ended."""
        super().__init__(gpu, sides, share)
        self._told, self._has_run, self._is_new = settled, has_run, True

    def _settle(self) -> None:
        super()._settle()
        self._told(self)

    def _collect(self) -> None:
        super()._collect()
        if self._is_new and self.has_run:
            self._is_new = False
            if self.winner is None:
                self._has_run()

    def forfeit(self, side: Side) -> None:
        was = self.winner
        super().forfeit(side)
        if self.winner is not None and self.winner != was:
            self._told(self)
