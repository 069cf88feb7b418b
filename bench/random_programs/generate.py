"""The program of a seed."""

from .loads import MOST, ODD, Range, store
from .loops import LOOPS, Plan, Result
from .program import Call, Program
from .tiles import bounded, convert, work
from .writer import FLOATS, Writer

ROWS, COLUMNS, DEPTHS = (16, 16, 32, 64, 64, 64, 128), (16, 32, 32, 64, 64, 128), (16, 32, 32, 64)


def program(seed: int) -> Program:
    """The same program for the same seed. Its three calls: of whole tiles, of parts of tiles, and a small one."""
    w = Writer(seed)
    m, n, k = w.random.choice(ROWS), w.random.choice(COLUMNS), w.random.choice(DEPTHS)
    if m * n > 64 * 64 and w.maybe(0.7):
        m, n = 64, min(n, 64)
    way = w.random.choice(("plain", "plain", "plane", "swizzled", "persistent", "early"))
    rows_limit, columns_limit = w.number("M"), w.number("N")
    if way == "plane":
        pid_m, pid_n = w.let("pid_m", "tl.program_id(0)"), w.let("pid_n", "tl.program_id(1)")
        body(w, pid_m, pid_n, m, n, k)
    elif way == "persistent":
        tiles = w.let("tiles", f"tl.cdiv({rows_limit}, {m}) * tl.cdiv({columns_limit}, {n})")
        tile = w.name("tile")
        with w.block(f"for {tile} in range(tl.program_id(0), {tiles}, tl.num_programs(0)):"):
            across = w.let("across", f"tl.cdiv({columns_limit}, {n})")
            body(w, w.let("pid_m", f"{tile} // {across}"), w.let("pid_n", f"{tile} % {across}"), m, n, k)
    else:
        pid, across = w.let("pid", "tl.program_id(0)"), w.let("across", f"tl.cdiv({columns_limit}, {n})")
        if way == "swizzled":
            down = w.let("down", f"tl.cdiv({rows_limit}, {m})")
            group = w.let("group", f"{pid} // (2 * {across})")
            size = w.let("size", f"tl.minimum({down} - {group} * 2, 2)")
            rest = w.let("rest", f"{pid} % (2 * {across})")
            pid_m, pid_n = w.let("pid_m", f"{group} * 2 + {rest} % {size}"), w.let("pid_n", f"{rest} // {size}")
        else:
            pid_m, pid_n = w.let("pid_m", f"{pid} // {across}"), w.let("pid_n", f"{pid} % {across}")
        if way == "early":
            skipped = w.pointer("skipped", "int32", 4096, "below 4")
            with w.block(f"if tl.load({skipped} + {pid}) == 0:"):
                w.line("return")
        body(w, pid_m, pid_n, m, n, k)
    made = Program(seed, w.source(), w.pointers, [])
    made.multiples = [name for name in ("pitch",) if name in w.numbers]
    if w.maybe(0.5):
        made.multiples += [name for name in ("M", "N", "K") if name in w.numbers and w.maybe(0.6)]
    sizes = (
        (2 * m, 2 * n, 4 * k),
        (m + m // 2 - 3, n + 5, 3 * k - 7),
        (w.random.randint(1, m), w.random.randint(1, 2 * n), w.random.choice((0, 1, k // 2, k))),
    )
    for large_m, large_n, large_k in sizes:
        values = {"M": large_m, "N": large_n, "K": large_k, "G": 3, "pitch": MOST, "odd_pitch": ODD}
        values |= {name: -(-values[name] // 16) * 16 for name in made.multiples}
        tiles_m, tiles_n = -(-values["M"] // m), -(-values["N"] // n)
        grid = (tiles_m, tiles_n, 1) if way == "plane" else (tiles_m * tiles_n, 1, 1)
        if way == "persistent":
            grid = (min(grid[0], 2), 1, 1)
        made.calls.append(Call(grid, {name: values[name] for name in w.numbers}))
    return made


def body(w: Writer, pid_m: str, pid_n: str, m: int, n: int, k: int) -> None:
    """What a program computes of its tile: loops one after the other, what is done with their results, and stores."""
    own = w.let("own", f"({pid_m} + {pid_n} * tl.cdiv(M, {m})) % 4")
    plan = Plan(Range(f"{pid_m} * {m}", m, "M"), Range(f"{pid_n} * {n}", n, "N"), k, own)
    results: list[Result] = []
    for _ in range(2 if w.maybe(0.2) else 1):
        results += w.random.choice(LOOPS)(w, plan)
    for result in results:
        rows, columns = result.rows, result.columns
        tile = work(w, result.tile, rows, columns or Range("0", 1, "1"), 3)
        if tile.element in FLOATS:
            tile = convert(w, bounded(w, tile, 4096), w.random.choice(FLOATS))
        # Where no other program stores.
        whole = rows is plan.rows and columns is plan.columns
        store(w, tile, rows, columns, "" if whole else plan.own)
