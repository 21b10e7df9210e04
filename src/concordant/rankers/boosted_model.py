"""What a fitted `BoostedRanker` does: features to scores, scores to ranks."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from concordant.exceptions import LibraryError, ParameterError
from concordant.rankers.base import Ranker, places, warn_of_shortfall
from concordant.rankers.boosters import BOOSTERS, Booster
from concordant.rankers.boosters.booster import Trees
from concordant.rankers.boosters.features import Encoding, categorical_numbers
from concordant.rankers.boosters.lesson import Taught
from concordant.rankers.boosters.watch import Watch
from concordant.rankers.certificate import FittedCertificate
from concordant.rankers.optimality import Descent
from concordant.supervision.check import naming_features, plain_features
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["TreeModel", "naming_library"]

NO_BOUND = "no bound is known for what trees express"
ROUNDING = 1e-6  # of scores in single precision


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
        with naming_features():
            return self.numbers(X, reset=reset)

    def numbers(self, X: ArrayLike, *, reset: bool) -> Any:
        """Give the features that trees read."""
        if not hasattr(X, "tocsr") and not hasattr(X, "shape"):
            X = np.asarray(X)
        if reset:
            self.encoding_ = Encoding.of(X, categorical_numbers(self.categorical_features, X))
        if hasattr(X, "tocsr") and self.encoding_.categories:
            held = ", ".join(map(str, self.encoding_.categories))
            raise ParameterError("X", "sparse", f"dense, as that of fit: features {held} are categories")
        if not self.encoding_.categories:
            kinds = [np.float64, np.float32]
            given = {"accept_sparse": "csr", "dtype": kinds, "order": "C", "ensure_all_finite": "allow-nan"}
            checked = validate_data(self, plain_features(X), reset=reset, **given)
            return short_indices(checked) if hasattr(checked, "tocsr") else checked
        validate_data(self, X, reset=reset, skip_check_array=True)
        return self.encoding_.numbers(X)

    def adopt(
        self,
        booster: Booster,
        trees: Trees,
        lesson: Taught,
        watch: Watch,
        model: Any,
        ends: tuple[float, float],
    ) -> Self:
        """Take the trees over; say where they fall short. Called by `fit`, whose caller is warned."""
        self.booster_, self.trees_ = model, trees
        self.n_estimators_, self.best_iteration_ = booster.n_trees(model), watch.best
        self.history_, self.stopped_by_ = np.array(watch.history), watch.stopped_by
        self.surrogate_, self.basis_ = lesson.surrogate, lesson.claim.condition
        self.n_queries_, self.n_informative_ = lesson.sample.n_queries, lesson.n_informative
        descent = Descent(*ends, self.n_estimators_, "trees", watch.stopped_by)
        self.certificate_ = FittedCertificate(lesson.claim, lesson.sample, descent, None, NO_BOUND)
        rose = self.n_informative_ and not descent.value <= descent.first * (1.0 + ROUNDING)
        warn_of_shortfall(
            "" if self.n_informative_ else "labels that differ", risen(descent, booster, lesson) * bool(rose)
        )
        if self.n_informative_ and not self.feature_importances_.any():
            text = "no split was found, and all scores are equal: lower min_samples_leaf, or give more rows"
            warnings.warn(text, UserWarning, stacklevel=3)
        if watch.stopped_by == "interrupt":
            done = f"interrupted after {len(watch.history)} of {trees.n_estimators} rounds"
            text = f"{done}: {self.n_estimators_} trees are kept"
            warnings.warn(text, ConvergenceWarning, stacklevel=3)
        return self

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
        return places(self.predict(X), qid)

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


@contextmanager
def naming_library(library: str) -> Iterator[None]:
    """What a library raises becomes a named error."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.lstrip("_").partition(".")[0] != library:
            raise
        raise LibraryError(library, str(error)) from error


def short_indices(X: Any) -> Any:
    """Compressed rows whose indices have 32 bits, if they fit: CatBoost reads no others."""
    rows = csr_matrix(X)
    if max(rows.nnz, *rows.shape) < 2**31:
        rows.indices = rows.indices.astype(np.int32, copy=False)
        rows.indptr = rows.indptr.astype(np.int32, copy=False)
    return rows


def risen(descent: Descent, booster: Booster, lesson: Taught) -> str:
    """Say that the steps were too long."""
    known = lesson.surrogate.curvatures if booster.asks else ()
    other = ", or take curvature='majorising'" * ("majorising" in known and lesson.curvature != "majorising")
    text = f"the training loss rose, from {descent.first:.4g} to {descent.value:.4g}"
    return f"{text}: lower learning_rate or raise l2{other}"
