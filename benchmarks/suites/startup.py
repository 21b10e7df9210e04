"""Waiting times: imports, the first call with and without numba's cache, the command line's help."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.shared.tables import Table
from benchmarks.shared.timing import race

FIRST_CALL = "import concordant as cc; cc.metric('ndcg@10')([1, 0, 2], [0.3, 0.2, 0.1])"
HELP = "import sys; sys.argv = ['concordant', '--help']; from concordant.cli import main; main()"
DEMO = HELP.replace("--help", "demo")
# The same loop over pairs of one list, compiled as our kernels are and as numba's own threads would need it.
LOOP = """
import numba, numpy as np
@numba.njit({})
def count(x, wrong):
    for i in numba.prange(len(x)):
        for j in range(len(x)):
            wrong[i] += x[i] > x[j]
count(np.zeros(3), np.zeros(3))
"""
NUMPY = "import numpy"


def run(*, quick: bool) -> list[Table]:
    """The only table of this suite."""
    with tempfile.TemporaryDirectory() as folder:
        caches: list[Path] = []
        calls: dict[str, Callable[[], object]] = {
            "start Python": lambda: _python("pass"),
            NUMPY: lambda: _python("import numpy"),
            "import sklearn": lambda: _python("import sklearn"),
            "import numba": lambda: _python("import numba"),
            "import concordant": lambda: _python("import concordant"),
            "import concordant, use `cc.metric`": lambda: _python("import concordant as cc; cc.metric"),
            "first ndcg@10, numba's cache empty": lambda: _python(FIRST_CALL, cache=_fresh(folder, caches)),
            "first ndcg@10, numba's cache filled": lambda: _python(FIRST_CALL, cache=caches[-1]),
            "concordant --help": lambda: _python(HELP),
            "concordant demo, numba's cache empty": lambda: _python(DEMO, cache=_fresh(folder, caches)),
            "compile a double loop, nogil": lambda: _python(LOOP.format("nogil=True")),
            "compile a double loop, parallel=True": lambda: _python(LOOP.format("parallel=True")),
        }
        if quick:  # compiling everything takes half a minute
            del calls["concordant demo, numba's cache empty"]
        timings = race(calls, title="startup", rounds=1 if quick else 5, most=1, warm_up=not quick)
    table = Table(
        "Startup",
        "Each row is a fresh process, its whole life timed, the start of Python included; median of the "
        "rounds. Files are in the page cache, `.pyc` files exist.",
        ("process", "ms", "ms beyond Python's start", f"/ {NUMPY}", "/ import sklearn"),
    )
    for name in calls:
        seconds, start = timings.median(name), timings.median("start Python")
        ratios = [timings.ratio(name, other) for other in (NUMPY, "import sklearn")]
        table.rows.append((name, seconds * 1e3, (seconds - start) * 1e3, *ratios))
    return [table]


def _python(code: str, cache: Path | None = None) -> None:
    """Run the code in a new interpreter."""
    environment = os.environ | ({"NUMBA_CACHE_DIR": str(cache)} if cache else {})
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, stdout=subprocess.DEVNULL)


def _fresh(folder: str, caches: list[Path]) -> Path:
    """A new empty folder for compiled code, remembered for the calls that find it filled."""
    caches.append(Path(tempfile.mkdtemp(dir=folder)))
    return caches[-1]
