"""Tests of the programs of examples/loaders: they build, launch what plan.py launches, and say clearly what is wrong.

On a Hopper GPU they run, and must find the kernel's results right; without one they must say that there is none. Those in
Rust and Python run also on a driver that computes on the CPU (driver.c); that in C++ needs more of a driver than that.
"""

import functools
import json
import sys
import tempfile
import unittest
from pathlib import Path

import tools

try:
    import cuda.bindings.driver
    import numpy  # noqa: F401
except ImportError:
    cuda = None

KERNELS = ["gemm_tma", "gemm_tma_m256", "gemm_tma_n256"]
SIZES = [(256, 384, 128), (1, 8, 16), (1000, 136, 4096), (65536, 8192, 64)]
LAUNCHED = [("gemm_tma", (256, 384, 128), 6, "2 3 1"), ("gemm_tma_n256", (2000, 2312, 16), 80, "16 10 1")]
"""Kernels, sizes, and the thread blocks and programs that the driver of driver.c, with 132 multiprocessors, must see:
160 tiles are two waves of 80."""
PYTHON = [sys.executable, tools.LOADERS / "python/gemm.py"]


@functools.cache
def rust():
    """The program in Rust, tested and built. Skips where its dependencies cannot be had."""
    project = ["--manifest-path", tools.LOADERS / "rust/Cargo.toml", "--locked"]
    target = tools.TARGET / "loaders"
    if tools.command(tools.CARGO, "fetch", *project, "--offline").returncode != 0:
        fetched = tools.command(tools.CARGO, "fetch", *project)
        if fetched.returncode != 0:
            raise unittest.SkipTest(f"cannot fetch what the program in Rust needs: {fetched.stderr}")
    options = ["--quiet", "--offline", "--target-dir", target, "--config", "profile.dev.debug=0"]
    for task in "test", "build":
        done = tools.command(tools.CARGO, task, *project, *options)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
    return target / "debug/twill-gemm"


@functools.cache
def machine_code(name):
    """The machine code of a kernel, as assemble.py writes it."""
    folder, cubin = tools.cuda(name), Path(tools.SCRATCH.name) / f"{name}.cubin"
    done = tools.command(sys.executable, folder / "assemble.py", "--cubin", cubin)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return cubin


def loaded(folder, name):
    """A file of a kernel's folder as a module."""
    sys.path.insert(0, str(tools.LOADERS / "python"))
    try:
        import gemm

        return gemm.neighbour(folder, name)
    finally:
        sys.path.pop(0)


def planned(folder, m, n, k):
    """The tensor maps that plan.py makes of row-major matrices, by the kernel's arguments."""
    plan, kernel = loaded(folder, "plan"), json.loads((folder / "kernel.json").read_text())
    shapes = {"a_desc": (m, k), "b_desc": (n, k), "c_desc": (m, n)}
    maps = {}
    for parameter in kernel["parameters"]:
        for block in parameter.get("blocks", ()):
            shape, layout = shapes[parameter["name"]], (parameter["element"], tuple(block["box"]), block["swizzle"])
            rest = plan.TensorMaps(plan.Tile(shape, (shape[1], 1), block["shape"], layout)).rest
            maps[block["argument"]] = [[int(v) for v in item] if isinstance(item, list) else int(item) for item in rest]
    return maps


@functools.cache
def driver():
    """A folder with the driver that computes on the CPU."""
    folder = Path(tools.SCRATCH.name) / "driver"
    folder.mkdir()
    source, library = Path(__file__).with_name("driver.c"), folder / "libcuda.so.1"
    done = tools.command(
        tools.CC, "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", source, "-o", library, "-ldl"
    )
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return folder


