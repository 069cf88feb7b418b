"""Traces in Perfetto's own trace processor: its queries agree with the schedule (`--format json`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from processor import TraceProcessor

ROOT = HERE.parents[1]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
BUILT = [TARGET / profile / "twill" for profile in ("release", "debug")]
TWILL = max((path for path in BUILT if path.is_file()), key=lambda path: path.stat().st_mtime, default=None)

# A query about an argument of a slice.
ARGUMENT = "EXTRACT_ARG(s.arg_set_id, 'debug.{0}') AS a_{0}"
ITERATIONS = 5


def setUpModule() -> None:
    if TWILL is None:
        raise FileNotFoundError("there is no twill to test: cargo build --release")


def twill(*arguments: str) -> bytes:
    command = [str(TWILL), *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout


def arguments(*names: str) -> str:
    return ", ".join(ARGUMENT.format(name) for name in names)


def schedule(kernel: str) -> list[str]:
    """The command for a kernel, given by its name and options."""
    name, *options = kernel.split()
    return ["schedule", f"examples/{name}.ttir", *options, "--quiet"]


@lru_cache
def loops(kernel: str) -> list[dict]:
    """The schedules of a kernel's loops."""
    text = json.loads(twill(*schedule(kernel), "--format", "json"))
    return text.get("loops", [text]) if isinstance(text, dict) else text


