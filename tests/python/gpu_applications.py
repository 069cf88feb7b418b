"""Applications that need a GPU, each a process of its own: `python gpu_applications.py NAME [ARGUMENTS …]`.

Each tells what `stand_in.py` tells, of a real GPU.
"""

import functools
import os
import select
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

os.environ["STAND_IN"] = "0"

from real_machine import COLUMNS, GRID, MATRICES, NOTHING, ROWS, STOCK, TILES  # noqa: E402
from real_machine import Machine, described, exact, switch_on  # noqa: E402
from stand_in import gemm, tell  # noqa: E402

CYCLES = 400_000
"""Of the GPU, some 0.2 ms."""
SETTLED = 240
"""Launches after which it is settled whose kernel is the fastest, if there is another one than stock Triton's."""


def inference(count):
    """Launches within `torch.inference_mode`."""
    machine, kernel = Machine(), gemm()
    with machine.torch.inference_mode():
        machine.launch(kernel, int(count))
    tell(machine.result())


def in_place(count):
    """Launches that add to what is there: one that is made twice is seen."""
    import in_place

    machine, count, checked = Machine(), int(count), 8
    c = machine.empty()
    for number in range(count):
        a, b = machine.matrices(number)
        in_place.add_product[GRID](*described(a, b, c), **TILES, **STOCK)
        if number % checked == checked - 1:
            machine.note(number, c.clone(), functools.partial(_sums, machine, number + 1))
    tell(machine.result())


def _sums(machine, count):
    """What so many launches of `in_place` leave."""
    sums = machine.torch.full((ROWS, COLUMNS), NOTHING)
    for number in range(count):
        sums = (sums + machine.product(number).float()).half().float()
    return sums.half()


# ------------------------------------------------------------------------------------------------- CUDA graphs
def graphs(count, when):
    """Replays of a CUDA graph of three launches, with other inputs each time.

    when: it is captured `before` it is settled whose kernel it has, or `after`; or the first launch is its own: `only`.
    """
    machine, kernel = Machine(), gemm()
    machine.launch(kernel, {"before": 2, "after": SETTLED, "only": 0}[when], 1000)
    graph = Graph(machine, kernel, "relaxed" if when == "only" else "global")
    graph.replay(int(count))
    machine.launch(kernel, SETTLED, 2000)
    # What was settled in the meantime does not change the graph.
    graph.replay(int(count), int(count))
    tell(machine.result())


def graphs_again(count, seconds):
    """A graph is captured again and again over some time, between other launches."""
    machine, kernel, count = Machine(), gemm(), int(count)
    end = time.monotonic() + float(seconds)
    for number in range(count):
        machine.launch(kernel, 8, 8 * number)
        Graph(machine, kernel, "global").replay(2, 8 * count + 2 * number)
        time.sleep(max(0.0, (end - time.monotonic()) / (count - number)))
    tell(machine.result())


class Graph:
    """A CUDA graph: C = A · B₀ᵀ, D = A · B₁ᵀ, C again. The inputs' memory is its own."""

    def __init__(self, machine, kernel, mode):
        torch = machine.torch
        self.machine = machine
        a, b = machine.matrices(0)
        self.b = [torch.empty_like(b) for _ in range(2)]
        self.c = [machine.empty() for _ in range(2)]
        calls = [described(a, self.b[which], self.c[which]) for which in (0, 1, 0)]
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, capture_error_mode=mode):
            for arguments in calls:
                kernel[GRID](*arguments, **TILES, **STOCK)

    def replay(self, count, first=0):
        """Replays it so often; each result is noted."""
        for number in range(first, first + count):
            for offset in range(2):
                self.b[offset].copy_(self.machine.matrices(number + offset)[1])
                self.c[offset].fill_(NOTHING)
            self.graph.replay()
            for offset in range(2):
                right = functools.partial(self.machine.product, number + offset)
                self.machine.note(number + offset / 2, self.c[offset].clone(), right)


# ------------------------------------------------------------------------------------------------- streams and threads
def streams(count):
    """Launches on four streams in turn; the next stream waits for an event, and reads the result."""
    machine, kernel = Machine(), gemm()
    machine.begin()
    side = [machine.torch.cuda.Stream() for _ in range(4)]
    for number in range(int(count)):
        _on_a_stream(machine, kernel, number, side[number % 4], side[(number + 1) % 4])
    tell(machine.result())


def streams_of_threads(count):
    """Four threads launch one kernel, on streams of their own."""
    machine, kernel, count = Machine(), gemm(), int(count)
    machine.begin()
    begin = threading.Barrier(4)

    def work(which):
        mine, other = machine.torch.cuda.Stream(), machine.torch.cuda.Stream()
        begin.wait()
        for number in range(which * count, (which + 1) * count):
            _on_a_stream(machine, kernel, number, mine, other)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    tell(machine.result())


