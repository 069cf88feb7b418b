"""Random small problems, as graph files with their machine. A case follows from its seed and number alone.

    python generate.py [--count 300] [--seed 0] [--jobs 2]     says how varied they are (solves each many times)
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from multiprocessing import Pool

UNITS = ("tensor", "xu", "alu")


def generate(seed: int, number: int) -> dict:
    """One case."""
    rng = random.Random(f"{seed}/{number}")
    case = Generator(rng, f"case-{seed}-{number}").file()
    # From numbers of their own: a case is otherwise what it was without sub-tiles and traffic.
    rng = random.Random(f"{seed}/{number}/sub-tiles")
    for op in case["operations"]:
        if rng.random() < 0.7:
            op["sub_tile"] = rng.choice((0, 0, 1, 1, 2, 3))
    rng = random.Random(f"{seed}/{number}/traffic")
    if rng.random() < 0.3:
        case["machine"]["shared_bytes_per_cycle"] = rng.choice((16, 32, 128))
        for op in case["operations"]:
            if rng.random() < 0.5:
                op["traffic"] = {"shared": rng.choice((0, 30, 64, 128, 200)), "global": 64}
    return case


class Generator:
    def __init__(self, rng: random.Random, name: str) -> None:
        self.rng, self.name = rng, name
        self.chance = lambda p: rng.random() < p
        # Each case leans on a few families, or the tightest one would decide them all.
        self.tight = set(rng.sample(("registers", "shared", "tensor", "waiting", "handoff", "width"), 3))
        self.warps = rng.choice((1, 1, 4))
        self.loads = self.chance(0.4)
        # Where every reservation starts with its operation, twill may bisect (docs/model.md).
        self.later = self.chance(0.4)
        self.issue = self.warps == 4 and self.chance(0.4)
        self.units = list(UNITS[: rng.choice((1, 2, 2, 3))])
        self.operations: list[dict] = []
        self.dependences: dict[tuple[str, str, int], dict] = {}

    def file(self) -> dict:
        self._operations()
        self._dependences()
        machine = self._machine()
        reserved = {}
        if self.chance(0.2):
            reserved["shared_memory"] = min(machine["shared_memory"], 32)
        if self.chance(0.2):
            reserved["tensor_memory"] = min(machine["tensor_memory"], 1)
        file = {"format": "twill-graph", "version": 1, "name": self.name, "machine": machine}
        if reserved:
            file["reserved"] = reserved
        return file | {"operations": self.operations, "dependences": list(self.dependences.values())}

    def _operations(self) -> None:
        rng = self.rng
        count = rng.choices((3, 4, 5, 6, 7, 8), (4, 6, 7, 5, 3, 2))[0]
        loads = rng.choice((1, 1, 2)) if self.loads else 0
        loads = min(loads, count - 2)
        stores = 1 if self.loads and count - loads > 2 and self.chance(0.4) else 0
        for k in range(loads):
            self.operations.append(self._load(f"load{k}"))
        for k in range(count - loads - stores):
            self.operations.append(self._compute(f"op{k}"))
        for k in range(stores):
            self.operations.append(self._store(f"store{k}"))

    def _load(self, name: str) -> dict:
        rng = self.rng
        op = {"name": name, "units": [{"unit": "tma", "cycles": rng.randint(1, 2)}], "variable_latency": True}
        if self.chance(0.9):
            op["execution"] = "asynchronous"
        op["issue_width"] = 1 if self.chance(0.99) else 4
        streaming = self.chance(0.8)
        if streaming:
            op["streaming"] = True
            op["transfer_latency"] = rng.randint(0, 9)
            if self.chance(0.95):
                op["result"] = {"shared_memory": rng.choice((64, 128, 192))}
        else:
            op["latency"] = rng.randint(2, 6)
            op["handoff"] = rng.randint(0, 2)
            op["result"] = rng.choice(({"shared_memory": 128}, {"registers": 32 * self.warps}))
        return op

    def _store(self, name: str) -> dict:
        op = {"name": name, "units": [{"unit": "tma", "cycles": 1}], "variable_latency": True, "issue_width": 1}
        if self.chance(0.8):
            op["execution"] = "asynchronous"
            op["latency"] = self.rng.randint(1, 6)
        return op

    def _compute(self, name: str) -> dict:
        rng = self.rng
        op: dict = {"name": name}
        units = []
        for _ in range(rng.choices((0, 1, 2), (1, 8, 2))[0]):
            unit, start = rng.choice(self.units), rng.choices((0, 1, 2), (8, 4, 2))[0] if self.later else 0
            # A unit held twice in one cycle would leave most machines nothing to choose.
            same = [u.get("start", 0) + u["cycles"] for u in units if u["unit"] == unit]
            if same and not self.later:
                continue
            start = max([start, *same])
            units.append({"unit": unit, "cycles": rng.choices((1, 2, 3), (6, 3, 1))[0]})
            if start:
                units[-1]["start"] = start
        if units:
            op["units"] = units
        end = max((u.get("start", 0) + u["cycles"] for u in units), default=0)
        asynchronous = self.chance(0.4 if "waiting" not in self.tight else 0.6)
        if asynchronous:
            op["execution"] = "asynchronous"
        if not units or self.chance(0.15):
            op["cycles"] = end + rng.choices((0, 1, 2), (2, 3, 1))[0]
            end = op["cycles"]
        if self.chance(0.4):
            op["latency"] = rng.choice((max(0, end - 1), end + 1, end + 2, rng.randint(0, 6)))
        tensor = "tensor" in self.tight
        words = 32 * self.warps * rng.choice((1, 1, 2, 4)) - (8 if self.chance(0.1) else 0)
        storage = rng.choices(
            (None, {"registers": words}, {"shared_memory": rng.choice((64, 128))}, {"tensor_memory": rng.randint(1, 3)}),
            (0.5, 6, 2 if "shared" in self.tight else 0.7, 4 if tensor else 0.5),
        )[0]
        if storage and "registers" in storage and self.chance(0.1):
            storage = {"registers": 0}
        if self.warps == 1:
            op["issue_width"] = 1
            if "width" in self.tight and self.chance(0.01):
                op["issue_width"] = 4
        elif self.issue:
            # One warp issues what runs by itself; its results rarely pass through that warp's registers.
            if asynchronous and self.chance(0.7):
                op["issue_width"] = 1
                if storage and "registers" in storage and self.chance(0.7):
                    storage = {"tensor_memory": rng.randint(1, 3)}
        elif self.chance(0.3):
            op["issue_width"] = 1
        if storage:
            op["result"] = storage
        if storage and "registers" in storage:
            handoff = rng.randint(0, 4 if "handoff" in self.tight else 1)
            if handoff:
                op["handoff"] = handoff
        if not self.loads and self.chance(0.03):
            op["variable_latency"] = True
        return op

    def _dependences(self) -> None:
        rng, count = self.rng, len(self.operations)
        for v in range(1, count):
            op = self.operations[v]
            if op.get("streaming"):
                continue
            for u in rng.sample(range(v), min(v, rng.choices((0, 1, 2), (2, 6, 3))[0])):
                self._dependence(u, v, 0)
        for v in range(count):
            # Nobody reads some loads, but most are there to be read.
            op = self.operations[v]
            read = any(d["from"] == op["name"] for d in self.dependences.values())
            if not read and op.get("result") and v + 1 < count and self.chance(0.8):
                self._dependence(v, rng.randrange(v + 1, count), 0)
        for _ in range(rng.choices((0, 1, 2), (3, 5, 2))[0]):
            v = rng.randrange(count)
            u = rng.choice((v, rng.randrange(v, count), rng.randrange(count)))
            self._dependence(u, v, rng.choices((1, 2), (3, 1))[0])

    def _dependence(self, u: int, v: int, distance: int) -> None:
        rng, producer, consumer = self.rng, self.operations[u], self.operations[v]
        key = (producer["name"], consumer["name"], distance)
        if key in self.dependences:
            return
        d: dict = {"from": producer["name"], "to": consumer["name"]}
        if distance:
            d["distance"] = distance
        value = "result" in producer and not consumer.get("streaming")
        if "result" in producer and (not value or self.chance(0.1)):
            d["value"] = value = False
        if self.chance(0.1):
            d["delay"] = rng.randint(0, 6)
        if self.chance(0.25 if "waiting" in self.tight else 0.1):
            d["blocking"] = self.chance(0.5)
        if value and not producer.get("streaming") and self.chance(0.2):
            d["tied"] = True
        elif value and self.chance(0.15):
            d["hold"] = rng.randint(0, 3)
        self.dependences[key] = d

    def _machine(self) -> dict:
        rng, threads = self.rng, 32 * self.warps
        amounts: Counter = Counter()
        for op in self.operations:
            for memory, amount in op.get("result", {}).items():
                amounts[memory] += amount
        units = [{"name": unit} for unit in self.units]
        if any(u["unit"] == "tma" for op in self.operations for u in op.get("units", [])):
            units.append({"name": "tma"})
        for unit in units:
            if self.chance(0.2):
                unit["capacity"] = 2
        largest = {
            memory: max([op["result"].get(memory, 0) for op in self.operations if "result" in op], default=0)
            for memory in ("registers", "shared_memory", "tensor_memory")
        }
        # Room for the largest value and a little, or for plenty.
        bytes_, columns = 4096, 64
        if "shared" in self.tight:
            handoff = 4 * largest["registers"] if self.chance(0.6) else 0
            rings = sum(op["result"]["shared_memory"] for op in self.operations if "streaming" in op and "result" in op)
            low = max(largest["shared_memory"], rings, amounts["shared_memory"] * 2 // 3)
            bytes_ = low + rng.choice((0, 64, 128, 192, 256, 320)) + rng.choice((0, 1, 1, 2)) * handoff
        if "tensor" in self.tight:
            columns = max(largest["tensor_memory"], amounts["tensor_memory"] * 3 // 4) + rng.choice((0, 1, 2))
        groups = rng.choice((1, 2, 2, 3))
        fixed = lambda warps: {
            "warps": warps,
            "allocated_warps": rng.choice((warps, 4)),
            "registers_per_thread": rng.choice((16, 24, 32)),
        }
        reserve = rng.choice((0, 0, 4, 8, 16))
        registers = {
            "words": 65536,
            "minimum_per_thread": rng.choice((8, 8, 16, 24)),
            "maximum_per_thread": 255,
            "granularity": 8,
            "reserve_per_thread": reserve,
        }
        machine: dict = {"name": "small", "units": units, "shared_memory": bytes_, "tensor_memory": columns}
        machine["registers"] = registers
        if self.loads and self.chance(0.9):
            machine["variable_latency_group"] = fixed(1)
        if self.issue:
            machine["issue_group"] = fixed(1)
        machine["compute_groups"] = {"warps": self.warps, "maximum": groups}
        if "registers" in self.tight:
            # Values of the loop in registers a thread of one group.
            largest_need = -(-largest["registers"] // threads) + reserve
            if self.chance(0.5):
                registers["granularity"] = rng.choice((1, 2, 4))
                registers["minimum_per_thread"] = registers["granularity"] * rng.randint(0, 4)
            extra = rng.choice((1, 2, 3, 4, 6))
            if self.chance(0.5):
                registers["maximum_per_thread"] = max(largest_need + extra, registers["minimum_per_thread"], 1)
                for key in ("variable_latency_group", "issue_group"):
                    if key in machine:
                        given = machine[key]["registers_per_thread"]
                        machine[key]["registers_per_thread"] = min(given, registers["maximum_per_thread"])
            if self.chance(0.6):
                paid = sum(
                    32 * machine[key]["allocated_warps"] * machine[key]["registers_per_thread"]
                    for key in ("variable_latency_group", "issue_group")
                    if key in machine
                )
                granule = registers["granularity"]
                least = -(-max(largest_need + extra, registers["minimum_per_thread"]) // granule) * granule
                registers["words"] = paid + threads * (least * rng.choice((1, 1, 2)) + rng.choice((0, 0, granule, 5)))
        return machine


def statistics(arguments: tuple[int, int, int]) -> dict:
    """The parameters of one case."""
    from bounds import recurrence_bound, resource_bound
    from problem import FAMILIES, build
    from search import phase_1, solve

    seed, number, max_interval = arguments
    problem = build(generate(seed, number))
    solution = solve(problem, max_interval=max_interval)
    vector = lambda s: None if s is None else (s.interval, *s.objectives)
    facts: dict = {"number": number, "answer": vector(solution), "decisive": [], "decisive_interval": []}
    bounds = resource_bound(problem), recurrence_bound(problem)
    if solution is None:
        facts["kind"] = "infeasible"
    elif solution.interval > max(bounds):
        facts["kind"] = "above both bounds"
    elif bounds[0] == bounds[1]:
        facts["kind"] = "at ResMII = RecMII"
    else:
        facts["kind"] = "at ResMII" if bounds[0] > bounds[1] else "at RecMII"
    facts["phase 1 shorter"] = solution is not None and phase_1(problem, max_interval)[0] < solution.interval
    facts["later reservations"] = any(r.start > 0 for op in problem.operations for r in op.reservations)
    for family in FAMILIES:
        # Where there is no schedule, whether there is one at the largest interval has to do.
        first = max_interval if solution is None else 1
        other = solve(problem, max_interval=max_interval, drop=frozenset({family}), first_interval=first)
        a, b = vector(solution), vector(other)
        if family == "registers" and a and b:
            a, b = a[:-1], b[:-1]
        if a != b:
            facts["decisive"].append(family)
        if (a and a[0]) != (b and b[0]):
            facts["decisive_interval"].append(family)
    return facts


def main() -> int:
    parser = argparse.ArgumentParser(description="Statistics of the generated problems.")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--max-interval", type=int, default=12)
    arguments = parser.parse_args()
    from problem import FAMILIES

    with Pool(arguments.jobs) as pool:
        work = [(arguments.seed, k, arguments.max_interval) for k in range(arguments.count)]
        facts = pool.map(statistics, work, chunksize=1)
    for title, counts in (
        ("interval", Counter(str(f["answer"] and f["answer"][0]) for f in facts)),
        ("what binds it", Counter(f["kind"] for f in facts)),
        ("stages", Counter(f["answer"][1] for f in facts if f["answer"])),
        ("compute groups", Counter(f["answer"][2] for f in facts if f["answer"])),
        ("handoffs", Counter(f["answer"][3] > 0 for f in facts if f["answer"])),
        ("interval above phase 1's", Counter(f["phase 1 shorter"] for f in facts)),
        ("reservations that start late", Counter(f["later reservations"] for f in facts)),
    ):
        print(f"{title}: " + ", ".join(f"{k}: {n}" for k, n in sorted(counts.items(), key=str)))
    print("answers that change without a family (and how many of them in the interval):")
    for family in FAMILIES:
        both = (sum(family in f[key] for f in facts) for key in ("decisive", "decisive_interval"))
        print("  {}: {} ({})".format(family, *both))
    return 0


if __name__ == "__main__":
    sys.exit(main())
