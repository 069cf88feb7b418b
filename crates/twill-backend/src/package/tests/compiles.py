"""Compiles the kernel of this folder.

    python test_kernel.py

Skipped without Triton; a GPU is not needed.
"""

import importlib.util
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent

