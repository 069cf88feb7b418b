"""A launch: one CTA after another, and of each the warps in turn."""

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
        self.values, self.cta_number, self.ctas = {}, 0, 1
        need(len(arguments) == len(self.program.parameters), "as many arguments as parameters")
        for (kind, name), argument in zip(self.program.parameters, arguments):
            if isinstance(argument, np.ndarray):
                self.arrays.append(argument.view(np.uint8).reshape(-1))
                self.values[name] = np.uint64(GLOBAL + (len(self.arrays) - 1 << 32))
            elif not isinstance(argument, Tensor):
                self.values[name] = {"u32": np.int32, "f32": np.float32, "u64": np.int64}[kind](argument)

    def special(self, name, warp):
        if name == "%tid.x":
            return warp * 32 + np.arange(32)
        return {"%ctaid.x": self.cta_number, "%nctaid.x": self.ctas, "%ntid.x": self.threads}.get(name)

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

    def meet(self, warp, barrier, count, waits):
        """A warp comes to a named barrier."""
        here = self.met.setdefault(barrier, set())
        if warp in self.passed.get(barrier, set()):
            self.passed[barrier].discard(warp)
            return None
        here.add(warp)
        if len(here) * 32 == count:
            self.passed.setdefault(barrier, set()).update(here - {warp})
            self.met[barrier] = set()
            return None
        warp.waiting = f"bar.sync {barrier}"
        return "wait"

    def run(self, ctas, eager=True, seed=0):
        """So many CTAs."""
        self.ctas = ctas
        for self.cta_number in range(ctas):
            self.met, self.passed = {}, {}
            cta = Cta(eager, seed + self.cta_number)
            warps = [Warp(number, self.program, cta, self) for number in range(self.threads // 32)]
            while not all(warp.is_done for warp in warps):
                if not sum(warp.step() for warp in warps if not warp.is_done) and not cta.work():
                    waits = [f"warp {w.number}: {w.waiting}" for w in warps if not w.is_done]
                    raise Wrong("everybody waits: " + "; ".join(waits))
            while cta.work():
                pass
            need(cta.columns == 0, "tensor memory was not given back")
            left = [w.number for w in warps if any(open_group or groups for open_group, groups in w.stores)]
            need(not left, f"warps {left} end before their stores have read shared memory")


def of_kernel(kernel, ptx, tensors, numbers):
    """A launch of a generated kernel (kernel.json): tensors by the names of parameters, and numbers by theirs."""
    blocks = {b["argument"]: (p["name"], b) for p in kernel["parameters"] for b in p.get("blocks", ())}
    arguments = []
    for name in kernel["arguments"]:
        if name in blocks:
            parameter, block = blocks[name]
            arguments.append(Tensor(tensors[parameter], tuple(block["box"]), block["swizzle"]))
        else:
            arguments.append(tensors[name] if name in tensors else numbers[name])
    return Launch(ptx, kernel["threads"], arguments)
