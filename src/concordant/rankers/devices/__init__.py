"""The linear ranker's objective by torch kernels: losses, objective, and what of `fit` walks over X."""
