"""Examples and fixtures in CUDA C++, from TTIR to machine code, by `twill compile --emit cuda`.

They need a built `twill` (see test_examples.py) and NVRTC (cuda-bindings, nvidia-cuda-nvrtc, nvidia-cuda-runtime), but
no GPU, no Triton and no torch.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from folder import HERE
from test_examples import ROOT, command

CASES = {
    "gemm_tma_n256": [],
    "swiglu": [],
    "attention_forward": [],
    "fixtures/in_order/nested": [],
    "fixtures/product_bf16": ["--wave-sync"],
    "quantised/gemm_block_scaled": [],
}
"""One example each, with the options that it is compiled with."""
if os.environ.get("TWILL_LONG"):
    # The schedule that does not spill takes a minute and a half to find.
    CASES["attention_forward_d64"] = ["--wave-sync", "--candidates", "1"]
    CASES["attention_forward_d64_m64"] = ["--cta-coarsening", "3"]
    CASES["attention_backward_d64"] = ["--cluster", "2", "--candidates", "1", "--work-limit", "300000"]
    CASES["fixtures/epilogue_bias_vector_masked"] = []
    CASES["tutorial_attention"] = ["--retile-loop", "176"]
    CASES["attention_backward"] = ["--attempts", "1"]
    CASES |= {name: [] for name in ("attention_forward_causal", "gemm_pointers_n256", "quantised/gemm_int8")}
    CASES["fixtures/attention_relu"] = ["--retile-loop", "176"]
    others = ("in_order/regions", "in_order/while_loop", "product_half_sums", "product_left_transposed")
    CASES |= {f"fixtures/{name}": [] for name in others}
    epilogues = ("integers", "libdevice_pow", "residual_pointers", "softmax", "unsigned")
    CASES |= {f"fixtures/epilogue_{name}": [] for name in epilogues}


def missing():
    """The missing package; None if all are here."""
    if command() is None:
        return "needs twill: cargo build --release, or TWILL=…"
    try:
        found = importlib.util.find_spec("cuda.bindings.nvrtc")
    except ModuleNotFoundError:
        found = None
    return None if found else "needs cuda-bindings and NVRTC"


@cache
def report_of(folder):
    """What assemble.py says of a folder's machine code."""
    command = [sys.executable, "-B", "assemble.py", "--json"]
    return json.loads(subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout)


