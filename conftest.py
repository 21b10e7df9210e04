"""What is collected: doctests of what is installed; with `--fast` one case of each test.

Doctests of modules that need torch, or triton, are left out where it is not installed.
"""

from importlib.util import find_spec

NEED_TORCH = [
    "docs/neural.md",
    "docs/torch.md",
    "src/concordant/torch/*",
    "src/concordant/rankers/device_*.py",
    "src/concordant/rankers/networks/*",
    "src/concordant/rankers/neural.py",
]
NEED_TRITON = ["src/concordant/torch/triton_*.py"]
collect_ignore_glob = [
    *([] if find_spec("torch") else NEED_TORCH),
    *([] if find_spec("triton") else NEED_TRITON),
]


def pytest_addoption(parser):
    parser.addoption("--fast", action="store_true", help="only the first case of each parametrized test")


def pytest_collection_modifyitems(config, items):
    """Keep one case of each test function: all rooms answer, within the time of an edit."""
    if not config.getoption("--fast"):
        return
    first = {}
    for item in sorted(items, key=lambda item: item.nodeid):
        first.setdefault(item.nodeid.partition("[")[0], item)
    selected_items, left_out = [], []
    for item in items:
        (selected_items if first[item.nodeid.partition("[")[0]] is item else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = selected_items
