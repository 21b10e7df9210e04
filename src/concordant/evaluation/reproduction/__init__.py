"""Experiments of papers, run again: one paper a file, what they share in `linear_paths`."""