@unittest.skipIf(missing() is not None, missing())
class Cuda(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = Path(scratch.name)
        with ThreadPoolExecutor(2) as pool:
            cls.runs = dict(zip(CASES, pool.map(cls.compile, CASES), strict=True))

    @classmethod
    def compile(cls, name):
        # The first candidate is enough: which is the best is no matter here.
        few = [] if "--candidates" in CASES[name] else ["--candidates", "1"]
        options = ["--machine", "h200", "--emit", "cuda", "--python", sys.executable, *few, *CASES[name]]
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
                self.assertEqual(kernel["language"], "cuda")
                assembly = kernel["assembly"]
                self.assertEqual(assembly["spill_stores"], 0)
                self.assertEqual(assembly["findings"], [])
                self.assertEqual(assembly["shared_memory"], kernel["shared_memory"])
                self.assertLessEqual(assembly["shared_memory"], 232448)

    def test_the_faster_language_is_written_where_none_is_asked_for(self):
        """Attention backward takes 1.9 times its interval in Gluon and 1.4 times in CUDA; forward is near it in both."""
        for name, wanted, other in (("attention_backward", "kernel.cu", "kernel.py"), ("attention_forward", "kernel.py", "kernel.cu")):
            with self.subTest(name), tempfile.TemporaryDirectory() as scratch:
                example, folder = str(ROOT / "examples" / f"{name}.ttir"), Path(scratch) / name
                options = ["--machine", "h200", "--python", sys.executable, "--candidates", "1", "--quiet"]
                run = subprocess.run(
                    [command(), "compile", example, "--output", str(folder), *options],
                    capture_output=True,
                    text=True,
                    timeout=900,
                )
                self.assertEqual(run.returncode, 0, run.stderr)
                files = {path.name for path in folder.iterdir()}
                self.assertIn(wanted, files)
                self.assertNotIn(other, files)
                self.assertFalse({name for name in files if name.startswith(".")})

    def test_the_report_names_groups_and_loops(self):
        """The order of what matters in the loop: a ping-pong barrier, both MMAs, and the exponentials after the first wait."""
        report = report_of(self.folder / "attention_forward")
        self.assertEqual((report["warps"], report["barriers"] > 0), (12, True))
        if not report["groups"]:
            self.skipTest("needs nvdisasm")
        groups = {group["name"]: group for group in report["groups"]}
        self.assertEqual(set(groups), {"compute_1", "compute_2", "load"})
        for name in ("compute_1", "compute_2"):
            self.assertEqual(groups[name]["registers"], 240)
            [loop] = [loop for loop in groups[name]["loops"] if loop["exp2"]]
            self.assertEqual((loop["mma"], loop["exp2"]), (16, 66))
            self.assertRegex(loop["order"], r"^SYNCS BAR HGMMA\*8 SYNCS HGMMA\*8 BAR DEPBAR ")
        self.assertEqual(groups["load"]["registers"], 24)

    def test_traced_kernels_mma_as_others_do(self):
        for name, detail in (("attention_forward", "segments"), ("gemm_tma_n256", "operations")):
            with self.subTest(name, detail=detail):
                folder = self.folder / f"{name}.{detail}"
                example = str(ROOT / "examples" / f"{name}.ttir")
                options = ["--machine", "h200", "--emit", "cuda", "--no-assemble", "--trace", "--trace-detail", detail]
                run = subprocess.run(
                    [command(), "compile", example, "-o", str(folder), *options],
                    capture_output=True,
                    text=True,
                    timeout=900,
                )
                self.assertEqual(run.returncode, 0, run.stderr)
                kernel = json.loads((folder / "kernel.json").read_text())
                self.assertEqual(kernel["arguments"][-4], kernel["trace"]["parameter"])
                report = report_of(folder)
                self.assertEqual([finding["kind"] for finding in report["findings"]], [])
                groups = report["groups"]
                if not groups:
                    self.skipTest("needs nvdisasm")
                # The MMAs of a loop still run side by side.
                loops = [loop for group in groups for loop in group["loops"] if loop["mma"]]
                untraced = report_of(self.folder / name)["groups"]
                before = [loop for group in untraced for loop in group["loops"] if loop["mma"]]
                self.assertEqual([loop["mma"] for loop in loops], [loop["mma"] for loop in before])

    def test_a_cubin_is_written(self):
        file = self.folder / "gemm.cubin"
        run = subprocess.run(
            [sys.executable, "-B", "assemble.py", "--cubin", str(file)],
            cwd=self.folder / "gemm_tma_n256",
            capture_output=True,
            text=True,
        )
        self.assertEqual((run.returncode, run.stdout), (0, ""), run.stderr)
        self.assertEqual(file.read_bytes()[:4], b"\x7fELF")

    def test_what_does_not_compile_is_an_error_with_its_line(self):
        folder = self.folder / "broken"
        shutil.copytree(self.folder / "swiglu", folder)
        source = (folder / "kernel.cu").read_text()
        (folder / "kernel.cu").write_text(source + "static int broken = undeclared;\n")
        run = subprocess.run([sys.executable, "-B", "assemble.py"], cwd=folder, capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stderr, r"^NVRTC refused kernel\.cu:\nkernel\.cu\(\d+\): error: ")

    def test_a_gluon_folder_is_refused(self):
        run = subprocess.run(
            [sys.executable, "-B", "assemble.py", str(HERE / "gemm")],
            cwd=self.folder / "swiglu",
            capture_output=True,
            text=True,
        )
        self.assertEqual(run.returncode, 1)
        self.assertIn("kernel.cu", run.stderr)


if __name__ == "__main__":
    unittest.main()
