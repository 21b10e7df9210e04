"""What a fitted pair ranker does with its pair scores: matrices, orders, and what is known of these."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from concordant.decoders.decoded import Decoded
from concordant.exceptions import ShapeError
from concordant.metrics.metric import Metric
from concordant.rankers.base import Ranker
from concordant.rankers.certificate import FittedCertificate, Optimality, Sample
from concordant.rankers.claim import check_decoder, claimed
from concordant.rankers.pair_groups import Groups
from concordant.rankers.progress import counted
from concordant.scorers.pairs import Affine, PairScorer
from concordant.solvers import Solution
from concordant.supervision.queries import Queries
from concordant.theory.kinds import PairSquared
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["PairModel"]


class PairModel(Ranker):
    """Scores of pairs, and what follows from them. What was fitted stays; `decoder` is read when decoding."""

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
        """What is guaranteed of this fit and of `decoder`, under which condition; `print` it."""
        check_is_fitted(self, "coef_")
        check_decoder(self.metric_, self.decoder)
        sample = self.sample_
        claim = claimed(self.metric_, PairSquared(), self.decoder, sample.space, n_items=sample.n_items)
        optimality = Optimality.of(self.solution_, self.alpha_, certified=True)
        return FittedCertificate(claim, sample, optimality)

    @property
    def basis_(self) -> str:
        """The condition."""
        return self.certificate_.condition

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

    def scored(self) -> Metric:
        """The metric of the fit."""
        check_is_fitted(self, "coef_")
        return self.metric_

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

        check_decoder(self.metric_, self.decoder)
        if not len(u):
            return Decoded.of(np.empty(0, dtype=np.int64), 0.0, 0.0, proven=True, started=time.perf_counter())
        if self.symmetric_:
            return average_precision(u, method=self.decoder)
        return feedback_arc(np.maximum(u, 0.0), method=self.decoder, time_limit=self.time_limit)

    def matrices(self, features: Any, queries: Queries) -> Iterator[FloatArray]:
        """Pair scores, query after query."""
        scorer = PairScorer(features, queries.offsets, self.groups_, symmetric=self.symmetric_)
        if scorer.width != len(self.coef_):
            raise ShapeError("features(left, right)", (scorer.width,), f"{len(self.coef_)} numbers per pair")
        pairs = Affine(self.coef_, self.intercept_)
        return scorer.matrices(pairs, Affine(self.diagonal_coef_, self.diagonal_intercept_))
