"""Base classes of rankers: checks of their data, scoring, and linear models."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, Self, TypeVar

import numpy as np

from concordant._base.light_sklearn import BaseEstimator, check_is_fitted, validate_data
from concordant._base.validate import feature_labels, refuse_misaligned
from concordant._base.warn import warn_caller
from concordant.data.check import (
    check_features,
    column_labels,
    naming_features,
    on_host,
    plain_features,
    refuse_non_finite,
    refuse_parts,
)
from concordant.data.queries import Queries, naming_query
from concordant.decoders.sorting import positions
from concordant.exceptions import LabelError, NoRiskBoundError, ShapeError
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.rankers.fitted_certificate import Descent, FittedCertificate, Optimality, Sample
from concordant.rankers.folds import FitRows
from concordant.rankers.foreign_names import invalid_parameter, unexpected_argument
from concordant.rankers.guarantee import Guarantee
from concordant.rankers.missing_qid import warn_at_fit, warn_at_use
from concordant.rankers.parts.linear_parts import PartitionedProblem
from concordant.rankers.training import Problem, query_weights
from concordant.solvers import Solution
from concordant.solvers.linear_scores import LinearScorer
from concordant.surrogates import Surrogate
from concordant.types import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from concordant.theory.bounds.empirical import EmpiricalBound

# Of scikit-learn's `validate_data`: that features are finite is checked by us, which names row and column.
ARRAY_RULES: Any = {"dtype": [np.float64, np.float32], "order": "C", "ensure_all_finite": False}
FAR = 1e-3  # warn if no step lowers the objective, and its excess is above this share of it


@dataclass(frozen=True, eq=False)
class PairExplanation:
    """Why an item scores above another: each feature's share of the difference, largest first.

    Attributes
    ----------
    features
        Names; if the ranker was fitted without names, columns of X from 0 and features of LETOR text from 1,
        as in "column 0 (LETOR 1)". Reports use the same names.
    contributions
        coef * (a - b) of each feature; they add up to `difference`.
    difference
        Score of a minus score of b.
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


P = ParamSpec("P")
R = TypeVar("R")


def explain_unknown_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that its error for an unknown keyword names the keyword's equivalent."""
    parameters = inspect.signature(function).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return function
    allowed = tuple(parameters)

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in allowed:
                raise unexpected_argument(function.__name__, name, allowed, args[0] if args else None)
        return function(*args, **kwargs)

    return checked


