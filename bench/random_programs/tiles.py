"""Random operations on tiles. Floats stay small, so that no two sides differ by more than rounding."""

from collections.abc import Callable

from .loads import Range, vector
from .writer import FLOATS, Tile, Writer


def work(w: Writer, value: Tile, rows: Range, columns: Range, most: int) -> Tile:
    """The tile after up to so many operations, with the same shape and type."""
    for _ in range(w.random.randint(0, most)):
        value = w.random.choice(OF_FLOATS if value.element in FLOATS else OF_INTEGERS)(w, value, rows, columns)
    return value


def named(w: Writer, value: Tile, text: str) -> Tile:
    return w.tile("y", text, value.shape, value.element)


def bounded(w: Writer, value: Tile, most: int = 8) -> Tile:
    """Each number between −most and most."""
    x = value.name
    if value.element in FLOATS:
        return named(w, value, f"tl.minimum(tl.maximum({x}, -{most}.0), {most}.0).to(tl.{value.element})")
    return named(w, value, f"tl.minimum(tl.maximum({x}, -{most}), {most}).to(tl.{value.element})")


def convert(w: Writer, value: Tile, element: str) -> Tile:
    """The tile in another type, which holds its numbers or rounds them."""
    if value.element == element:
        return value
    if element == "int8" or element.startswith("float8"):
        value = bounded(w, value)
    if element.startswith("float8") and value.element not in FLOATS:
        value = w.tile("y", f"{value.name}.to(tl.float32)", value.shape, "float32")
    return w.tile("y", f"{value.name}.to(tl.{element})", value.shape, element)


def elementwise(w: Writer, value: Tile, rows: Range, columns: Range) -> Tile:
    x, kind = value.name, value.element
    forms = (
        f"{x} * 0.5",
        f"tl.where({x} > 0, {x}, {x} * 0.25)",
        f"tl.maximum({x}, 0.0)",
        f"tl.abs({x}) - 1.0",
        f"{x} + 1.5",
        f"-{x}",
        f"tl.where({x} != {x}, 0.0, {x})",
    )
    return named(w, value, f"({w.random.choice(forms)}).to(tl.{kind})")


def function(w: Writer, value: Tile, rows: Range, columns: Range) -> Tile:
    x, kind = value.name, value.element
    forms = (
        f"tl.exp2(-tl.abs({x}.to(tl.float32)))",
        f"tl.exp({x}.to(tl.float32) * 0.125)",
        f"tl.sigmoid({x}.to(tl.float32))",
        f"tl.sqrt(tl.abs({x}.to(tl.float32)))",
        f"tl.log2(1.0 + tl.abs({x}.to(tl.float32)))",
        f"tl.sin({x}.to(tl.float32))",
        f"1.0 / (1.0 + tl.abs({x}.to(tl.float32)))",
        f"tl.rsqrt(1.0 + {x}.to(tl.float32) * {x}.to(tl.float32))",
        f"tl.fma({x}.to(tl.float32), 0.5, 0.25)",
        f"tl.erf({x}.to(tl.float32))",
    )
    return named(w, bounded(w, value), f"({w.random.choice(forms)}).to(tl.{kind})")


def with_vector(w: Writer, value: Tile, rows: Range, columns: Range) -> Tile:
    """A number for each row or column, loaded, added to it or multiplied with it."""
    if len(value.shape) != 2:
        return value
    down = w.maybe(0.5)
    other = vector(w, rows if down else columns, w.random.choice(("float32", "float16", "bfloat16")))
    spread = f"{other.name}[:, None]" if down else f"{other.name}[None, :]"
    made = named(w, value, f"({value.name} {w.random.choice('+-*')} {spread}).to(tl.{value.element})")
    return bounded(w, made, 64)


def through_type(w: Writer, value: Tile, rows: Range, columns: Range) -> Tile:
    """Through another type and back."""
    element = w.random.choice(("float16", "bfloat16", "float8e4nv", "float8e5", "int8", "int32"))
    return convert(w, convert(w, bounded(w, value), element), value.element)


def centred(w: Writer, value: Tile, rows: Range, columns: Range) -> Tile:
    """A reduction along an axis, subtracted or added."""
    axis = w.random.randrange(len(value.shape))
    form = w.random.choice(("tl.max({}, axis={})", "tl.sum({}, axis={}) * 0.015625", "tl.min({}, axis={})"))
    reduced = w.let("r", form.format(f"{value.name}.to(tl.float32)", axis))
    if len(value.shape) == 2:
        reduced += "[None, :]" if axis == 0 else "[:, None]"
    return bounded(w, named(w, value, f"({value.name} - {reduced}).to(tl.{value.element})"), 64)


