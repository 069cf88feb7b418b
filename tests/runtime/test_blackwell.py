"""Tests that generated Blackwell kernels become machine code: they need Triton and a built twill, but no GPU."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from folder import HERE, runtime

assemble = runtime("assemble")
ROOT = HERE.parents[1]


def twill():
    """The newest built command, or None."""
    targets = {Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")), ROOT / "target"}
    built = [target / profile / "twill" for target in targets for profile in ("release", "debug")]
    built = [path for path in built if path.is_file()]
    return max(built, key=lambda path: path.stat().st_mtime, default=None)


KERNELS = [
    ("gemm_tma", "b200", 128),
    ("swiglu", "b200", 256),
    ("attention_forward_causal", "b200", 512),
    ("attention_forward_m256", "b200-left-shared", 512),
    ("attention_backward", "b200-left-shared", 512),
]
"""Examples, the machine, and columns of tensor memory that the kernel takes, which are a power of two."""
if os.environ.get("TWILL_LONG"):
    # Other tiles of the same kernels.
    KERNELS += [("gemm_tma_n256", "b200", 256), ("attention_forward_d64", "b200", 256)]
    KERNELS += [("gemm_tma_m256", "b200", 256), ("attention_forward", "b200", 512)]


@unittest.skipUnless(twill(), "needs a built twill")
class Blackwell(unittest.TestCase):
    def test_kernels_become_machine_code(self):
        for name, machine, columns in KERNELS:
            with self.subTest(name), tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch) / name
                arguments = [ROOT / "examples" / f"{name}.ttir", "--machine", machine, "--no-assemble", "-o", folder]
                done = subprocess.run([twill(), "compile", *arguments], capture_output=True, text=True, cwd=ROOT)
                self.assertEqual(done.returncode, 0, done.stderr)
                report = assemble.assemble(folder)
                # Four warp groups have 128 registers a thread each at entry, and the softmax of 128 columns takes them.
                spilled = 32 if name == "attention_forward_m256" else 0
                self.assertLessEqual(report["spill_stores"], spilled)
                self.assertLessEqual({finding["kind"] for finding in report["findings"]}, {"spilled"} if spilled else set())
                self.assertEqual(report["tensor_memory"], columns)
                self.assertGreater(report["barriers_at"], 0)
                groups = {group["name"]: group["loops"] for group in report["groups"]}
                for group, loops in groups.items():
                    order = " ".join(loop["order"] for loop in loops)
                    self.assertEqual("UTCHMMA" in order, group == "mma", (group, order))
                self.assertTrue(any("UTMALDG" in loop["order"] for loop in groups["load"]))


if __name__ == "__main__":
    unittest.main()
