"""A loss on the labels of a dataset: bound once, and asked for slopes in every round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from concordant._segments import segment_sum
from concordant.exceptions import LabelError, LengthMismatchError, ParameterError
from concordant.metrics.metric import Metric
from concordant.rankers.boosters.plan import Plan
from concordant.supervision.columns import check_lengths, check_nonnegative
from concordant.supervision.queries import Queries
from concordant.surrogates import Loss
from concordant.types import ArrayLike, FloatArray

__all__ = ["Columns", "Kept", "bound_loss", "bound_metric"]

MOST = 8  # datasets that are remembered


@dataclass(frozen=True, eq=False)
class Columns:
    """What a dataset of a booster says of its rows.

    Attributes
    ----------
    labels
        One grade per row.
    weight
        One per row or one per query; None or empty: 1.
    sizes
        Rows of each query, which are adjacent.
    """

    labels: ArrayLike
    weight: ArrayLike
    sizes: ArrayLike

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Columns):
            return NotImplemented
        pairs = ((getattr(self, name), getattr(other, name)) for name in ("labels", "weight", "sizes"))
        return all(same(*pair) for pair in pairs)

    __hash__ = None  # type: ignore[assignment]

    def copied(self) -> Columns:
        """Give columns that nobody else can change."""
        return Columns(*(None if one is None else np.array(one) for one in vars(self).values()))

    def queries(self, source: str) -> Queries:
        """Give the queries; refuse a dataset that has none."""
        if self.sizes is None or not len(self.sizes):
            hint = "give the number of rows of each query, in order: group=... (or qid, of XGBoost)."
            raise LabelError(f"{source} has no groups: which rows are ranked together is not known", hint)
        found = Queries.from_sizes(self.sizes)
        check_lengths("the groups", found.n_rows, labels=self.labels)
        return found

    def weights(self, queries: Queries) -> tuple[FloatArray | None, FloatArray | None]:
        """Give the weight of each row, and of each query; the mean query that counts weighs 1."""
        if self.weight is None or not len(self.weight):
            return None, None
        rows = check_nonnegative(self.weight, "weight", "row")
        if len(rows) == queries.n_queries:
            rows = np.repeat(rows, queries.sizes)
        if len(rows) != queries.n_rows:
            raise LengthMismatchError("weight", len(rows), queries.n_rows, "the dataset")
        means = segment_sum(rows, queries.offsets) / np.maximum(queries.sizes, 1)
        if not means.any():
            raise ParameterError("weight", "all zero", "positive for at least one row")
        unit = means[means > 0.0].mean()
        return rows / unit, means / unit


def same(one: ArrayLike, other: ArrayLike) -> bool:
    """Whether two columns have the same contents, or are both missing."""
    if one is None or other is None:
        return one is other
    return one is other or np.array_equal(one, other)


class Kept:
    """What was made of the few datasets last seen, so that it is made once for each.

    Datasets are told apart by their contents (copies are kept, so that a change is seen), which takes a
    fraction of the time of a gradient. Copies and pickles begin empty.
    """

    def __init__(self) -> None:
        self.known: list[tuple[Columns, Any]] = []

    def get(self, columns: Columns, make: Callable[[Columns], Any]) -> Any:
        """Give what was made of these columns, or make it."""
        for seen, made in self.known:
            if seen == columns:
                return made
        fresh = make(columns)
        self.known = [(columns.copied(), fresh), *self.known[: MOST - 1]]
        return fresh

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()


def bound_loss(plan: Plan, columns: Columns, source: str) -> Loss:
    """Give the loss on a dataset's labels, summed over its queries; say what is not guaranteed of it."""
    queries = columns.queries(source)
    labels, claim = plan.labels(columns.labels, queries)
    labels, weights = plan.weighed(labels, columns.weights(queries)[0], queries)
    claim.warn(stacklevel=6)
    return plan.surrogate.bind(labels, queries.offsets, weights)


def bound_metric(metric: Metric, columns: Columns, source: str) -> Callable[[ArrayLike], float]:
    """Give the metric of score vectors on a dataset."""
    queries = columns.queries(source)
    labels, weights = metric.read_labels(columns.labels), columns.weights(queries)[1]
    return lambda scores: float(metric(labels, scores, qid=queries, weights=weights))
