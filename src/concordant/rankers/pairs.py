"""PairRanker: scores of pairs of items, trained by the exact surrogates of AP and PD, decoded as a whole."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Self

import numpy as np

from concordant._numbers import as_double
from concordant.exceptions import ParameterError
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.rankers.base import FAR, unchanged_by_errors, warn_of_shortfall
from concordant.rankers.claim import Claim, check_decoder, claimed, label_space
from concordant.rankers.optimality import Sample
from concordant.rankers.pair_groups import Groups, chosen_groups
from concordant.rankers.pair_model import PairModel
from concordant.rankers.pair_sums import PairSums
from concordant.rankers.pair_training import PairProblem, Regression, pair_targets
from concordant.rankers.partitioned.pairs import PairPreparation, PartedPairs, parted_pairs
from concordant.rankers.partitioned.source import source_of, validate_names
from concordant.rankers.progress import passing
from concordant.rankers.told import told_metric
from concordant.rankers.training import label_weights, query_shares, seen
from concordant.scorers.pair_features import TABLES, pair_names
from concordant.scorers.pairs import PairScorer
from concordant.solvers import Solution
from concordant.solvers.checkpoint import Checkpoint, Snapshot, checked_folder, spelled
from concordant.solvers.ridge import joined
from concordant.supervision.columns import check_lengths
from concordant.supervision.queries import Queries, naming_query
from concordant.theory.combination import OF_PAIRS
from concordant.theory.kinds import PairSquared
from concordant.types import ArrayLike

__all__ = ["PairRanker"]


class PairRanker(PairModel):
    """Ranker that scores pairs of items, and finds the order that is best for all of them together.

    For AP, and for PD of preferences or of three or more grades, no score of single items is optimal for
    every distribution of the labels; scores of pairs are. (For PD of two grades sorting is enough.)
    u_ij = w . phi(x_i, x_j) is fitted by least squares to the pair labels whose expectation decides which
    order is best, and the order is then searched for ("decoded"), query by query. There is no `predict`:
    single rows have no score.

    Minimises the mean over queries of the mean over the query's pairs of (u_ij - target)^2, plus alpha/2
    times the squared length of w, exactly. Weights of queries and of rows do not change what is best for a
    query, if they do not depend on its labels.

    Parameters
    ----------
    metric
        "ap": u_ij, symmetric, is to be E[y_i y_j / sum(y)]. The diagonal, E[y_i / sum(y)], is another
        function of the items and has weights of its own: on the features of an item, their squares, what
        the pair features bring beyond these (below), and an intercept.
        "pd": u_ij = -u_ji is to be E[a_ij - a_ji], where a_ij is the weight of "i preferred to j", or
        1(y_i > y_j) of grades; a pair that nobody compared has the label 0.
    alpha
        Penalty, >= 0.
    features
        Of pairs: groups of the table below, "auto" for some of them; or a function phi(left, right) of the
        features of two items, one row per pair, which gives one row of numbers per pair, the same (ap) or
        the negative (pd) with the items exchanged (the first 1,000 pairs are asked both ways round).

        - ap: "sum" x_i + x_j, "product" x_i x_j, "absdiff" abs(x_i - x_j), feature by feature; "context" the
          query's means (its level, of pairs and items, moves no item but frees the other weights of it);
          "cross" x_ia x_jb + x_ib x_ja for any two features a, b: with "product" the full bilinear form.
          "auto" is the first three. Of single items, "cross" brings the products x_ia x_ib, "context" the
          query's means, a function phi(x_i, x_i).
        - pd: "difference" x_i - x_j, and "context", that times the query's mean, which cannot express a
          cycle; "signed_square" (x_i - x_j) abs(x_i - x_j), and "cross" x_ia x_jb - x_ib x_ja, which can.
          "auto" is "difference", "signed_square" and "context".
    decoder
        "auto": the best order, proven where that can be done (see `decoders.average_precision` and
        `decoders.feedback_arc`). Faster, and optimal only under a condition: "diagonal" (ap),
        "edge-deletion" and "borda" (pd). Where they prove their order best: "beam" (ap), "insertion" (pd). A
        fit with one that is not always optimal gives a `GuaranteeWarning`. It may be changed after the fit,
        as `time_limit` may.
    fit_scale
        Penalise the weights of pair features divided by their spread; `coef_` is for features as they are.
    time_limit
        Seconds that "auto" may take for a query of pd.
    checkpoint
        A folder, to which the sums over pairs are written every 64 blocks; of a scan after each part, and on
        a cluster after some parts for each of its threads. Killed at any moment and called again with the
        same data and parameters (`decoder`, `time_limit`, `verbose`, and `alpha` and `fit_scale`, which come
        after the sums, may be others), a fit goes on there, on a cluster of any size, and gives the same
        weights, bit for bit. A folder of another fit is refused. None: no folder.
    verbose
        1 shows a progress bar on standard error, over blocks of pairs and over decoded queries.

    Attributes
    ----------
    coef_, intercept_
        Weight of each pair feature; pd has no intercept: it is 0.
    diagonal_coef_, diagonal_intercept_
        Of ap: weights of the features of an item; of their squares; with "context" of the query's means;
        with "cross" of the products of two features; of a function of phi(x, x). Of pd: none, and 0.
    pair_features_
        Names of the pair features.
    groups_, symmetric_
        The groups, or the function; and whether u_ij = u_ji (ap) or -u_ji (pd).
    metric_, alpha_
        Of the fit. `score` is the mean of this metric.
    certificate_, basis_
        What is guaranteed of this fit and of `decoder`, under which condition (a `FittedCertificate`; `print`
        it); and the condition.
    sample_
        What certificates say of the training data.
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
    of the number of pair features. They are made a block at a time (1 MiB of pair features or, where that is
    more, a pair for each four of them), never all together. What is kept are up to five matrices of products
    of pair features, 8 bytes times the square of their number each.

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
            `Scan`, which has labels, ids and weights of its own, and need not fit in memory: it is read
            twice. Or a Dask array or frame, y, qid and weights then being collections of the same partitions.
            The weights are the same, up to rounding.
        y
            One grade >= 0 per row; or `Preferences` (pd). Grades alone of a scan or of collections.
        qid
            Query ids in any order, or a `Queries`; None: all rows are one query.
        sample_weight
            One number >= 0 per row: how much the row's label counts. A pair counts by the product of its
            rows' numbers. They are divided by the largest one: their unit does not matter.
        query_weight
            One number >= 0 per row, the same for all rows of a query: how much the query counts.
        client
            A `distributed.Client`: workers of its cluster hold the parts of the scan, or the collections, in
            memory. None: a scan is read by this process; collections go to the current client.
        """
        metric, groups = self.checked_parameters()
        with unchanged_by_errors(self):
            source = source_of(X, y, qid, sample_weight, query_weight, client)
            problem: PairProblem | PartedPairs
            if source is None:
                problem, claim, sample = self.problem(metric, groups, X, y, qid, sample_weight, query_weight)
            else:
                validate_names(self, source)
                told = partial(passing, "reading", self.verbose)
                preparation = PairPreparation(metric, groups, digests=self.checkpoint is not None)
                problem, claim, sample = parted_pairs(preparation, source, self.decoder, told)
            claim.warn()
            return self.adopt(metric, groups, sample, self.summed(metric, groups, problem))

    def problem(
        self,
        metric: Metric,
        groups: Groups,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike,
        sample_weight: ArrayLike,
        query_weight: ArrayLike,
    ) -> tuple[PairProblem, Claim, Sample]:
        """Supervision -> targets of pairs."""
        self.refuse_no_labels(y)
        features = self.checked_features(X, reset=True)
        queries = Queries.of(qid, features.shape[0], "X")
        with naming_query(qid):
            labels = metric.read_labels(y)
            check_lengths("X", queries.n_rows, y=labels)
            targets = pair_targets(metric, labels, queries)
        space = label_space(metric, PairSquared(), labels, queries)
        longest = int(queries.sizes.max(initial=0))
        claim = claimed(metric, PairSquared(), self.decoder, space, n_items=longest)
        shares, weights = query_shares(query_weight, queries), label_weights(sample_weight, queries)
        scorer = PairScorer(queries.gather(features), queries.offsets, groups, symmetric=metric.name == "ap")
        problem = PairProblem(scorer, targets, shares, weights / weights.max())
        return problem, claim, seen(claim, queries, None, shares, weighted=sample_weight is not None)

    def checked_parameters(self) -> tuple[Metric, Groups]:
        """Refuse parameters out of range, before any work; the metric, and the groups of features."""
        for name in ("alpha", "time_limit"):
            value = getattr(self, name)
            if not 0.0 <= as_double(value) < math.inf:
                raise ParameterError(name, value, "a finite number >= 0")
        self.check_flags("fit_scale")
        checked_folder(self.checkpoint)
        metric = read_metric(self.metric)
        if metric.name not in OF_PAIRS or getattr(metric, "k", None) is not None:
            raise ParameterError("metric", str(metric), "ap or pd, uncut; LinearRanker trains for the others")
        check_decoder(metric, self.decoder)
        return metric, chosen_groups(self.features, metric.name)

    def summed(self, metric: Metric, groups: Groups, problem: PairProblem | PartedPairs) -> PairSums:
        """Add up the pairs and, of symmetric scores, the items; go on from a checkpoint, if there is one."""
        if (folder := checked_folder(self.checkpoint)) is None:
            return problem.sums(None, self.verbose)
        told = {"estimator": type(self).__name__, "metric": told_metric(metric), "features": spelled(groups)}
        snapshot = Snapshot(Checkpoint(folder, told, problem.digest))
        with snapshot.held():
            return problem.sums(snapshot, self.verbose)

    def adopt(self, metric: Metric, groups: Groups, sample: Sample, sums: PairSums) -> Self:
        """Solve; take the weights over; say where they fall short. Called by `fit`, whose caller is told."""
        solved = partial(Regression.of, alpha=float(self.alpha), fit_scale=bool(self.fit_scale))
        pairs, items = solved(sums.pairs), None if sums.items is None else solved(sums.items)
        self.groups_, self.symmetric_ = groups, metric.name == "ap"
        self.pair_features_ = self.names_of_pairs(len(pairs.coef))
        self.coef_, self.intercept_, self.scale_ = pairs.coef, pairs.intercept, pairs.scale
        self.diagonal_coef_ = np.empty(0) if items is None else items.coef
        self.diagonal_intercept_ = 0.0 if items is None else items.intercept
        self.solution_ = pairs.solution if items is None else joined(items.solution, pairs.solution)
        self.metric_, self.alpha_, self.sample_ = metric, float(self.alpha), sample
        self.n_queries_, self.n_informative_ = sample.n_queries, sums.n_informative
        lacking = "a relevant item" if self.symmetric_ else "labels that differ"
        lacking = "" if self.n_informative_ else f"{lacking}, at a weight above 0"
        warn_of_shortfall(lacking, inexact(self.solution_))
        return self

    def names_of_pairs(self, width: int) -> list[str]:
        """Give a name to each pair feature."""
        if callable(self.groups_):
            return [f"phi{j}" for j in range(width)]
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        return pair_names({name: TABLES[self.symmetric_][name] for name in self.groups_}, names)


def inexact(solution: Solution) -> str:
    """Say that rounding kept the least squares from their least; empty where it did not."""
    if solution.converged or solution.excess <= FAR * solution.value:
        return ""
    seen = f"the squared loss may be {solution.excess:.1e} or more above its least, because of rounding"
    return f"{seen}; raise alpha, or leave out features that nearly follow from others"
