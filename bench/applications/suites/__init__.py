"""Packages' own test suites, with Twill under their Triton kernels."""
