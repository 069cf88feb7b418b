"""Tests of launch.py without a GPU: a torch of a few lines, and a compiled kernel that only records its launches."""

import json
import sys
import tempfile
import types
import unittest
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from unittest import mock

from folder import HERE, runtime, variant

launch = runtime("launch")
COUNTS = json.loads((HERE / "cta_counts.json").read_text())
"""The `ctas` of kernel.json, of a persistent kernel in linear order and of one in serpentine order."""


ZEROS = 1 << 30
"""Where torch.zeros puts its tensors."""
BLOCK = dict(
    argument="p_64x64", shape=[64, 64], extents=["M", "K"], strides=["stride", 1], not_negative=["first"]
)


class Device:
    def __init__(self, kind="cuda", index=0):
        self.type, self.index = kind, index

    def __eq__(self, other):
        return (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"


class Dtype(str):
    is_floating_point = True


class Tensor:
    """The part of a tensor that launch.py uses."""

    def __init__(self, shape, dtype="float16", strides=None, address=1 << 20, device=Device()):
        self.shape, self.dtype, self.device, self.address = tuple(shape), Dtype("torch." + dtype), device, address
        self.strides = tuple(strides) if strides else (*shape[1:], 1)

    def data_ptr(self):
        return self.address

    def stride(self):
        return self.strides

    def element_size(self):
        return {"torch.float16": 2, "torch.float32": 4}[self.dtype]


@dataclass
class Described:
    """A tensor descriptor of Triton."""

    base: object
    shape: list
    strides: list
    block_shape: list
    padding: str = "zero"


class Torch(types.ModuleType):
    """cuda:0 is an H100 with 132 multiprocessors, cuda:1 something newer."""

    def __init__(self):
        super().__init__("torch")
        self.current = 0
        self.device = Device
        self.uint8 = "uint8"
        # Triton 3.9 asks what a tensor of torch is.
        self.Tensor = Tensor
        self.zeros = lambda count, dtype, device: Tensor([count], dtype, address=ZEROS, device=device)
        self.cuda = types.SimpleNamespace(
            current_device=lambda: self.current,
            get_device_capability=lambda index: [(9, 0), (10, 0)][index],
            get_device_name=lambda index: ["H100", "B200"][index],
            get_device_properties=lambda index: types.SimpleNamespace(multi_processor_count=132),
            device=self.on,
        )

    @contextmanager
    def on(self, index):
        before, self.current = self.current, index
        yield
        self.current = before


class Launches(unittest.TestCase):
    def setUp(self):
        self.torch = Torch()
        patch = mock.patch.dict(sys.modules, torch=self.torch)
        patch.start()
        self.addCleanup(patch.stop)
        self.a, self.b, self.c = (
            Tensor([512, 256], address=1 << 20),
            Tensor([256, 384], address=2 << 20),
            Tensor([512, 384], address=3 << 20),
        )

    def kernel(self, **fields):
        """The GEMM, whose launches go to self.launched as grid, arguments and device."""
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.launched, self.loaded, self.planned = [], 0, 0
        kernel = launch.load(variant(scratch.name, **fields))
        make_plan = kernel._make_plan

        def plan(values, programs):
            self.planned += 1
            return make_plan(values, programs)

        kernel._make_plan = plan

        class Compiled:
            n_regs, n_spills = 168, 0

            def __getitem__(compiled, grid):
                return lambda *arguments: self.launched.append((grid, arguments, self.torch.current))

        def place(build, hint):
            self.loaded += 1
            return (lambda: (Compiled(), "")), 4096

        patch = mock.patch.object(launch.assemble, "place_barriers", place)
        patch.start()
        self.addCleanup(patch.stop)
        return kernel

    def refused(self, kind, said, *arguments, grid=(4, 3), fields=None, **named):
        kernel = self.kernel(**(fields or {}))
        with self.assertRaisesRegex(kind, said):
            kernel(*(arguments or (self.a, self.b, self.c, 256)), grid=grid, **named)
        with self.assertRaisesRegex(kind, said):
            kernel.prepare(*(arguments or (self.a, self.b, self.c, 256)), grid=grid, **named)
        self.assertEqual(self.launched, [])


class Calls(Launches):
    def test_arguments_arrive_in_the_order_of_the_function(self):
        self.kernel()(self.a, self.b, length=256, c_desc=self.c, grid=(4, 3))
        ((grid, (a, b, c, *rest), _),) = self.launched
        self.assertEqual((grid, rest), ((12, 1, 1), [256, 4, 3, 1, 4096]))
        for descriptor, tensor, block in (a, self.a, [64, 64]), (b, self.b, [64, 128]), (c, self.c, [64, 128]):
            self.assertEqual(
                (descriptor.base.data_ptr(), tuple(descriptor.shape), tuple(descriptor.strides)),
                (tensor.address, tensor.shape, tensor.strides),
            )
            self.assertEqual((descriptor.block_shape, descriptor.layout.swizzle_byte_width), (block, 128))

    def test_calls_alike_are_checked_once(self):
        kernel = self.kernel()
        for _ in range(3):
            kernel(self.a, self.b, self.c, 256, grid=(4, 3))
        kernel(Tensor([512, 256], address=1 << 19), self.b, self.c, 256, grid=(4, 3))
        self.assertEqual((self.planned, self.loaded), (1, 1))
        kernel(Tensor([256, 256], address=1 << 20), self.b, self.c, 256, grid=(4, 3))
        kernel(self.a, self.b, self.c, 128, grid=(4, 3))
        kernel(self.a, self.b, self.c, 256, grid=(4, 2))
        self.assertEqual([arguments[0].base.data_ptr() for _, arguments, _ in self.launched[3:5]], [1 << 19, 1 << 20])
        self.assertEqual([arguments[0].shape for _, arguments, _ in self.launched[4:6]], [(256, 256), (512, 256)])
        self.assertEqual([arguments[3] for _, arguments, _ in self.launched[5:]], [128, 256])
        self.assertEqual(self.launched[6][0], (8, 1, 1))
        self.assertEqual((self.planned, self.loaded), (3, 1))
        # Alike but for where they begin.
        with self.assertRaisesRegex(ValueError, "a_desc: must begin at a multiple of 16 bytes"):
            kernel(Tensor([512, 256], address=8), self.b, self.c, 256, grid=(4, 3))
        # Equal numbers of other kinds are no whole numbers.
        with self.assertRaisesRegex(TypeError, "length: must be a whole number, not float"):
            kernel(self.a, self.b, self.c, 256.0, grid=(4, 3))

    def test_floating_point_numbers(self):
        kernel = self.kernel()
        kernel._parameters = [dict(name="scale", kind="scalar", element="fp32")]
        kernel._readers = launch.Readers(kernel._parameters)
        kernel._kernel = {**kernel._kernel, "arguments": ["scale", "programs_x"]}
        for scale in (0.5, 2, 0.0, -0.0, Fraction(1, 4)):
            kernel(scale, grid=1)
            self.assertEqual(str(self.launched[-1][1][0]), str(float(scale)))
        self.assertEqual(self.planned, 1)
        for _ in range(2):
            with self.assertRaisesRegex(TypeError, "scale: must be a number, not list"):
                kernel([0.5], grid=1)

    def test_descriptors_are_made_again_for_the_tiles_of_this_kernel(self):
        kernel = self.kernel()
        # A view into the tensor: another shape, and rows further apart.
        given = Described(self.a, [500, 128], [512, 1], [128, 64])
        kernel(given, self.b, self.c, 256, grid=(4, 3))
        made = self.launched[0][1][0]
        self.assertEqual((made.base.data_ptr(), list(made.shape), list(made.strides)), (1 << 20, [500, 128], [512, 1]))
        self.assertEqual((made.block_shape, made.layout.swizzle_byte_width, made.padding), ([64, 64], 128, "zero"))
        kernel(Described(self.a, [500, 128], [512, 1], [128, 64]), self.b, self.c, 256, grid=(4, 3))
        self.assertEqual(self.planned, 1)
        given.shape[0] = 400
        kernel(given, self.b, self.c, 256, grid=(4, 3))
        self.assertEqual(list(self.launched[2][1][0].shape), [400, 128])
        with self.assertRaisesRegex(ValueError, "a_desc: must be padded with zero, not with nan"):
            kernel(Described(self.a, [500, 128], [512, 1], [128, 64], "nan"), self.b, self.c, 256, grid=(4, 3))

    def test_values_by_name(self):
        kernel = self.kernel()
        values = {"length": 256, "c_desc": self.c, "BLOCK_M": 128, "b_desc": self.b, "a_desc": self.a}
        kernel.launch(values, (4, 3, 1))
        kernel(self.a, self.b, self.c, 256, grid=(4, 3))
        self.assertEqual(self.planned, 1)
        self.assertEqual(self.launched[0][1][3:], (256, 4, 3, 1, 4096))

    def test_prepare(self):
        run = self.kernel().prepare(self.a, self.b, self.c, 256, grid=12)
        self.assertEqual(self.launched, [])
        run()
        run()
        self.assertEqual(len(self.launched), 2)
        self.assertEqual([arguments[0].base.data_ptr() for _, arguments, _ in self.launched], [1 << 20] * 2)

    def of_matrix(self, block):
        """A kernel with a pointer to a matrix."""
        kernel = self.kernel()
        kernel._parameters = [
            dict(name="p", kind="pointer", element="fp16", divisible_by_16=True, blocks=[block]),
            *(dict(name=name, kind="scalar", element="i32") for name in ("M", "K", "stride", "first")),
        ]
        kernel._readers = launch.Readers(kernel._parameters)
        kernel._kernel = {**kernel._kernel, "arguments": ["p_64x64", "p", "M", "K", "stride", "programs_x"]}
        kernel._layouts = {"p_64x64": kernel._layouts["a_desc_64x64"]}
        return kernel

    def test_a_matrix_behind_a_pointer(self):
        kernel = self.of_matrix(BLOCK)
        # The tensor's own shape says nothing: the kernel's addresses are made of the numbers.
        tensor = Tensor([1 << 20], strides=[1], address=1 << 20)
        kernel(tensor, 100, 72, 80, 0, grid=1)
        (descriptor, pointer, *numbers), address = self.launched[0][1], tensor.address
        self.assertEqual((pointer, numbers), (address, [100, 72, 80, 1, 4096]))
        self.assertEqual((descriptor.base.data_ptr(), list(descriptor.shape)), (address, [100, 72]))
        self.assertEqual((list(descriptor.strides), descriptor.block_shape), ([80, 1], [64, 64]))
        kernel(tensor, 100, 64, 80, 5, grid=1)
        self.assertEqual(list(self.launched[1][1][0].shape), [100, 64])
        # Without rows or columns every mask is false: zeros are read, of a tensor that exists.
        for rows, columns in (0, 72), (100, 0), (-16, 72):
            kernel(tensor, rows, columns, 80, 0, grid=1)
            descriptor = self.launched[-1][1][0]
            self.assertEqual((descriptor.base.data_ptr(), list(descriptor.shape)), (ZEROS, [1, 8]))
            self.assertEqual(list(descriptor.strides), [8, 1])
        with self.assertRaisesRegex(ValueError, "p: stride must not be negative, but is -80"):
            kernel(tensor, 100, 72, -80, 0, grid=1)
        with self.assertRaisesRegex(ValueError, "p: stride must be a multiple of 16 bytes, but is 84 elements"):
            kernel(tensor, 100, 72, 84, 0, grid=1)
        with self.assertRaisesRegex(ValueError, "p: first must not be negative, but is -1"):
            kernel(tensor, 100, 72, 80, -1, grid=1)

    def test_rows_before_a_matrix(self):
        kernel = self.of_matrix({**BLOCK, "strides": [64, 1], "bytes_before": 1 << 27})
        before = 1 << 27
        for address in (before + 4096, 5 * before, before + 16):
            kernel(Tensor([1 << 20], strides=[1], address=address), 100, 72, 80, 0, grid=1)
            descriptor, pointer, *_ = self.launched[-1][1]
            self.assertEqual((descriptor.base.data_ptr(), pointer), (address - before, address))
        self.assertEqual(self.planned, 1)
        # Also where a plan is there.
        with self.assertRaisesRegex(ValueError, "p: is at too low an address"):
            kernel(Tensor([1 << 20], strides=[1], address=before), 100, 72, 80, 0, grid=1)

    def test_what_is_left_of_a_matrix_is_not_negative_in_any_program(self):
        # Programs in groups of 8: the rows of tiles that the last one has before it.
        left = ["-", ["/", ["+", "M", 63], 64], ["/", ["-", "programs_x", 1], ["max", 8, "first"]]]
        kernel = self.of_matrix(dict(BLOCK, not_negative=["first", left]))
        tensor = Tensor([1 << 20], strides=[1], address=1 << 20)
        kernel(tensor, 128, 72, 80, 0, grid=24)
        self.assertEqual(len(self.launched), 1)
        with self.assertRaisesRegex(
            ValueError, r"p: \(\(\(M \+ 63\) / 64\) - \(\(programs_x - 1\) / max\(8, first\)\)\) must not be negative, but is -1"
        ):
            kernel(tensor, 128, 72, 80, 0, grid=25)
        kernel(tensor, 128, 72, 80, 9, grid=25)

    def test_grids(self):
        for grid, programs in [
            (5, (5, 1, 1)),
            ((5,), (5, 1, 1)),
            ([4, 3, 2], (4, 3, 2)),
            (lambda meta: (meta["length"] // meta["BLOCK_K"],), (4, 1, 1)),
        ]:
            self.kernel()(self.a, self.b, self.c, 256, grid=grid)
            self.assertEqual(self.launched[-1][1][4:7], programs)
        shared = {"grid": {"kind": "one_per_program", "cta_coarsening": [2, 1, 1], "ctas_per_sm": 1}}
        self.kernel(**shared)(self.a, self.b, self.c, 256, grid=(5, 3))
        self.assertEqual(self.launched[-1][0], (9, 1, 1))
        persistent = {"grid": {"kind": "persistent", "cta_coarsening": [1, 1, 1], "ctas_per_sm": 2, "ctas": COUNTS["persistent"]}}
        # 264 run at once: 3 waves of 600 tiles are as many with 200, and 38 of 10,000 with 264.
        for grid, ctas in [((5, 3), 15), ((88, 3), 264), ((53, 5), 133), ((60, 10), 200), ((100, 100), 264)]:
            self.kernel(**persistent)(self.a, self.b, self.c, 256, grid=grid)
            self.assertEqual(self.launched[-1][0], (ctas, 1, 1))

    def test_waves_in_serpentine_order(self):
        counts = COUNTS["serpentine"]
        grid = {"kind": "persistent", "cta_coarsening": [1, 1, 1], "ctas_per_sm": 1, "serpentine": 2, "ctas": counts}
        kernel = self.kernel(grid=grid)
        for programs, ctas, why in [
            ((32, 64), 128, "16 waves of two swizzle groups each"),
            ((64, 32), 128, "16 waves, of a swizzle group each"),
            ((128, 32), 4096, "four multiprocessors of 132 idle for longer than a beginning takes"),
            ((132, 32), 132, "32 waves, two of which are a swizzle group, and none idles"),
            ((32, 160), 128, "40 waves for 39"),
            ((32, 20), 640, "five waves, and six come out no better"),
            ((32, 4), 128, "one wave"),
            ((32, 63), 2016, "a swizzle group is of one head"),
            ((32, 1, 64), 128, "swizzle groups of one head, four to a wave"),
            ((24, 64), 1536, "128 are no whole swizzle groups of 48"),
        ]:
            with self.subTest(why):
                kernel(self.a, self.b, self.c, 256, grid=programs)
                self.assertEqual(self.launched[-1][0], (ctas, 1, 1))

    def test_clusters(self):
        # 132 run at once: 75 do 150 tiles in two waves too, and 38 clusters are the fewest that do.
        for kind, ctas in ("one_per_program", 150), ("persistent", 76):
            grid = {"kind": kind, "cta_coarsening": [1, 1, 1], "ctas_per_sm": 1, "cluster": 2, "ctas": COUNTS["persistent"]}
            kernel = self.kernel(grid=grid)
            kernel(self.a, self.b, self.c, 256, grid=(6, 25))
            self.assertEqual(self.launched[-1][0], (ctas, 1, 1))
            with self.assertRaisesRegex(ValueError, r"grid \(5, 4, 1\) has 5 thread blocks along its first axis, and 2 form a"):
                kernel(self.a, self.b, self.c, 256, grid=(5, 4))
            launches = len(self.launched)
            kernel(self.a, self.b, self.c, 256, grid=(5, 0))
            self.assertEqual(len(self.launched), launches, "nothing to do")

    def test_nothing_to_do(self):
        self.kernel()(self.a, self.b, self.c, 256, grid=(0, 3))
        self.assertEqual(self.launched, [])

    def test_constants_may_be_repeated(self):
        self.kernel()(self.a, self.b, self.c, 256, BLOCK_M=128, grid=1)
        self.assertEqual(len(self.launched), 1)
        self.refused(ValueError, "BLOCK_M = 128, not 64", BLOCK_M=64)

    def test_the_tensors_device_is_launched_on(self):
        self.torch.current = 1
        self.kernel()(self.a, self.b, self.c, 256, grid=1)
        self.assertEqual((self.launched[0][2], self.torch.current), (0, 1))

    def test_info(self):
        kernel = self.kernel()
        self.assertEqual((kernel.info["ii"], kernel.info["stages"], kernel.info["registers"]), (512, 4, None))
        kernel(self.a, self.b, self.c, 256, grid=1)
        self.assertEqual((kernel.info["registers"], kernel.info["spills"], kernel.info["barriers_at"]), (168, 0, 4096))


class Errors(Launches):
    def test_numbers_of_arguments(self):
        self.refused(TypeError, r"missing: length", self.a, self.b, self.c)
        self.refused(
            TypeError, r"takes 4 arguments \(a_desc, b_desc, c_desc, length\), but 5", self.a, self.b, self.c, 256, 1
        )
        self.refused(TypeError, "length was given twice", length=256)
        self.refused(TypeError, "no parameter scale", scale=1)

    def test_tensors(self):
        for said, kind, tensor in [
            ("b_desc: must be a torch tensor, not int", TypeError, 7),
            ("b_desc: must be of torch.float16, not torch.float32", TypeError, Tensor([256, 384], "float32")),
            ("b_desc: must have 2 dimensions, not 1", ValueError, Tensor([384], strides=[1])),
            ("b_desc: must not be empty", ValueError, Tensor([0, 384])),
            (
                "b_desc: must be contiguous in its last dimension, but the stride there is 256",
                ValueError,
                Tensor([256, 384], strides=[1, 256]),
            ),
            ("b_desc: must begin at a multiple of 16 bytes", ValueError, Tensor([256, 384], address=8)),
            (
                "b_desc: strides must be multiples of 16 bytes, but one is 388 elements",
                ValueError,
                Tensor([256, 384], strides=[388, 1]),
            ),
            ("b_desc: must be on a GPU, not on cpu", ValueError, Tensor([256, 384], device=Device("cpu", None))),
            (
                "b_desc: is on cuda:1, an argument before it on cuda:0",
                ValueError,
                Tensor([256, 384], device=Device("cuda", 1)),
            ),
        ]:
            with self.subTest(said):
                self.refused(kind, said, self.a, tensor, self.c, 256)

    def test_descriptors(self):
        def described(tensor=self.a, shape=(512, 256), strides=(256, 1), **more):
            return Described(tensor, list(shape), list(strides), [128, 64], **more)

        for said, kind, descriptor in [
            ("a_desc: must be padded with zero, not with nan", ValueError, described(padding="nan")),
            (
                "a_desc: must be of torch.float16, not torch.float32",
                TypeError,
                described(Tensor([512, 256], "float32")),
            ),
            ("a_desc: must have 2 dimensions, not 1", ValueError, described(shape=[512], strides=[1])),
            ("a_desc: must not be empty", ValueError, described(shape=[512, 0])),
            ("a_desc: must be contiguous in its last dimension", ValueError, described(strides=[1, 512])),
            ("a_desc: strides must be multiples of 16 bytes, but one is 300", ValueError, described(strides=[300, 1])),
            ("a_desc: must be a torch tensor, not Described", TypeError, described(7)),
        ]:
            with self.subTest(said):
                self.refused(kind, said, descriptor, self.b, self.c, 256)
        kernel = self.kernel()
        kernel._parameters = [{"name": "p", "kind": "pointer", "element": "fp16"}]
        kernel._readers = launch.Readers(kernel._parameters)
        with self.assertRaisesRegex(TypeError, "p: must be a torch tensor, not a descriptor"):
            kernel(described(), grid=1)

    def test_what_the_triton_kernel_may_take_is_told_apart(self):
        kernel = self.kernel()
        with self.assertRaises(launch.Refused):
            kernel(Tensor([512, 256], address=8), self.b, self.c, 256, grid=1)
        with self.assertRaises(ValueError) as failed:
            kernel(self.a, self.b, self.c, 256, grid=(-1,))
        self.assertNotIsInstance(failed.exception, launch.Refused)

    def test_numbers(self):
        for said, kind, number in [
            ("length: must be a multiple of 16, but is 200", ValueError, 200),
            ("length: must be a whole number, not float", TypeError, 256.0),
            ("length: must be a whole number, not list", TypeError, [256]),
            ("length: 4294967296 does not fit i32", ValueError, 1 << 32),
        ]:
            with self.subTest(said):
                self.refused(kind, said, self.a, self.b, self.c, number)

    def test_factors_that_maxima_are_taken_before(self):
        kernel = self.kernel()
        kernel._parameters = [dict(name="scale", kind="scalar", element="fp32", positive=True)]
        kernel._readers = launch.Readers(kernel._parameters)
        kernel._kernel = {**kernel._kernel, "arguments": ["scale", "programs_x"]}
        for scale in (0.125, 2.0, 1, Fraction(1, 4)):
            kernel(scale, grid=1)
            self.assertEqual(self.launched[-1][1][0], float(scale))
        self.assertEqual(self.planned, 1, "no plan depends on it")
        for scale in (0.0, -0.125, float("inf"), float("nan"), 2.0**-33):
            with self.assertRaisesRegex(ValueError, "scale: must be from 2.-32 to 2.32"):
                kernel(scale, grid=1)

    def test_loops_with_longer_steps_than_their_source(self):
        parameters = [{"name": "length", "kind": "scalar", "element": "i32", "at_least": 129}]
        kernel = self.kernel()
        kernel._parameters, kernel._readers = parameters, launch.Readers(parameters)
        for number in (-128, 0, 129, 4096):
            self.assertEqual(kernel._number(parameters[0], number), number)
        with self.assertRaisesRegex(ValueError, "length: must be 0, or at least 129, but is 128: the loop has longer"):
            kernel(128, grid=1)

    def test_a_pointer_that_is_not_aligned(self):
        parameters = [{"name": "p", "kind": "pointer", "element": "fp16", "divisible_by_16": True}]
        kernel = self.kernel()
        kernel._parameters = parameters
        kernel._readers = launch.Readers(parameters)
        with self.assertRaisesRegex(ValueError, "p: must begin at a multiple of 16 bytes"):
            kernel(Tensor([8], strides=[1], address=24), grid=1)

    def test_grids(self):
        self.refused(ValueError, "one to three whole numbers", grid=(1, 1, 1, 1))
        self.refused(ValueError, "one to three whole numbers", grid=())
        self.refused(ValueError, "not negative", grid=(-1,))
        self.refused(TypeError, "one to three whole numbers", grid=(1.5,))
        self.refused(ValueError, "more than a launch can have", grid=(1 << 20, 1 << 20))
        # Persistent thread blocks, 132 here, count a step beyond the last tile.
        grid = {"kind": "persistent", "cta_coarsening": [1, 1, 1], "ctas_per_sm": 1, "ctas": COUNTS["persistent"]}
        many = {"grid": grid}
        self.refused(ValueError, "more than a launch can have", grid=((1 << 31) - 132, 1), fields=many)
        self.kernel(**many)(self.a, self.b, self.c, 256, grid=((1 << 31) - 133, 1))

    def test_another_gpu(self):
        on = Device("cuda", 1)
        tensors = [Tensor(t.shape, device=on) for t in (self.a, self.b, self.c)]
        self.refused(RuntimeError, r"made for sm_90a, but cuda:1 \(B200\) is sm_100", *tensors, 256)


class Compiling(unittest.TestCase):
    def test_launcher_and_report_agree(self):
        with (
            tempfile.TemporaryDirectory() as cache,
            mock.patch.dict(sys.modules, torch=Torch()),
            mock.patch.dict("os.environ", TRITON_CACHE_DIR=cache),
        ):
            kernel, other = launch.load(HERE / "gemm"), launch.load(HERE / "gemm", inline_barriers=False)
            compiled, bare = kernel._load(0), other._load(0)
            report = launch.assemble.assemble(HERE / "gemm")
            self.assertEqual((kernel.info["barriers_at"], other.info["barriers_at"]), (report["barriers_at"], -1))
            self.assertEqual(compiled.metadata.shared, report["shared_memory"])
            self.assertNotEqual(compiled.asm["ptx"], bare.asm["ptx"])
            self.assertIs(kernel._load(0), compiled)

    def test_kernels_side_by_side(self):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            first, second = (
                launch.load(variant(one)),
                launch.load(variant(two, ("STAGES = gl.constexpr(4)", "STAGES = gl.constexpr(3)"), name="other")),
            )
            self.assertNotEqual(first._function.fn.__module__, second._function.fn.__module__)
            self.assertEqual(second.info["name"], "other")


if __name__ == "__main__":
    unittest.main()
