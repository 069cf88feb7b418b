"""What a schedule costs and whether it is legal, from the graph and the start steps alone."""

from dataclasses import dataclass

from bench.gaus.graphs import Graph


class Broken(Exception):
    """The schedule breaks a rule, or is not worth what was said."""


@dataclass(frozen=True)
class Measured:
    """The quantities that objectives are made of."""

    latency: int
    peaks: dict[str, int]
    storage: int
    communication: int

    def score(self, kind: str, weights: tuple[int, int]) -> int:
        if kind == "resources":
            return weights[0] * sum(self.peaks.values()) + weights[1] * self.communication
        return self.storage if kind == "storage" else self.latency


def peak(spans: list[tuple[int, int, int]], interval: int | None) -> int:
    """Greatest sum of amounts in a step, of spans (start, steps, amount); modulo the interval, if there is one."""
    always, change = 0, {}
    for start, steps, amount in spans:
        if interval:
            always += steps // interval * amount
            start, steps = start % interval, steps % interval
            if (over := start + steps - interval) > 0:
                change[0] = change.get(0, 0) + amount
                change[over] = change.get(over, 0) - amount
                steps -= over
        if steps > 0:
            change[start] = change.get(start, 0) + amount
            change[start + steps] = change.get(start + steps, 0) - amount
    now = greatest = 0
    for step in sorted(change):
        now += change[step]
        greatest = max(greatest, now)
    return always + greatest


def measure(graph: Graph, steps: list[int], interval: int | None = None) -> Measured:
    last, communication = list(steps), 0
    for u, v, _, distance, weight in graph.edges:
        if distance == 0 or interval:
            read = steps[v] + distance * (interval or 0)
            last[u] = max(last[u], read)
            communication += weight * (read - steps[u])
    spans: dict[str, list] = {}
    for start, uses in zip(steps, graph.uses, strict=True):
        for resource, held, amount in uses:
            spans.setdefault(resource, []).append((start, held, amount))
    values = [(start, end - start, size) for start, end, size in zip(steps, last, graph.storage, strict=True)]
    return Measured(
        latency=max(start + latency for start, latency in zip(steps, graph.latency, strict=True)),
        peaks={resource: peak(held, interval) for resource, held in spans.items()},
        storage=peak(values, interval),
        communication=communication,
    )


def check(graph: Graph, steps: list[int], latency: int | None = None, interval: int | None = None) -> Measured:
    """The schedule's costs, if it keeps dependences, latency bound and limits."""
    if len(steps) != len(graph) or min(steps) < 0:
        raise Broken(f"{len(steps)} steps, the first at {min(steps, default=None)}, for {len(graph)} operations")
    for u, v, delay, distance, _ in graph.edges:
        if (distance == 0 or interval) and steps[u] + delay > steps[v] + distance * (interval or 0):
            names, between = graph.names, f"{steps[u]} + {delay} > {steps[v]} + {distance} * {interval}"
            raise Broken(f"`{names[v]}` does not wait for `{names[u]}`: {between}")
    measured = measure(graph, steps, interval)
    if latency is not None and measured.latency > latency:
        raise Broken(f"it takes {measured.latency} steps, the bound is {latency}")
    for resource, limit in graph.limit.items():
        if measured.peaks.get(resource, 0) > limit:
            raise Broken(f"{measured.peaks[resource]} of `{resource}` in a step, there are {limit}")
    return measured
