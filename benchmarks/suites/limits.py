"""What data of a given size need: peak memory and time, measured; and what 10 million documents would.

`python -m benchmarks.suites.limits TASK ROWS` does one task in this process and prints what it took, as JSON.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import concordant as cc
from benchmarks.shared.processes import memory, restart_peak, run_module
from benchmarks.shared.tables import Table
from benchmarks.shared.timing import watched
from benchmarks.suites.reading import generate, usual_values

FEATURES, ITEMS = 136, 120  # as MSLR-WEB
TREES = 5
GOAL = 10_000_000
GIB = 2**30
ROW_BYTES = 1_050  # of the text, about


def run(*, quick: bool) -> list[Table]:
    """Two sizes give a line, a third one checks it, and the line goes on to 10 M documents."""
    if quick:  # in this process: what it holds from before makes the numbers meaningless
        names, sizes, measure = list(TASKS)[2:], (1_200, 2_400, 4_800), _took
    else:
        names, sizes, measure = list(TASKS), (250_000, 500_000, 1_000_000), partial(run_module, __name__)
    results = {
        name: [{"rows": rows, **measure(name, rows)} for rows in sizes] for name in watched(names, "limits")
    }
    return [_measurements(results), _forecasts(results)]


def _measurements(results: dict) -> Table:
    note = (
        f"{FEATURES} features, {ITEMS} documents a query; float32 where there is a choice. Data: what the "
        "caller holds before. Beyond: the highest memory of the process during the task, less what it held "
        "before. Each in a process of its own, kernels compiled before. LightGBM reads at most 200,000 rows "
        "for its bins, at all of these sizes."
    )
    columns = ("task", "documents", "data, GiB", "beyond, GiB", "bytes a document, in all", "seconds")
    rows = [
        (
            name,
            result["rows"],
            result["held"] / GIB,
            result["beyond"] / GIB,
            _needs(result) / result["rows"],
            result["seconds"],
        )
        for name, measured in results.items()
        for result in measured
    ]
    return Table("Measured", note, columns, rows)


def _forecasts(results: dict) -> Table:
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
    for name, measured in results.items():
        small, middle, large = measured
        slope = (_needs(middle) - _needs(small)) / (middle["rows"] - small["rows"])
        expected = _needs(middle) + slope * (large["rows"] - middle["rows"])
        goal = _needs(large) + slope * (GOAL - large["rows"])
        minutes = large["seconds"] * GOAL / large["rows"] / 60
        rows.append((name, slope, expected / GIB, _needs(large) / GIB, goal / GIB, minutes))
    return Table("What 10 million documents need", note, columns, rows)


def _needs(result: dict) -> float:
    """Bytes in all: what is held, and what the work takes beyond."""
    return result["held"] + result["beyond"]


# ---------------------------------------------------------------- one task, in its own process


def _drawn(rows: int) -> tuple:
    """Features in single precision, grades that follow some of them, and queries."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, FEATURES), dtype=np.float32)
    y = np.digitize(X[:, :4].sum(axis=1) + rng.standard_normal(rows), [0, 1.5, 3, 4.5]).astype(np.float64)
    return X, y, np.arange(rows) // ITEMS


def _fit(make: Callable) -> Callable:
    """Training, and what it holds before."""

    def prepared(rows: int, _folder: Path) -> tuple:
        data = _drawn(rows)
        small = _drawn(10 * ITEMS)
        make().fit(small[0], small[1], qid=small[2])
        return data, lambda: make().fit(data[0], data[1], qid=data[2])

    return prepared


def _predict(rows: int, _folder: Path) -> tuple:
    """Scores of all documents."""
    small = _drawn(10 * ITEMS)
    model = cc.LinearRanker("ndcg@10").fit(small[0], small[1], qid=small[2])
    data = _drawn(rows)
    model.predict(small[0])
    return data, lambda: model.predict(data[0])


def _evaluate(rows: int, _folder: Path) -> tuple:
    """One metric of one score per document."""
    rng, metric = np.random.default_rng(0), cc.metric("ndcg@10")
    data = rng.integers(0, 5, rows).astype(float), rng.standard_normal(rows), np.arange(rows) // ITEMS
    metric(data[0][:1000], data[1][:1000], qid=data[2][:1000])
    return data, lambda: metric(data[0], data[1], qid=data[2])


def _read_text(rows: int, folder: Path) -> tuple:
    """LETOR text to a float32 matrix."""
    path = generate(folder / "rows.txt", rows * ROW_BYTES, usual_values)
    small = generate(folder / "small.txt", 100 * ROW_BYTES, usual_values)
    cc.read_letor(small, dtype=np.float32)
    return (), lambda: cc.read_letor(path, dtype=np.float32)


def _read_parquet(rows: int, folder: Path) -> tuple:
    """A Parquet file, written by another process, to a float64 matrix."""
    path = folder / "rows.parquet"
    with get_context("spawn").Pool(1) as pool:
        pool.apply(_write_parquet, (rows, path))
    return (), lambda: cc.read_table(path)


def _write_parquet(rows: int, path: Path) -> None:
    """The same numbers as elsewhere."""
    import pyarrow as pa
    from pyarrow import parquet

    X, y, qid = _drawn(rows)
    columns = {"qid": qid, "grade": y, **{f"f{j}": X[:, j] for j in range(FEATURES)}}
    parquet.write_table(pa.table(columns), path)


def _linear() -> cc.LinearRanker:
    """The default."""
    return cc.LinearRanker("ndcg@10")


def _boosted() -> cc.BoostedRanker:
    """LightGBM."""
    return cc.BoostedRanker("ndcg@10", n_estimators=TREES, early_stopping=None)


TASKS = {
    "read_letor": _read_text,
    "read_table (Parquet)": _read_parquet,
    "LinearRanker.fit": _fit(_linear),
    f"BoostedRanker.fit ({TREES} trees)": _fit(_boosted),
    "LinearRanker.predict": _predict,
    "metric('ndcg@10')": _evaluate,
}


def _took(name: str, rows: int) -> dict:
    """Prepare, then measure."""
    with tempfile.TemporaryDirectory() as folder:
        data, work = TASKS[name](rows, Path(folder))
        before, start = restart_peak(), time.perf_counter()
        work()
        seconds = time.perf_counter() - start
        beyond = max(memory("VmHWM") - before, 0)
    return {"held": sum(array.nbytes for array in data), "beyond": beyond, "seconds": seconds}


if __name__ == "__main__":
    print(json.dumps(_took(sys.argv[1], int(sys.argv[2]))))
