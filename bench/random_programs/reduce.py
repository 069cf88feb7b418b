"""Makes a program smaller as long as something remains true of it."""

import ast
import copy
from collections.abc import Callable, Iterator


def reduced(source: str, holds: Callable[[str], bool], most: int) -> str:
    """A source for which `holds`, of which no single part can be left out; after so many questions the smallest so far.

    Parts are statements, loops and branches around what is in them, and expressions around their operands.
    """
    asked: set[str] = {source}
    best, changed = ast.unparse(ast.parse(source)), True
    while changed:
        changed = False
        for candidate in smaller(best):
            if candidate in asked:
                continue
            if len(asked) > most:
                return best
            asked.add(candidate)
            if holds(candidate):
                best, changed = candidate, True
                break
    return best


def smaller(source: str) -> Iterator[str]:
    """Sources with one part less, the largest parts first."""
    tree = ast.parse(source)
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
    blocks = [
        (node, name)
        for node in ast.walk(function)
        for name in ("body", "orelse")
        if isinstance(getattr(node, name, None), list)
    ]
    sizes = {id(node): sum(1 for _ in ast.walk(node)) for node in ast.walk(function)}
    places = [(block, name, k) for block, name in blocks for k in range(len(getattr(block, name)))]
    places.sort(key=lambda place: -sizes[id(getattr(place[0], place[1])[place[2]])])
    for block, name, k in places:
        statements = getattr(block, name)
        one = statements[k]
        inner = [part for part in (getattr(one, "body", []), getattr(one, "orelse", [])) if part]
        for part in [[], *inner]:
            changed = [*statements[:k], *part, *statements[k + 1 :]]
            if not changed and name == "body":
                changed = [ast.Pass()]
            yield with_part(tree, block, name, changed)
    for node in ast.walk(function):
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and not isinstance(getattr(value, "ctx", None), (ast.Store, ast.Del)):
                for part in operands(value):
                    yield with_part(tree, node, name, part)
            elif isinstance(value, list) and value and isinstance(value[0], ast.expr) and name == "args":
                for k, one in enumerate(value):
                    for part in operands(one):
                        yield with_part(tree, node, name, [*value[:k], part, *value[k + 1 :]])


def operands(value: ast.expr) -> list[ast.expr]:
    """What an expression may be replaced with."""
    if isinstance(value, ast.BinOp):
        return [value.left, value.right]
    if isinstance(value, ast.UnaryOp):
        return [value.operand]
    if isinstance(value, ast.Call):
        owner = value.func.value if isinstance(value.func, ast.Attribute) else None
        of_method = [owner] if owner is not None and not is_module(owner) else []
        return of_method + [one for one in value.args if not isinstance(one, ast.Tuple)]
    return []


def is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("tl", "triton")


def with_part(tree: ast.Module, node: ast.AST, name: str, value: object) -> str:
    """The source with another value of a node's field."""
    before = getattr(node, name)
    setattr(node, name, value)
    text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(tree)))
    setattr(node, name, before)
    return text
