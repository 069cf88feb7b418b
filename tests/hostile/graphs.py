"""Graphs that are large, deep or extreme, as texts: the input of a hostile or careless program."""

import json
import random
from collections.abc import Callable

GIGA = 1_000_000_000


def _loop(name: str, operations: list[dict], dependences: list[dict], machine: object = "h100") -> str:
    graph = {"format": "twill-graph", "version": 1, "name": name, "machine": machine}
    return json.dumps({**graph, "operations": operations, "dependences": dependences})


def _flow(name: str, operations: list[dict], dependences: list[dict]) -> str:
    graph = {"format": "twill-dataflow", "version": 1, "name": name, "resources": [{"name": "alu", "limit": 8}]}
    return json.dumps({**graph, "operations": operations, "dependences": dependences})


def _operation(name: str, cycles: int = 4, **more: object) -> dict:
    unit = ("fma", "alu", "xu")[sum(name.encode()) % 3]
    return {"name": name, "units": [{"unit": unit, "cycles": cycles}], "result": {"registers": 64}, **more}


def loop(count: int, edges: int = 2, seed: int = 1) -> str:
    """A loop of N operations, each with some that it reads, and a few values carried around."""
    chance = random.Random(seed)
    names = [f"v{index}" for index in range(count)]
    dependences = []
    for index in range(1, count):
        sources = {chance.randrange(max(0, index - 30), index) for _ in range(edges)}
        dependences += [{"from": names[source], "to": names[index]} for source in sorted(sources)]
    carried = range(0, count, max(2, count // 50))
    dependences += [{"from": names[index], "to": names[index], "distance": 1, "value": False} for index in carried]
    return _loop(f"loop{count}", [_operation(name) for name in names], dependences)


def flow(count: int, edges: int = 2, seed: int = 1) -> str:
    """The same without warps."""
    chance = random.Random(seed)
    operations = [
        {"name": f"v{index}", "latency": 1 + index % 4, "uses": [{"resource": "alu"}]} for index in range(count)
    ]
    pairs = ((chance.randrange(max(0, index - 100), index), index) for index in range(1, count) for _ in range(edges))
    return _flow(f"flow{count}", operations, [{"from": f"v{a}", "to": f"v{b}"} for a, b in pairs])


def parallel_loop(count: int) -> str:
    """Two operations, and N dependences between them, each of another distance."""
    dependences = [{"from": "a", "to": "b", "distance": distance, "value": False} for distance in range(count)]
    return _loop("parallel", [_operation("a"), _operation("b")], dependences)


def parallel_flow(count: int) -> str:
    """Two operations, and N dependences between them, all alike."""
    operations = [{"name": name, "uses": [{"resource": "alu"}]} for name in "ab"]
    return _flow("parallel", operations, [{"from": "a", "to": "b"}] * count)


def groups(count: int) -> str:
    """A machine with N compute groups."""
    machine = {
        "name": "wide",
        "units": [{"name": name} for name in ("fma", "alu", "xu")],
        "shared_memory": 1 << 20,
        "registers": {
            "words": 1 << 20, "minimum_per_thread": 24, "maximum_per_thread": 255, "granularity": 8, "reserve_per_thread": 24
        },
        "compute_groups": {"warps": 4, "maximum": count},
    }  # fmt: skip
    chain = [{"from": a, "to": b} for a, b in ("ab", "bc")]
    return _loop("groups", [_operation(name) for name in "abc"], chain, machine)


def slow_operations(cycles: int) -> str:
    """Operations that each take N cycles."""
    chain = [{"from": a, "to": b} for a, b in ("ab", "bc", "cd")]
    return _loop("slow", [_operation(name, cycles) for name in "abcd"], chain)


def late_values(cycles: int) -> str:
    """Results that arrive so late that very many iterations overlap."""
    load = {
        "name": "load", "units": [{"unit": "tma", "cycles": 1}], "latency": cycles, "execution": "asynchronous",
        "issue_width": 1, "result": {"registers": 1}, "variable_latency": True
    }  # fmt: skip
    return _loop("late", [load, _operation("use", 1)], [{"from": "load", "to": "use"}])


def late_ring(cycles: int) -> str:
    """A streaming load whose ring would have to hide N cycles."""
    load = {
        "name": "load", "units": [{"unit": "tma", "cycles": 1}], "execution": "asynchronous", "issue_width": 1,
        "result": {"shared_memory": 1}, "variable_latency": True, "streaming": True, "transfer_latency": cycles
    }  # fmt: skip
    return _loop("ring", [load, _operation("use", 1)], [{"from": "load", "to": "use"}])


def far_values(distance: int) -> str:
    """A value that is read N iterations later."""
    carried = [{"from": "a", "to": "b"}, {"from": "b", "to": "a", "distance": distance}]
    return _loop("far", [_operation("a"), _operation("b")], carried)


def long_names(bytes_each: int) -> str:
    """Names of N bytes."""
    names = [letter * bytes_each for letter in "ab"]
    return _loop("names", [_operation(name) for name in names], [{"from": names[0], "to": names[1]}])


def nested(depth: int) -> str:
    """JSON that is nested so deeply."""
    return '{"format": "twill-graph", "version": 1, "name": "deep", "operations": ' + "[" * depth + "]" * depth + "}"


# Name, what makes the text, and the ending of its file.
CASES: list[tuple[str, Callable[[], str], str]] = [
    ("100 operations with warps", lambda: loop(100), "json"),
    ("500 operations with warps", lambda: loop(500), "json"),
    ("20,000 operations of a loop", lambda: loop(20_000), "json"),
    ("20,000 operations without warps", lambda: flow(20_000), "json"),
    ("100 groups", lambda: groups(100), "json"),
    ("16 groups, the most there may be", lambda: groups(16), "json"),
    ("operations of 10^9 cycles", lambda: slow_operations(GIGA), "json"),
    ("operations of 2^40 cycles", lambda: slow_operations(1 << 40), "json"),
    ("a register value 10^9 cycles late", lambda: late_values(GIGA), "json"),
    ("a ring that hides 10^9 cycles", lambda: late_ring(GIGA), "json"),
    ("a value of 2^20 iterations ago", lambda: far_values(1 << 20), "json"),
    ("10^6 dependences of two operations", lambda: parallel_loop(1_000_000), "json"),
    ("10^6 equal dependences without warps", lambda: parallel_flow(1_000_000), "json"),
    ("names of 10 MB", lambda: long_names(10_000_000), "json"),
    ("JSON nested 10^6 deep", lambda: nested(1_000_000), "json"),
]
