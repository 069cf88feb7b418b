"""Texts that are nested, long, endless or full of invalid numbers: each reader reports the error, and nothing crashes."""

import json
import os
import re
import tempfile
import unittest
from pathlib import Path

from command import ROOT, run
from graphs import groups, late_values, loop, nested, parallel_loop, slow_operations

DEEP = 100_000
LONG = 10_000_000

NUMBERS = ["-1", "-0.0", "nan", "inf", "-inf", "1e400", "1e-400", "9223372036854775808", "18446744073709551616",
           "1e15", "4e-324", "0", "1e308", "99999999999999999999999999", "1.5"]  # fmt: skip


class Inputs(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def refused(self, *arguments: object) -> str:
        """The command's complaint, in few words."""
        done = run(*arguments, seconds=120)
        self.assertEqual((done.returncode, done.stdout), (1, b""), done.stderr[:500])
        said = done.stderr.decode()
        self.assertTrue(said.startswith("error: "), said[:200])
        self.assertLess(len(said), 5000)
        return said

    def ends(self, *arguments: object) -> None:
        """That the command ends, with an answer or a complaint of few words."""
        self.assertLess(len(run(*arguments, "--time-limit", "2", seconds=120).stderr), 5000)

    def test_deep_kernels(self):
        texts = [
            "module {" * DEEP,
            '"a"() ({' * DEEP,
            "tt.func @f(%a: " + "tensor<" * DEEP,
            "tt.func @f(%a: " + "(" * DEEP,
            "module attributes {a = " + "[" * DEEP,
            "module {} loc(" + "callsite(" * DEEP,
            "#a = #b" + "<" * DEEP,
            'module {} loc("a"(' * DEEP,
        ]
        for text in texts:
            self.refused("schedule", self.file("deep.ttir", text))

    def test_deep_json(self):
        for text in (
            "[" * DEEP,
            '{"a":' * DEEP,
            nested(DEEP),
            '{"format": "twill-graph", "operations": [], "other": ' + "[" * DEEP + "]" * DEEP + "}",
            '{"format": "twill-schedule", "version": 1, "problem": ' + '{"graph":' * DEEP,
            '{"format": "twill-dataflow", "version": 1, "operations": [{"name": ' + "[" * DEEP,
        ):
            path = self.file("deep.json", text)
            for command in ("schedule", "check", "gaus", "report"):
                self.refused(command, path)

    def test_deep_tables(self):
        own = 'name = "own"\nextends = "h100"\n'
        texts = [
            "a = " + "[" * DEEP,
            "a = " + "{a=" * DEEP,
            ".".join(["a"] * DEEP) + " = 1",
            "[" + ".".join(["a"] * DEEP) + "]",
        ]
        for text in texts:
            path = self.file("deep.toml", own + text)
            self.refused("machine", "check", path)
            self.refused("schedule", "gemm", "--machine", path)

    def test_deep_graphs_of_others(self):
        model = '<ResourceModel><Resource name="r" limit="1" latency="1"/></ResourceModel>'
        laughs = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 20 if n else "ha"}">' for n in range(12))
        for text in (
            "<graph>" * DEEP,
            "<graphml>" + "<a>" * DEEP + "</a>" * DEEP + "</graphml>",
            f"<!DOCTYPE g [{laughs}]><graphml>&a11;</graphml>",
            '<!DOCTYPE g [<!ENTITY x SYSTEM "file:///etc/passwd">]><graphml>&x;</graphml>',
        ):
            self.file("deep_RM.xml", model)
            self.refused("gaus", "--engine", "exact", self.file("deep.graphml", text))
        for ending, text in (
            ("gml", "graph [ directed 1 a " + "[ a " * DEEP),
            ("gml", "# " * LONG),
            ("dot", "digraph g " + "{" * DEEP),
            ("dot", "digraph g { a [label = " + '"\\' * DEEP),
            ("blif", ".model m\n.inputs " + "\\\n" * DEEP),
            ("mlir", "ssp.instance @a of " + '"' * 3),
            ("mlir", 'ssp.instance @a of "P" [' + "a<" * DEEP),
        ):
            self.refused("gaus", self.file(f"deep.{ending}", text))

    def test_long_names(self):
        kernel = (ROOT / "examples/gemm_tma.ttir").read_text()
        for text in (
            kernel.replace('"acc"(', f'"{"a" * LONG}"('),
            kernel.replace("%row", "%" + "r" * LONG),
            kernel.replace("@gemm_tma", "@" + "g" * LONG),
            kernel.replace("@gemm_tma", f'@"{"g" * LONG}"'),
            kernel.replace("examples/gemm_tma.py", "/p" * (LONG // 2)),
            kernel.replace("tt.trans", '"' + "t" * LONG + '"'),
            kernel.replace("128 : i32", "1" * LONG + " : i32"),
        ):
            self.assertIn("bytes", self.refused("schedule", self.file("long.ttir", text)))
        graph = json.loads(loop(3))
        for change in ({"name": "n" * LONG}, {"machine": "m" * LONG}):
            self.refused("schedule", self.file("long.json", json.dumps({**graph, **change})))
        for key in ("name", "kind"):
            other = json.loads(loop(3))
            other["operations"][0][key] = "n" * LONG
            self.refused("schedule", self.file("long.json", json.dumps(other)))

    def test_long_locations_are_not_multiplied(self):
        # A long path or name that every operation shares would be copied for each.
        kernel = (ROOT / "examples/gemm_tma.ttir").read_text()
        many = "".join(f"    %x{n} = arith.constant {n} : i32 loc(#loc22)\n" for n in range(20_000))
        text = kernel.replace("    %row = ", many + "    %row = ").replace('"row"(', f'"{"r" * 2000}"(')
        self.assertEqual(run("schedule", self.file("many.ttir", text), "--quiet").returncode, 0)

    def test_numbers_of_machines(self):
        text = (ROOT / "machines/h100.toml").read_text()
        numbers = list(re.finditer(r"(?<= = )[0-9][0-9._]*", text))
        self.assertGreater(len(numbers), 40)
        # All numbers with some value, and every value with some number.
        for at, number in enumerate(numbers):
            value = NUMBERS[at % len(NUMBERS)]
            path = self.file("own.toml", text[: number.start()] + value + text[number.end() :])
            done = run("machine", "check", path)
            if done.returncode == 0:
                self.ends("schedule", "examples/gemm_tma.ttir", "--machine", path, "--quiet")
            else:
                self.assertIn("own.toml:", done.stderr.decode())

    def test_numbers_of_graphs(self):
        graph = json.loads(loop(3))
        graph["operations"][0] |= {
            "cycles": 9, "latency": 9, "handoff": 9, "transfer_latency": 9, "issue_width": 4, "sub_tile": 1,
            "traffic": {"shared": 9, "global": 9, "flop": 9},
        }  # fmt: skip
        graph["dependences"][0] |= {"delay": 9, "distance": 9, "hold": 9}
        graph["reserved"] = {"shared_memory": 9, "tensor_memory": 0}
        text = json.dumps(graph)
        places = [m for m in re.finditer(r'"\w+": (9|64|4|1)\b', text)]
        self.assertGreater(len(places), 15)
        values = [
            *NUMBERS,
            "1099511627776",
            "4294967295",
            "4294967296",
            "9223372036854775807",
            "null",
            '"9"',
            "[]",
            "true",
        ]
        for at, place in enumerate(places):
            for value in values[at % 8 :: 8]:
                changed = text[: place.start(1)] + value + text[place.end(1) :]
                self.ends("schedule", self.file("numbers.json", changed), "--quiet")

    def test_cycles_and_distances_that_overflow_together(self):
        for text in (
            slow_operations(1 << 40),
            late_values(1 << 40),
            groups(17),
            groups(4_000_000_000),
            # More than the exact scheduler is asked about.
            parallel_loop(600),
        ):
            for more in ([], ["--swp-only"], ["--unroll", "64"], ["--normalise", "300"], ["--model", "paper"]):
                self.ends("schedule", self.file("large.json", text), "--quiet", *more)
            self.ends("explain", self.file("large.json", text), "--quiet")
        wide = json.loads(loop(3))
        wide["dependences"] += [
            {"from": "v2", "to": "v0", "distance": (1 << 20) - n, "delay": 1 << 40, "value": False} for n in range(64)
        ]
        self.assertIn("too large", self.refused("schedule", self.file("wide.json", json.dumps(wide))))
        self.ends("schedule", "gemm", "--max-interval", str(1 << 40), "--quiet")
        self.refused("schedule", "gemm", "--emit", "smtlib2", "--interval", str(1 << 40), "--stages", str(2**32))

    def test_files_without_end(self):
        if not os.path.exists("/dev/zero"):
            self.skipTest("needs /dev/zero")
        graph = json.loads(loop(3))
        for machine in ("/dev/zero", "/dev/zero.toml/../zero"):
            self.refused("schedule", self.file("zero.json", json.dumps({**graph, "machine": machine})))
        self.refused("schedule", "gemm", "--machine", self.file("own.toml", 'name = "own"\nextends = "/dev/zero"\n'))

    def test_certificates(self):
        proof = self.folder / "proof"
        graph = ROOT / "crates/twill-graph/graphs/toy-attention-blocking.json"
        words = ["schedule", graph, "--format", "json", "--certificate", proof]
        self.assertEqual(run(*words).returncode, 0)
        files = sorted(proof.iterdir())
        self.assertEqual(run("check", proof).returncode, 0)
        changes = [
            lambda text: text + "\n" + "1 " * LONG + "0",
            lambda text: re.sub(r"\d+", "9" * 30, text, count=3),
            lambda text: re.sub(r"\b\d+\b", "-1", text),
            lambda text: "[" * DEEP + text,
            lambda text: text.replace(" ", "\x00"),
            lambda text: text[: len(text) // 2],
        ]
        for path in files:
            before = path.read_text()
            for change in changes:
                path.write_text(change(before))
                done = run("check", proof)
                self.assertEqual(done.returncode, 1, (path.name, done.stdout))
                self.assertLess(len(done.stderr), 5000)
            path.write_text(before)


if __name__ == "__main__":
    unittest.main()
