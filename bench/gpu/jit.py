"""Kernels through @twill_gpu.jit on a GPU: right, and as fast as what `twill compile` makes of them?

    python -m bench.gpu.jit                     # all cases, a table
    python -m bench.gpu.jit --keep              # and bench/results/jit.md
    python -m bench.gpu.jit tutorial_causal     # some

Needs torch, Triton 3.6 and twill_gpu. Of each case the same source runs by stock Triton (the best of some tiles, warps and
stages), by `twill compile` and its launcher, and by `twill_gpu.jit`, which differs from the first by its decorator alone. All
are checked against float64 on fresh random inputs, and timed in alternating order, the L2 cache flushed before each.
"""

import argparse
import datetime
import itertools
import math
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.common import ROOT, keep

sys.path[:0] = [str(ROOT / "examples")]

try:
    import torch
    import triton
    import twill_gpu
    from triton.tools.tensor_descriptor import TensorDescriptor
    from twill_gpu import _twill
except ImportError as missing:
    torch, MISSING = None, missing

ROUNDS = 30
"""How often each contender is timed."""
TOLERANCE = 2e-3
"""Largest error relative to the largest value of the reference: f16 results."""


@dataclass(frozen=True)
class Case:
    """A kernel with inputs."""

    name: str
    kernel: object
    """The function, as `triton.jit` has it."""
    arguments: Callable[[dict], tuple]
    """For constexprs, arguments by name and grid."""
    results: Callable[[], list]
    """Of the last launch."""
    reference: Callable[[], list]
    """The same in float64."""
    constexprs: dict
    """Those of the kernel that Twill makes."""
    tiles: list[dict]
    """What stock Triton chooses from: constexprs with `num_warps` and `num_stages`."""
    flop: int
    others: dict[str, Callable[[], object]]
    """What else does the same."""


