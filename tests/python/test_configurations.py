"""Stock Triton with other numbers of stages and warps than a kernel's author chose, without a GPU."""

import functools
import sys

import gemm_tma as gemm
import pytest
import triton
from test_activation import gpu  # noqa: F401
from test_jit import TILES, gemm_arguments
from twill_gpu import activation
from twill_gpu.activation import configurations
from twill_gpu.activation.configurations import Configuration
from twill_gpu.contest import STOCK, TWILL


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))


@pytest.fixture
def timed(gpu, monkeypatch):  # noqa: F811
    """A GPU on which stages and warps decide, and Twill's kernel takes 2.5 ms."""
    chosen = []

    class Launched(list):
        def append(self, one):
            super().append(one)
            chosen.append("twill" if one.by_twill else (one.num_warps, one.num_stages))
            own = chosen[-1]
            gpu.clock.run({"twill": 2.5, **gpu.by_configuration}.get(own, 3.0))
            gpu.clock.synchronize()

    gpu.launched, gpu.chosen, gpu.by_configuration = Launched(), chosen, {}
    # The fixture of all tests of activation leaves them out.
    monkeypatch.setattr(activation, "install", functools.partial(activation.install, configurations=True))
    return gpu


def launch(kernel, tensor, count):
    for _ in range(count):
        kernel[(4, 3)](*gemm_arguments(tensor), **TILES, num_warps=8, num_stages=3)


def test_candidates_are_near_what_the_author_chose():
    assert set(configurations.candidates(Configuration(8, 3), "")) == {*((8, s) for s in (1, 2, 4, 5)), (4, 3)}
    assert {(8, 1), (8, 3), (2, 1), (2, 3), (4, 3)} <= set(configurations.candidates(Configuration(4, 1), ""))
    # Its author may have counted the threads.
    assembly = "tt.elementwise_inline_asm"
    assert {one.num_warps for one in configurations.candidates(Configuration(4, 1), assembly)} == {4}


LOOP = """
    %a = scf.for %k = %0 to %n step %1 iter_args(%acc = %zero) -> (tensor<64xf32>) {{
      %x = tt.load %p {{tt.contiguity = dense<8> : tensor<1xi32>}} : tensor<64x!tt.ptr<f32>>
      scf.if %flag {{
        {inside}
      }}
      scf.yield %x : tensor<64xf32>
    }}
    tt.store %q, %a : tensor<64x!tt.ptr<f32>>
"""


def test_where_a_loop_stores_nothing_is_loaded_earlier():
    own = Configuration(4, 3)
    for inside, expected in (("tt.store %p, %x", {(4, 1), (4, 2)}), ("%y = arith.addf %x, %x", None)):
        # The store after the loop, also in a loop around it, is none of it.
        for ttir in (LOOP.format(inside=inside), "scf.for %i = %0 to %n step %1 {" + LOOP.format(inside=inside) + "}"):
            found = set(configurations.candidates(own, ttir))
            assert found == expected if expected else {(4, 5), (8, 3)} <= found, ttir


def test_the_fastest_configuration_has_the_launches_and_is_known_to_the_next_process(timed, tensor):
    timed.by_configuration = {(8, 4): 2.0, (8, 2): 2.2, (8, 1): 9.0}
    activation.install("wait")
    launch(triton.jit(gemm.gemm_tma.fn), tensor, 60)
    assert timed.chosen[0] == (8, 3) and timed.chosen[-1] == (8, 4)
    assert timed.chosen.count((8, 1)) == 3, "what is far slower has no more launches"
    (status,) = activation.status()
    assert (status.status, status.wins, status.grids) == ("scheduled", 0, 1)
    assert status.configurations == {"num_warps=8, num_stages=4": 1} and status.gain == pytest.approx(1.5)
    assert "num_warps=8, num_stages=4 for 1 of 1 grids" in str(activation.status())
    activation.uninstall()

    activation.install("frozen")
    timed.chosen.clear()
    launch(triton.jit(gemm.gemm_tma.fn), tensor, 3)
    assert timed.chosen == [(8, 4)] * 3


def test_twills_kernel_wins_where_it_is_faster(timed, tensor):
    timed.by_configuration = {(8, 4): 2.8}
    activation.install("wait")
    launch(triton.jit(gemm.gemm_tma.fn), tensor, 60)
    (status,) = activation.status()
    assert status.wins == 1 and not status.configurations and timed.chosen[-1] == "twill"


def test_without_a_kernel_of_twill_there_are_still_configurations(timed, tensor, monkeypatch):
    timed.by_configuration = {(8, 4): 2.0}
    monkeypatch.setattr("twill_gpu.backend.cached_kernel", lambda *_: None)

    def fails(self, *_):
        from concurrent.futures import Future

        future = Future()
        future.set_exception(RuntimeError("no schedule"))
        return future

    monkeypatch.setattr(activation.activity.Workers, "make", fails)
    activation.install("wait")
    launch(triton.jit(gemm.gemm_tma.fn), tensor, 60)
    (status,) = activation.status()
    assert (status.status, status.reason, timed.chosen[-1]) == ("tuned", "no schedule", (8, 4))
    assert status.speed is None and status.gain == pytest.approx(1.5)


def test_what_spills_more_or_does_not_fit_is_not_launched(timed, tensor, monkeypatch):
    timed.by_configuration = {(8, 4): 1.0, (8, 5): 1.0, (8, 2): 2.0}

    def load_binary(name, kernel, shared, device):
        module, function, registers, spills, threads = original(name, kernel, shared, device)
        return module, function, registers, 4 if shared > limit[0] else spills, threads

    original, limit = timed.utils.load_binary, [1 << 30]
    monkeypatch.setattr(timed.utils, "load_binary", load_binary)
    activation.install("wait")
    kernel = triton.jit(gemm.gemm_tma.fn)
    launch(kernel, tensor, 1)
    # More stages, more shared memory.
    limit[0] = kernel.device_caches[0][0].popitem()[1].metadata.shared
    kernel = triton.jit(gemm.gemm_tma.fn)
    launch(kernel, tensor, 60)
    assert timed.chosen[-1] == (8, 2) and not {(8, 4), (8, 5)} & set(timed.chosen)


def test_checked_too(timed, tensor):
    torch = sys.modules["torch"]
    assert torch
    activation.install("check")
    launch(triton.jit(gemm.gemm_tma.fn), tensor, 1)
    (found,) = activation._activity.found
    assert TWILL in found.challengers and len(found.challengers) > 2 and STOCK not in found.challengers
