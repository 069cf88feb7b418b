"""The package where neither Triton nor torch is installed: all can be read; calls name the package to install."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import twill_gpu
from twill_gpu import needs

ROOT = Path(__file__).resolve().parents[2]
TTIR = ROOT / "examples" / "gemm_tma.ttir"

BARE = """
import sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("triton", "torch"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NotInstalled())
import twill_gpu
"""


def printed(program, **more):
    """The output of a program in a Python that has neither."""
    command = [sys.executable, "-W", "error", "-c", BARE + program]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=more.get("cwd", ROOT / "examples"))
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


class TestLookedAt:
    def test_help(self):
        for program in ("help(twill_gpu)", "import runpy; sys.argv = ['pydoc', 'twill_gpu']; runpy.run_module('pydoc', run_name='__main__')"):
            text = printed(program)
            assert "by changing only the decorator" in text and "problem in" not in text
            assert [name for name in twill_gpu.__all__ if name not in text] == ["__version__"] and "VERSION" in text
            assert "schedule(what: " in text, "the signature is that of the call itself"

    def test_a_star(self):
        names = printed("from twill_gpu import *\nprint(*globals())").split()
        assert set(twill_gpu.__all__) <= set(names)

    def test_members(self):
        program = "import inspect\nfor name, value in inspect.getmembers(twill_gpu): print(name, getattr(value, '__module__', ''))"
        found = dict(line.partition(" ")[::2] for line in printed(program).splitlines())
        assert set(twill_gpu.__all__) <= set(found)
        assert found["jit"] == "twill_gpu.decorator" and found["JitKernel"] == "twill_gpu.jit_kernel"

    def test_completion(self):
        wanted = {"schedule", "Schedule", "ScheduledKernel"}
        program = "import rlcompleter\ncompleter = rlcompleter.Completer()\n"
        program += "print(*(completer.complete(f'twill_gpu.{start}', k) for start in ('s', 'S') for k in range(4)))"
        assert wanted <= {word.strip("(),.").removeprefix("twill_gpu.") for word in printed(program).split()}
        pytest.importorskip("jedi")
        program = "import jedi\nprint(*(one.name for one in jedi.Interpreter('twill_gpu.', [globals()]).complete()))"
        assert set(twill_gpu.__all__) <= set(printed(program).split())
        # Without running it, from its text alone.
        program = "import jedi\nprint(*(one.name for one in jedi.Script('import twill_gpu\\ntwill_gpu.').complete()))"
        assert set(twill_gpu.__all__) <= set(printed(program).split())

    def test_completion_in_ipython(self):
        pytest.importorskip("IPython")
        program = "from IPython.core.interactiveshell import InteractiveShell\nshell = InteractiveShell.instance()\n"
        program += "shell.user_ns['twill_gpu'] = twill_gpu\nimport warnings; warnings.simplefilter('ignore')\n"
        program += "print(*(one.text for one in shell.Completer.completions('twill_gpu.sche', 14)))"
        assert "schedule" in printed(program)


def test_version():
    declared = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert twill_gpu.__version__ == version("twill-gpu") == declared


def test_schedules_need_neither():
    program = f"found = twill_gpu.schedule({str(TTIR)!r}, 'h200'); print(found.ii, len(found.kernel_source) > 1000, found.svg()[:4])"
    assert printed(program).split() == ["512", "True", "<svg"]


class TestWhatIsMissing:
    NEEDS = {
        "jit": ("twill_gpu.jit(lambda x: None)", "twill_gpu.jit needs Triton"),
        "schedule": ("twill_gpu.schedule(lambda x: None, signature={'x': 'i32'})", "a Triton function needs Triton"),
        "fit": ("twill_gpu.fit(lambda x: None, signature={'x': 'i32'})", "a Triton function needs Triton"),
        "sweep": ("twill_gpu.sweep(lambda x: None, {'X': [1]}, signature={'x': 'i32'})", "a Triton function needs Triton"),
        "measure": ("twill_gpu.sweep(lambda x: None, measure=1, arguments=print)", "measure needs Triton"),
        "prune_configs": ("twill_gpu.prune_configs([], {})", "prune_configs needs Triton"),
        "compile": (f"twill_gpu.schedule({str(TTIR)!r}).compile()", "machine code .* needs Triton"),
    }

    @pytest.mark.parametrize("call", NEEDS)
    def test_triton(self, call):
        program, why = self.NEEDS[call]
        said = printed(f"try: {program}\nexcept ImportError as error: print(type(error).__name__, error)")
        assert said.startswith("MissingError") and re.search(why, said)
        assert f"pip install '{needs.TRITON_REQUIREMENT}'" in said and "twill-gpu[gluon]" in said

    def test_torch(self):
        program = "try: twill_gpu.custom_op('a::b', mutates_args=())(print)\nexcept twill_gpu.MissingError as error: print(error)"
        said = printed(program)
        assert said.startswith("twill_gpu.custom_op needs torch, which is not installed: pip install 'twill-gpu[gluon]'")

    def test_another_version(self, monkeypatch):
        monkeypatch.setattr("triton.__version__", "3.5.1")
        with pytest.raises(twill_gpu.MissingError, match=r"needs Triton 3.6 to 3.9, but 3.5.1 is installed: pip install 'twill-gpu\[gluon\]'"):
            twill_gpu.jit(lambda x: None)
        for version in ("3.10.0", "3.60.0", "4.0.0", "3", "unknown"):
            monkeypatch.setattr("triton.__version__", version)
            with pytest.raises(twill_gpu.MissingError, match=f"{version} is installed"):
                needs.triton("this")
        for version in ("3.6.0", "3.7.1", "3.8.0+git0123", "3.9.0"):
            monkeypatch.setattr("triton.__version__", version)
            assert needs.triton("this").__version__ == version

    def test_the_version_is_that_of_the_package(self):
        extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["gluon"]
        assert needs.TRITON_REQUIREMENT in extra
