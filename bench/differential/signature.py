"""The arguments of a kernel, as its TTIR has them."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Argument:
    """An argument of the Triton kernel: a pointer, a descriptor (with the shape of its blocks) or a scalar."""

    name: str
    kind: str
    element: str
    block: tuple[int, ...]
    divisible: bool


FUNCTION = re.compile(r"tt\.func public @[\w$.-]+\((.*)\) attributes")
ARGUMENT = re.compile(
    r"%([\w$.-]+): (?:!tt\.ptr<(\w+)>|!tt\.tensordesc<tensor<([\dx]+)x(\w+)>>|(\w+))( \{[^}]*divisibility = 16 [^}]*})?"
)


def arguments_of(ttir: str) -> list[Argument]:
    """Arguments as a launch gives them: shape and strides that follow a descriptor belong to it."""
    found, following = [], 0
    for name, pointee, block, tile, scalar, divisible in ARGUMENT.findall(FUNCTION.search(ttir)[1]):
        if following:
            following -= 1
            continue
        shape = tuple(int(size) for size in block.split("x")) if block else ()
        following = 2 * len(shape)
        kind = "pointer" if pointee else "descriptor" if block else "scalar"
        found.append(Argument(name, kind, pointee or tile or scalar, shape, bool(divisible)))
    return found
