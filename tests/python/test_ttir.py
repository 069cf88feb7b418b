"""`FILE.py::KERNEL`: the TTIR of Python source, from what is said of its parameters on the command line or beside it."""

import os
import subprocess
import sys

import pytest
import triton
import twill_gpu
from conftest import ROOT
from twill_gpu.ttir import arguments_of, main, of_source, type_of

KERNEL = f"{ROOT}/examples/gemm_tma.py::gemm_tma"
TILE = "tensordesc<fp16[128, 64]>"
GIVEN = {"a_desc": TILE, "b_desc": TILE, "c_desc": "tensordesc<fp16[128, 128]>", "K": "4096"}
SIZES = {"BLOCK_M": "128", "BLOCK_N": "128", "BLOCK_K": "64"}

SOURCE = """
import triton
import triton.language as tl
import twill_gpu

print("imported")


{decorators}
def product(a_ptr, b_ptr, c_ptr, K, stride, BLOCK: tl.constexpr, SCALE: tl.constexpr = 2.0):
    rows = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK, BLOCK], dtype=tl.float32)
    for k in range(0, K, BLOCK):
        a = tl.load(a_ptr + rows[:, None] * stride + k + rows[None, :])
        total += tl.dot(a, tl.load(b_ptr + (k + rows[:, None]) * stride + rows[None, :])) * SCALE
    tl.store(c_ptr + rows[:, None] * stride + rows[None, :], total.to(tl.float16))
"""
EXAMPLE = '@twill_gpu.example(a_ptr="fp16[128, 128]", b_ptr="*fp16:16", c_ptr="fp16[128,128]", K=512, stride=128, BLOCK=64)'


def written(tmp_path, *decorators):
    path = tmp_path / "kernel_of_mine.py"
    path.write_text(SOURCE.format(decorators="\n".join([*decorators, "@triton.jit"])))
    return f"{path}::product"


@pytest.fixture(autouse=True)
def modules(monkeypatch):
    """Each test has a file of its own under the same name."""
    from twill_gpu.sweeping import command

    monkeypatch.setattr(command, "_modules", {})


def test_it_is_what_triton_makes_of_these_types():
    text = of_source(KERNEL, {**GIVEN, **SIZES})
    signature = {**{name: GIVEN[name] for name in ("a_desc", "b_desc", "c_desc")}, "K": "i32:16"}
    sizes = {name: int(size) for name, size in SIZES.items()}
    sys.path.insert(0, str(ROOT / "examples"))
    import gemm_tma

    from twill_gpu.front_end import ttir_of

    assert text == ttir_of(gemm_tma.gemm_tma, signature, sizes, None)[1]
    assert twill_gpu.schedule(text, "h200").ii == 512


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("fp16[128,128]", "*fp16:16"), ("bf16[]", "*bf16:16"), ("*fp16", "*fp16"), ("i32:16", "i32:16"), (TILE, TILE),
        (4096, "i32:16"), (7, "i32"), (2**31, "i64:16"), (0.5, "fp32"), (True, "i1"), (1, None), (None, None),
    ],
)  # fmt: skip
def test_types(value, kind):
    assert type_of("x", value) == kind


def test_a_type_that_is_none():
    with pytest.raises(twill_gpu.InputError, match=r"x=fp16\(128\): it is neither a tensor"):
        type_of("x", "fp16(128)")


class TestBeside:
    def test_an_example(self, tmp_path):
        text = of_source(written(tmp_path, EXAMPLE), {})
        assert "tensor<64x64xf16>" in text and "tt.divisibility = 16" in text

    def test_the_command_line_counts_more(self, tmp_path):
        assert "tensor<32x32xf16>" in of_source(written(tmp_path, EXAMPLE), {"BLOCK": "32"})

    def test_the_first_configuration_of_an_autotuner(self, tmp_path):
        tuned = "@triton.autotune([triton.Config({'BLOCK': 128}), triton.Config({'BLOCK': 64})], key=['K'])"
        example = EXAMPLE.replace(", BLOCK=64", "")
        assert "tensor<128x128xf16>" in of_source(written(tmp_path, example, tuned), {})

    def test_the_example_leaves_the_function_as_it_is(self):
        def function():
            return 1

        assert twill_gpu.example(x=1)(function) is function and function() == 1

    def test_defaults_of_parameters(self, tmp_path):
        from twill_gpu.ttir import _function

        function, beside = _function(written(tmp_path, EXAMPLE))
        signature, constexprs = arguments_of("f", function, beside)
        assert constexprs == {"BLOCK": 64, "SCALE": 2.0} and list(signature) == ["a_ptr", "b_ptr", "c_ptr", "K", "stride"]


