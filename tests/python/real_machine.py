"""What `stand_in.StandIn` stands in for: a GPU on which launches are made, with torch's memory.

Matrices are of small whole numbers, so that sums are exact in any order: results are the same bits, whoever's kernel adds them.
"""

import ctypes
import hashlib
import os
import sys
import threading
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "examples")]

DEVICE = "cuda"
ROWS, COLUMNS, DEPTH = 512, 384, 2048
GRID = ROWS // 128, COLUMNS // 128
TILES = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
STOCK = {"num_warps": 8, "num_stages": 2}
"""Fewer stages than are good for it: another kernel is faster beyond doubt, and has launches."""
MATRICES = 8
"""Each launch has one of so many B."""
WAITS = 4
"""Each so many launches the GPU is waited for."""
NOTHING = 0.5
"""What a result holds before its launch: no product of whole numbers."""
WITH_OTHER_STAGES = "autograd", "inference"
"""Applications in which stock Triton's other stages and warps are tried too."""
WRONG = 3
"""Results of a process that are named if they are wrong."""


class Machine:
    """Launches of a GEMM, each with an output of its own, on the device and the stream in use."""

    forks_work = False
    """CUDA gives a child nothing of a parent that has used it."""

    def __init__(self):
        switch_on()
        import torch
        import triton  # noqa: F401  that switches Twill on

        if sys.argv[1] not in WITH_OTHER_STAGES:
            leave_out_other_stages()
        # Processes are many, and what is calculated on the CPU is little.
        torch.set_num_threads(1)
        self.torch, self._pid = torch, os.getpid()
        self._matrices, self._lock, self._right = {}, threading.Lock(), {}
        self._left, self._before = [], launched()

    def begin(self):
        """A, and each B, on the device in use. That makes its context."""
        torch, device = self.torch, self.torch.cuda.current_device()
        with self._lock:
            if device not in self._matrices:
                chance = torch.Generator().manual_seed(1)

                def whole(*shape):
                    return torch.randint(-2, 3, shape, generator=chance).to(torch.float16).to(DEVICE)

                self._matrices[device] = whole(ROWS, DEPTH), [whole(COLUMNS, DEPTH) for _ in range(MATRICES)]
                torch.cuda.synchronize()
            return self._matrices[device]

    def matrices(self, number):
        """A and B of a launch."""
        a, several = self.begin()
        return a, several[number % MATRICES]

    def empty(self, rows=ROWS, columns=COLUMNS):
        """Memory for a result."""
        return self.torch.full((rows, columns), NOTHING, device=DEVICE, dtype=self.torch.float16)

    def arguments(self, number):
        """Those of a launch, whose result is noted."""
        a, b = self.matrices(number)
        c = self.empty()
        self.note(number, c)
        return described(a, b, c)

    def launch(self, kernel, count, first=0):
        """So many launches, each with a result of its own. What was forked off a process that uses the GPU cannot."""
        for number in range(first, first + count):
            if self._is_forked():
                self._refused(kernel, number)
                return
            kernel[GRID](*self.arguments(number), **TILES, **STOCK)
            if number % WAITS == WAITS - 1:
                self.torch.cuda.current_stream().synchronize()

    def note(self, number, result, right=None):
        """What is to be looked at in the end: a result, and what calculates it on the CPU where it is no product of A and B."""
        self._left.append((number, result, right or (lambda: self.product(number))))

    def product(self, number):
        """A · Bᵀ of a launch, on the CPU."""
        which = number % MATRICES
        if which not in self._right:
            a, several = next(iter(self._matrices.values()))
            self._right[which] = exact(a, several[which])
        return self._right[which]

    def _is_forked(self):
        """Whether the GPU is the parent's, and so is all that was noted of it."""
        is_forked = bool(self._matrices) and os.getpid() != self._pid
        if is_forked:
            self._left = [one for one in self._left if isinstance(one[1], str)]
        return is_forked

    def _refused(self, kernel, number):
        """What a launch says of a GPU that is the parent's, and what comes of numbers on the CPU."""
        a, (b, *_) = next(iter(self._matrices.values()))
        try:
            kernel[GRID](*described(a, b, b), **TILES, **STOCK)
            said = "it was launched"
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        self._left.append((number, f"{said}; {int(self.torch.arange(number, number + 64).square().sum())}", None))

    def result(self):
        """Hashes of all results, of those that are right, and what is wrong."""
        if not self._is_forked():
            for device in self._matrices:
                self.torch.cuda.synchronize(device)
        memory, asked, wrong = [], [], []
        for number, result, right in sorted(self._left, key=lambda one: one[0]):
            if right is None:
                memory.append(result)
                asked.append(result)
                continue
            result, right = result.cpu(), right()
            memory.append(hash_of(result))
            asked.append(hash_of(right))
            if memory[-1] != asked[-1] and len(wrong) < WRONG:
                wrong.append(f"launch {number}: {first_difference(result, right)}")
        others = launched() - self._before
        del others["stock"]
        own = sum(count for side, count in others.items() if side.startswith("twill"))
        return {"memory": memory, "asked": asked, "twill": own, "tuned": others.total() - own, "wrong": wrong, **said_by_twill()}


def exact(a, b):
    """A · Bᵀ of whole numbers, rounded once."""
    return (a.cpu().float() @ b.cpu().float().T).to(a.dtype)


def described(a, b, c):
    """Arguments of the GEMM for A, B and C."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    tiles = [TILES["BLOCK_M"], TILES["BLOCK_K"]], [TILES["BLOCK_N"], TILES["BLOCK_K"]], [TILES["BLOCK_M"], TILES["BLOCK_N"]]
    return [*(TensorDescriptor.from_tensor(*one) for one in zip((a, b, c), tiles)), a.shape[1]]


def hash_of(tensor):
    """That of all bytes of a tensor on the CPU."""
    tensor = tensor.contiguous()
    return hashlib.sha256(ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())).hexdigest()[:16]


def first_difference(result, right):
    """Where two matrices differ, how often, and how often nothing was written."""
    places = (result != right).nonzero()
    if not len(places):
        return "the same numbers in other bits"
    place = tuple(places[0].tolist())
    untouched = int((result == NOTHING).sum())
    return f"{len(places)} differ, first {list(place)}: {result[place]} instead of {right[place]}; {untouched} are {NOTHING}"


def switch_on():
    """What `twill_gpu.pth` does, where Twill is on PYTHONPATH only: Python reads such files nowhere else."""
    wanted = os.environ.get("TWILL", "0") not in ("", "0", "off")
    if wanted and "_twill_start" not in sys.modules and find_spec("_twill_start"):
        __import__("_twill_start")


def leave_out_other_stages():
    """Has Twill's kernels alone tried: the GEMM is so small that stock Triton's with other stages and warps may be as fast."""
    specialisation = sys.modules.get("twill_gpu.activation.specialisation")
    if specialisation is not None:
        specialisation.Specialised._configure = lambda found, passed: None


def launched():
    """Launches by whose they were, stock Triton's as its author has it among them; none without Twill."""
    activation = sys.modules.get("twill_gpu.activation")
    activity = activation and activation._activity
    return sum((one.launched for one in activity.found), Counter()) if activity else Counter()


def said_by_twill():
    """What became of each kernel, and what comparisons found; nothing without Twill."""
    activation = sys.modules.get("twill_gpu.activation")
    status = activation.status() if activation is not None else ()
    return {
        "status": sorted({f"{one.name}: {one.status} {one.reason}".strip() for one in status}),
        "checked": [said for one in status for said in one.checked],
    }