class Ranker(BaseEstimator):  # type: ignore[misc]
    """Base class of all rankers: checks of the data, and `score`; subclasses rank."""

    metric: Any
    fit_scale: bool
    surrogate_: Surrogate
    _summary: tuple[Guarantee, Sample, Callable[[], Optimality | Descent]]
    _no_risk_bound = "no risk bound is known for this loss"

    # qid and the weights are routed to fit and score, unless a caller requests otherwise.
    __metadata_request__fit: ClassVar = {"qid": True, "sample_weight": True, "query_weight": True}
    __metadata_request__score: ClassVar = {"qid": True, "sample_weight": True, "query_weight": True}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("__init__", "fit", "rank"):
            if inspect.isfunction(vars(cls).get(name)):
                setattr(cls, name, explain_unknown_arguments(vars(cls)[name]))

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as in scikit-learn; `step__name` is a parameter of a step."""
        allowed = self._get_param_names()
        for name in params:
            if name not in allowed and "__" not in name:
                raise invalid_parameter(self, name)
        super().set_params(**params)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags

    def checked_features(self, X: ArrayLike, *, reset: bool) -> Any:
        """Return features as float32 or float64, dense or compressed rows."""
        with naming_features():
            features = validate_data(self, plain_features(X), reset=reset, accept_sparse="csr", **ARRAY_RULES)
        refuse_non_finite(features, "X", column_labels(self))
        return features

    def _checked_rows(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike,
        sample_weight: ArrayLike,
        query_weight: ArrayLike,
        *,
        reset: bool = True,
    ) -> FitRows:
        """Check all arguments of `fit`; the queries may be in any order."""
        self._check_columns(X, y, qid=qid, sample_weight=sample_weight, query_weight=query_weight)
        features = self.checked_features(X, reset=reset)
        return FitRows.from_columns(features, *map(on_host, (y, qid, sample_weight, query_weight)))

    def _check_columns(self, X: ArrayLike, y: ArrayLike, **others: ArrayLike) -> None:
        """Raise if there are no labels, in scikit-learn's words, or if frames are ordered differently."""
        if y is None:
            refuse_parts(X, "X")
            name = type(self).__name__
            problem = f"This {name} estimator requires y to be passed, but the target y is None"
            raise LabelError(problem, "give one label per row of X.")
        refuse_misaligned(X=X, y=y, **others)

    def _warn_of_rows(self, y: ArrayLike, qid: ArrayLike) -> None:
        """Warn of labels of which all, or none, are relevant, and of rows without query ids."""
        if y is None:  # a scan, which has ids
            return
        labels = on_host(y)
        read_metric(self.metric).warn_of_labels(labels)
        if qid is None:
            warn_at_fit(labels)

    @explain_unknown_arguments
    def score(
        self,
        X: ArrayLike,
        y: ArrayLike = None,
        *,
        qid: ArrayLike = None,
        sample_weight: ArrayLike = None,
        query_weight: ArrayLike = None,
    ) -> float:
        """Mean of the metric over queries; losses are negated, so that higher is better.

        Parameters
        ----------
        X, y, qid, query_weight
            As for `fit`, but in memory: `concordant.evaluate` reads scans and collections, too.
        sample_weight
            Not used: a metric averages over queries. It is a parameter because scikit-learn's
            `Pipeline.score` always passes it to its last step.
        """
        del sample_weight
        self._check_columns(X, y, qid=qid, query_weight=query_weight)
        scores = self.scores_to_rank(X, qid)
        warn_at_use(self, "score(X, y, qid=qid)", len(scores), qid)
        metric, labels = self._score_metric(), on_host(y)
        if qid is not None and Queries.for_rows(qid, len(scores), "X").n_queries > 1:  # one query may be so
            metric.warn_of_labels(labels)
        return mean_score(metric, labels, scores, qid, query_weight)

    def _score_metric(self) -> Metric:
        return read_metric(self.metric)

    @cached_property
    def certificate_(self) -> FittedCertificate:
        """What is guaranteed, under which condition, and how well it was fitted; `print` it."""
        check_is_fitted(self, "_summary")
        guarantee, sample, assess = self._summary
        return FittedCertificate(guarantee, sample, assess())

    @property
    def basis_(self) -> str:
        """The condition that the guarantee rests on; "nothing" if there is none."""
        return self.certificate_.condition

    def _summarize_fit(self, problem: Any, assess: Callable[[], Optimality | Descent]) -> None:
        """Keep a summary of the solved problem; `certificate_` is assembled from it when first read."""
        self.__dict__.pop("certificate_", None)
        self.surrogate_, self._summary = problem.surrogate, (problem.claim, problem.sample, assess)
        self.n_queries_, self.n_informative_ = problem.sample.n_queries, problem.n_informative

    def risk_bound(self, X: ArrayLike, y: ArrayLike, *, qid: ArrayLike = None) -> EmpiricalBound:
        """Bound the risk on new queries by the loss on these: for linear rankers only.

        Raises
        ------
        NoRiskBoundError
            For trees, networks and pairs: no bound is known.
        """
        del X, y, qid
        check_is_fitted(self)
        raise NoRiskBoundError(self._no_risk_bound)

    def scores_to_rank(self, X: ArrayLike, qid: ArrayLike) -> FloatArray:
        """Return a score per row, such that sorting each query by score gives the ranking."""
        raise NotImplementedError


