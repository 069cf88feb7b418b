"""Kernels that Twill generated, compared on a GPU with what stock Triton makes of the same TTIR."""
