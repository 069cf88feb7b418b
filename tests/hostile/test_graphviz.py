"""Graphviz draws what `--format dot` writes: every node, every edge, every name, and nothing that a name says."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from command import ROOT, run
from payloads import PAYLOADS

SVG = "{http://www.w3.org/2000/svg}"

NAME = "</svg><script>alert(1)</script>\" onload='x' \\N\\l & {a|b} é日本 \ufffe"


def dot() -> str:
    """Graphviz: the one that tests/tools puts next to this interpreter, or the one on the path."""
    brought = Path(sys.executable).parent / "dot"
    found = str(brought) if brought.exists() else shutil.which("dot")
    if not found:
        raise FileNotFoundError("no dot: cargo xtask test brings one, or install Graphviz")
    return found


def hostile() -> dict:
    """Three operations, two of them in a cycle, and names that end strings, labels and files."""
    return {
        "format": "twill-graph", "version": 1, "name": NAME, "machine": "h100",
        "operations": [
            {"name": NAME, "units": [{"unit": "fma", "cycles": 3}], "result": {"registers": 8}, "source": {"file": '<&".py', "line": 3}},
            {"name": "\\", "units": [{"unit": "fma", "cycles": 2}], "result": {"registers": 8}},
            {"name": '"', "units": [{"unit": "fma", "cycles": 2}]},
        ],
        "dependences": [
            {"from": NAME, "to": "\\"}, {"from": "\\", "to": '"'}, {"from": "\\", "to": "\\", "distance": 1},
            {"from": '"', "to": NAME, "distance": 2, "value": False},
        ],
    }  # fmt: skip


def chain() -> dict:
    """One operation of each hostile name after the other."""
    return {
        "format": "twill-graph", "version": 1, "name": PAYLOADS[0], "machine": "h100",
        "operations": [{"name": name, "units": [{"unit": "fma", "cycles": 8}], "result": {"registers": 64}} for name in PAYLOADS],
        "dependences": [{"from": a, "to": b} for a, b in zip(PAYLOADS, PAYLOADS[1:])],
    }  # fmt: skip


class Graphviz(unittest.TestCase):
    def drawn(self, text: bytes, form: str) -> bytes:
        done = subprocess.run([dot(), f"-T{form}"], input=text, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def files(self) -> list[Path]:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        written = []
        for name, graph in (("hostile", hostile()), ("chain", chain())):
            written.append(Path(scratch.name) / f"{name}.json")
            written[-1].write_text(json.dumps(graph), encoding="utf-8")
        return [*written, ROOT / "examples/attention_forward.ttir"]

    def test_all_nodes_and_edges_are_drawn_with_their_names(self):
        for file in self.files():
            done = run("schedule", file, "--machine", "h100", "--format", "json")
            schedule = json.loads(done.stdout)
            graph = schedule["problem"]["graph"]
            # Nothing is as short as one cycle: the graph is drawn without groups.
            for options, code, groups in (((), 0, len(schedule["groups"])), (("--max-interval", "1"), 2, 0)):
                with self.subTest(file=file.name, options=options):
                    done = run("schedule", file, "--machine", "h100", "--format", "dot", *options)
                    self.assertEqual(done.returncode, code, done.stderr)
                    svg = ElementTree.fromstring(self.drawn(done.stdout, "svg"))
                    of = lambda kind: [group for group in svg.iter(f"{SVG}g") if group.get("class") == kind]
                    self.assertEqual(len(of("node")), len(graph["operations"]) + groups)
                    self.assertEqual(len(of("edge")), len(graph["dependences"]))
                    texts = {(text.text or "").replace("\u00a0", " ") for text in svg.iter(f"{SVG}text")}
                    for operation in graph["operations"]:
                        self.assertIn(operation["name"].replace("\ufffe", "\ufffd"), texts)

    def test_names_are_labels_alone(self):
        for file in self.files():
            with self.subTest(file=file.name):
                text = run("schedule", file, "--machine", "h100", "--format", "dot").stdout
                nodes = json.loads(self.drawn(text, "json"))["objects"]
                self.assertFalse([node for node in nodes if not re.fullmatch(r"(n|group)\d+", node["name"])])
                self.assertFalse([node for node in nodes if "URL" in node or "href" in node])


if __name__ == "__main__":
    unittest.main()
