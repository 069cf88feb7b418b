"""Packages' own functions with Twill under their Triton kernels."""
