"""Generated kernels on a Hopper GPU: speed, launches as predicted, traces, checks."""
