"""Tests of kernels in CUDA C++ for Blackwell without one: they become machine code, and an emulated CTA, which knows what
the PTX ISA says of layouts, descriptors and barriers, computes with them what float64 does. They need a built twill, NVRTC and NumPy."""

import importlib.util
import os
import re
import subprocess
import tempfile
import unittest
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from test_blackwell import KERNELS, ROOT, twill

try:
    import numpy as np
    from cuda.bindings import nvrtc
    from emulated.cta import Cta, Wrong
    from emulated.launch import of_kernel
    from emulated.reference import Case
except ImportError:
    nvrtc = None

MORE = [("attention_forward_causal_d64_m64", "b200", 512), ("attention_forward", "b200-left-shared", 256)]
"""Left operands of 64 rows in tensor memory, and others in shared memory."""
EMULATED = {"gemm_tma", "swiglu", "attention_forward_causal_d64_m64", "attention_backward"}
"""Those that are also computed with; all of them with TWILL_EMULATE=all, which takes minutes."""
WAIT = re.compile(r"\{ \.reg \.pred p; again: mbarrier\.try_wait[^}]*\}")
"""A wait for an mbarrier in PTX."""


SCRATCH = tempfile.TemporaryDirectory()
"""What all tests of a run compile, each kernel once: processes that they begin have the same folder."""


