"""Applications on a stand-in for a GPU, each a process of its own: `python stand_in.py NAME [ARGUMENTS …]`.

Each process prints a line of JSON: what its launches left in memory (`memory`: their number, and a hash of the addresses they were
given, in their order), what it asked for (`asked`, the same), and how many of them Twill made (`twill`). A launch that is made
twice, is lost or has other arguments leaves another memory. `TWILL` switches Twill on as in any application.

With `STAND_IN=0` there is no stand-in but a GPU, and `memory` is of the results' bits (real_machine.py).
"""

import atexit
import contextlib
import hashlib
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]
STOCK_WARPS = 8
COPIES = 1 << 44
"""Copies of an application's memory stand from here on."""


class Storage:
    """Memory of a tensor."""

    def __init__(self, address):
        self.address = address

    def data_ptr(self):
        return self.address

    def nbytes(self):
        return 1 << 20

    def clone(self):
        return Storage(COPIES + self.address)

    def copy_(self, other):
        """Nothing is in it."""


class StandIn:
    """A GPU whose launches only note what they were given, on a clock that is not real."""

    forks_work = True
    """A forked child may launch what its parent has loaded."""

    def __init__(self):
        from types import SimpleNamespace

        from conftest import FakeGpu, Half, Torch
        from torch_clock import Clock

        torch, clock = Torch(), Clock()
        torch.cuda.Event, torch.cuda.synchronize = lambda enable_timing: clock.event(), clock.synchronize
        torch.cuda.OutOfMemoryError = MemoryError
        torch.cuda.is_current_stream_capturing = torch.cuda.is_initialized = lambda: False
        torch.cuda.get_device_name = lambda index: "NVIDIA H200"
        torch.cuda.current_stream = lambda index=None: SimpleNamespace(cuda_stream=7, synchronize=clock.synchronize)
        sys.modules["torch"] = torch

        class Tensor(Half):
            def untyped_storage(self):
                return Storage(self.address)

            def storage_offset(self):
                return 0

            def size(self):
                return self.shape

            def new_empty(self, count):
                return self

            def set_(self, storage, offset, size, strides):
                return Tensor(size, strides=strides, address=storage.address)

        machine, self.memory, self.asked, self.twill, self.tensor = self, [], [], 0, Tensor

        class Gpu(FakeGpu):
            def launcher_cls(self, source, metadata):
                by_stock = getattr(source, "language", None) is not Language.GLUON

                def launch(x, y, z, stream, function, packed, described, enter, leave, *arguments):
                    places = sorted(place.data_ptr() for place in map(base, arguments) if place)
                    if places[-1] < COPIES:
                        machine.memory.append(places)
                        machine.twill += not by_stock
                    clock.run(3.0 if by_stock else 2.0)
                    clock.synchronize()

                return launch

        def base(argument):
            found = getattr(argument, "base", argument)
            return found if hasattr(found, "data_ptr") else None

        import triton
        from triton.backends.compiler import Language

        triton.runtime.driver._active = Gpu()

    def begin(self):
        """Has what is there before a launch."""

    def launch(self, kernel, count, first=0):
        """So many launches, each with a result of its own."""
        from test_jit import TILES

        for number in range(first, first + count):
            kernel[(4, 3)](*self.arguments(number), **TILES, num_warps=STOCK_WARPS)

    def arguments(self, number):
        """Those of a launch."""
        from test_jit import gemm_arguments
        from triton.tools.tensor_descriptor import TensorDescriptor

        a, b, _, k = gemm_arguments(self.tensor)
        c = self.tensor([512, 384], address=(3 << 20) + (number << 20))
        self.asked.append([a.base.data_ptr(), b.base.data_ptr(), c.data_ptr()])
        return [a, b, TensorDescriptor.from_tensor(c, [128, 128]), k]

    def result(self):
        return {"memory": self.memory, "asked": self.asked, "twill": self.twill}


Machine = StandIn
if os.environ.get("STAND_IN") == "0":
    from real_machine import Machine


def gemm():
    import gemm_tma
    import triton

    return triton.jit(gemm_tma.gemm_tma.fn)


def tell(result):
    """In one piece, as processes that end at once tell it on one pipe: so of the addresses their number and a hash."""
    short = {
        name: f"{len(result[name])} {hashlib.sha256(str(result[name]).encode()).hexdigest()[:16]}" for name in ("memory", "asked")
    }
    os.write(1, (json.dumps({**result, **short}) + "\n").encode())


