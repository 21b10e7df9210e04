"""Modules that need torch are collected where it is installed; elsewhere their doctests are left out."""

from importlib.util import find_spec

collect_ignore = (
    [] if find_spec("torch") else ["src/concordant/torch", "src/concordant/scorers/neural.py", "docs/torch.md"]
)
