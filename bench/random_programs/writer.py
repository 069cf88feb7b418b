"""Writes the source of a program line by line, and keeps what the program takes."""

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass

from .program import Pointer

HEAD = """import triton
import triton.language as tl


@triton.jit
def kernel({parameters}):
"""
FLOATS = ("float16", "bfloat16", "float32")
EIGHT_BITS = ("float8e4nv", "float8e5", "int8")


@dataclass(frozen=True)
class Tile:
    """A variable of the program that holds a tile; a number if it has no dimension."""

    name: str
    shape: tuple[int, ...]
    element: str


class Writer:
    """The lines so far, and the parameters that they use."""

    def __init__(self, seed: int):
        self.random = random.Random(f"twill {seed}")
        self.seed = seed
        self.lines: list[str] = []
        self.depth = 1
        self.pointers: list[Pointer] = []
        self.numbers: list[str] = []
        self.names = 0

    def maybe(self, chance: float) -> bool:
        return self.random.random() < chance

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def let(self, stem: str, text: str) -> str:
        """A new variable."""
        name = self.name(stem)
        self.line(f"{name} = {text}")
        return name

    def tile(self, stem: str, text: str, shape: tuple[int, ...], element: str) -> Tile:
        return Tile(self.let(stem, text), shape, element)

    @contextlib.contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines within a statement."""
        self.line(head)
        self.depth += 1
        yield
        self.depth -= 1

    def pointer(self, stem: str, element: str, count: int, contents: str = "numbers", aligned: bool = True) -> str:
        name = self.name(stem)
        self.pointers.append(Pointer(name, element, count, contents, aligned))
        return name

    def number(self, name: str) -> str:
        """A parameter that is a number; its name."""
        if name not in self.numbers:
            self.numbers.append(name)
        return name

    def source(self) -> str:
        parameters = ", ".join([one.name for one in self.pointers] + self.numbers)
        return HEAD.format(parameters=parameters) + "\n".join(self.lines) + "\n"
