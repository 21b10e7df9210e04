"""From checked labels and features to an objective, for the linear estimators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from concordant._base.segments import segment_reduce, segment_sum
from concordant._base.validate import all_zero_error, check_lengths, check_nonnegative
from concordant.data.check import to_query_weights, weight_kind
from concordant.data.queries import Queries
from concordant.exceptions import NonFiniteError, ParameterError, UnknownNameError
from concordant.rankers.fitted_certificate import Sample
from concordant.rankers.guarantee import Guarantee
from concordant.solvers import LinearObjective, Objective, Solution, bundle, lbfgs, newton, sgd
from concordant.solvers.checkpoint import digest
from concordant.solvers.linear_scores import ROUNDING, squares_within
from concordant.surrogates import Surrogate
from concordant.types import ArrayLike, FloatArray, IntArray

SOLVERS: dict[str, Callable[..., Solution]] = {"lbfgs": lbfgs, "newton": newton, "sgd": sgd, "bundle": bundle}


@dataclass(frozen=True, eq=False)
class Problem:
    """A loss on labels, the features, and their scale; the penalty is still open."""

    surrogate: Surrogate  # the loss that is minimised
    claim: Guarantee  # and its guarantee
    labels: FloatArray  # what the surrogate reads, by sorted row
    weights: FloatArray  # of the labels
    queries: Queries  # of the sorted rows
    X: Any  # features of the sorted rows
    scale: FloatArray  # spread of the features
    objective: Callable[[float], Objective]  # returns the objective at a penalty
    sample: Sample
    n_informative: int  # queries that count and whose labels differ

    @property
    def digest(self) -> str:
        """Hash of all data that the weights depend on, without the penalty and the solver."""
        X = self.X if hasattr(self.X, "indptr") else np.asarray(self.X)
        return digest(X, self.labels, self.weights, self.queries.offsets, self.scale)


class ObjectiveSetting(NamedTuple):
    """Features of the sorted rows, their spread, and a function that returns the objective at a penalty."""

    X: Any
    scale: FloatArray
    objective: Callable[[float], Objective]


def compile_objective(
    surrogate: Surrogate,
    labels: FloatArray,
    X: Any,
    queries: Queries,
    shares: FloatArray,
    weights: FloatArray,
    *,
    fit_scale: bool,
) -> ObjectiveSetting:
    """Sort and measure the features, and bind the loss: the rest is done by compiled kernels."""
    ordered, offsets = queries.gather(X), queries.offsets
    scale = feature_scale(ordered, offsets, shares) if fit_scale else np.ones(ordered.shape[1])
    loss = surrogate.bind(labels, offsets, weights)
    return ObjectiveSetting(ordered, scale, lambda alpha: LinearObjective(loss, ordered, alpha, scale))


def solver_for(name: str, surrogate: Surrogate, alpha: float) -> Callable[..., Solution]:
    """Return a solver by its name; raise if it cannot minimise this surrogate at this penalty."""
    if not isinstance(name, str) or name not in SOLVERS:
        raise UnknownNameError("solver", name, SOLVERS)
    if name == "newton" and not surrogate.smooth:
        raise ParameterError(
            "solver", name, f"'bundle', 'lbfgs' or 'sgd' for {surrogate}, which is not smooth"
        )
    if name == "bundle" and alpha == 0:
        raise ParameterError("alpha", alpha, "> 0 for solver='bundle'")
    return SOLVERS[name]


def query_weights(query_weight: ArrayLike, queries: Queries) -> FloatArray:
    """Reduce weights per row to one weight per query; rows of a query must agree, and not all be 0."""
    if query_weight is None:
        return (queries.sizes > 0).astype(np.float64)
    row_weights = check_nonnegative(query_weight, "query_weight", "row")
    check_lengths("X", queries.n_rows, query_weight=row_weights)
    lowest = to_query_weights(row_weights, queries)
    if not lowest.any():
        raise all_zero_error("query_weight", "query")
    return lowest


def row_weights(
    sample_weight: ArrayLike, query_weight: ArrayLike, queries: Queries
) -> tuple[FloatArray, FloatArray, str]:
    """Return shares of queries in the mean, weights of sorted rows in it, and what `sample_weight` weighs."""
    shares = query_shares(query_weight, queries)
    rows = np.repeat(shares, queries.sizes)
    if sample_weight is None:
        return shares, rows, ""
    label_factors = label_weights(sample_weight, queries)
    return shares, rows * label_factors, weight_kind(label_factors, queries.offsets)


def query_shares(query_weight: ArrayLike, queries: Queries) -> FloatArray:
    """Return the share of each query in the mean."""
    per_query = query_weights(query_weight, queries)
    per_query = per_query / per_query.max(initial=0.0)  # so that huge and tiny ones can be added
    shares: FloatArray = per_query / per_query.sum()
    return shares


def label_weights(sample_weight: ArrayLike, queries: Queries) -> FloatArray:
    """Return the weight of each sorted row's label."""
    if sample_weight is None:
        return np.ones(queries.n_rows)
    weights = check_nonnegative(sample_weight, "sample_weight", "row")
    check_lengths("X", queries.n_rows, sample_weight=weights)
    if not weights.any():
        raise all_zero_error("sample_weight", "row")
    return queries.gather(weights)


def n_informative(labels: FloatArray, offsets: IntArray, shares: FloatArray) -> int:
    """Count the queries with different labels and a positive share, from which something is learned."""
    lowest, highest = (segment_reduce(end, labels, offsets) for end in (np.minimum, np.maximum))
    return int(((lowest < highest) & (shares > 0.0)).sum())


def summarize_sample(
    guarantee: Guarantee, queries: Queries, targets: FloatArray | None, shares: FloatArray
) -> Sample:
    """Summarise the training data for certificates; targets by sorted row, if the loss reads any."""
    mass = None if targets is None else float(shares @ segment_sum(targets, queries.offsets))
    longest = int(queries.sizes.max(initial=0))
    return Sample(guarantee.space, queries.n_queries, longest, mass, guarantee.weighted)


def feature_scale(X: Any, offsets: IntArray, shares: FloatArray) -> FloatArray:
    """Root mean square of each feature's distance from its query's mean; 1 if that is rounding.

    Queries count by their shares, so that a weight of 2 acts like a duplicate query.
    """
    return spread_of(*squares_within(X, offsets, shares), float(shares @ np.diff(offsets)))


def spread_of(inside: FloatArray, whole: FloatArray, n_rows: float) -> FloatArray:
    """Root mean square of a feature within queries, from sums of squares; 1 if these are rounding."""
    return np.where(inside > ROUNDING**2 * whole, np.sqrt(inside / n_rows), 1.0)


def check_squares(X: Any, scale: FloatArray) -> None:
    """Raise if squares of features overflow; X is read only if the scale does not show it."""
    if (np.isfinite(scale) & (scale != 1.0)).all() or not X.shape[0]:
        return
    lowest, highest = (getattr(X, end)(axis=0) for end in ("min", "max"))
    largest = np.maximum(-_to_dense(lowest), _to_dense(highest)).astype(np.float64)
    if not (sound := largest < np.sqrt(np.finfo(np.float64).max / X.shape[0])).all():
        where = f"feature {int(np.argmin(sound))}"
        raise NonFiniteError("the sum of squares", np.inf, where, 1, "rescale X.")


def _to_dense(row: Any) -> FloatArray:
    return np.ravel(row.toarray() if hasattr(row, "toarray") else row)
