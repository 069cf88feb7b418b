"""Which ptxas assembles kernels: torch's, which Inductor names while it compiles, is none that anybody has chosen."""

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

import triton
from twill_gpu import toolchain

SOURCE = Path(__file__).parents[2] / "crates/twill-backend/src/package/gluon/ptxas.py"
OWN = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas"


@pytest.fixture
def chosen(monkeypatch):
    """The choice of a kernel's folder, for any version that is told to be sound."""
    spec = importlib.util.spec_from_file_location("twill_ptxas", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Packages of Python may have a newer one.
    monkeypatch.setattr(sys, "path", [])
    return lambda: (module.chosen(90, lambda version, arch: True), module.ptx_version(module.tritons(90), 90))


def named(folder, monkeypatch):
    """A copy of Triton's ptxas, named by the variable."""
    folder.mkdir(parents=True)
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(shutil.copy(OWN, folder)))
    return folder / "ptxas"


def test_torchs_own_is_as_none(chosen, tmp_path, monkeypatch):
    monkeypatch.delenv("TRITON_PTXAS_PATH", raising=False)
    before = chosen(), toolchain.described()
    named(tmp_path / "torch" / "bin", monkeypatch)
    (tmp_path / "torch" / "__init__.py").touch()
    assert (chosen(), toolchain.described()) == before


@pytest.mark.parametrize("place", ["mine", "torch/bin", "pytorch/bin"])
def test_anybody_elses_is_taken(chosen, tmp_path, monkeypatch, place):
    """An environment may be called torch."""
    path = named(tmp_path / place, monkeypatch)
    assert chosen()[0].path == str(path)
    assert str(path) in toolchain.described()
