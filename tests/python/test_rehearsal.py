"""`TWILL=wait` settles who is the fastest on copies of a launch's memory, without a GPU."""

import subprocess
import sys
import time
from types import SimpleNamespace

import gemm_pointers
import pytest
import triton
from conftest import Half
from test_activation import gpu  # noqa: F401
from twill_gpu import activation
from twill_gpu.activation import checking, rehearsal
from twill_gpu.activation.copies import Copies
from twill_gpu.activation.function import Function
from twill_gpu.activation.records import Records
from twill_gpu.activation.specialisation import Specialised

COPIES = 1 << 44
"""Copies stand from here on."""
TILES = dict(BLOCK_M=128, BLOCK_N=128, BLOCK_K=64)


class Storage:
    """Memory of a tensor; `held` is what is in it."""

    made = []

    def __init__(self, address, held=0, size=1 << 10):
        self.address, self.held, self.size = address, held, size

    def data_ptr(self):
        return self.address

    def clone(self):
        self.made.append(self.address)
        return Storage(COPIES + self.address, self.held)

    def copy_(self, other):
        self.held = other.held

    def nbytes(self):
        return self.size


class Stored(Half):
    """A tensor with memory."""

    def __init__(self, shape, storage=None, address=1 << 20, **named):
        super().__init__(shape, address=address, **named)
        self.storage = storage or Storage(address)

    def untyped_storage(self):
        return self.storage

    def storage_offset(self):
        return 0

    def size(self):
        return self.shape

    def new_empty(self, count):
        return self

    def set_(self, storage, offset, size, strides):
        return Stored(size, storage, storage.address, strides=strides)


@pytest.fixture
def waiting(gpu, monkeypatch, tmp_path):  # noqa: F811
    """A GPU on which Twill's kernels take 2 ms and stock Triton's 3; what is launched on copies writes to them."""
    import twill_gpu.activation as package

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    torch = sys.modules["torch"]
    torch.cuda.synchronize = gpu.clock.synchronize
    stream = SimpleNamespace(cuda_stream=7, query=lambda: False, synchronize=gpu.clock.synchronize)
    torch.cuda.current_stream = lambda index=None: stream
    torch.cuda.OutOfMemoryError = MemoryError
    Storage.made = []
    # As users have it.
    monkeypatch.setattr(package, "install_with", package._install)
    gpu.real = lambda: [one for one in gpu.launched if max(map(address, one.arguments)) < COPIES]
    return gpu


def address(argument):
    found = getattr(argument, "base", argument)
    # Some launchers take addresses as they are.
    return found.data_ptr() if hasattr(found, "data_ptr") else found if type(found) is int else 0


