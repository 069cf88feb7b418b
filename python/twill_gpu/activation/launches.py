"""The launches of one Triton function while Twill is active: each by Twill's kernel or by stock Triton, exactly once."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..contest import Side
from ..jit_kernel import STOCK_ONLY
from . import checking
from .settings import Mode
from .sources import may_multiply
from .specialisation import Specialised

if TYPE_CHECKING:
    from .activity import Activity

ATTRIBUTE = "_twill_launches"
"""Where a Triton function, and what was compiled of it, has its launches."""
_ABSENT = object()
_Device = tuple[Any, Callable[..., Any], dict[Any, Specialised], Any]


class Launches:
    """The launches of a Triton function. `original` is `JITFunction.run` as Triton has it."""

    def __init__(self, activity: Activity, function: Any, original: Callable[..., Any]):
        self._activity, self._function = activity, function
        self._original, self._unhooked = partial(original, function), partial(original, _Unhooked(function))
        self._knobs, self._driver = activity.triton.knobs, activity.triton.runtime.driver
        self._devices: dict[int, _Device] = {}
        """Target, binder and specialisations of each, and what Triton compiled for it."""
        # Options that Triton 3.9 adds to those of each launch.
        self._more = [name for name in ("fpsan_homomorphic_casts",) if hasattr(self._knobs.compilation, name)]
        self.is_stock = function.is_gluon() or not may_multiply(function)
        """Nothing in it is for Twill."""

    def belongs_to(self, activity: Activity, function: Any = None) -> bool:
        """Whether they are those of what is active now, and of this function."""
        return self._activity is activity and function in (None, self._function)

    def run(self, *args: Any, grid: Any, warmup: bool, **named: Any) -> Any:
        """As `JITFunction.run`. What it does before each launch is all that a launch by stock Triton costs more."""
        # A hook may give each launch another pass pipeline.
        is_hooked = self._knobs.runtime.add_stages_inspection_hook is not None
        if warmup or is_hooked or self._activity.is_suspended():
            return self._original(*args, grid=grid, warmup=warmup, **named)
        named["debug"] = named.get("debug", self._function.debug) or self._knobs.runtime.debug
        named["instrumentation_mode"] = self._knobs.compilation.instrumentation_mode
        for name in self._more:
            named[name] = getattr(self._knobs.compilation, name)
        device = self._driver.active.get_current_device()
        original = self._original
        if self._function.pre_run_hooks:
            # They may change what is looked at below.
            for hook in self._function.pre_run_hooks:
                hook(*args, **named)
            original = self._unhooked
        here = self._devices.get(device)
        # Somebody may have thrown away what Triton compiled: its source may be another one now.
        if here is None or here[3] is not self._function.device_caches[device][0] or not here[3]:
            here = self._device(device)
        bound, specialisation, options = here[1](*args, **named)
        key: Any = (*specialisation, *options, *options.values())
        try:
            found = here[2].get(key)
        except TypeError:
            # An option that is a list or a dictionary.
            key = str(key)
            found = here[2].get(key)
        if found is None or not found.has_begun:
            return self._first(key, here, device, partial(original, *args, grid=grid, warmup=False, **named), named)
        self._check_globals()
        if callable(grid):
            grid = grid(bound)
        by_stock = partial(self._activity.launch_stock, found.compiled, grid, bound, device)
        return self._contested(found, bound, grid, by_stock)

    def run_compiled(self, found: Specialised, grid: Any, args: tuple[Any, ...], by_stock: Callable[..., Any]) -> Any:
        """As `CompiledKernel[grid](*args)` on what `run` gave back before: all arguments by position, constexprs too."""
        names = self._function.arg_names
        # What was loaded on one device may be launched on another one.
        is_here = self._driver.active.get_current_device() == found.device
        if len(args) != len(names) or self._activity.is_suspended() or not is_here:
            return by_stock(*args)
        self._contested(found, dict(zip(names, args)), grid, partial(by_stock, *args))
        return None

    def _device(self, device: int) -> _Device:
        compiled, _, target, _, binder = self._function.device_caches[device]
        self._devices[device] = target, binder, {}, compiled
        return self._devices[device]

    def _first(self, key: Any, here: _Device, device: int, by_stock: Callable[[], Any], named: dict[str, Any]) -> Any:
        """The first launch of a specialisation is stock Triton's, whose TTIR Twill's kernel is made from."""
        compiled = by_stock()
        if compiled is None:
            return None
        compiled = compiled.result() if hasattr(compiled, "result") else compiled
        # Another thread may be here too, or one that captures a graph was.
        fresh = Specialised(self._activity, self._function, compiled, here[0], device)
        found = here[2].setdefault(key, fresh)
        if found is fresh:
            self._activity.add(found)
        found.launches += 1
        if self._activity.is_capturing():
            found.captured[Side.STOCK] += 1
            found.leave()
        else:
            found.begin([name for name in STOCK_ONLY if named.get(name)])
            # Some launch it directly from now on.
            compiled.__dict__[ATTRIBUTE] = self, found
        return compiled

    def _check_globals(self) -> None:
        """What `JITFunction.run` checks before a launch, whoever's kernel it is."""
        for (name, _), (value, variables) in self._function.used_global_vals.items():
            if (now := variables.get(name, _ABSENT)) != value:
                raise RuntimeError(
                    f"Global variable {name} has changed since we compiled this kernel, from {value} to {now}"
                )

    def _contested(self, found: Specialised, bound: dict[str, Any], grid: Any, by_stock: Callable[[], Any]) -> Any:
        """A launch by the side whose turn it is."""
        kernel, is_capturing = found.kernel, self._activity.is_capturing()
        found.launches += 1
        if is_capturing:
            found.captured[Side.STOCK] += 1
        if kernel is None:
            return by_stock()
        runtime = self._knobs.runtime
        enter, leave = runtime.launch_enter_hook, runtime.launch_exit_hook
        if getattr(enter, "calls", enter) or getattr(leave, "calls", leave):
            # Profilers are told of stock Triton's kernels, with the metadata of their authors.
            return by_stock()
        is_check = self._activity.settings.mode is Mode.CHECK
        turn, contested, plan = Side.STOCK, None, None
        varying: list[Any] = []
        try:
            sizes: Any = grid(bound) if callable(grid) else grid
            grid = tuple(map(operator.index, sizes))
            key = found.class_of(bound, grid)
            contested = found.contests.get(key)
            if contested is None or contested.winner is not Side.STOCK:
                # Nothing may be made, loaded or tried while launches go into a CUDA graph.
                may = not is_capturing or (
                    contested is not None and contested.winner is Side.TWILL and kernel.is_planned(bound, grid)
                )
                if may:
                    plan, varying = kernel.plan(bound, grid)
                    # Stock Triton launches on the device in use, wherever memory is: that one's stream has the launch.
                    may = plan.index == found.device
                if not may:
                    contested = None
                elif is_check:
                    turn = Side.TWILL
                else:
                    contested = contested or found.contest_for(key)
                    turn = Side.STOCK if contested is None else contested.turn()
        except Exception as error:
            # Refused, or whatever: stock Triton says it if the arguments are wrong.
            found.refuse(f"{type(error).__name__}: {error}")
            return by_stock()
        if is_check:
            if turn is Side.STOCK or len(found.checked) >= checking.LAUNCHES:
                return by_stock()
            return checking.launch(found, bound, grid, by_stock)
        if contested is None:
            return by_stock()
        if turn is Side.STOCK:
            return by_stock() if contested.winner is not None else contested.launch(Side.STOCK, by_stock)
        try:
            launch = partial(plan.launch, varying)  # type: ignore[union-attr]
            if contested.winner is not None:
                launch()
            else:
                contested.launch(Side.TWILL, launch)
        except Exception as error:
            # It was not launched.
            found.refuse(f"{type(error).__name__}: {error}")
            return by_stock()
        if is_capturing:
            found.captured[Side.STOCK] -= 1
            found.captured[Side.TWILL] += 1
        return found.compiled


class _Unhooked:
    """A Triton function whose hooks were called already: what `JITFunction.run` may take for one."""

    pre_run_hooks = ()

    def __init__(self, function: Any):
        self._function = function

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)
