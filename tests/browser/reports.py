"""Reports for the tests and for `measure.py`: made by the `twill` command, once each."""

import base64
import json
import os
import random
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
TRACES = ROOT / "bench/results/traces"

# Proved, proved infeasible, stopped by a budget: each writes a report.
ANSWERED = {0, 2, 3}

# Where the data stand in a report, packed.
DATA = re.compile(r'(?<= id="data">)[^<]*')

# Text that a page must not run, and names that objects of JavaScript have already.
HOSTILE = [
    "</script><script>window.hostile = 1</script>",
    "<img src=x onerror='window.hostile = 2'>",
    '"><svg onload=window.hostile=3>',
    "__proto__",
    "constructor",
    "javascript:window.hostile=4",
    "<!-- \u2028 ${window.hostile = 5} `",
]


def twill() -> str:
    """The command: TWILL, or what cargo built."""
    named = os.environ.get("TWILL_COMMAND")
    if named:
        return named
    built = [ROOT / "target" / profile / "twill" for profile in ("release", "debug")]
    found = [path for path in built if path.exists()]
    if not found:
        raise FileNotFoundError("no twill: build it (cargo build), or name it in TWILL")
    return str(max(found, key=lambda path: path.stat().st_mtime))


def chromium() -> str:
    """The browser: CHROMIUM, the one that tests/tools puts next to this interpreter, or the one on the path."""
    brought = Path(sys.executable).parent / "chromium"
    found = os.environ.get("CHROMIUM") or (str(brought) if brought.exists() else shutil.which("chromium"))
    if not found:
        raise FileNotFoundError("no Chromium: cargo xtask test brings one; or install it, or name it in CHROMIUM")
    return found


