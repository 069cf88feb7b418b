"""A specialisation of somebody else's kernel: what Twill has for it, and which side has the launches."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, TimeoutError
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import backend
from .._twill import SettledLauncher
from ..contest import MULTISTAGE, ONE_STAGE, OWN, TWILL, Contest, Side
from ..errors import TwillError
from ..scheduled import ScheduledKernel
from . import configurations
from .configurations import Compiled, Configuration, Made
from .contested import Contested
from .forms import options_of
from .function import Function, nothing_for_twill
from .records import digest_of
from .settings import Mode
from .unfinished import Unfinished, finish, note, recall
from .workers import Unanswered

if TYPE_CHECKING:
    from .activity import Activity

_LOAD = re.compile(r"\btt\.load\b")
_ADDRESS = re.compile(r"\btt\.int_to_ptr\b|!tt\.ptr<!tt\.ptr<")
_POLL = re.compile(r"\btt\.atomic_(poll|load)\b")
_WATCHED = re.compile(r"\btt\.atomic_|isVolatile = true|volatile = true|\btt\.elementwise_inline_asm\b")
"""What a loop without a fixed number of iterations may wait by."""
BEGIN_SECONDS = 10.0
"""How long a second launch waits at most until it is known what the cache has: it takes some tenths of a second."""
WAIT_SECONDS = 300.0
"""How long a launch waits for its kernels where it waits at all. A search ends after a minute of CPU time."""


class Status(Enum):
    """What runs a specialisation."""

    STOCK = "stock"
    """Stock Triton for good; the reason says why."""
    WAITING = "waiting"
    """Stock Triton until there is something to try."""
    SCHEDULED = "scheduled"
    """Twill's kernel where it is the fastest."""
    TUNED = "tuned"
    """Stock Triton with other stages and warps where that is faster; the reason says why there is no kernel of Twill's."""

    @property
    def is_taken(self) -> bool:
        """Whether there is something to try, or will be."""
        return self is not Status.STOCK


_Answer = dict[str, Any]
_UnderWay = tuple[Future[_Answer], Callable[[Future[_Answer]], None]]
"""What a background process is asked for, and what is done with its answer."""


