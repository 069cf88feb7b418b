"""What kernels save by measurement, from rows as `bench.applications` writes them."""

import importlib.util
import unittest

HAS_TWILL = importlib.util.find_spec("twill_gpu") is not None


@unittest.skipUnless(HAS_TWILL, "twill_gpu is missing")
class Parts(unittest.TestCase):
    def test_the_fastest_of_twills_kernels_counts_and_none_is_slower(self):
        from bench.applications.ranking import parts

        def kernel(name, **times):
            return {"collected": name, "times": [{"winner": "stock", "stock": 2.0, **times}]}

        named = {"twill, cuda": 1.0, "twill": 1.5, "num_warps=8": 0.5}
        rows = [
            {"kernels": [kernel("fast", **named), kernel("slow", twill=3.0), kernel(None, twill=1.0), kernel("left")]},
            {"error": "no answer"},
        ]
        self.assertEqual(parts(rows), {"fast": 0.5, "slow": 0.0})
