"""docs/api.md, the reference of the Python package, from the docstrings of its public names.

It reads the sources and imports nothing: `python xtask/python_reference.py` writes the page where only Python is installed.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "twill_gpu"
PAGE = ROOT / "docs" / "api.md"

BESIDE = {"collecting": ("record",)}
"""Documented names of modules that `twill_gpu` does not import."""

PARTS = {
    "scheduling": ("PlacedOperation", "WarpGroup"),
    "comparing": ("Change", "LoopComparison", "Move"),
    "fitting": ("Bound", "Need"),
}
"""Classes of what attributes of public ones hold, by module."""

MADE = ("Graph", "Machine")
"""Classes that programs make objects of; those of others are results."""

STUB = {"__version__": "The version of Twill, as `twill --version` prints it."}
"""Names of the extension, whose stub has no docstrings."""

HEAD = """\
# Python reference

This page lists every public name of `twill_gpu`, with its parameters, attributes and errors. It is
for those who look one up; [the Python package](python.md) shows how they are used together. It is
written from the docstrings by `python xtask/python_reference.py`, and a test keeps it in step.
"""

WIDTH = 100
ITEM = re.compile(r"(\w+(?:, \w+)*): ")
"""The beginning of what a docstring says of parameters."""

Definition = ast.FunctionDef | ast.ClassDef


@dataclass
class Public:
    """A public name."""

    name: str
    node: Definition | None
    doc: str
    bases: list[str] = field(default_factory=list)
    is_part: bool = False

    @property
    def kind(self) -> str:
        """The part of the page that it stands in."""
        if self.is_part:
            return "Parts of these"
        if isinstance(self.node, ast.FunctionDef):
            return "Functions"
        if self.node is None:
            return "Version"
        is_error = self.name.endswith(("Error", "Warning"))
        return "Errors" if is_error else "Classes"


def names() -> list[str]:
    """`__all__`."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    raise LookupError("twill_gpu/__init__.py has no __all__")


def source_of(module: str, folder: Path = PACKAGE) -> Path:
    """The file of a module that is named as in `from .module import`."""
    path = folder.joinpath(*module.split(".")) if module else folder
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def definition(name: str, file: Path) -> Definition:
    """Where a name is defined, by way of modules that only import it."""
    found: Definition | None = None
    body = ast.parse(file.read_text(encoding="utf-8")).body
    # What is imported when first asked for is imported at once for those who only read.
    body += [inner for node in body if isinstance(node, ast.If) for inner in node.body]
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            found = node  # The last one: overloads stand before what they overload.
        elif isinstance(node, ast.ImportFrom) and node.level and any(one.name == name for one in node.names):
            folder = file.parent
            for _ in range(node.level - 1):
                folder = folder.parent
            return definition(name, source_of(node.module or "", folder))
    if found is None:
        raise LookupError(f"{file.relative_to(ROOT)} does not define {name}")
    return found


def public() -> list[Public]:
    """All public names in the order of the page."""
    found = []
    for name in names():
        if name in STUB:
            found.append(Public(name, None, STUB[name]))
        else:
            found.append(of(name, definition(name, PACKAGE / "__init__.py")))
    for module, more in BESIDE.items():
        found += [of(f"{module}.{name}", definition(name, source_of(module))) for name in more]
    for module, more in PARTS.items():
        found += [of(name, definition(name, source_of(module)), is_part=True) for name in more]
    return found


def of(name: str, node: Definition, is_part: bool = False) -> Public:
    bases = [ast.unparse(base) for base in node.bases] if isinstance(node, ast.ClassDef) else []
    return Public(name, node, ast.get_docstring(node) or "", bases, is_part)


def members(node: ast.ClassDef) -> Iterator[tuple[str, str, str]]:
    """What a class has: how it is written, whether it is an attribute or a method, its docstring."""
    for place, following in zip(node.body, [*node.body[1:], None]):
        if isinstance(place, ast.AnnAssign) and isinstance(place.target, ast.Name) and not place.target.id.startswith("_"):
            yield f"{place.target.id}: {ast.unparse(place.annotation)}", "attribute", string(following)
        elif isinstance(place, ast.FunctionDef) and place.name == "__init__":
            yield from attributes(place)
        elif isinstance(place, ast.FunctionDef) and not place.name.startswith("_"):
            doc = ast.get_docstring(place) or ""
            if any(ast.unparse(one) in ("property", "cached_property") for one in place.decorator_list):
                shown = f": {ast.unparse(place.returns)}" if place.returns else ""
                yield f"{place.name}{shown}", "attribute", doc
            else:
                yield signature(place.name, place), "method", doc