class Specialised(Contested):
    """A specialisation of a Triton function on a device."""

    def __init__(self, activity: Activity, function: Function, ttir: str, target: Any, device: int, launcher: SettledLauncher):
        self.activity, self.function, self.device, self.launcher = activity, function, device, launcher
        self.name = function.name
        self.reason = ""
        """Why Twill has no kernel for it."""
        self.kernels: dict[Side, ScheduledKernel] = {}
        self._unfinished = Unfinished(activity, self._not_finished, self._assemble, lambda: self.launcher.forget())
        self.assembled_again: set[Side] = set()
        self._reasons: dict[Side, str] = {}
        self._changing = threading.Lock()
        self.configurations: dict[Side, Made] = {}
        """What stock Triton compiled with other stages and warps."""
        self.contests: dict[Any, Contest] = {}
        self.looked_at: Counter[Side] = Counter()
        """Launches that were not settled, by whose kernel it was; of comparisons that of stock Triton."""
        self.looked_at_captured: Counter[Side] = Counter()
        """Those of them that went into CUDA graphs."""
        self.checked: list[str] = []
        """What was found by comparison with stock Triton, a line for each launch."""
        self.compared: Counter[Side] = Counter()
        """Those launches, by whose they were."""
        self._ttir = ttir
        self.machine = ""
        """For which its kernels are made, once it has begun."""
        self.numbers: list[str] | None = None
        """Names of the whole numbers that tell launches apart; known after a launch."""
        self._target = target
        self.digest = ""
        """Of all that its kernels depend on, once it has begun."""
        self.noted = ""
        """What was said of it on stderr."""
        self.is_left = False
        """Whether it is stock Triton's without a try."""
        self._stock: Compiled | None = None
        """What stock Triton compiled, as its author has it; None where that is not known."""
        self._options: dict[Side, dict[str, object]] = {}
        """What Twill's kernels are made by."""
        self._awaited: set[Side] = set()
        self._awaits_configurations = False
        self.beginning: threading.Event | None = None
        """Set once it has begun, where that is done behind the first launch."""
        self._is_slow = False
        """It was waited for in vain until it has begun."""
        self.has_begun = False
        """Whether it was launched outside a CUDA graph, so that kernels may be made: one of several threads has that done."""

    @property
    def status(self) -> Status:
        """What runs it."""
        return Status.WAITING if self.beginning is not None else self._known_status

    @property
    def _known_status(self) -> Status:
        # First what is awaited: another thread may take it in between.
        waits = bool(self._awaited) or self._awaits_configurations
        if self.kernels:
            return Status.SCHEDULED
        if waits:
            return Status.WAITING
        return Status.TUNED if self.configurations else Status.STOCK

    @property
    def is_alone(self) -> bool:
        """Whether stock Triton's kernel is the only one, and no other is being made."""
        return self.has_begun and self.status is Status.STOCK

    @property
    def kernel(self) -> ScheduledKernel | None:
        """Twill's kernel; of several that of the schedule."""
        kernels = self.kernels
        return next((kernels[side] for side in OWN if side in kernels), None)

    @property
    def why_not_on_copies(self) -> str | None:
        """Why it cannot be launched on copies of its memory; None where it can."""
        if _ADDRESS.search(self._ttir):
            return "it reads addresses from memory, which cannot be copied"
        if _POLL.search(self._ttir) or ("scf.while" in self._ttir and _WATCHED.search(self._ttir)):
            return "it may wait for somebody who writes to its memory, and not to a copy"
        return None

    @property
    def read_only(self) -> frozenset[str]:
        """Names of the arguments to whose memory it does not write, as far as that is known."""
        kernel = self.kernel
        parameters = [] if kernel is None else kernel.metadata["parameters"]
        return frozenset(one["name"] for one in parameters if one.get("read_only"))

    @property
    def challengers(self) -> tuple[Side, ...]:
        """Who may be faster than stock Triton as its author has it."""
        return (*(side for side in OWN if side in self.kernels), *self.configurations)

    def begin(
        self,
        only: Sequence[str],
        stock: Callable[[], Compiled],
        passed: int | None = None,
        launched: tuple[dict[str, int], tuple[int, ...]] | None = None,
    ) -> None:
        """Has kernels made, or takes what is there; whatever goes wrong, stock Triton runs.

        In the background that is done behind the launch; the next one waits for it, as it waits for no kernel.

        only: options that Twill has not. stock: what stock Triton compiled. passed: as for `configurations.Made`. launched: whole
        numbers by name and grid of the launch before it.
        """
        beginning = threading.Event()
        with self._changing:
            if self.has_begun:
                return
            why = f"{', '.join(only)}: only stock Triton does that" if only else self._why_not(self._target)
            if why is not None:
                self.reason, self.is_left, self._ttir = why, True, ""
            else:
                self.beginning = beginning
            # Last: who sees that it has begun can wait for it.
            self.has_begun = True
        if why is not None:
            return

        def start() -> None:
            try:
                if not self.activity.has_ended:
                    self._start(stock, passed)
                    if launched is not None and self._unfinished:
                        # Has the winner's machine code made, if there is one.
                        self.contest_for(self.class_of(*launched))
            except Exception:
                # It is found out by the next launch.
                pass
            finally:
                self.beginning = None
                beginning.set()

        def start_behind() -> None:
            with self.activity.loading:
                start()

        if self.activity.settings.mode is not Mode.BACKGROUND or self.activity.decides_first:
            start()
            return
        try:
            threading.Thread(target=start_behind, daemon=True, name="twill-begin").start()
        except RuntimeError:
            start()

    def wait_until_begun(self) -> None:
        """Waits until it is known what the cache has of it; in modes that wait for kernels, until there are some."""
        beginning = self.beginning
        if beginning is not None and not self._is_slow:
            waits = self.activity.settings.mode is not Mode.BACKGROUND
            self._is_slow = not beginning.wait(2 * WAIT_SECONDS if waits else BEGIN_SECONDS)

    def _start(self, stock: Callable[[], Compiled], passed: int | None) -> None:
        try:
            self.digest = digest_of("\n".join((self._ttir, self.machine, backend.toolchain(), self.activity.version)))
            records = self.activity.records
            trial = records.read(f"{self.digest}.trial")
            if trial is not None and self.activity.has_died(trial):
                records.remove(f"{self.digest}.trial")
                # Whoever was launched: nothing is tried of it any more.
                records.write(f"{self.digest}.died", {"name": self.name})
                self.reason, self.is_left = "a process ended while its first launches were under way", True
                self.activity.tell(self)
                return
            if records.read(f"{self.digest}.died") is not None:
                self.is_left = True
                self.reason = "a process ended while its first launches were under way"
                return
            # All are under way before one is waited for.
            self._stock = _known(stock)
            self._options = options_of(self._own)
            under_way = [self._begin(side) for side in self._options]
            if self.activity.settings.configurations:
                under_way.append(self._configure(passed))
            end = time.monotonic() + WAIT_SECONDS
            for future, then in filter(None, under_way):
                if self.activity.settings.mode is not Mode.BACKGROUND:
                    self._wait(future, end - time.monotonic())
                future.add_done_callback(then)
        except Exception as error:
            self.kernels, self.reason = {}, f"{type(error).__name__}: {error}"
            self._awaited, self._awaits_configurations = set(), False
        finally:
            if not self._known_status.is_taken:
                self._ttir = ""

    @property
    def _own(self) -> Configuration | None:
        """Its author's warps and stages, as far as they are known."""
        return None if self._stock is None else self._stock.own

    def leave(self) -> None:
        """Leaves it to stock Triton for now: its first launch went into a CUDA graph, where nothing may be made."""
        if not self.has_begun:
            self.reason = self._why_not(self._target) or "it was launched into CUDA graphs only"

    def _why_not(self, target: Any) -> str | None:
        """Why nothing is made for it, as far as that can be told at once."""
        from .. import gpu

        if target.backend != "cuda" or target.arch not in gpu.ARCHITECTURES or target.arch < 90:
            return f"the GPU is none of Hopper ({target.backend} {target.arch})"
        if target.arch >= 100 and not self.activity.settings.blackwell:
            return "the GPU is one of Blackwell: TWILL_BLACKWELL=1 takes it too"
        excluded = self.activity.settings.excludes(self.name)
        if excluded is not None:
            return excluded
        nothing = nothing_for_twill(self._ttir)
        if nothing is not None:
            return nothing
        if self.activity.is_full():
            return "Twill has as many kernels in this process as it may have"
        self.machine = gpu.machine_of(target.arch)
        return None

    # --------------------------------------------------------------------------------------------- making a kernel
    def _begin(self, side: Side) -> _UnderWay | None:
        """Takes what earlier processes made or found; else has it made."""
        if side in (MULTISTAGE, ONE_STAGE) and not _LOAD.search(self._ttir):
            self._say_why(side, "it loads nothing through pointers")
            return None
        record = self.activity.records.read(self._record(side))
        if record is not None and "error" in record:
            self._say_why(side, str(record["error"]))
            return None
        self._awaited.add(side)
        if not self.kernels:
            self.reason = "a kernel is being made"
        options = self._options[side]
        try:
            folder = backend.cached_kernel(self._ttir, self.name, self.machine, options)
        except Exception:
            folder = None
        if folder is not None:
            recall(self.activity.records, self._record(side, "machine code"), folder)
            self._take(side, folder, later=self.activity.settings.mode is Mode.BACKGROUND and not self.activity.decides_first)
            return None
        return self._make(side)

    def _make(self, side: Side) -> _UnderWay | None:
        """Has a kernel made by another process, and its machine code."""
        why_not = self.may_make()
        if why_not is not None:
            self._say_why(side, f"no kernel is in the cache, and {why_not}")
            return None
        place = self.activity.new_folder()
        future = self.activity.workers.make(self._ttir, self.name, self.machine, self._options[side], place)
        return future, lambda future: self._made(side, future, place)

    def _record(self, side: Side, of: str = "") -> str:
        """Where it is kept that a kernel cannot be made; or something else of it."""
        # Another configuration of the author's may do where this one does not.
        known = [self.digest, side, self._options.get(side), *([of] if of else [])]
        return self.digest if side == TWILL and not of else digest_of(json.dumps(known))

    def _say_why(self, side: Side, reason: str) -> None:
        """One of Twill's kernels is not there: if no other is, that is the reason why Twill has none."""
        self._awaited.discard(side)
        self._reasons[side] = reason
        if not self.kernels and not self._awaited:
            self.reason = next(self._reasons[one] for one in OWN if one in self._reasons)

    def may_make(self) -> str | None:
        """Why nothing is made in this process; None where it may be."""
        if self.activity.settings.mode is Mode.FROZEN or self.activity.is_deterministic():
            return "none may be made"
        return None if self.activity.workers.alive else "forked processes make none"

    def _wait(self, future: Future[_Answer], seconds: float) -> None:
        """Waits for a kernel, but not for ever: what has it made may hang."""
        try:
            future.exception(max(seconds, 0.0))
        except TimeoutError:
            from .activity import say

            self.reason = f"a kernel is being made; the launch waited {WAIT_SECONDS:.0f} s for it"
            say(f"twill: {self.name}: there is no kernel after {WAIT_SECONDS:.0f} s; stock Triton runs until there is one")

    def _made(self, side: Side, future: Future[_Answer], folder: Path) -> None:
        error = future.exception()
        if error is not None:
            # What was interrupted says nothing about the kernel.
            self._fail(side, str(error), keep=not isinstance(error, Unanswered))
        else:
            note(self.activity.records, self._record(side, "machine code"), folder)
            self._take(side, folder)

    def _take(self, side: Side, folder: Path, later: bool = False) -> None:
        """Takes a kernel from its folder. later: its machine code is made when it may be launched."""
        with self.activity.loading:
            try:
                if self.activity.has_ended:
                    return
                kernel = ScheduledKernel(folder, self._ttir, self.machine)
                kernel.check_parameters(list(self.function.arg_names))
                if later:
                    self._unfinished.add(side, kernel)
                else:
                    finish(kernel)
            except Exception as error:
                self._fail(side, f"{type(error).__name__}: {error}", keep=isinstance(error, TwillError))
                return
            finally:
                # All of it was read.
                shutil.rmtree(folder, ignore_errors=True)
            parameters = kernel.metadata["parameters"]
            self.numbers = [
                one["name"]
                for one in parameters
                if one["kind"] == "scalar" and not one["element"].startswith(("fp", "bf"))
            ]
            with self._changing:
                self.kernels, self.reason = {**self.kernels, side: kernel}, ""
            self._awaited.discard(side)
            # It may be faster than who has won without it. Where that was settled first it stays so.
            if not self.activity.settings.settles_first:
                self.contests.clear()
            self.launcher.forget()
        self.activity.tell(self)

    def _assemble(self, side: Side) -> None:
        """Machine code of one of Twill's kernels is gone: another process makes it."""
        self._awaited.add(side)
        self.assembled_again.add(side)
        self._leave_out(side)
        try:
            under_way = self._make(side)
        except BaseException:
            self._assembled(side)
            raise
        if under_way is None:
            self._assembled(side)
            return
        future, then = under_way
        future.add_done_callback(then)
        future.add_done_callback(lambda _: self._assembled(side))

    def _assembled(self, side: Side) -> None:
        """Launches that were stock Triton's until then are looked at anew."""
        self.assembled_again.discard(side)
        self.launcher.forget()

    def _leave_out(self, side: Side) -> None:
        with self._changing:
            self.kernels = {one: kernel for one, kernel in self.kernels.items() if one != side}
        self.contests.clear()
        self.launcher.forget()

    def _not_finished(self, side: Side, error: Exception) -> None:
        """Machine code of one of Twill's kernels cannot be loaded."""
        self._leave_out(side)
        self._fail(side, f"{type(error).__name__}: {error}", keep=isinstance(error, TwillError))

    def finished(self, side: Side) -> ScheduledKernel | None:
        """One of Twill's kernels with its machine code."""
        self._unfinished.finish(side)
        return self.kernels.get(side)

    def _fail(self, side: Side, reason: str, keep: bool = True) -> None:
        """One of Twill's kernels is not made; in later processes neither if that is to be kept."""
        self._say_why(side, reason)
        if keep:
            self.activity.records.write(self._record(side), {"error": reason, "name": self.name})
        self.activity.tell(self)

    # --------------------------------------------------------------------------------------------- other configurations
    def _configure(self, passed: int | None) -> _UnderWay | None:
        """Takes what stock Triton compiled for earlier processes with other stages and warps; else has it compiled."""
        stock = self._stock
        if stock is None:
            return None
        try:
            key = digest_of(json.dumps([self.digest, stock.options]))
            kept = self.activity.records.read(key)
            if kept is not None and configurations.are_there(kept["made"]):
                self.configurations = configurations.made_of(kept["made"], stock.source, passed)
                return None
        except Exception:
            # What is not known of a kernel, or not as this version keeps it, is left out.
            return None
        if self.may_make() is not None:
            return None

        def made(future: Future[_Answer]) -> None:
            with self.activity.loading:
                try:
                    if future.exception() is None and not self.activity.has_ended:
                        found = future.result()["made"]
                        self.activity.records.write(key, {"made": found})
                        self.configurations = configurations.made_of(found, stock.source, passed)
                        self.contests.clear()
                        self.launcher.forget()
                finally:
                    self._awaits_configurations = False
            self.activity.tell(self)

        self._awaits_configurations = True
        return self.activity.workers.configure(self._ttir, stock.options), made

    def configuration(self, side: Side) -> Any:
        """The `CompiledKernel` of a configuration; None if it is not for this GPU, or spills more than the author's."""
        made = self.configurations.get(side)
        if made is None:
            return None
        if made.kernel is None:
            try:
                is_worse = self._stock is not None and made.load(self.activity.launch_stock) > self._stock.spills
            except Exception:
                is_worse = True
            if is_worse:
                self.drop(side)
                return None
        return made.kernel

    # --------------------------------------------------------------------------------------------- launching
    def refuse(self, reason: str, side: Side | None = None) -> None:
        """One of Twill's kernels, or all, has no more launches in this process: there was one that it does not take."""
        with self._changing:
            refused = {one: kernel for one, kernel in self.kernels.items() if side in (None, one)}
            self.kernels = {one: kernel for one, kernel in self.kernels.items() if one not in refused}
        if self.kernels:
            for contest in list(self.contests.values()):
                for one in refused:
                    contest.forfeit(one)
        else:
            self.contests.clear()
            self.reason = reason
        for one, kernel in refused.items():
            self._reasons[one] = reason
            self._unfinished.drop(one)
            kernel.forget()
        self.launcher.forget()
        self.activity.tell(self)

    def give_up(self, side: Side, reason: str) -> None:
        """A challenger has no more launches."""
        if side in OWN:
            self.refuse(reason, side)
        else:
            self.drop(side)

    def drop(self, side: Side) -> None:
        """A configuration has no more launches."""
        self.configurations = {other: made for other, made in self.configurations.items() if other != side}
        for contest in list(self.contests.values()):
            contest.forfeit(side)
        self.launcher.forget()

    def forget(self) -> None:
        """Lets go of all that is known of it. Another thread may be about to launch it."""
        kernels, self.kernels, self.configurations = self.kernels, {}, {}
        self.contests.clear()
        self.launcher.forget()
        self._ttir = ""
        for side, kernel in kernels.items():
            self._unfinished.drop(side)
            kernel.forget()

    def keep_settled(self) -> None:
        """Forgets contests that are under way: those of a forked child are its parent's."""
        self._changing, self.beginning = threading.Lock(), None
        self._unfinished.forked()
        self.contests = {key: one for key, one in list(self.contests.items()) if one.winner is not None}
        self.launcher.forget()

    def tell(self) -> None:
        """Says on stderr what became of it, where that was asked for."""
        self.activity.tell(self)

    @property
    def launched(self) -> Counter[Side]:
        """Launches by whose kernel it was; of comparisons that of stock Triton."""
        return self.looked_at + Counter({Side(side): launched for side, launched, _ in self.launcher.counts()})

    @property
    def captured(self) -> Counter[Side]:
        """Those of them that went into CUDA graphs."""
        return self.looked_at_captured + Counter({Side(side): captured for side, _, captured in self.launcher.counts()})


def _known(stock: Callable[[], Compiled]) -> Compiled | None:
    """What stock Triton compiled, with the warps and stages that its author chose; None where they are not known."""
    try:
        found = stock()
        return found if found.own else None
    except Exception:
        return None
