"""Loops: each kind writes one, and gives the tiles that are known after it with the matrices that they belong to."""

from collections.abc import Callable
from dataclasses import dataclass

from .loads import Load, Range, matrix, store, vector
from .tiles import bounded, convert, work
from .writer import EIGHT_BITS, FLOATS, Tile, Writer


@dataclass(frozen=True)
class Plan:
    """Where a program works: rows and columns of its tile, and the sizes of steps."""

    rows: Range
    columns: Range
    depth: int
    own: str
    """A number of the program's own, for memory that no other one writes."""


@dataclass(frozen=True)
class Result:
    """A tile with its rows, and columns if it has any."""

    tile: Tile
    rows: Range
    columns: Range | None


def operand_type(w: Writer) -> str:
    kinds = ["float16"] * 4 + ["bfloat16"] * 3 + ["float32"] * 2 + list(EIGHT_BITS)
    return w.random.choice(kinds)


def product(w: Writer, a: Tile, b: Tile, sum: str = "") -> Tile:
    """An MMA, added to a sum if there is one."""
    element = "int32" if a.element == "int8" else "float32"
    shape = (a.shape[0], b.shape[1])
    precision = ", input_precision='ieee'" if a.element == "float32" and w.maybe(0.3) else ""
    added = f", {sum}" if sum and w.maybe(0.6) else ""
    if sum and not added:
        text = f"{sum} + tl.dot({a.name}, {b.name}{precision})"
    else:
        text = f"tl.dot({a.name}, {b.name}{added}{', out_dtype=tl.int32' if element == 'int32' else ''}{precision})"
    return w.tile("d", text, shape, element)


def zeros(w: Writer, shape: tuple[int, ...], element: str) -> Tile:
    extents = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    return w.tile("acc", f"tl.zeros(({extents}), tl.{element})", shape, element)


def head(w: Writer, name: str, begin: str, end: str, step: str = "1") -> str:
    """A loop over a range, mostly plain."""
    hint = f", num_stages={w.random.choice((1, 2, 3, 4))}" if w.maybe(0.15) else ""
    span = f"{begin}, {end}, {step}" if step != "1" else f"{begin}, {end}"
    return f"for {name} in {'tl.range' if hint else 'range'}({span}{hint}):"


def matmul(w: Writer, plan: Plan) -> list[Result]:
    """A sum of products along the depth."""
    element, size = operand_type(w), plan.depth
    if element in EIGHT_BITS:
        size = max(size, 32)
    k, limit = w.name("k"), w.number("K")
    stepping = w.maybe(0.3)
    place = k if stepping else f"{k} * {size}"
    depth = Range(place, size, limit)
    a = Load(w, matrix(w, "a", element), plan.rows, depth, "columns")
    turned = w.maybe(0.3)
    b_matrix = matrix(w, "b", element)
    b = Load(w, b_matrix, plan.columns, depth, "columns") if turned else Load(w, b_matrix, depth, plan.columns, "rows")
    acc = zeros(w, (plan.rows.size, plan.columns.size), "int32" if element == "int8" else "float32")
    a.prepare()
    b.prepare()
    end = f"{limit}" if stepping else f"tl.cdiv({limit}, {size})"
    with w.block(head(w, k, "0", end, str(size) if stepping else "1")):
        left, right = a.load(), b.load()
        if w.maybe(0.25) and element in FLOATS:
            left = bounded(w, work(w, left, plan.rows, depth, 2))
        if turned:
            right = w.tile("t", f"tl.trans({right.name})", right.shape[::-1], right.element)
        if w.maybe(0.2) and element in FLOATS:
            right = bounded(w, work(w, right, depth, plan.columns, 2))
        if w.maybe(0.2):
            made = work(w, product(w, left, right), plan.rows, plan.columns, 2)
            w.line(f"{acc.name} += {made.name}")
        elif w.maybe(0.15):
            with w.block(f"if {k} % 2 == {w.random.randrange(2)}:"):
                w.line(f"{acc.name} = {product(w, left, right, acc.name).name}")
        else:
            w.line(f"{acc.name} = {product(w, left, right, acc.name).name}")
        if w.maybe(0.15) and element != "int8":
            done = bounded(w, work(w, acc, plan.rows, plan.columns, 1), 512)
            w.line(f"{acc.name} = {done.name}")
        a.advance()
        b.advance()
    return [Result(acc, plan.rows, plan.columns)]


