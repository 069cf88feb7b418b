"""A mock GPU for launches, and kernels that are compiled once for all tests.

The tests are of the package as it is installed (`pip install .`).
"""

import sys
import types
from pathlib import Path

import pytest
import triton
from triton.backends.compiler import GPUTarget, Language

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tests" / "runtime")]

from test_launch import Tensor, Torch  # noqa: E402


@pytest.fixture(autouse=True)
def compiled(monkeypatch, tmp_path_factory):
    """The back end, called once for each input of all tests; a list of the requested names."""
    from twill_gpu import backend

    monkeypatch.setenv("TWILL_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    names, really = [], backend.compile_kernel

    def compile_kernel(ttir, name, machine, options):
        names.append(name)
        key = (ttir, name, machine, repr(options))
        if key not in _kernels:
            try:
                _kernels[key] = really(ttir, name, machine, options)
            except backend.TwillError as error:
                _kernels[key] = str(error)
        if isinstance(_kernels[key], str):
            raise backend.TwillError(_kernels[key])
        return _kernels[key]

    monkeypatch.setattr(backend, "compile_kernel", compile_kernel)
    return names


_kernels = {}


class FakeGpu:
    """Triton's driver of an H200 that only records what is launched on it."""

    def __init__(self):
        self.launched = []
        self.utils = types.SimpleNamespace(
            get_device_properties=lambda device: {"max_shared_mem": 232448},
            load_binary=lambda name, kernel, shared, device: (name, name, 168, 0, 1024),
            unload_module=lambda module: None,
        )

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 7

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def launcher_cls(self, source, metadata):
        def launch(x, y, z, stream, function, packed, described, enter, leave, *arguments):
            by_twill = getattr(source, "language", None) is Language.GLUON
            own = (metadata.num_warps, metadata.num_stages)
            self.launched.append(Launched(metadata.name, (x, y, z), arguments, *own, by_twill, stream))

        return launch


class Launched(types.SimpleNamespace):
    def __init__(self, name, grid, arguments, num_warps, num_stages, by_twill, stream):
        super().__init__(
            name=name, grid=grid, arguments=arguments, num_warps=num_warps, num_stages=num_stages, by_twill=by_twill, stream=stream
        )


@pytest.fixture
def fake_gpu(monkeypatch, fake_gpu_of_torch):
    """A GPU with a torch of a few lines."""
    torch = Torch()
    torch.cuda.get_device_name = lambda index: "NVIDIA H200"
    torch.cuda.current_stream = lambda index: types.SimpleNamespace(cuda_stream=7)
    monkeypatch.setitem(sys.modules, "torch", torch)
    return fake_gpu_of_torch


@pytest.fixture
def fake_gpu_of_torch(monkeypatch):
    """A GPU with the real torch."""
    gpu = FakeGpu()
    monkeypatch.setattr(triton.runtime.driver, "_active", gpu)
    return gpu


class FakeDriver:
    """CUDA's driver, which makes tensor maps of nothing and only records what is launched."""

    def __init__(self):
        from cuda.bindings import driver

        self._driver, self.encoded, self.launched = driver, [], []
        self._success = driver.CUresult.CUDA_SUCCESS

    def __getattr__(self, name):
        return getattr(self._driver, name)

    context = 1
    """That of the thread; 0 for none."""

    def cuCtxGetCurrent(self):
        return self._success, self.context

    def cuDeviceGet(self, index):
        return self._success, index

    def cuDevicePrimaryCtxRetain(self, device):
        return self._success, "primary"

    def cuCtxSetCurrent(self, context):
        self.context = context
        return (self._success,)

    def cuModuleLoadData(self, cubin):
        return self._success, cubin

    def cuModuleGetFunction(self, module, name):
        return self._success, name

    def cuFuncSetAttribute(self, function, attribute, value):
        return (self._success,)

    def cuTensorMapEncodeTiled(self, kind, rank, address, shape, strides, box, *rest):
        if not self.context:
            return self._driver.CUresult.CUDA_ERROR_INVALID_CONTEXT, None
        self.encoded.append((address, [int(extent) for extent in box]))
        return self._success, types.SimpleNamespace(getPtr=lambda: address)

    def cuLaunchKernel(self, *launch):
        if not self.context:
            return (self._driver.CUresult.CUDA_ERROR_INVALID_CONTEXT,)
        self.launched.append(launch)
        return (self._success,)


@pytest.fixture
def fake_driver():
    return FakeDriver()


class Half(Tensor):
    """A tensor that Triton's own descriptors take too."""

    types: dict = {}

    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.dtype.itemsize = self.element_size()
        # There is one object for each type, as of torch's.
        self.dtype = self.types.setdefault(str(self.dtype), self.dtype)

    def get_device(self):
        return self.device.index


@pytest.fixture
def tensor():
    return Half
