"""Kernels under `triton.autotune`: Twill's kernels of other configurations than the one that stock Triton takes.

Stock Triton compares configurations by what its own compiler makes of them. Its choice is tried as any other kernel. When that is
settled, kernels are made of those others whose proven bound beats its own, and tried on the calls that follow. `Autotuner.run`
reads a call's configuration from a dictionary: `Choices` is in its place, so hooks and heuristics run as they do without Twill.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from .._twill import MOST_BITS, SettledCalls
from ..contest import Side
from ..marks import OWN_LAUNCHES
from . import turn
from .rounds import AUTHOR, Round, Seen, Taken
from .sources import may_multiply

if TYPE_CHECKING:
    from .activity import Activity

ATTRIBUTE = "_twill_tuning"
"""Where an autotuner has its `Tuning`."""
SETTLED = "_twill_settled"
"""Where it has that one's `SettledCalls`."""
LONG = 1 << 16
"""Calls in a row that are not looked at, where there is nothing for Twill."""
REMEMBERED = 256
"""Comparisons, and rounds, of an autotuner that are kept."""


class Compared(NamedTuple):
    """What stock Triton's comparison of configurations found for one of them."""

    milliseconds: float
    seen: Seen


class Comparing:
    """A configuration while stock Triton measures it."""

    seen: Seen | None = None
    """Its first launch."""
    times: Any = None
    """What was measured: milliseconds, or a list with the median first."""


def _changes(method: Any) -> Any:
    """A method of dictionaries for `Choices`, after which somebody may choose anew."""

    @functools.wraps(method)
    def change(self: Choices, *args: Any, **named: Any) -> Any:
        try:
            return method(self, *args, **named)
        finally:
            self.tuning.settled.forget()

    return change


class Reading:
    """What a call of an autotuner has found in its dictionary, and which parameters it looked at."""

    cache: Choices | None = None
    configuration: Any = None

    def __init__(self, keys: list[Any]):
        self.keys = keys


class Choices(dict[Any, Any]):
    """In the place of `Autotuner.cache`: the configuration of a call, by the tuner's key. It holds what stock Triton chose."""

    def __init__(self, tuning: Tuning, known: dict[Any, Any]):
        super().__init__(known)
        self.tuning, self._thread = tuning, tuning.activity.thread

    def __getitem__(self, key: Any) -> Any:
        chosen = dict.__getitem__(self, key)
        call, taken = self._thread.call, self._thread.taken
        if call is not None and call.tuning is self.tuning:
            return call.choose(key, chosen)
        if taken is not None and taken.tuning is self.tuning:
            if taken.chosen is chosen and taken.key == key:
                chosen = taken.configuration
            else:
                # Somebody has chosen anew, or calls itself within a hook.
                self.tuning.settled.forget()
        reading = self._thread.reading
        if reading is not None and reading.cache is None:
            # The autotuner's own comes first; hooks and grids may look here too.
            reading.cache, reading.configuration = self, chosen
        return chosen

    def __setitem__(self, key: Any, chosen: Any) -> None:
        super().__setitem__(key, chosen)
        # Somebody has chosen anew.
        self.tuning.settled.forget()
        call, tuning = self.tuning.call, self.tuning
        compared = call.compared if call is not None and call.compared else tuning.unlooked
        if compared:
            tuning.keep(key, compared)
            tuning.unlooked = {}

    def __reduce__(self) -> Any:
        return dict, (dict(self),)

    __delitem__, __ior__ = _changes(dict.__delitem__), _changes(dict.__ior__)
    clear, pop, popitem = _changes(dict.clear), _changes(dict.pop), _changes(dict.popitem)
    setdefault, update = _changes(dict.setdefault), _changes(dict.update)