def call(kernel, count=1, m=512):
    a, b, c = (Stored([m, 512], address=at << 24) for at in (1, 2, 3))
    for _ in range(count):
        kernel[(m // 128, 4)](a, b, c, m, 512, 512, 512, 512, 512, **TILES, num_warps=8)
    return a, b, c


def sides(launched):
    return ["twill" if one.by_twill else "stock" for one in launched]


def test_all_launches_are_made_by_the_winner(waiting):
    activation.install("wait")
    call(triton.jit(gemm_pointers.gemm_pointers.fn), 5)
    assert sides(waiting.real()) == ["twill"] * 5
    assert len(waiting.launched) > 5 + 12, "others were tried on copies"
    assert set(Storage.made) == {3 << 24}, "what is only read is not copied"
    assert activation.status()[0].launches == 5 and activation.status()[0].speed == pytest.approx(1.5)


def test_where_stock_triton_is_faster_it_has_all_launches(waiting):
    waiting.milliseconds = {8: 1.9}
    activation.install("wait")
    call(triton.jit(gemm_pointers.gemm_pointers.fn), 3)
    assert sides(waiting.real()) == ["stock"] * 3


def test_each_class_is_settled_once_and_the_next_process_tries_nothing(waiting):
    activation.install("wait")
    kernel = triton.jit(gemm_pointers.gemm_pointers.fn)
    call(kernel)
    tried = len(waiting.launched)
    call(kernel)
    assert len(waiting.launched) == tried + 1
    call(kernel, m=2048)
    assert len(waiting.launched) > tried + 12
    for mode in ("wait", "frozen"):
        activation.uninstall()
        activation.install(mode)
        waiting.launched.clear()
        call(triton.jit(gemm_pointers.gemm_pointers.fn), 2)
        assert sides(waiting.launched) == ["twill"] * 2
    # What nobody has settled stays with stock Triton.
    call(kernel, m=4096)
    assert sides(waiting.launched)[-1] == "stock"


def test_what_cannot_be_copied_stays_with_stock_triton_and_is_tried_in_the_next_process(waiting, monkeypatch, capsys):
    def refuse(self):
        raise MemoryError("there are 2 GiB")

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "clone", refuse)
        activation.install("wait")
        call(triton.jit(gemm_pointers.gemm_pointers.fn), 3)
        assert sides(waiting.launched) == ["stock"] * 3
        said = capsys.readouterr().err.splitlines()
        assert said == ["twill: gemm_pointers: nothing is tried: MemoryError: there are 2 GiB"]
    assert not list(Records().folder.glob("*.trial"))
    activation.uninstall()
    activation.install("wait")
    call(triton.jit(gemm_pointers.gemm_pointers.fn), 3)
    assert sides(waiting.real())[-3:] == ["twill"] * 3


def test_memory_that_is_no_tensors_is_not_written(waiting, capsys):
    class Place:
        def data_ptr(self):
            return 3 << 24

        dtype = Half([1]).dtype

    activation.install("wait")
    kernel = triton.jit(gemm_pointers.gemm_pointers.fn)
    a, b, _ = call(kernel)
    waiting.launched.clear()
    kernel[(16, 4)](a, b, Place(), 2048, 512, 512, 512, 512, 512, **TILES, num_warps=8)
    assert sides(waiting.launched) == ["stock"] and "its memory cannot be copied" in capsys.readouterr().err


def test_nothing_is_tried_in_a_capture(waiting):
    activation.install("wait")
    kernel = triton.jit(gemm_pointers.gemm_pointers.fn)
    call(kernel)
    waiting.capturing = True
    waiting.launched.clear()
    call(kernel, m=2048)
    call(kernel)
    assert sides(waiting.launched) == ["stock", "twill"]


HOLDS = """
import sys
from twill_gpu.activation.function import Function
from twill_gpu.activation.records import Records
from twill_gpu.activation.specialisation import Specialised
with Records().alone(sys.argv[1], 5.0):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_one_process_settles_a_contest_at_a_time(waiting, monkeypatch):
    keys = []
    monkeypatch.setattr(Records, "alone", lambda self, key, seconds: (keys.append(key), really(self, key, seconds))[1])
    activation.install("wait")
    call(triton.jit(gemm_pointers.gemm_pointers.fn))
    activation.uninstall()
    for record in Records().folder.iterdir():
        record.unlink()
    holder = subprocess.Popen([sys.executable, "-c", HOLDS, *keys], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    monkeypatch.setattr(rehearsal, "LOCK_SECONDS", 0.1)
    activation.install("wait")
    kernel = triton.jit(gemm_pointers.gemm_pointers.fn)
    # Another contest does not wait.
    call(kernel, m=2048)
    assert sides(waiting.real())[-1] == "twill"
    begun = time.monotonic()
    call(kernel, 20)
    assert set(sides(waiting.launched)[-20:]) == {"stock"}, "the other one may find something else"
    assert time.monotonic() - begun < 1, "it is waited for once"
    holder.communicate("\n")
    assert not [one for one in Records().folder.iterdir() if one.name.startswith(".alone")]


really = Records.alone


def test_what_another_process_has_settled_waits_for_nobody(waiting, monkeypatch):
    activation.install("wait")
    call(triton.jit(gemm_pointers.gemm_pointers.fn))
    activation.uninstall()
    monkeypatch.setattr(Records, "alone", None)
    activation.install("wait")
    call(triton.jit(gemm_pointers.gemm_pointers.fn))
    assert sides(waiting.real())[-1] == "twill"


def test_copies_share_memory_as_the_tensors_do():
    whole = Storage(1 << 24, held=7)
    x, y, z = Stored([4], whole, 1 << 24), Stored([4], whole, 1 << 24), Stored([4], address=2 << 24)
    copies = Copies({"x": x, "y": y, "z": z, "n": 3}, {"x", "z"})
    assert copies.values["x"].storage is copies.values["y"].storage is not whole, "it is written through y"
    assert copies.values["z"] is z and copies.values["n"] == 3
    copies.values["y"].storage.held = 9
    copies.restore()
    assert (copies.values["x"].storage.held, whole.held) == (7, 7)


def test_nothing_is_not_copied():
    empty = Storage(0, size=0)
    empty.clone = None
    x = Stored([0], empty)
    assert Copies({"x": x}).values["x"] is x


@pytest.mark.parametrize("part", ["Copies", "difference"])
def test_operations_of_torch_that_fail_are_not_the_application_s(waiting, gpu, tensor, monkeypatch, part):  # noqa: F811
    def fails(*_):
        raise RuntimeError("Triton Error [CUDA]: invalid argument")

    torch = sys.modules["torch"]
    torch.cuda.OutOfMemoryError = MemoryError
    monkeypatch.setattr(checking, part, fails)
    monkeypatch.setattr(checking, "allowed", lambda tensors: 0.0)
    activation.install("check")
    kernel = triton.jit(gemm_pointers.gemm_pointers.fn)
    for _ in range(3):
        call(kernel)
    (status,) = activation.status()
    assert any("not checked" in line and "invalid argument" in line for line in status.checked), status.checked


def test_memory_within_tuples_is_not_copied_and_not_written():
    with pytest.raises(ValueError, match="x is no tensor of torch"):
        Copies({"x": (Stored([4]), 1)})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("%a = tt.int_to_ptr %b", "addresses from memory"),
        ("%a = tt.load %p : tensor<4x!tt.ptr<!tt.ptr<f16>>>", "addresses from memory"),
        ("tt.atomic_poll %p", "may wait"),
        ("scf.while {\n tt.atomic_cas %p", "may wait"),
        ("scf.while {\n %a = tt.load %p", None),
        ("tt.atomic_rmw %p", None),
    ],
)
def test_kernels_that_cannot_be_launched_on_copies(text, why):
    found = Specialised(None, Function("kernel", [], ""), text, None, 0, None)
    assert found.why_not_on_copies is None if why is None else why in found.why_not_on_copies