def attributes(init: ast.FunctionDef) -> Iterator[tuple[str, str, str]]:
    """Attributes that `__init__` sets and a string below documents."""
    for place, following in zip(init.body, init.body[1:]):
        target = place.targets[0] if isinstance(place, ast.Assign) else place.target if isinstance(place, ast.AnnAssign) else None
        if isinstance(target, ast.Attribute) and not target.attr.startswith("_") and string(following):
            kind = f": {ast.unparse(place.annotation)}" if isinstance(place, ast.AnnAssign) else ""
            yield f"{target.attr}{kind}", "attribute", string(following)


def string(node: ast.stmt | None) -> str:
    """A string that stands by itself."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return inspect.cleandoc(node.value.value)
    return ""


def signature(name: str, node: ast.FunctionDef) -> str:
    """How it is called; on one line if it fits."""
    arguments = node.args
    if arguments.args and arguments.args[0].arg in ("self", "cls"):
        arguments = ast.arguments(**{**{name: getattr(arguments, name) for name in arguments._fields}, "args": arguments.args[1:]})
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    parts = split(ast.unparse(arguments))
    line = f"{name}({', '.join(parts)}){returns}"
    if len(line) <= WIDTH - 4:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returns}"


def split(arguments: str) -> list[str]:
    """The parts between commas that stand in no bracket."""
    parts, depth = [""], 0
    for character in arguments:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    # A default after a type stands apart, as formatters write it.
    spaced = (re.sub(r"^(\**\w+: .*?[^=])=(?!=)(?=[^=]*$)", r"\1 = ", part.strip()) for part in parts)
    return [part for part in spaced if part]


def prose(doc: str, width: int = WIDTH) -> str:
    """A docstring as Markdown: wrapped, with its examples as blocks and its parameters as a list."""
    written = []
    for paragraph in re.split(r"\n\s*\n", doc.strip("\n")):
        lines = paragraph.splitlines()
        if all(line.startswith("    ") for line in lines):
            written.append(block(textwrap.dedent(paragraph)))
        elif ITEM.match(lines[0]):
            written.append("\n".join(wrapped(item, "- ", width) for item in listed(lines)))
        else:
            written.append(wrapped(" ".join(line.strip() for line in lines), "", width))
    return "\n\n".join(written)


def listed(lines: list[str]) -> list[str]:
    """`name: what it is`, which may go on in indented lines."""
    items: list[str] = []
    for line in lines:
        if found := ITEM.match(line):
            names = ", ".join(f"`{name}`" for name in found[1].split(", "))
            items.append(f"{names}: {line[found.end() :]}")
        else:
            items[-1] += " " + line.strip()
    return items


def wrapped(text: str, bullet: str = "", width: int = WIDTH) -> str:
    """Markdown that no line is too long of; a pipe or a star would mean something else only in code, where they stand."""
    below = " " * len(bullet)
    return textwrap.fill(
        linked(text), width, initial_indent=bullet, subsequent_indent=below, break_long_words=False, break_on_hyphens=False
    )


def linked(text: str) -> str:
    """With links to the pages of the book that a docstring names by their files."""
    return re.sub(r"\(docs/(\w+)\.md\)", r"([more](\1.md))", re.sub(r"\(docs/(\w+)\.md, ", r"([more](\1.md), ", text))


def block(code: str) -> str:
    return f"<!-- not run: an example of a docstring, or how it is called -->\n```python\n{code}\n```"


def section(one: Public) -> str:
    """A name with all that it has."""
    parts = [f"### `{one.name}`"]
    if isinstance(one.node, ast.FunctionDef):
        parts.append(block(signature(f"twill_gpu.{one.name}", one.node)))
    elif one.bases:
        parts.append("Also a " + ", ".join(f"`{base}`" for base in one.bases) + ".")
    if isinstance(one.node, ast.ClassDef) and one.name in MADE:
        init = next(member for member in one.node.body if isinstance(member, ast.FunctionDef) and member.name == "__init__")
        parts.append(block(signature(f"twill_gpu.{one.name}", init)))
    parts.append(prose(one.doc))
    if isinstance(one.node, ast.ClassDef):
        items = []
        for written, kind, doc in members(one.node):
            if kind == "method":
                written = " ".join(written.split()).replace("( ", "(").replace(", )", ")")
            first, _, rest = doc.partition("\n\n")
            said = " ".join(first.split())
            items.append(wrapped(f"`{written}`" + (f": {said}" if said else ""), "- "))
            if rest:
                items.append(textwrap.indent("\n" + prose(rest, WIDTH - 2) + "\n", "  ").rstrip(" "))
        parts.append("\n".join(items))
    return "\n\n".join(part for part in parts if part)


def page() -> str:
    """The whole of it."""
    found = public()
    parts = [HEAD.rstrip("\n")]
    for kind in ("Functions", "Classes", "Parts of these", "Errors", "Version"):
        parts.append(f"## {kind}")
        parts += [section(one) for one in found if one.kind == kind]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"written to {PAGE.relative_to(ROOT)}", file=sys.stderr)
