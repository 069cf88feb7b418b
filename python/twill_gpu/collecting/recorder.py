"""What a process launches: kernels by their TTIR, launches by grid, sizes and options."""

from __future__ import annotations

import atexit
import os
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .. import contest, inductor
from ..errors import InputError
from . import folder
from .folder import Launches, Record

TIMED = 16
"""First launches of a class that are timed; later ones are at powers of two."""
CLASSES = 256
"""Classes of launches that are told apart of a kernel; what exceeds them is counted with the last."""
PLAIN = (bool, int, float, str, type(None))
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


class _Class:
    """Launches that are alike."""

    def __init__(self, grid: list[int], arguments: dict[str, int], options: dict[str, Any]):
        self.grid, self.arguments, self.options = grid, arguments, options
        self.count = 0
        self.pending: list[tuple[contest.Event, contest.Event]] = []
        self.times: list[float] = []

    def is_timed(self) -> bool:
        """Whether the next launch is."""
        return self.count < TIMED or not self.count & (self.count - 1)

    def collect(self) -> None:
        """Takes the times of launches that have ended."""
        while self.pending and self.pending[0][1].query():
            before, after = self.pending.pop(0)
            self.times.append(before.elapsed_time(after))

    def told(self) -> Launches:
        """As it is written."""
        middle = statistics.median(self.times) if self.times else None
        return Launches(self.grid, self.arguments, self.options, self.count, len(self.times), middle)


class _Kernel:
    """A specialisation as Triton compiled it."""

    def __init__(self, path: Path, record: Record):
        self.path, self.record = path, record
        self.classes: dict[Any, _Class] = {}


