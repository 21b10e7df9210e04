"""What single rows and queries tell: calibration, the worst queries, ties and empty queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from concordant.decoders.sorting import positions
from concordant.evaluation.report.pieces import Bin, Calibration, Counts, RankedRow, WorstQuery
from concordant.evaluation.report.scored import Measured, Scored
from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["calibration", "counts", "worst"]

N_BINS = 10
N_WORST = 10
N_ROWS = 10
N_MISSED = 5


def calibration(one: Scored, confidence: float) -> Calibration:
    """Give the mean grade by score: ten bins of about as many rows, equal scores in the same.

    Rows of one query are not independent: the interval is that of a ratio of sums over queries, each query
    one observation, normal approximation.
    """
    scores, grades = one.queries.gather(one.scores), one.queries.gather(one.y)
    kept = np.flatnonzero(np.isfinite(scores))
    codes, number = one.queries.codes[kept], deciles(scores[kept])
    bins = [
        bin_of(scores[kept][own], grades[kept][own], codes[own], confidence)
        for own in (np.flatnonzero(number == place) for place in range(int(number.max(initial=-1)) + 1))
    ]
    return Calibration(tuple(bins), len(scores) - len(kept))


def deciles(scores: FloatArray) -> IntArray:
    """Give the bin of each row, none empty."""
    if not scores.size:
        return np.empty(0, dtype=np.int64)
    inner = np.quantile(scores, np.linspace(0.0, 1.0, N_BINS + 1)[1:-1], method="lower")
    return np.unique(np.searchsorted(np.unique(inner), scores, side="left"), return_inverse=True)[1]


def bin_of(scores: FloatArray, grades: FloatArray, codes: IntArray, confidence: float) -> Bin:
    """Give one bin."""
    from scipy.stats import norm

    mean = float(grades.mean())
    sums = np.bincount(np.unique(codes, return_inverse=True)[1], weights=grades - mean)
    n = len(sums)
    half = float("nan")
    if n > 1:
        half = float(
            norm.ppf((1.0 + confidence) / 2.0) * np.sqrt(n / (n - 1.0) * (sums**2).sum()) / len(grades)
        )
    ends = float(scores.min()), float(scores.max())
    centre = float((scores / len(scores)).sum())  # a sum of huge scores would overflow
    return Bin(*ends, centre, mean, mean - half, mean + half, len(grades))


def worst(one: Measured, model: Scored, baseline: Scored | None) -> tuple[WorstQuery, ...]:
    """Give the queries of lowest value (of a loss: highest), each with the head of its ranking.

    `baseline` is None where it has no order of the same rows.
    """
    sign = 1.0 if one.metric.greater_is_better else -1.0
    known = np.flatnonzero(~np.isnan(one.model))
    chosen = known[np.argsort(sign * one.model[known], kind="stable")[:N_WORST]]
    return tuple(worst_query(int(q), one, model, baseline) for q in chosen)


def worst_query(q: int, one: Measured, model: Scored, baseline: Scored | None) -> WorstQuery:
    """Give one query, its rows in the order of their scores."""
    rows = model.queries.rows([q])
    scores = model.scores[rows]
    places = positions(scores)
    others = None if baseline is None else positions(baseline.scores[rows])
    names = rows.tolist() if model.docid is None else model.docid[rows].tolist()
    shown = with_missed(np.argsort(places), model.y[rows])
    tied = repeated(scores)
    ranked = [
        RankedRow(
            place=int(places[i]),
            docid=str(names[i]) if model.docid is not None else f"row {names[i]}",
            grade=float(model.y[rows[i]]),
            score=float(scores[i]),
            tied=bool(tied[i]),
            baseline_place=None if others is None else int(others[i]),
        )
        for i in shown
    ]
    qid = str(model.queries.ids[q].item() if hasattr(model.queries.ids[q], "item") else model.queries.ids[q])
    return WorstQuery(qid, float(one.model[q]), float(one.baseline[q]), len(rows), tuple(ranked))


def with_missed(order: IntArray, grades: FloatArray) -> IntArray:
    """Give the head of an order, and from below it the best rows whose grade is above the head's least."""
    head, rest = order[:N_ROWS], order[N_ROWS:]
    missed = rest[grades[rest] > grades[head].min(initial=np.inf)]
    best = missed[np.argsort(-grades[missed], kind="stable")[:N_MISSED]]
    return np.concatenate((head, rest[np.isin(rest, best)]))


def repeated(scores: FloatArray) -> BoolArray:
    """Whether each score of a ranked row is another's, too."""
    _, inverse, count = np.unique(scores, return_inverse=True, return_counts=True)
    return (count[inverse] > 1) & np.isfinite(scores)


def counts(one: Scored, n_skipped: int, noticed: Sequence[str]) -> Counts:
    """Count ties, and queries that say little or nothing."""
    queries, sizes = one.queries, one.queries.sizes
    scores, grades, codes = queries.gather(one.scores), queries.gather(one.y), queries.codes
    ranked = np.isfinite(scores)
    tied = pairs_alike(queries.n_queries, codes[ranked], scores[ranked])
    alike = pairs_alike(queries.n_queries, codes[ranked], scores[ranked], grades[ranked])
    some = sizes > 0
    highest, lowest = (reduced(ufunc, grades, queries.offsets) for ufunc in (np.maximum, np.minimum))
    return Counts(
        n_tied_queries=int((tied > 0).sum()),
        n_tied_pairs=int(tied.sum()),
        n_pairs=int((sizes * (sizes - 1) // 2).sum()),
        n_decided_ties=int((tied - alike).sum()),
        n_without_rows=int((~some).sum()),
        n_one_row=int((sizes == 1).sum()),
        n_nothing_relevant=int((highest <= 0.0)[some].sum()),
        n_same_grade=int((highest == lowest)[some].sum()),
        n_skipped=n_skipped,
        n_not_ranked=int((~ranked).sum()),
        noticed=tuple(noticed),
    )


def pairs_alike(n_queries: int, codes: IntArray, *keys: FloatArray) -> IntArray:
    """Count, for each query, the pairs of rows that are equal in every key."""
    order = np.lexsort((*keys, codes))
    columns = [codes[order], *(key[order] for key in keys)]
    new = np.zeros(max(len(order) - 1, 0), dtype=bool)
    for column in columns:
        new |= column[1:] != column[:-1]
    starts = np.r_[0, np.flatnonzero(new) + 1][: len(order)]
    sizes = np.diff(np.r_[starts, len(order)])
    total = np.bincount(columns[0][starts], weights=sizes * (sizes - 1) // 2, minlength=n_queries)
    return total.astype(np.int64)


def reduced(ufunc: Any, values: FloatArray, offsets: IntArray) -> FloatArray:
    """Reduce the rows of each query; 0 where there are none."""
    some = np.flatnonzero(np.diff(offsets))
    found = np.zeros(len(offsets) - 1)
    if some.size:
        found[some] = ufunc.reduceat(values, offsets[some])
    return found
