"""Tests of the entry from C: its errors for wrong arguments, before it needs a GPU."""

import ctypes
import importlib.util
import random
import tempfile
import unittest
from pathlib import Path

import tools

ALIGNED = 1 << 20
"""An address that nobody reads: arguments are refused before."""


class Tensor(ctypes.Structure):
    """twill_tensor of kernel.h."""

    _fields_ = [("data", ctypes.c_void_p), ("shape", ctypes.c_longlong * 5), ("strides", ctypes.c_longlong * 5)]


def tensor(shape=(256, 128), strides=None, address=ALIGNED):
    strides = (shape[1], 1) if strides is None else strides
    return Tensor(address, (ctypes.c_longlong * 5)(*shape), (ctypes.c_longlong * 5)(*strides))


RIGHT = tensor()


@unittest.skipUnless(tools.TWILL and tools.NVCC, "needs a built twill and nvcc (tests/loaders/requirements.txt)")
class Entry(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.entries = {name: cls.entry(name, tools.cuda(name), scratch.name) for name in ("gemm_tma", "gemm_pointers")}
        (place := Path(scratch.name) / "clusters").mkdir()
        cls.entries["clusters"] = cls.entry("gemm_tma", tools.cuda("gemm_tma", "--cluster", "2"), place)

    @staticmethod
    def entry(name, folder, place):
        """The entry of the kernel of a folder, compiled without a warning."""
        library = Path(place) / f"{name}.so"
        # The device code is not run: unoptimised it is there sooner.
        options = "-std=c++17 -gencode=arch=compute_90a,code=sm_90a -shared -Xcicc -O0 -Xptxas -O0"
        strict = "-Xcompiler -fPIC,-Wall,-Wextra --Werror all-warnings"
        done = tools.command(tools.NVCC, *options.split(), *strict.split(), folder / "kernel.cu", "-o", library)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        entry = getattr(ctypes.CDLL(str(library)), f"{name}_launch")
        entry.restype = ctypes.c_char_p
        return entry

    def gemm(self, a=RIGHT, b=RIGHT, c=RIGHT, k=128, programs=(2, 2, 1), kernel="gemm_tma"):
        a, b, c = (None if matrix is None else ctypes.byref(matrix) for matrix in (a, b, c))
        return (self.entries[kernel](a, b, c, k, *programs, None) or b"").decode()

    def test_tensors_that_tma_cannot_copy(self):
        cases = [
            (None, "must not be null"),
            (tensor(address=None), "must not be null"),
            (tensor(address=ALIGNED + 8), "must begin at a multiple of 16 bytes"),
            (tensor(strides=(132, 1)), "strides must be multiples of 16 bytes"),
            (tensor(strides=(-128, 1)), "strides must not be negative"),
            (tensor(strides=(1 << 39, 1)), "strides must be below 2^40 bytes"),
            (tensor(strides=(1, 256)), "must be contiguous in its last dimension"),
            (tensor(shape=(0, 128)), "must not be empty"),
            (tensor(shape=(256, 0), strides=(128, 1)), "must not be empty"),
            (tensor(shape=(-1, 128)), "must not be empty"),
            (tensor(shape=((1 << 32) + 1, 128)), "must have at most 2^32 elements along a dimension"),
        ]
        for matrix, why in cases:
            for name in "abc":
                with self.subTest(name, why=why):
                    self.assertEqual(self.gemm(**{name: matrix}), f"gemm_tma: {name}_desc: {why}")

    def test_numbers_and_grids(self):
        self.assertEqual(self.gemm(k=120), "gemm_tma: K: must be a multiple of 16")
        for programs in (-1, 2, 1), (2, -1, 1), (2, 2, -1), (0, 0, -1):
            self.assertEqual(self.gemm(programs=programs), "gemm_tma: the grid: must not be negative")
        most = 2**31 - 1
        for programs in (most, 2, 1), (most, most, 4), (2, 1, most):
            self.assertEqual(
                self.gemm(programs=programs), "gemm_tma: the grid: has more programs than a launch can have"
            )

    def test_clusters_are_whole(self):
        said = self.gemm(programs=(3, 2, 1), kernel="clusters")
        self.assertEqual(
            said,
            "gemm_tma: the grid: has an odd number of thread blocks along x, and 2 form a cluster; generate the kernel"
            " without --cluster for such grids",
        )
        self.assertEqual(self.gemm(programs=(3, 0, 1), kernel="clusters"), "")

    def test_nothing_to_do_needs_no_gpu(self):
        for programs in (0, 2, 1), (2, 0, 1), (2, 2, 0):
            self.assertEqual(self.gemm(programs=programs), "")
        self.assertEqual(self.gemm(k=120, programs=(0, 1, 1)), "gemm_tma: K: must be a multiple of 16")

    @unittest.skipIf(tools.HAS_GPU, "there is a GPU, and no tensor at these addresses")
    def test_what_is_right_is_refused_for_want_of_a_gpu(self):
        self.assertRegex(self.gemm(), "^gemm_tma: the GPU: .*CUDA")

    def test_matrices_behind_pointers(self):
        def call(a=ALIGNED, m=128, stride=128, programs=(0, 1, 1)):
            pointers = [ctypes.c_void_p(address) for address in (a, ALIGNED, ALIGNED)]
            said = self.entries["gemm_pointers"](*pointers, m, 128, 128, stride, 128, 128, *programs, None)
            return (said or b"").decode()

        self.assertEqual(call(), "")
        self.assertEqual(call(a=None), "gemm_pointers: a_ptr: must not be null")
        self.assertEqual(call(a=ALIGNED + 2), "gemm_pointers: a_ptr: must begin at a multiple of 16 bytes")
        self.assertEqual(call(m=100), "gemm_pointers: M: must be a multiple of 16")
        self.assertEqual(call(stride=-128), "gemm_pointers: a_ptr: strides must not be negative")
        self.assertEqual(call(a=None, m=0), "", "of a matrix without rows nothing is read")

    def test_a_parameter_may_be_called_what_the_entry_calls_things(self):
        text = (tools.ROOT / "examples/gemm_tma.ttir").read_text().replace("%K", "%stream").replace('"K"', '"stream"')
        with tempfile.TemporaryDirectory() as scratch:
            source, folder = Path(scratch) / "named.ttir", Path(scratch) / "named"
            source.write_text(text)
            options = ["--machine", "h200", "--emit", "cuda", "--no-assemble", "-o", folder]
            self.assertEqual(tools.command(tools.TWILL, "compile", source, *options).returncode, 0)
            right = ctypes.byref(RIGHT)
            said = self.entry("gemm_tma", folder, scratch)(right, right, right, 120, 1, 1, 1, None)
            self.assertEqual(said, b"gemm_tma: stream: must be a multiple of 16")


@unittest.skipUnless(tools.TWILL and tools.NVCC and tools.CC, "needs a built twill, nvcc's headers and a C compiler")
class Header(unittest.TestCase):
    def test_headers_of_several_kernels_are_c(self):
        names = ["gemm_tma", "gemm_pointers"]
        source = "".join(f'#include "{tools.cuda(name)}/kernel.h"\n' for name in names)
        source += (
            "const char *(*one)(const twill_tensor *, const twill_tensor *, const twill_tensor *, int, int, int, int,"
        )
        source += " cudaStream_t) = gemm_tma_launch;\n"
        for language in "c", "c++":
            options = ["-x", language, "-Wall", "-Wextra", "-Werror", "-isystem", tools.include()]
            done = tools.command(tools.CC, *options, "-fsyntax-only", "-", input=source)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


WALK = """
extern "C" int wrong(int x, int y, int z, int ctas) {
  int found = 0;
  for (int cta = 0; cta < ctas; cta++) {
    program_ids at = program_of(cta, x, y, z);
    const program_ids step = program_of(ctas, x, y, z);
    for (int tile = cta; tile < tile_count(x, y, z); tile += ctas, move_on(at, step, x, y)) {
      const program_ids wanted = program_of(tile, x, y, z);
      found += at.x != wanted.x || at.y != wanted.y || at.z != wanted.z;
    }
  }
  return found;
}
"""


@unittest.skipUnless(tools.TWILL and tools.CC, "needs a built twill and a C++ compiler")
class Tiles(unittest.TestCase):
    def test_walking_is_dividing(self):
        """Persistent CTAs come to each tile's program without a division."""
        kernels = (["attention_forward"], ["attention_forward_d64_m64", "--cta-coarsening", "3"])
        for options in kernels:
            text = (tools.cuda(*options) / "kernel.cu").read_text()
            first, last = text.index("TWILL int tile_count"), text.index("/// 4 warps")
            with tempfile.TemporaryDirectory() as scratch:
                library = Path(scratch) / "walk.so"
                source = "#define TWILL static inline\n" + text[first:last] + WALK
                done = tools.command(tools.CC, "-x", "c++", "-shared", "-fPIC", "-", "-o", library, input=source)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                wrong = ctypes.CDLL(str(library)).wrong
            numbers = random.Random(1)
            for _ in range(500):
                x, y, z, ctas = (numbers.choice((1, 2, 3, 7, 16, 40)) for _ in range(4))
                tiles = -(-x // (3 if len(options) > 1 else 1)) * y * z
                # Never more CTAs than tiles.
                self.assertEqual(wrong(x, y, z, min(ctas, tiles)), 0, (x, y, z, ctas))

    def test_thread_blocks_are_those_of_launch_py(self):
        causal, linear = tools.cuda("attention_forward_causal"), tools.cuda("attention_forward")
        functions = []
        for folder in causal, linear:
            text = (folder / "kernel.cu").read_text()
            start = text.index("long long even_")
            functions.append(text[start : text.index("\n}\n", start) + 3])
        source = 'extern "C" {\n' + "".join(functions) + "}\n"
        with tempfile.TemporaryDirectory() as scratch:
            library = Path(scratch) / "grid.so"
            done = tools.command(tools.CC, "-x", "c++", "-shared", "-fPIC", "-", "-o", library, input=source)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            entry = ctypes.CDLL(str(library))
        number = ctypes.c_longlong
        entry.even_wave_pairs.restype = entry.even_waves.restype = number
        spec = importlib.util.spec_from_file_location("launch", causal / "launch.py")
        spec.loader.exec_module(launch := importlib.util.module_from_spec(spec))
        numbers, walks = random.Random(3), 0
        for _ in range(2000):
            columns, rows, planes = (numbers.choice((1, 2, 3, 8, 16, 32, 64)) for _ in range(3))
            width, most, tiles = numbers.randint(1, 3), numbers.choice((7, 16, 132)), columns * rows * planes
            found = entry.even_wave_pairs(*map(number, (tiles, most, columns, rows, width)))
            self.assertEqual(found, launch.even_wave_pairs(tiles, most, [columns, rows, planes], width))
            walks += found < tiles
            self.assertEqual(entry.even_waves(number(tiles), number(most)), launch.even_waves(tiles, most))
        self.assertGreater(walks, 50)


if __name__ == "__main__":
    unittest.main()