class LinearModel(Ranker):
    """Linear model: scores X @ coef_, ranks, and explanations of pairs."""

    solver: str
    device: Any
    coef_: FloatArray
    scale_: FloatArray
    _penalty_is_fixed: ClassVar[bool] = True  # False if the data choose it

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.device is None
        return tags

    def adopt(self, solution: Solution, problem: Problem | PartitionedProblem, alpha: float) -> Self:
        """Store the solution, and warn if it falls short."""
        certified = problem.surrogate.smooth or self.solver == "bundle"
        self._summarize_fit(problem, partial(Optimality.from_solution, solution, alpha, certified=certified))
        self.solution_, self.n_iter_ = solution, solution.n_iter
        self.scale_, self.coef_ = problem.scale, solution.w / problem.scale
        if problem.n_informative and solution.converged and not solution.w.any():
            near = f"within {solution.excess:.1e} of the optimum of this loss and penalty"
            warn_caller(
                f"All weights are 0, which is {near}. Lower alpha or tol, or choose another surrogate."
            )
        warn_of_shortfall("" if problem.n_informative else "labels that differ", shortfall(solution))
        return self

    def risk_bound(self, X: ArrayLike, y: ArrayLike, *, qid: ArrayLike = None) -> EmpiricalBound:
        """Bound the risk on new queries by the loss on these: those of `fit`, or others of the same kind.

        Hinge losses bound the loss of the ranking by the metric, other losses bound themselves. The bound
        holds with probability 0.95 over independent queries, and is often vacuous: see its `vacuous`. It
        takes about as long as a few gradients.

        Parameters
        ----------
        X, y, qid
            As for `fit`, in memory. Every query counts alike, whatever its weight was in `fit`.

        Raises
        ------
        NoRiskBoundError
            If no bound is known for the loss or the metric, or if the weights break its assumptions.

        Examples
        --------
        >>> from concordant import LinearRanker, synthetic
        >>> toy = synthetic.grades(n_queries=200, n_items=10, seed=0)
        >>> model = LinearRanker("ndcg@5").fit(toy.X, toy.y, qid=toy.qid)
        >>> bound = model.risk_bound(toy.X, toy.y, qid=toy.qid)
        >>> bound.bounds, bound.measured < bound.value, bound.vacuous
        ('softmax loss', True, True)
        """
        from concordant.rankers.risk_bound import bound_risk

        check_is_fitted(self, "coef_")
        refuse_parts(X, "X")
        self._check_columns(X, y, qid=qid)
        warn_at_use(self, "risk_bound(X, y, qid=qid)", len(on_host(y)), qid)
        certificate = self.certificate_
        # Weights of labels change the loss at scores 0, by which the penalty bounds the weights.
        unscaled = bool((self.scale_ == 1.0).all())
        promised = self._penalty_is_fixed and unscaled and not certificate.sample.weighted
        alpha = getattr(certificate.optimality, "alpha", 0.0) if promised else 0.0
        return bound_risk(self, X, y, qid, alpha)

    def predict(self, X: ArrayLike) -> FloatArray:
        """Compute the score of each row; higher is better. Equal rows have equal scores."""
        check_is_fitted(self, "coef_")
        return LinearScorer(self.checked_features(X, reset=False)).all_scores(self.coef_)

    def scores_to_rank(self, X: ArrayLike, qid: ArrayLike) -> FloatArray:
        """Return the scores, whatever the queries."""
        del qid
        return self.predict(X)

    def rank(self, X: ArrayLike, *, qid: ArrayLike = None) -> IntArray:
        """Return the rank of each row in its query, 1 for the best; equal scores keep their order."""
        refuse_misaligned(X=X, qid=qid)
        return query_ranks(self, self.predict(X), qid)

    def explain_pair(self, a: ArrayLike, b: ArrayLike) -> PairExplanation:
        """Compute each feature's contribution to the score of `a` minus the score of `b`.

        Parameters
        ----------
        a, b
            Features of an item: a number per feature, or a single row of a frame or matrix.
        """
        check_is_fitted(self, "coef_")
        left, right = (self.item_features(item, name) for item, name in ((a, "a"), (b, "b")))
        refuse_misaligned(a=a, b=b)
        shares = self.coef_ * (left - right)
        names = getattr(self, "feature_names_in_", feature_labels(len(shares)))
        order = np.argsort(-np.abs(shares), kind="stable")
        return PairExplanation([str(names[i]) for i in order], shares[order], float(shares.sum()))

    def item_features(self, item: ArrayLike, name: str) -> FloatArray:
        """Read the features of an item; if they have names, compare these with the names of `fit`."""
        row = np.asarray(item) if isinstance(item, (list, tuple)) else item
        if np.ndim(row) == 1:
            if hasattr(row, "to_frame") and all(isinstance(key, str) for key in getattr(row, "index", [0])):
                row = row.to_frame().T  # a row of a pandas frame
            else:
                row = (row.toarray() if hasattr(row, "toarray") else np.asarray(row))[None, :]
        if np.shape(row) != (1, len(self.coef_)):
            raise ShapeError(name, np.shape(row), f"one item, of {len(self.coef_)} features")
        if hasattr(row, "columns"):
            features = self.checked_features(row, reset=False)
        else:
            features = check_features(plain_features(row, name), name, column_labels(self))
        dense = features.toarray() if hasattr(features, "toarray") else features
        return np.asarray(dense[0], dtype=np.float64)


