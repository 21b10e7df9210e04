"""Exact arithmetic: metrics, targets and minimisers in fractions, independent of the compiled kernels."""
