"""The fit of configurations, and those that an autotuner leaves out."""

import json
from pathlib import Path

import pytest
import twill_gpu

ROOT = Path(__file__).resolve().parents[2]
triton = pytest.importorskip("triton")
import gemm_tma as gemm  # noqa: E402
import triton.language as tl  # noqa: E402


def gemm_types(rows, columns, depth):
    a, b, c = ((rows, depth), (columns, depth), (rows, columns))
    types = {f"{name}_desc": f"tensordesc<fp16[{shape[0]}, {shape[1]}]>" for name, shape in zip("abc", (a, b, c))}
    return {**types, "K": "i32:16"}, {"BLOCK_M": rows, "BLOCK_N": columns, "BLOCK_K": depth}


def test_what_a_configuration_needs():
    found = twill_gpu.fit(gemm.gemm_tma, "h200", *gemm_types(128, 256, 64))
    assert found and found.verdict == "fits" and found.reason is None
    shared = found.needs["shared_memory"]
    assert 0 < shared.required <= shared.available == 232448
    # Two loads, and nothing can be larger than the tile of B.
    assert shared.largest[0].amount >= 256 * 64 * 2 and shared.largest[0].source[0].endswith("gemm_tma.py")
    (bound,) = found.bounds
    assert bound.flop == 2 * 128 * 256 * 64 and bound.why["kind"] == "resource"
    assert bound.interval == twill_gpu.schedule(gemm.gemm_tma, "h200", *gemm_types(128, 256, 64)).ii
    assert json.loads(found.to_json())["verdict"] == "fits"


def test_one_that_is_too_large():
    found = twill_gpu.fit(gemm.gemm_tma, "h200", *gemm_types(256, 256, 256))
    assert not found and found.verdict == "does_not_fit"
    assert found.reason and found.way_out and repr(found).startswith("Fit(does not fit: ")
    small = twill_gpu.Machine("h200").with_numbers("small", {"memory.shared_bytes": 40000})
    found = twill_gpu.fit(gemm.gemm_tma, small, *gemm_types(128, 128, 64))
    assert (found.verdict, found.resource) == ("does_not_fit", "shared_memory") and found.culprit


def test_errors():
    with pytest.raises(twill_gpu.InputError, match="loop graph"):
        twill_gpu.fit("gemm")
    with pytest.raises(twill_gpu.InputError, match="ring_depth must be from 1 to 8, not 0"):
        twill_gpu.fit(ROOT / "examples" / "gemm_tma.ttir", "h200", ring_depth=0)


def configurations():
    """A space of an autotuner whose hook gives descriptors their block shape, as Triton's tutorials do."""

    def shape(named):
        rows, columns, depth = (named[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
        for name, block in (("a_desc", [rows, depth]), ("b_desc", [columns, depth]), ("c_desc", [rows, columns])):
            named[name].block_shape = block

    tiles = (128, 128, 64), (256, 256, 256), (128, 256, 64)
    return [triton.Config(gemm_types(*tile)[1], num_warps=8, pre_hook=shape) for tile in tiles]


def descriptors(tensor):
    from triton.tools.tensor_descriptor import TensorDescriptor

    return [TensorDescriptor.from_tensor(tensor([512, 512], "float16"), [128, 64]) for _ in range(3)]


def test_an_autotuner_leaves_out_what_does_not_fit(fake_gpu, tensor, compiled):
    tried = []

    def do_bench(call, quantiles):
        call()
        tried.append(fake_gpu.launched[-1])
        return [float(len(tried))] * 3

    prune = {"early_config_prune": twill_gpu.prune_configs}
    configs = configurations()
    tuned = triton.autotune(configs, key=["K"], do_bench=do_bench, prune_configs_by=prune)
    kernel = tuned(twill_gpu.jit(gemm.gemm_tma.fn))
    kernel[lambda meta: (512 // meta["BLOCK_M"], 512 // meta["BLOCK_N"])](*descriptors(tensor), 512)
    assert len(tried) == 2 and kernel.best_config is configs[0] and compiled == ["gemm_tma"] * 2


def test_where_nothing_is_left_all_stay_and_the_reasons_are_said(fake_gpu, tensor):
    prune = {"early_config_prune": twill_gpu.prune_configs}
    configs = configurations()[1:2] * 2
    kernel = triton.autotune(configs, key=["K"], prune_configs_by=prune)(twill_gpu.jit(gemm.gemm_tma.fn))
    kernel.nargs = dict(zip(("a_desc", "b_desc", "c_desc", "K"), [*descriptors(tensor), 512]))
    with pytest.warns(twill_gpu.TwillWarning, match="no configuration fits:\n.*BLOCK_M: 256"):
        assert kernel.prune_configs({}) == configs


def test_it_is_for_an_autotuner_of_our_kernels(fake_gpu, tensor):
    with pytest.raises(TypeError, match="called by triton.autotune"):
        twill_gpu.prune_configs([], {})
    kernel = triton.autotune(configurations(), key=["K"], prune_configs_by={"early_config_prune": twill_gpu.prune_configs})
    kernel = kernel(gemm.gemm_tma)
    kernel.nargs = dict(zip(("a_desc", "b_desc", "c_desc", "K"), [*descriptors(tensor), 512]))
    with pytest.raises(TypeError, match="kernels of twill_gpu.jit"):
        kernel.prune_configs({})


def test_a_machine_without_a_generator():
    with pytest.raises(twill_gpu.InputError, match="generated for Hopper .* and a100 is sm_80"):
        twill_gpu.fit(gemm.gemm_tma, "a100", *gemm_types(128, 128, 64))


@triton.jit
def unnamed_loads(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    acc = tl.zeros((M, N), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([row, k]), b.load([column, k]).T, acc)
    c.store([row, column], acc.to(tl.float16))


def test_names_that_python_has_one_for_are_told_apart(tmp_path):
    types, tiles = gemm_types(256, 128, 64)
    types = {name.removesuffix("_desc"): kind for name, kind in types.items()}
    tiles = dict(zip(("M", "N", "BK"), tiles.values()))
    schedule = twill_gpu.schedule(unnamed_loads, "h200", types, tiles)
    compile(schedule.kernel_source, "kernel.py", "exec")
    # Names are the user's: they may be anything, and stay names.
    text = (ROOT / "examples" / "gemm_tma.ttir").read_text()
    marker = tmp_path / "marker"
    hostile = text.replace("@gemm_tma", f'@"f(): pass\\0Aopen(\'{marker}\', \'w\')\\0Adef g"')
    assert hostile != text
    compile(twill_gpu.schedule(hostile, "h200").kernel_source, "kernel.py", "exec")
    assert "\ndef gl(" not in twill_gpu.schedule(text.replace("@gemm_tma", "@gl"), "h200").kernel_source
