"""Kernels of torch.compile under `twill_gpu.install`, without a GPU: Inductor is a stand-in of a few lines."""

import json
import sys
import types

import gemm_tma as gemm
import pytest
import triton
from test_activation import TRIALS, gpu, sides  # noqa: F401
from test_jit import TILES, gemm_arguments
from twill_gpu import activation, inductor
from twill_gpu.importing import AfterImport


class Result:
    """`CompileResult` of torch 2.11: its launchers find what launches among their globals."""

    def __init__(self, kernel):
        constexprs = dict.fromkeys(TILES, "constexpr")
        signature = {"a_desc": "tensordesc<fp16[128, 64]>", "b_desc": "tensordesc<fp16[128, 64]>", "c_desc": "tensordesc<fp16[128, 128]>"}
        self.kernel, self.compile_meta = kernel, {
            "device": 0, "device_type": "cuda", "cc": 90,
            "signature": {**signature, "K": "i32", **constexprs}, "constants": {(4 + i,): tile for i, tile in enumerate(TILES.values())},
        }

    def _get_arg_lists(self, arg_names, constexprs):
        return list(arg_names), list(arg_names), set()


class TritonCompileResult(Result):
    def make_launcher(self):
        names = self.kernel.src.fn.arg_names
        scope = {"runner": self.kernel.run, "function": self.kernel.function}
        exec(
            f"def launcher({', '.join(names)}, stream):\n"
            f"    runner(4, 3, 1, stream, function, None, None, None, None, {', '.join(names)})",
            scope,
        )
        return scope["launcher"]


class StaticTritonCompileResult(Result):
    def __init__(self, kernel, folder):
        super().__init__(types.SimpleNamespace(
            name="gemm_tma", hash="of it", arg_names=kernel.src.fn.arg_names, declared_constexprs=[4, 5, 6],
            full_constexprs=[4, 5, 6], run=lambda x, y, z, stream, *args: kernel.run(
                x, y, z, stream, kernel.function, None, None, None, None, *args
            ),
        ))
        (folder / "of it").mkdir()
        (folder / "of it" / "gemm_tma.ttir").write_text(kernel.asm["ttir"])
        options = {name: getattr(kernel.metadata, name) for name in ("num_warps", "num_stages", "num_ctas")}
        (folder / "of it" / "gemm_tma.json").write_text(json.dumps(options))

    def make_launcher(self):
        given = self.kernel.arg_names[:4]
        scope = {"runner": self.kernel.run}
        exec(
            f"def launcher({', '.join(self.kernel.arg_names)}, stream):\n"
            f"    runner(4, 3, 1, stream, {', '.join(given)})",
            scope,
        )
        scope["launcher"]._is_static = True
        return scope["launcher"]


class CachingAutotuner:
    def bench(self, launcher, *args):
        for _ in range(TRIALS):
            launcher(*args, stream=7)


@pytest.fixture
def heuristics(monkeypatch, tmp_path):
    """Inductor's module, there before anybody asks."""
    module = types.SimpleNamespace(
        TritonCompileResult=type("TritonCompileResult", (TritonCompileResult,), {}),
        StaticTritonCompileResult=type("StaticTritonCompileResult", (StaticTritonCompileResult,), {}),
        CachingAutotuner=type("CachingAutotuner", (CachingAutotuner,), {}),
        triton_cache_dir=lambda device: tmp_path,
        triton_hash_to_path_key=lambda key: key,
    )
    monkeypatch.setitem(sys.modules, inductor.HEURISTICS, module)
    runtime = types.SimpleNamespace(triton_heuristics=module)
    monkeypatch.setitem(sys.modules, "torch._inductor", types.SimpleNamespace(runtime=runtime))
    monkeypatch.setitem(sys.modules, "torch._inductor.runtime", runtime)
    return module


@pytest.fixture
def made(gpu, tensor):  # noqa: F811
    """What stock Triton compiled, before Twill is there."""
    compiled = triton.jit(gemm.gemm_tma.fn)[(4, 3)](*gemm_arguments(tensor), **TILES, num_warps=8)
    gpu.launched.clear()
    return compiled


def arguments(tensor):
    return [*gemm_arguments(tensor), *TILES.values()]


