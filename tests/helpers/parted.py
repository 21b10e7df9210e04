"""Data in parts, for tests: a scan of parts that are in memory, cut between queries."""

import io
import pickle
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from concordant.data.queries import Queries
from concordant.scale.scan.index import Index
from concordant.scale.scan.scan import PartRows, Scan


@dataclass(eq=False)
class MemoryPart:
    """Rows that are there already; how often they are read is counted."""

    number: int
    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray
    columns: dict = field(default_factory=dict)
    reads: int = 0

    @property
    def name(self):
        return f"part {self.number}"

    @property
    def n_rows(self):
        return len(self.X)

    @property
    def nbytes(self):
        return self.X.nbytes

    def where(self, row):
        return self.name, row

    def read(self):
        self.reads += 1
        return PartRows.from_rows(self.X, self.y, self.qid, **self.columns)

    @cached_property
    def piece(self):
        queries = Queries.from_ids(self.qid)
        weights = self.columns.get("query_weight")
        query_weights = None if weights is None else queries.gather(weights)[queries.offsets[:-1]]
        return queries.ids, queries.sizes, query_weights


def moved(value, *, writeable=False):
    """Return a value as another process would get it: arrays are read-only, mostly, at odd addresses."""
    buffers, blocks = [], []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    for buffer in buffers:
        raw = np.frombuffer(buffer.raw(), dtype=np.uint8)
        block = np.empty(len(raw) + 16, dtype=np.uint8)
        window = block[-block.ctypes.data % 8 + 3 :][: len(raw)]
        window[:] = raw
        window.flags.writeable = writeable
        blocks.append(memoryview(window))
    return pickle.load(io.BytesIO(data), buffers=blocks)  # noqa: S301  made above


def scan_of(X, y, qid, n_parts=3, names=None, seed=0, **columns):
    """Build a scan in which queries are dealt out to parts at random, and rows of a part are shuffled."""
    rng = np.random.default_rng(seed)
    X, y, qid = (np.asarray(column) for column in (X, y, qid))
    ids, codes = np.unique(qid, return_inverse=True)
    owner = rng.integers(n_parts, size=len(ids))
    parts = []
    for number in np.unique(owner):
        rows = rng.permutation(np.flatnonzero(owner[codes] == number))
        # Rows of a query keep their order: some conventions break ties by it.
        rows = rows[np.argsort(codes[rows], kind="stable")]
        rows = np.concatenate(
            [np.sort(rows[codes[rows] == q]) for q in rng.permutation(np.unique(codes[rows]))]
        )
        part_columns = {name: np.asarray(column)[rows] for name, column in columns.items()}
        parts.append(MemoryPart(len(parts), X[rows], y[rows], qid[rows], part_columns))
    index = Index.from_pieces([part.piece for part in parts], [part.name for part in parts])
    weighted = "sample_weight" in columns
    return Scan(tuple(parts), index, X.shape[1], names, 2**40, weighted)