class Tuning:
    """What there is to know of an autotuner."""

    def __init__(self, activity: Activity, tuner: Any):
        self.activity = activity
        self._tuner: weakref.ref[Any] = weakref.ref(tuner)
        function = tuner
        while not hasattr(function, "device_caches"):
            function = function.fn
        self.function = function
        parameters = {one.name: one.is_constexpr for one in function.params}
        self._constant = {name: parameters.get(name, True) for name in tuner.arg_names}
        looked_at = set(getattr(tuner, "keys", None) or ())
        parameters_told_apart = [(name, is_constant or name in looked_at) for name, is_constant in self._constant.items()]
        self.settled = SettledCalls(parameters_told_apart, id(tuner))
        self.compared: dict[Any, dict[Any, Compared]] = {}
        self.unlooked: dict[Any, Compared] = {}
        """What a comparison has found so far in a call that is not looked at."""
        self._rounds: dict[Any, Round] = {}
        # Configurations of the same constants have the same TTIR. Somebody's own cache may keep more than a dictionary.
        differ = len({repr(sorted(one.kwargs.items())) for one in tuner.configs}) > 1
        is_stock = OWN_LAUNCHES in function.__dict__ or type(tuner.cache) is not dict or function.is_gluon()
        self.is_for_twill = differ and not is_stock and may_multiply(function)
        if not self.is_for_twill:
            self.settled.rest(LONG)

    def __reduce__(self) -> Any:
        # A copy of an autotuner begins anew.
        return _nothing, ()

    def belongs_to(self, activity: Activity, tuner: Any) -> bool:
        """Whether it is that of what is active now, and of this autotuner, not of one that this was copied from."""
        return self.activity is activity and self._tuner() is tuner

    def restore(self) -> None:
        """Gives an autotuner its own dictionary back."""
        tuner = self._tuner()
        if tuner is not None and type(tuner.cache) is Choices:
            tuner.cache = dict(tuner.cache)

    @property
    def call(self) -> Call | None:
        """The call that this thread is in."""
        call = self.activity.call
        return call if call is not None and call.tuning is self else None

    @property
    def configurations(self) -> list[Any]:
        """All that the autotuner may choose from."""
        tuner = self._tuner()
        return [] if tuner is None else list(tuner.configs)

    def run(self, original: Callable[[], Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A call of the autotuner of which not all is settled. original: what it does without Twill."""
        call = Call(self, args, named)
        outer, self.activity.call = self.activity.call, call
        try:
            result = original()
        finally:
            self.activity.call = outer
        if (settled := call.settled()) is not None:
            self.settled.settle(args, named, *settled)
        return result

    def run_settled(self, known: bool | Taken, original: Callable[[], Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A call of the autotuner of which all is known; those like it are made without another look.

        known: what `SettledCalls.look` found; original: what it does without Twill.
        """
        thread, generation, tuner = self.activity.thread, self.settled.generation, self._tuner()
        taken = known if isinstance(known, Taken) else None
        epoch = taken.found.launcher.epoch if taken else 0
        before = thread.taken, thread.reading
        reading = Reading(list(getattr(tuner, "keys", None) or ()))
        thread.taken, thread.reading = taken, reading
        try:
            result = original()
        finally:
            thread.taken, thread.reading = before
        if reading.cache is None or tuner is None or reading.cache is not tuner.cache:
            return result
        chosen = generation, reading.cache, reading.keys, reading.configuration
        if taken is None:
            self.settled.choose(args, named, *chosen)
        elif reading.configuration is taken.configuration and taken.holds(self.activity) and is_launched_by(result, taken):
            self.settled.choose(args, named, *chosen, (result, taken.found.launcher, epoch))
        return result

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to be found out of calls so far."""
        return all(one.is_settled for one in list(self._rounds.values()))

    def keep(self, key: Any, compared: dict[Any, Compared]) -> None:
        """Remembers what a comparison found."""
        _make_room(self.compared)
        self.compared[key] = dict(compared)

    def round_of(self, key: Any, chosen: Any, likeness: tuple[Any, ...]) -> Round:
        """The round of calls that are alike."""
        found = self._rounds.get((key, likeness))
        if found is None or found.chosen is not chosen:
            # Somebody may have chosen anew.
            _make_room(self._rounds)
            found = self._rounds[key, likeness] = Round(self, key, chosen, likeness)
        return found

    def likeness(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """What calls of the same work have in common: constants, and the bits of whole numbers."""
        constant = self._constant
        given = [value if is_constant else _size(value) for value, is_constant in zip(args, constant.values())]
        more = ((name, value if constant.get(name) else _size(value)) for name, value in named.items() if not callable(value))
        return (*given, *more)


class Call:
    """One call of an autotuner: what it chose, and what its comparison saw, if there was one."""

    def __init__(self, tuning: Tuning, args: tuple[Any, ...], named: dict[str, Any]):
        self.tuning, self._args, self._named = tuning, args, named
        self.comparing: Comparing | None = None
        """While configurations are compared."""
        self.compared: dict[Any, Compared] = {}
        self.is_over = False
        """Stock Triton's choice has it, and all others like it."""
        self._round: Round | None = None
        self._side: Side = AUTHOR
        self._choice: Any = None
        self._key: Any = None
        self._exactly: tuple[Any, ...] | None = None

    @contextmanager
    def compares(self, configuration: Any) -> Iterator[Comparing]:
        """While a configuration is measured."""
        found = self.comparing = Comparing()
        try:
            yield found
        finally:
            self.comparing = None
        try:
            times = found.times[0] if isinstance(found.times, (list, tuple)) else found.times
            if found.seen is not None and configuration is not None:
                self.compared[configuration] = Compared(float(times), found.seen)
        except (IndexError, TypeError, ValueError):
            # Somebody's own `do_bench`.
            pass

    def choose(self, key: Any, chosen: Any) -> Any:
        """The configuration of this call; that of stock Triton whatever goes wrong."""
        if self._choice is not None and key != self._key:
            # Within a hook of its own.
            return chosen
        if self._choice is None:
            self._choice, self._key = chosen, key
            try:
                self._round = self.tuning.round_of(key, chosen, self.tuning.likeness(self._args, self._named))
                self._side, other = self._round.next(self)
                self._choice = chosen if self._side == AUTHOR else other
                self.is_over = self._round.is_over
            except Exception:
                self._round, self.is_over = None, True
            # Launches look whether it is over.
            self.tuning.activity.call = self
        return self._choice

    def exactly(self) -> tuple[Any, ...]:
        """All that a launch may depend on of the arguments but for addresses."""
        if self._exactly is None:
            named = sorted((name for name, value in self._named.items() if not callable(value)))
            self._exactly = (*map(_exact, self._args), *((name, _exact(self._named[name])) for name in named))
        return self._exactly

    def settled(self) -> tuple[bool | Taken, int | None] | None:
        """What has calls like this one without a further look, and how many of them; None where each is looked at."""
        return None if self._round is None else self._round.settled()

    def is_of(self, function: Any) -> bool:
        """Whether a launch is this call's."""
        return self.tuning.function is function

    def launch(self, one: turn.Launch) -> Any:
        """Launches what was chosen."""
        if self._round is None:
            # A function of the same autotuner within a hook, before anything was chosen.
            return turn.launch(one)
        return self._round.launch(self._side, one, self._exactly)


def tuning_of(activity: Activity, tuner: Any) -> Tuning | None:
    """The `Tuning` of an autotuner; None where there is nothing for Twill to choose."""
    found: Tuning | None = tuner.__dict__.get(ATTRIBUTE)
    if found is None or not found.belongs_to(activity, tuner):
        try:
            found = Tuning(activity, tuner)
            if found.is_for_twill:
                tuner.cache = Choices(found, tuner.cache)
                activity.restored_at_end.add(found)
        except Exception:
            # An autotuner of another kind.
            return None
        for attribute, value in ((ATTRIBUTE, found), (SETTLED, found.settled)):
            tuner.__dict__[attribute] = value
            activity.on_end(tuner, attribute, value)
    if not found.is_for_twill:
        found.settled.rest(LONG)
        return None
    return found


def is_launched_by(kernel: Any, taken: Taken) -> bool:
    """Whether a compiled kernel is that of what has won."""
    return getattr(kernel, "run", None) is taken.found.launcher


def _make_room(kept: dict[Any, Any]) -> None:
    """Forgets the oldest where there are too many."""
    if len(kept) >= REMEMBERED:
        kept.pop(list(kept)[0], None)


def _size(value: Any) -> Any:
    """Of a whole number its bits, of a grid those of each; nothing of a tensor."""
    if type(value) is int:
        return min(value.bit_length(), MOST_BITS)
    if isinstance(value, tuple):
        return tuple(map(_size, value))
    return value if isinstance(value, (bool, str, type(None))) else None


def _exact(value: Any) -> Any:
    """A number or a constant as it is; of memory where it begins within 16 bytes, its type and shape."""
    base = getattr(value, "base", value)
    if not hasattr(base, "data_ptr"):
        return value
    shape, strides = getattr(value, "shape", ()), getattr(value, "strides", ())
    return base.data_ptr() % 16, str(getattr(base, "dtype", "")), tuple(shape), tuple(strides) if isinstance(strides, (list, tuple)) else ()


def _nothing() -> None:
    return None
