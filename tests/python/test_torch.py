"""`@twill_gpu.jit` under torch.compile, on tensors of the host: launches are only recorded."""

import types

import gemm_pointers
import pytest
import triton
import twill_gpu
from twill_gpu import scheduled

torch = pytest.importorskip("torch")

SIZE = 128
TILES = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}


@pytest.fixture
def host(monkeypatch, fake_gpu_of_torch):
    """Kernels that take tensors of the host, whose device has no number."""
    load = scheduled.load

    def loaded(path):
        module = load(path)
        monkeypatch.setattr(module.Kernel, "_tensor", lambda kernel, parameter, value, device: None)
        return module

    monkeypatch.setattr(scheduled, "load", loaded)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: (9, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "NVIDIA H200")
    properties = types.SimpleNamespace(multi_processor_count=132)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: properties)
    torch._dynamo.reset()
    return fake_gpu_of_torch


class Graphs(list):
    """A back end of torch.compile that keeps the operators of each graph."""

    def __call__(self, module, _):
        self.append([node.target for node in module.graph.nodes if node.op == "call_function"])
        return module


def step_of(kernel, **tiles):
    """A function with work before and after a launch."""

    def step(a, b):
        a, c = a + 1, torch.zeros(SIZE, SIZE, dtype=torch.float16)
        kernel[(1, 1)](a, b, c, SIZE, SIZE, SIZE, SIZE, SIZE, SIZE, **tiles)
        return c * 2

    return step


def record(run, made):
    """A method that also keeps what it gives back."""

    def recorded(*args, **named):
        made.append(run(*args, **named))
        return made[-1]

    recorded._torchdynamo_disable = True
    return recorded


def matrices():
    return [torch.zeros(SIZE, SIZE, dtype=torch.float16) for _ in range(2)]


def test_a_launch_breaks_the_graph(host, recwarn):
    kernel, graphs = twill_gpu.jit(gemm_pointers.gemm_pointers.fn), Graphs()
    compiled = torch.compile(step_of(kernel, **TILES), backend=graphs)
    for _ in range(3):
        compiled(*matrices())
    assert len(graphs) == 2 and [one.name for one in host.launched] == ["gemm_pointers"] * 3
    assert not [one for one in recwarn if "native_specialize_impl" in str(one.message)]
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(step_of(kernel, **TILES), backend="eager", fullgraph=True)(*matrices())


def test_an_autotuned_launch_breaks_the_graph_too(host, monkeypatch):
    import torch.utils._triton

    # As on a machine with a GPU, where Dynamo looks into what triton.autotune made.
    monkeypatch.setattr(torch.utils._triton, "has_triton", lambda *_: True)
    made, inner = [], twill_gpu.jit(gemm_pointers.gemm_pointers.fn)
    kernel = triton.autotune([triton.Config(TILES)], key=[])(inner)
    monkeypatch.setattr(twill_gpu.JitKernel, "run", record(twill_gpu.JitKernel.run, made))
    torch.compile(step_of(kernel), backend="eager")(*matrices())
    assert [type(one).__name__ for one in made] == ["ScheduledKernel"] and len(host.launched) == 1
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="twill_gpu.custom_op"):
        torch.compile(step_of(kernel), backend="eager", fullgraph=True)(*matrices())


def test_an_operator_stays_in_the_graph(host):
    kernel, graphs = twill_gpu.jit(gemm_pointers.gemm_pointers.fn), Graphs()

    @twill_gpu.custom_op("twill_test::gemm", mutates_args={"c"})
    def gemm(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        kernel[(1, 1)](a, b, c, SIZE, SIZE, SIZE, SIZE, SIZE, SIZE, **TILES)

    @twill_gpu.custom_op("twill_test::product", mutates_args=(), fake=torch.empty_like)
    def product(a: torch.Tensor) -> torch.Tensor:
        return a.clone()

    def both(a, b):
        c = torch.zeros(SIZE, SIZE, dtype=torch.float16)
        gemm(a + 1, b, c)
        return product(c) * 2

    assert torch.compile(both, backend=graphs, fullgraph=True)(*matrices()).shape == (SIZE, SIZE)
    ((*_, first, second, _),) = graphs
    assert (str(first), str(second)) == ("twill_test.gemm.default", "twill_test.product.default")
    assert len(host.launched) == 1
    torch.compile(both, backend="aot_eager", fullgraph=True)(*matrices())
    assert len(host.launched) == 2
    with pytest.raises(TypeError, match="twill_test::copy returns something: fake=… must say of what shape"):

        @twill_gpu.custom_op("twill_test::copy", mutates_args=())
        def copy(a: torch.Tensor) -> torch.Tensor:
            return a.clone()