class Programs(unittest.TestCase):
    def outcome(self, done):
        """That a program did what there is a GPU for, and said so."""
        if tools.HAS_GPU:
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, "^gemm_tma 256 x 384 x 128: right, largest error .* TFLOP/s\n$")
        else:
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("gemm: no GPU: ", done.stderr)

    def multiplied(self, *words):
        """That a program launches the kernel as it should, finds a right result right, and a wrong one wrong."""
        if not tools.CC:
            self.skipTest("needs a C compiler")
        for name, (m, n, k), blocks, programs in LAUNCHED:
            kernel = json.loads((tools.cuda(name) / "kernel.json").read_text())
            launch = f"{blocks} blocks of {kernel['threads']} threads and {kernel['shared_memory']} bytes, "
            launch += f"programs {programs}\n"
            for wrong in {}, {"TWILL_WRONG": "1"}:
                with self.subTest(name, wrong=bool(wrong)):
                    variables = {"LD_LIBRARY_PATH": str(driver()), **wrong}
                    done = tools.command(*words, *self.files(name), m, n, k, variables=variables)
                    self.assertEqual((done.returncode, done.stderr), (1 if wrong else 0, launch), done.stdout)
                    said = "WRONG" if wrong else "right"
                    self.assertRegex(done.stdout, f"^gemm_tma {m} x {n} x {k}: {said}, largest error .* TFLOP/s\n$")

    def refused(self, words, text):
        done = tools.command(*words)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(text, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertNotIn("panicked", done.stderr)


@unittest.skipUnless(tools.TWILL and tools.NVCC and tools.CMAKE, "needs a built twill, nvcc and cmake")
class Cpp(Programs):
    def test_it_builds_and_runs(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = tools.cuda("gemm_tma")
            made = tools.command(tools.CMAKE, "-S", tools.LOADERS / "cpp", "-B", scratch, f"-DKERNEL={folder}")
            self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
            built = tools.command(tools.CMAKE, "--build", scratch)
            self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
            self.assertNotIn("warning", built.stdout + built.stderr)
            program = Path(scratch) / "gemm"
            self.outcome(tools.command(program, 256, 384, 128))
            self.refused([program, 256, 384, "many"], "gemm: sizes are whole numbers from 1 to 1048576, not many")
            # Another folder, and the same build.
            other = tools.command(tools.CMAKE, scratch, f"-DKERNEL={tools.kernel('gemm_tma')}")
            self.assertNotEqual(other.returncode, 0)
            self.assertIn("there is no kernel.cu", other.stderr)


@unittest.skipUnless(tools.TWILL and tools.CARGO, "needs a built twill and cargo")
class Rust(Programs):
    def files(self, name):
        if cuda is None:
            self.skipTest("needs cuda-bindings and NVRTC")
        return tools.cuda(name), machine_code(name)

    def test_it_builds_and_runs(self):
        self.outcome(tools.command(rust(), *self.files("gemm_tma"), 256, 384, 128))

    @unittest.skipIf(tools.HAS_GPU, "there is a driver")
    def test_what_it_launches(self):
        self.multiplied(rust())

    def test_what_it_cannot_run(self):
        folder = tools.cuda("gemm_tma")
        self.refused([rust()], "usage: twill-gemm FOLDER CUBIN M N K")
        cases = [
            (folder, (256, 0, 128), "N must be a whole number from 1 to 1048576, not 0"),
            (folder, (256, 260, 128), "N must be a multiple of 8, not 260"),
            (folder, (256, 256, 120), "K must be a multiple of 16, not 120"),
            (tools.kernel("gemm_tma"), (256, 256, 128), "kernel.json is no twill-kernel of version 1 in CUDA"),
            (
                tools.cuda("gemm_pointers"),
                (256, 256, 128),
                "this program runs gemm_tma, but gemm_pointers has an argument",
            ),
            (folder / "nowhere", (256, 256, 128), "nowhere/kernel.json: No such file"),
        ]
        for place, sizes, text in cases:
            with self.subTest(text):
                self.refused([rust(), "--describe", place, *sizes], text)
        self.refused([rust(), folder, folder / "kernel.cubin", 256, 256, 128], "kernel.cubin: No such file")


@unittest.skipUnless(tools.TWILL and cuda, "needs a built twill, numpy and cuda-bindings")
class Python(Programs):
    def files(self, name):
        return (tools.cuda(name),)

    @unittest.skipIf(tools.HAS_GPU, "there is a driver")
    def test_what_it_launches(self):
        self.multiplied(*PYTHON)

    def test_it_runs(self):
        self.outcome(tools.command(*PYTHON, tools.cuda("gemm_tma"), 256, 384, 128))

    def test_what_it_cannot_run(self):
        cases = [
            (tools.cuda("gemm_tma"), (256, 256, 120), "N must be a multiple of 8 and K of 16"),
            (tools.kernel("gemm_tma"), (256, 256, 128), "holds no kernel.cu"),
            (tools.cuda("gemm_pointers"), (256, 256, 128), "this program calls gemm_tma, not gemm_pointers"),
        ]
        for folder, sizes, text in cases:
            with self.subTest(text):
                self.refused([*PYTHON, "--describe", folder, *sizes], text)


@unittest.skipUnless(tools.TWILL and cuda, "needs a built twill, numpy and cuda-bindings")
class Description(unittest.TestCase):
    """That kernel.json is enough to launch from."""

    FIELDS = (
        "data_type",
        "rank",
        "shape",
        "strides",
        "box",
        "element_strides",
        "interleave",
        "swizzle",
        "l2_promotion",
        "oob_fill",
    )

    def check(self, *program):
        for name in KERNELS:
            folder = tools.cuda(name)
            kernel = json.loads((folder / "kernel.json").read_text())
            # Tiles tell kernels apart, and not what becomes of a size.
            for m, n, k in SIZES if name == KERNELS[0] else SIZES[1:3]:
                with self.subTest(name, m=m, n=n, k=k):
                    done = tools.command(*program, "--describe", folder, m, n, k)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    found = json.loads(done.stdout)
                    constants = kernel["constants"]
                    programs = [-(-m // constants["BLOCK_M"]), -(-n // constants["BLOCK_N"]), 1]
                    numbers = {"K": k, **dict(zip(("programs_x", "programs_y", "programs_z"), programs))}
                    maps = planned(folder, m, n, k)
                    wanted = [
                        {"name": argument, **dict(zip(self.FIELDS, maps[argument]))}
                        if argument in maps
                        else {"name": argument, "value": numbers[argument]}
                        for argument in kernel["arguments"]
                    ]
                    self.assertEqual(found.pop("arguments"), wanted)
                    self.assertEqual(
                        found,
                        {
                            "function": kernel["function"],
                            "threads": kernel["threads"],
                            "shared_memory": kernel["shared_memory"],
                            "grid": kernel["grid"]["kind"],
                            "programs": programs,
                        },
                    )

    def test_python(self):
        self.check(*PYTHON)

    @unittest.skipUnless(tools.CARGO, "needs cargo")
    def test_rust(self):
        self.check(rust())

    def test_kernels_differ(self):
        kernels = [json.loads((tools.cuda(name) / "kernel.json").read_text()) for name in KERNELS]
        self.assertGreater(len({(k["threads"], k["shared_memory"]) for k in kernels}), 1)


if __name__ == "__main__":
    unittest.main()
