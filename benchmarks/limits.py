"""What data of a given size need: peak memory and time, measured; and what 10 million documents would.

`python -m benchmarks.limits TASK ROWS` does one task in this process and prints what it took, as JSON.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import concordant as cc
from benchmarks.reading import generate, usual_values
from benchmarks.tables import Table
from benchmarks.timing import watched

FEATURES, ITEMS = 136, 120  # as MSLR-WEB
TREES = 5
GOAL = 10_000_000
GIB = 2**30
ROW_BYTES = 1_050  # of the text, about


def run(*, quick: bool) -> list[Table]:
    """Two sizes give a line, a third one checks it, and the line goes on to 10 M documents."""
    if quick:  # in this process: what it holds from before makes the numbers meaningless
        names, sizes, measure = list(TASKS)[2:], (1_200, 2_400, 4_800), took
    else:
        names, sizes, measure = list(TASKS), (250_000, 500_000, 1_000_000), in_a_process
    found = {
        name: [{"rows": rows, **measure(name, rows)} for rows in sizes] for name in watched(names, "limits")
    }
    return [measurements(found), forecasts(found)]


def in_a_process(name: str, rows: int) -> dict:
    """Let another process do it."""
    command = [sys.executable, "-m", "benchmarks.limits", name, str(rows)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measurements(found: dict) -> Table:
    """What was seen."""
    note = (
        f"{FEATURES} features, {ITEMS} documents a query; float32 where there is a choice. Data: what the "
        "caller holds before. Beyond: the highest memory of the process during the task, less what it held "
        "before. Each in a process of its own, kernels compiled before. LightGBM reads at most 200,000 rows "
        "for its bins, at all of these sizes."
    )
    columns = ("task", "documents", "data, GiB", "beyond, GiB", "bytes a document, in all", "seconds")
    rows = [
        (name, one["rows"], one["held"] / GIB, one["beyond"] / GIB, needs(one) / one["rows"], one["seconds"])
        for name, own in found.items()
        for one in own
    ]
    return Table("Measured", note, columns, rows)


def forecasts(found: dict) -> Table:
    """The line through the two smaller sizes, checked at the third, and at 10 M."""
    note = (
        "Memory in all is a line in the number of documents: through the two smaller sizes, compared with "
        f"what the largest one took, and drawn on to {GOAL:,}. Seconds in proportion to the largest size: "
        "steps until convergence may differ."
    )
    columns = (
        "task", "bytes a document more", "GiB expected at the largest size", "GiB measured",
        f"GiB for {GOAL:,}", f"minutes for {GOAL:,}",
    )  # fmt: skip
    rows = []
    for name, own in found.items():
        small, middle, large = own
        slope = (needs(middle) - needs(small)) / (middle["rows"] - small["rows"])
        expected = needs(middle) + slope * (large["rows"] - middle["rows"])
        goal = needs(large) + slope * (GOAL - large["rows"])
        minutes = large["seconds"] * GOAL / large["rows"] / 60
        rows.append((name, slope, expected / GIB, needs(large) / GIB, goal / GIB, minutes))
    return Table("What 10 million documents need", note, columns, rows)


def needs(one: dict) -> float:
    """Bytes in all: what is held, and what the work takes beyond."""
    return one["held"] + one["beyond"]


# ---------------------------------------------------------------- one task, in its own process


def drawn(rows: int) -> tuple:
    """Features in single precision, grades that follow some of them, and queries."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, FEATURES), dtype=np.float32)
    y = np.digitize(X[:, :4].sum(axis=1) + rng.standard_normal(rows), [0, 1.5, 3, 4.5]).astype(np.float64)
    return X, y, np.arange(rows) // ITEMS


def fit(make: Callable) -> Callable:
    """Training, and what it holds before."""

    def prepared(rows: int, _folder: Path) -> tuple:
        data = drawn(rows)
        small = drawn(10 * ITEMS)
        make().fit(small[0], small[1], qid=small[2])
        return data, lambda: make().fit(data[0], data[1], qid=data[2])

    return prepared


def predict(rows: int, _folder: Path) -> tuple:
    """Scores of all documents."""
    small = drawn(10 * ITEMS)
    model = cc.LinearRanker("ndcg@10").fit(small[0], small[1], qid=small[2])
    data = drawn(rows)
    model.predict(small[0])
    return data, lambda: model.predict(data[0])


def evaluate(rows: int, _folder: Path) -> tuple:
    """One metric of one score per document."""
    rng, metric = np.random.default_rng(0), cc.metric("ndcg@10")
    data = rng.integers(0, 5, rows).astype(float), rng.standard_normal(rows), np.arange(rows) // ITEMS
    metric(data[0][:1000], data[1][:1000], qid=data[2][:1000])
    return data, lambda: metric(data[0], data[1], qid=data[2])


def read_text(rows: int, folder: Path) -> tuple:
    """LETOR text to a float32 matrix."""
    path = generate(folder / "rows.txt", rows * ROW_BYTES, usual_values)
    small = generate(folder / "small.txt", 100 * ROW_BYTES, usual_values)
    cc.read_letor(small, dtype=np.float32)
    return (), lambda: cc.read_letor(path, dtype=np.float32)


def read_parquet(rows: int, folder: Path) -> tuple:
    """A Parquet file, written by another process, to a float64 matrix."""
    path = folder / "rows.parquet"
    with get_context("spawn").Pool(1) as pool:
        pool.apply(write_parquet, (rows, path))
    return (), lambda: cc.read_table(path)


def write_parquet(rows: int, path: Path) -> None:
    """The same numbers as elsewhere."""
    import pyarrow as pa
    from pyarrow import parquet

    X, y, qid = drawn(rows)
    columns = {"qid": qid, "grade": y, **{f"f{j}": X[:, j] for j in range(FEATURES)}}
    parquet.write_table(pa.table(columns), path)


def linear() -> cc.LinearRanker:
    """The default."""
    return cc.LinearRanker("ndcg@10")


def boosted() -> cc.BoostedRanker:
    """LightGBM."""
    return cc.BoostedRanker("ndcg@10", n_estimators=TREES, early_stopping=None)


TASKS = {
    "read_letor": read_text,
    "read_table (Parquet)": read_parquet,
    "LinearRanker.fit": fit(linear),
    f"BoostedRanker.fit ({TREES} trees)": fit(boosted),
    "LinearRanker.predict": predict,
    "metric('ndcg@10')": evaluate,
}


def memory(field: str) -> int:
    """Bytes of this process, by Linux' name of the field."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{field}:"):
            return 1024 * int(line.split()[1])
    raise LookupError(field)


def restarted() -> int:
    """Let the highest memory, VmHWM, begin here; bytes of this process now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return memory("VmRSS")


def took(name: str, rows: int) -> dict:
    """Prepare, then measure."""
    with tempfile.TemporaryDirectory() as folder:
        data, work = TASKS[name](rows, Path(folder))
        before, start = restarted(), time.perf_counter()
        work()
        seconds = time.perf_counter() - start
        beyond = max(memory("VmHWM") - before, 0)
    return {"held": sum(array.nbytes for array in data), "beyond": beyond, "seconds": seconds}


if __name__ == "__main__":
    print(json.dumps(took(sys.argv[1], int(sys.argv[2]))))
