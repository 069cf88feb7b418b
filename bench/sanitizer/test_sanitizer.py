"""What compute-sanitizer says is read as belonging to the right kernel."""

import unittest

from .reports import read

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


if __name__ == "__main__":
    unittest.main()
