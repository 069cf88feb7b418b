"""A Triton function whose launches go to kernels that Twill made, where it can make them."""

from __future__ import annotations

import inspect
import os
import threading
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from . import backend, contest, dynamo, gpu, needs
from .contest import STOCK, TWILL, Contest
from .errors import TwillError, TwillWarning
from .machine import Machine
from .marks import OWN_LAUNCHES, STOCK_ONLY
from .scheduled import ScheduledKernel

if TYPE_CHECKING:
    from triton.runtime.jit import JITFunction

ON_FAILURE = ("stock", "error")
"""The behaviour where Twill makes no kernel."""
REMEMBERED = 1024
"""Contests that are kept for a device."""

_ABSENT = object()


class JitKernel:
    """The result of `@twill_gpu.jit` for a function: in the place of a `triton.JITFunction`, which it has in `fn`.

    It is none itself, so that what looks for those, as torch.compile does, does not quietly take stock Triton. Whatever
    it lacks it takes from `fn`. Other kernels may call it: Triton's compiler then sees a builtin that returns `fn`,
    and an aggregate whose one attribute is `fn`, so that a change of its source changes them too.
    """

    __triton_builtin__ = True
    __triton_aggregate__ = True

    def __init__(
        self,
        function: JITFunction,
        machine: str | os.PathLike[str] | Machine | None,
        on_failure: str,
        options: Mapping[str, object],
    ):
        self._triton = needs.triton("JitKernel")
        self._function = function
        # `twill_gpu.install` has nothing to add.
        function.__dict__[OWN_LAUNCHES] = True
        self.machine, self.on_failure, self.options = machine, on_failure, dict(options)
        self._devices: dict[int | None, _Device] = {}
        self._made: dict[tuple[str, str | os.PathLike[str] | Machine, int], ScheduledKernel] = {}
        """By TTIR, machine and compute capability × 10: specialisations may have the same TTIR."""
        self._lock = threading.RLock()
        self.__name__, self.__qualname__ = function.__name__, function.__qualname__
        self.__module__, self.__doc__ = function.__module__, function.__doc__
        # Triton 3.8 hashes those of an aggregate.
        self.__dict__["__annotations__"] = {}

    # --------------------------------------------------------------------------------------------- as a JITFunction
    def __getattr__(self, name: str) -> object:
        if name == "_function":
            raise AttributeError(name)
        return getattr(self._function, name)

    @property
    def fn(self) -> JITFunction:
        """The function as `triton.jit` makes it."""
        dynamo.refuse_to_be_traced(self.__name__)
        return self._function

    def __getitem__(self, grid: object) -> Callable[..., Any]:
        """The launch on a grid: `kernel[grid](arguments)`."""
        dynamo.leave_alone(JitKernel.run, JitKernel.__getitem__)
        return partial(self.run, grid=grid, warmup=False)

    def __repr__(self) -> str:
        return f"JitKernel({self.__module__}:{self.__qualname__})"

    @property
    def hash_attrs(self) -> list[JITFunction]:
        """The part of an aggregate that Triton hashes: the function, whose globals it knows once that is hashed itself."""
        self._function.cache_key  # noqa: B018
        return [self._function]

    @property
    def signature(self) -> inspect.Signature:
        """The function's, and what Triton's compiler hands to a builtin: since 3.7 it reads here what that takes."""
        own: inspect.Signature = self._function.signature
        more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in ("_semantic", "_generator")]
        return own.replace(parameters=[*own.parameters.values(), *more])

    def __call__(self, *args: object, _semantic: Any = None, _generator: Any = None, **named: object) -> object:
        """A call from inside another kernel, in which Triton's compiler generates the code of `fn`."""
        if _generator is None:
            raise RuntimeError(f"{self.__name__} is a kernel: launch it with {self.__name__}[grid](…)")
        return _generator.call_JitFunction(self._function, args, named)

    def warmup(self, *args: object, grid: object, **named: object) -> object:
        """Compiles the specialisation for these arguments, which may be dtypes of torch, without launching it.

        Gives back a `ScheduledKernel`, with `asm` as a compiled kernel of Triton has, or what stock Triton gives back
        where that runs instead. Without a GPU it works if a machine was named.
        """
        mock = self._triton.runtime.jit.MockTensor
        return self.run(*map(mock.wrap_dtype, args), grid=grid, warmup=True, **named)

    # --------------------------------------------------------------------------------------------- launching
    def run(self, *args: object, grid: object, warmup: bool = False, **named: object) -> object:
        """Launches the kernel on the current stream, or only compiles it; gives back what it launched."""
        function, triton = self._function, self._triton
        named["debug"] = named.get("debug", function.debug) or triton.knobs.runtime.debug
        named["instrumentation_mode"] = triton.knobs.compilation.instrumentation_mode
        try:
            device = triton.runtime.driver.active.get_current_device()
        except RuntimeError:
            if not (warmup and self.machine):
                raise
            device = None
        here = self._devices.get(device) or self._device(device)
        bound, specialisation, options = here.binder(*args, **named)
        key = (*specialisation, *options, *options.values())
        try:
            kernel = here.kernels.get(key)
        except TypeError:
            # An option that is a list or a dictionary. Text costs as much as the rest of the look-up.
            key = (tuple(specialisation), str(options))
            kernel = here.kernels.get(key)
        if kernel is None:
            kernel = self._specialise(here, device, key, named, bound, specialisation, options)
        if not isinstance(kernel, ScheduledKernel):
            return self._stock(here, kernel, args, grid, warmup, named)

        for (name, _), (value, variables) in function.used_global_vals.items():
            if (now := variables.get(name, _ABSENT)) != value:
                raise RuntimeError(
                    f"Global variable {name} has changed since we compiled this kernel, from {value} to {now}"
                )
        plan = varying = None
        if not warmup:
            if callable(grid):
                grid = grid(bound)
            try:
                plan, varying = kernel.plan(bound, grid)
            except (kernel.refused, triton.OutOfResources) as error:
                return self._refused(here, kernel, error, args, grid, named)
        contested = None if plan is None or self.on_failure == "error" else here.contest(plan, kernel.magnitudes(varying))
        if contested is not None and contested.turn() == STOCK:
            try:
                return contested.launch(STOCK, partial(function.run, *args, grid=grid, warmup=False, **named))
            except Exception:
                # Whatever it is, Twill's kernel took arguments like these before.
                contested.forfeit(STOCK)
        # Stock Triton calls them too, and before anything else.
        for hook in function.pre_run_hooks:
            hook(*args, **named)
        if plan is not None:
            if contested is not None and contested.winner is None:
                contested.launch(TWILL, partial(plan.launch, varying))
            else:
                plan.launch(varying)
        return kernel

    @property
    def contests(self) -> list[Contest]:
        """What the launches so far say of Twill's kernels and stock Triton's: one for each kernel, grid and sizes."""
        return [one for here in self._devices.values() for one in here.contests.values() if one is not None]

    for _call in (run, __getitem__):
        setattr(_call, "_torchdynamo_disable", True)
    del _call

    def _device(self, device: int | None) -> _Device:
        """The state for a device; None is no device, but the machine that was named."""
        with self._lock:
            if device not in self._devices:
                if device is None:
                    from . import front_end

                    target, compiler, binder = front_end.offline(self._function, front_end.machine_name(self.machine))
                else:
                    _, _, target, compiler, binder = self._function.device_caches[device]
                self._devices[device] = _Device(target, compiler, binder, offline=device is None)
            return self._devices[device]

    # --------------------------------------------------------------------------------------------- the first launch
    def _specialise(
        self,
        here: _Device,
        device: int | None,
        key: tuple[Any, ...],
        named: dict[str, Any],
        bound: dict[str, Any],
        specialisation: list[Any],
        options: dict[str, Any],
    ) -> ScheduledKernel | TwillError:
        """The kernel for a specialisation, or why there is none. Errors in the Python of the kernel are Triton's."""
        dynamo.leave_alone(JitKernel.run, JitKernel.__getitem__)
        with self._lock:
            if key in here.kernels:
                return here.kernels[key]
            self._function.cache_key  # noqa: B018  Triton finds the globals that a kernel uses when it is hashed.
            packed = self._function._pack_args(here.compiler, named, bound, specialisation, options)
            kernel: ScheduledKernel | TwillError
            try:
                kernel = self._make(here, device, named, packed)
            except TwillError as error:
                kernel = self._failed(error)
                if self.on_failure == "stock" and not here.offline:
                    self._warn(kernel)
            here.kernels[key] = kernel
            return kernel

    def _make(self, here: _Device, device: int | None, named: dict[str, Any], packed: tuple[Any, ...]) -> ScheduledKernel:
        only = [f"{name}={named[name]!r}" for name in STOCK_ONLY if named.get(name)]
        if only:
            raise TwillError(f"{', '.join(only)} is only for stock Triton")
        if here.target.backend != "cuda":
            raise TwillError(f"the GPU is one of {here.target.backend}, and Twill makes kernels for cuda")
        from . import front_end

        found = front_end.Specialisation(*packed)
        machine = self.machine or gpu.machine_of(here.target.arch)
        ttir = front_end.make_ttir(self._function, here.target, here.compiler, found)
        made = ttir, machine, here.target.arch
        if made not in self._made:
            self._made[made] = self._compile(*made)
        return self._made[made]

    def _compile(self, ttir: str, machine: str | os.PathLike[str] | Machine, architecture: int) -> ScheduledKernel:
        try:
            folder = backend.compile_kernel(ttir, self.__name__, machine, self.options)
            kernel = ScheduledKernel(folder, ttir, machine)
            kernel.check_parameters(self._function.arg_names)
            if kernel.architecture.rstrip("af") != f"sm_{architecture}":
                raise TwillError(
                    f"machine {machine!r} is {kernel.architecture}, but this GPU is sm_{architecture}; "
                    "leave machine out to schedule for the GPU in use"
                )
            kernel.compile()
            return kernel
        except TwillError:
            raise
        except Exception as error:
            raise TwillError(f"the generated kernel does not compile: {type(error).__name__}: {error}") from error

    # --------------------------------------------------------------------------------------------- stock Triton
    def _stock(self, here: _Device, why: TwillError, args: tuple[Any, ...], grid: object, warmup: bool, named: dict[str, Any]) -> object:
        if self.on_failure == "error" or here.offline:
            # A new one: the traceback of one that is kept would keep the arguments alive.
            raise TwillError(*why.args) from why.__cause__
        return self._function.run(*args, grid=grid, warmup=warmup, **named)

    def _refused(
        self, here: _Device, kernel: ScheduledKernel, error: Exception, args: tuple[Any, ...], grid: object, named: dict[str, Any]
    ) -> object:
        """A launch on arguments that the scheduled kernel cannot take. Stock Triton decides whether they are wrong."""
        why = self._failed(error)
        if self.on_failure == "stock" and kernel not in here.refused:
            here.refused.add(kernel)
            self._warn(why)
        return self._stock(here, why, args, grid, False, named)

    def _place(self) -> tuple[str, int]:
        """File and line of its Python."""
        from . import front_end

        return front_end.place_of(self._function)

    def _failed(self, error: Exception) -> TwillError:
        """The error that names the kernel and the place of its source."""
        path, line = self._place()
        kind = type(error) if isinstance(error, TwillError) else TwillError
        failed = kind(f"{self.__name__} ({path}:{line}): {error}", getattr(error, "place", None))
        failed.__cause__ = error.with_traceback(None)
        return failed

    def _warn(self, why: TwillError) -> None:
        path, line = self._place()
        text = (
            f"{why}. Stock Triton runs it instead. "
            'Use @triton.jit to say that this is meant, on_failure="error" to make it an error'
        )
        warnings.warn_explicit(TwillWarning(text), None, path, line)


class _Device:
    """The state of a kernel for a device: Triton's compiler and binder, and its kernels or why there is none."""

    def __init__(self, target: Any, compiler: Any, binder: Callable[..., Any], offline: bool):
        self.target, self.compiler, self.binder, self.offline = target, compiler, binder, offline
        self.kernels: dict[tuple[Any, ...], ScheduledKernel | TwillError] = {}
        self.refused: set[ScheduledKernel] = set()
        self.contests: dict[Any, Contest | None] = {}
        """By plan: a kernel, a grid and sizes."""

    def contest(self, plan: Any, magnitudes: tuple[int, ...]) -> Contest | None:
        """The contest for launches by a plan on whole numbers of these magnitudes; None where nothing can be timed."""
        key = plan, magnitudes
        if key not in self.contests:
            if len(self.contests) >= REMEMBERED:
                self.contests.clear()
            self.contests[key] = contest.begin()
        return self.contests[key]
