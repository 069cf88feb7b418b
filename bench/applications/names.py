"""The packages whose functions are called."""

PACKAGES = ("inductor", "fla", "flag_gems", "liger", "torchao", "lightllm", "vllm", "sglang", "tutorials", "quantised", "serving")
"""Modules in `packages/`."""
