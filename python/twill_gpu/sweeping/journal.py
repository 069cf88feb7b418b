"""The journal of results, so that a sweep that ended early goes on where it was."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..errors import InputError

HEADER = {"format": "twill-sweep-journal", "version": 1}
"""The first line of the file."""


class Journal:
    """Outcomes by key, in a file of JSON lines or in memory alone.

    Each line is written whole and never changed. A last line that was torn is cut off when the file is opened.
    One process at a time has the file.
    """

    def __init__(self, path: str | os.PathLike[str] | None):
        self._known: dict[str, dict[str, Any]] = {}
        self._file: int | None = None
        self._path = Path(path) if path is not None else None
        if self._path is None:
            return
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise InputError(f"state: cannot open {self._path}: {error.strerror}") from error
        try:
            self._lock(self._file)
            self._read(self._file, self._path)
        except BaseException:
            self.close()
            raise

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str) -> dict[str, Any] | None:
        """The outcome of a job that was done."""
        return self._known.get(key)

    def add(self, key: str, step: str, outcome: dict[str, Any]) -> None:
        """Writes down a job that was done. What is written down already stays."""
        if key in self._known:
            return
        self._known[key] = outcome
        self._append({"key": key, "step": step, "outcome": outcome})

    def close(self) -> None:
        """Lets other processes have the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _append(self, entry: dict[str, Any]) -> None:
        if self._file is None:
            return
        line = (json.dumps(entry, ensure_ascii=False) + "\n").encode()
        try:
            while line:
                line = line[os.write(self._file, line) :]
        except OSError as error:
            raise InputError(f"state: cannot write {self._path}: {error.strerror}") from error

    def _lock(self, file: int) -> None:
        try:
            import fcntl
        except ImportError:
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(f"state: {self._path} is in use by another sweep; give this one another file") from error

    def _read(self, file: int, path: Path) -> None:
        text = path.read_bytes()
        whole = text.rfind(b"\n") + 1
        header = json.dumps(HEADER).encode() + b"\n"
        if whole == 0 and not header.startswith(text):
            raise self._foreign("it does not begin as one")
        for number, line in enumerate(text[:whole].splitlines(), 1):
            try:
                entry = json.loads(line)
                if number > 1:
                    self._known[entry["key"]] = dict(entry["outcome"])
            except (ValueError, KeyError, TypeError) as error:
                raise self._foreign(f"line {number} cannot be read") from error
            if number == 1 and entry != HEADER:
                raise self._foreign("it does not begin as one of this version")
        if whole < len(text):
            os.ftruncate(file, whole)
        if whole == 0:
            self._append(HEADER)

    def _foreign(self, why: str) -> InputError:
        return InputError(f"state: {self._path} is no journal of a sweep: {why}; nothing in it was changed")