def run(arguments: list[str], cache: Path) -> None:
    """Runs the command; raises if it ends with an error."""
    environment = {**os.environ, "TWILL_CACHE": str(cache)}
    done = subprocess.run([twill(), *arguments], env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in ANSWERED:
        raise RuntimeError(f"twill {' '.join(arguments)}: {done.stderr}")


def data_of(report: Path) -> dict:
    """The data that a report has in it."""
    packed = DATA.search(report.read_text(encoding="utf-8"))[0]
    data = json.loads(zlib.decompress(base64.b64decode(packed)))
    return restored(data["page"], data["strings"])


def restored(value: object, strings: list[str]) -> object:
    """With the texts of a list in the places of their numbers (crates/twill-report/src/page/packed.rs)."""
    if isinstance(value, str):
        return strings[int(value)]
    if isinstance(value, list):
        return [restored(one, strings) for one in value]
    if isinstance(value, dict):
        return {name: restored(one, strings) for name, one in value.items()}
    return value


def numbered(value: object, strings: dict[str, int]) -> object:
    """The way back: with numbers in the places of texts, which are added to those that are known."""
    if isinstance(value, str):
        return str(strings.setdefault(value, len(strings)))
    if isinstance(value, list):
        return [numbered(one, strings) for one in value]
    if isinstance(value, dict):
        return {name: numbered(one, strings) for name, one in value.items()}
    return value


def changed(report: Path, path: Path, change: Callable[[dict], None]) -> Path:
    """A copy of a report with other data in it."""
    data = data_of(report)
    change(data)
    strings = {}
    page = numbered(data, strings)
    written = json.dumps({"strings": list(strings), "page": page})
    packed = base64.b64encode(zlib.compress(written.encode())).decode()
    path.write_text(DATA.sub(packed, report.read_text(encoding="utf-8")), encoding="utf-8")
    return path


def said(page: Page, selector: str) -> str:
    """The text of an element as it is read; what is out of sight has none until it is scrolled to."""
    element = page.locator(selector).first
    element.scroll_into_view_if_needed()
    expect(element).not_to_have_text("", use_inner_text=True)
    return element.inner_text()


def settle(page: Page) -> None:
    """Waits until a chart that was moved rests, and what follows from that is drawn."""
    page.evaluate("""() => new Promise(done =>
      setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 200))""")


def loop_graph(operations: int, seed: int = 1) -> dict:
    """A loop of parts that load, multiply and compute; a recurrence gives the search room to find a schedule soon."""
    chance = random.Random(seed)
    units = {"load": "tma", "dot": "tensor", "exp": "xu", "add": "fma"}
    entries, dependences = [], []
    for index in range(operations):
        place = index % 10
        kind = {0: "load", 1: "dot", 5: "exp"}.get(place, "add")
        cycles = {"load": 32, "dot": 128}.get(kind, chance.choice([8, 16, 24]))
        name = f"{kind}.{index}"
        entry = {"name": name, "kind": kind, "units": [{"unit": units[kind], "cycles": cycles}]}
        entry["result"] = {"shared_memory": 1024} if kind == "load" else {"registers": 128}
        if kind in ("load", "dot"):
            entry["execution"] = "asynchronous"
        if kind == "load":
            entry |= {"issue_width": 1, "variable_latency": True, "streaming": True, "transfer_latency": 400}
        else:
            before = 1 if place < 3 else chance.randint(1, place - 1)
            dependences.append({"from": entries[index - before]["name"], "to": name})
        if place == 9:
            dependences.append({"from": name, "to": name, "distance": 1, "delay": 18 * operations})
        entries.append(entry)
    return {
        "format": "twill-graph", "version": 1, "name": f"loop of {operations}", "machine": "h100",
        "operations": entries, "dependences": dependences,
    }  # fmt: skip


def hostile_graph() -> dict:
    """A small loop with names that attack a page."""
    operations = [
        {"name": name, "kind": name, "units": [{"unit": "alu", "cycles": 16}], "result": {"registers": 64},
         "source": {"file": name, "line": index + 1}}
        for index, name in enumerate(HOSTILE)
    ]  # fmt: skip
    dependences = [{"from": a, "to": b} for a, b in zip(HOSTILE, HOSTILE[1:], strict=False)]
    return {
        "format": "twill-graph", "version": 1, "name": HOSTILE[0], "machine": "h100",
        "operations": operations, "dependences": dependences,
    }  # fmt: skip


def longer(source: Path, letters: int) -> Path:
    """A copy of a dataflow schedule with longer names."""
    file, chance = json.loads(source.read_text()), random.Random(letters)
    longer = {}
    for entry in file["graph"]["operations"]:
        more = chance.choices("abcdefghijklmnop_0123456789", k=max(0, letters - len(entry["name"])))
        longer[entry["name"]] = entry["name"] + "".join(more)
    for entry in file["graph"]["operations"]:
        entry["name"] = longer[entry["name"]]
    for entry in file["graph"]["dependences"]:
        entry |= {end: longer[entry[end]] for end in ("from", "to")}
    path = source.with_stem(f"{source.stem}-names-of-{letters}")
    path.write_text(json.dumps(file))
    return path


class Reports:
    """Makes reports in a folder, each at most once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def of(self, name: str, *arguments: str) -> Path:
        """The report of `twill report ARGUMENTS`, under a name."""
        path = self.folder / f"{name}.html"
        if not path.exists():
            run(["report", *arguments, "-o", str(path)], self.folder / "cache")
        return path

    def kernel(self, name: str, *options: str) -> Path:
        """The report of a kernel of `examples/` on an H200, without explanation."""
        return self.of(name, str(EXAMPLES / f"{name}.ttir"), "--machine", "h200", "--no-explain", *options)

    def compiled(self, name: str, trace: str) -> Path:
        """The report of the folder of a kernel in CUDA, with a trace that was recorded of it."""
        folder = self.folder / f"{trace}.compiled"
        if not folder.exists():
            options = ["--machine", "h200", "--emit", "cuda", "--trace", "--no-assemble", "-o", str(folder)]
            run(["compile", str(EXAMPLES / f"{name}.ttir"), *options], self.folder / "cache")
            shutil.copy(TRACES / f"{trace}.json", folder / "trace.json")
        return self.of(trace, str(folder), "--no-explain")

    def assembled(self, name: str, cycles: int, stores: int, loads: int) -> Path:
        """The report of the folder of a kernel in Gluon, as if it were assembled with this many bytes of spills.

        The numbers are those that a machine with Triton gives; here there is none.
        """
        folder = self.folder / f"{name}.assembled"
        if not folder.exists():
            options = ["--machine", "h200", "--no-assemble", "-o", str(folder)]
            run(["compile", str(EXAMPLES / f"{name}.ttir"), *options], self.folder / "cache")
            file = folder / "kernel.json"
            kernel = json.loads(file.read_text())
            kernel["simulated"]["sass"] = [cycles]
            spills = [{"kind": "spilled", "message": f"{stores} bytes of spill stores"}] if stores else []
            kernel["assembly"] = {
                "registers": 168, "spill_stores": stores, "spill_loads": loads,
                "shared_memory": 215192, "findings": spills,
            }  # fmt: skip
            file.write_text(json.dumps(kernel))
        return self.of(f"{name}.assembled", str(folder), "--no-explain")

    def picture(self, name: str, style: str) -> Path:
        """A picture of a kernel of `examples/` on an H200: `svg` or `graph-svg`."""
        path = self.folder / f"{name}.{style}.svg"
        if not path.exists():
            kernel = str(EXAMPLES / f"{name}.ttir")
            run(["report", kernel, "--machine", "h200", "--format", style, "-o", str(path)], self.folder / "cache")
        return path

    def graph(self, name: str, graph: dict, *options: str) -> Path:
        """The report of a loop graph."""
        source = self.folder / f"{name}.json"
        source.write_text(json.dumps(graph))
        return self.of(name, str(source), *options)

    def dataflow(self, nodes: int, letters: int = 0) -> Path:
        """The report of a schedule of a random dataflow graph, with names of at least N letters."""
        source = self.folder / f"dataflow-{nodes}.json"
        if not source.exists():
            spec = f"nodes={nodes},density={2.5 / nodes:.6f},back-edges=0,seed=7"
            limits = ["--time-limit", "10", "--quiet"]
            run(["gaus", "--random", spec, *limits, "--format", "json", "-o", str(source)], self.folder / "cache")
        if letters:
            source = longer(source, letters)
        return self.of(source.stem, str(source))
