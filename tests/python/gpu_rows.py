"""Rows of activation_kills.py that there are on a GPU only: an application without Twill, then with it on a cache of its own."""

import functools
import shutil
import tempfile
from pathlib import Path

from applications import GPU_PROGRAM, run, together

ROWS = {
    "inference": [("torch.inference_mode", "inference", 240)],
    "in_place": [("launches that add to what is there", "in_place", 64)],
    "graphs": [
        ("CUDA graphs, captured before it is settled", "graphs", 40, "before"),
        ("CUDA graphs, captured after", "graphs", 40, "after"),
        ("a first launch into a CUDA graph", "graphs", 40, "only"),
    ],
    "graphs_again": [("CUDA graphs, captured while kernels are made", "graphs_again", 30, 6)],
    "streams": [
        ("four streams with events between them", "streams", 160),
        ("streams of four threads", "streams_of_threads", 80),
    ],
    "autograd": [("autograd's thread", "autograd", 120)],
    "gpus": [("GPUs in turn, and a thread for each", "gpus", 160)],
}
"""Of each name: what happens, the application and its words."""
STEPS = (
    ("nothing in the cache", "1", False),
    ("wait", "wait", False),
    ("settled", "1", False),
    ("not settled", "1", True),
    ("check", "check", False),
)
"""Runs on one cache, one after the other: what they begin with, the mode, and whether all that was settled is forgotten before."""


def row(name, table, asked):
    """All rows of a name."""
    together(*(functools.partial(one, table, *row) for row in ROWS[name]))


def one(table, what, application, *words):
    """One of them."""
    stock = run(application, *words, program=GPU_PROGRAM)
    skipped = [line["skipped"] for line in stock.lines if "skipped" in line]
    if skipped:
        table.no_row(what, f"not run: {skipped[0]}")
        return
    if stock.code is None:
        table.no_row(what, f"stock Triton's own comes to no end: {stock.error[-200:]!r}", wrong=1)
        return
    with tempfile.TemporaryDirectory() as cache:
        runs = []
        for _, mode, forgets in STEPS:
            if forgets:
                shutil.rmtree(Path(cache) / "activation-v1", ignore_errors=True)
            runs.append(run(application, *words, program=GPU_PROGRAM, TWILL=mode, TWILL_CACHE=cache))
    by_step = ", ".join(f"{name}: {ended.twill}" for (name, *_), ended in zip(STEPS, runs))
    table.row(what, stock, runs, f"by Twill, {by_step}")
