"""Amounts of work of a launch, from expressions of the constexprs."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

from ..errors import InputError
from .launch_time import Amounts


def amounts_of(programs: str, trips: str) -> Callable[[Mapping[str, object]], Amounts]:
    """Amounts by constexprs, from expressions with a comma between axes of the grid, such as `4096 // BLOCK_M, 16`, and
    with a comma between loops, such as `4096 // BLOCK_N`."""
    axes, loops = ([_expression(one) for one in text.split(",")] for text in (programs, trips))
    return lambda constexprs: ([one(constexprs) for one in axes], [one(constexprs) for one in loops])


_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Div: lambda a, b: -(-a // b),
}


def _expression(text: str) -> Callable[[Mapping[str, object]], int]:
    """Whole numbers, names of constexprs, + - * and both divisions: // rounds down, / up."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"{text!r} is no expression; write one such as 16 * 4096 // BLOCK_M") from None

    def value(node: ast.AST, known: Mapping[str, object]) -> int:
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            left, right = value(node.left, known), value(node.right, known)
            if right == 0 and isinstance(node.op, (ast.Div, ast.FloorDiv)):
                raise InputError(f"{text!r} divides by 0")
            return _OPERATORS[type(node.op)](left, right)
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name):
            named = known.get(node.id)
            if isinstance(named, int) and not isinstance(named, bool):
                return named
            raise InputError(f"{text!r}: {node.id} is no constexpr that is a whole number")
        raise InputError(f"{text!r}: only whole numbers, constexprs, + - * / // and parentheses are understood")

    return lambda constexprs: value(tree, constexprs)
