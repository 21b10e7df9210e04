"""What needs torch, or triton, is collected where they are installed; elsewhere its doctests are left out."""

from importlib.util import find_spec

NEED_TORCH = [
    "docs/neural.md",
    "docs/torch.md",
    "src/concordant/torch/*",
    "src/concordant/scorers/neural*.py",
    "src/concordant/rankers/devices/*",
    "src/concordant/rankers/networks/*",
    "src/concordant/rankers/neural.py",
]
NEED_TRITON = ["src/concordant/torch/kernels/*"]
collect_ignore_glob = [
    *([] if find_spec("torch") else NEED_TORCH),
    *([] if find_spec("triton") else NEED_TRITON),
]
