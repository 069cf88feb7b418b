"""Loop graphs made by hand (docs/formats.md, "A graph")."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _twill
from .backend import question


class Graph:
    """One innermost loop: tile operations, and what depends on what.

        graph = Graph("scaled-gemm", machine="h100")
        graph.load("A", {"tma": 64}, shared_memory=8192, transfer_latency=650)
        graph.operation("C", {"tensor": 256}, execution="asynchronous", result={"registers": 8192})
        graph.dependence("A", "C")

    Times are in cycles, registers in 32-bit words of the whole tile, shared memory in bytes, tensor memory in columns.
    What is wrong with it is said when it is used, as `InputError`.
    """

    def __init__(
        self, name: str, machine: str | None = None, *, shared_memory: int = 0, tensor_memory: int = 0, description: str = ""
    ):
        """`shared_memory` and `tensor_memory` are kept during the whole loop by code around it."""
        self._file: dict[str, Any] = {"format": "twill-graph", "version": 1, "name": name, "description": description}
        if machine is not None:
            self._file["machine"] = machine
        self._file["reserved"] = {"shared_memory": shared_memory, "tensor_memory": tensor_memory}
        self._file |= {"operations": [], "dependences": []}

    @classmethod
    def from_json(cls, text: str) -> Graph:
        """A graph of the text of its file."""
        _twill.lower(question("graph", "graph", text, _machine_needed(text), {}))
        graph = cls.__new__(cls)
        graph._file = json.loads(text)
        return graph

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Graph:
        """A graph of its file."""
        return cls.from_json(Path(path).read_text(encoding="utf-8"))

    @property
    def name(self) -> str:
        """The name of the loop."""
        return str(self._file["name"])

    def operation(
        self, name: str, units: Mapping[str, int] | Sequence[Mapping[str, object]] = (), **fields: object
    ) -> Graph:
        """Adds a tile operation; gives back the graph.

        units: for how many cycles it holds each functional unit, from its issue on; or entries with `unit`, `start`, `cycles`.
        fields: those of the graph format, such as `execution="asynchronous"`, `result={"registers": 2048}`, `latency=33`.
        """
        if isinstance(units, Mapping):
            units = [{"unit": unit, "cycles": cycles} for unit, cycles in units.items()]
        self._file["operations"].append({"name": name, "units": list(units), **fields})
        return self

    def load(
        self, name: str, units: Mapping[str, int], *, shared_memory: int, transfer_latency: int, **fields: object
    ) -> Graph:
        """Adds a load that runs ahead of the loop through a ring buffer of slots of this many bytes."""
        usual = {"kind": "load", "execution": "asynchronous", "issue_width": 1, "variable_latency": True, "streaming": True}
        fields = {**usual, "result": {"shared_memory": shared_memory}, "transfer_latency": transfer_latency, **fields}
        return self.operation(name, units, **fields)

    def dependence(self, from_: str, to: str, distance: int = 0, **fields: object) -> Graph:
        """Adds a dependence over this many iterations; gives back the graph."""
        self._file["dependences"].append({"from": from_, "to": to, "distance": distance, **fields})
        return self

    def to_json(self) -> str:
        """Its file."""
        return json.dumps(self._file, indent=2, ensure_ascii=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes its file."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    def __repr__(self) -> str:
        operations, dependences = len(self._file["operations"]), len(self._file["dependences"])
        return f"Graph({self.name!r}, {operations} operations, {dependences} dependences)"


def _machine_needed(text: str) -> str | None:
    """A machine for a graph that names none: reading needs one, whichever it is."""
    try:
        return None if "machine" in json.loads(text) else "h200"
    except ValueError:
        return None
