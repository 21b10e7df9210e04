"""From checked labels and features to an objective: what the linear estimators share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from concordant._segments import segment_reduce, segment_sum
from concordant.exceptions import NonFiniteError, ParameterError, UnknownNameError
from concordant.rankers.claim import Claim
from concordant.rankers.optimality import Sample
from concordant.scorers.spread import ROUNDING, squares_within
from concordant.solvers import LinearObjective, Objective, Solution, bundle, lbfgs, newton, sgd
from concordant.solvers.checkpoint import digest
from concordant.supervision.columns import check_lengths, check_nonnegative
from concordant.supervision.queries import Queries
from concordant.supervision.weights import agreed_weights
from concordant.surrogates import Surrogate
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = [
    "SOLVERS",
    "Problem",
    "Setting",
    "check_squares",
    "compiled",
    "feature_scale",
    "label_weights",
    "n_informative",
    "query_shares",
    "query_weights",
    "row_weights",
    "seen",
    "solver_for",
    "spread_of",
]

SOLVERS: dict[str, Callable[..., Solution]] = {"lbfgs": lbfgs, "newton": newton, "sgd": sgd, "bundle": bundle}


@dataclass(frozen=True, eq=False)
class Problem:
    """A loss on labels, the features, and their scale; the penalty is still open.

    Attributes
    ----------
    surrogate, claim
        What is minimised, and what is known of that.
    labels, weights, queries
        What the surrogate is told, and what the row weighs, by sorted row; and the queries of these.
    X, scale
        The features of the sorted rows, and their spread.
    objective
        Gives what is minimised at a penalty.
    sample, n_informative
        What certificates say of the data; and queries that count and whose labels differ.
    """

    surrogate: Surrogate
    claim: Claim
    labels: FloatArray
    weights: FloatArray
    queries: Queries
    X: Any
    scale: FloatArray
    objective: Callable[[float], Objective]
    sample: Sample
    n_informative: int

    @property
    def digest(self) -> str:
        """Of everything that the weights depend on, but for the penalty and the solver."""
        X = self.X if hasattr(self.X, "indptr") else np.asarray(self.X)
        return digest(X, self.labels, self.weights, self.queries.offsets, self.scale)


class Setting(NamedTuple):
    """Features of the sorted rows, their spread, and what gives the objective at a penalty."""

    X: Any
    scale: FloatArray
    objective: Callable[[float], Objective]


def compiled(
    surrogate: Surrogate,
    labels: FloatArray,
    X: Any,
    queries: Queries,
    shares: FloatArray,
    weights: FloatArray,
    *,
    fit_scale: bool,
) -> Setting:
    """Sort and measure the features, and bind the loss: all that follows is done by compiled kernels."""
    ordered, offsets = queries.gather(X), queries.offsets
    scale = feature_scale(ordered, offsets, shares) if fit_scale else np.ones(ordered.shape[1])
    loss = surrogate.bind(labels, offsets, weights)
    return Setting(ordered, scale, lambda alpha: LinearObjective(loss, ordered, alpha, scale))


def solver_for(name: str, surrogate: Surrogate, alpha: float) -> Callable[..., Solution]:
    """Give a solver by its name, if it can minimise this surrogate at this penalty."""
    if not isinstance(name, str) or name not in SOLVERS:
        raise UnknownNameError("solver", name, SOLVERS)
    if name == "newton" and not surrogate.smooth:
        fitting = f"'bundle', 'lbfgs' or 'sgd' for {surrogate}: it has corners, and newton reads curvature"
        raise ParameterError("solver", name, fitting)
    if name == "bundle" and alpha == 0:
        raise ParameterError("alpha", alpha, "> 0 for 'bundle': without a penalty there is no duality gap")
    return SOLVERS[name]


def query_weights(query_weight: ArrayLike, queries: Queries) -> FloatArray:
    """Give one weight per query from one per row; rows of a query must agree, and not all be 0."""
    if query_weight is None:
        return (queries.sizes > 0).astype(np.float64)
    given = check_nonnegative(query_weight, "query_weight", "row")
    check_lengths("X", queries.n_rows, query_weight=given)
    lowest = agreed_weights(given, queries)
    if not lowest.any():
        raise ParameterError("query_weight", "all zero", "positive for at least one query")
    return lowest


def row_weights(
    sample_weight: ArrayLike, query_weight: ArrayLike, queries: Queries
) -> tuple[FloatArray, FloatArray]:
    """Give the share of each query in the mean, and the weight of each sorted row in it."""
    shares = query_shares(query_weight, queries)
    rows = np.repeat(shares, queries.sizes)
    return shares, rows if sample_weight is None else rows * label_weights(sample_weight, queries)


def query_shares(query_weight: ArrayLike, queries: Queries) -> FloatArray:
    """Give the share of each query in the mean."""
    per_query = query_weights(query_weight, queries)
    per_query = per_query / per_query.max(initial=0.0)  # so that huge and tiny ones can be added
    shares: FloatArray = per_query / per_query.sum()
    return shares


def label_weights(sample_weight: ArrayLike, queries: Queries) -> FloatArray:
    """Give the weight of each sorted row's label."""
    if sample_weight is None:
        return np.ones(queries.n_rows)
    given = check_nonnegative(sample_weight, "sample_weight", "row")
    check_lengths("X", queries.n_rows, sample_weight=given)
    if not given.any():
        raise ParameterError("sample_weight", "all zero", "positive for at least one row")
    return queries.gather(given)


