"""What rankers share: the checks of their data, and what the linear ones do with their scores."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from concordant.decoders.sorting import positions
from concordant.exceptions import LabelError, ParameterError, ShapeError
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.rankers.certificate import FittedCertificate, Optimality
from concordant.rankers.partitioned.linear import PartedProblem
from concordant.rankers.risk import risk_bound
from concordant.rankers.training import Problem, query_weights
from concordant.scorers import LinearScorer
from concordant.solvers import Solution
from concordant.supervision.check import naming_features, plain_features, refuse_parts
from concordant.supervision.queries import Queries, naming_query
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = [
    "FAR",
    "LinearModel",
    "PairExplanation",
    "Ranker",
    "mean_score",
    "places",
    "unchanged_by_errors",
    "warn_of_shortfall",
]

FAR = 1e-3  # a share of the objective that is worth a warning where no step lowers it


@dataclass(frozen=True, eq=False)
class PairExplanation:
    """Why one item scores above another: each feature's share of the difference, largest first.

    Attributes
    ----------
    features
        Names, or numbers as text where the ranker was fitted without names.
    contributions
        coef * (a - b) of each feature; they add up to `difference`.
    difference
        Score of a less score of b.
    """

    features: list[str]
    contributions: FloatArray
    difference: float

    def __repr__(self) -> str:
        wide = max(map(len, self.features), default=0)
        verdict = "above" if self.difference > 0 else "below" if self.difference < 0 else "level with"
        lines = [f"a stands {verdict} b: score difference {self.difference:+.6g}"]
        shown = zip(self.features[:10], self.contributions[:10], strict=True)
        lines += [f"{name:<{wide}}  {share:+.6g}" for name, share in shown]
        rest = self.contributions[10:]
        return "\n".join(lines + ([f"{len(rest)} more: {rest.sum():+.6g}"] if rest.size else []))


class Ranker(BaseEstimator):  # type: ignore[misc]
    """What every ranker asks of its data, and how it is scored; a subclass ranks."""

    metric: Any
    fit_scale: bool

    # qid and the weights go wherever fit and score are called, unless a caller says otherwise.
    __metadata_request__fit: ClassVar = {"qid": True, "sample_weight": True, "query_weight": True}
    __metadata_request__score: ClassVar = {"qid": True, "sample_weight": True, "query_weight": True}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags

    def checked_features(self, X: ArrayLike, *, reset: bool) -> Any:
        """Features as float32 or float64, dense or compressed rows."""
        with naming_features():
            return validate_data(
                self,
                plain_features(X),
                reset=reset,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                order="C",
            )

    def refuse_no_labels(self, y: ArrayLike, X: ArrayLike = None) -> None:
        """Raise, in scikit-learn's words, where there are none; a scan, which has its own, where it is X."""
        if y is None:
            refuse_parts(X, "X")
            name = type(self).__name__
            problem = f"This {name} estimator requires y to be passed, but the target y is None"
            raise LabelError(problem, "give one label per row of X.")

    def check_flags(self, *names: str) -> None:
        """Refuse what is neither True nor False: a text would count as True."""
        for name in names:
            if not isinstance(value := getattr(self, name), (bool, np.bool_)):
                raise ParameterError(name, value, "True or False")

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike = None,
        *,
        qid: ArrayLike = None,
        sample_weight: ArrayLike = None,
        query_weight: ArrayLike = None,
    ) -> float:
        """Mean of the metric over queries; losses come negated, so that higher is better.

        Parameters
        ----------
        X, y, qid, query_weight
            As for `fit`, but in memory: `concordant.evaluate` judges on scans and collections, too.
        sample_weight
            Not used: a metric counts queries. It stands here because scikit-learn's `Pipeline.score` asks its
            last step for it, given or not.
        """
        del sample_weight
        self.refuse_no_labels(y, X)
        return mean_score(self.scored(), y, self.scores_to_rank(X, qid), qid, query_weight)

    def scored(self) -> Metric:
        """What `score` is the mean of."""
        return read_metric(self.metric)

    def scores_to_rank(self, X: ArrayLike, qid: ArrayLike) -> FloatArray:
        """One score per row, such that sorting each query by them gives the ranking."""
        raise NotImplementedError


