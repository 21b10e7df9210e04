"""What needs torch is collected where it is installed; elsewhere its doctests are left out."""

from importlib.util import find_spec

NEED_TORCH = [
    "docs/neural.md",
    "docs/torch.md",
    "src/concordant/torch",
    "src/concordant/scorers/neural.py",
    "src/concordant/rankers/devices",
    "src/concordant/rankers/networks",
    "src/concordant/rankers/neural.py",
]
collect_ignore = [] if find_spec("torch") else NEED_TORCH
collect_ignore += [] if find_spec("triton") else ["src/concordant/torch/kernels"]
