"""What the decorator and activation tell each other about Triton functions; neither need be imported for it."""

from __future__ import annotations

STOCK_ONLY = ("instrumentation_mode", "ir_override", "launch_cooperative_grid")
"""Options of a launch that only stock Triton can do."""
OWN_LAUNCHES = "_twill_has_its_own_launches"
"""Marks a Triton function that a `JitKernel` stands for."""
