"""Configurations of attention and matrix products of the benchmark, and their TTIR."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bench.common import ROOT

BLOCKS = (32, 64, 128, 256)
ROWS = (64, 128, 256)


@dataclass(frozen=True)
class Configuration:
    """A kernel with its tiles, a machine, and options of `twill fit` and `twill compile`."""

    kernel: str
    tiles: tuple[tuple[str, int], ...]
    machine: str
    options: tuple[str, ...]

    @property
    def ttir(self) -> str:
        """The name of its TTIR, which neither machine nor options change."""
        return "-".join([self.kernel, *(f"{name.lower()}{value}" for name, value in self.tiles)])

    @property
    def name(self) -> str:
        return " ".join([self.ttir, self.machine, *self.options])

    @property
    def folder(self) -> str:
        return hashlib.sha256(self.name.encode()).hexdigest()[:16]


def kernels() -> Iterator[Configuration]:
    """Every kernel with every shape of tile, without options."""
    for kernel in ("gemm_tma", "gemm_pointers", "swiglu"):
        for rows, columns, depth in itertools.product(ROWS, BLOCKS, BLOCKS):
            yield Configuration(kernel, (("BLOCK_M", rows), ("BLOCK_N", columns), ("BLOCK_K", depth)), "", ())
    for dim, rows, columns, causal in itertools.product(BLOCKS, ROWS, BLOCKS, (0, 1)):
        tiles = (("HEAD_DIM", dim), ("BLOCK_M", rows), ("BLOCK_N", columns), ("CAUSAL", causal))
        yield Configuration("attention_forward", tiles, "", ())
    for dim, rows, columns in itertools.product(BLOCKS, (32, *ROWS), ROWS):
        yield Configuration("attention_backward", (("HEAD_DIM", dim), ("BLOCK_M", rows), ("BLOCK_N", columns)), "", ())


def ring_bytes(configuration: Configuration, rings: int) -> int:
    """What rings of N slots and tiles outside the loop take, roughly: to choose what is near the limit."""
    tiles = dict(configuration.tiles)
    rows, columns = tiles["BLOCK_M"], tiles["BLOCK_N"]
    if configuration.kernel == "attention_forward":
        return 2 * tiles["HEAD_DIM"] * (2 * columns * rings + rows)
    if configuration.kernel == "attention_backward":
        return 2 * tiles["HEAD_DIM"] * (2 * rows * rings + 2 * columns + 2 * rows) + 4 * rows * columns
    both = 2 if configuration.kernel == "swiglu" else 1
    return 2 * tiles["BLOCK_K"] * (rows + both * columns) * rings + 2 * rows * columns


def chosen(count: int, seed: int, shared_bytes: int) -> list[Configuration]:
    """`count` configurations, the same for the same seed; those near the limit of shared memory come more often."""
    draw = random.Random(seed)
    every = list(kernels())
    found: dict[str, Configuration] = {}
    while len(found) < count:
        kernel = draw.choice(every)
        options: list[str] = []
        rings = draw.choice((None, None, 1, 2, 3, 4, 5, 6, 8))
        if rings:
            options += ["--ring-depth", str(rings)]
        share = ring_bytes(kernel, rings or 1) / shared_bytes
        if draw.random() > (1 if abs(share - 1) < 0.15 else 0.5 if abs(share - 1) < 0.4 else 0.2):
            continue
        if (persistent := draw.choice((None, None, "on", "off"))) is not None:
            options += ["--persistent", persistent]
        if draw.random() < 0.15:
            options += ["--handoff-depth", str(draw.choice((1, 2, 3)))]
        rows = dict(kernel.tiles)["BLOCK_N" if kernel.kernel == "attention_backward" else "BLOCK_M"]
        if draw.random() < 0.25:
            options += ["--sub-tiles", str(draw.choice([n for n in (1, 2, 4) if rows // n >= 64] or [1]))]
        elif rows == 64 and kernel.kernel != "attention_backward" and draw.random() < 0.5:
            options += ["--cta-coarsening", str(draw.choice((2, 3)))]
        if draw.random() < 0.15:
            options += ["--compute-groups", str(draw.choice((1, 2, 3)))]
        if draw.random() < 0.1:
            options += ["--operands-in-registers", draw.choice(("on", "off"))]
        machine = "b200" if draw.random() < 0.1 and kernel.kernel != "attention_backward" else "h200"
        one = replace(kernel, machine=machine, options=tuple(options))
        found.setdefault(one.name, one)
    return list(found.values())


def variant(configuration: Configuration):
    """The kernel with these tiles as examples/print_ttir.py wants it."""
    import print_ttir

    tiles = dict(configuration.tiles)
    known = {
        "gemm_tma": print_ttir.gemm_tma(),
        "gemm_pointers": print_ttir.gemm_pointers(),
        "swiglu": print_ttir.swiglu(),
        "attention_forward": print_ttir.attention_forward("", 128, False),
        "attention_backward": print_ttir.attention_backward("", 128),
    }[configuration.kernel]
    blocks = {
        "gemm_tma": {"a_desc": "MK", "b_desc": "NK", "c_desc": "MN"},
        "swiglu": {"x_desc": "MK", "gate_desc": "NK", "up_desc": "NK", "y_desc": "MN"},
        "attention_forward": {"q_desc": "MD", "k_desc": "ND", "v_desc": "ND", "o_desc": "MD"},
        "attention_backward": {
            **{"q_desc": "MD", "do_desc": "MD", "dq_desc": "MD"},
            **{"k_desc": "ND", "v_desc": "ND", "dk_desc": "ND", "dv_desc": "ND"},
        },
    }.get(configuration.kernel, {})
    extent = {"M": tiles["BLOCK_M"], "N": tiles["BLOCK_N"], "K": tiles.get("BLOCK_K"), "D": tiles.get("HEAD_DIM")}
    arguments = dict(known.arguments)
    for name, (rows, columns) in blocks.items():
        element = "fp32" if name == "dq_desc" else "fp16"
        arguments[name] = print_ttir.tile(extent[rows], extent[columns], element=element)
    constants = {name: bool(value) if name == "CAUSAL" else value for name, value in tiles.items()}
    return replace(known, name=configuration.ttir, arguments=arguments, constants=constants)


def print_all(configurations: list[Configuration], folder: Path) -> dict[str, str]:
    """Writes the TTIR of each that is not there yet; what Triton itself refuses, with its reason."""
    sys.path.insert(0, str(ROOT / "examples"))
    import print_ttir

    known = folder / "refused.json"
    refused: dict[str, str] = json.loads(known.read_text()) if known.exists() else {}
    for configuration in {c.ttir: c for c in configurations}.values():
        path = folder / f"{configuration.ttir}.ttir"
        if path.exists() or configuration.ttir in refused:
            continue
        try:
            path.write_text(print_ttir.print_ttir(variant(configuration)))
        except Exception as error:  # noqa: BLE001  whatever Triton's front end says
            refused[configuration.ttir] = str(error).strip().splitlines()[-1]
            known.write_text(json.dumps(refused))
    return refused
