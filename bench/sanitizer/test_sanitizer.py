"""What compute-sanitizer says is read as belonging to the right kernel."""

import unittest

from .reports import is_dispatch, read

SAID = """========= COMPUTE-SANITIZER
## 0 begins
## 0 ends
## 3 begins
========= Invalid __global__ read of size 2 bytes
=========     at kernel+0x100 in kernel.py:3
=========     by thread (1,0,0) in block (0,0,0)
=========     Address 0x7f0000000000 is out of bounds
=========     and is 1 bytes after the nearest allocation
========= 
========= Error: Race reported between Write access at kernel+0x20
=========     and Read access at kernel+0x40 [4 hazards]
=========
## 3 ends
## 4 fails RuntimeError: the launcher refuses it
## 7 begins
========= Program hit cudaErrorLaunchFailure on CUDA API call
========= ERROR SUMMARY: 5 errors
"""


class Reports(unittest.TestCase):
    def test_reports_are_of_the_kernel_that_was_announced(self):
        said = read(SAID)
        self.assertEqual([(number, one.state.split()[0]) for number, one in said.items()],
                         [(0, "ends"), (3, "ends"), (4, "fails"), (7, "begins")])
        self.assertEqual([len(one.reports) for one in said.values()], [0, 2, 0, 0])
        first, second = said[3].reports
        self.assertTrue(first.startswith("Invalid __global__ read of size 2 bytes | at kernel+0x100 in kernel.py:3"))
        self.assertTrue(second.endswith("Read access at kernel+0x40 [4 hazards]"))
        self.assertEqual(said[7].other, ["Program hit cudaErrorLaunchFailure on CUDA API call"])

    def test_reports_of_triton_s_dispatch_name_the_first_line_and_the_last(self):
        kernel = "@gluon.jit\ndef load():\n    pass\n@gluon.jit\ndef kernel():\n    load()\n    if so:\n        end()\n"
        report = "Error: Race reported between Read access at k+0x1 in kernel.py:{} | and Write access at k+0x7 in kernel.py:{}"
        self.assertTrue(is_dispatch(report.format(5, 7), kernel))
        self.assertTrue(is_dispatch(report.format(5, 8), kernel))
        self.assertFalse(is_dispatch(report.format(5, 6), kernel))
        self.assertFalse(is_dispatch(report.format(2, 7), kernel))
        self.assertFalse(is_dispatch("Error: Potential hazard", kernel))


if __name__ == "__main__":
    unittest.main()