def attention(w: Writer, plan: Plan) -> list[Result]:
    """Scores of rows with all columns, their softmax or a part of it, and a second product."""
    element = w.random.choice(("float16", "bfloat16"))
    width, size = w.random.choice((16, 32, 64)), max(plan.depth, 16)
    inner = Range("0", width, str(width))
    k, limit = w.name("n"), w.number("K")
    keys = Range(k, size, limit)
    q = Load(w, matrix(w, "q", element), plan.rows, inner)
    turned = w.maybe(0.6)
    key_matrix = matrix(w, "k", element)
    key = Load(w, key_matrix, keys, inner, "rows") if turned else Load(w, key_matrix, inner, keys, "columns")
    value = Load(w, matrix(w, "v", element), keys, inner, "rows")
    rows = plan.rows.size
    q.prepare()
    left = q.load()
    key.prepare()
    value.prepare()
    acc = zeros(w, (rows, width), "float32")
    online = w.maybe(0.6)
    top = w.tile("top", f"tl.full(({rows},), -10000.0, tl.float32)", (rows,), "float32")
    total = zeros(w, (rows,), "float32")
    causal = w.maybe(0.3)
    end = f"tl.minimum({limit}, ({plan.rows.start}) + {rows})" if causal else limit
    with w.block(head(w, k, "0", end, str(size))):
        right = key.load()
        if turned:
            right = w.tile("t", f"tl.trans({right.name})", right.shape[::-1], right.element)
        scores = product(w, left, right)
        scores = w.tile("s", f"{scores.name} * 0.0625", scores.shape, "float32")
        scores = work(w, scores, plan.rows, keys, 1)
        columns = w.let("at", f"{k} + tl.arange(0, {size})")
        seen = f"({columns} < {limit})[None, :]"
        if causal:
            places = w.let("at", f"{plan.rows.start} + tl.arange(0, {rows})")
            seen += f" & ({places}[:, None] >= {columns}[None, :])"
        if online:
            scores = w.tile("s", f"tl.where({seen}, {scores.name}, -10000.0)", scores.shape, "float32")
            new = w.let("m", f"tl.maximum({top.name}, tl.max({scores.name}, axis=1))")
            alpha = w.let("alpha", f"tl.exp2({top.name} - {new})")
            p = w.tile("p", f"tl.exp2({scores.name} - {new}[:, None])", scores.shape, "float32")
            w.line(f"{total.name} = {total.name} * {alpha} + tl.sum({p.name}, axis=1)")
            w.line(f"{acc.name} = {acc.name} * {alpha}[:, None]")
            w.line(f"{top.name} = {new}")
        else:
            p = w.tile("p", f"tl.where({seen}, {scores.name}, 0.0)", scores.shape, "float32")
            p = bounded(w, p)
        p = convert(w, p, element)
        v = value.load()
        w.line(f"{acc.name} = {product(w, p, v, acc.name).name}")
        key.advance()
        value.advance()
    out = acc
    if online:
        out = w.tile("o", f"{acc.name} / tl.maximum({total.name}, 0.0009765625)[:, None]", acc.shape, "float32")
    return [Result(out, plan.rows, inner), Result(top, plan.rows, None)]


def recurrence(w: Writer, plan: Plan) -> list[Result]:
    """A state that each chunk reads and changes; something is stored in each iteration."""
    element, width, size = w.random.choice(("float16", "bfloat16")), w.random.choice((16, 32, 64)), max(plan.depth, 16)
    t = w.name("t")
    chunk = Range(f"{t} * {size}", size, w.number("K"))
    inner = Range("0", width, str(width))
    q = Load(w, matrix(w, "q", element), chunk, inner, "rows")
    k = Load(w, matrix(w, "k", element), chunk, inner, "rows")
    v = Load(w, matrix(w, "v", element), chunk, inner, "rows")
    state = zeros(w, (width, width), "float32")
    for one in (q, k, v):
        one.prepare()
    with w.block(head(w, t, "0", f"tl.cdiv({chunk.limit}, {size})")):
        query, key, value = q.load(), k.load(), v.load()
        if w.maybe(0.5):
            value = convert(w, bounded(w, work(w, value, chunk, inner, 2)), element)
        held = convert(w, bounded(w, state, 16), element)
        out = work(w, product(w, query, held), chunk, inner, 2)
        if w.maybe(0.6):
            scores = product(w, query, w.tile("t", f"tl.trans({key.name})", (width, size), element))
            places = w.let("at", f"tl.arange(0, {size})")
            seen = f"{places}[:, None] >= {places}[None, :]"
            scores = w.tile("s", f"tl.where({seen}, {scores.name}, 0.0)", scores.shape, "float32")
            inside = product(w, convert(w, bounded(w, scores), element), value)
            out = w.tile("o", f"{out.name} + {inside.name}", out.shape, "float32")
        store(w, convert(w, out, w.random.choice(("float32", element))), chunk, inner, plan.own)
        w.line(f"{state.name} = {state.name} * 0.5")
        turned = w.tile("t", f"tl.trans({key.name})", (width, size), element)
        w.line(f"{state.name} = {product(w, turned, value, state.name).name}")
        for one in (q, k, v):
            one.advance()
    return [Result(state, inner, inner)]


