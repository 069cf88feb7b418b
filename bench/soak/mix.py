"""Calls of a serving loop: our examples of serving and of production's products, at sizes that take 0.02 to 1 ms.

Several calls of a function differ in its grid or in the bits of its sizes, so that it has several contests.
"""

from __future__ import annotations

import functools
import gc
import random
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .application import Application, Request
from .plan import Plan
from .twill import Twill

USUAL = r"^(?!tutorials|.*(window|linear|mamba|int8|any))"
"""The calls of a run of minutes. Others have kernels that are not made by the time that counts, or contests that stay open."""
LONGEST = 3.0
"""Milliseconds that a call may take; a step may make it eight times."""
TIMED = 5

Make = Callable[[], Any]


def calls() -> Iterator[tuple[str, Make]]:
    """All calls by their names; each is made on the GPU when that is asked for."""
    from bench.applications.packages import quantised, serving, tutorials

    # Other libraries take no part.
    serving._working = lambda peers: {}
    for m in (1024, 2048, 4096):
        yield f"quantised.fp8_rows_{m}", functools.partial(quantised._scaled, m, 4096, 4096, True)
    for m in (512, 2048):
        yield f"quantised.fp8_blocks_{m}", functools.partial(quantised._blocks, m, 4096, 4096)
    for m in (128, 256):
        yield f"quantised.w4a16_{m}", functools.partial(quantised._four_bits, m, 4096)
    # One grid and one class of sizes, of different work.
    for name, sizes in (("even", (256,) * 8), ("skewed", (1024, 512, 256, 128, 64, 32, 16, 16))):
        yield f"quantised.grouped_{name}", functools.partial(quantised._grouped, sizes, 2048, 2048)
    yield "quantised.moe_32", functools.partial(quantised._experts, 32, 32, 8, 2048, 768)
    for batch, length in ((8, 4096), (4, 16384)):
        yield f"serving.attention_paged_{batch}x{length}", functools.partial(serving._decode, batch, length)
    for lengths in ((1024, 512, 777), (2048, 300)):
        name = f"serving.attention_varlen_{'_'.join(map(str, lengths))}"
        yield name, functools.partial(serving._prefill, lengths)
    yield "serving.delta_rule_2048", functools.partial(serving.delta_rule, 1, 2048)
    yield "serving.attention_varlen_window", functools.partial(serving._prefill, (1024, 512, 777), 1024, 50.0)
    yield "serving.gated_linear_attention_2048", functools.partial(serving.gated_linear_attention, 1, 2048)
    yield "serving.mamba_chunk_2048", functools.partial(serving.mamba_chunk, 1, 2048, 32)
    yield "quantised.int8_2048", functools.partial(quantised._integers, 2048)
    yield "quantised.fp8_rows_any", any_rows
    # Tuned at their first call.
    for head_dim in (64, 128):
        yield f"tutorials.t06_attention_d{head_dim}_causal", functools.partial(tutorials.attention, True, head_dim)


def any_rows(most: int = 2048, size: int = 4096) -> Callable[[], Sequence[Any]]:
    """Another number of rows at each call, as prompts have: many contests, each with few launches. The first call has them all."""
    from bench.applications.packages import stubs

    module = stubs.example("quantised.gemm_scaled")
    a, b = stubs.float8(most, size, seed=1), stubs.float8(size, size, seed=2)
    s_a, s_b = (stubs.uniform(rows, low=0.5, high=1.5, seed=seed) for rows, seed in ((most, 3), (size, 4)))
    chance, rows = random.Random(0), [most]

    def call() -> Sequence[Any]:
        m = rows.pop()
        rows.append(16 * chance.randint(1, most // 16))
        return [module.gemm(a[:m], b, s_a[:m], s_b)]

    return call


def of_packages(only: str) -> Iterator[tuple[str, Make]]:
    """Calls of `bench.applications` whose packages are among the sources."""
    from bench.applications.__main__ import names
    from bench.applications.worker import find

    for name in names(only):
        yield name, find(name).make


def chosen(plan: Plan) -> Iterator[tuple[str, Make]]:
    """The calls that a plan asks for."""
    ours = dict(calls())
    if plan.sources:
        ours.update((name, make) for name, make in of_packages(plan.only or "$^") if name not in ours)
    return ((name, make) for name, make in ours.items() if re.search(plan.only or USUAL, name))


def beneath(plan: Plan) -> Twill:
    """Twill under what follows."""
    return Twill(plan.jobs)


def begin(plan: Plan, tell: Callable[[dict[str, Any]], None]) -> Application:
    """Makes all calls, with results by stock Triton. What fails or takes too long is left out."""
    import torch

    torch.manual_seed(plan.seed)
    application = Application([], torch.cuda.synchronize, memory)
    for name, make in chosen(plan):
        start, why = time.monotonic(), None
        try:
            request, milliseconds = requested(name, make)
            if milliseconds > LONGEST:
                why = f"it takes {milliseconds:.1f} ms"
            else:
                application.requests.append(request)
        except Exception as error:
            why = f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
        if why is not None:
            application.left_out[name] = why
        tell({"is": "made", "request": name, "left_out": why, "seconds": round(time.monotonic() - start, 1)})
        request = None
        gc.collect()
        torch.cuda.empty_cache()
        if time.monotonic() > plan.until:
            break
    return application


def requested(name: str, make: Make) -> tuple[Request, float]:
    """A call with what its results are compared with, and its time in milliseconds, by stock Triton."""
    import torch
    from twill_gpu.activation import checking

    made = make()
    call = made[0] if isinstance(made, tuple) else made
    stock = [one.clone() for one in call()]
    varies = [difference(one, other) for one, other in zip(call(), stock)]
    floats = [one for one in stock if one.is_floating_point()]
    allowed = [max(checking.allowed([one, *floats]), 4 * own) for one, own in zip(stock, varies)]
    times = []
    for _ in range(TIMED):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)

    def check(results: Sequence[Any]) -> tuple[float, float]:
        pairs = [(difference(ours, other), most) for ours, other, most in zip(results, stock, allowed)]
        # The one that is the farthest beyond what it may be; one that is no number is farther than any.
        return max(pairs, key=lambda pair: (pair[0] != pair[0], pair[0] - pair[1]))

    return Request(name, call, check), statistics.median(times) * 1e3


def difference(ours: Any, stock: Any) -> float:
    """The largest one, by the largest value; of the rows that ours has."""
    from bench.applications import worker

    return worker.difference(ours, stock[: len(ours)] if ours.dim() else stock)


def memory() -> dict[str, float]:
    """KiB of the GPU that are in use, by all, and those that torch has given away."""
    import torch

    free, total = torch.cuda.mem_get_info()
    return {"gpu": (total - free) / 1024, "torch": torch.cuda.memory_allocated() / 1024}