def query_ranks(ranker: Ranker, scores: FloatArray, qid: ArrayLike) -> IntArray:
    """Return the rank of each row in its query; errors name rows of X."""
    warn_at_use(ranker, "rank(X, qid=qid)", len(scores), qid)
    return positions(scores, qid=Queries.for_rows(qid, len(scores), "X"))


@contextmanager
def unchanged_by_errors(ranker: Any) -> Iterator[None]:
    """Restore a ranker's attributes if an error is raised."""
    before = dict(vars(ranker))
    try:
        yield
    except BaseException:
        vars(ranker).clear()
        vars(ranker).update(before)
        raise


def warn_of_shortfall(lacking: str, inexact: str) -> None:
    """Warn of labels that no query has, and of an inexact solution."""
    from sklearn.exceptions import ConvergenceWarning

    if lacking:
        warn_caller(f"Nothing was learned, because no query has {lacking}.")
    if inexact:
        warn_caller(inexact, ConvergenceWarning)


def shortfall(solution: Solution) -> str:
    """Describe how a solver stopped short; empty if it converged."""
    done = f"Training was stopped by {solution.stopped_by} after {solution.n_iter} iterations"
    text = f"{done}, and the objective may be {solution.excess:.1e} above its optimum."
    if solution.stopped_by == "max_iter":
        return f"{text} Raise max_iter or tol."
    if solution.stopped_by == "interrupt":
        return f"{text} The model keeps the best weights so far."
    stuck = solution.stopped_by == "precision" and not solution.excess <= FAR * abs(solution.value)
    return f"{text} No step lowers it further. Raise alpha, or choose a smooth surrogate." if stuck else ""


def mean_score(
    metric: Metric, y: ArrayLike, scores: FloatArray, qid: ArrayLike, query_weight: ArrayLike = None
) -> float:
    """Mean of the metric over queries; losses are negated, so that higher is better."""
    y, qid, query_weight = map(on_host, (y, qid, query_weight))
    queries = Queries.for_rows(qid, len(scores), "X")
    weights = None if query_weight is None else query_weights(query_weight, queries)
    with naming_query(qid):
        value = float(metric(y, scores, qid=queries, weights=weights))
    return value if metric.greater_is_better else -value
