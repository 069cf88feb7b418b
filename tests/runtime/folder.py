"""Folders with a generated kernel, made from the one here, and the runtime that is written next to every kernel."""

import importlib.util
import json
import shutil
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "crates/twill-backend/src/package"
WAIT = "        acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))\n"

_side_by_side = tempfile.TemporaryDirectory()
RUNTIME = Path(_side_by_side.name)
"""What is written next to a kernel in Gluon."""
for _file in (*PACKAGE.glob("*.py"), *(PACKAGE / "gluon").glob("*.py")):
    shutil.copy(_file, RUNTIME)


def runtime(name):
    """launch.py, plan.py or assemble.py as a module."""
    spec = importlib.util.spec_from_file_location(f"runtime_{name}", RUNTIME / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def variant(folder, *replacements, **fields):
    """The GEMM with texts of its source replaced, and with other fields of kernel.json."""
    folder = Path(folder)
    for name in ("kernel.py", "kernel.json"):
        shutil.copy(HERE / "gemm" / name, folder)
    text = (folder / "kernel.py").read_text()
    for old, new in replacements:
        assert old in text, old
        text = text.replace(old, new)
    (folder / "kernel.py").write_text(text)
    kernel = json.loads((folder / "kernel.json").read_text())
    kernel.update(fields)
    (folder / "kernel.json").write_text(json.dumps(kernel))
    return folder
