"""The edges: which kernel, what is in memory, and how it is called."""

import ast
import zlib
from dataclasses import dataclass
from pathlib import Path

from bench.random_programs.program import Call, Pointer, Program

KERNELS = Path(__file__).with_name("kernels.py")
FAR = 2**25
"""Elements between rows that are far apart: 65 of these are more than 2³¹."""
MOST_PROGRAMS = 2**31 - 1
NAMES = {"special": "NaN, ∞, −0, denormals", "few special": "a few NaN, ∞, −0, denormals"}
"""What is in memory, in words."""


@dataclass(frozen=True)
class Edge:
    """A row of the table."""

    name: str
    program: Program


def source_of(name: str) -> str:
    """The text of a kernel, named `kernel`, after the functions that it calls."""
    text = KERNELS.read_text(encoding="utf-8")
    functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    names = {node.id for node in ast.walk(functions[name]) if isinstance(node, ast.Name)}
    parts = ["import triton\nimport triton.language as tl\n"]
    for one in [*(one for one in functions if one in names), name]:
        lines = text.splitlines()[functions[one].lineno - 1 : functions[one].end_lineno]
        if one == name:
            lines[0] = lines[0].replace(f"def {name}(", "def kernel(")
        parts.append("@triton.jit\n" + "\n".join(lines) + "\n")
    return "\n\n".join(parts)


def edge(name: str, kernel: str, pointers: list[Pointer], *calls: Call) -> Edge:
    return Edge(name, Program(zlib.crc32(name.encode()), source_of(kernel), pointers, [], list(calls)))


def matrix(name: str, element: str = "float16", contents: str = "numbers", **more) -> Pointer:
    return Pointer(name, element, 65536, contents, **more)


def result(name: str, element: str = "float32", count: int = 65536) -> Pointer:
    """What is written, and was something else before."""
    return Pointer(name, element, count, "numbers")


def strided(grid=(2, 2, 1), M=96, N=80, K=96, a_row=256, a_column=1, b_row=256, b_column=1, c_row=256) -> Call:
    return Call(grid, dict(M=M, N=N, K=K, a_row=a_row, a_column=a_column, b_row=b_row, b_column=b_column, c_row=c_row))


def of_rows(grid=(2, 2, 1), M=128, N=128, K=128) -> Call:
    return Call(grid, dict(M=M, N=N, K=K))


def edges() -> list[Edge]:
    """All of them."""
    found = []
    both, out = [matrix("a"), matrix("b")], result("c")
    sizes = (
        ("loops without an iteration", dict(K=0)),
        ("loops with a negative end", dict(K=-5)),
        ("loops with one iteration", dict(K=32)),
        ("less than a tile", dict(M=1, N=1, K=1)),
        ("a grid of one program", dict(grid=(1, 1, 1), M=64, N=64, K=96)),
        ("more programs than tiles", dict(grid=(3, 4, 2))),
    )
    for name, size in sizes:
        found.append(edge(f"{name}, pointers", "product", [*both, out], strided(**size)))
        found.append(edge(f"{name}, rows", "product_of_rows", [*both, out], of_rows(**size)))
    placed = (
        ("strides of zero", both, dict(a_row=0, b_column=0)),
        ("strides of zero along the depth", both, dict(a_column=0, b_row=0)),
        (
            "negative strides",
            [matrix("a", first=65535), matrix("b", first=65535)],
            dict(a_row=-256, a_column=-1, b_row=-256, b_column=-1),
        ),
        ("strides that are not 1", both, dict(a_row=521, a_column=3, b_row=2, b_column=257)),
        ("columns that are contiguous", both, dict(a_row=1, a_column=256, b_row=1, b_column=256)),
        ("pointers that are not aligned", [matrix("a", aligned=False), matrix("b", aligned=False)], {}),
        ("rows that overlap", both, dict(a_row=7, b_row=9)),
    )
    for name, inputs, strides in placed:
        found.append(edge(name, "product", [*inputs, out], strided(**strides)))
    for element in ("float16", "bfloat16", "float32", "float8e5", "float8e4nv"):
        special = [matrix("a", element, "special"), matrix("b", element, "special"), out]
        found.append(edge(f"{NAMES['special']}: product of {element}", "product_of_rows", special, of_rows()))
        # One number that is none in a row would hide all others.
        few = [matrix("a", element, "few special"), matrix("b", element), out]
        found.append(edge(f"{NAMES['few special']}: product of {element}", "product", few, strided()))
    for contents in ("special", "few special"):
        inputs = [matrix("a", contents=contents), matrix("b"), matrix("c", "float32", "special")]
        outputs = result("whole", count=14 * 65536)
        found.append(edge(f"{NAMES[contents]}: operations", "elements", [*inputs, outputs], of_rows()))
    outputs = [result("out", count=1024), result("places", "int32", 256)]
    inputs = [matrix("a", contents="infinite"), matrix("b")]
    call = Call((2, 1, 1), dict(M=120, K=100))
    found.append(edge("∞, −0, denormals: reductions", "reductions", [*inputs, *outputs], call))
    rows = [Pointer(name, "float16", 8192, "numbers") for name in ("q", "k", "v")]
    outputs = [result("out", "float16", 8192), result("sums", count=128)]
    for kernel in ("attention", "attention_guarded"):
        for name, contents in (("fully masked rows", "below 2"), ("rows of all lengths", "below 128")):
            inputs = [*rows, Pointer("lengths", "int32", 128, contents)]
            calls = [Call((2, 1, 1), dict(N=n, scale=1)) for n in (128, 100, 1, 0)]
            found.append(edge(f"{name}: {kernel}", kernel, [*inputs, *outputs], *calls))
    tiles = [Call((4, 1, 1), dict(tiles=tiles)) for tiles in (4, 1, 0)]
    weights = Pointer("w", "float16", 4096, "numbers")
    pair = [matrix("x"), weights, matrix("y", same_as="x")]
    found.append(edge("two pointers to the same memory", "in_place", pair, *tiles))
    pair = [matrix("x", aligned=False), weights, matrix("y", same_as="x", aligned=False)]
    found.append(edge("in place, not aligned", "in_place", pair, *tiles))
    counts = Pointer("counts", "int32", 128, "zeros")
    for programs in (1, 2000):
        name = f"atomics of {programs} programs in one place"
        found.append(edge(name, "split_depth", [*both, out, counts], of_rows((programs, 1, 1), 64, 64, 96)))
    name = "2³¹ − 1 programs"
    found.append(edge(name, "product_in_many_programs", [*both, out], of_rows((MOST_PROGRAMS, 1, 1))))
    calls = [of_rows((1, 65535, 1)), of_rows((2, 2, 65535))]
    found.append(edge("65 535 programs along y and z", "product_of_rows", [*both, out], *calls))
    far = Pointer("a", "int8", 65 * FAR, "numbers")
    near, small = Pointer("a", "int8", 65536, "numbers"), Pointer("b", "int8", 65536, "numbers")
    found.append(edge("reads beyond 2³¹ elements", "far_product", [far, small, result("c", "int8")], far_call(FAR, 256)))
    written = Pointer("c", "int8", 65 * FAR, "zeros")
    found.append(edge("writes beyond 2³¹ elements", "far_product", [near, small, written], far_call(256, FAR)))
    return found


def far_call(a_row: int, c_row: int) -> Call:
    return Call((1, 1, 1), dict(K=100, a_row=a_row, c_row=c_row))
