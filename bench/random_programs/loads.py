"""Ways in which programs load and store tiles of a matrix in memory."""

from dataclasses import dataclass

from .writer import Tile, Writer

BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float8e4nv": 1, "float8e5": 1, "int8": 1, "int16": 2, "int32": 4}
MOST = 640
"""The most rows or columns of a matrix."""
ODD = MOST + 3
"""Elements from a row to the next of some."""


@dataclass(frozen=True)
class Range:
    """Indices of a tile along one dimension: from a place on, so many, those below a limit."""

    start: str
    size: int
    limit: str


@dataclass(frozen=True)
class Matrix:
    """A matrix in memory, and the elements from a row and a column to the next, as expressions."""

    pointer: str
    element: str
    row: str
    column: str
    by_rows: bool
    aligned: bool


def matrix(w: Writer, stem: str, element: str) -> Matrix:
    """A matrix of at most `MOST` rows and columns, mostly with rows of 16 bytes' multiples."""
    aligned = w.maybe(0.85)
    pitch = MOST if aligned else ODD
    pointer = w.pointer(stem, element, MOST * pitch, "numbers", w.maybe(0.93))
    step = w.number("pitch" if aligned else "odd_pitch") if w.maybe(0.5) else str(pitch)
    by_rows = w.maybe(0.7)
    return Matrix(pointer, element, step if by_rows else "1", "1" if by_rows else step, by_rows, aligned)


def indices(w: Writer, of: Range) -> str:
    return w.let("at", f"{of.start} + tl.arange(0, {of.size})")


def times(index: str, step: str) -> str:
    return index if step == "1" else f"{index} * {step}"


class Load:
    """A tile that is loaded once, or in each iteration of a loop: `prepare` stands before the loop, `advance` at its end."""

    def __init__(self, w: Writer, source: Matrix, rows: Range, columns: Range, step: str = ""):
        """step: what moves in a loop: `rows`, `columns`, or nothing."""
        self.w, self.source, self.rows, self.columns, self.step = w, source, rows, columns, step
        ways = ["pointers"] * 4 + ["gathered"]
        ways += ["advanced"] * 3 if step else []
        if source.by_rows and source.aligned and aligned_pointer(w, source) and columns.size * BYTES[source.element] >= 16:
            ways += ["descriptor"]
        ways += ["block"]
        self.way = w.random.choice(ways)
        self.order = w.pointer("order", "int32", MOST, f"below {MOST}") if self.way == "gathered" else ""
        self.held = ""

    def prepare(self) -> None:
        w, source = self.w, self.source
        if self.way == "descriptor":
            shape = [self.rows.limit, self.columns.limit]
            block = f"[{self.rows.size}, {self.columns.size}]"
            extents = f"[{', '.join(shape)}], [{source.row}, 1], {block}"
            self.held = w.let("tensor", f"tl.make_tensor_descriptor({source.pointer}, {extents})")
        elif self.way in ("advanced", "block"):
            rows, columns = (
                Range("0" if self.step == name else one.start, one.size, one.limit)
                for name, one in (("rows", self.rows), ("columns", self.columns))
            )
            if self.way == "advanced":
                self.held = w.let("at", self.address(indices(w, rows), indices(w, columns)))
            else:
                order = "(1, 0)" if source.by_rows else "(0, 1)"
                self.held = w.let(
                    "block",
                    f"tl.make_block_ptr({source.pointer}, shape=({rows.limit}, {columns.limit}), "
                    f"strides=({source.row}, {source.column}), offsets=({rows.start}, {columns.start}), "
                    f"block_shape=({rows.size}, {columns.size}), order={order})",
                )

    def address(self, rows: str, columns: str) -> str:
        source = self.source
        return f"{source.pointer} + {times(f'{rows}[:, None]', source.row)} + {times(f'{columns}[None, :]', source.column)}"

    def load(self) -> Tile:
        w, shape = self.w, (self.rows.size, self.columns.size)
        if self.way == "descriptor":
            text = f"{self.held}.load([{self.rows.start}, {self.columns.start}])"
            return w.tile("x", text, shape, self.source.element)
        if self.way == "block":
            text = f"tl.load({self.held}, boundary_check=(0, 1), padding_option='zero')"
            return w.tile("x", text, shape, self.source.element)
        source = self.source
        rows, columns = indices(w, self.rows), indices(w, self.columns)
        mask = f"({rows}[:, None] < {self.rows.limit}) & ({columns}[None, :] < {self.columns.limit})"
        if self.way == "gathered":
            rows = w.let("row", f"tl.load({self.order} + {rows}, mask={rows} < {self.rows.limit}, other=0)")
        address = self.held if self.way == "advanced" else self.address(rows, columns)
        other = w.random.choice(("0", "0", "0", "0", "1", "-2"))
        if "float" in source.element:
            other += ".0"
        hint = ", eviction_policy='evict_last'" if w.maybe(0.1) else ""
        return w.tile("x", f"tl.load({address}, mask={mask}, other={other}{hint})", shape, source.element)

    def advance(self) -> None:
        size = self.rows.size if self.step == "rows" else self.columns.size
        if self.way == "advanced":
            stride = self.source.row if self.step == "rows" else self.source.column
            self.w.line(f"{self.held} += {size if stride == '1' else f'{size} * {stride}'}")
        elif self.way == "block" and self.step:
            by = (size, 0) if self.step == "rows" else (0, size)
            self.w.line(f"{self.held} = tl.advance({self.held}, {by})")


def aligned_pointer(w: Writer, source: Matrix) -> bool:
    return next(one.aligned for one in w.pointers if one.name == source.pointer)


def vector(w: Writer, along: Range, element: str = "float32") -> Tile:
    """A number for each index."""
    pointer = w.pointer("v", element, MOST)
    at = indices(w, along)
    text = f"tl.load({pointer} + {at}, mask={at} < {along.limit}, other=0)"
    return w.tile("v", text, (along.size,), element)


def store(w: Writer, value: Tile, rows: Range, columns: Range | None, offset: str = "") -> None:
    """Stores a tile to a matrix of its own."""
    count = MOST * MOST if columns else MOST
    pointer = w.pointer("out", value.element, count * (4 if offset else 1), "zeros")
    at = indices(w, rows)
    address, mask = f"{pointer} + {at}", f"{at} < {rows.limit}"
    if columns:
        across = indices(w, columns)
        address = f"{pointer} + {at}[:, None] * {MOST} + {across}[None, :]"
        mask = f"({at}[:, None] < {rows.limit}) & ({across}[None, :] < {columns.limit})"
    if offset:
        address += f" + {offset} * {count}"
    atomic = value.element in ("int32", "float32") and w.maybe(0.15)
    w.line(f"tl.{'atomic_add' if atomic else 'store'}({address}, {value.name}, mask={mask})")