def _on_a_stream(machine, kernel, number, mine, other):
    """A launch on a stream whose input comes late on it, and whose result another stream waits for."""
    torch = machine.torch
    a, b = machine.matrices(number)
    with torch.cuda.stream(mine):
        late, c, done = torch.zeros_like(b), machine.empty(), torch.cuda.Event()
        torch.cuda._sleep(CYCLES)
        late.copy_(b)
        kernel[GRID](*described(a, late, c), **TILES, **STOCK)
        done.record()
    with torch.cuda.stream(other):
        other.wait_event(done)
        seen = c.clone()
    # Memory of one stream that another one reads is kept until both are done.
    machine.note(number, seen, lambda: (late, c, machine.product(number))[2])


def autograd(count):
    """Products whose gradients are products too: autograd launches those from a thread of its own."""
    machine, kernel = Machine(), gemm()
    torch = machine.torch

    def product(a, b):
        c = machine.empty(len(a), len(b))
        kernel[len(a) // 128, len(b) // 128](*described(a, b, c), **TILES, **STOCK)
        return c

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(context, a, b):
            context.save_for_backward(a, b)
            return product(a, b)

        @staticmethod
        def backward(context, gradient):
            a, b = context.saved_tensors
            down, across = gradient.contiguous(), gradient.T.contiguous()
            return product(down, b.T.contiguous()), product(across, a.T.contiguous())

    chance = torch.Generator().manual_seed(2)
    gradient = torch.randint(-2, 3, (ROWS, COLUMNS), generator=chance).half()
    there = gradient.to(machine.begin()[0].device)

    @functools.cache
    def right(which):
        a, b = (one.cpu() for one in machine.matrices(which))
        return machine.product(which), exact(gradient, b.T), exact(gradient.T, a.T)

    for number in range(int(count)):
        a, b = (one.detach().clone().requires_grad_() for one in machine.matrices(number))
        c = Product.apply(a, b)
        c.backward(there)
        for place, result in enumerate((c.detach(), a.grad, b.grad)):
            machine.note(3 * number + place, result, lambda which=number % MATRICES, place=place: right(which)[place])
    tell(machine.result())


# ------------------------------------------------------------------------------------------------- several GPUs
def gpus(count):
    """Launches on each GPU in turn, from one thread; then a thread for each GPU."""
    machine, kernel, count = Machine(), gemm(), int(count)
    torch = machine.torch
    several = torch.cuda.device_count()
    if several < 2:
        tell({**machine.result(), "skipped": "there is one GPU"})
        return
    for number in range(count):
        with torch.cuda.device(number % several):
            machine.launch(kernel, 1, number)
    begin = threading.Barrier(several)

    def work(device):
        torch.cuda.set_device(device)
        begin.wait()
        machine.launch(kernel, count, (device + 1) * count)

    with ThreadPoolExecutor(several) as pool:
        list(pool.map(work, range(several)))
    tell(machine.result())


# ------------------------------------------------------------------------------------------------- many processes
def crowd(processes, count, starting, seconds):
    """So many processes at once, which switch Twill on for themselves. They share the memory of what they import.

    starting: how many make their context at a time. All have one when they begin to launch, `seconds` at most after the start.
    """
    import torch  # noqa: F401
    import triton  # noqa: F401
    import twill_gpu

    mode, several = os.environ.get("STAND_IN_MODE"), int(processes)
    (may, give), (ready, say), (go, begin) = os.pipe(), os.pipe(), os.pipe()
    os.write(give, b"." * int(starting))
    for _ in range(several):
        if os.fork() == 0:
            os.close(begin)
            os.read(may, 1)
            try:
                if mode:
                    twill_gpu.install(mode, jobs=1)
                machine = Machine()
                machine.begin()
            finally:
                os.write(give, b".")
                os.write(say, b".")
            os.read(go, 1)
            machine.launch(gemm(), int(count))
            tell(machine.result())
            sys.exit(0)
    end = time.monotonic() + float(seconds)
    there = 0
    while there < several and select.select([ready], [], [], max(0.0, end - time.monotonic()))[0]:
        there += len(os.read(ready, several))
    os.close(begin)
    codes = [os.wait()[1] for _ in range(several)]
    tell({"memory": codes, "asked": [0] * several, "twill": 0, "there": there})


if __name__ == "__main__":
    switch_on()
    globals()[sys.argv[1]](*sys.argv[2:])
