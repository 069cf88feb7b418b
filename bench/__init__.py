"""Benchmarks, each a package that runs from the top of the checkout: `python -m bench.gpu --help` (README.md)."""
