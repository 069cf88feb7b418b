"""What earlier processes found out about kernels, on disk: that one cannot be made, or which side is faster for a grid; and machine
code of kernels in CUDA.

A record is a line of JSON behind the hash of its name and content, in a file named by the hash of all that it depends on.
Only folders and files of this user that nobody else may write to are used, as for the kernels themselves.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .. import _twill

FOLDER = "activation-v1"
LIMIT, LIMIT_BYTES = 16384, 1 << 30
"""Records of a folder, and their bytes: the oldest quarter of more goes. What is gone is found out again."""
LONGEST = 1 << 24
"""Characters of a record at most: machine code takes some hundred thousand, others some hundred."""
EVERY = 256
"""How many records a process writes between two looks at how many there are."""
LOCK = ".alone-"
"""How the names of files begin that a process has to itself within `Records.alone`."""
HALF_WRITTEN_SECONDS = 3600
"""After so long a file without a name was left by a process that was killed."""


class Records:
    """The records of a folder; those of the cache by default. Without a folder, or an unsafe one, nothing is kept."""

    def __init__(self, cache: Path | None = None):
        kernels = None if cache is not None else _twill.cache_folder()
        self.cache = None if kernels is None else Path(kernels)
        """Where kernels are."""
        self.folder = cache if self.cache is None else self.cache.parent / FOLDER
        self.unsafe: str | None = None
        """Why the folder is not used."""
        self._written = 0

    def read(self, key: str) -> dict[str, Any] | None:
        """A record, if it is whole and in a safe folder."""
        folder = self._safe()
        if folder is None:
            return None
        try:
            # A link may lead to a file of somebody else, and a pipe waits for its writer.
            file = os.open(folder / key, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            with os.fdopen(file, encoding="utf-8") as opened:
                found = os.fstat(file)
                if not stat.S_ISREG(found.st_mode) or _distrusted(found):
                    return None
                digest, _, text = opened.read(LONGEST).partition("\n")
            record = json.loads(text) if digest == digest_of(f"{key}\n{text}") else None
        except (OSError, ValueError):
            return None
        return record if isinstance(record, dict) else None

    def write(self, key: str, record: dict[str, Any]) -> None:
        """Keeps a record. That it cannot be kept is no failure: it is found again."""
        folder = self._safe(make=True)
        if folder is None:
            return
        text = json.dumps(record)
        whole = digest_of(f"{key}\n{text}") + f"\n{text}"
        if len(whole) > LONGEST:
            return
        try:
            handle, name = tempfile.mkstemp(prefix=".", dir=folder)
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(whole)
                os.replace(name, folder / key)
            except BaseException:
                os.unlink(name)
                raise
            self._written += 1
            if self._written % EVERY == 1:
                self._shrink(folder)
        except OSError:
            pass

    @contextmanager
    def alone(self, key: str, seconds: float) -> Iterator[None]:
        """Waits until no other process with the same folder is within this for a record. Raises `TimeoutError`.

        Where nothing can be kept, nobody waits.
        """
        folder = self._safe(make=True)
        try:
            import fcntl

            if folder is None:
                raise OSError("nothing is kept")
            place = folder / f"{LOCK}{key}"
            file = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except (ImportError, OSError):
            yield
            return
        try:
            end = time.monotonic() + seconds
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    if time.monotonic() > end:
                        raise TimeoutError(f"another process is at it for more than {seconds:.0f} s") from None
                    time.sleep(0.01)
            try:
                yield
            finally:
                # Who waits for it reads the record first, as whoever comes after that.
                place.unlink(missing_ok=True)
                # A child that was forked meanwhile has the file open, too.
                fcntl.flock(file, fcntl.LOCK_UN)
        finally:
            os.close(file)

    def remove(self, key: str) -> None:
        """Forgets a record."""
        folder = self._safe()
        if folder is not None:
            try:
                (folder / key).unlink()
            except OSError:
                pass

    def clear(self) -> None:
        """Forgets all records."""
        folder = self._safe()
        for record in [] if folder is None else list(folder.iterdir()):
            self.remove(record.name)

    def _shrink(self, folder: Path) -> None:
        """Throws away the oldest records of too many, and what processes that were killed left half-written."""
        found: list[tuple[float, int, Path]] = []
        for entry in os.scandir(folder):
            of = entry.stat(follow_symlinks=False)
            if not entry.name.startswith("."):
                found.append((of.st_mtime, of.st_size, Path(entry.path)))
            elif of.st_mtime < time.time() - HALF_WRITTEN_SECONDS:
                os.unlink(entry.path)
        count, size = len(found), sum(of for _, of, _ in found)
        if count <= LIMIT and size <= LIMIT_BYTES:
            return
        for _, taken, path in sorted(found):
            if count <= LIMIT - LIMIT // 4 and size <= LIMIT_BYTES - LIMIT_BYTES // 4:
                break
            path.unlink(missing_ok=True)
            count, size = count - 1, size - taken

    def _safe(self, make: bool = False) -> Path | None:
        """The folder, if it is this user's own and only this user may write to it."""
        if self.folder is None:
            return None
        try:
            if make:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            return None
        self.unsafe = distrusted(self.folder)
        return self.folder if self.unsafe is None and self.folder.exists() else None


def distrusted(folder: Path) -> str | None:
    """Why a folder may hold what others wrote; None where it is this user's alone, or is not there."""
    try:
        found = os.lstat(folder)
    except OSError:
        return None
    why = _distrusted(found) if stat.S_ISDIR(found.st_mode) else "is no folder"
    return None if why is None else f"{folder} {why}"


def _distrusted(found: os.stat_result) -> str | None:
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return "belongs to another user"
    if os.name == "posix" and found.st_mode & 0o022:
        return "may be written to by others: chmod go-w"
    return None


def digest_of(text: str) -> str:
    """The hash that names records and begins them."""
    return hashlib.sha256(text.encode()).hexdigest()
