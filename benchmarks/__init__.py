"""How fast concordant is, as ratios to the real peers and to the limits, measured in the same run.

`python -m benchmarks` runs every suite and writes a table of each to `benchmarks/results/`.
"""
