"""Twill under all Triton kernels of a process: what is switched on, and everything that it found."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__, _twill, contest
from ..ending import at_end
from .kept import Outcomes
from .records import Records, distrusted
from .settings import Log, Mode, Settings
from .workers import Workers

if TYPE_CHECKING:
    from .rounds import Taken
    from .specialisation import Specialised
    from .stock import Launches
    from .tuning import Call, Reading, Tuning


KERNELS = 1024
"""Kernels of Twill in one process. All further specialisations are stock Triton's."""
LISTED = 4096
"""Specialisations that `status` lists."""
LOADING_SECONDS = 10.0
"""How long a fork waits for a kernel that is being loaded in another thread."""
END_SECONDS = 60.0
"""How long the end of the process waits for it: a compiler that runs on while a process ends brings it down."""


class _Thread(threading.local):
    """What is known of a thread."""

    call: Call | None = None
    """The call of an autotuner that it is in."""
    taken: Taken | None = None
    """What has the call of an autotuner that it is in, if that is settled."""
    reading: Reading | None = None
    """What the settled call of an autotuner that it is in has found."""
    forks_alone = False
    """It holds the lock of a fork that is under way."""


class Activity:
    """What a process has active. It is made once and lasts until `uninstall`."""

    def __init__(self, settings: Settings, triton: Any, launch_stock: Launches):
        self.settings, self.triton, self.launch_stock = settings, triton, launch_stock
        self.version, self.pid = __version__, os.getpid()
        self.records = Records()
        self.outcomes = Outcomes(self.records)
        self.workers = Workers(settings.jobs, self.folder)
        self.found: list[Specialised] = []
        self.unlisted = 0
        """Specialisations that were found after those."""
        self.loading = threading.RLock()
        """Held while a kernel is loaded. Nobody forks or ends the process in the middle of that."""
        self.listing = threading.Lock()
        """Held while a specialisation is found."""
        self.has_ended = False
        self.switch = _twill.Switch()
        """What launchers look at: off while it is paused, and once it has ended."""
        self.thread = _Thread()
        self.token = object()
        """What it leaves with objects of Triton's, so that a later one knows them."""
        self._is_paused = False
        self.left_inductor = False
        """It was said that kernels of torch.compile are left to stock Triton."""
        self._folder: Path | None = None
        self._numbers = itertools.count()
        self._trials: set[str] = set()
        self.restored_at_end: weakref.WeakSet[Tuning] = weakref.WeakSet()
        self._attributes: dict[int, tuple[weakref.ref[Any], str, weakref.ref[Any]]] = {}
        self._gpus: dict[int, str] = {}
        self._gpu: contest.Gpu | None = None
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            mine: weakref.ref[Activity] = weakref.ref(self)
            os.register_at_fork(
                before=lambda: _call(mine, Activity._before_fork),
                after_in_parent=lambda: _call(mine, Activity._after_fork),
                after_in_child=lambda: _call(mine, Activity._in_child),
            )
        self._end_once = at_end(self._end)
        for folder in (self.records.cache, self.records.folder):
            why = None if folder is None else distrusted(folder)
            if why is not None:
                say(f"twill: nothing is kept: {why}")
                break

    # --------------------------------------------------------------------------------------------- the process
    def is_capturing(self) -> bool:
        """Whether launches go into a CUDA graph."""
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        try:
            return bool(cuda is not None and cuda.is_current_stream_capturing())
        except Exception:
            return False

    def asks_capture(self) -> Callable[[], bool]:
        """What says as quickly as can be whether launches go into a CUDA graph."""
        torch = sys.modules.get("torch")
        found: Callable[[], bool] = getattr(getattr(torch, "_C", None), "_cuda_isCurrentStreamCapturing", self.is_capturing)
        return found

    @property
    def is_paused(self) -> bool:
        """Whether all launches of all threads are stock Triton's; for measurements."""
        return self._is_paused

    @is_paused.setter
    def is_paused(self, is_paused: bool) -> None:
        self._is_paused = is_paused
        self.switch.turn(not (is_paused or self.has_ended))

    def device(self) -> int | None:
        """The device in use."""
        try:
            return int(self.triton.runtime.driver.active.get_current_device())
        except Exception:
            return None

    def has_one_device(self) -> bool:
        """Whether there is one device alone."""
        try:
            return bool(sys.modules["torch"].cuda.device_count() == 1)
        except Exception:
            return False

    def stream(self, device: int) -> int | None:
        """The current stream of a device."""
        try:
            return int(self.triton.runtime.driver.active.get_current_stream(device))
        except Exception:
            return None

    def is_deterministic(self) -> bool:
        """Whether torch was told that results must be the same each time."""
        torch = sys.modules.get("torch")
        return bool(torch is not None and getattr(torch, "are_deterministic_algorithms_enabled", bool)())

    def is_suspended(self) -> bool:
        """Whether all launches of this thread are stock Triton's."""
        return self.is_paused or _twill.is_suspended()

    @property
    def call(self) -> Call | None:
        """The call of an autotuner that this thread is in."""
        return self.thread.call

    @call.setter
    def call(self, call: Call | None) -> None:
        self.thread.call = call
        _twill.set_in_call(call is not None and not call.is_over)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Leaves the launches of this thread to stock Triton: its autotuner compares configurations, say."""
        _twill.suspend()
        try:
            yield
        finally:
            _twill.resume()

    @property
    def gpu(self) -> contest.Gpu | None:
        """What contests need of torch; None where nothing can be timed."""
        if self._gpu is None:
            self._gpu = contest.gpu()
        return self._gpu

    def gpu_name(self, device: int) -> str:
        """The name of a GPU, for which choices are kept."""
        if device not in self._gpus:
            try:
                self._gpus[device] = str(sys.modules["torch"].cuda.get_device_name(device))
            except Exception:
                self._gpus[device] = "unknown"
        return self._gpus[device]

    def folder(self) -> Path:
        """A folder that lasts as long as this process."""
        with self._lock:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="twill-"))
            return self._folder

    def new_folder(self) -> Path:
        """Where a kernel's folder may be made."""
        return self.folder() / str(next(self._numbers))

    # --------------------------------------------------------------------------------------------- forks
    @property
    def is_forked(self) -> bool:
        """Whether this is a child of the process that has it active: it uses what is there, and makes and tries nothing."""
        return os.getpid() != self.pid

    def _before_fork(self) -> None:
        self.thread.forks_alone = self.loading.acquire(timeout=LOADING_SECONDS)

    def _after_fork(self) -> None:
        if self.thread.forks_alone:
            self.loading.release()

    def _in_child(self) -> None:
        """Has no part in the parent's background processes. Threads that held a lock are not here."""
        self.loading, self._lock, self.listing, self._trials = threading.RLock(), threading.Lock(), threading.Lock(), set()
        self.workers.let_go()
        for one in self.found:
            one.keep_settled()

    # --------------------------------------------------------------------------------------------- what it found
    def add(self, specialised: Specialised) -> None:
        """A specialisation was launched for the first time."""
        if len(self.found) < LISTED:
            self.found.append(specialised)
        else:
            self.unlisted += 1

    @property
    def kernels(self) -> int:
        """How many specialisations have a kernel of Twill, or wait for one."""
        return sum(one.status.is_taken for one in list(self.found))

    def is_full(self) -> bool:
        """Whether there are as many kernels as there may be, or no more can be listed."""
        return self.unlisted > 0 or self.kernels >= KERNELS

    def on_end(self, owner: Any, attribute: str, value: Any) -> None:
        """Has an attribute of an object removed by `uninstall`, if it is still this one. Keeps neither alive."""
        number = next(self._numbers)
        gone = weakref.ref(owner, lambda _: self._attributes.pop(number, None))
        self._attributes[number] = gone, attribute, weakref.ref(value)

    def begin_trial(self, digest: str) -> None:
        """A kernel is launched for the first time: if the process ends before it is settled, that may be why."""
        if digest not in self._trials:
            self._trials.add(digest)
            self.records.write(f"{digest}.trial", {"pid": os.getpid(), "host": socket.gethostname()})

    def end_trial(self, digest: str) -> None:
        """All that was launched of a kernel has ended well."""
        self._trials.discard(digest)
        self.records.remove(f"{digest}.trial")

    def has_died(self, trial: dict[str, Any]) -> bool:
        """Whether the process that noted a trial has ended without having done with it."""
        if trial.get("host") != socket.gethostname():
            return False
        pid = trial.get("pid")
        if pid == os.getpid():
            return False
        try:
            os.kill(int(str(pid)), 0)
        except ProcessLookupError:
            return True
        except (OSError, ValueError):
            return False
        return False

    @property
    def decides_first(self) -> bool:
        """Whether a first launch is made by who has all that follow, and not by stock Triton."""
        return self.settings.settles_first or self.settings.mode is Mode.FROZEN or self.is_deterministic()

    def note(self, specialised: Specialised, text: str) -> None:
        """Says something about a kernel, once."""
        if specialised.noted != text:
            specialised.noted = text
            say(f"twill: {specialised.name}: {text}")

    def tell(self, specialised: Specialised) -> None:
        """Something about a kernel has changed."""
        if self.settings.log is Log.EACH and not self.has_ended:
            from .report import line

            say(f"twill: {line(specialised)}")

    # --------------------------------------------------------------------------------------------- the end
    def end(self) -> None:
        """Puts everything back, ends background processes and says what there was; in a forked child the first alone."""
        for owner, attribute, value in list(self._attributes.values()):
            one, own = owner(), value()
            if one is not None and own is not None and vars(one).get(attribute) is own:
                del vars(one)[attribute]
        self._attributes.clear()
        for tuning in list(self.restored_at_end):
            tuning.restore()
        self._end_once()

    def _end(self) -> None:
        if self.loading.acquire(timeout=END_SECONDS):
            self.has_ended = True
            self.loading.release()
        self.has_ended = True
        self.switch.turn(False)
        self.workers.stop()
        if self._trials and self._gpu_works():
            for digest in self._trials:
                self.records.remove(f"{digest}.trial")
        self._trials.clear()
        if self.settings.log is not Log.OFF and self.found:
            from .report import table

            say(table(self.found, self.unlisted))
        for one in self.found:
            one.forget()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _gpu_works(self) -> bool:
        """Whether all that was launched has ended without a fault."""
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        try:
            if cuda is not None and cuda.is_initialized():
                cuda.synchronize()
            return True
        except Exception:
            return False


def say(text: str) -> None:
    """Writes to stderr, if there is one."""
    try:
        if sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        pass


def _call(activity: weakref.ref[Activity], method: Callable[[Activity], None]) -> None:
    mine = activity()
    if mine is not None:
        method(mine)
