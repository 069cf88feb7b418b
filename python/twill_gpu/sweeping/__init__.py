"""Sweeps over tile shapes and options: unfit configurations are rejected, the rest ranked by proof, the best solved."""

from __future__ import annotations

from .results import Row, Sweep
from .sweep_call import sweep

__all__ = ["Row", "Sweep", "sweep"]
