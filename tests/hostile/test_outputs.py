"""Hostile names go in, and every output is read back: nothing of them is more than a name."""

import ast
import json
import re
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from command import ROOT, run
from payloads import CONTROLS, MARK, PAYLOADS, cpp_faults, mlir, python_faults

LANGUAGES = ("gluon", "cuda")

OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that a terminal obeys, or that turn text around."""


def graph(name: str, names: list[str]) -> dict:
    """A chain of operations with these names, and hostile kinds, units' files and a hostile name of its own."""
    operations = [
        {
            "name": one, "kind": one, "source": {"file": f"{one}.py", "line": 1},
            "units": [{"unit": "fma", "cycles": 8}], "result": {"registers": 64},
        }
        for one in names
    ]  # fmt: skip
    chain = [{"from": a, "to": b} for a, b in zip(names, names[1:])]
    return {
        "format": "twill-graph", "version": 1, "name": name, "machine": "h100", "operations": operations,
        "dependences": chain,
    }  # fmt: skip


class Graphs(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        # Others write next to the scratch folder; below it is nobody else.
        self.scratch = Path(scratch.name)
        self.folder = self.scratch / "a" / "b"
        self.folder.mkdir(parents=True)

    def file(self, text: str, name: str = "graph.json") -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def schedule(self, *arguments: object) -> str:
        path = self.file(json.dumps(graph(PAYLOADS[0], PAYLOADS)))
        done = run("schedule", path, "--time-limit", "20", *arguments)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return done.stdout.decode()

    def test_json_says_the_names_as_they_are(self):
        schedule = json.loads(self.schedule("--format", "json"))
        self.assertEqual([operation["name"] for operation in schedule["operations"]], PAYLOADS)
        self.assertEqual(schedule["problem"]["graph"]["name"], PAYLOADS[0])

    def test_text_moves_no_cursor(self):
        for form in ("text", "pseudocode"):
            self.assertIsNone(OBEYED.search(self.schedule("--format", form, "--color", "never")))

    def test_pictures_hold_text_and_no_script(self):
        for form in ("svg", "graph-svg"):
            root = ElementTree.fromstring(self.schedule("--format", form))
            for element in root.iter():
                self.assertNotIn(element.tag.split("}")[-1], ("script", "img", "image", "foreignObject", "a", "use"))
                self.assertFalse([key for key in element.attrib if key.lower().startswith("on") or "href" in key])

    def test_smtlib_asks_one_question(self):
        question = self.schedule("--emit", "smtlib2", "--interval", "400", "--stages", "1")
        # Without comments, texts and quoted symbols, what is left is nested as it should be and ends once.
        bare = re.sub(r';[^\n]*|"(?:[^"]|"")*"|\|[^|]*\|', "", question)
        self.assertNotIn(MARK, bare)
        self.assertEqual(bare.count("("), bare.count(")"))
        self.assertEqual(bare.count("(check-sat)"), 1)

    def test_a_name_that_cannot_be_shown_is_refused(self):
        for name in CONTROLS:
            for place in ("name", "kind", "source", "unit", "loop", "machine"):
                read = graph("loop", ["a", "b"])
                first = read["operations"][0]
                match place:
                    case "source":
                        first["source"]["file"] = name
                    case "unit":
                        first["units"][0]["unit"] = name
                    case "loop":
                        read["name"] = name
                    case "machine":
                        read["machine"] = name
                    case _:
                        first[place] = name
                if place == "name":
                    read["dependences"] = []
                done = run("schedule", self.file(json.dumps(read)))
                self.assertEqual((done.returncode, done.stdout), (1, b""), (place, name))
                self.assertIsNone(OBEYED.search(done.stderr.decode().replace("\n", " ")), (place, name))

    def test_graphs_without_warps_take_any_name_and_write_it_with_escapes(self):
        for name in CONTROLS:
            flow = {"format": "twill-dataflow", "version": 1, "name": name, "operations": [{"name": name}]}
            done = run("gaus", self.file(json.dumps(flow)))
            self.assertEqual(done.returncode, 0, name)
            said = (done.stdout + done.stderr).decode().replace("\n", " ")
            self.assertIsNone(OBEYED.search(said), name)

    def test_a_path_writes_where_it_says_and_nowhere_else(self):
        path = self.file(json.dumps(graph("../../escaped", ["../a", "/b", "..", "C:\\c"])))
        for form in ("json", "svg", "dot"):
            out = self.folder / f"out.{form}"
            self.assertEqual(run("schedule", path, "--format", form, "-o", out).returncode, 0)
        proof = self.folder / "proof"
        self.assertEqual(run("schedule", path, "--certificate", proof, "--format", "json").returncode, 0)
        self.assertEqual(run("check", proof).returncode, 0)
        self.assertEqual([*self.scratch.iterdir(), *self.folder.parent.iterdir()], [self.folder.parent, self.folder])
        written = {"graph.json", "out.json", "out.svg", "out.dot", "proof"}
        self.assertEqual({entry.name for entry in self.folder.iterdir()}, written)


class Kernels(unittest.TestCase):
    """Kernels whose names, places and strings are hostile; what is generated of them is parsed."""

    @classmethod
    def setUpClass(cls):
        cls.text = (ROOT / "examples/gemm_tma.ttir").read_text()

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def compile(self, text: str, *arguments: object, name: str = "kernel.ttir") -> Path | None:
        """The folder that was written; None where the kernel was refused in words."""
        path, out = self.folder / name, self.folder / "out"
        path.write_text(text, encoding="utf-8")
        shutil.rmtree(out, ignore_errors=True)
        done = run("compile", path, "--machine", "h200", "-o", out, "--no-assemble", *arguments)
        for said in (done.stdout, done.stderr):
            self.assertIsNone(OBEYED.search(said.decode().replace("\n", " ")))
        if done.returncode == 0:
            return out
        self.assertEqual((done.returncode, out.exists()), (1, False))
        return None

    def check(self, out: Path) -> None:
        json.loads((out / "kernel.json").read_text())
        json.loads((out / "schedule.json").read_text())
        # The other files in Python are the same for every kernel.
        path = out / "kernel.py"
        if path.exists():
            self.assertEqual(python_faults(path.read_text()), [], path)
            self.assertIsNone(OBEYED.search(path.read_text()), path)
        for name in ("kernel.cu", "kernel.h"):
            path = out / name
            if path.exists():
                self.assertEqual(cpp_faults(path.read_text()), [], path)
                self.assertIsNone(OBEYED.search(path.read_text()), path)

    def each(self, change) -> int:
        """Compiles a changed kernel for every payload, to Gluon and CUDA in turn; how many were compiled."""
        compiled = 0
        for number, payload in enumerate(PAYLOADS + CONTROLS):
            changed = change(payload)
            self.assertNotEqual(changed, self.text)
            out = self.compile(changed, "--emit", LANGUAGES[number % 2])
            if out is not None:
                self.check(out)
                compiled += 1
        return compiled

    def test_variables(self):
        def change(payload: str) -> str:
            return re.sub(r'loc\("(acc|a|b|row|column)"\(', lambda _: f'loc("{mlir(payload)}"(', self.text)

        self.assertEqual(self.each(change), len(PAYLOADS + CONTROLS))

    def test_paths(self):
        def change(payload: str) -> str:
            return self.text.replace("examples/gemm_tma.py", mlir(payload) + ".py")

        self.assertEqual(self.each(change), len(PAYLOADS + CONTROLS))

    def test_functions(self):
        self.assertEqual(
            self.each(lambda payload: self.text.replace("@gemm_tma(", f'@"{mlir(payload)}"(')),
            len(PAYLOADS + CONTROLS),
        )

    def test_parameters(self):
        # Other texts than identifiers cannot be written; an identifier is a parameter, whatever generated code uses.
        names = ["tile", "i", "k", "gl", "bars", "base", "tma", "import", "raise", "a.b", "a-b", "a$b", "0", "int", "acc",
                 "BARRIERS_AT", "programs_x", "program_x", "a_buffer", "group_1", "threadIdx", "shared", "K_"]  # fmt: skip
        for name in names:
            changed = self.text.replace("%K", f"%{name}").replace('"K"', f'"{name}"')
            for language in LANGUAGES:
                out = self.compile(changed, "--emit", language)
                if out is not None:
                    self.check(out)
                if out is not None and language == "gluon":
                    self.check_parameters(out, name)

    def check_parameters(self, out: Path, name: str) -> None:
        """That no function of the kernel gives another meaning to a name that is a parameter of its own."""
        for function in ast.walk(ast.parse((out / "kernel.py").read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            taken = {argument.arg for argument in function.args.args}
            self.assertEqual(len(taken), len(function.args.args))
            names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
            modules = {
                node.value.id
                for node in ast.walk(function)
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            }
            stored = {node.id for node in names if isinstance(node.ctx, ast.Store)}
            self.assertFalse(stored & taken, (name, function.name))
            self.assertFalse(taken & modules & {"gl", "tma", "mbarrier", "gluon"}, (name, function.name))

    def test_symbols_of_libraries(self):
        text = (ROOT / "examples/fixtures/epilogue_libdevice_pow.ttir").read_text()
        symbol = re.search(r'symbol = "(__nv_\w+)"', text)[1]
        out = self.compile(text)
        self.assertIn(f'call_libdevice("{symbol}"', (out / "kernel.py").read_text())
        for payload in PAYLOADS + CONTROLS:
            changed = text.replace(f'"{symbol}"', f'"__nv_{mlir(payload)}"')
            for language in LANGUAGES:
                out = self.compile(changed, "--emit", language)
                if out is not None:
                    self.check(out)

    def test_files(self):
        # The path of the kernel, and of the folder, are in the header and in the command that makes it again.
        for number, payload in enumerate(PAYLOADS):
            name = payload.replace("/", "_") + ".ttir"
            out = self.compile(self.text, "--emit", LANGUAGES[number % 2], name=name)
            self.check(out)

    def test_the_command_in_the_header_is_one_command(self):
        name = f"a'; {MARK}; '$({MARK}) `{MARK}`.ttir"
        out = self.compile(self.text, name=name)
        header = ast.get_docstring(ast.parse((out / "kernel.py").read_text()), clean=False)
        line = next(line for line in header.splitlines() if line.strip().startswith("twill compile"))
        script = f"twill() {{ printf '%s\\n' \"$@\"; }}; {MARK}() {{ echo ran; }}; {line}"
        said = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertIn(str(self.folder / name), said)
        self.assertNotIn("ran", said)


if __name__ == "__main__":
    unittest.main()
