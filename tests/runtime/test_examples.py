"""Examples from TTIR to machine code, by `twill compile`: no spills and no serialised MMAs where there are none today.

They need Triton and a built `twill`, but no GPU: TWILL_COMMAND names the command, or it is looked for in target/ and on the path.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from folder import runtime

ROOT = Path(__file__).resolve().parents[2]
CASES = {
    "gemm_tma": [],
    "gemm_tma_n256": ["--persistent", "on"],
    "attention_forward": [],
    "attention_forward_causal": [],
    "gemm_pointers": [],
    "attention_forward_d64": ["--schedule", "no-swp"],
    "fixtures/pointers/held": [],
    "fixtures/product_batched": [],
    "fixtures/pointers/turned": ["--ctas-per-sm", "1"],
    "fixtures/pointers/exchanged": [],
    "fixtures/pointers/curved": [],
    "fixtures/in_order/viewed": ["--schedule", "multistage", "--num-warps", "2", "--num-stages", "3"],
}
"""One example each, with the options that it is compiled with."""
if os.environ.get("TWILL_LONG"):
    # Two loops as in attention_forward_causal, in the form of tutorial_attention.
    CASES["tutorial_attention_causal"] = ["--persistent", "off", "--candidates", "1"]
    CASES |= {name: [] for name in ("swiglu", "tutorial_attention", "fixtures/pointers/several")}


def command():
    """The `twill` to test; None if there is none."""
    if named := os.environ.get("TWILL_COMMAND"):
        return named
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [target / profile / "twill" for profile in ("release", "debug")]
    return next((str(path) for path in built if path.is_file()), shutil.which("twill"))


@unittest.skipIf(command() is None, "needs twill: cargo build --release, or TWILL=…")
class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = Path(scratch.name)
        with ThreadPoolExecutor(2) as pool:
            cls.runs = dict(zip(CASES, pool.map(cls.compile, CASES), strict=True))

    @classmethod
    def compile(cls, name):
        options = ["--machine", "h200", "--python", sys.executable, "--attempts", "1", *CASES[name]]
        example = str(ROOT / "examples" / f"{name}.ttir")
        return subprocess.run(
            [command(), "compile", example, "--output", str(cls.folder / Path(name).name), *options],
            capture_output=True,
            text=True,
            timeout=900,
        )

    def test_machine_code(self):
        for name, run in self.runs.items():
            with self.subTest(name):
                self.assertEqual(run.returncode, 0, run.stderr)
                kernel = json.loads((self.folder / Path(name).name / "kernel.json").read_text())
                assembly = kernel["assembly"]
                self.assertEqual((assembly["spill_stores"], assembly["spill_loads"]), (0, 0))
                self.assertEqual(assembly["findings"], [])
                # Without warp groups there are no barriers.
                self.assertEqual(kernel["barriers_at"] >= 0, "multistage" not in CASES[name])
                self.assertLessEqual(assembly["shared_memory"], 232448)

    def test_ctas_share_a_multiprocessor_where_registers_suffice(self):
        kernels = [json.loads((self.folder / name / "kernel.json").read_text()) for name in ("gemm_tma", "held", "turned")]
        whole, shared, alone = kernels
        ctas = [kernel["grid"]["ctas_per_sm"] for kernel in kernels]
        self.assertEqual((ctas[0], ctas[2]), (1, 1))
        self.assertGreater(ctas[1], 1)
        # A warp group that loads beside one that computes: 256 threads.
        self.assertLessEqual(ctas[1] * 256 * shared["assembly"]["registers"], 65536)
        self.assertLessEqual(ctas[1] * (shared["assembly"]["shared_memory"] + 1024), 233472)
        self.assertEqual(shared["entry_registers"], shared["assembly"]["registers"])
        self.assertNotIn("entry_registers", whole | alone)

    def test_barriers_have_memory_of_their_own(self):
        """As much is taken as where Triton itself sees every use of them: what threads exchange lies elsewhere."""
        folder = self.folder / "exchanged"
        kernel = json.loads((folder / "kernel.json").read_text())
        bare = runtime("assemble").assemble(folder, True)
        self.assertEqual(kernel["assembly"]["shared_memory"], bare["shared_memory"])

    def test_slots_are_read_before_they_are_given_back(self):
        """LLVM moves loads over PTX of which it does not know that it orders memory."""
        assemble = runtime("assemble")
        kernel, function = assemble.read_kernel(self.folder / "curved")
        built, at = assemble.build(kernel, function)
        self.assertGreaterEqual(at, 0)
        reads, given_back = 0, False
        for line in built.asm["ptx"].splitlines():
            if "@p mbarrier.arrive.shared::cta" in line:
                given_back = True
            elif re.search(r"try_wait|bar(rier)?\.sync|bar\.warp", line):
                given_back = False
            elif "ld.shared" in line:
                reads += 1
                self.assertFalse(given_back, line)
        self.assertGreater(reads, 0)

    def test_tiles_that_are_seen_in_another_shape_stay_where_they_are(self):
        """Unpacking and transposing take no shared memory: three slots of a tile, and one for what is stored, are all."""
        kernel = json.loads((self.folder / "viewed" / "kernel.json").read_text())
        self.assertEqual(kernel["num_warps"], 2)
        self.assertEqual(kernel["assembly"]["shared_memory"], (3 + 1) * 16 * 16 * 2)

    def test_the_test_next_to_the_kernel_compiles_it(self):
        run = subprocess.run(
            [sys.executable, "-B", "test_kernel.py", "Compiles"],
            cwd=self.folder / "gemm_tma",
            capture_output=True,
            text=True,
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stderr, r"Ran 1 test .*\n\nOK\n")


if __name__ == "__main__":
    unittest.main()
