"""Chunks of short lists: the double loop that fits the margin and the pairs; longer lists are left alone."""

from __future__ import annotations

import numpy as np

from concordant._segments import kernel
from concordant.surrogates.kernels.double import (
    all_clip,
    all_logistic,
    exponentials,
    graded_clip,
    graded_logistic,
)
from concordant.surrogates.kernels.double_product import (
    all_clip_product,
    all_logistic_product,
    graded_clip_product,
    graded_logistic_product,
)
from concordant.surrogates.kernels.far import logistic_far, logistic_far_product
from concordant.types import FloatArray, IntArray

__all__ = ["clip_chunk", "clip_product_chunk", "logistic_chunk", "logistic_product_chunk", "shifted_chunk"]


@kernel
def clip_chunk(
    scores: FloatArray,
    weights: FloatArray,
    levels: FloatArray,
    top: float,
    graded: bool,
    offsets: IntArray,
    first: int,
    last: int,
    limit: int,
    edge: float,
    width: float,
    scale: float,
    values: FloatArray,
    grad: FloatArray,
) -> None:
    """Margins of quadratic pieces, on queries of at most `limit` rows."""
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        if b - a > limit:
            continue
        if graded:
            values[q] = graded_clip(
                scores[a:b], weights[a:b], levels[a:b], top, edge, width, scale, grad[a:b]
            )
        else:
            values[q] = all_clip(scores[a:b], weights[a:b], edge, width, scale, grad[a:b])


@kernel
def clip_product_chunk(
    scores: FloatArray,
    weights: FloatArray,
    levels: FloatArray,
    top: float,
    graded: bool,
    vector: FloatArray,
    offsets: IntArray,
    first: int,
    last: int,
    limit: int,
    edge: float,
    width: float,
    scale: float,
    product: FloatArray,
) -> None:
    """Hessian products of the same."""
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        if b - a > limit:
            continue
        rows = scores[a:b], weights[a:b], vector[a:b], product[a:b]
        if graded:
            graded_clip_product(rows[0], rows[1], levels[a:b], top, rows[2], edge, width, scale, rows[3])
        else:
            all_clip_product(rows[0], rows[1], rows[2], edge, width, scale, rows[3])


@kernel
def logistic_chunk(
    scores: FloatArray,
    weights: FloatArray,
    levels: FloatArray,
    top: float,
    graded: bool,
    offsets: IntArray,
    first: int,
    last: int,
    values: FloatArray,
    grad: FloatArray,
) -> None:
    """The logistic margin, at any length: no faster way is known."""
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        powers = np.empty(b - a)
        if not exponentials(scores[a:b], powers):
            values[q] = logistic_far(scores[a:b], weights[a:b], levels[a:b], top, graded, grad[a:b])
        elif graded:
            values[q] = graded_logistic(scores[a:b], weights[a:b], levels[a:b], top, powers, grad[a:b])
        else:
            values[q] = all_logistic(scores[a:b], weights[a:b], powers, grad[a:b])


@kernel
def logistic_product_chunk(
    scores: FloatArray,
    weights: FloatArray,
    levels: FloatArray,
    top: float,
    graded: bool,
    vector: FloatArray,
    offsets: IntArray,
    first: int,
    last: int,
    product: FloatArray,
) -> None:
    """Hessian products of the same."""
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        powers = np.empty(b - a)
        rows = weights[a:b], vector[a:b], product[a:b]
        if not exponentials(scores[a:b], powers):
            logistic_far_product(scores[a:b], rows[0], levels[a:b], top, graded, rows[1], rows[2])
        elif graded:
            graded_logistic_product(rows[0], levels[a:b], top, rows[1], powers, rows[2])
        else:
            all_logistic_product(rows[0], rows[1], powers, rows[2])


@kernel
def shifted_chunk(
    scores: FloatArray, shift: FloatArray, offsets: IntArray, first: int, last: int, moved: FloatArray
) -> None:
    """Scores less their shift, from the list's first score on: large levels would cost digits."""
    for q in range(first, last):
        for i in range(offsets[q], offsets[q + 1]):
            moved[i] = (scores[i] - scores[offsets[q]]) - shift[i]
