"""A call captured into a CUDA graph, as servers do it: by stock Triton, and by what Twill has settled."""

from __future__ import annotations

import collections
import statistics
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from .case import Call

REPLAYS = 30
"""Timed replays of each side; the median counts."""


def captured(call: Call, stock: Callable[[], AbstractContextManager[None]], activation: Any) -> dict[str, Any]:
    """Times of replays on both sides, and whose kernels Twill's graph has; an error where a call cannot be captured."""
    try:
        with stock():
            by_stock, expected = graph_of(call)
        before = launches(activation)
        by_twill, results = graph_of(call)
        sides = launches(activation) - before
        times = milliseconds([by_stock, by_twill])
        return {
            "stock_ms": round(times[0], 4),
            "twill_ms": round(times[1], 4),
            "launches": dict(sides),
            "difference": max(map(difference, results, expected), default=0.0),
        }
    except Exception as error:
        # A capture that failed ends with the block; the calls after it are as before.
        return {"error": f"{type(error).__name__}: {error}"[:200]}


def launches(activation: Any) -> collections.Counter[str]:
    """Launches in graphs so far, of kernels with an MMA in a loop: whose kernel each is."""
    from .worker import of_mma

    total: collections.Counter[str] = collections.Counter()
    for _, found in of_mma(activation):
        total.update({str(side): count for side, count in found.captured.items()})
    return total


def graph_of(call: Call) -> tuple[Any, Sequence[Any]]:
    """The graph of a call, and the results that its replays write."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = call()
    graph.replay()
    torch.cuda.synchronize()
    return graph, [one.clone() for one in results]


def milliseconds(graphs: Sequence[Any]) -> list[float]:
    """The median time of a replay of each; they take turns."""
    import torch

    times: list[list[float]] = [[] for _ in graphs]
    for _ in range(REPLAYS + 1):
        for graph, own in zip(graphs, times):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda._sleep(200_000)
            start.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            own.append(start.elapsed_time(end))
    return [statistics.median(own[1:]) for own in times]


def difference(ours: Any, stock: Any) -> float:
    """The largest difference, as `worker.difference`, short."""
    from .worker import difference as of

    return float(f"{of(ours, stock):.3g}")
