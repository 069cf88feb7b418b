"""Compiles the kernel of this folder; runs it where there is a GPU for it, and compares the results with float64.

    python test_kernel.py

Compiling needs Triton, running torch and a GPU of the kernel's architecture; what cannot be done is skipped.
"""

import importlib.util
import json
import math
import re
import unittest
from pathlib import Path

try:
    import torch
except ImportError:
    torch = None

HERE = Path(__file__).resolve().parent
KERNEL = json.loads((HERE / "kernel.json").read_text())
CONSTANTS = KERNEL["constants"]
CLUSTER = KERNEL["grid"].get("cluster", 1)
WHOLE = CLUSTER * KERNEL["grid"]["cta_coarsening"][0] if CLUSTER > 1 else 1
"""Programs along the first axis of the grid of which there must be a multiple: those of a cluster of thread blocks."""
LEAST = max((parameter.get("at_least", 1) for parameter in KERNEL["parameters"]), default=1)
"""The shortest loop, in elements, where it has longer steps than its source."""
DEVICE = "cuda"
GUARD = 4096
"""Elements after every output; a multiple of what descriptors want addresses to be."""


def missing():
    """Why the kernel cannot run here; None if it can."""
    if torch is None:
        return "needs torch"
    if not torch.cuda.is_available():
        return "needs a GPU"
    major, minor = torch.cuda.get_device_capability()
    wanted = int(re.search(r"\d+", KERNEL["architecture"])[0])
    return None if 10 * major + minor == wanted else f"needs a GPU of {KERNEL['architecture']}"


def random(*shape, scale=1.0):
    return (torch.randn(*shape, device=DEVICE, dtype=torch.float32) * scale).half()


def output(*shape, dtype=None, fill=math.nan):
    """Full of NaN, with a guard after its end: what is left out shows, and what is written too far."""
    memory = torch.full((math.prod(shape) + GUARD,), math.nan, device=DEVICE, dtype=dtype or torch.float16)
    memory[: math.prod(shape)] = fill
    return memory[: math.prod(shape)].view(shape)


def ceiling(a, b):
    return -(-a // b)


@unittest.skipIf(missing(), str(missing()))
class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kernel = module("launch").load(HERE)

    def setUp(self):
        torch.manual_seed(0)

    def agrees(self, name, out, reference, limit):
        """The output is right, in ‖out − reference‖ / ‖reference‖, and nothing is written after its end."""
        guard = out.as_strided((out.numel() + GUARD,), (1,))[out.numel() :]
        self.assertTrue(guard.isnan().all().item(), f"{name}: something is written after its end")
        error = ((out.double() - reference).norm() / reference.norm()).item()
        self.assertLess(error, limit, f"{name}: ‖out − reference‖ / ‖reference‖, NaN where something is not written")

