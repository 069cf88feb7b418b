"""The packages whose functions are called."""

PACKAGES = ("fla", "flag_gems", "liger", "torchao", "lightllm", "vllm", "sglang", "tutorials")
"""Modules in `packages/`."""
