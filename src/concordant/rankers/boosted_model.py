"""What a fitted `BoostedRanker` does: features to scores, scores to ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted, validate_data

from concordant.decoders.sorting import positions
from concordant.rankers.base import Ranker
from concordant.rankers.boosters import BOOSTERS
from concordant.rankers.boosters.booster import Trees
from concordant.rankers.boosters.features import Encoding, categorical_numbers
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["TreeModel"]


class TreeModel(Ranker):
    """Scores by trees, and what follows from them."""

    booster_: Any
    encoding_: Encoding
    trees_: Trees

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def checked_features(self, X: ArrayLike, *, reset: bool) -> Any:
        """Features as numbers, categories as codes; NaN is missing, infinity is refused."""
        if not hasattr(X, "tocsr") and not hasattr(X, "shape"):
            X = np.asarray(X)
        if reset:
            self.encoding_ = Encoding.of(X, categorical_numbers(self.categorical_features, X))
        if not self.encoding_.categories:
            kinds = [np.float64, np.float32]
            given = {"accept_sparse": "csr", "dtype": kinds, "order": "C", "ensure_all_finite": "allow-nan"}
            checked = validate_data(self, X, reset=reset, **given)
            return csr_matrix(checked) if hasattr(checked, "tocsr") else checked
        validate_data(self, X, reset=reset, skip_check_array=True)
        return self.encoding_.numbers(X)

    def predict(self, X: ArrayLike) -> FloatArray:
        """Give the score of each row; high is better. Equal rows have equal scores."""
        check_is_fitted(self, "booster_")
        features = self.checked_features(X, reset=False)
        return BOOSTERS[self.trees_.library].scores(self.booster_, features, self.trees_)

    def scores_to_rank(self, X: ArrayLike, qid: ArrayLike) -> FloatArray:
        """The scores, whatever the queries."""
        del qid
        return self.predict(X)

    def rank(self, X: ArrayLike, *, qid: ArrayLike = None) -> IntArray:
        """Give the place of each row in its query, 1 the best; equal scores keep their order."""
        return positions(self.predict(X), qid=qid)

    @property
    def categories_(self) -> dict[int, list[Any]]:
        """Categories of each categorical feature, by its number."""
        return dict(self.encoding_.categories)

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each feature in the gains of all splits; all 0 where there is none."""
        check_is_fitted(self, "booster_")
        gains = BOOSTERS[self.trees_.library].gains(self.booster_, self.n_features_in_)
        shares: FloatArray = gains / max(gains.sum(), np.finfo(np.float64).tiny)
        return shares