def best(w: Writer, value: Tile, rows: Range, columns: Range) -> Tile:
    """Where the largest of some equal numbers in a row is: the first. It does not depend on the tile, which rounding may change."""
    if len(value.shape) != 2:
        return value
    place = w.let("place", f"tl.argmax(({value.name} * 0.0 + {column_numbers(w, value)}).to(tl.float32), axis=1)")
    return named(w, value, f"({value.name} + {place}[:, None].to(tl.float32) * 0.015625).to(tl.{value.element})")


def column_numbers(w: Writer, value: Tile) -> str:
    return w.let("n", f"((tl.arange(0, {value.shape[1]}) * 7) % 13)[None, :]")


def scanned(w: Writer, value: Tile, rows: Range, columns: Range) -> Tile:
    axis = w.random.randrange(len(value.shape))
    text = f"tl.cumsum({value.name}.to(tl.float32) * 0.0625, axis={axis}).to(tl.{value.element})"
    return bounded(w, named(w, value, text), 64)


def turned(w: Writer, value: Tile, rows: Range, columns: Range) -> Tile:
    """Transposed, something done, and transposed again."""
    if len(value.shape) != 2:
        return value
    across = w.tile("t", f"tl.trans({value.name})", value.shape[::-1], value.element)
    across = elementwise(w, across, columns, rows) if value.element in FLOATS else across
    return named(w, value, f"tl.trans({across.name})")


def reshaped(w: Writer, value: Tile, rows: Range, columns: Range) -> Tile:
    """Pairs of columns split, or a third dimension; and joined again."""
    if len(value.shape) != 2:
        return value
    m, n = value.shape
    if w.maybe(0.5):
        pairs = w.let("p", f"tl.reshape({value.name}, ({m}, {n // 2}, 2))")
        a, b = w.name("a"), w.name("b")
        w.line(f"{a}, {b} = tl.split({pairs})")
        factor = "* 0.5" if value.element in FLOATS else "+ 1"
        joined = f"tl.join(({a} {factor}).to(tl.{value.element}), {b})"
        return named(w, value, f"tl.reshape({joined}, ({m}, {n}))")
    cube = w.let("c", f"tl.reshape({value.name}, ({m}, {n // 4}, 4))")
    turned_cube = w.let("c", f"tl.permute({cube}, (0, 2, 1))")
    return named(w, value, f"tl.reshape({turned_cube}, ({m}, {n}))")


def gathered(w: Writer, value: Tile, rows: Range, columns: Range) -> Tile:
    """Columns in another order. Of large tiles that is long code, which takes minutes to assemble."""
    if len(value.shape) != 2 or value.shape[0] * value.shape[1] > 2048:
        return value
    m, n = value.shape
    places = w.let("g", f"((tl.arange(0, {n}) * 5 + 3) % {n})[None, :] + tl.zeros(({m}, {n}), tl.int32)")
    return named(w, value, f"tl.gather({value.name}, {places}, axis=1)")


def assembled(w: Writer, value: Tile, rows: Range, columns: Range) -> Tile:
    """PTX in line."""
    if value.element != "float32":
        return value
    text = f"tl.inline_asm_elementwise('max.f32 $0, $1, 0fBF800000;', '=f,f', [{value.name}], "
    return named(w, value, text + "dtype=tl.float32, is_pure=True, pack=1)")


def shaken(w: Writer, value: Tile, rows: Range, columns: Range) -> Tile:
    """Random numbers added, those of a seed and an index."""
    if len(value.shape) != 2:
        return value
    m, n = value.shape
    places = w.let("i", f"tl.arange(0, {m})[:, None] * {n} + tl.arange(0, {n})[None, :]")
    return named(w, value, f"({value.name} + tl.rand({w.random.randrange(99)}, {places})).to(tl.{value.element})")


def of_integers(w: Writer, value: Tile, rows: Range, columns: Range) -> Tile:
    x = value.name
    forms = (f"{x} + 3", f"{x} & 15", f"{x} ^ 5", f"{x} >> 1", f"tl.where({x} > 0, {x}, -{x})", f"{x} * 3", f"{x} // 3")
    return named(w, value, f"({w.random.choice(forms)}).to(tl.{value.element})")


def reduced_integers(w: Writer, value: Tile, rows: Range, columns: Range) -> Tile:
    axis = w.random.randrange(len(value.shape))
    reduced = w.let("r", f"tl.{w.random.choice(('sum', 'max', 'xor_sum'))}({value.name}.to(tl.int32), axis={axis})")
    if len(value.shape) == 2:
        reduced += "[None, :]" if axis == 0 else "[:, None]"
    return named(w, value, f"({value.name} + ({reduced} & 255)).to(tl.{value.element})")


Operation = Callable[[Writer, Tile, Range, Range], Tile]
OF_FLOATS: list[Operation] = [elementwise, elementwise, elementwise, function, function, with_vector, with_vector]
OF_FLOATS += [through_type, centred, scanned, turned, reshaped, gathered, assembled, shaken, best]
OF_INTEGERS: list[Operation] = [of_integers, of_integers, reduced_integers, turned, reshaped, gathered]
