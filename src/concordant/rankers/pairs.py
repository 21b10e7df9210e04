"""PairRanker: scores of pairs of items, trained by the exact surrogates of AP and PD, decoded as a whole."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from concordant.decoders.decoded import Decoded
from concordant.exceptions import ParameterError, ShapeError, UnknownNameError
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.rankers.base import Ranker, shortfall
from concordant.rankers.certificate import CLAIMS, PairCertificate
from concordant.rankers.pair_training import PairProblem, Regression, pair_targets
from concordant.rankers.progress import counted
from concordant.rankers.training import label_weights, n_informative, query_shares
from concordant.scorers.pair_features import ANTISYMMETRIC, SYMMETRIC, PairFunction, pair_names
from concordant.scorers.pairs import Affine, PairScorer
from concordant.solvers.ridge import joined
from concordant.supervision.columns import check_lengths
from concordant.supervision.queries import Queries, naming_query
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["AUTO", "PairRanker"]

AUTO = {"ap": ("sum", "product", "absdiff"), "pd": ("difference", "signed_square", "context")}
GROUPS = {"ap": SYMMETRIC, "pd": ANTISYMMETRIC}


class PairRanker(Ranker):
    """Ranker that scores pairs of items, and finds the order that is best for all of them together.

    For AP and for PD no score of single items is optimal for every distribution of the labels; scores of
    pairs are. u_ij = w . phi(x_i, x_j) is fitted by least squares to the pair labels whose expectation
    decides which order is best, and the order is then searched for ("decoded"), query by query. There is no
    `predict`: single rows have no score.

    Minimises the mean over queries of the mean over the query's pairs of (u_ij - target)^2, plus alpha/2
    times the squared length of w, exactly. Any weight of a query would do: it does not change what is best
    for that query.

    Parameters
    ----------
    metric
        "ap": u_ij, symmetric, is to be E[y_i y_j / sum(y)]. The diagonal, E[y_i / sum(y)], is another
        function of the items and has weights of its own: on the features, their squares and an intercept.
        "pd": u_ij = -u_ji is to be E[a_ij - a_ji], where a_ij is the weight of "i preferred to j", or
        1(y_i > y_j) of grades; a pair that nobody compared has the label 0.
    alpha
        Penalty, >= 0.
    features
        Of pairs: groups of the table below, or "auto"; or a function phi(left, right) of the features of two
        items, one row per pair, which gives one row of numbers per pair, the same (ap) or the negative (pd)
        with the items exchanged.

        - ap: "sum" x_i + x_j, "product" x_i x_j, "absdiff" abs(x_i - x_j), feature by feature; "context" the
          query's means (its level, of pairs and items, moves no item but frees the other weights of it);
          "cross" x_ia x_jb + x_ib x_ja for any two features a, b: with "product" the full bilinear form.
          "auto" is the first three.
        - pd: "difference" x_i - x_j, the only group that cannot express a cycle; "signed_square"
          (x_i - x_j) abs(x_i - x_j); "context" (x_i - x_j) times the query's mean; "cross"
          x_ia x_jb - x_ib x_ja. "auto" is the first three.
    decoder
        "auto": the best order, proven where that can be done (see `decoders.average_precision` and
        `decoders.feedback_arc`). Faster, and optimal only under a condition: "diagonal" (ap),
        "edge-deletion" and "borda" (pd). Without a guarantee: "beam" (ap), "insertion" (pd).
    fit_scale
        Penalise the weights of pair features divided by their spread; `coef_` is for features as they are.
    time_limit
        Seconds that "auto" may take for a query of pd.
    verbose
        1 shows a progress bar on standard error, over blocks of pairs and over decoded queries.

    Attributes
    ----------
    coef_, intercept_
        Weight of each pair feature; pd has no intercept: it is 0.
    diagonal_coef_, diagonal_intercept_
        Of ap: weights of the features of an item, their squares, and with "context" the query's means. Of
        pd: none, and 0.
    pair_features_
        Names of the pair features.
    groups_, symmetric_
        The groups, or the function; and whether u_ij = u_ji (ap) or -u_ji (pd).
    certificate_, basis_
        What is guaranteed, under which condition; and the condition.
    solution_
        How far the fit is from optimal.
    scale_
        Spread of each pair feature (1 without `fit_scale`).
    n_queries_, n_informative_
        Queries, and those whose labels differ, from which something is learned.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The surrogate of PD may have one score per ordered pair, sum over i != j of (u_ij - a_ij)^2. With
    s = u_ij + u_ji and v = u_ij - u_ji, the two terms of a pair are half of
    (s - a_ij - a_ji)^2 + (v - a_ij + a_ji)^2: two regressions. An order pays u_ij or u_ji, that is s/2 + v/2
    or s/2 - v/2, so that s changes nothing. Only v is fitted, and it is antisymmetric.

    Pairs are many: a query of n items has n (n - 1) / 2, and time grows with their number times the square
    of the number of pair features. They are made a block at a time (1 MiB of pair features or, where that is
    more, one pair per feature), never all together.

    References
    ----------
    Ramaswamy, Agarwal and Tewari (2013), Convex calibrated surrogates for low-rank loss matrices with
    applications to subset ranking losses.

    Examples
    --------
    >>> from concordant import synthetic
    >>> votes = synthetic.preferences(n_queries=100, n_items=6, seed=0)
    >>> model = PairRanker("pd").fit(votes.X, votes.y, qid=votes.qid)
    >>> model.basis_, model.predict_pairs(votes.X[:6])[0].shape
    ('every distribution', (6, 6))
    >>> sorted(model.rank(votes.X[:6]).tolist())
    [1, 2, 3, 4, 5, 6]
    """

    coef_: FloatArray

    def __init__(
        self,
        metric: Any = "ap",
        alpha: float = 0.1,
        *,
        features: Any = "auto",
        decoder: str = "auto",
        fit_scale: bool = True,
        time_limit: float = 60.0,
        verbose: int = 0,
    ) -> None:
        self.metric = metric
        self.alpha = alpha
        self.features = features
        self.decoder = decoder
        self.fit_scale = fit_scale
        self.time_limit = time_limit
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        qid: ArrayLike = None,
        sample_weight: ArrayLike = None,
        query_weight: ArrayLike = None,
    ) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X
            Features, one row per item: numpy, pandas, polars, pyarrow or scipy sparse; float32 too.
        y
            One grade >= 0 per row; or `Preferences` (pd).
        qid
            Query ids in any order, or a `Queries`; None: all rows are one query.
        sample_weight
            One number >= 0 per row: how much the row's label counts. A pair counts by the product of its
            rows' numbers.
        query_weight
            One number >= 0 per row, the same for all rows of a query: how much the query counts.
        """
        metric, groups = self.checked_parameters()
        self.refuse_no_labels(y)
        features = self.checked_features(X, reset=True)
        queries = Queries.of(qid, features.shape[0], "X")
        with naming_query(qid):
            labels = metric.read_labels(y)
            check_lengths("X", queries.n_rows, y=labels)
            targets = pair_targets(metric, labels, queries)
        shares, weights = query_shares(query_weight, queries), label_weights(sample_weight, queries)
        scorer = PairScorer(queries.gather(features), queries.offsets, groups, symmetric=metric.name == "ap")
        fitted = self.fitted(PairProblem(scorer, targets, shares, weights))
        self.n_queries_ = queries.n_queries
        self.n_informative_ = n_informative(targets.levels, queries.offsets, shares)
        return self.adopt(metric, scorer, *fitted)

    def checked_parameters(self) -> tuple[Metric, tuple[str, ...] | PairFunction]:
        """Refuse parameters out of range, before any work; the metric, and the groups of features."""
        for name in ("alpha", "time_limit"):
            value = getattr(self, name)
            if not (isinstance(value, Real) and 0.0 <= float(value) < math.inf):
                raise ParameterError(name, value, "a finite number >= 0")
        metric = read_metric(self.metric)
        if metric.name not in CLAIMS or getattr(metric, "k", None) is not None:
            raise ParameterError("metric", str(metric), "ap or pd, uncut; LinearRanker trains for the others")
        if not isinstance(self.decoder, str) or self.decoder not in CLAIMS[metric.name]:
            raise UnknownNameError(f"decoder of {metric.name}", self.decoder, CLAIMS[metric.name])
        return metric, chosen_groups(self.features, metric.name)

    def fitted(self, problem: PairProblem) -> tuple[Regression, Regression | None]:
        """Solve for the pairs and, of symmetric scores, for the diagonal."""
        alpha, fit_scale = float(self.alpha), bool(self.fit_scale)
        with counted(problem.n_blocks, self.verbose) as told:
            pairs = problem.pair_regression(alpha, told, fit_scale=fit_scale)
            if not problem.scorer.symmetric:
                return pairs, None
            return pairs, problem.item_regression(alpha, told, fit_scale=fit_scale)

    def adopt(self, metric: Metric, scorer: PairScorer, pairs: Regression, items: Regression | None) -> Self:
        """Take the weights over; say where they fall short. Called by `fit`, whose caller is warned."""
        from sklearn.exceptions import ConvergenceWarning

        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        own = [f"phi{j}" for j in range(scorer.width)]
        self.pair_features_ = own if scorer.own else pair_names(scorer.groups, names)
        self.groups_, self.symmetric_ = scorer.own or tuple(scorer.groups), scorer.symmetric
        self.coef_, self.intercept_, self.scale_ = pairs.coef, pairs.intercept, pairs.scale
        self.diagonal_coef_ = np.empty(0) if items is None else items.coef
        self.diagonal_intercept_ = 0.0 if items is None else items.intercept
        self.solution_ = pairs.solution if items is None else joined(items.solution, pairs.solution)
        self.certificate_ = PairCertificate.of(metric.name, str(metric), self.decoder, self.solution_.excess)
        self.basis_ = self.certificate_.condition
        if not self.n_informative_:
            warnings.warn("no query has labels that differ: nothing was learned", UserWarning, stacklevel=3)
        if text := shortfall(self.solution_):
            warnings.warn(text, ConvergenceWarning, stacklevel=3)
        return self

    def predict_pairs(self, X: ArrayLike, *, qid: ArrayLike = None) -> list[FloatArray]:
        """Give the pair scores u of each query, ids ascending; rows of a query as the caller gave them.

        ap: symmetric. pd: antisymmetric, u_ij > 0 where i is preferred to j.
        """
        return list(self.matrices(*self.ordered(X, qid)))

    def decode(self, X: ArrayLike, *, qid: ArrayLike = None) -> list[Decoded]:
        """Give the order of each query, ids ascending, and what is proven of it; items as in `predict_pairs`.

        `value` of ap is the expected AP, as far as the pair scores are right; of pd it is the part of the
        expected PD that the order decides: sum of the preferences u_ij > 0 that it violates.
        """
        return list(self.decoded(*self.ordered(X, qid)))

    def rank(self, X: ArrayLike, *, qid: ArrayLike = None) -> IntArray:
        """Give the place of each row in its query, 1 the best, as decoded."""
        features, queries = self.ordered(X, qid)
        places = [decoded.positions for decoded in self.decoded(features, queries)]
        return queries.scatter(np.concatenate(places))

    def scores_to_rank(self, X: ArrayLike, qid: ArrayLike) -> FloatArray:
        """Places, negated."""
        return -self.rank(X, qid=qid).astype(np.float64)

    def ordered(self, X: ArrayLike, qid: ArrayLike) -> tuple[Any, Queries]:
        """Give the checked features, the rows of each query adjacent; and the queries."""
        check_is_fitted(self, "coef_")
        features = self.checked_features(X, reset=False)
        queries = Queries.of(qid, features.shape[0], "X")
        return queries.gather(features), queries

    def decoded(self, features: Any, queries: Queries) -> Iterator[Decoded]:
        """Decode query after query."""
        with counted(queries.n_queries, self.verbose) as told:
            for u in self.matrices(features, queries):
                yield self.best_order(u)
                told("decoding")

    def best_order(self, u: FloatArray) -> Decoded:
        """Decode one query."""
        from concordant.decoders import average_precision, feedback_arc

        method = self.certificate_.decoder
        if not len(u):
            return Decoded.between(np.empty(0, dtype=np.int64), 0.0, 0.0, 0.0, time.perf_counter())
        if self.symmetric_:
            return average_precision(u, method=method)
        return feedback_arc(np.maximum(u, 0.0), method=method, time_limit=self.time_limit)

    def matrices(self, features: Any, queries: Queries) -> Iterator[FloatArray]:
        """Pair scores, query after query."""
        scorer = PairScorer(features, queries.offsets, self.groups_, symmetric=self.symmetric_)
        if scorer.width != len(self.coef_):
            raise ShapeError("features(left, right)", (scorer.width,), f"{len(self.coef_)} numbers per pair")
        pairs = Affine(self.coef_, self.intercept_)
        return scorer.matrices(pairs, Affine(self.diagonal_coef_, self.diagonal_intercept_))


def chosen_groups(features: Any, metric: str) -> tuple[str, ...] | PairFunction:
    """Groups of pair features by their names, or a user's function; what is neither is refused."""
    if callable(features):
        own: PairFunction = features
        return own
    if isinstance(features, str):
        features = AUTO[metric] if features == "auto" else (features,)
    if not isinstance(features, (tuple, list)) or not features:
        raise ParameterError("features", features, "'auto', a tuple of names, or a function of two items")
    for name in features:
        if not isinstance(name, str) or name not in GROUPS[metric]:
            raise UnknownNameError(f"group of pair features of {metric}", name, ["auto", *GROUPS[metric]])
    if len(set(features)) < len(features):
        raise ParameterError("features", features, "a tuple in which no name stands twice")
    return tuple(features)
