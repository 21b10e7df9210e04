"""Solvers of comparison machines: linear and kernel, soft and hard margins, streams, data in parts."""
