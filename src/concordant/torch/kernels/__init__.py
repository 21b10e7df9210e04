"""Triton kernels; imported when tensors are on a GPU and triton is installed."""
