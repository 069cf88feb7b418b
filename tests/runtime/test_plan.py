"""Tests of plan.py without a GPU: the real machine code and Triton's own launcher, with no GPU below that."""

import sys
import tempfile
import types
import unittest
from unittest import mock

import triton
from folder import HERE, runtime
from test_launch import Tensor, Torch
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import driver as nvidia

launch = runtime("launch")


class Launched:
    """What Triton's function was called with: one argument after the other as in 3.6, or a list of them as since 3.7."""

    def __init__(self, *given):
        self.grid, self.stream, self.function, self.flags = given[:3], given[3], given[4], given[5:7]
        if hasattr(nvidia, "make_launcher"):
            self.scratch, self.packed, self.hooks, self.arguments = given[7:9], given[9], given[10:13], given[13:]
        else:
            self.packed, self.hooks, self.scratch = given[7], given[8:11], given[11:13]
            self.arguments = (*given[15], given[13:15])

    def like(self):
        """Everything but the hooks."""
        return {name: value for name, value in vars(self).items() if name != "hooks"}


class Driver:
    """Triton's driver of a GPU on which nothing is launched."""

    def __init__(self, launched):
        self.encoded, self.stream = [], 7
        self.utils = types.SimpleNamespace(
            get_device_properties=lambda device: {"max_shared_mem": 232448},
            load_binary=lambda name, kernel, shared, device: (name, "function", 168, 0, 1024),
            unload_module=lambda module: None,
            # Names of 3.6, and of later versions.
            fill_tma_descriptor=self.encode,
            fill_tma_descriptor_tiled=self.encode,
            launch=lambda *given: launched.append(Launched(*given)),
            build_signature_metadata=tuple,
        )
        self.launcher_cls = nvidia.CudaLauncher

    def encode(self, *arguments):
        self.encoded.append(arguments)
        return ("tensor map", *arguments)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return self.stream

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)


class Plans(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cache = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cache.cleanup)
        patch = mock.patch.dict("os.environ", TRITON_CACHE_DIR=cache.name)
        patch.start()
        cls.addClassCleanup(patch.stop)

    def setUp(self):
        self.launched, self.torch = [], Torch()
        self.driver = Driver(self.launched)
        annotation = lambda nested_tuple, type: (type, nested_tuple)
        for patch in (
            mock.patch.dict(sys.modules, torch=self.torch),
            mock.patch.object(triton.runtime.driver, "_active", self.driver),
            mock.patch.object(nvidia, "library_dirs", list),
            # What is compiled by C's compiler: for each kernel, as in 3.6, or once.
            mock.patch.object(nvidia, "compile_module_from_src", lambda **_: self.driver.utils, create=True),
            mock.patch.object(nvidia, "PyKernelArg", annotation, create=True),
        ):
            patch.start()
            self.addCleanup(patch.stop)
        self.kernel = launch.load(HERE / "gemm")

    def call(self, address=1 << 20, length=256, shape=(512, 256)):
        b, c = Tensor([256, 384], address=2 << 20), Tensor([512, 384], address=3 << 20)
        self.kernel(Tensor(shape, address=address), b, c, length, grid=(4, 3))
        return self.launched[-1]

    def hooked(self, hook):
        knobs.runtime.launch_enter_hook.add(hook)
        self.addCleanup(knobs.runtime.launch_enter_hook.remove, hook)

    def test_it_calls_what_triton_would_call(self):
        told, direct = [], [self.call(), self.call(length=128), self.call(address=1 << 19)]
        self.hooked(told.append)
        by_triton = [self.call(), self.call(length=128), self.call(address=1 << 19)]
        self.assertTrue(all(one.hooks == (None,) * 3 for one in direct))
        self.assertTrue(all(one.hooks[1] is knobs.runtime.launch_enter_hook for one in by_triton))
        for one, other in zip(direct, by_triton, strict=True):
            self.assertEqual(one.like(), other.like())
        first = direct[0]
        self.assertEqual((first.grid, first.stream, first.function), ((12, 1, 1), 7, "function"))
        self.assertEqual(first.arguments[0][:2], ("tensor map", 1 << 20))

    def test_tensor_maps_are_made_once(self):
        first = self.call()
        self.assertEqual(len(self.driver.encoded), 3)
        self.assertEqual(self.call().like(), first.like())
        self.call(length=128)
        self.assertEqual(len(self.driver.encoded), 3)
        self.call(address=1 << 19)
        self.assertEqual([arguments[0] for arguments in self.driver.encoded[3:]], [1 << 19])
        # Another shape gives other ones.
        self.call(shape=(256, 256))
        self.assertIn((1 << 20, (256, 256)), [(arguments[0], arguments[5]) for arguments in self.driver.encoded[4:]])

    def test_not_all_are_remembered(self):
        with mock.patch.object(launch.planning, "REMEMBERED", 4):
            for _ in range(2):
                for address in range(1, 7):
                    self.assertEqual(self.call(address=address << 20).arguments[0][1], address << 20)
            (plan,) = self.kernel._plans.values()
            self.assertLessEqual(max(map(len, plan.maps)), 4)

    def test_the_stream_is_that_of_the_launch(self):
        self.call()
        self.driver.stream = 8
        self.assertEqual(self.call().stream, 8)

    def test_a_shape_that_is_changed_afterwards(self):
        given = types.SimpleNamespace(
            base=Tensor([512, 256]), shape=[500, 256], strides=[256, 1], block_shape=[128, 64], padding="zero"
        )
        others = Tensor([256, 384], address=2 << 20), Tensor([512, 384], address=3 << 20)
        self.kernel(given, *others, 256, grid=(4, 3))
        given.shape[0] = 400
        given.base.address = 1 << 19
        self.kernel(given, *others, 256, grid=(4, 3))
        given.shape[0] = 500
        given.base.address = 1 << 18
        self.kernel(given, *others, 256, grid=(4, 3))
        self.assertEqual([one.arguments[0][6][0] for one in self.launched], [500, 400, 500])
        self.assertEqual([one.arguments[1] for one in self.launched], [500, 400, 500])

    def test_scratch_memory_is_tritons_business(self):
        allocated = []
        with mock.patch.object(triton.runtime._allocation, "_allocator") as allocator:
            allocator.get.return_value = lambda size, align, stream: allocated.append(size) or "scratch"
            really = nvidia.CudaLauncher.__init__

            def needs_scratch(launcher, source, metadata):
                really(launcher, source, metadata)
                launcher.global_scratch_size = 64

            with mock.patch.object(nvidia.CudaLauncher, "__init__", needs_scratch):
                one = self.call()
        self.assertEqual((allocated, one.scratch[0]), ([64 * 12], "scratch"))

    def test_hooks_of_either_kind(self):
        runtime = knobs.runtime
        nothing, chain = types.SimpleNamespace(calls=[]), types.SimpleNamespace(calls=[print])
        for enter, leave, expected in [
            (runtime.launch_enter_hook, runtime.launch_exit_hook, False),
            (None, None, False),
            (nothing, chain, True),
            (chain, None, True),
            (None, print, True),
        ]:
            hooks = types.SimpleNamespace(launch_enter_hook=enter, launch_exit_hook=leave)
            self.assertEqual(launch.planning.is_hooked(hooks), expected)


if __name__ == "__main__":
    unittest.main()
