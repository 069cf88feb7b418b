"""`python -m twill_gpu.calibration`, which `twill machine calibrate` runs."""

from __future__ import annotations

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main())