class TestErrors:
    @pytest.mark.parametrize(
        ("place", "given", "match"),
        [
            (KERNEL, {"K": "16"}, "nothing is said of a_desc, b_desc, c_desc, BLOCK_M, BLOCK_N, BLOCK_K; give --arg a_desc"),
            (KERNEL, {"Q": "16"}, "has no parameter Q; it has a_desc"),
            ("absent.py::f", {}, "there is no file absent.py"),
            (f"{ROOT}/examples/gemm_tma.py::absent", {}, "has no absent"),
            (f"{ROOT}/examples/gemm_tma.py::gemm", {}, "it is no Triton function"),
            (KERNEL, {**GIVEN, **SIZES, "BLOCK_M": "96"}, "Triton makes no TTIR of it"),
        ],
    )
    def test_what_is_wrong_and_the_way_out(self, place, given, match):
        with pytest.raises(twill_gpu.InputError, match=match):
            of_source(place, given)


class TestCommand:
    def run(self, *words):
        return subprocess.run([sys.executable, "-m", "twill_gpu.ttir", *words], capture_output=True, text=True, timeout=900)

    def test_the_text_alone_is_printed(self, tmp_path):
        ran = self.run(written(tmp_path, EXAMPLE))
        assert ran.returncode == 0 and ran.stdout.startswith("#loc") and ran.stderr == "imported\n"

    def test_an_error_is_one_line(self, capsys):
        assert main([KERNEL, "--arg", "K"]) == 1
        assert capsys.readouterr().err == "error: --arg K: it should read NAME=VALUE, as in --arg q_ptr=fp16[128,128]\n"


    def test_the_command_of_the_package_asks_its_own_python(self, tmp_path):
        command = [sys.executable, "-m", "twill_gpu.command", "lower", written(tmp_path, EXAMPLE)]
        environment = {name: value for name, value in os.environ.items() if name != "TWILL_PYTHON"}
        ran = subprocess.run(command, capture_output=True, text=True, timeout=900, env={**environment, "PATH": str(tmp_path)})
        assert ran.returncode == 0 and "loop product" in ran.stdout, ran.stderr


class TestCall:
    PROGRAM = """
import sys
sys.path[:0] = {paths!r}
import triton
from conftest import FakeGpu
from test_launch import Tensor
triton.runtime.driver._active = FakeGpu()
from kernel_of_mine import product
def tensor(address):
    return Tensor([128, 128], "float16", address=address)
for block in (32, 64, 64):
    product[(1,)](tensor(1 << 20), tensor(2 << 20), tensor(3 << 20), 512, 128, BLOCK=block)
"""

    def test_the_specialisation_that_a_program_launches_most(self, tmp_path):
        place = written(tmp_path)
        script = tmp_path / "app.py"
        paths = [str(ROOT / "tests" / name) for name in ("python", "runtime")]
        script.write_text(self.PROGRAM.format(paths=paths))
        ran = TestCommand.run(self, place, "--call", str(script))
        assert ran.returncode == 0, ran.stderr
        assert "tensor<64x64xf16>" in ran.stdout and triton.__version__

    def test_a_program_that_launches_none(self, tmp_path):
        script = tmp_path / "app.py"
        script.write_text("raise SystemExit('no data here')")
        ran = TestCommand.run(self, written(tmp_path), "--call", str(script))
        assert ran.returncode == 1 and "does not launch product" in ran.stderr and "no data here" in ran.stderr