@lru_cache
def trace(kernel: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.pftrace"
        twill(*schedule(kernel), "--format", "perfetto", "--iterations", str(ITERATIONS), "-o", str(file))
        return file.read_bytes()


class Loop:
    """A schedule's own figures, computed here from its JSON alone."""

    def __init__(self, file: dict, begin: int) -> None:
        self.file, self.begin = file, begin
        self.graph, self.options = file["problem"]["graph"], file["problem"]["options"]
        self.interval = file["initiation_interval"]
        self.operations = {op["name"]: op for op in self.graph["operations"]}
        self.placed = {op["name"]: op for op in file["operations"]}
        self.end = begin + max(
            (ITERATIONS - 1) * self.interval + max(file["length"], self.placed[name]["cycle"] + self.cycles(name))
            for name in self.operations
        )

    def synchronous(self, name: str) -> bool:
        return self.operations[name].get("execution", "synchronous") == "synchronous"

    def cycles(self, name: str) -> int:
        """From the issue until the warps are free, or until the result is there."""
        op = self.operations[name]
        return max(1, op["cycles"]) if self.synchronous(name) else max(1, op["cycles"], op["latency"])

    def at(self, name: str, iteration: int) -> int:
        return self.begin + self.placed[name]["cycle"] + iteration * self.interval

    def dependences(self) -> list[tuple[dict, int, int]]:
        """With the iterations of both ends."""
        found = []
        for d in self.graph["dependences"]:
            distance = d.get("distance", 0)
            found += [(d, to - distance, to) for to in range(distance, ITERATIONS)]
        return found

    def foreign(self, d: dict) -> bool:
        return self.placed[d["from"]]["group"] != self.placed[d["to"]]["group"]

    def lives(self, place: str, group: int | None = None) -> list[tuple[int, int, int]]:
        """Values of one iteration in the steady state, from which cycle to which, and how much (docs/model.md)."""
        lives = []
        for name, op in self.operations.items():
            result, start = op.get("result") or {}, self.placed[name]["cycle"]
            uses = [d for d in self.graph["dependences"] if d["from"] == name and d["value"]]
            read = [(d, self.placed[d["to"]]["cycle"] + d.get("distance", 0) * self.interval) for d in uses]
            here = group is None or self.placed[name]["group"] == group
            if read and here and place in result and not (place == "shared_memory" and op.get("streaming")):
                lives.append((start, max(at + d.get("hold", 0) for d, at in read), result[place]))
            handed = [
                at + max(self.operations[d["to"]][key] for key in ("cycles", "latency"))
                for d, at in read
                if self.foreign(d)
            ]
            if place == "shared_memory" and "registers" in result and handed:
                lives.append((start, max(handed), 4 * result["registers"]))
            for d, _ in read:
                reader = self.operations[d["to"]]
                copied = (
                    place in result and place == "registers" and self.options["consumer_registers"] and self.foreign(d)
                )
                if copied and self.placed[d["to"]]["group"] == group and not reader.get("variable_latency"):
                    at = self.placed[d["to"]]["cycle"]
                    lives.append((at, at + max(1, reader["cycles"]), result["registers"]))
        return [life for life in lives if life[0] < life[1]]

    def live(self, place: str, slot: int, group: int | None = None) -> int:
        """How much is live in a slot of the steady state."""
        return sum(
            amount * ((end - 1 - slot) // self.interval - (start - 1 - slot) // self.interval)
            for start, end, amount in self.lives(place, group)
        )

    def counters(self) -> dict[str, str]:
        """Names and units."""
        names = {
            "shared memory": "bytes",
            **{f"group {group['id']}: registers": "registers" for group in self.file["groups"]},
        }
        return names | ({"tensor memory": "columns"} if self.file["problem"]["resources"].get("tensor_memory") else {})

    def counted(self, counter: str) -> dict[int, int]:
        """The values of a counter in slots of the steady state: in all in which it changes, and in those before them."""
        group = next((g for g in self.file["groups"] if counter == f"group {g['id']}: registers"), None)
        place, number = ("registers", group["id"]) if group else (counter.replace(" ", "_"), None)
        always = self.graph.get("reserved", {}).get(place, 0)
        if place == "shared_memory":
            always += sum(ring["bytes"] * ring["depth"] for ring in self.file["rings"])
        changes = {0} | {life[end] % self.interval for life in self.lives(place, number) for end in (0, 1)}
        slots = changes | {slot - 1 for slot in changes if slot}
        share = 32 * group["warps"] if group else 1
        return {slot: -(-(always + self.live(place, slot, number)) // share) for slot in slots}


def laid_out(kernel: str) -> list[Loop]:
    """The loops of a trace, each beginning where the one before ends."""
    found: list[Loop] = []
    for file in loops(kernel):
        found.append(Loop(file, found[-1].end if found else 0))
    return found


class PerfettoTest(unittest.TestCase):
    """Kernels with one loop and with two, and one that uses tensor memory."""

    kernels = ("attention_forward", "attention_forward_causal", "gemm_tma", "attention_forward_m256 --machine b200")

    loaded: ClassVar[dict[str, tuple[list[Loop], TraceProcessor]]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.loaded = {kernel: (laid_out(kernel), TraceProcessor(trace(kernel))) for kernel in cls.kernels}

    @classmethod
    def tearDownClass(cls) -> None:
        for _, processor in cls.loaded.values():
            processor.close()

    def each(self, check: Callable[[list[Loop], TraceProcessor], None]) -> None:
        for kernel, (found, processor) in self.loaded.items():
            with self.subTest(kernel):
                check(found, processor)

    def test_nothing_is_dropped(self):
        def check(_: list[Loop], processor: TraceProcessor) -> None:
            bad = processor.query(
                "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
            )
            self.assertEqual(bad, [])
            self.assertEqual(processor.query("SELECT COUNT() AS count FROM slice WHERE dur < 0")[0]["count"], 0)

        self.each(check)

    def test_operations_are_those_of_the_schedule(self):
        names = arguments("operation", "iteration", "stage", "cycle", "group", "loop")

        def check(found: list[Loop], processor: TraceProcessor) -> None:
            rows = processor.query(
                f"SELECT s.ts, s.dur, t.name AS track, p.name AS parent, {names} "
                "FROM slice s JOIN track t ON s.track_id = t.id "
                "LEFT JOIN track p ON t.parent_id = p.id WHERE s.category = 'operation'"
            )
            shown = Counter()
            for row in rows:
                of_group = row["track"] if row["track"] != "in flight" else row["parent"]
                self.assertTrue(of_group.startswith(f"group {row['a_group']}: "), row)
                keys = ("a_loop", "a_operation", "a_iteration", "ts", "dur", "a_stage", "a_cycle", "a_group")
                shown[tuple(row[key] for key in keys) + (row["track"] != "in flight",)] += 1
            expected = Counter()
            for loop in found:
                for name, op in loop.placed.items():
                    for k in range(ITERATIONS):
                        place = (op["stage"], op["cycle"], op["group"], loop.synchronous(name))
                        expected[(loop.graph["name"], name, k, loop.at(name, k), loop.cycles(name), *place)] += 1
            self.assertEqual(shown, expected)

        self.each(check)

    def test_units_are_held_as_reserved(self):
        def check(found: list[Loop], processor: TraceProcessor) -> None:
            rows = processor.query(
                "SELECT s.ts, s.dur, s.name, t.name AS track FROM slice s JOIN track t ON s.track_id = t.id "
                "WHERE s.category = 'unit'"
            )
            shown = Counter((row["track"].split(" ")[0], row["name"], row["ts"], row["dur"]) for row in rows)
            expected = Counter(
                (held["unit"], name, loop.at(name, k) + held.get("start", 0), held["cycles"])
                for loop in found
                for name, op in loop.operations.items()
                for held in op.get("units", [])
                for k in range(ITERATIONS)
            )
            self.assertEqual(shown, expected)

        self.each(check)

    def test_issues_are_instants_where_the_warps_stand(self):
        def check(found: list[Loop], processor: TraceProcessor) -> None:
            rows = processor.query("SELECT s.ts, s.dur, s.name FROM slice s WHERE s.category = 'issue'")
            shown = Counter((row["name"], row["ts"], row["dur"]) for row in rows)
            expected = Counter(
                (name, loop.at(name, k), 0)
                for loop in found
                for name in loop.operations
                if not loop.synchronous(name)
                for k in range(ITERATIONS)
            )
            self.assertEqual(shown, expected)

        self.each(check)

    def test_flows_are_dependences_and_barriers(self):
        ends = ("operation", "iteration", "loop")
        columns = [
            f"EXTRACT_ARG({end}.arg_set_id, 'debug.{name}') AS {end}_{name}" for end in ("a", "b") for name in ends
        ]
        query = (
            f"SELECT {', '.join(columns)}, b.category, a.ts <= b.ts AS forward FROM flow f "
            "JOIN slice a ON f.slice_out = a.id JOIN slice b ON f.slice_in = b.id"
        )

        def check(found: list[Loop], processor: TraceProcessor) -> None:
            rows = processor.query(query)
            self.assertTrue(all(row["forward"] for row in rows))
            keys = [f"{end}_{name}" for end in ("a", "b") for name in ends] + ["category"]
            shown = Counter(tuple(row[key] for key in keys) for row in rows)
            expected = Counter()
            for loop in found:
                for d, first, then in loop.dependences():
                    name = loop.graph["name"]
                    flow = (d["from"], first, name, d["to"], then, name)
                    if d["value"]:
                        expected[(*flow, "operation")] += 1
                    if d["blocking"] or d["value"] and loop.foreign(d):
                        expected[(*flow, "barrier")] += 1
            self.assertEqual(shown, expected)

        self.each(check)

    def test_barriers_of_channels_name_slot_and_phase(self):
        names = ("operation", "iteration", "loop", "for", "for_iteration", "slot", "phase", "through")

        def check(found: list[Loop], processor: TraceProcessor) -> None:
            rows = processor.query(f"SELECT {arguments(*names)} FROM slice s WHERE s.category = 'barrier'")
            shown = Counter(tuple(row[f"a_{name}"] for name in names) for row in rows)
            expected = Counter()
            for loop in found:
                channels = {(c["buffer"], c["from"], c["to"]): c for c in loop.file["channels"]}
                for d, first, then in loop.dependences():
                    groups = (loop.placed[d["from"]]["group"], loop.placed[d["to"]]["group"])
                    if not (d["blocking"] or d["value"] and groups[0] != groups[1]):
                        continue
                    channel, passing = channels.get((d["from"], *groups)), (None, None, None)
                    if channel:
                        passing = (first % channel["depth"], first // channel["depth"] % 2, channel["memory"])
                    expected[(d["to"], then, loop.graph["name"], d["from"], first, *passing)] += 1
            self.assertEqual(shown, expected)
            self.assertTrue(any(key[5] is not None for key in shown))

        self.each(check)

    def test_counters_are_what_is_live_in_the_steady_state(self):
        def check(found: list[Loop], processor: TraceProcessor) -> None:
            rows = processor.query(
                "SELECT c.ts, c.value, t.name, t.unit FROM counter c JOIN counter_track t ON c.track_id = t.id "
                "ORDER BY c.ts, c.id"
            )
            for loop in found:
                expected = {name: loop.counted(name) for name in loop.counters()}
                self.assertEqual({row["name"]: row["unit"] for row in rows}, loop.counters())
                steady = loop.begin + (ITERATIONS - 2) * loop.interval
                for name, live in expected.items():
                    steps = [(row["ts"], row["value"]) for row in rows if row["name"] == name]
                    for slot, amount in live.items():
                        before = [value for at, value in steps if at <= steady + slot]
                        self.assertEqual(before[-1], amount, (name, slot))
                self.assertTrue(any(live[0] > 0 for live in expected.values()))

        self.each(check)

    def test_the_pipeline_is_marked(self):
        def check(found: list[Loop], processor: TraceProcessor) -> None:
            rows = processor.query(
                "SELECT s.ts, s.dur, s.name, s.depth FROM slice s WHERE s.category = 'loop' ORDER BY s.ts, s.depth"
            )
            expected = []
            for loop in found:
                steady = loop.begin + (loop.file["stages"] - 1) * loop.interval
                over = loop.begin + ITERATIONS * loop.interval
                parts = [("prologue", loop.begin, steady), ("steady state", steady, over), ("epilogue", over, loop.end)]
                expected.append((loop.begin, loop.end - loop.begin, loop.graph["name"], 0))
                expected += [(begin, end - begin, name, 1) for name, begin, end in parts if begin < end]
            shown = [(row["ts"], row["dur"], row["name"], row["depth"]) for row in rows]
            self.assertEqual(shown, expected)

        self.each(check)

    def test_the_queries_of_the_documentation(self):
        text = (ROOT / "docs/report.md").read_text()
        busy, waits = (part.split("```")[0] for part in text.split("```sql\n")[1:])
        (loop,), processor = self.loaded["attention_forward"]
        units = Counter()
        for op in loop.operations.values():
            for held in op.get("units", []):
                units[held["unit"]] += held["cycles"]
        shown = {row["unit"]: row["percent"] for row in processor.query(busy)}
        self.assertEqual(shown, {unit: cycles * 100 / loop.interval for unit, cycles in units.items()})
        rows = processor.query(waits)
        self.assertEqual(len(rows), sum(d["blocking"] and then == 1 for d, _, then in loop.dependences()))
        loads = {f"wait for {name}" for name, op in loop.operations.items() if op.get("streaming")}
        self.assertTrue(all(row["spare"] >= 0 or row["wait"] in loads for row in rows))

    def test_the_process_says_what_a_nanosecond_is(self):
        def check(found: list[Loop], processor: TraceProcessor) -> None:
            names = [row["name"] for row in processor.query("SELECT name FROM process WHERE pid = 1")]
            self.assertEqual(len(names), 1)
            self.assertIn(found[0].graph["name"], names[0])
            tracks = [
                row["name"] for row in processor.query("SELECT name FROM track WHERE name GLOB '*1 ns = 1 cycle*'")
            ]
            self.assertEqual(len(tracks), 1)

        self.each(check)


class DataflowTest(unittest.TestCase):
    """A schedule of a graph without warps."""

    def test_uses_and_their_sums(self):
        graph = [
            "gaus",
            "--random",
            "nodes=40,density=0.1,back-edges=4,seed=3,resources=2",
            "--smallest-ii",
            "--seed",
            "1",
            "--quiet",
        ]
        file = json.loads(twill(*graph, "--format", "json"))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.pftrace"
            twill(*graph, "--format", "perfetto", "-o", str(path))
            data = path.read_bytes()
        interval = file["interval"]
        expected, used = Counter(), Counter()
        for op, step in zip(file["graph"]["operations"], file["steps"], strict=True):
            for k in range(3):
                for use in op.get("uses", []):
                    begin = step + k * interval + use.get("offset", 0)
                    expected[(use["resource"], op["name"], begin, use.get("steps", 1))] += 1
                    for at in range(begin, begin + use.get("steps", 1)):
                        used[(use["resource"], at)] += use.get("amount", 1)
        with closing(TraceProcessor(data)) as processor:
            rows = processor.query(
                "SELECT s.ts, s.dur, s.name, t.name AS track FROM slice s JOIN track t ON s.track_id = t.id "
                "WHERE t.name != 'no resource'"
            )
            counts = processor.query(
                "SELECT c.ts, c.value, t.name FROM counter c JOIN counter_track t ON c.track_id = t.id ORDER BY c.ts"
            )
        self.assertEqual(Counter((row["track"], row["name"], row["ts"], row["dur"]) for row in rows), expected)
        self.assertTrue(expected)
        for resource in {key[0] for key in used}:
            steps = [(row["ts"], row["value"]) for row in counts if row["name"] == f"{resource} in use"]
            for at in range(max(key[1] for key in used) + 2):
                self.assertEqual([value for begin, value in steps if begin <= at][-1], used[(resource, at)])


if __name__ == "__main__":
    unittest.main()
