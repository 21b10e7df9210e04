"""Parquet sets of any size, written by streaming: noise and a linear signal, row groups of whole queries."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from concordant.scale.scan.parquet import WHOLE_QUERIES

FEATURES, SHORTEST, LONGEST, TELLING = 136, 60, 140, 30  # documents of a query; features that matter
ROW_GROUP = 64 << 20
GB = 1e9
POOL = 1 << 24  # normal numbers, of which all columns are windows


def _sets_folder() -> Path:
    """Folder of the sets: `CONCORDANT_BENCH_DATA`, by default benchmarks/data."""
    parent = Path(os.environ.get("CONCORDANT_BENCH_DATA", Path(__file__).parents[1] / "data"))
    parent.mkdir(parents=True, exist_ok=True)
    return parent


def fits(size: float) -> bool:
    """True if so many bytes can be written there."""
    return shutil.disk_usage(_sets_folder()).free > 1.2 * size


@contextmanager
def drawn(
    size: float, *, compression: str = "snappy", row_group: int = ROW_GROUP
) -> Iterator[tuple[Path, float]]:
    """Write so many bytes of features to a folder, which is removed after all; the file, and the seconds."""
    with tempfile.TemporaryDirectory(dir=_sets_folder()) as folder:
        path, start = Path(folder, "set.parquet"), time.perf_counter()
        _write(path, size, compression, row_group // (4 * FEATURES))
        yield path, time.perf_counter() - start


def _write(path: Path, size: float, compression: str, most: int) -> None:
    """Write row groups of at most so many rows, as `cc.write_parquet` does."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    names = [f"f{j}" for j in range(FEATURES)]
    columns = [("qid", pa.int64()), ("grade", pa.float64()), *((name, pa.float32()) for name in names)]
    options = {"use_dictionary": ["qid", "grade"], "write_statistics": ["qid"], "write_page_checksum": True}
    schema = pa.schema(columns, WHOLE_QUERIES)
    with path.open("wb") as stream:
        with ParquetWriter(stream, schema, compression=compression, **options) as writer:
            for group in _groups(size, most):
                table = pa.table(group, schema=schema)
                writer.write_table(table, row_group_size=table.num_rows)
        os.fsync(stream.fileno())  # what is still to be written would slow down what is measured


def _groups(size: float, most: int) -> Iterator[list[np.ndarray]]:
    """Columns of row groups of at most so many rows, whole queries each, until so many bytes are there."""
    rng = np.random.default_rng(0)
    pool = rng.standard_normal(POOL + most, dtype=np.float32)
    spread = np.float32(10.0) ** rng.uniform(-1.0, 1.0, FEATURES).astype(np.float32)
    truth = rng.standard_normal(TELLING).astype(np.float32) / np.float32(np.sqrt(TELLING))
    first = 0
    while size > 0:
        ends = rng.integers(SHORTEST, LONGEST + 1, 1 + most // SHORTEST).cumsum()
        ends = ends[: np.searchsorted(ends, most, side="right")]
        n_rows = int(ends[-1])
        X = [pool[start : start + n_rows] for start in rng.integers(0, POOL, FEATURES)]
        scores = rng.standard_normal(n_rows, dtype=np.float32)
        for weight, column in zip(truth, X, strict=False):
            scores += weight * column
        qid = first + np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        yield [qid, np.digitize(scores, [0, 1, 2, 3]).astype(np.float64), *map(np.multiply, X, spread)]
        first, size = first + len(ends), size - n_rows * 4 * FEATURES
