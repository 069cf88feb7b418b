"""Kernels of the cache whose machine code is not in this process yet: it is loaded once they may be launched.

It takes a tenth of a second for each. A process that has all on record loads that of the winners alone. Compilers do not run
here: one that runs when the process ends brings it down.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..contest import Side
from ..scheduled import MACHINE_CODE, SOURCES, ScheduledKernel

if TYPE_CHECKING:
    from .activity import Activity
    from .records import Records


def recall(records: Records, key: str, folder: Path) -> None:
    """Puts the machine code that is on record into a kernel's folder, if that is in CUDA."""
    record = records.read(key) if (folder / SOURCES["cuda"]).exists() else None
    if record is not None:
        # Without space on a disk it is absent.
        with contextlib.suppress(OSError):
            (folder / MACHINE_CODE).write_text(str(record.get("text")), encoding="utf-8")


def note(records: Records, key: str, folder: Path) -> None:
    """Has the machine code of a kernel's folder on record, if that is in CUDA: Triton's cache has that of others."""
    try:
        text = (folder / MACHINE_CODE).read_text(encoding="utf-8")
    except OSError:
        return
    records.write(key, {"text": text})


def finish(kernel: ScheduledKernel) -> None:
    """Loads a kernel's machine code. Raises what hinders it."""
    kernel.compile()
    kernel.shed()


class Unfinished:
    """Those of a specialisation.

    failed: is told of a kernel whose machine code cannot be loaded. absent: of one that has to be assembled, by another process.
    all_done: is called once there is none left.
    """

    def __init__(
        self,
        activity: Activity,
        failed: Callable[[Side, Exception], None],
        absent: Callable[[Side], None],
        all_done: Callable[[], None],
    ):
        self._activity, self._failed, self._absent, self._all_done = activity, failed, absent, all_done
        self._kernels: dict[Side, ScheduledKernel] = {}
        self._is_under_way = False

    def __bool__(self) -> bool:
        return bool(self._kernels)

    def __contains__(self, side: object) -> bool:
        return side in self._kernels

    def add(self, side: Side, kernel: ScheduledKernel) -> None:
        """Takes a kernel."""
        self._kernels[side] = kernel

    def drop(self, side: Side) -> None:
        """Lets go of one that is not to be launched."""
        self._kernels.pop(side, None)

    def finish(self, side: Side) -> None:
        """Loads the machine code of one, if that is not done yet."""
        if side not in self._kernels:
            return
        # Another thread may be at it.
        with self._activity.loading:
            found = self._kernels.get(side)
            if found is None or self._activity.has_ended:
                return
            try:
                if found.is_kept:
                    finish(found)
                else:
                    # Until nobody launches it any more it counts as unfinished.
                    self._absent(side)
            except Exception as error:
                self._failed(side, error)
            finally:
                self.drop(side)

    def finish_behind(self) -> None:
        """Loads that of all while launches go on."""
        if self._is_under_way:
            return
        self._is_under_way = True
        try:
            threading.Thread(target=self._finish_all, daemon=True, name="twill-finish").start()
        except RuntimeError:
            self._finish_all()

    def _finish_all(self) -> None:
        try:
            # One more may come meanwhile.
            while self._kernels and not self._activity.has_ended:
                for side in list(self._kernels):
                    self.finish(side)
        finally:
            self._is_under_way = False
            # Last: whoever looks from now on finds that nothing is under way.
            self._all_done()

    def forked(self) -> None:
        """In a forked child, which has none of its parent's threads."""
        self._is_under_way = False