# ------------------------------------------------------------------------------------------------- applications
def plain(count):
    """Launches, one after the other."""
    machine = Machine()
    machine.launch(gemm(), int(count))
    tell(machine.result())


def without_space(count):
    """No file may become longer than a few kilobytes: for this process and those that it starts."""
    import resource

    machine = Machine()
    machine.begin()
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    machine.launch(gemm(), int(count))
    tell(machine.result())


def patient(count, seconds):
    """Launches over some time, while kernels may be made."""
    machine = Machine()
    spread(machine, int(count), float(seconds))
    tell(machine.result())


def spread(machine, count, seconds):
    """Launches of a kernel that is new, over some time."""
    kernel, end = gemm(), time.monotonic() + seconds
    for number in range(count):
        machine.launch(kernel, 1, number)
        time.sleep(max(0.0, (end - time.monotonic()) / (count - number)))


def killing(count, seconds, seed):
    """The same, and whoever works in the background is killed again and again."""
    import random

    random.seed(int(seed))
    kills = []

    def kill():
        while True:
            time.sleep(random.uniform(0.05, 1.0))
            for child in children():
                # Those in the background lead a session; stock Triton's compiler does not.
                with contextlib.suppress(ProcessLookupError):
                    if os.getsid(child) == child:
                        os.kill(child, signal.SIGKILL)
                        kills.append(child)

    threading.Thread(target=kill, daemon=True).start()
    machine, kernel, end, number = Machine(), gemm(), time.monotonic() + float(seconds), 0
    while number < int(count):
        # A function that is new has its kernel made anew.
        machine.launch(kernel, 1, number)
        kernel, number = (gemm() if number % 8 == 7 else kernel), number + 1
        time.sleep(max(0.0, (end - time.monotonic()) / (int(count) - number + 1)))
    tell({**machine.result(), "kills": len(kills)})


def children():
    """Processes of this one."""
    found = list(Path(f"/proc/{os.getpid()}/task").glob("*/children"))
    if found:
        return [int(child) for one in found for child in one.read_text().split()]
    # A kernel without such files: the parent is the fourth word, behind a name in brackets.
    return [int(one.parent.name) for one in Path("/proc").glob("[0-9]*/stat") if _parent(one) == os.getpid()]


def _parent(stat):
    with contextlib.suppress(OSError):
        return int(stat.read_text().rpartition(")")[2].split()[1])