def sums(w: Writer, plan: Plan) -> list[Result]:
    """A reduction along the columns without MMAs; sometimes with branches."""
    element, k = w.random.choice((*FLOATS, "int8", "int16", "int32")), w.name("k")
    columns = Range(f"{k} * {plan.depth}", plan.depth, w.number("K"))
    x = Load(w, matrix(w, "x", element), plan.rows, columns, "columns")
    kind = "float32" if element in FLOATS else "int32"
    total = zeros(w, (plan.rows.size,), kind)
    x.prepare()
    with w.block(head(w, k, "0", f"tl.cdiv({columns.limit}, {plan.depth})")):
        value = convert(w, x.load(), kind)
        value = work(w, value, plan.rows, columns, 3)
        if w.maybe(0.3):
            with w.block(f"if {k} < {w.random.randrange(3)}:"):
                w.line(f"{total.name} += tl.sum({value.name}, axis=1)")
            with w.block("else:"):
                w.line(f"{total.name} += tl.max({value.name}, axis=1)")
        else:
            w.line(f"{total.name} += tl.sum({value.name}, axis=1)")
        x.advance()
    return [Result(total, plan.rows, None)]


def groups(w: Writer, plan: Plan) -> list[Result]:
    """A loop over matrices, as over experts, around one along the depth; some are left out, by a number in memory."""
    element, size = w.random.choice(("float16", "bfloat16", "float8e4nv")), max(plan.depth, 32)
    g, k, limit = w.name("g"), w.name("k"), w.number("K")
    depth = Range(f"{k} * {size}", size, limit)
    acc = zeros(w, (plan.rows.size, plan.columns.size), "float32")
    flags = w.pointer("flags", "int32", 16, "below 3")
    count = w.number("G")
    with w.block(head(w, g, "0", count)):
        flag = w.let("flag", f"tl.load({flags} + {g})")
        skipping = w.maybe(0.4)
        a = Load(w, matrix(w, "a", element), plan.rows, depth, "columns")
        b = Load(w, matrix(w, "b", element), depth, plan.columns, "rows")
        end = w.let("end", f"tl.where({flag} == 0, 0, tl.cdiv({limit}, {size}))") if skipping else f"tl.cdiv({limit}, {size})"
        own = zeros(w, acc.shape, "float32") if w.maybe(0.5) else acc
        a.prepare()
        b.prepare()
        with w.block(head(w, k, "0", end)):
            w.line(f"{own.name} = {product(w, a.load(), b.load(), own.name).name}")
            a.advance()
            b.advance()
        if own is not acc:
            w.line(f"{acc.name} += {own.name} * {flag}")
    return [Result(acc, plan.rows, plan.columns)]


def indirect(w: Writer, plan: Plan) -> list[Result]:
    """Tiles at places that are read in the loop, as of a paged cache; a `while` or a plain loop."""
    element, size = w.random.choice(("float16", "bfloat16")), max(plan.depth, 16)
    i, limit = w.name("i"), w.number("K")
    table = w.pointer("table", "int32", 64, "below 8")
    width = w.random.choice((16, 32, 64))
    inner = Range("0", width, str(width))
    q = Load(w, matrix(w, "q", element), plan.rows, inner)
    q.prepare()
    left = q.load()
    acc = zeros(w, (plan.rows.size, size), "float32")
    source = matrix(w, "pages", element)
    end = f"tl.cdiv({limit}, {size})"
    if w.maybe(0.3):
        w.line(f"{i} = 0")
        opening = f"while {i} < {end}:"
    else:
        opening = head(w, i, "0", end)
    with w.block(opening):
        page = w.let("page", f"tl.load({table} + {i})")
        rows = Range(f"{page} * {size}", size, "512")
        right = Load(w, source, rows, inner)
        right.prepare()
        right_tile = right.load()
        turned = w.tile("t", f"tl.trans({right_tile.name})", (width, size), element)
        w.line(f"{acc.name} = {product(w, left, turned, acc.name).name}")
        if opening.startswith("while"):
            w.line(f"{i} += 1")
    return [Result(acc, plan.rows, Range("0", size, str(size)))]


def decayed(w: Writer, plan: Plan) -> list[Result]:
    """A product with scales of blocks along the depth, and a sum that is scaled in each iteration."""
    element = w.random.choice(("float16", "float8e4nv", "int8", "bfloat16"))
    size = max(plan.depth, 32)
    k, limit = w.name("k"), w.number("K")
    depth = Range(f"{k} * {size}", size, limit)
    a = Load(w, matrix(w, "a", element), plan.rows, depth, "columns")
    b = Load(w, matrix(w, "b", element), depth, plan.columns, "rows")
    acc = zeros(w, (plan.rows.size, plan.columns.size), "float32")
    scales = w.pointer("scales", "float32", 64)
    a.prepare()
    b.prepare()
    with w.block(head(w, k, "0", f"tl.cdiv({limit}, {size})")):
        left, right = a.load(), b.load()
        rows = vector(w, plan.rows)
        scale = w.let("scale", f"tl.load({scales} + {k})")
        made = product(w, left, right)
        w.line(f"{acc.name} += {made.name} * {scale} * {rows.name}[:, None]")
        if w.maybe(0.4):
            w.line(f"{acc.name} = {acc.name} * 0.5")
        a.advance()
        b.advance()
    return [Result(acc, plan.rows, plan.columns)]


Loop = Callable[[Writer, Plan], list[Result]]
LOOPS: list[Loop] = [matmul, matmul, matmul, attention, attention, recurrence, sums, groups, indirect, decayed]
