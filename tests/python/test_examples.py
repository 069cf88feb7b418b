"""Scripts and notebooks of examples/ run, as they are, without a GPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted((EXAMPLES / "scripts").glob("*.py"))
NOTEBOOKS = sorted((EXAMPLES / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script(script, tmp_path):
    pytest.importorskip("triton")
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path, env=dict(os.environ))
    assert ran.returncode == 0, ran.stderr
    # Titles of tables may stand in two lines.
    assert any(word in ran.stdout for word in ("I = ", "I >= ", "I >=:"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(notebook):
    """Every cell runs, and says what it said when it was saved."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    saved = nbformat.read(notebook, as_version=4)
    fresh = nbformat.read(notebook, as_version=4)
    nbclient.NotebookClient(fresh, timeout=900, resources={"metadata": {"path": str(notebook.parent)}}).execute()
    for one, other in zip(saved.cells, fresh.cells):
        assert printed(one) == printed(other), one.source
        assert pictures(one) == pictures(other), one.source


def pictures(cell):
    """The pictures of a cell."""
    return [output.data["image/svg+xml"] for output in cell.get("outputs", []) if "image/svg+xml" in output.get("data", {})]


def printed(cell):
    """The output of a cell, without times."""
    outputs = cell.get("outputs", [])
    text = "".join(output.get("text", output.get("data", {}).get("text/plain", "")) for output in outputs)
    return [line for line in text.splitlines() if not line.rstrip().endswith((" ms", " µs", " s"))]
