"""`@twill_gpu.jit` without a GPU: from the Python of a kernel to machine code and to the launch."""

import subprocess
import sys
import threading
import warnings
from pathlib import Path

import attention_forward as attention
import gemm_tma as gemm
import pytest
import triton
import triton.language as tl
import twill_gpu
from fixtures import fixtures
from torch_clock import Clock
from triton.runtime.jit import MockTensor
from triton.tools.tensor_descriptor import TensorDescriptor
from twill_gpu import backend, gpu, options
from twill_gpu.contest import STOCK, TWILL

TILES = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
SCALE = tl.constexpr(2)


def gemm_arguments(tensor, k=256, **more):
    """Descriptors for a product of [512, k] and [384, k], and K."""
    matrices = tensor([512, k], address=1 << 20), tensor([384, k], address=2 << 20), tensor([512, 384], address=3 << 20)
    blocks = [128, 64], [128, 64], [128, 128]
    return [TensorDescriptor.from_tensor(*one, **more) for one in zip(matrices, blocks)] + [k]


@twill_gpu.jit
def doubled(x):
    return x * SCALE


@twill_gpu.jit
def calls_another(a_desc, b_desc, c_desc, K, step, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M * step
    column = tl.program_id(1) * BLOCK_N
    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        acc = tl.dot(a_desc.load([row, k]), b_desc.load([column, k]).T, acc)
    c_desc.store([row, column], doubled(acc).to(tl.float16))


@twill_gpu.jit
def larger(a, b):
    return tl.maximum(a, b)


@twill_gpu.jit
def reduces(x_ptr, y_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(y_ptr, tl.reduce(x, 0, larger.fn))


class TestScheduled:
    def test_gemm_from_python_to_launch(self, fake_gpu, tensor, compiled):
        kernel = twill_gpu.jit(gemm.gemm_tma.fn)
        made = kernel[(4, 3)](*gemm_arguments(tensor), **TILES, num_warps=8, num_stages=3)
        assert isinstance(made, twill_gpu.ScheduledKernel)
        assert (made.machine, made.architecture, made.info["status"]) == ("h200", "sm_90a", "optimal in the model of h200: proved")
        (launched,) = fake_gpu.launched
        assert launched.name == "gemm_tma"
        by_name = dict(zip(made.metadata["arguments"], launched.arguments))
        a = by_name["a_desc_64x64"]
        assert (a.block_shape, list(a.shape), list(a.strides)) == ([64, 64], [512, 256], [256, 1])
        assert (by_name["K"], by_name["programs_x"], by_name["programs_y"], by_name["programs_z"]) == (256, 4, 3, 1)

        again = kernel[lambda meta: (512 // meta["BLOCK_M"], 3)](*gemm_arguments(tensor), **TILES, num_warps=4)
        assert again is made and compiled == ["gemm_tma"]
        assert fake_gpu.launched[1].arguments[3:] == launched.arguments[3:]
        # K that is no multiple of 16 is another specialisation, and so is K = 1.
        assert kernel[(4, 3)](*gemm_arguments(tensor)[:3], 250, **TILES) is not made
        assert compiled == ["gemm_tma", "gemm_tma"]

    def test_machine_code(self, fake_gpu, tensor):
        kernel = twill_gpu.jit(gemm.gemm_tma.fn)
        made = kernel.warmup(*gemm_arguments(tensor), **TILES, grid=(4, 3))
        assert fake_gpu.launched == []
        assert made.asm["cubin"].startswith(b"\x7fELF")
        assert "wgmma.mma_async" in made.asm["ptx"] and "tt.descriptor_load" in made.asm["ttir"]
        assert "def gemm_tma(" in made.asm["gluon"]
        assert made.metadata["assembly"]["spill_stores"] == 0
        report = subprocess.run(
            [sys.executable, "-B", "assemble.py"], cwd=made.folder, capture_output=True, text=True, check=True
        )
        assert "gemm_tma for sm_90a" in report.stdout

    def test_in_cuda(self, fake_gpu, fake_driver, tensor, monkeypatch):
        kernel = twill_gpu.jit(options={"emit": "cuda", "wave_sync": True})(gemm.gemm_tma.fn)
        made = kernel.warmup(*gemm_arguments(tensor), **TILES, grid=(4, 3))
        assert made.language == "cuda" and "gluon" not in made.asm
        assert 'extern "C" __global__' in made.asm["cuda"] and "twill_wave_sync.cuh" in made.asm["cuda"]
        assert made.asm["cubin"].startswith(b"\x7fELF") and "wgmma.mma_async" in made.asm["ptx"]

        monkeypatch.setattr(made._module.planning, "driver", fake_driver)
        assert kernel[(4, 3)](*gemm_arguments(tensor), **TILES) is made
        assert (made.n_regs, made.n_spills) == (168, 0)
        # Triton launches nothing, and each matrix has a tensor map of boxes of 64 columns.
        assert fake_gpu.launched == [] and len(fake_driver.launched) == 1
        assert fake_driver.launched[0][:4] == (b"gemm_tma", 12, 1, 1)
        assert sorted(address for address, _ in fake_driver.encoded) == [1 << 20, 2 << 20, 3 << 20]
        assert all(box[0] == 64 for _, box in fake_driver.encoded)
        # As a thread sees it that has done nothing with CUDA so far: other memory, and then the same.
        for at in (4, 2, 2):
            fake_driver.context = 0
            arguments = gemm_arguments(lambda shape, address, at=at: tensor(shape, address=address + (at << 28)))
            kernel[(4, 3)](*arguments, **TILES)
            assert fake_driver.context == "primary"
        assert len(fake_driver.launched) == 4

    def test_a_machine_that_is_not_here(self, tensor, monkeypatch):
        def no_driver(_):
            raise RuntimeError("0 active drivers")

        monkeypatch.setattr(triton.runtime.driver, "_active", None)
        monkeypatch.setattr(type(triton.runtime.driver), "default", property(no_driver))
        half, single = tensor([1]).dtype, tensor([1], "float32").dtype

        def tiles():
            return TensorDescriptor(MockHalf(half, [4096, 128]), [4096, 128], [128, 1], [128, 128])

        constants = {"HEAD_DIM": 128, "BLOCK_M": 128, "BLOCK_N": 128, "CAUSAL": False}
        arguments = (tiles(), tiles(), tiles(), tiles(), MockTensor(single), 0.5, 4096)
        kernel = twill_gpu.jit(machine="h200")(attention.attention_forward.fn)
        made = kernel.warmup(*arguments, **constants, grid=(32, 1))
        # A few bytes outside of loops are ptxas' own, of some versions.
        findings = [found["kind"] for found in made.metadata["assembly"]["findings"]]
        assert made.info["ii"] == 2048 and set(findings) <= {"spilled_outside"}
        with pytest.raises(RuntimeError, match="0 active drivers"):
            kernel[(32, 1)](*arguments, **constants)
        with pytest.raises(RuntimeError, match="0 active drivers"):
            twill_gpu.jit(attention.attention_forward.fn).warmup(*arguments, **constants, grid=(32, 1))
        # There is no stock Triton to fall back to.
        no_loop = twill_gpu.jit(machine="h200")(fixtures.no_loop.fn)
        with pytest.raises(twill_gpu.TwillError, match="has no loop"):
            no_loop.warmup(*[MockTensor(single)] * 3, 1000, BLOCK=1024, grid=(1,))

    def test_descriptors_keep_the_users_extents(self, fake_gpu, tensor):
        kernel = twill_gpu.jit(gemm.gemm_tma.fn)
        a, b, c, k = gemm_arguments(tensor)
        view = TensorDescriptor(a.base, [500, 256], [512, 1], [128, 64])
        made = kernel[(4, 3)](view, b, c, k, **TILES)
        a = dict(zip(made.metadata["arguments"], fake_gpu.launched[0].arguments))["a_desc_64x64"]
        assert (a.data_ptr(), list(a.shape), list(a.strides)) == (1 << 20, [500, 256], [512, 1])
        assert a.block_shape == [64, 64]

    def test_integers_that_are_one(self, fake_gpu, tensor, compiled):
        made = [calls_another[(4, 3)](*gemm_arguments(tensor), step, **TILES) for step in (1, 2, 1)]
        assert made[0] is made[2] and made[0] is not made[1]
        assert "step" not in made[0].parameters and "step" in made[1].parameters

    def test_hooks_run_once_before_each_launch(self, fake_gpu, tensor):
        kernel, seen = twill_gpu.jit(gemm.gemm_tma.fn), []
        kernel.add_pre_run_hook(lambda *args, **named: seen.append((len(args), named["BLOCK_M"])))
        for _ in range(2):
            kernel[(4, 3)](*gemm_arguments(tensor), **TILES)
        assert seen == [(4, 128)] * 2

    def test_options_that_are_no_plain_values(self, fake_gpu, tensor, compiled):
        kernel = twill_gpu.jit(gemm.gemm_tma.fn)
        made = [kernel[(4, 3)](*gemm_arguments(tensor), **TILES, extern_libs={}) for _ in range(2)]
        assert made[0] is made[1] and len(fake_gpu.launched) == 2 and compiled == ["gemm_tma"]

    def test_threads_make_it_once(self, fake_gpu, tensor, compiled):
        kernel, made, together = twill_gpu.jit(gemm.gemm_tma.fn), [], threading.Barrier(4)

        def first_call():
            together.wait()
            made.append(kernel[(4, 3)](*gemm_arguments(tensor), **TILES))

        threads = [threading.Thread(target=first_call) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert len(set(made)) == 1 and len(made) == 4 and compiled == ["gemm_tma"]


class MockHalf(MockTensor):
    """A mock tensor that descriptors take."""

    device = None


class TestAsATritonFunction:
    def test_what_it_lacks_is_the_functions(self):
        kernel = twill_gpu.jit(do_not_specialize=["K"])(gemm.gemm_tma.fn)
        assert isinstance(kernel.fn, triton.JITFunction) and not isinstance(kernel, triton.JITFunction)
        assert kernel.arg_names == gemm.gemm_tma.arg_names and kernel.cache_key == kernel.fn.cache_key
        assert kernel.params[3].do_not_specialize and kernel.__name__ == "gemm_tma"
        with pytest.raises(AttributeError, match="nonsense"):
            kernel.nonsense
        with pytest.raises(RuntimeError, match=r"launch it with gemm_tma\[grid\]"):
            kernel(1)

    def test_autotune(self, fake_gpu, tensor, compiled):
        times, tried = iter([2.0, 1.0, 3.0]), []

        def do_bench(call, quantiles):
            call()
            tried.append(fake_gpu.launched[-1])
            return [next(times)] * 3

        choices = (4, None), (8, None), (8, 200)
        configs = [triton.Config(TILES, num_warps=warps, maxnreg=most) for warps, most in choices]
        kernel = triton.autotune(configs, key=["K"], do_bench=do_bench)(twill_gpu.jit(gemm.gemm_tma.fn))
        made = kernel[lambda meta: (512 // meta["BLOCK_M"], 3)](*gemm_arguments(tensor))
        assert isinstance(made, twill_gpu.ScheduledKernel) and kernel.best_config is configs[1]
        # Warps and registers are the schedule's, whatever the configuration says: one kernel.
        assert len(tried) == 3 and len(fake_gpu.launched) == 4 and compiled == ["gemm_tma"]
        kernel[(4, 3)](*gemm_arguments(tensor))
        assert len(fake_gpu.launched) == 5

    def test_heuristics(self, fake_gpu, tensor):
        tiles = {"BLOCK_K": lambda meta: 64, "BLOCK_N": lambda meta: 128}
        kernel = triton.heuristics(tiles)(twill_gpu.jit(gemm.gemm_tma.fn))
        made = kernel[(4, 3)](*gemm_arguments(tensor), BLOCK_M=128)
        assert made.info["ii"] == 512

    def test_called_by_another_kernel(self, fake_gpu, tensor):
        made = calls_another.warmup(*gemm_arguments(tensor), 2, **TILES, grid=(4, 3))
        assert "tt.call" not in made.ttir and "doubled" not in made.metadata["arguments"]
        assert [name for name, _ in calls_another.used_global_vals] == ["SCALE"]
        before, callee = calls_another.cache_key, calls_another.fn
        hashes = callee.hash, doubled.fn.hash
        try:
            callee.hash, doubled.fn.hash = None, "something else"
            assert calls_another.cache_key != before
        finally:
            callee.hash, doubled.fn.hash = hashes

    def test_handed_to_a_reduction(self, fake_gpu, tensor):
        with pytest.warns(twill_gpu.TwillWarning, match="reduces .* has no loop"):
            reduces[(1,)](tensor([1024], "float32"), tensor([1], "float32"), BLOCK=1024)
        assert len(fake_gpu.launched) == 1

    def test_launches_alternate_until_their_times_decide(self, fake_gpu, tensor, monkeypatch):
        clock = Clock()
        monkeypatch.setattr(sys.modules["torch"].cuda, "Event", lambda enable_timing: clock.event(), raising=False)
        monkeypatch.setattr(sys.modules["torch"].cuda, "is_current_stream_capturing", lambda: False, raising=False)
        both, ours = twill_gpu.jit(gemm.gemm_tma.fn), twill_gpu.jit(on_failure="error")(gemm.gemm_tma.fn)
        made = [type(both[(4, 3)](*gemm_arguments(tensor), **TILES)).__name__ for _ in range(16)]
        assert made[:2] == ["ScheduledKernel", "CompiledKernel"] and made[14:] == ["ScheduledKernel"] * 2
        assert all(sorted(made[k : k + 2]) == sorted(made[:2]) for k in range(0, 14, 2))
        assert [one.winner for one in both.contests] == [TWILL]
        assert {type(ours[(4, 3)](*gemm_arguments(tensor), **TILES)).__name__ for _ in range(4)} == {"ScheduledKernel"}
        assert ours.contests == []

    def test_a_global_that_changed(self, fake_gpu, tensor, monkeypatch):
        calls_another[(4, 3)](*gemm_arguments(tensor), 2, **TILES)
        monkeypatch.setitem(globals(), "SCALE", tl.constexpr(5))
        with pytest.raises(RuntimeError, match="Global variable SCALE has changed"):
            calls_another[(4, 3)](*gemm_arguments(tensor), 2, **TILES)

    def test_arguments_that_are_wrong(self, fake_gpu, tensor):
        kernel = twill_gpu.jit(gemm.gemm_tma.fn)
        with pytest.raises(KeyError, match="colour was specified but unrecognised"):
            kernel[(4, 3)](*gemm_arguments(tensor), **TILES, colour="red")
        with pytest.raises(TypeError, match="missing 1 required positional argument"):
            kernel[(4, 3)](*gemm_arguments(tensor)[:3], **TILES)
        with pytest.raises(ValueError, match="grid must be"):
            kernel[(-1,)](*gemm_arguments(tensor), **TILES)

    def test_interpreter(self, monkeypatch):
        pytest.importorskip("numpy")
        with triton.knobs.runtime.scope():
            triton.knobs.runtime.interpret = True
            kernel = twill_gpu.jit(machine="h200")(gemm.gemm_tma.fn)
        assert type(kernel).__name__ == "InterpretedFunction"


class TestFallback:
    LINE = next(
        number
        for number, text in enumerate(Path(fixtures.__file__).read_text().splitlines(), 1)
        if text.startswith("def no_loop")
    )

    def launch(self, kernel, tensor, length=1024, **named):
        vectors = [tensor([length], "float32", address=one << 20) for one in (1, 2, 3)]
        return kernel[(1,)](*vectors, length, BLOCK=1024, **named)

    def test_it_warns_once_and_runs_stock(self, fake_gpu, tensor, compiled):
        kernel, hooked = twill_gpu.jit(fixtures.no_loop.fn), []
        kernel.add_pre_run_hook(lambda *args, **named: hooked.append(named["BLOCK"]))
        with pytest.warns(twill_gpu.TwillWarning) as warned:
            for _ in range(3):
                compiled_kernel = self.launch(kernel, tensor, num_warps=8)
        (warning,) = warned
        assert (warning.filename, warning.lineno) == (fixtures.__file__, self.LINE)
        said = str(warning.message)
        assert said.startswith(f"no_loop ({fixtures.__file__}:{self.LINE}): kernel `no_loop` has no loop with tile ")
        assert "Stock Triton runs it instead" in said and 'on_failure="error"' in said
        assert [(one.name, one.num_warps) for one in fake_gpu.launched] == [("no_loop", 8)] * 3
        assert isinstance(compiled_kernel, triton.compiler.CompiledKernel) and hooked == [1024] * 3
        assert compiled == ["no_loop"]
        with pytest.warns(twill_gpu.TwillWarning):
            self.launch(kernel, tensor, length=1000)

    def test_it_raises_if_told(self, fake_gpu, tensor, compiled):
        kernel = twill_gpu.jit(on_failure="error")(fixtures.no_loop.fn)
        for _ in range(2):
            with pytest.raises(twill_gpu.TwillError, match=rf"no_loop \(.*fixtures.py:{self.LINE}\): .* has no loop"):
                self.launch(kernel, tensor)
        assert fake_gpu.launched == [] and compiled == ["no_loop"]

    def test_no_schedule_in_time(self, fake_gpu, tensor):
        kernel = twill_gpu.jit(options={"work_limit": 1})(gemm.gemm_tma.fn)
        with pytest.warns(twill_gpu.TwillWarning, match="no schedule was found in time; a longer time_limit"):
            kernel[(4, 3)](*gemm_arguments(tensor), **TILES)

    def test_descriptors_that_cannot_be_made_again(self, fake_gpu, tensor):
        kernel, hooked = twill_gpu.jit(gemm.gemm_tma.fn), []
        kernel[(4, 3)](*gemm_arguments(tensor), **TILES)
        kernel.add_pre_run_hook(lambda *args, **named: hooked.append(named["BLOCK_M"]))
        with pytest.warns(twill_gpu.TwillWarning, match="a_desc: must be padded with zero, not with nan") as warned:
            for _ in range(2):
                made = kernel[(4, 3)](*gemm_arguments(tensor, padding="nan"), **TILES)
        assert len(warned) == 1 and isinstance(made, triton.compiler.CompiledKernel) and hooked == [128, 128]
        stock = fake_gpu.launched[-1]
        assert (stock.grid, stock.arguments[0].padding) == ((4, 3, 1), "nan")
        kernel[(4, 3)](*gemm_arguments(tensor), **TILES)
        assert fake_gpu.launched[-1].arguments[0].padding == "zero"
        strict = twill_gpu.jit(on_failure="error")(gemm.gemm_tma.fn)
        with pytest.raises(twill_gpu.TwillError, match="must be padded with zero"):
            strict[(4, 3)](*gemm_arguments(tensor, padding="nan"), **TILES)

    def test_what_only_stock_triton_can_do(self, fake_gpu, tensor, compiled):
        kernel = twill_gpu.jit(gemm.gemm_tma.fn)
        with pytest.warns(twill_gpu.TwillWarning, match="launch_cooperative_grid=True is only for stock Triton"):
            kernel[(4, 3)](*gemm_arguments(tensor), **TILES, launch_cooperative_grid=True)
        assert compiled == []

    def test_tuples(self, fake_gpu, tensor):
        @twill_gpu.jit
        def copies(pair, BLOCK: tl.constexpr):
            at = tl.arange(0, BLOCK)
            tl.store(pair[1] + at, tl.load(pair[0] + at))

        with pytest.warns(twill_gpu.TwillWarning, match="a tuple is given for pair; give its parts as parameters"):
            copies[(1,)]((tensor([128], "float32"), tensor([128], "float32")), BLOCK=128)
        assert len(fake_gpu.launched) == 1

    def test_a_machine_of_another_architecture(self, fake_gpu, tensor):
        kernel = twill_gpu.jit(machine="b200")(gemm.gemm_tma.fn)
        with pytest.warns(twill_gpu.TwillWarning, match="'b200' is sm_100a, but this GPU is sm_90; leave machine out"):
            kernel[(4, 3)](*gemm_arguments(tensor), **TILES)
        assert fake_gpu.launched[0].grid == (4, 3, 1)

    def test_ctrl_c_is_no_failure(self, fake_gpu, tensor, monkeypatch):
        kernel = twill_gpu.jit(gemm.gemm_tma.fn)

        def interrupted(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(backend, "compile_kernel", interrupted)
            with pytest.raises(KeyboardInterrupt):
                kernel[(4, 3)](*gemm_arguments(tensor), **TILES)
        assert isinstance(kernel[(4, 3)](*gemm_arguments(tensor), **TILES), twill_gpu.ScheduledKernel)

    def test_errors_in_the_kernel_are_tritons(self, fake_gpu, tensor):
        @twill_gpu.jit
        def wrong(x_ptr):
            tl.store(x_ptr, tl.nothing)

        with pytest.raises(triton.CompilationError):
            wrong[(1,)](tensor([16], "float32"))


class TestArguments:
    def test_machines(self, fake_gpu):
        assert [gpu.machine_of(architecture) for architecture in (80, 90, 100)] == ["a100", "h200", "b200"]
        with pytest.raises(twill_gpu.TwillError, match="no machine is known for sm_75"):
            gpu.machine_of(75)

    def test_options(self):
        with pytest.raises(TypeError, match="there is no option 'rings'"):
            twill_gpu.jit(options={"rings": 3})
        with pytest.raises(TypeError, match="colour"):
            twill_gpu.jit(colour="red")(gemm.gemm_tma.fn)
        given = {"persistent": False, "trip_counts": [4, 1], "no_contract": True, "separate_loops": False}
        given["time_limit"] = None
        assert options.checked(given) == {name: value for name, value in given.items() if name != "time_limit"}

    def test_importing_costs_no_triton_and_no_torch(self):
        text = "import sys, twill_gpu; twill_gpu.TwillError; assert not {'triton', 'torch'} & set(sys.modules)"
        folder = Path(twill_gpu.__file__).parents[1]
        subprocess.run([sys.executable, "-c", text], check=True, cwd=folder)