def written(name, machine, *options):
    """The folder of an example in CUDA C++, as a module that compiles it; its kernel.json."""
    folder = Path(SCRATCH.name) / f"{name.replace('/', '-')}-{machine}{''.join(options)}"
    if not folder.exists():
        arguments = [ROOT / "examples" / f"{name}.ttir", "--machine", machine, "--emit", "cuda", "--no-assemble", *options]
        done = subprocess.run(
            [twill(), "compile", *arguments, "-o", folder], capture_output=True, text=True, cwd=ROOT, check=False
        )
        assert done.returncode == 0, done.stderr
    spec = importlib.util.spec_from_file_location("assemble", folder / "assemble.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, module.read_kernel(folder)[0]


def compiled(name, machine, *options):
    """The kernel.json of an example and its PTX, without machine code."""
    module, kernel = written(name, machine, *options)
    folder = Path(module.__file__).parent
    file = folder / "kernel.ptx"
    if not file.exists():
        virtual = kernel | {"architecture": kernel["architecture"].replace("sm_", "compute_")}
        file.write_text(module.build(virtual, module.read_kernel(folder)[1])[0].asm["ptx"])
    return kernel, file.read_text()


def run(kernel, ptx, case, ctas=None, **how):
    """The largest error of a case's results."""
    launch = of_kernel(kernel, ptx, case.tensors, case.numbers)
    launch.run(ctas or case.grid[0] * case.grid[1], **how)
    return np.max([*case.errors().values()])


def assembled(name, machine):
    """The report on an example's machine code; its kernel.json and its PTX."""
    module, kernel = written(name, machine)
    build, built = module.build, []

    def kept(*arguments, **named):
        built.append(build(*arguments, **named))
        return built[-1]

    module.build = kept
    report = module.assemble(Path(module.__file__).parent)
    ptx = built[-1][0].asm["ptx"]
    (Path(module.__file__).parent / "kernel.ptx").write_text(ptx)
    return report, kernel, ptx


def looked_at(name, machine):
    """The report on an example's machine code, and the errors of its results by trips and eagerness of the units."""
    report, kernel, ptx = assembled(name, machine)
    # Units do everything as early as can be, or as late.
    product = [(0, True), (2, True), (5, False)]
    attention = [(1, True), (3 if kernel["constants"].get("BLOCK_M") != 256 else 2, False)]
    cases = attention if kernel["name"].startswith("attention") else product
    if name not in EMULATED and os.environ.get("TWILL_EMULATE") != "all":
        cases = []
    return report, {case: run(kernel, ptx, Case(kernel, case[0]), eager=case[1], seed=case[0]) for case in cases}


@unittest.skipUnless(twill() and nvrtc, "needs a built twill, NVRTC (cuda-bindings) and NumPy")
class CudaForBlackwell(unittest.TestCase):
    def test_kernels_become_machine_code_and_compute_what_float64_does(self):
        cases = KERNELS + MORE
        with ProcessPoolExecutor(2) as pool:
            answers = pool.map(looked_at, *zip(*[case[:2] for case in cases]))
            for (name, machine, columns), (report, errors) in zip(cases, answers):
                with self.subTest(name, machine=machine):
                    self.assertLessEqual(report["spill_stores"], 16)
                    self.assertEqual(report["tensor_memory"], columns)
                    for group in report["groups"]:
                        order = " ".join(loop["order"] for loop in group["loops"])
                        self.assertEqual("UTCHMMA" in order, group["name"] == "mma", (group["name"], order))
                    # No loop over the threads of a warp around what one of them does.
                    loops = [loop["order"] for group in report["groups"] for loop in group["loops"]]
                    self.assertFalse([order for order in loops if order in ("UTMALDG", "UTCHMMA")])
                    self.assertLess(np.max([0.0, *errors.values()]), 1e-3, errors)

    def test_a_cta_walks_over_tiles(self):
        for name, machine in (("gemm_tma", "b200"), ("attention_forward_d64", "b200")):
            with self.subTest(name):
                kernel, ptx = compiled(name, machine, "--persistent", "on")
                for ctas, eager in ((1, True), (1, False), (3, True)):
                    self.assertLess(run(kernel, ptx, Case(kernel, 2), ctas=ctas, eager=eager), 1e-3)

    def test_what_is_wrong_is_seen(self):
        kernel, ptx = compiled("gemm_tma", "b200")
        results = next(m for m in WAIT.finditer(ptx) if "tcgen05.ld" in ptx[m.end() : m.end() + 12000])
        operands = next(m for m in WAIT.finditer(ptx) if "tcgen05.mma" in ptx[m.end() : m.end() + 3000])
        instruction = re.search(r"mov\.b32\s+%r\d+, (136314896);", ptx)
        mistakes = {
            "results before they are there": (results.span(), ""),
            "operands before they are there": (operands.span(), ""),
            "64 rows instead of 128": (instruction.span(1), str(136314896 - (4 << 24))),
            "a transposed right operand": (instruction.span(1), str(136314896 | 1 << 16)),
            "registers before they are loaded": (re.search(r"tcgen05\.wait::ld\.sync\.aligned;", ptx).span(), ""),
            "nobody signals": (re.search(r"tcgen05\.commit[^;]*;", ptx).span(), ""),
        }
        for mistake, ((start, end), text) in mistakes.items():
            with self.subTest(mistake):
                # More trips than slots, so that a slot that nobody gives back is missed.
                case = Case(kernel, 9)
                try:
                    error = run(kernel, ptx[:start] + text + ptx[end:], case, eager=False)
                except Wrong:
                    continue
                self.assertFalse(error < 1e-3)

    def test_descriptors_are_those_of_the_isa(self):
        """By fields of their own: rows and columns of results, types, directions; lines, panels and swizzling."""
        _, ptx = compiled("attention_backward", "b200-left-shared")
        constants = {int(n) & 0xFFFFFFFF for n in re.findall(r"mov\.b32\s+%r\d+, (-?\d+);", ptx)}

        def instruction(rows, columns, left_along_rows, right_along_columns):
            fields = {4: 1, 15: left_along_rows, 16: right_along_columns, 17: columns // 8, 24: rows // 16}
            return sum(value << at for at, value in fields.items())

        # S and dP; dK and dV; dQ.
        for wanted in (instruction(128, 64, 0, 0), instruction(128, 128, 0, 1), instruction(64, 128, 1, 1)):
            self.assertIn(wanted, constants)
        added = {int(n) & 2**64 - 1 for n in re.findall(r"(?:add|or)\.[bs]64\s+%rd\d+, %rd\d+, (-?\d+);", ptx)}
        upper = {n >> 32 for n in added if n >> 46 & 7}
        # Swizzling of 128 bytes, the constant 1, and 1024 bytes between eight lines.
        self.assertEqual(upper, {2 << 29 | 1 << 14 | 1024 >> 4})

    def test_the_emulated_core_reads_what_the_isa_draws(self):
        """Canonical layouts, against matrices that are put into shared memory by hand."""
        cta = Cta(True, 0)
        matrix = np.random.default_rng(0).standard_normal((128, 64)).astype(np.float16)
        for row in range(128):
            for piece in range(8):
                at = 4096 + row * 128 + (piece ^ row % 8) * 16
                cta.shared[at : at + 16] = matrix[row, piece * 8 : piece * 8 + 8].view(np.uint8)
        common = 4096 >> 4 | (1024 >> 4) << 32 | 1 << 46 | 2 << 61
        for k in range(4):
            along = cta.matrix(common + (k * 32 >> 4), 128, True, 0)
            self.assertTrue((along == matrix[:, k * 16 : k * 16 + 16]).all())
        for k in range(8):
            across = cta.matrix(common + (k * 16 * 128 >> 4) | (16384 >> 4) << 16, 64, False, 0)
            self.assertTrue((across == matrix[k * 16 : k * 16 + 16].T).all())


if __name__ == "__main__":
    unittest.main()
