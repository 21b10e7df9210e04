"""What every ranker does with its scores: predict, rank, score, explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from concordant.decoders.sorting import positions
from concordant.exceptions import LengthMismatchError
from concordant.metrics.parse import metric as read_metric
from concordant.rankers.training import query_weights
from concordant.supervision.queries import Queries, naming_query
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["LinearModel", "PairExplanation"]

PREDICT_ROWS = 4096  # of float32 X turned to float64 at a time


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


class LinearModel(BaseEstimator):  # type: ignore[misc]
    """Scores X @ coef_, and what follows from them."""

    coef_: FloatArray
    metric: Any

    # qid and the weights go wherever fit and score are called, unless a caller says otherwise.
    __metadata_request__fit: ClassVar = {"qid": True, "sample_weight": True, "query_weight": True}
    __metadata_request__score: ClassVar = {"qid": True, "query_weight": True}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags

    def checked_features(self, X: ArrayLike, *, reset: bool) -> Any:
        """Features as float32 or float64, dense or compressed rows; errors are scikit-learn's."""
        return validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], order="C"
        )

    def refuse_no_labels(self, y: ArrayLike) -> None:
        """Raise, in scikit-learn's words, where there are none."""
        if y is None:
            name = type(self).__name__
            raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None")

    def predict(self, X: ArrayLike) -> FloatArray:
        """Give the score of each row; high is better."""
        check_is_fitted(self)
        features = self.checked_features(X, reset=False)
        if features.dtype == np.float64 or hasattr(features, "tocsr"):
            return np.asarray(features @ self.coef_)
        parts = range(0, len(features), PREDICT_ROWS)  # a whole copy would be twice the size of X
        pieces = [features[start : start + PREDICT_ROWS].astype(np.float64) @ self.coef_ for start in parts]
        return np.concatenate(pieces)

    def rank(self, X: ArrayLike, *, qid: ArrayLike = None) -> IntArray:
        """Give the place of each row in its query, 1 the best; equal scores keep their order."""
        return positions(self.predict(X), qid=qid)

    def score(
        self, X: ArrayLike, y: ArrayLike, *, qid: ArrayLike = None, query_weight: ArrayLike = None
    ) -> float:
        """Mean of the metric over queries; losses come negated, so that higher is better.

        Parameters
        ----------
        X, y, qid, query_weight
            As for `fit`.
        """
        chosen = read_metric(self.metric)
        scores = self.predict(X)
        queries = Queries.of(qid, len(scores), "X")
        weights = None if query_weight is None else query_weights(query_weight, queries)
        with naming_query(qid):
            value = float(chosen(y, scores, qid=queries, weights=weights))
        return value if chosen.greater_is_better else -value

    def explain_pair(self, a: ArrayLike, b: ArrayLike) -> PairExplanation:
        """Give each feature's contribution to the score of `a` less that of `b`.

        Parameters
        ----------
        a, b
            Features of one item each: one number per feature, or one row of a frame or matrix.
        """
        check_is_fitted(self)
        left, right = (self.one_row(item, name) for item, name in ((a, "a"), (b, "b")))
        shares = self.coef_ * (left - right)
        names = getattr(self, "feature_names_in_", np.arange(len(shares)).astype(str))
        order = np.argsort(-np.abs(shares), kind="stable")
        return PairExplanation([str(name) for name in names[order]], shares[order], float(shares.sum()))

    def one_row(self, item: ArrayLike, name: str) -> FloatArray:
        """Features of one item."""
        row = np.asarray(item) if isinstance(item, (list, tuple)) else item
        if np.ndim(row) == 1 and not hasattr(row, "tocsr"):
            row = np.asarray(row)[None, :]
            if row.shape[1] != len(self.coef_):
                raise LengthMismatchError(name, row.shape[1], len(self.coef_), "coef_")
            return np.asarray(row[0], dtype=np.float64)
        features = self.checked_features(row, reset=False)
        if features.shape[0] != 1:
            raise LengthMismatchError(name, features.shape[0], 1, "an item")
        dense = features.toarray() if hasattr(features, "toarray") else features
        return np.asarray(dense[0], dtype=np.float64)
