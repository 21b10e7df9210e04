"""PairRanker: scores of pairs of items, trained by the exact surrogates of AP and PD, decoded as a whole."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, Self

import numpy as np

from concordant._base.light_sklearn import check_is_fitted
from concordant._base.validate import check_flag, check_lengths, check_number, refuse_misaligned
from concordant.data.check import are_in_memory, weight_kind
from concordant.data.queries import Queries, naming_query
from concordant.decoders.decoded import Decoded
from concordant.exceptions import ParameterError, ShapeError
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.rankers.base import FAR, Ranker, unchanged_by_errors, warn_of_shortfall
from concordant.rankers.fit_progress import show_count, show_pass
from concordant.rankers.fitted_certificate import FittedCertificate, Optimality, Sample
from concordant.rankers.guarantee import Guarantee, check_decoder, label_space, look_up_guarantee
from concordant.rankers.missing_qid import warn_at_use
from concordant.rankers.pair_features import TABLES, Groups, check_groups, pair_names
from concordant.rankers.pair_scores import AffineScore, PairScorer
from concordant.rankers.pair_training import PairProblem, PairSums, Regression, pair_targets
from concordant.rankers.parts.pair_parts import PairPreparation, PartitionedPairs, partitioned_pairs
from concordant.rankers.parts.ranker_source import as_parts_source, validate_names
from concordant.rankers.recipe import metric_fingerprint
from concordant.rankers.training import label_weights, query_shares, summarize_sample
from concordant.solvers import Solution
from concordant.solvers.checkpoint import Checkpoint, Snapshot, check_folder, parameter_text
from concordant.solvers.ridge import combine_solutions
from concordant.theory.combination import OF_PAIRS
from concordant.theory.kinds import PairSquared
from concordant.types import ArrayLike, FloatArray, IntArray

# A fitted pair ranker: matrices of pair scores, orders, and their guarantee.


class PairModel(Ranker):
    """Scores of pairs, and orders decoded from them; `decoder` is read when decoding."""

    _no_risk_bound = "no bound is known for decoded orders"
    decoder: Any
    time_limit: float
    verbose: int
    metric_: Metric
    alpha_: float
    groups_: Groups
    symmetric_: bool
    coef_: FloatArray
    intercept_: float
    diagonal_coef_: FloatArray
    diagonal_intercept_: float
    solution_: Solution
    sample_: Sample

    @property
    def certificate_(self) -> FittedCertificate:
        """The guarantee of this fit and of `decoder`, with its condition; `print` it."""
        check_is_fitted(self, "coef_")
        check_decoder(self.metric_, self.decoder)
        sample = self.sample_
        subject = self.metric_, PairSquared(), self.decoder, sample.space
        guarantee = look_up_guarantee(*subject, n_items=sample.n_items).under_weights(sample.weighted)
        optimality = Optimality.from_solution(self.solution_, self.alpha_, certified=True)
        return FittedCertificate(guarantee, sample, optimality)

    def predict_pairs(self, X: ArrayLike, *, qid: ArrayLike = None) -> list[FloatArray]:
        """Compute the pair scores u of each query, ids ascending; rows of a query in the caller's order.

        ap: symmetric. pd: antisymmetric, u_ij > 0 where i is preferred to j.
        """
        return list(self.matrices(*self._group_rows(X, qid, "predict_pairs(X, qid=qid)")))

    def decode(self, X: ArrayLike, *, qid: ArrayLike = None) -> list[Decoded]:
        """Return the order of each query, ids ascending, and its proof; items as in `predict_pairs`.

        `value` of ap is the expected AP, as far as the pair scores are right; of pd it is the part of the
        expected PD that the order decides: sum of the preferences u_ij > 0 that it violates.
        """
        return list(self._decode_queries(*self._group_rows(X, qid, "decode(X, qid=qid)")))

    def rank(self, X: ArrayLike, *, qid: ArrayLike = None) -> IntArray:
        """Return the rank of each row in its query, 1 for the best, as decoded."""
        return self._decoded_ranks(*self._group_rows(X, qid, "rank(X, qid=qid)"))

    def _decoded_ranks(self, features: Any, queries: Queries) -> IntArray:
        ranks = [decoded.positions for decoded in self._decode_queries(features, queries)]
        return queries.scatter(np.concatenate(ranks))

    def _score_metric(self) -> Metric:
        check_is_fitted(self, "coef_")
        return self.metric_

    def scores_to_rank(self, X: ArrayLike, qid: ArrayLike) -> FloatArray:
        """Return the negated ranks."""
        return -self._decoded_ranks(*self._group_rows(X, qid)).astype(np.float64)

    def _group_rows(self, X: ArrayLike, qid: ArrayLike, call: str = "") -> tuple[Any, Queries]:
        """Return sorted features and their queries; warn of too many rows for one list if a call is named."""
        check_is_fitted(self, "coef_")
        refuse_misaligned(X=X, qid=qid)
        features = self.checked_features(X, reset=False)
        queries = Queries.for_rows(qid, features.shape[0], "X")
        if call:
            warn_at_use(self, call, queries.n_rows, qid)
        return queries.gather(features), queries

    def _decode_queries(self, features: Any, queries: Queries) -> Iterator[Decoded]:
        with show_count(queries.n_queries, self.verbose) as advance:
            for u in self.matrices(features, queries):
                yield self.best_order(u)
                advance("decoding")

    def best_order(self, u: FloatArray) -> Decoded:
        """Decode a query."""
        from concordant.decoders import average_precision, feedback_arc

        check_decoder(self.metric_, self.decoder)
        if not len(u):
            nothing = np.empty(0, dtype=np.int64)
            return Decoded.from_order(nothing, 0.0, 0.0, proven=True, started=time.perf_counter())
        if self.symmetric_:
            return average_precision(u, method=self.decoder)
        return feedback_arc(np.maximum(u, 0.0), method=self.decoder, time_limit=self.time_limit)

    def matrices(self, features: Any, queries: Queries) -> Iterator[FloatArray]:
        """Generate the pair scores of each query."""
        scorer = PairScorer(features, queries.offsets, self.groups_, symmetric=self.symmetric_)
        if scorer.width != len(self.coef_):
            raise ShapeError("features(left, right)", (scorer.width,), f"{len(self.coef_)} numbers per pair")
        pairs = AffineScore(self.coef_, self.intercept_)
        return scorer.matrices(pairs, AffineScore(self.diagonal_coef_, self.diagonal_intercept_))


class PairRanker(PairModel):
    """Ranker that scores pairs of items, and finds the order that is best for all of them together.

    For AP, and for PD of preferences or of three or more grades, no score of single items is optimal for
    every distribution of the labels; scores of pairs are. (For PD of two grades sorting is enough.)
    u_ij = w . phi(x_i, x_j) is fitted by least squares to the pair labels whose expectation decides which
    order is best, and the order is then searched for ("decoded"), query by query. There is no `predict`:
    single rows have no score.

    Minimises the mean over queries of the mean over the query's pairs of (u_ij - target)^2, plus alpha/2
    times the squared length of w, exactly. Weights of queries and of rows do not change the optimum for a
    query, if they are positive and depend on the features only.

    Parameters
    ----------
    metric
        "ap": u_ij, symmetric, estimates E[y_i y_j / sum(y)]. The diagonal, E[y_i / sum(y)], is a separate
        function of the items with separate weights: on the features of an item, their squares, the diagonal
        of the pair features (below), and an intercept.
        "pd": u_ij = -u_ji estimates E[a_ij - a_ji], where a_ij is the weight of "i preferred to j", or
        1(y_i > y_j) of grades; a pair that nobody compared has the label 0.
    alpha
        Penalty, >= 0.
    features
        Pair features: groups of the table below, "auto" for some of them; or a function phi(left, right) of
        the features of two items, one row per pair, which returns a row of numbers per pair, the same (ap)
        or the negative (pd) with the items exchanged (checked on the first 1,000 pairs).

        - ap: "sum" x_i + x_j, "product" x_i x_j, "absdiff" abs(x_i - x_j), feature by feature; "context" the
          query's means (its level, of pairs and items, moves no item but frees the other weights of it);
          "cross" x_ia x_jb + x_ib x_ja for any two features a, b: with "product" the full bilinear form.
          "auto" is the first three. Of single items, "cross" brings the products x_ia x_ib, "context" the
          query's means, a function phi(x_i, x_i).
        - pd: "difference" x_i - x_j, and "context", that times the query's mean, which cannot express a
          cycle; "signed_square" (x_i - x_j) abs(x_i - x_j), and "cross" x_ia x_jb - x_ib x_ja, which can.
          "auto" is "difference", "signed_square" and "context".
    decoder
        "auto": the best order, proven if possible (see `decoders.average_precision` and
        `decoders.feedback_arc`). Faster, and optimal only under a condition: "diagonal" (ap),
        "edge-deletion" and "borda" (pd); or if they prove their order best: "beam" (ap), "insertion" (pd). A
        fit with a decoder that is not always optimal causes a `GuaranteeWarning`. It may be changed after the
        fit, as may `time_limit`.
    fit_scale
        Penalise the weights of pair features divided by their spread; `coef_` is for unscaled features.
    time_limit
        Seconds that "auto" may take for a query of pd.
    checkpoint
        A folder to which the sums over pairs are written every 64 blocks; for a scan after each part, and on
        a cluster after some parts per thread. Killed at any moment and called again with the same data and
        parameters (`decoder`, `time_limit`, `verbose`, and `alpha` and `fit_scale`, which are used after the
        sums, may differ), a fit resumes, on a cluster of any size, and gives the same weights, bit for bit. A
        folder of another fit raises. None: no checkpoint.
    verbose
        1 shows a progress bar on standard error, over blocks of pairs and over decoded queries.

    Attributes
    ----------
    coef_, intercept_
        Weight of each pair feature; pd has no intercept: it is 0.
    diagonal_coef_, diagonal_intercept_
        For ap: weights of the features of an item; of their squares; with "context" of the query's means;
        with "cross" of the products of two features; with a function of phi(x, x). For pd: none, and 0.
    pair_features_
        Names of the pair features.
    groups_, symmetric_
        The groups, or the function; and True if u_ij = u_ji (ap), False if u_ij = -u_ji (pd).
    metric_, alpha_
        Metric and penalty of the fit. `score` is the mean of this metric.
    certificate_, basis_
        The guarantee of this fit and of `decoder` (a `FittedCertificate`; `print` it); and its condition.
    sample_
        Summary of the training data, for certificates.
    solution_
        How far the fit is from optimal. Its `w` is for features divided by their spread, those of the
        diagonal first.
    scale_
        Spread of each pair feature (1 without `fit_scale`).
    n_queries_, n_informative_
        Queries, and those from which something is learned: with labels that differ (pd), with a relevant
        item (ap); labels and queries of weight 0 do not count.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The surrogate of PD may have one score per ordered pair, sum over i != j of (u_ij - a_ij)^2. With
    s = u_ij + u_ji and v = u_ij - u_ji, the two terms of a pair are half of
    (s - a_ij - a_ji)^2 + (v - a_ij + a_ji)^2: two regressions. An order pays u_ij or u_ji, that is s/2 + v/2
    or s/2 - v/2, so that s changes nothing. Only v is fitted, and it is antisymmetric.

    Pairs are many: a query of n items has n (n - 1) / 2, and time grows with their number times the square
    of the number of pair features. They are computed a block at a time (1 MiB of pair features or, if that
    is more, a pair for each four of them), never all together. Memory is needed for up to five matrices of
    products of pair features, each 8 bytes times the square of their number.

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

    def __init__(
        self,
        metric: Any = "ap",
        alpha: float = 0.1,
        *,
        features: Any = "auto",
        decoder: str = "auto",
        fit_scale: bool = True,
        time_limit: float = 60.0,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.metric = metric
        self.alpha = alpha
        self.features = features
        self.decoder = decoder
        self.fit_scale = fit_scale
        self.time_limit = time_limit
        self.checkpoint = checkpoint
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike = None,
        *,
        qid: ArrayLike = None,
        sample_weight: ArrayLike = None,
        query_weight: ArrayLike = None,
        client: Any = None,
    ) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X
            Features, one row per item: numpy, pandas, polars, pyarrow or scipy sparse; float32 too. Or a
            `Scan`, which contains labels, ids and weights, and need not fit in memory: it is read twice. Or a
            Dask array or frame, with y, qid and weights as collections of the same partitions. The weights
            are equal up to rounding.
        y
            One grade >= 0 per row; or `Preferences` (pd). Only grades with scans and collections.
        qid
            Query ids in any order, or a `Queries`; None: all rows are one query.
        sample_weight
            One number >= 0 per row: how much the row's label counts. A pair counts by the product of its
            rows' numbers. They are divided by the largest: their unit does not matter. If they differ
            within queries, the guarantee is for positive weights that depend on the features only; inverse
            propensities correct nothing.
        query_weight
            One number >= 0 per row, the same for all rows of a query: how much the query counts. Guarantees
            are for weights that do not depend on the labels, which is not checked.
        client
            A `distributed.Client`: workers of its cluster hold the parts of the scan, or the collections, in
            memory. None: a scan is read by this process; collections go to the current client.
        """
        metric, groups = self.checked_parameters()
        with unchanged_by_errors(self):
            columns = X, y, qid, sample_weight, query_weight
            problem: PairProblem | PartitionedPairs
            if client is None and are_in_memory(*columns):
                problem, guarantee, sample = self.problem(metric, groups, *columns)
            else:
                source = as_parts_source(*columns, client)
                validate_names(self, source)
                reading = partial(show_pass, "reading", self.verbose)
                preparation = PairPreparation(metric, groups, digests=self.checkpoint is not None)
                problem, guarantee, sample = partitioned_pairs(preparation, source, self.decoder, reading)
            guarantee.warn()
            self._warn_of_rows(y, qid)
            return self.adopt(metric, groups, sample, self.sum_pairs(metric, groups, problem))

    def problem(
        self,
        metric: Metric,
        groups: Groups,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike,
        sample_weight: ArrayLike,
        query_weight: ArrayLike,
    ) -> tuple[PairProblem, Guarantee, Sample]:
        """Build the problem: supervision -> targets of pairs."""
        self._check_columns(X, y, qid=qid, sample_weight=sample_weight, query_weight=query_weight)
        features = self.checked_features(X, reset=True)
        queries = Queries.for_rows(qid, features.shape[0], "X")
        with naming_query(qid):
            labels = metric.read_labels(y)
            check_lengths("X", queries.n_rows, y=labels)
            targets = pair_targets(metric, labels, queries)
        space = label_space(metric, PairSquared(), labels, queries)
        longest = int(queries.sizes.max(initial=0))
        guarantee = look_up_guarantee(metric, PairSquared(), self.decoder, space, n_items=longest)
        shares, weights = query_shares(query_weight, queries), label_weights(sample_weight, queries)
        weighted = weight_kind(None if sample_weight is None else weights, queries.offsets)
        guarantee = guarantee.under_weights(weighted)
        scorer = PairScorer(queries.gather(features), queries.offsets, groups, symmetric=metric.name == "ap")
        problem = PairProblem(scorer, targets, shares, weights / weights.max())
        return problem, guarantee, summarize_sample(guarantee, queries, None, shares)

    def checked_parameters(self) -> tuple[Metric, Groups]:
        """Check the parameters before any work; return the metric, and the groups of features."""
        check_number("alpha", self.alpha, least=0.0)
        check_number("time_limit", self.time_limit, least=0.0)
        check_flag("fit_scale", self.fit_scale)
        if self.checkpoint is not None:
            check_folder(self.checkpoint)
        metric = read_metric(self.metric)
        if metric.name not in OF_PAIRS or getattr(metric, "k", None) is not None:
            raise ParameterError(
                "metric",
                str(metric),
                "'ap' or 'pd' without a cutoff",
                hint="LinearRanker trains for the other metrics.",
            )
        check_decoder(metric, self.decoder)
        return metric, check_groups(self.features, metric.name)

    def sum_pairs(self, metric: Metric, groups: Groups, problem: PairProblem | PartitionedPairs) -> PairSums:
        """Add up the pairs and, for symmetric scores, the items; resume from a checkpoint, if any."""
        if self.checkpoint is None:
            return problem.sums(None, self.verbose)
        fingerprint = {
            "estimator": type(self).__name__,
            "metric": metric_fingerprint(metric),
            "features": parameter_text(groups),
        }
        snapshot = Snapshot(Checkpoint(check_folder(self.checkpoint), fingerprint, problem.digest))
        with snapshot.lock():
            return problem.sums(snapshot, self.verbose)

    def adopt(self, metric: Metric, groups: Groups, sample: Sample, sums: PairSums) -> Self:
        """Solve and store the weights; warn if they fall short."""
        solve = partial(Regression.from_moments, alpha=float(self.alpha), fit_scale=bool(self.fit_scale))
        pairs, items = solve(sums.pairs), None if sums.items is None else solve(sums.items)
        self.groups_, self.symmetric_ = groups, metric.name == "ap"
        self.pair_features_ = self._pair_feature_names(len(pairs.coef))
        self.coef_, self.intercept_, self.scale_ = pairs.coef, pairs.intercept, pairs.scale
        self.diagonal_coef_ = np.empty(0) if items is None else items.coef
        self.diagonal_intercept_ = 0.0 if items is None else items.intercept
        self.solution_ = pairs.solution
        if items is not None:
            self.solution_ = combine_solutions(items.solution, pairs.solution)
        self.metric_, self.alpha_, self.sample_ = metric, float(self.alpha), sample
        self.n_queries_, self.n_informative_ = sample.n_queries, sums.n_informative
        lacking = "a relevant item" if self.symmetric_ else "labels that differ"
        lacking = "" if self.n_informative_ else f"{lacking}, at a weight above 0"
        warn_of_shortfall(lacking, _inexact_text(self.solution_))
        return self

    def _pair_feature_names(self, width: int) -> list[str]:
        if callable(self.groups_):
            return [f"phi{j}" for j in range(width)]
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        return pair_names({name: TABLES[self.symmetric_][name] for name in self.groups_}, names)


def _inexact_text(solution: Solution) -> str:
    """Describe that rounding kept the least squares from their minimum; empty if it did not."""
    if solution.converged or solution.excess <= FAR * solution.value:
        return ""
    text = f"Because of rounding, the squared loss may be {solution.excess:.1e} or more above its minimum"
    return f"{text}. Raise alpha, or drop features that are nearly linear combinations of others."
