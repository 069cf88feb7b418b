"""A launch: one CTA after another, or some at once, and of each the warps in turn."""

import random

import numpy as np

from .cta import Cta, Tensor, Wrong, need
from .program import Program
from .warp import PARAMETERS, Warp

GLOBAL = 1 << 44
"""Where arrays in global memory are: one at every 2 ** 32 bytes."""


class Launch:
    """`arguments` by their place: tensors for tensor maps, arrays for pointers, numbers."""

    def __init__(self, ptx, threads, arguments):
        self.program, self.threads, self.arguments, self.arrays = Program(ptx), threads, arguments, []
        self.values, self.ctas, self.cluster, self.number, self.clock = {}, 1, 1, 1, 0
        need(len(arguments) == len(self.program.parameters), "as many arguments as parameters")
        for (kind, name), argument in zip(self.program.parameters, arguments):
            if isinstance(argument, np.ndarray):
                self.arrays.append(argument.view(np.uint8).reshape(-1))
                self.values[name] = np.uint64(GLOBAL + (len(self.arrays) - 1 << 32))
            elif not isinstance(argument, Tensor):
                self.values[name] = {"u32": np.int32, "f32": np.float32, "u64": np.int64}[kind](argument)
        # The kernel's own global memory, zero at first.
        self.globals = {name: GLOBAL + (len(self.arrays) + k << 32) for k, name in enumerate(self.program.globals)}
        self.arrays += [np.zeros(size, np.uint8) for size in self.program.globals.values()]

    def special(self, name, warp):
        if name == "%tid.x":
            return warp.number * 32 + np.arange(32)
        if name == "%clock64":
            self.clock += 100
            return self.clock
        own = {"%ctaid.x": warp.cta.number, "%cluster_ctarank": warp.cta.rank}
        return ({"%nctaid.x": self.ctas, "%ntid.x": self.threads, "%gridid": self.number} | own).get(name)

    def tensor(self, address):
        found = self.arguments[(address - PARAMETERS) // 4096]
        need(isinstance(found, Tensor), "no tensor map")
        return found

    def memory_of(self, addresses):
        number = int(addresses[0] - GLOBAL >> 32) if len(addresses) else 0
        need(0 <= number < len(self.arrays), "an address that no array has")
        begin, memory = GLOBAL + (number << 32), self.arrays[number]
        need(((addresses >= begin) & (addresses < begin + len(memory))).all(), "an address beyond its array")
        return memory, begin

    def run(self, ctas, eager=True, seed=0, at_once=1):
        """N CTAs, of which M run at the same time; all of a cluster do."""
        self.ctas, self.random = ctas, random.Random(seed)
        at_once = max(at_once, self.cluster)
        for first in range(0, ctas, at_once):
            there = [Cta(eager, seed + number, number) for number in range(first, min(first + at_once, ctas))]
            for k, cta in enumerate(there):
                if self.cluster > 1:
                    begin = k // self.cluster * self.cluster
                    cta.cluster, cta.rank = there[begin : begin + self.cluster], k - begin
            # Threads that compute what they do not use divide by zero too.
            with np.errstate(all="ignore"):
                self.run_together(there)

    def run_together(self, ctas):
        threads = range(self.threads // 32)
        warps = [Warp(number, self.program, cta, self) for cta in ctas for number in threads]
        while not all(warp.is_done for warp in warps):
            # In no order that a kernel could rely on.
            self.random.shuffle(warps)
            moved = sum(warp.step() for warp in warps if not warp.is_done)
            for cta in ctas:
                cta.has_ended = all(warp.is_done for warp in warps if warp.cta is cta)
            if not moved and not any([cta.work() for cta in ctas]):
                waits = [f"warp {w.number} of CTA {w.cta.number}: {w.waiting}" for w in warps if not w.is_done]
                raise Wrong("everybody waits: " + "; ".join(waits))
        for cta in ctas:
            while cta.work():
                pass
            need(cta.columns == 0, "tensor memory was not given back")
        left = [w.number for w in warps if any(open_group or groups for open_group, groups in w.stores)]
        need(not left, f"warps {left} end before their stores have read shared memory")
        left = [w.number for w in warps if w.open or w.groups]
        need(not left, f"warps {left} end before their MMAs")


def of_kernel(kernel, ptx, tensors, numbers):
    """A launch of a generated kernel (kernel.json): tensors by the names of parameters, and numbers by theirs."""
    blocks = {b["argument"]: (p["name"], b) for p in kernel["parameters"] for b in p.get("blocks", ())}
    arguments = []
    for name in kernel["arguments"]:
        if name in blocks:
            parameter, block = blocks[name]
            # The shape that the kernel states of a matrix at a pointer.
            extents = [numbers.get(extent, extent) for extent in block.get("extents", ())]
            array = tensors[parameter][tuple(slice(extent) for extent in extents)]
            arguments.append(Tensor(array, tuple(block["box"]), block["swizzle"]))
        else:
            arguments.append(tensors[name] if name in tensors else numbers[name])
    launch = Launch(ptx, kernel["threads"], arguments)
    launch.cluster = kernel["grid"].get("cluster", 1)
    return launch
