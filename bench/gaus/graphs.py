"""Graphs of the scheduling benchmarks, read from the files alone; nothing here comes from the program under test.

| folder | format | what it means |
|---|---|---|
| `express` | Graphviz dot | `mul` and `div` hold a multiplier for 2 steps, all else an ALU for 1 |
| `epfl` | BLIF | primary inputs and gates hold a gate for 1 step |
| `gs_random` | GML | a node takes its `parameter` of memory; an edge with a `parameter` above 0 is weighted |
| `hatschet` | GraphML with a resource model next to it | t_u + latency + delay <= t_v + distance * II; limited resources |
"""

import functools
import re
import xml.etree.ElementTree as xml
from collections import deque
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Graph:
    """Operations in the order of the file."""

    name: str
    names: list[str]
    latency: list[int]
    # What its value takes while it is live.
    storage: list[int]
    # (resource, steps, amount) from the start on.
    uses: list[list[tuple[str, int, int]]]
    # (from, to, delay, distance, communication)
    edges: list[tuple[int, int, int, int, int]]
    # How many of a resource there are in a step; others are not limited.
    limit: dict[str, int]

    def __len__(self) -> int:
        return len(self.names)

    @functools.cached_property
    def order(self) -> list[int]:
        """Operations, each after those it waits for in its iteration."""
        missing = [0] * len(self)
        for _, v, _, distance, _ in self.edges:
            missing[v] += distance == 0
        ready = deque(v for v, count in enumerate(missing) if count == 0)
        order = []
        while ready:
            u = ready.popleft()
            order.append(u)
            for v, _ in self.leaving[u]:
                missing[v] -= 1
                if missing[v] == 0:
                    ready.append(v)
        return order

    @functools.cached_property
    def leaving(self) -> list[list[tuple[int, int]]]:
        """(to, delay) within an iteration."""
        leaving: list[list[tuple[int, int]]] = [[] for _ in self.names]
        for u, v, delay, distance, _ in self.edges:
            if distance == 0:
                leaving[u].append((v, delay))
        return leaving

    @functools.cached_property
    def earliest(self) -> list[int]:
        earliest = [0] * len(self)
        for u in self.order:
            for v, delay in self.leaving[u]:
                earliest[v] = max(earliest[v], earliest[u] + delay)
        return earliest

    @property
    def critical_path(self) -> int:
        return max(start + latency for start, latency in zip(self.earliest, self.latency, strict=True))

    def latest(self, bound: int) -> list[int]:
        latest = [bound - latency for latency in self.latency]
        for u in reversed(self.order):
            for v, delay in self.leaving[u]:
                latest[u] = min(latest[u], latest[v] - delay)
        return latest


@functools.cache
def read(file: Path, chaining: bool = False) -> Graph:
    """`chaining` lets a consumer start in its producer's step; only BLIF and GML have such a reading."""
    readers = {".dot": read_dot, ".blif": read_blif, ".gml": read_gml, ".graphml": read_graphml}
    graph = readers[file.suffix](file)
    if not chaining:
        return graph
    edges = [(u, v, 0, distance, weight) for u, v, _, distance, weight in graph.edges]
    return Graph(graph.name, graph.names, graph.latency, graph.storage, graph.uses, edges, graph.limit)


def read_dot(file: Path) -> Graph:
    text = file.read_text(encoding="utf-8").partition("{")[2]
    kinds, edges = {}, []
    for statement in re.sub(r"//.*", "", text).split(";"):
        if edge := re.match(r"\s*(\w+)\s*->\s*(\w+)", statement):
            edges.append(edge.groups())
        elif node := re.match(r"\s*(\w+)\s*\[[^\]]*?label\s*=\s*\"?(\w+)", statement):
            kinds[node[1]] = node[2].lower()
    index = {name: v for v, name in enumerate(kinds)}
    steps = [2 if kind in ("mul", "div") else 1 for kind in kinds.values()]
    uses = [[("multiplier" if held == 2 else "alu", held, 1)] for held in steps]
    edges = [(index[u], index[v], steps[index[u]], 0, 1) for u, v in edges]
    return Graph(file.stem, list(index), steps, [1] * len(index), uses, edges, {})


def read_blif(file: Path) -> Graph:
    text = re.sub(r"#.*", "", file.read_text(encoding="utf-8")).replace("\\\n", " ")
    index: dict[str, int] = {}
    reads = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == [".inputs"]:
            for name in words[1:]:
                index[name] = len(index)
        elif words[:1] == [".names"]:
            index[words[-1]] = len(index)
            reads += [(name, words[-1]) for name in words[1:-1]]
    count = len(index)
    edges = [(index[u], index[v], 1, 0, 1) for u, v in reads]
    return Graph(file.stem, list(index), [1] * count, [1] * count, [[("gate", 1, 1)]] * count, edges, {})


def read_gml(file: Path) -> Graph:
    index, names, weights, edges = {}, [], [], []
    text = file.read_text(encoding="utf-8")
    for kind, body in re.findall(r"\b(node|edge)\s*\[([^\]]*)\]", text):
        values = {key: quoted or plain for key, quoted, plain in re.findall(r'(\w+)\s+(?:"([^"]*)"|(\S+))', body)}
        if kind == "node":
            index[values["id"]] = len(names)
            names.append(values.get("label", values["id"]))
            weights.append(int(values.get("parameter", 0)))
        else:
            weighted = int(int(values.get("parameter", 0)) > 0)
            edges.append((index[values["source"]], index[values["target"]], 1, 0, weighted))
    uses = [[("memory", 1, weight)] if weight else [] for weight in weights]
    return Graph(file.stem, names, [1] * len(names), weights, uses, edges, {})


def read_graphml(file: Path) -> Graph:
    model = xml.parse(file.with_name(file.stem + "_RM.xml")).getroot()
    resources = {resource.get("name"): resource for resource in model.iter("Resource")}
    number = lambda name, what: int(resources[name].get(what))
    limit = {name: number(name, "limit") for name in resources if number(name, "limit") > 0}
    root, space = xml.parse(file).getroot(), "{http://graphml.graphdrawing.org/xmlns}"
    data = lambda element: {d.get("key"): d.text for d in element.iter(space + "data")}
    nodes = list(root.iter(space + "node"))
    index = {node.get("id"): v for v, node in enumerate(nodes)}
    kinds = [data(node)["uses_resource"] for node in nodes]
    latency = [number(kind, "latency") for kind in kinds]
    uses = [[(kind, number(kind, "blockingTime"), 1)] if kind in limit else [] for kind in kinds]
    edges = []
    for edge in root.iter(space + "edge"):
        u, values = index[edge.get("source")], data(edge)
        delay = latency[u] + int(values["delay"])
        edges.append((u, index[edge.get("target")], delay, int(values["distance"]), 1))
    name = f"{file.parent.name}/{file.stem}"
    return Graph(name, list(index), latency, [1] * len(index), uses, edges, limit)
