"""Calibration: microbenchmarks of a GPU, the figures that they fit, and the machine file made of these.

A benchmark is a CUDA kernel that reads the multiprocessor's clock around N rounds of one kind of work. Cycles of
a round are the slope over the number of rounds; what a round takes by its size is fitted by a line again; what cannot
be timed by itself is the difference of two kernels that differ in it.
"""

from __future__ import annotations

from .calibrating import Calibration, calibrate
from .figures import Figure

__all__ = ["Calibration", "Figure", "calibrate"]
