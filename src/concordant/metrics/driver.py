"""Runs a metric's kernel over all queries: the one place that knows about sorting long lists and threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from concordant._segments import run_chunks
from concordant.metrics.graded import Rows
from concordant.supervision.columns import frozen
from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["cutoff", "run_metric"]


def cutoff(k: int | None, offsets: IntArray) -> int:
    """Give the number of places that can count: k, or the longest list."""
    longest = max(int(np.diff(offsets).max(initial=1)), 1)
    return longest if k is None else min(k, longest)


def run_metric(
    chunk: Callable[..., None], rows: Rows, k: int, *parameters: Any
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Give the two numbers per query that the chunk fills, and whether tied rows matter to them.

    Long lists are sorted here by numpy, which is several times faster than a compiled sort; short ones are
    sorted, and small heads selected, inside the kernel.
    """
    from concordant.metrics.kernels.head import LONG
    from concordant.metrics.kernels.selection import SELECT

    strict = rows.strict
    # Writeable arrays would be compiled for once more.
    scores, grades, offsets = frozen(rows.scores), frozen(rows.grades), frozen(rows.offsets)
    long = np.flatnonzero(np.diff(offsets) >= LONG) if k > SELECT else np.empty(0, np.int64)
    presorted = np.empty(len(scores) if long.size else 0, np.int64)
    n_queries = len(offsets) - 1
    values, second, tied = np.empty(n_queries), np.empty(n_queries), np.empty(n_queries, dtype=np.bool_)

    def body(first: int, last: int) -> None:
        for q in long[np.searchsorted(long, first) : np.searchsorted(long, last)]:
            own = slice(offsets[q], offsets[q + 1])
            presorted[own] = np.argsort(-scores[own], kind="stable" if strict else "quicksort")
        chunk(scores, grades, offsets, presorted, first, last, k, values, second, tied, strict, *parameters)

    if n_queries:
        run_chunks(offsets, body)
    return values, second, tied
