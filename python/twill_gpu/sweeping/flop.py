"""Floating-point operations of matrix multiplies, as TTIR has them."""

from __future__ import annotations

import re

DOT = re.compile(r"\btt\.dot(?:_scaled)?\b.*?: \(?tensor<([0-9x]+)x[^>]*>.*-> tensor<([0-9x]+)x[^>]*>")
"""Shapes of the left operand and of the result, in either form of MLIR."""
LOOP = re.compile(r"\bscf\.for\b")


def of_loops(ttir: str) -> list[int]:
    """FLOP of one iteration of each innermost loop, two for each product, in the order of the text."""
    loops, open_loops, depth = [], [], 0
    for line in ttir.splitlines():
        code = line.split(" loc(", 1)[0]
        if LOOP.search(code):
            if open_loops:
                open_loops[-1]["inner"] = True
            open_loops.append({"depth": depth, "flop": 0, "inner": False})
            loops.append(open_loops[-1])
        if open_loops and (dot := DOT.search(code)):
            left, result = ([int(size) for size in shape.split("x")] for shape in dot.groups())
            open_loops[-1]["flop"] += 2 * left[-1] * _product(result)
        depth += code.count("{") - code.count("}")
        while open_loops and depth <= open_loops[-1]["depth"]:
            open_loops.pop()
    return [loop["flop"] for loop in loops if not loop["inner"]]


def _product(sizes: list[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product
