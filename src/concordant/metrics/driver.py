"""Runs a metric's kernel over all queries: the one place that knows about sorting long lists and threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from concordant._segments import run_chunks
from concordant.supervision.labels import frozen
from concordant.types import FloatArray, IntArray

__all__ = ["cutoff", "run_metric"]


def cutoff(k: int | None, offsets: IntArray) -> int:
    """Give the number of places that can count: k, or the longest list."""
    longest = max(int(np.diff(offsets).max(initial=1)), 1)
    return longest if k is None else min(k, longest)


def run_metric(
    chunk: Callable[..., None],
    grades: FloatArray,
    scores: FloatArray,
    offsets: IntArray,
    k: int,
    strict: bool,
    *parameters: Any,
) -> tuple[FloatArray, FloatArray]:
    """Give the two numbers per query that the chunk fills; `strict`: tied rows stand in row order.

    Long lists are sorted here by numpy, which is several times faster than a compiled sort; short ones are
    sorted, and small heads selected, inside the kernel.
    """
    from concordant.metrics.kernels.head import LONG, SELECT

    long = np.flatnonzero(np.diff(offsets) >= LONG) if k > SELECT else np.empty(0, np.int64)
    presorted = np.empty(len(scores) if long.size else 0, np.int64)
    values, second = np.empty(len(offsets) - 1), np.empty(len(offsets) - 1)
    scores, grades = frozen(scores), frozen(grades)  # a writeable array would be compiled for once more

    def body(first: int, last: int) -> None:
        for q in long[np.searchsorted(long, first) : np.searchsorted(long, last)]:
            rows = slice(offsets[q], offsets[q + 1])
            presorted[rows] = np.argsort(-scores[rows], kind="stable" if strict else "quicksort")
        chunk(scores, grades, offsets, presorted, first, last, k, values, second, strict, *parameters)

    if len(values):
        run_chunks(offsets, body)
    return values, second
