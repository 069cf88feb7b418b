"""The progress of a sweep, for a person."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable

SECONDS = 0.1
"""Between two changes of the line."""


class Line:
    """A line on standard error that is written over; where that is no terminal, one line for each step."""

    def __init__(self, progress: bool | Callable[[str], object]):
        self._tell = progress if callable(progress) else None
        self._shown = bool(progress) and self._tell is None
        self._terminal = self._shown and sys.stderr.isatty()
        self._last, self._text, self._told = 0.0, "", ""

    def say(self, text: str) -> None:
        """The current step."""
        self._text = text
        if self._tell:
            self._tell(text)
        elif self._terminal and time.monotonic() - self._last >= SECONDS:
            self._last = time.monotonic()
            self._write("")

    def end(self) -> None:
        """Keeps the last text: a step is done."""
        if self._shown and self._text and self._text != self._told:
            self._told = self._text
            self._write("\n")

    def _write(self, end: str) -> None:
        if not self._terminal:
            print(self._text, file=sys.stderr, flush=True)
            return
        text = self._text[: shutil.get_terminal_size().columns - 1]
        print(f"\r{text}\x1b[K", end=end, file=sys.stderr, flush=True)
