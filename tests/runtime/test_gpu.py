"""Tests of launch.py on a Hopper GPU with torch; skipped elsewhere."""

import time
import unittest

from folder import HERE, runtime

try:
    import torch

    HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
except ImportError:
    HOPPER = False


@unittest.skipUnless(HOPPER, "needs torch and a Hopper GPU")
class Gemm(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.a, self.b = (torch.randn(1024, 1024, device="cuda", dtype=torch.float16) for _ in range(2))
        self.c = torch.empty_like(self.a)

    def check(self, launch):
        self.c.fill_(float("nan"))
        launch()
        wanted = self.a.float() @ self.b.float()
        error = ((self.c.float() - wanted).norm() / wanted.norm()).item()
        self.assertLess(error, 1e-3)

    def test_both_kinds_of_barriers(self):
        for inline in True, False:
            kernel = runtime("launch").load(HERE / "gemm", inline_barriers=inline)
            arguments = (self.a, self.b, self.c, 1024)
            self.check(lambda: kernel(*arguments, grid=(8, 8)))
            self.check(lambda: kernel(*arguments, grid=(8, 8)))
            self.check(kernel.prepare(*arguments, grid=(8, 8)))
            self.assertEqual(kernel.info["barriers_at"] >= 0, inline)
            self.assertEqual(kernel.info["spills"], 0)

    def test_a_launch_is_quick(self):
        kernel = runtime("launch").load(HERE / "gemm")
        self.check(lambda: kernel(self.a, self.b, self.c, 1024, grid=(8, 8)))
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(200):
            kernel(self.a, self.b, self.c, 1024, grid=(8, 8))
        self.assertLess((time.perf_counter() - start) / 200, 100e-6)

    def test_tensors_that_do_not_fit(self):
        kernel = runtime("launch").load(HERE / "gemm")
        with self.assertRaisesRegex(ValueError, "a_desc: must be contiguous in its last dimension"):
            kernel(self.a.t(), self.b, self.c, 1024, grid=(8, 8))
        with self.assertRaisesRegex(TypeError, "b_desc: must be of torch.float16, not torch.float32"):
            kernel(self.a, self.b.float(), self.c, 1024, grid=(8, 8))


if __name__ == "__main__":
    unittest.main()