def n_informative(labels: FloatArray, offsets: IntArray, shares: FloatArray) -> int:
    """Count the queries from which something is learned."""
    lowest, highest = (segment_reduce(end, labels, offsets) for end in (np.minimum, np.maximum))
    return int(((lowest < highest) & (shares > 0.0)).sum())


def seen(
    claim: Claim, queries: Queries, targets: FloatArray | None, shares: FloatArray, *, weighted: bool
) -> Sample:
    """Give what certificates say of the data; targets by sorted row, where the loss is told any."""
    mass = None if targets is None else float(shares @ segment_sum(targets, queries.offsets))
    longest = int(queries.sizes.max(initial=0))
    return Sample(claim.space, queries.n_queries, longest, mass, weighted)


def feature_scale(X: Any, offsets: IntArray, shares: FloatArray) -> FloatArray:
    """Root mean square of each feature's distance from its query's mean; 1 where there is none.

    Queries count by their shares, so that a weight of 2 is a query that stands there twice.
    """
    return spread_of(*squares_within(X, offsets, shares), float(shares @ np.diff(offsets)))


def spread_of(inside: FloatArray, whole: FloatArray, n_rows: float) -> FloatArray:
    """Root mean square of what sums of squares are of; 1 where those within queries are rounding."""
    return np.where(inside > ROUNDING**2 * whole, np.sqrt(inside / n_rows), 1.0)


def check_squares(X: Any, scale: FloatArray) -> None:
    """Refuse features whose squares leave the doubles; X is read only where the scale does not tell."""
    if (np.isfinite(scale) & (scale != 1.0)).all() or not X.shape[0]:
        return
    lowest, highest = (getattr(X, end)(axis=0) for end in ("min", "max"))
    largest = np.maximum(-dense(lowest), dense(highest)).astype(np.float64)
    if not (sound := largest < np.sqrt(np.finfo(np.float64).max / X.shape[0])).all():
        where = f"feature {int(np.argmin(sound))}"
        raise NonFiniteError("the sum of squares", np.inf, where, 1, "rescale X.")


def dense(row: Any) -> FloatArray:
    """One row, which may be compressed, as an array."""
    found: FloatArray = np.ravel(row.toarray() if hasattr(row, "toarray") else row)
    return found
