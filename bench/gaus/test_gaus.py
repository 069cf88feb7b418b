"""Tests of the benchmark of large graphs, on graphs of a few nodes: python -m unittest bench.gaus.test_gaus

They need no build: a stand-in answers for `twill`. CP-SAT is tested where OR-Tools is installed.
"""

import contextlib
import dataclasses
import importlib.util
import itertools
import json
import random
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

from bench.common import ROOT
from bench.gaus import cases, figures, goals, graphs
from bench.gaus.cases import CP_SAT, FORCE, LIST, OURS, SPANS
from bench.gaus.check import Broken, check, measure
from bench.gaus.figures import by_question
from bench.gaus.svg import Panel, Series, page

FILES = {
    "express/two.dot": 'digraph two {\n node [color="160,60"];\n m [label = MUL ];\n a [label = add];\n m -> a [name=1];\n}\n',
    "express/optima.csv": "graph,latency_factor,multipliers,alus\ntwo,1.0,1,1\ntwo,2.0,1,1\n",
    "epfl/tiny.blif": ".model top\n.inputs x \\\n y\n.outputs z\n.names x y w # and\n11 1\n.names w x z\n10 1\n.end\n",
    "gs_random/rand.gml": "graph [ directed 1\n"
    + "".join(f'node [ id {k} label "n{k}" parameter {weight} ]\n' for k, weight in enumerate((5, 0, 7)))
    + "edge [ source 0 target 1 parameter 3 ]\nedge [ source 1 target 2 parameter 0 ]\n]\n",
    "hatschet/ChStone/one/graph1.graphml": '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph>'
    + "".join(f'<node id="{k}"><data key="uses_resource">{kind}</data></node>' for k, kind in ((7, "mem"), (8, "add"), (9, "mem")))
    + "".join(
        f'<edge source="{u}" target="{v}"><data key="distance">{far}</data><data key="delay">{late}</data></edge>'
        for u, v, far, late in ((7, 8, 0, 0), (8, 9, 0, 1), (9, 7, 1, 0))
    )
    + "</graph></graphml>",
    "hatschet/ChStone/one/graph1_RM.xml": '<M><Resource name="mem" limit="1" latency="2" blockingTime="1"/>'
    '<Resource name="add" limit="-1" latency="0" blockingTime="0"/></M>',
    "hatschet/optimal_ii.csv": "graph,nodes,mii,ii_lower,ii_upper\nChStone/one/graph1.graphml,3,5,5,5\n",
}

# Answers every question of `twill` with as soon as possible; loops at the interval that is right for graph1.
STAND_IN = """#!{python}
import json, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from bench.gaus import graphs
from bench.gaus.check import measure
given = sys.argv[1:]
if given == ["--version"]:
    sys.exit(print("twill 0"))
of = lambda name, other=None: given[given.index(name) + 1] if name in given else other
file = next((word for word in given if Path(word).suffix in (".dot", ".blif", ".gml", ".graphml")), None)
if file is None:
    sys.exit(print(json.dumps({{"operations": 10, "dependences": 20, "gradients": 100, "seconds": {{"search": 1.0 - ("--no-gradient" in given)}}}})))
chaining = of("--chaining") == "on"
graph = graphs.read(Path(file), chaining)
interval = 5 if "--smallest-ii" in given or of("--engine") == "exact" else None
steps = graph.earliest
if of("--engine") == "exact":
    answer = {{"initiation_interval": 5, "lower_bound": {{"interval": 5}}, "times": dict(zip(graph.names, steps))}}
    sys.exit(print(json.dumps(answer)))
measured = measure(graph, steps, interval)
weights = tuple(map(int, of("--weights", "1,0").split(",")))
value = measured.score("latency" if interval else of("--objective"), weights) + {lie}
summary = {{"objective": {{"value": value, "lower_bound": 1}}, "least_interval": interval, "at_start": value,
    "gradients": 3, "seconds": {{"search": 1.0 - ("--no-gradient" in given)}}, "trace": [[0.5, value + 1], [0.9, value]],
    "interval": interval, "operations": len(graph), "dependences": len(graph.edges)}}
schedule = {{"graph": {{"operations": [{{"name": name}} for name in graph.names]}}, "steps": steps, "summary": summary}}
text = json.dumps(summary if of("--format") == "summary" else schedule)
Path(of("-o")).write_text(text) if "-o" in given else print(text)
"""


