"""The launches of one Triton function while Twill is active: each by Twill's kernel or by stock Triton, exactly once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..contest import STOCK
from ..jit_kernel import STOCK_ONLY
from . import configurations, turn
from .rounds import Seen
from .sources import may_multiply
from .specialisation import Specialised, function_of

if TYPE_CHECKING:
    from .activity import Activity
    from .tuning import Comparing

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
        activity, thread, runtime = self._activity, self._activity.thread, self._knobs.runtime
        call = thread.call
        # A hook may give each launch another pass pipeline.
        if warmup or activity.is_paused or thread.suspended or runtime.add_stages_inspection_hook is not None:
            if call is not None and call.comparing is not None and call.comparing.seen is None and not warmup:
                return self._compared(call.comparing, args, grid, named)
            return self._original(*args, grid=grid, warmup=warmup, **named)
        self._complete(named)
        device = self._driver.active.get_current_device()
        original = self._original
        if self._function.pre_run_hooks:
            # They may change what is looked at below.
            for hook in self._function.pre_run_hooks:
                hook(*args, **named)
            original = self._unhooked
        here = self._here(device)
        bound, key, found = self._find(here, args, named)
        if found is None or not found.has_begun:
            is_tried = self._activity.decides_first and not self._activity.is_capturing()
            found = self._first(key, here, device, partial(original, *args, grid=grid, warmup=is_tried, **named), named)
            if found is None or not is_tried:
                return None if found is None else found.compiled
        self._check_globals()
        if callable(grid):
            grid = grid(bound)
        by_stock = partial(self._activity.launch_stock, found.compiled, grid, bound, device)
        if call is not None and call.is_of(self._function):
            return call.launch(activity, found, bound, grid, by_stock)
        return turn.launch(activity, found, bound, grid, by_stock)

    def _complete(self, named: dict[str, Any]) -> None:
        """Adds the options that Triton adds to those of a launch."""
        named["debug"] = named.get("debug", self._function.debug) or self._knobs.runtime.debug
        named["instrumentation_mode"] = self._knobs.compilation.instrumentation_mode
        for name in self._more:
            named[name] = getattr(self._knobs.compilation, name)

    def _here(self, device: int) -> _Device:
        """What belongs to a device."""
        here = self._devices.get(device)
        # Somebody may have thrown away what Triton compiled: its source may be another one now.
        if here is None or here[3] is not self._function.device_caches[device][0] or not here[3]:
            here = self._device(device)
        return here

    @staticmethod
    def _find(here: _Device, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[dict[str, Any], Any, Specialised | None]:
        """The arguments of a launch by name, what its specialisation is known by, and that, if it was launched before."""
        bound, specialisation, options = here[1](*args, **named)
        key: Any = (*specialisation, *options, *options.values())
        try:
            return bound, key, here[2].get(key)
        except TypeError:
            # An option that is a list or a dictionary.
            key = str(key)
            return bound, key, here[2].get(key)

    def _compared(self, comparing: Comparing, args: tuple[Any, ...], grid: Any, named: dict[str, Any]) -> Any:
        """The first launch of a configuration that stock Triton compares with others."""
        sizes: list[tuple[int, ...]] = []

        def seen(bound: dict[str, Any]) -> Any:
            sizes.append(tuple(grid(bound) if callable(grid) else grid))
            return sizes[-1]

        compiled = self._original(*args, grid=seen, warmup=False, **named)
        try:
            whole = compiled.result() if hasattr(compiled, "result") else compiled
            device = self._driver.active.get_current_device()
            self._complete(named)
            key = self._find(self._here(device), args, named)[1]
            comparing.seen = Seen(self, key, whole, device, sizes[-1], [name for name in STOCK_ONLY if named.get(name)])
        except Exception:
            # It is not tried, then.
            pass
        return compiled

    def adopt(self, seen: Seen) -> Specialised:
        """Has kernels made for what stock Triton compared, and no call has chosen so far."""
        here = self._here(seen.device)
        fresh = Specialised(self._activity, function_of(self._function), seen.ttir, seen.compiled, here[0], seen.device)
        found = here[2].setdefault(seen.key, fresh)
        if found is fresh:
            self._activity.add(found)
        found.begin(seen.only, partial(configurations.of_kernel, seen.compiled))
        return found

    def run_compiled(self, found: Specialised, grid: Any, args: tuple[Any, ...], by_stock: Callable[..., Any]) -> Any:
        """As `CompiledKernel[grid](*args)` on what `run` gave back before: all arguments by position, constexprs too."""
        names = self._function.arg_names
        # What was loaded on one device may be launched on another one.
        is_here = self._driver.active.get_current_device() == found.device
        if len(args) != len(names) or self._activity.is_suspended() or not is_here:
            return by_stock(*args)
        turn.launch(self._activity, found, dict(zip(names, args)), grid, partial(by_stock, *args))
        return None

    def _device(self, device: int) -> _Device:
        compiled, _, target, _, binder = self._function.device_caches[device]
        self._devices[device] = target, binder, {}, compiled
        return self._devices[device]

    def _first(
        self, key: Any, here: _Device, device: int, by_stock: partial[Any], named: dict[str, Any]
    ) -> Specialised | None:
        """The first launch of a specialisation is stock Triton's, from whose TTIR Twill's kernels are made.

        by_stock: that, or where it is settled first who has the launch, the compilation alone.
        """
        compiled = by_stock()
        if compiled is None:
            return None
        compiled = compiled.result() if hasattr(compiled, "result") else compiled
        # Another thread may be here too, or one that captures a graph was.
        ttir = compiled.asm.get("ttir", "")
        fresh = Specialised(self._activity, function_of(self._function), ttir, compiled, here[0], device)
        found = here[2].setdefault(key, fresh)
        if found is fresh:
            self._activity.add(found)
        is_launched = not by_stock.keywords["warmup"]
        found.launches += is_launched
        if self._activity.is_capturing():
            found.captured[STOCK] += is_launched
            found.leave()
        else:
            found.begin([name for name in STOCK_ONLY if named.get(name)], partial(configurations.of_kernel, compiled))
            # Some launch it directly from now on.
            compiled.__dict__[ATTRIBUTE] = self, found
        return found

    def _check_globals(self) -> None:
        """What `JITFunction.run` checks before a launch, whoever's kernel it is."""
        for (name, _), (value, variables) in self._function.used_global_vals.items():
            if (now := variables.get(name, _ABSENT)) != value:
                raise RuntimeError(
                    f"Global variable {name} has changed since we compiled this kernel, from {value} to {now}"
                )


class _Unhooked:
    """A Triton function whose hooks were called already: what `JITFunction.run` may take for one."""

    pre_run_hooks = ()

    def __init__(self, function: Any):
        self._function = function

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)
