"""Stock Triton's compiler with other numbers of stages and warps than the author of a kernel chose.

`num_stages` and `num_warps` are options of the passes that follow the TTIR, as in `triton.Config`; the TTIR stays as it is. What
a configuration gains is for a contest to say: authors choose one for all sizes and GPUs, and often for an older GPU.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ..contest import Side
from .stock import Launches

STAGES = range(1, 6)
"""More rarely fit into the shared memory of a multiprocessor."""
WARPS = range(1, 9)
"""An MMA's accumulators leave few registers for more."""
USUAL_STAGES = 3
"""Triton's default."""
NEEDED = (".json", ".cubin")
"""What a launch needs of all that Triton's cache has of a kernel."""


LOADED: list[Any] = []
"""What was loaded stays so, as CUDA graphs may have it: Triton unloads what nobody has, from 3.8 on."""
_LOOP = re.compile(r"\bscf\.(for|while)\b")
_LOAD = re.compile(r"\btt\.(load|descriptor_load|descriptor_gather)\b")
_STORE = re.compile(r"\btt\.(store|atomic_\w+|descriptor_store|descriptor_reduce|descriptor_scatter)\b")


class Configuration(NamedTuple):
    """What passes after the TTIR are told."""

    num_warps: int
    num_stages: int

    @property
    def side(self) -> Side:
        """Its name in a contest."""
        return Side(f"num_warps={self.num_warps}, num_stages={self.num_stages}")


class Compiled(NamedTuple):
    """What stock Triton made of a kernel, as its author has it."""

    source: Any
    """What its launcher is made from: `CompiledKernel.src`; None where only machine code is known."""
    options: dict[str, Any]
    """The metadata that Triton keeps of it, with all options of its passes."""
    spills: int
    """Registers of a thread that are in memory."""

    @property
    def own(self) -> Configuration:
        """Its author's configuration."""
        return Configuration(int(self.options["num_warps"]), int(self.options["num_stages"]))


def of_kernel(kernel: Any) -> Compiled:
    """What there is to know of a `CompiledKernel`."""
    # As Triton writes it: its target is an object.
    options = json.loads(json.dumps(kernel.metadata._asdict(), default=vars))
    return Compiled(kernel.src, options, getattr(kernel, "n_spills", None) or 0)


def candidates(own: Configuration, ttir: str) -> list[Configuration]:
    """Those worth a trial beside the author's own: other stages; half and twice the warps, with its stages and the usual ones.

    Inline assembly may count threads, which the author knows. Where a loop stores, more stages would load before what an earlier
    iteration stores, if that is the same memory.
    """
    stores = _loads_and_stores(ttir)
    keeps_warps = stores or "tt.elementwise_inline_asm" in ttir
    warps = [] if keeps_warps else [one for one in (own.num_warps * 2, own.num_warps // 2) if one in WARPS]
    stages = sorted({own.num_stages, USUAL_STAGES})
    others = [Configuration(own.num_warps, one) for one in STAGES if one < own.num_stages or not stores]
    others += [Configuration(w, s) for w in warps for s in stages]
    return [one for one in others if one != own]


def _loads_and_stores(ttir: str) -> bool:
    """Whether an innermost loop, which are those that Triton pipelines, has loads and stores."""
    depth = 0
    loops: list[tuple[int, set[str]]] = []
    """Of each loop around a line: where it begins, and what was seen in it."""
    for line in ttir.splitlines():
        if _LOOP.search(line) and line.count("{") > line.count("}"):
            for _, seen in loops:
                seen.add("loop")
            loops.append((depth, set()))
        if loops:
            loops[-1][1].update(kind for kind, found in (("load", _LOAD), ("store", _STORE)) if found.search(line))
        depth += line.count("{") - line.count("}")
        while loops and depth <= loops[-1][0]:
            _, seen = loops.pop()
            if seen >= {"load", "store"} and "loop" not in seen:
                return True
    return False


def compile_all(ttir: str, compiled: dict[str, Any]) -> list[dict[str, Any]]:
    """Compiles all candidates into Triton's cache, in a background process; what `Made` needs of each.

    Those that do not compile are left out, and those whose machine code is that of an earlier one, or the author's.
    """
    from triton.backends.compiler import GPUTarget
    from triton.compiler import compile as compile_triton

    target, own = GPUTarget(**compiled["target"]), Compiled(None, compiled, 0).own
    # Options of Triton's passes are hashed.
    options = {name: _frozen(value) for name, value in compiled.items()}
    seen: set[bytes] = set()
    made = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.ttir")
        path.write_text(ttir, encoding="utf-8")
        for one in [own, *candidates(own, ttir)]:
            try:
                kernel = compile_triton(str(path), target=target, options={**options, **one._asdict()})
            except Exception as error:
                # The author's own did compile.
                if one == own or isinstance(error, (OSError, MemoryError)):
                    raise
                continue
            if kernel.kernel in seen:
                continue
            seen.add(kernel.kernel)
            if one != own:
                files = {name: str(file) for name, file in kernel.metadata_group.items() if name.endswith(NEEDED)}
                signature = {str(number): kind for number, kind in kernel.src.signature.items()}
                made.append({"configuration": list(one), "hash": kernel.hash, "files": files, "signature": signature})
    return made


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


class _Signature(NamedTuple):
    """What a launcher is made from where nothing but the TTIR is known: its parameters are all that is passed."""

    signature: dict[int, str]
    constants: dict[Any, Any]


class Made:
    """What stock Triton compiled for a configuration; on the GPU from its first launch on.

    source: what its launcher is made from; where that is None, a launch passes `passed` arguments, all of them the TTIR's.
    """

    def __init__(self, made: dict[str, Any], source: Any, passed: int | None):
        self._made, self._source, self._passed = made, source, passed
        self.side = Configuration(*made["configuration"]).side
        self.kernel: Any = None
        """The `CompiledKernel` once it is on the GPU."""
        self.direct: tuple[Any, Any, Any, Any] | None = None
        """Then what launches it: `Launches.direct`."""

    def load(self, launches: Launches) -> int:
        """Loads it on the GPU in use; the registers of a thread that are in memory. Raises what Triton raises if it does not fit."""
        from triton.compiler.compiler import CompiledKernel

        source = self._source
        if source is None:
            signature = {int(number): kind for number, kind in self._made["signature"].items()}
            if not _is_plain(signature, self._passed):
                raise ValueError("its launcher is not known")
            source = _Signature(signature, {})
        files = {name: Path(file) for name, file in self._made["files"].items()}
        kernel: Any = CompiledKernel(source, files, self._made["hash"])
        # That loads it.
        kernel.run  # noqa: B018
        LOADED.append(kernel)
        self.kernel, self.direct = kernel, launches.direct(kernel)
        return getattr(kernel, "n_spills", None) or 0


def made_of(made: Iterable[dict[str, Any]], source: Any, passed: int | None) -> dict[Side, Made]:
    """What `compile_all` compiled, by its name in contests."""
    return {one.side: one for one in (Made(each, source, passed) for each in made)}


def _is_plain(signature: dict[int, str], passed: int | None) -> bool:
    """Whether a launch can pass its arguments as they are: numbers and addresses, no descriptors."""
    return len(signature) == passed and all(re.fullmatch(r"\*?\w+", kind) for kind in signature.values())


def are_there(made: Iterable[dict[str, Any]]) -> bool:
    """Whether Triton's cache has all that was compiled."""
    return all(os.path.exists(file) for one in made for file in one["files"].values())