def test_launchers_launch_the_faster_kernel(gpu, tensor, heuristics, made):  # noqa: F811
    activation.install("wait")
    launcher = heuristics.TritonCompileResult(made).make_launcher()
    for _ in range(TRIALS + 20):
        launcher(*arguments(tensor), stream=7)
    assert len(gpu.launched) == TRIALS + 20, "each is launched once"
    assert sides(gpu)[0] == "stock" and set(sides(gpu)[-10:]) == {"twill"}
    (status,) = activation.status()
    assert (status.name, status.source, status.status, status.wins) == ("gemm_tma", "torch.compile", "scheduled", 1)
    # Another stream than the current one has the launch, too.
    launcher(*arguments(tensor), stream=8)
    assert (sides(gpu)[-1], gpu.launched[-1].stream, gpu.launched[-2].stream) == ("twill", 8, 7)
    activation.uninstall()
    launcher(*arguments(tensor), stream=7)
    assert sides(gpu)[-1] == "stock"
    again = heuristics.TritonCompileResult(made).make_launcher()
    again(*arguments(tensor), stream=7)
    assert sides(gpu)[-1] == "stock"


def test_static_launchers_find_the_ttir_in_tritons_cache(gpu, tensor, heuristics, made, tmp_path):  # noqa: F811
    activation.install("wait")
    result = heuristics.StaticTritonCompileResult(made, tmp_path)
    launcher = result.make_launcher()
    for _ in range(TRIALS + 20):
        launcher(*arguments(tensor), stream=7)
    assert len(gpu.launched) == TRIALS + 20 and set(sides(gpu)[-10:]) == {"twill"}
    # Gone: what there is no TTIR of is left as it is.
    (tmp_path / "of it" / "gemm_tma.ttir").unlink()
    gpu.launched.clear()
    launcher = result.make_launcher()
    launcher(*arguments(tensor), stream=7)
    assert sides(gpu) == ["stock"] and len(activation.status()) == 1


def test_the_file_that_inductor_writes_makes_no_other_kernel(gpu, tensor, heuristics, made, tmp_path):  # noqa: F811
    activation.install("wait")
    launcher = heuristics.TritonCompileResult(made).make_launcher()
    for _ in range(TRIALS + 2):
        launcher(*arguments(tensor), stream=7)
    activation.uninstall()
    # The next process finds kernel and choice.
    activation.install("frozen")
    result = heuristics.StaticTritonCompileResult(made, tmp_path)
    place = tmp_path / "of it" / "gemm_tma.ttir"
    assert "gemm_tma.py" in place.read_text()
    place.write_text(place.read_text().replace("gemm_tma.py", "cn4odkto.py"))
    launcher = result.make_launcher()
    gpu.launched.clear()
    for _ in range(2):
        launcher(*arguments(tensor), stream=7)
    assert sides(gpu) == ["twill", "twill"], activation.status()


def test_inductor_compares_its_configurations_without_twill(gpu, tensor, heuristics, made):  # noqa: F811
    activation.install("wait")
    launcher = heuristics.TritonCompileResult(made).make_launcher()
    heuristics.CachingAutotuner().bench(launcher, *arguments(tensor))
    assert set(sides(gpu)) == {"stock"} and not activation.status()


def test_launches_into_graphs_wait_until_all_is_settled(gpu, tensor, heuristics, made):  # noqa: F811
    activation.install("wait")
    launcher = heuristics.TritonCompileResult(made).make_launcher()
    gpu.capturing = True
    launcher(*arguments(tensor), stream=7)
    (status,) = activation.status()
    assert status.captured == 1 and "CUDA graphs" in status.reason
    gpu.capturing = False
    for _ in range(TRIALS + 2):
        launcher(*arguments(tensor), stream=7)
    gpu.capturing = True
    launcher(*arguments(tensor), stream=7)
    assert sides(gpu)[-1] == "twill"


def test_another_inductor_is_left_alone(gpu, heuristics, made, capsys):  # noqa: F811
    """Of a torch that is written in another way one line is said, and its launchers are its own."""
    activation.install("wait")
    result = heuristics.TritonCompileResult(made)
    result.compile_meta = {}
    kept = [result.make_launcher().__globals__["runner"] for _ in range(2)]
    assert kept == [made.run] * 2
    assert capsys.readouterr().err.count("torch.compile stay with stock Triton") == 1


class TestAfterImport:
    @pytest.fixture
    def module(self, tmp_path, monkeypatch):
        (tmp_path / "twill_waits_for_me.py").write_text("x = 1\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        yield "twill_waits_for_me"
        sys.modules.pop("twill_waits_for_me", None)

    def test_acts_when_it_was_imported(self, module):
        seen = []
        waiting = AfterImport(module, lambda one: seen.append(one.x))
        assert not seen
        __import__(module)
        assert seen == [1] and waiting not in sys.meta_path
        AfterImport(module, lambda one: seen.append(2))
        assert seen == [1, 2], "it is there"

    def test_forgets(self, module):
        seen = []
        AfterImport(module, seen.append).forget()
        __import__(module)
        assert not seen

    def test_no_such_module_is_the_importers_error(self):
        waiting = AfterImport("twill_has_no_such_module", print)
        with pytest.raises(ModuleNotFoundError):
            __import__("twill_has_no_such_module")
        waiting.forget()
