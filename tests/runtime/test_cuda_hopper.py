"""Tests of kernels in CUDA C++ for Hopper without one: emulated CTAs, which know what the PTX ISA says of fragments, descriptors,
barriers and clusters, compute with them what float64 does. They need a built twill, NVRTC and NumPy."""

import os
import re
import unittest
from concurrent.futures import ProcessPoolExecutor

from test_blackwell import twill
from test_cuda_blackwell import WAIT, compiled, nvrtc, run

if nvrtc:
    import numpy as np
    from emulated.cta import Wrong
    from emulated.epilogues import FUNCTIONS, OTHERS, Epilogue
    from emulated.launch import of_kernel
    from emulated.reference import Case

IN_STEP = ("--retile-loop", "144", "--operands-in-registers", "on", "--wave-sync")
CLUSTER = ("--cluster", "2")
SOON = ("--work-limit", "60000")
"""Any schedule will do where the best takes long to find."""
KERNELS = [
    ("attention_backward_d64", CLUSTER + SOON),
    ("attention_forward", ()),
    ("attention_forward", IN_STEP),
    ("attention_forward_d64_m64", ("--cta-coarsening", "3")),
    ("gemm_pointers", ()),
    ("gemm_tma", CLUSTER),
]
if os.environ.get("TWILL_LONG"):
    # Of which others have everything.
    KERNELS += [("attention_backward", ()), ("attention_forward", CLUSTER), ("gemm_tma", ())]
    KERNELS += [("attention_forward_causal", SOON), ("swiglu", ())]

ALIKE = {"bias_vector", "libdevice_tanh", "sigmoid", "tanh"}
"""Epilogues of which others have all that they are made of; with TWILL_LONG they are computed too."""


def errors(name, options):
    """The largest errors of an example's results, by trips and eagerness of the units."""
    kernel, ptx = compiled(name, "h200", *options)
    # Pairs of CTAs need an even grid; a step of 144 keys as many.
    cases = ((2, True), (2, False)) if options[:2] == CLUSTER or options == IN_STEP else ((1, True), (3, False))
    return {case: run(kernel, ptx, Case(kernel, case[0]), eager=case[1], seed=case[0]) for case in cases}


def error_of_epilogue(name):
    kernel, ptx = compiled(f"fixtures/epilogue_{name}", "h200", "--work-limit", "500000")
    case = Epilogue(name, kernel)
    of_kernel(kernel, ptx, case.tensors, case.numbers).run(2)
    return case.error()


@unittest.skipUnless(twill() and nvrtc, "needs a built twill, NVRTC (cuda-bindings) and NumPy")
class CudaForHopper(unittest.TestCase):
    def test_kernels_compute_what_float64_does(self):
        with ProcessPoolExecutor(2) as pool:
            answers = pool.map(errors, *zip(*KERNELS))
            for (name, options), found in zip(KERNELS, answers):
                with self.subTest(name, options=options):
                    self.assertLess(np.max([*found.values()]), 1e-3, found)

    def test_what_is_made_of_products(self):
        names = [name for name in [*FUNCTIONS, *OTHERS] if name not in ALIKE or os.environ.get("TWILL_LONG")]
        with ProcessPoolExecutor(2) as pool:
            for name, error in zip(names, pool.map(error_of_epilogue, names)):
                with self.subTest(name):
                    self.assertLess(error, 1e-3)

    def test_a_cta_walks_over_tiles(self):
        ways = ((1, False), (3, True), (1, True))
        for name, ways in (("gemm_tma", ways), ("attention_forward_d64_m64", ways[:2])):
            with self.subTest(name):
                kernel, ptx = compiled(name, "h200")
                for ctas, eager in ways:
                    self.assertLess(run(kernel, ptx, Case(kernel, 2), ctas=ctas, eager=eager), 1e-3)

    def test_a_cta_takes_tiles_in_serpentine_order(self):
        kernel, ptx = compiled("attention_forward_causal", "h200", *SOON)
        self.assertEqual(kernel["grid"]["serpentine"], 2)
        # Six tiles, in three waves and in two.
        for ctas, eager in ((2, True), (4, False)):
            self.assertLess(run(kernel, ptx, Case(kernel, 3), ctas=ctas, eager=eager), 1e-3)

    def test_pairs_of_ctas_walk_over_tiles(self):
        kernel, ptx = compiled("attention_forward", "h200", *CLUSTER)
        self.assertEqual(kernel["grid"]["kind"], "persistent")
        for eager in (True, False):
            self.assertLess(run(kernel, ptx, Case(kernel, 2), ctas=2, eager=eager), 1e-3)

    def test_ctas_in_wave_sync_wait_for_each_other(self):
        kernel, ptx = compiled("gemm_tma", "h200", "--wave-sync")
        for at_once in (1, 2):
            with self.subTest(at_once=at_once):
                case = Case(kernel, 2)
                launch = of_kernel(kernel, ptx, case.tensors, case.numbers)
                launch.run(2, at_once=at_once)
                self.assertLess(np.max([*case.errors().values()]), 1e-3)
                # A CTA that is alone waits its 20,000 cycles, and the counter is zero again.
                self.assertEqual(launch.clock > 20000, at_once == 1)
                self.assertFalse(launch.arrays[-1].any())

    def test_what_is_wrong_is_seen(self):
        kernel, ptx = compiled("attention_forward", "h200", "--operands-in-registers", "on")
        # The others are protected by waits for what is loaded ahead of them.
        free = [m for m in WAIT.finditer(ptx) if "tensor.2d.shared" in ptx[m.end() : m.end() + 1500].split("try_wait")[0]]
        results = re.search(r"wgmma\.wait_group\.sync\.aligned 1;", ptx)
        sums = list(re.finditer(r"wgmma\.wait_group\.sync\.aligned 0;", ptx))
        mistakes = {
            "loads before their slot is free": (free[-1].span(), ""),
            "scores before they are there": (results.span(), ""),
            "the last sum before it is there": (sums[-1].span(), ""),
            "a ping-pong barrier at which nobody arrives": (re.search(r"bar\.arrive [^;]*;", ptx).span(), ""),
            "a ping-pong barrier that is not waited for": (re.search(r"bar\.sync (8|9), 256;", ptx).span(), ""),
            "matrices at another address": (re.search(r"xor\.b32\s+%r\d+, %r\d+, (32);", ptx).span(1), "96"),
            "sums that nobody stores": (re.search(r"st\.global[^;]*;", ptx).span(), ""),
        }
        for mistake, ((start, end), text) in mistakes.items():
            with self.subTest(mistake):
                try:
                    error = run(kernel, ptx[:start] + text + ptx[end:], Case(kernel, 3), ctas=1, eager=False)
                except Wrong:
                    continue
                self.assertFalse(error < 1e-3)


if __name__ == "__main__":
    unittest.main()