def specialisations(count, grids):
    """So many specialisations, each launched on so many grids: what that takes of memory (KiB) and of a disk."""
    import gc

    machine = Machine()
    from test_jit import TILES, gemm_arguments

    machine.launch(gemm(), 4)
    arguments = gemm_arguments(machine.tensor)
    kept, before = [], resident()
    for _ in range(int(count)):
        kernel = gemm()
        for rows in range(1, int(grids) + 1):
            for _ in range(3):
                kernel[(rows, 3)](*arguments, **TILES, num_warps=STOCK_WARPS)
        kept.append(kernel)
    gc.collect()
    scratch = Path(os.environ.get("TMPDIR", "/nowhere"))
    disk = sum(path.stat().st_blocks // 2 for path in scratch.rglob("*"))
    machine.asked = machine.memory
    modules = sum(name.startswith(("twill_launch_", "twill_kernel_")) for name in sys.modules)
    tell({**machine.result(), "KiB": resident() - before, "disk KiB": disk, "modules": modules})


def resident():
    """KiB of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024


def tuning(configurations):
    """The first call of an autotuned function, whose configurations are all compiled; and what the background made."""
    machine, compiled, asked = Machine(), [], []
    import gemm_tma
    import triton

    really = triton.compiler.compile
    triton.compiler.compile = lambda source, **named: (compiled.append(source.name), really(source, **named))[1]
    if os.environ.get("TWILL"):
        from twill_gpu.activation import workers

        make = workers.Workers.make
        workers.Workers.make = lambda self, *job: (asked.append(job), make(self, *job))[1]
    tiles = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
    configs = [triton.Config(tiles, num_warps=STOCK_WARPS, num_stages=stages) for stages in range(2, 2 + int(configurations))]
    kernel = triton.autotune(configs, key=["K"])(triton.jit(gemm_tma.gemm_tma.fn))
    kernel._do_bench = lambda call, quantiles: (call(), [1.0 + len(compiled)] * 3)[1]
    began = time.monotonic()
    kernel[(4, 3)](*machine.arguments(0))
    seconds = time.monotonic() - began
    result = machine.result()
    tell({**result, "asked": result["memory"], "compiled": len(compiled), "made": len(asked), "seconds": round(seconds, 1)})


def forking(count):
    """A child of `os.fork` launches what its parent had launched before, and more."""
    machine, kernel, count = Machine(), gemm(), int(count)
    machine.launch(kernel, count)
    child = os.fork()
    machine.launch(kernel, count, count)
    machine.launch(gemm(), count, 2 * count)
    tell({**machine.result(), "child": child == 0})
    if child == 0:
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0


def forking_while_loading(count):
    """A fork while another thread loads a kernel."""
    loading, loaded = threading.Event(), threading.Event()
    machine = Machine()
    if os.environ.get("TWILL"):
        slow_to_load(loading, loaded)
    kernel = gemm()
    machine.launch(kernel, 1)
    if os.environ.get("TWILL"):
        assert loading.wait(60)
    child = os.fork()
    if child and os.environ.get("TWILL"):
        assert loaded.is_set(), "it forked in the middle of that"
    machine.launch(kernel, int(count), 1)
    machine.launch(gemm(), int(count), 1 + int(count))
    tell({**machine.result(), "child": child == 0})
    if child:
        assert os.waitpid(child, 0)[1] == 0


def ending_while_loading(count):
    """The end of the process while another thread loads a kernel."""
    loading, loaded = threading.Event(), threading.Event()
    # What was registered first is called last.
    atexit.register(lambda: tell({**machine.result(), "whole": loaded.is_set() == loading.is_set()}))
    machine = Machine()
    if os.environ.get("TWILL"):
        slow_to_load(loading, loaded)
    machine.launch(gemm(), int(count))
    if os.environ.get("TWILL"):
        assert loading.wait(60)


def slow_to_load(loading, loaded):
    """Kernels of the cache come from a thread, and take a moment to load."""
    from twill_gpu import backend, scheduled
    from twill_gpu.activation import workers

    compile_, cached = scheduled.ScheduledKernel.compile, backend.cached_kernel
    pool = ThreadPoolExecutor()

    def make(self, ttir, name, machine, options, folder):
        made = Future()

        def answer():
            cached(ttir, name, machine, options).rename(folder)
            made.set_result(None)

        pool.submit(answer)
        return made

    def slowly(self):
        loading.set()
        time.sleep(0.3)
        found = compile_(self)
        loaded.set()
        return found

    backend.cached_kernel = lambda *_: None
    workers.Workers.make, scheduled.ScheduledKernel.compile = make, slowly


def threads(count):
    """Eight threads launch one kernel, and one each of their own."""
    machine, shared, own = Machine(), gemm(), [gemm() for _ in range(8)]
    count, begin = int(count), threading.Barrier(8)

    def work(which):
        begin.wait()
        for number in range(count):
            machine.launch(shared, 1, which * count + number)
            machine.launch(own[which], 1, (8 + which) * count + number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    # In any order.
    result = machine.result()
    tell({**result, "memory": sorted(result["memory"]), "asked": sorted(result["asked"])})


def processes(method, count, seconds=0):
    """Two processes of `multiprocessing`, after launches of this one, or before if they could not launch then.

    seconds: over which its own launches are spread.
    """
    machine = Machine()
    launches_first = machine.forks_work or method != "fork"
    if launches_first:
        spread(machine, int(count), float(seconds))
    context = multiprocessing.get_context(method)
    workers = [context.Process(target=plain, args=(count,)) for _ in range(2)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
        assert one.exitcode == 0, one.exitcode
    if not launches_first:
        spread(machine, int(count), float(seconds))
    tell(machine.result())


def crowd(processes_, count):
    """So many processes at once, each of which switches Twill on for itself. They share the memory of what they import."""
    import conftest  # noqa: F401  it has the path of the others
    import gemm_tma  # noqa: F401
    import test_jit  # noqa: F401
    import twill_gpu

    mode = os.environ.get("STAND_IN_MODE")
    ready, begin = os.pipe()
    for _ in range(int(processes_)):
        if os.fork() == 0:
            os.close(begin)
            os.read(ready, 1)
            if mode:
                twill_gpu.install(mode, jobs=1)
            machine = Machine()
            machine.launch(gemm(), int(count))
            tell(machine.result())
            sys.exit(0)
    os.close(begin)
    codes = [os.wait()[1] for _ in range(int(processes_))]
    tell({"memory": codes, "asked": [0] * len(codes), "twill": 0})


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