class Recorder:
    """Records what this process launches. Files are written at once and when the process ends."""

    def __init__(self, place: Path):
        self._folder, self._lock, self._pid = place, threading.RLock(), os.getpid()
        # A later process may have the same number.
        self._began = time.time_ns()
        self._kernels: dict[int, _Kernel | None] = {}
        self._by_path: dict[Path, _Kernel] = {}
        self._kept: list[Any] = []
        """What was compiled, so that its id stays its own."""
        self._last: dict[int, tuple[Any, int]] = {}
        self._tuning = threading.local()
        self._gpu: contest.Gpu | None = None
        self.has_ended = False
        self._unrecorded = ""
        """The first launch that could not be recorded, and why."""
        try:
            folder.prepare(place)
        except OSError as error:
            raise InputError(f"cannot write to {place}: {error.strerror}") from error
        atexit.register(self.end)

    def left(self, error: Exception) -> None:
        """Kernels of torch.compile could not be recorded: this torch is another one than is known."""
        self._unrecorded = self._unrecorded or f"kernels of torch.compile: {type(error).__name__}: {error}"

    @contextmanager
    def tuning(self) -> Iterator[None]:
        """Launches of this thread compare configurations: what they compile is recorded, and not how often it runs."""
        before = getattr(self._tuning, "on", False)
        self._tuning.on = True
        try:
            yield
        finally:
            self._tuning.on = before

    # ---------------------------------------------------------------------------------------------- a launch
    def begin(self, function: Any, warmup: bool) -> tuple[contest.Event, contest.Event] | None:
        """Records the beginning of a launch that is to be timed. The first of a function is not: it compiles and loads."""
        if warmup or getattr(self._tuning, "on", False) or id(function) not in self._last:
            return None
        try:
            self._gpu = self._gpu or contest.gpu()
            if self._gpu is None or self._gpu.is_capturing() or not self._is_timed(function):
                return None
            if self._gpu.spin is not None and self._gpu.is_idle():
                self._gpu.spin()
            before, after = self._gpu.event(), self._gpu.event()
            before.record()
        except Exception:
            return None
        return before, after

    def _is_timed(self, function: Any) -> bool:
        found = self._last[id(function)][0]
        return found is None or found.is_timed()

    def launched(
        self,
        function: Any,
        compiled: Any,
        grid: Any,
        args: tuple[Any, ...],
        named: Mapping[str, Any],
        warmup: bool,
        timer: tuple[contest.Event, contest.Event] | None,
    ) -> None:
        """A launch was made, or a kernel compiled for later."""
        if compiled is None:
            return
        with self._recording(function.__name__):
            if timer is not None:
                timer[1].record()
            compiled = compiled.result() if hasattr(compiled, "result") else compiled
            is_new = id(compiled) not in self._kernels
            if is_new:
                self._kept += [compiled, function]
                self._kernels[id(compiled)] = self._found(function, compiled)
            kernel = self._kernels[id(compiled)]
            self._last[id(function)] = self._last.get(id(function), (None, 0))
            if kernel is None:
                return
            if warmup or getattr(self._tuning, "on", False):
                if is_new:
                    self._write(kernel)
                return
            given = {**dict(zip(function.arg_names, args)), **named}
            options = {name: getattr(compiled.metadata, name, None) for name in OPTIONS}
            self._count(function, kernel, _class_of(kernel, grid, given, options), None if is_new else timer)

    def launched_by_inductor(
        self,
        launcher: Any,
        found: inductor.Launched,
        options: Mapping[str, Any],
        grid: tuple[Any, ...],
        args: tuple[Any, ...],
        timer: tuple[contest.Event, contest.Event] | None,
    ) -> None:
        """A kernel of torch.compile was launched. args: those of the kernel."""
        with self._recording(found.name):
            if timer is not None:
                timer[1].record()
            kernel = self._kernels.get(id(launcher))
            is_new = kernel is None
            if kernel is None:
                self._kept.append(launcher)
                kernel = self._kernels[id(launcher)] = self._found_by_inductor(found)
            self._last[id(launcher)] = self._last.get(id(launcher), (None, 0))
            if getattr(self._tuning, "on", False):
                if is_new:
                    self._write(kernel)
                return
            self._count(launcher, kernel, _class_of(kernel, grid, dict(zip(found.given, args)), options), timer)

    def _count(self, of: Any, kernel: _Kernel, one: _Class, timer: tuple[contest.Event, contest.Event] | None) -> None:
        """Counts a launch. of: what is launched, a function or a launcher."""
        one.count += 1
        # Of another kernel than the launch before, something may have been compiled or loaded in between.
        if timer is not None and one.count > 1:
            one.pending.append(timer)
        # Nothing may be asked of events while launches go into a CUDA graph.
        if one.pending and not (self._gpu is not None and self._gpu.is_capturing()):
            one.collect()
        self._last[id(of)] = one, one.count
        if not one.count & (one.count - 1) and (one.count == 1 or one.count >= TIMED):
            self._write(kernel)

    @contextmanager
    def _recording(self, name: str) -> Iterator[None]:
        """Whatever a kernel has that is not known, the program goes on."""
        try:
            with self._lock:
                if os.getpid() != self._pid:
                    self._begin_in_child()
                yield
        except Exception as error:
            self._unrecorded = self._unrecorded or f"{name}: {type(error).__name__}: {error}"

    def _begin_in_child(self) -> None:
        """A process that was forked has launched nothing yet."""
        self._pid = os.getpid()
        for known in (self._kernels, self._by_path, self._last):
            known.clear()

    # ---------------------------------------------------------------------------------------------- a kernel
    def _found(self, function: Any, compiled: Any) -> _Kernel | None:
        """Writes the TTIR of what was compiled; None where it has none, as kernels in Gluon."""
        ttir = compiled.asm.get("ttir")
        if not ttir:
            return None
        source, names = compiled.src, function.arg_names
        signature = {str(name): kind for name, kind in source.signature.items()}
        constexprs = {_name(names, path): _plain(value) for path, value in source.constants.items()}
        record = Record(
            kernel=function.__name__,
            file=getattr(function.fn.__code__, "co_filename", ""),
            line=getattr(function, "starting_line_number", 0),
            target=":".join(map(str, (compiled.metadata.target.backend, compiled.metadata.target.arch))),
            signature={name: str(kind) for name, kind in signature.items() if kind != "constexpr"},
            constexprs={name: value for name, value in constexprs.items() if signature.get(name) == "constexpr"},
        )
        path = folder.write_ttir(self._folder, record.kernel, ttir)
        # Other options of the compiler, such as `num_stages`, may leave the TTIR as it is.
        return self._by_path.setdefault(path, _Kernel(path, record))

    def _found_by_inductor(self, found: inductor.Launched) -> _Kernel:
        meta = found.result.compile_meta
        signature = {name: str(kind) for name, kind in meta.get("signature", {}).items()}
        constants = {_name(found.arg_names, path): _plain(value) for path, value in meta.get("constants", {}).items()}
        record = Record(
            kernel=found.name,
            file=inductor.SOURCE,
            line=0,
            target=f"{meta['device_type']}:{meta['cc']}",
            signature={name: kind for name, kind in signature.items() if kind != "constexpr"},
            constexprs={name: value for name, value in constants.items() if signature.get(name) == "constexpr"},
        )
        path = folder.write_ttir(self._folder, record.kernel, found.ttir)
        return self._by_path.setdefault(path, _Kernel(path, record))

    def _write(self, kernel: _Kernel) -> None:
        told = [one.told() for one in kernel.classes.values()]
        folder.write_part(kernel.path, f"{self._pid}-{self._began}", kernel.record, told)

    def end(self) -> None:
        """Writes all that was launched; called when the process ends."""
        self.has_ended = True
        atexit.unregister(self.end)
        if os.getpid() != self._pid:
            return
        if self._unrecorded:
            print(f"twill: not all launches are recorded: {self._unrecorded}", file=sys.stderr)
        cuda = contest.gpu()
        with self._lock:
            for kernel in self._by_path.values():
                try:
                    if cuda is not None:
                        _synchronize()
                    for one in kernel.classes.values():
                        one.collect()
                    self._write(kernel)
                except Exception:
                    # A context that has failed has no times.
                    self._write(kernel)


def _class_of(kernel: _Kernel, grid: Any, given: Mapping[str, Any], options: Mapping[str, Any]) -> _Class:
    """The launches that one with a grid and arguments is like."""
    sizes = [int(extent) for extent in grid]
    free = kernel.record.signature
    numbers = {name: value for name, value in given.items() if name in free and type(value) is int}
    known = {name: value for name, value in options.items() if value is not None}
    key = (*sizes, *numbers.items(), *known.items())
    found = kernel.classes.get(key)
    if found is None:
        if len(kernel.classes) >= CLASSES:
            return next(reversed(kernel.classes.values()))
        found = kernel.classes[key] = _Class(sizes, numbers, known)
    return found


def _synchronize() -> None:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and hasattr(cuda, "synchronize"):
        cuda.synchronize()


def _name(names: list[str], path: Any) -> str:
    """The parameter that a path leads to; parts of tuples have numbers."""
    first, *rest = path if isinstance(path, tuple) else (path,)
    return ".".join([names[first] if isinstance(first, int) else str(first), *map(str, rest)])


def _plain(value: Any) -> Any:
    value = getattr(value, "value", value)
    return value if isinstance(value, PLAIN) else str(value)
