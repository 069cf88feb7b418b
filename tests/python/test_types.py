"""Type checkers read the package, and programs that use it, without complaint; and find what is wrong in one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import twill_gpu

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAM = HERE / "typed_program.py"

WRONG = """
import twill_gpu

twill_gpu.jit(on_failure="ignore")  # 1
twill_gpu.schedule("gemm", machine=200)  # 2
twill_gpu.schedule("gemm").interval  # 3
twill_gpu.nothing  # 4
number: str = twill_gpu.schedule("gemm").ii  # 5
"""


@pytest.fixture(scope="module")
def check(tmp_path_factory):
    """Runs a type checker, which may load nothing over the network: there is no way out."""
    scratch = tmp_path_factory.mktemp("types")
    environment = {**os.environ, "HOME": str(scratch), "HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}

    def check(checker, *words):
        pytest.importorskip(checker)
        more = ["--strict", "--cache-dir", str(scratch)] if checker == "mypy" else ["--pythonpath", sys.executable]
        command = [sys.executable, "-m", checker, *more, *map(str, words)]
        ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
        return ran.returncode, ran.stdout + ran.stderr

    return check


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_the_package(check, checker):
    code, said = check(checker, ROOT / "python" / "twill_gpu")
    assert code == 0, said


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_program(check, checker, tmp_path):
    code, said = check(checker, PROGRAM)
    assert code == 0, said
    (tmp_path / "wrong.py").write_text(WRONG)
    code, said = check(checker, tmp_path / "wrong.py")
    assert code == 1
    for line, text in enumerate(WRONG.splitlines(), 1):
        assert (f"wrong.py:{line}:" in said) == ("  # " in text), said


def test_the_stub_has_all_that_the_extension_has():
    from twill_gpu import _twill

    stub = (Path(twill_gpu.__file__).parent / "_twill.pyi").read_text()
    names = {name for name in dir(_twill) if not name.startswith("__")}
    assert {name for name in names if not any(one in stub for one in (f"def {name}(", f"class {name}:", f"\n{name}: "))} == set()
    assert (Path(twill_gpu.__file__).parent / "py.typed").exists()