def attention(name: str, length: int, heads: int, head_dim: int, causal: bool) -> Case:
    """Attention as Triton's tutorial writes it."""
    import tutorial_attention

    torch.manual_seed(torch.seed())
    shape = (1, heads, length, head_dim)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.float16) for _ in range(3))
    o, m = torch.empty_like(q), torch.empty(heads, length, device="cuda", dtype=torch.float32)
    scale = 1 / math.sqrt(head_dim)

    def arguments(constexprs: dict) -> tuple:
        rows, keys = constexprs["BLOCK_M"], constexprs["BLOCK_N"]
        flat = {name: t.view(-1, head_dim) for name, t in (("q", q), ("k", k), ("v", v), ("o", o))}
        blocks = {"q": rows, "k": keys, "v": keys, "o": rows}
        made = {f"desc_{n}": TensorDescriptor.from_tensor(t, [blocks[n], head_dim]) for n, t in flat.items()}
        values = {"sm_scale": scale, "M": m, "Z": 1, "H": heads, **made, "N_CTX": length}
        return values, (length // rows, heads, 1)

    def reference() -> list:
        out, lse = [], []
        for head in range(min(heads, 4)):
            score = q[0, head].double() @ k[0, head].double().T * scale
            if causal:
                score.masked_fill_(torch.ones(length, length, device="cuda", dtype=torch.bool).triu(1), -math.inf)
            # The tutorial keeps the logarithm to base 2.
            lse.append(torch.logsumexp(score, 1) / math.log(2))
            out.append(torch.softmax(score, 1) @ v[0, head].double())
        return [torch.stack(out), torch.stack(lse)]

    fixed = {"HEAD_DIM": head_dim, "STAGE": 3 if causal else 1, "warp_specialize": False}
    sizes = itertools.product((64, 128), (64, 128), (4, 8), (2, 3))
    tiles = [
        {**fixed, "BLOCK_M": rows, "BLOCK_N": keys, "num_warps": warps, "num_stages": stages}
        for rows, keys, warps, stages in sizes
        if rows >= keys and (rows, warps) != (64, 8)
    ]
    sdpa = torch.nn.functional.scaled_dot_product_attention
    return Case(
        name,
        tutorial_attention._attn_fwd,
        arguments,
        lambda: [o[0, :4], m[:4]],
        reference,
        {**fixed, "BLOCK_M": 128, "BLOCK_N": 128},
        tiles,
        4 * heads * length * length * head_dim // (2 if causal else 1),
        {"torch": lambda: sdpa(q, k, v, is_causal=causal, scale=scale)},
    )


def fused(name: str, rows: int, columns: int, depth: int, tile: tuple[int, int]) -> Case:
    """A product with bias, GELU and residual."""
    import gemm_bias_gelu

    torch.manual_seed(torch.seed())
    x, w, r = (
        torch.randn(shape, device="cuda", dtype=torch.float16) * size
        for shape, size in (((rows, depth), 1), ((columns, depth), depth**-0.5), ((rows, columns), 1))
    )
    bias = torch.randn(columns, device="cuda")
    y, half = torch.empty_like(r), bias.half()

    def arguments(constexprs: dict) -> tuple:
        m, n, k = (constexprs[key] for key in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
        blocks = {"x": (x, [m, k]), "w": (w, [n, k]), "r": (r, [m, n]), "y": (y, [m, n])}
        made = {f"{key}_desc": TensorDescriptor.from_tensor(*of) for key, of in blocks.items()}
        return {**made, "bias_ptr": bias, "M": rows, "N": columns, "K": depth}, (-(-rows // m) * -(-columns // n),)

    def reference() -> list:
        product = x.double() @ w.double().T + bias.double()
        return [torch.nn.functional.gelu(product) + r.double()]

    def unfused() -> object:
        return torch.nn.functional.gelu(torch.nn.functional.linear(x, w, half)) + r

    sizes = itertools.product(((128, 128), (128, 256), (256, 128)), (64,), (4, 8), (3, 4))
    tiles = [
        {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8, "num_warps": warps, "num_stages": stages}
        for (m, n), k, warps, stages in sizes
        if (m * n, warps) != (32768, 4)
    ]
    ours = {"BLOCK_M": tile[0], "BLOCK_N": tile[1], "BLOCK_K": 64, "GROUP_M": 8}
    flop = 2 * rows * columns * depth
    return Case(name, gemm_bias_gelu.gemm_bias_gelu, arguments, lambda: [y], reference, ours, tiles, flop, {"torch": unfused})


CASES: dict[str, Callable[[], Case]] = {
    "tutorial": lambda: attention("tutorial", 16384, 16, 128, False),
    "tutorial_causal": lambda: attention("tutorial_causal", 16384, 16, 128, True),
    "tutorial_4k": lambda: attention("tutorial_4k", 4096, 32, 128, False),
    "fused_n128": lambda: fused("fused_n128", 8192, 8192, 4096, (128, 128)),
    "fused_n256": lambda: fused("fused_n256", 8192, 8192, 4096, (128, 256)),
    "fused_m256": lambda: fused("fused_m256", 8192, 8192, 4096, (256, 128)),
    # Neither rows nor columns are multiples of the tile.
    "fused_uneven": lambda: fused("fused_uneven", 8000, 4040, 1088, (128, 256)),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}")
    parser.add_argument("--keep", action="store_true", help="write bench/results/jit.md")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the table there")
    parser.add_argument("--revision", default="", help="what was measured, for the table")
    options = parser.parse_args()
    if torch is None:
        parser.error(str(MISSING))
    rows = [measure(CASES[name]()) for name in options.cases or CASES]
    text = table(rows, options.revision)
    print(text)
    if options.keep:
        keep("jit.md", text)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    return 0 if all(row["right"] for row in rows) else 1


def measure(case: Case) -> dict:
    """Errors and times of a case."""
    print(f"{case.name}: stock", file=sys.stderr)
    stock, tile = best_stock(case)
    print(f"{case.name}: twill", file=sys.stderr)
    jitted = twill_gpu.jit(on_failure="error")(case.kernel.fn)
    values, grid = case.arguments(case.constexprs)
    contenders = {
        "stock": stock,
        "twill compile": compiled(case, values, grid),
        "twill_gpu.jit": lambda: jitted[grid](**values, **case.constexprs),
        **case.others,
    }
    wanted = case.reference()
    errors = {name: error(run, case.results(), wanted) for name, run in list(contenders.items())[:3]}
    times = interleaved(list(contenders.values()))
    kernel = contenders["twill_gpu.jit"]()
    return {
        "case": case.name,
        "errors": errors,
        "right": all(each < TOLERANCE for each in errors.values()),
        "times": dict(zip(contenders, times)),
        "flop": case.flop,
        "tile": tile,
        "info": kernel.info,
    }


def compiled(case: Case, values: dict, grid: tuple) -> Callable[[], object]:
    """A launch of the folder that `twill compile` makes of the TTIR."""
    ttir = twill_gpu.jit(case.kernel.fn).warmup(**values, **case.constexprs, grid=grid).ttir
    folder = Path(tempfile.mkdtemp(prefix="twill-bench-"))
    (folder / "kernel.ttir").write_text(ttir, encoding="utf-8")
    words = ["twill", "compile", str(folder / "kernel.ttir"), "--machine", "h200", "-o", str(folder / "kernel")]
    if _twill.run_command([*words, "--python", sys.executable, "--quiet", "--no-cache", "--time-limit", "60"]) != 0:
        raise RuntimeError(f"twill compile fails on {case.name}")
    from twill_gpu.scheduled import load

    kernel = load(folder / "kernel" / "launch.py").load(folder / "kernel")
    named = {name: value for name, value in values.items() if name in {p["name"] for p in kernel._parameters}}
    return lambda: kernel(**named, grid=grid)


def best_stock(case: Case) -> tuple[Callable[[], object], str]:
    """The fastest of stock Triton's tiles that compile, and which it is."""
    found = []
    for tile in case.tiles:
        values, grid = case.arguments({key: value for key, value in tile.items() if not key.startswith("num_")})

        def launch(values=values, grid=grid, tile=tile):
            return case.kernel[grid](**values, **tile)

        try:
            launch()
            torch.cuda.synchronize()
        except Exception:
            # Out of shared memory, or of registers.
            continue
        found.append((statistics.median(timed(launch) for _ in range(3)), len(found), launch, tile))
    _, _, launch, tile = min(found)
    changing = {key for key in tile if len({repr(one.get(key)) for one in case.tiles}) > 1}
    return launch, ", ".join(f"{key} {value}" for key, value in tile.items() if key in changing)


def error(run: Callable, results: list, wanted: list) -> float:
    """The largest error relative to the largest value, from poisoned results."""
    for result in results:
        result.fill_(math.nan)
    run()
    torch.cuda.synchronize()
    worst = [(r.double() - w).abs().max() / w.abs().max() for r, w in zip(results, wanted)]
    return max(math.inf if torch.isnan(one) else one.item() for one in worst)


_flush = None


def timed(run: Callable) -> float:
    """Milliseconds of a launch with a cold L2 cache."""
    global _flush
    if _flush is None:
        _flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    _flush.zero_()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def interleaved(runs: list[Callable]) -> list[float]:
    """Median milliseconds of each."""
    for run in runs:
        run()
    times = [[] for _ in runs]
    for number in range(ROUNDS):
        order = range(len(runs)) if number % 2 == 0 else reversed(range(len(runs)))
        for which in order:
            times[which].append(timed(runs[which]))
    return [statistics.median(each) for each in times]


def table(rows: list[dict], revision: str) -> str:
    names = list(rows[0]["times"])
    lines = [
        "# Through @twill_gpu.jit",
        "",
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Triton {triton.__version__}"
        + (f", revision {revision}" if revision else "")
        + f"; {datetime.date.today()}. TFLOP/s (median of {ROUNDS}, in alternating order); errors are relative to the largest value of a float64 reference.",
        "",
        "| case | " + " | ".join(names) + " | jit / compile | jit / stock | error of jit | I | registers, spills | stock's tile |",
        "|---|" + "--:|" * (len(names) + 5) + "--|---|",
    ]
    for row in rows:
        rate = {name: row["flop"] / time / 1e9 for name, time in row["times"].items()}
        ours, info = rate["twill_gpu.jit"], row["info"]
        cells = [row["case"], *(f"{rate[name]:.0f}" for name in names)]
        cells += [f"{ours / rate['twill compile']:.3f}", f"{ours / rate['stock']:.3f}", f"{row['errors']['twill_gpu.jit']:.1e}"]
        cells += [str(info["ii"]), f"{info['registers']}, {info['spills']}", row["tile"]]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
