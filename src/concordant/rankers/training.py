"""From checked labels and features to an objective: what the linear estimators share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from concordant._segments import segment_reduce
from concordant.exceptions import LabelError, ParameterError, UnknownNameError
from concordant.solvers import LinearObjective, Solution, lbfgs, newton, sgd
from concordant.supervision.columns import check_lengths, check_nonnegative
from concordant.supervision.queries import Queries
from concordant.surrogates import Surrogate
from concordant.surrogates.surrogate import Loss
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["SOLVERS", "Problem", "feature_scale", "query_weights", "row_weights", "solver_named"]

SOLVERS: dict[str, Callable[..., Solution]] = {"lbfgs": lbfgs, "newton": newton, "sgd": sgd}
SCALE_ROWS = 50_000  # rows centred at a time
ROUNDING = 1e-10  # a feature whose spread within queries is this small a share of its size is constant


@dataclass(frozen=True, eq=False)
class Problem:
    """A loss on labels, the features, and their scale; the penalty is still open."""

    loss: Loss
    X: Any
    scale: FloatArray
    n_informative: int

    @classmethod
    def of(
        cls,
        kind: Surrogate,
        labels: FloatArray,
        X: Any,
        queries: Queries,
        weights: FloatArray,
        *,
        scaled: bool,
    ) -> Problem:
        """Bind the surrogate; rows are sorted by query."""
        scale = feature_scale(X, queries.offsets) if scaled else np.ones(X.shape[1])
        loss = kind.bind(labels, queries.offsets, weights)
        lowest, highest = (segment_reduce(end, labels, queries.offsets) for end in (np.minimum, np.maximum))
        return cls(loss, X, scale, int((lowest < highest).sum()))

    def objective(self, alpha: float) -> LinearObjective:
        """Give the objective at this penalty."""
        return LinearObjective(self.loss, self.X, alpha, self.scale)


def solver_named(name: str) -> Callable[..., Solution]:
    """Give a solver by its name."""
    if name not in SOLVERS:
        raise UnknownNameError("solver", name, SOLVERS)
    return SOLVERS[name]


def query_weights(query_weight: ArrayLike, queries: Queries) -> FloatArray:
    """Give one weight per query from one per row; rows of a query must agree, and not all be 0."""
    if query_weight is None:
        return np.ones(queries.n_queries)
    given = check_nonnegative(query_weight, "query_weight", "row")
    check_lengths("X", queries.n_rows, query_weight=given)
    rows = queries.gather(given)
    lowest = segment_reduce(np.minimum, rows, queries.offsets)
    highest = segment_reduce(np.maximum, rows, queries.offsets)
    if (apart := np.flatnonzero(lowest != highest)).size:
        q = apart[0]
        problem = f"query_weight of query {queries.ids[q]!r} is both {lowest[q]:g} and {highest[q]:g}"
        raise LabelError(problem, "give all rows of a query the same query_weight; rows have sample_weight.")
    if not lowest.any():
        raise ParameterError("query_weight", "all zero", "positive for at least one query")
    return lowest


def row_weights(sample_weight: ArrayLike, query_weight: ArrayLike, queries: Queries) -> FloatArray:
    """Give the weight of each sorted row in the mean over queries."""
    per_query = query_weights(query_weight, queries)
    shares = np.repeat(per_query / per_query.sum(), queries.sizes)
    if sample_weight is None:
        return shares
    given = check_nonnegative(sample_weight, "sample_weight", "row")
    check_lengths("X", queries.n_rows, sample_weight=given)
    if not given.any():
        raise ParameterError("sample_weight", "all zero", "positive for at least one row")
    return shares * queries.gather(given)


def feature_scale(X: Any, offsets: IntArray) -> FloatArray:
    """Root mean square of each feature's distance from its query's mean; 1 where there is none."""
    squares, sizes = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    cuts = np.unique(np.searchsorted(offsets, np.arange(0, offsets[-1] + SCALE_ROWS, SCALE_ROWS)))
    edges = np.unique(np.r_[0, np.minimum(cuts, len(offsets) - 1)])
    for first, last in pairwise(edges.tolist()):
        part = X[offsets[first] : offsets[last]]
        inside, whole = squares_within(part, offsets[first : last + 1] - offsets[first])
        squares, sizes = squares + inside, sizes + whole
    varies = squares > ROUNDING**2 * sizes
    return np.where(varies, np.sqrt(squares / max(int(offsets[-1]), 1)), 1.0)


def squares_within(X: Any, offsets: IntArray) -> tuple[FloatArray, FloatArray]:
    """Sums of squares about the queries' means, and about 0."""
    if hasattr(X, "tocsr"):
        from scipy.sparse import csr_array

        owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        members = csr_array((np.ones(len(owners)), owners, np.arange(len(owners) + 1)))
        X = csr_array(X, dtype=np.float64)
        sums, whole = members.T @ X, np.asarray(X.multiply(X).sum(axis=0)).ravel()
        roots = sums.multiply(1.0 / np.sqrt(np.maximum(np.diff(offsets), 1))[:, None])
        return np.maximum(whole - np.asarray(roots.multiply(roots).sum(axis=0)).ravel(), 0.0), whole
    dense, filled = np.asarray(X, dtype=np.float64), np.diff(offsets) > 0
    means = np.add.reduceat(dense, offsets[:-1][filled], axis=0) / np.diff(offsets)[filled][:, None]
    off = dense - np.repeat(means, np.diff(offsets)[filled], axis=0)
    return np.einsum("ij,ij->j", off, off), np.einsum("ij,ij->j", dense, dense)
