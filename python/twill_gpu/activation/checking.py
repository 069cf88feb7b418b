"""`TWILL=check`: a challenger on copies of a launch's memory, stock Triton on the memory itself, and the first difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..contest import OWN, STOCK, TWILL, Side
from .copies import Copies, tensor_of

if TYPE_CHECKING:
    from .specialisation import Specialised

LAUNCHES = 3
"""Launches of Twill's kernel for a specialisation that are compared; each other configuration has one."""
ROUNDINGS = 4
"""Differences of results may be so many roundings of the coarsest type, of the largest value: sums in another order."""


def next_side(found: Specialised) -> Side:
    """Who is to be compared with stock Triton; stock Triton itself once that was done."""
    wanted = {side: LAUNCHES if side in OWN else 1 for side in found.challengers}
    return next((side for side, times in wanted.items() if found.compared[side] < times), STOCK)


def launch(
    found: Specialised, side: Side, on: Callable[[dict[str, Any]], Any], bound: dict[str, Any], by_stock: Callable[[], Any]
) -> Any:
    """Launches both and notes what differs. The application's memory is written by stock Triton alone.

    on: launches the challenger on arguments by name.
    """
    import torch

    found.compared[side] += 1
    who = "" if side == TWILL else f"{side}: "
    if (why := found.why_not_on_copies) is not None:
        found.checked.append(f"{who}not checked: {why}")
        return by_stock()
    try:
        values = Copies(bound, found.read_only).values
    except torch.cuda.OutOfMemoryError:
        found.checked.append(f"{who}not checked: there is no memory for copies")
        return by_stock()
    except Exception as error:
        # Whoever has operations of torch's in the place of its own may fail at some: FlagGems' copy nothing of no elements.
        found.checked.append(f"{who}not checked: {error}")
        return by_stock()
    try:
        on(values)
    except Exception as error:
        # It was not launched.
        found.checked.append(f"{who}{type(error).__name__}: {error}")
        found.give_up(side, f"{type(error).__name__}: {error}")
        return by_stock()
    result = by_stock()
    torch.cuda.synchronize()
    try:
        different = first_difference(bound, values)
    except Exception as error:
        found.checked.append(f"{who}not checked: {type(error).__name__}: {error}")
        return result
    if different is not None:
        found.checked.append(f"{who}{different}")
        found.give_up(side, f"its results differ from stock Triton's: {different}")
        return result
    found.checked.append(f"{who}no difference")
    return result


def first_difference(bound: dict[str, Any], values: dict[str, Any]) -> str | None:
    """Where the memory of arguments differs from that of others by the same names; None where it does not."""
    part = allowed([tensor for tensor in map(tensor_of, bound.values()) if tensor is not None])
    for name, value in bound.items():
        ours, stock = tensor_of(values[name]), tensor_of(value)
        if stock is not None and (different := difference(ours, stock, part)):
            return f"{name}: {different}"
    return None


def allowed(tensors: Sequence[Any]) -> float:
    """The part of its largest value by which a result may differ that is computed from these: by their coarsest type.

    Products of f32 are taken in tf32, with 11 bits; those of 8 bits are summed and rounded as 16 bits are.
    """
    import torch

    kinds = [tensor.dtype for tensor in tensors if tensor.is_floating_point()]
    coarsest = max((torch.finfo(kind).eps for kind in kinds), default=0.0)
    return float(ROUNDINGS * min(max(coarsest, 2.0**-10), torch.finfo(torch.bfloat16).eps))


def difference(ours: Any, stock: Any, part: float) -> str | None:
    """The first element in which two tensors differ by more than a part of the largest value; None where there is none."""
    import torch

    if torch.equal(_bits(ours), _bits(stock)):
        return None
    if not stock.is_floating_point():
        wrong = ours != stock
    else:
        a, b = ours.double(), stock.double()
        finite = b[torch.isfinite(b)].abs()
        largest = float(finite.max()) if finite.numel() else 0.0
        wrong = ~(((a - b).abs() <= part * largest) | (a == b) | (a.isnan() & b.isnan()))
    places = wrong.nonzero()
    if not len(places):
        return None
    place = tuple(places[0].tolist())
    return f"at {list(place)} {ours[place].item()} instead of {stock[place].item()}; {len(places)} of {wrong.numel()} elements differ"


def _bits(tensor: Any) -> Any:
    """Something that torch compares bit by bit, NaN as NaN."""
    import torch

    whole = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    return tensor.contiguous().view(whole)