class LinearModel(Ranker):
    """Scores X @ coef_, and what follows from them."""

    solver: str
    coef_: FloatArray

    def adopt(
        self, solution: Solution, problem: Problem | PartedProblem, alpha: float, *, fixed: bool
    ) -> Self:
        """Take the solution over; say where it falls short. Called by `fit`, whose caller is warned.

        `fixed`: the penalty was, before the data were seen.
        """
        self.surrogate_, self.basis_ = problem.surrogate, problem.claim.condition
        self.n_queries_, self.n_informative_ = problem.sample.n_queries, problem.n_informative
        self.solution_, self.n_iter_ = solution, solution.n_iter
        self.scale_, self.coef_ = problem.scale, solution.w / problem.scale
        # Weights of labels change what the loss is at scores 0, by which the penalty bounds the weights.
        promised = fixed and alpha > 0.0 and not self.fit_scale and not problem.sample.weighted
        bound = risk_bound(problem, self.coef_, alpha if promised else None)
        certified = problem.surrogate.smooth or self.solver == "bundle"
        optimality = Optimality.of(solution, alpha, certified=certified)
        self.certificate_ = FittedCertificate(problem.claim, problem.sample, optimality, *bound)
        if problem.n_informative and solution.converged and not solution.w.any():
            near = f"within {solution.excess:.1e} of the optimum of this loss and penalty"
            text = f"every weight is 0, which is {near}: lower alpha or tol, or change the loss"
            warnings.warn(text, UserWarning, stacklevel=3)
        warn_of_shortfall("" if problem.n_informative else "labels that differ", shortfall(solution))
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Give the score of each row; high is better. Equal rows have equal scores."""
        check_is_fitted(self, "coef_")
        return LinearScorer(self.checked_features(X, reset=False)).all_scores(self.coef_)

    def scores_to_rank(self, X: ArrayLike, qid: ArrayLike) -> FloatArray:
        """The scores, whatever the queries."""
        del qid
        return self.predict(X)

    def rank(self, X: ArrayLike, *, qid: ArrayLike = None) -> IntArray:
        """Give the place of each row in its query, 1 the best; equal scores keep their order."""
        return places(self.predict(X), qid)

    def explain_pair(self, a: ArrayLike, b: ArrayLike) -> PairExplanation:
        """Give each feature's contribution to the score of `a` less that of `b`.

        Parameters
        ----------
        a, b
            Features of one item each: one number per feature, or one row of a frame or matrix.
        """
        check_is_fitted(self, "coef_")
        left, right = (self.one_row(item, name) for item, name in ((a, "a"), (b, "b")))
        shares = self.coef_ * (left - right)
        names = getattr(self, "feature_names_in_", np.arange(len(shares)).astype(str))
        order = np.argsort(-np.abs(shares), kind="stable")
        return PairExplanation([str(name) for name in names[order]], shares[order], float(shares.sum()))

    def one_row(self, item: ArrayLike, name: str) -> FloatArray:
        """Features of one item; where they have names, these are compared with the ones of `fit`."""
        row = np.asarray(item) if isinstance(item, (list, tuple)) else item
        if np.ndim(row) == 1:
            if hasattr(row, "to_frame") and all(isinstance(key, str) for key in getattr(row, "index", [0])):
                row = row.to_frame().T  # a row of a pandas frame
            else:
                row = (row.toarray() if hasattr(row, "toarray") else np.asarray(row))[None, :]
        if np.shape(row) != (1, len(self.coef_)):
            raise ShapeError(name, np.shape(row), f"one item, of {len(self.coef_)} features")
        known = hasattr(row, "columns") or not hasattr(self, "feature_names_in_")
        features = self.checked_features(row, reset=False) if known else check_array(row, accept_sparse=True)
        dense = features.toarray() if hasattr(features, "toarray") else features
        return np.asarray(dense[0], dtype=np.float64)


def places(scores: FloatArray, qid: ArrayLike) -> IntArray:
    """Place of each row in its query; errors speak of the rows of X."""
    return positions(scores, qid=Queries.of(qid, len(scores), "X"))


@contextmanager
def unchanged_by_errors(ranker: Any) -> Iterator[None]:
    """Leave a ranker as it was, where something is raised."""
    before = dict(vars(ranker))
    try:
        yield
    except BaseException:
        vars(ranker).clear()
        vars(ranker).update(before)
        raise


def warn_of_shortfall(lacking: str, inexact: str) -> None:
    """Warn of labels that no query has, and of an inexact solution; for `adopt`, which `fit` calls last."""
    from sklearn.exceptions import ConvergenceWarning

    if lacking:
        warnings.warn(f"no query has {lacking}: nothing was learned", UserWarning, stacklevel=4)
    if inexact:
        warnings.warn(inexact, ConvergenceWarning, stacklevel=4)


def shortfall(solution: Solution) -> str:
    """Say how a solver stopped short; empty where it did not."""
    done = f"stopped by {solution.stopped_by} after {solution.n_iter} iterations"
    text = f"{done}: the objective may be {solution.excess:.1e} above its optimum"
    if solution.stopped_by == "max_iter":
        return f"{text}; raise max_iter or tol"
    if solution.stopped_by == "interrupt":
        return f"{text}; these are the best weights so far"
    stuck = solution.stopped_by == "precision" and not solution.excess <= FAR * abs(solution.value)
    return f"{text}, yet no step lowers it; is alpha too small, or has the loss corners?" if stuck else ""


def mean_score(
    metric: Metric, y: ArrayLike, scores: FloatArray, qid: ArrayLike, query_weight: ArrayLike = None
) -> float:
    """Mean of the metric over queries; losses negated, so that higher is better."""
    from concordant.rankers.devices.losses import on_host  # which reads rankers, too

    y, qid, query_weight = map(on_host, (y, qid, query_weight))
    queries = Queries.of(qid, len(scores), "X")
    weights = None if query_weight is None else query_weights(query_weight, queries)
    with naming_query(qid):
        value = float(metric(y, scores, qid=queries, weights=weights))
    return value if metric.greater_is_better else -value
