"""The packages whose functions are called."""

PACKAGES = (
    "inductor",
    "fla",
    "flag_gems",
    "liger",
    "torchao",
    "lightllm",
    "vllm",
    "sglang",
    "tutorials",
    "quantised",
    "serving",
    "hugging_face",
)
"""Modules in `packages/`."""