class Folder(unittest.TestCase):
    """The files above, in a folder of their own."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = Path(holder.name)
        for name, text in FILES.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


class Graphs(Folder):
    def test_multiplications_take_two_steps(self):
        graph = graphs.read(self.root / "express/two.dot")
        self.assertEqual((graph.names, graph.latency), (["m", "a"], [2, 1]))
        self.assertEqual(graph.uses, [[("multiplier", 2, 1)], [("alu", 1, 1)]])
        self.assertEqual((graph.edges, graph.critical_path), ([(0, 1, 2, 0, 1)], 3))

    def test_inputs_and_gates_are_nodes(self):
        graph = graphs.read(self.root / "epfl/tiny.blif")
        self.assertEqual(graph.names, ["x", "y", "w", "z"])
        self.assertEqual([edge[:2] for edge in graph.edges], [(0, 2), (1, 2), (2, 3), (0, 3)])
        self.assertEqual((graph.earliest, graph.latest(5)), ([0, 0, 1, 2], [2, 2, 3, 4]))

    def test_weights_and_chaining(self):
        graph = graphs.read(self.root / "gs_random/rand.gml", chaining=True)
        self.assertEqual(graph.edges, [(0, 1, 0, 0, 1), (1, 2, 0, 0, 0)])
        self.assertEqual(graph.uses, [[("memory", 1, 5)], [], [("memory", 1, 7)]])

    def test_loops(self):
        graph = graphs.read(self.root / "hatschet/ChStone/one/graph1.graphml")
        self.assertEqual(graph.edges, [(0, 1, 2, 0, 1), (1, 2, 1, 0, 1), (2, 0, 2, 1, 1)])
        self.assertEqual((graph.limit, graph.earliest), ({"mem": 1}, [0, 2, 3]))
        self.assertEqual(check(graph, [0, 2, 3], interval=5).latency, 5)
        with self.assertRaisesRegex(Broken, "`7` does not wait for `9`"):
            check(graph, [0, 2, 3], interval=4)
        with self.assertRaisesRegex(Broken, "2 of `mem`"):
            check(dataclasses.replace(graph, edges=[]), [0, 2, 6], interval=6)


class Costs(unittest.TestCase):
    def loop(self) -> graphs.Graph:
        uses = [[("unit", 5, 1)], [("unit", 1, 1)]]
        return graphs.Graph("g", ["a", "b"], [1, 1], [10, 1], uses, [(0, 1, 1, 1, 1)], {})

    def test_usage_and_storage_wrap_around_the_interval(self):
        # The unit is held in slots 2, 0, 1, 2, 0, and in slot 0; the value lives for 9 - 2 steps of an interval of 3.
        measured = measure(self.loop(), [2, 6], 3)
        self.assertEqual((measured.peaks, measured.storage, measured.communication), ({"unit": 3}, 30, 7))

    def test_back_edges_count_only_with_an_interval(self):
        measured = measure(self.loop(), [2, 0])
        self.assertEqual((measured.peaks, measured.storage, measured.communication), ({"unit": 1}, 0, 0))

    def test_the_latency_bound_holds(self):
        with self.assertRaisesRegex(Broken, "takes 7 steps, the bound is 6"):
            check(self.loop(), [2, 6], latency=6)


def row(graph: str, who: str, value: int, seed: int = 1, **more) -> dict:
    found = {"part": "epfl", "graph": graph, "question": "A", "who": who, "seed": seed, "value": value}
    return found | {"status": "found", "bound": 10, "nodes": 6000, "bound_on_latency": 5} | more


class Figures(unittest.TestCase):
    def test_comparison(self):
        rows = []
        for graph, ours, theirs in (("a", 11, 12), ("b", 10, 10), ("c", 11, 11), ("d", 13, 12)):
            rows += [row(graph, OURS, ours + extra, seed) for seed, extra in ((1, 1), (2, 0), (3, 0))]
            rows += [row(graph, who, theirs) for who in (LIST, FORCE, SPANS, CP_SAT)]
        questions = by_question(rows)
        result = figures.compare(questions, LIST)
        names = [[one.graph for one in each] for each in (result.better, result.at_bound, result.equal, result.worse)]
        self.assertEqual(names, [["a"], ["b"], ["c"], ["d"]])
        found = goals.large(questions, 4)
        self.assertEqual([goal.reached for goal in found], [False] * 4)
        self.assertIn("not on c A, d A", found[0].measured)
        self.assertEqual([goal.reached for goal in goals.large(questions[:3], 4)], [None, None, None, True])
        mean, count = figures.gap(questions)
        self.assertAlmostEqual(mean**4, 1.1 * 1.0 * 1.1 * 1.3)
        self.assertEqual(count, 4)

    def test_what_is_linear(self):
        self.assertAlmostEqual(figures.slope([(x, 3 * x) for x in (1, 10, 500)]), 1)
        self.assertAlmostEqual(figures.slope([(x, x**2) for x in (1, 10, 500)]), 2)

    def test_plots_are_xml(self):
        lines = [Series("a < b", [(0.1, 3), (20, 1)], step=True), Series("c", [(1, 2)]), Series("none", [])]
        root = xml.fromstring(page([Panel("one", "x", "y", lines), Panel("nothing", "x", "y")], 2))
        words = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("a < b", words)
        self.assertIn("nothing measured", words)
        self.assertEqual(len(list(root.iter("{http://www.w3.org/2000/svg}path"))), 1)


class Order(Folder):
    def test_what_matters_comes_first(self):
        found = cases.jobs(cases.PARTS, self.root, 20.0, 5)
        self.assertEqual([job.rank for job in found], sorted(job.rank for job in found))
        score = [job for job in found if job.question.name == "score"]
        self.assertEqual(sum(job.who == OURS for job in score), 5)
        self.assertEqual({job.who for job in score}, {OURS, LIST, FORCE, SPANS, CP_SAT, *cases.ABLATIONS})
        # Chaining leaves one step of delay out; the number of stages stays.
        self.assertEqual((score[0].question.latency, score[0].question.chaining), (3, True))


class Command(Folder):
    def run_gaus(self, *arguments: str, lie: int = 0) -> tuple[subprocess.CompletedProcess, list[dict]]:
        stand_in = self.root / "twill"
        stand_in.write_text(STAND_IN.format(python=sys.executable, root=str(ROOT), lie=lie), encoding="utf-8")
        stand_in.chmod(0o755)
        rows = self.root / "out" / "gaus.jsonl"
        command = [sys.executable, "-m", "bench.gaus", "--benchmarks", str(self.root), "--twill", str(stand_in)]
        command += ["--without-cp-sat", "--output", str(rows.parent), "--rows", str(rows), "--seeds", "2", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        lines = rows.read_text(encoding="utf-8").splitlines() if rows.exists() else []
        return done, [json.loads(line) for line in lines]

    def test_a_run_is_written_and_goes_on(self):
        done, rows = self.run_gaus()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({row["status"] for row in rows}, {"found"})
        self.assertIn("least interval on every loop where it is known, with every seed | 1 of 1 | reached", done.stdout)
        self.assertIn("2 of 2 optimal", done.stdout)
        self.assertTrue(all(row["memory"] > 0 for row in rows))
        path = self.root / "out" / "gaus.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines()
        path.write_text("\n".join(lines[:-3]) + "\n" + lines[-3][:40], encoding="utf-8")
        again, _ = self.run_gaus()
        self.assertIn(f"{len(lines)} answers, 3 to go", again.stderr)
        for name in ("gaus-quality.svg", "gaus-time.svg"):
            xml.parse(self.root / "out" / name)

    def test_what_does_not_fit_is_left_for_later(self):
        done, rows = self.run_gaus("express", "--minutes", "0.01")
        self.assertEqual((done.returncode, rows), (0, []))
        self.assertIn("left for another run", done.stdout)

    def test_a_false_value_is_found_out(self):
        done, rows = self.run_gaus("express", lie=1)
        self.assertEqual(done.returncode, 1)
        self.assertEqual({row["status"] for row in rows}, {"broken"})
        self.assertIn("it says 3 of a schedule that is worth", done.stdout)

    def test_bad_arguments_are_named(self):
        for arguments, wanted in ((["gpu"], "no part is named gpu"), (["--minutes", "0"], "must be positive")):
            with self.subTest(arguments):
                done, _ = self.run_gaus(*arguments)
                self.assertIn(wanted, done.stderr)
                self.assertEqual(done.returncode, 2)


@unittest.skipUnless(importlib.util.find_spec("ortools"), "needs ortools")
class Peer(Folder):
    def test_cp_sat_finds_what_trying_everything_finds(self):
        from ortools.sat.python import cp_model

        from bench.gaus import cpsat

        for file, chaining, latency in (("epfl/tiny.blif", False, 5), ("gs_random/rand.gml", True, 3), ("express/two.dot", False, 5)):
            graph = graphs.read(self.root / file, chaining)
            for kind, weights in (("resources", (1, 0)), ("resources", (100, 1)), ("storage", (1, 0))):
                best = None
                for steps in itertools.product(range(latency), repeat=len(graph)):
                    try:
                        value = check(graph, list(steps), latency).score(kind, weights)
                    except Broken:
                        continue
                    best = value if best is None else min(best, value)
                made, starts = cpsat.model(graph, kind, weights, latency, graph.earliest)
                solver = cp_model.CpSolver()
                self.assertEqual(solver.solve(made), cp_model.OPTIMAL)
                found = check(graph, [solver.value(start) for start in starts], latency).score(kind, weights)
                self.assertEqual((found, solver.objective_value), (best, best), (file, kind, weights))

    def test_cp_sat_finds_the_fewest_live_values_of_a_loop(self):
        from ortools.sat.python import cp_model

        from bench.gaus import cpsat_loop

        chance = random.Random(7)
        for case in range(40):
            count, interval, latency = chance.randint(3, 5), chance.randint(1, 4), chance.randint(4, 6)
            pairs = itertools.combinations(range(count), 2)
            edges = [(u, v, chance.randint(0, 2), 0, 1) for u, v in pairs if chance.random() < 0.5]
            edges += [(v, u, 1, chance.randint(1, 2), 1) for u, v, *_ in edges if chance.random() < 0.3]
            uses = [[("unit", chance.randint(1, 2), 1)] if chance.random() < 0.5 else [] for _ in range(count)]
            storage = [chance.randint(0, 3) for _ in range(count)]
            graph = graphs.Graph("g", list("abcde"[:count]), [1] * count, storage, uses, edges, {"unit": 2})
            known = {}
            for steps in itertools.product(range(latency), repeat=count):
                with contextlib.suppress(Broken):
                    known[steps] = check(graph, list(steps), latency, interval).storage
            if not known:
                continue
            made, starts = cpsat_loop.model(graph, interval, latency, list(max(known, key=known.get)))
            solver = cp_model.CpSolver()
            self.assertEqual(solver.solve(made), cp_model.OPTIMAL)
            found = check(graph, starts.of(solver), latency, interval).storage
            self.assertEqual((found, solver.objective_value), (min(known.values()),) * 2, case)


if __name__ == "__main__":
    unittest.main()
