"""What a fitted network does: scores, which may read the queries, and places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from concordant.exceptions import ShapeError
from concordant.rankers.base import Ranker, places
from concordant.rankers.devices.losses import on_host
from concordant.supervision.queries import Queries
from concordant.types import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from concordant.scorers.neural import NeuralScorer

__all__ = ["NetworkModel"]

MOST_BYTES = 2**34  # of sparse features, once they are dense


class NetworkModel(Ranker):
    """Scores by a network; `fit` is a subclass's."""

    __metadata_request__predict: ClassVar = {"qid": True}

    scorer_: NeuralScorer
    device: Any

    def checked_features(self, X: ArrayLike, *, reset: bool) -> Any:
        """Features as float32 or float64; sparse ones are refused where they are too many to be dense."""
        features = super().checked_features(on_host(X), reset=reset)
        if hasattr(features, "toarray") and 4 * features.shape[0] * features.shape[1] > MOST_BYTES:
            wanted = f"at most {MOST_BYTES // 4:,} numbers: a network needs dense features, in float32"
            raise ShapeError("X", features.shape, wanted)
        return features

    def predict(self, X: ArrayLike, *, qid: ArrayLike = None) -> FloatArray:
        """Give the score of each row, to single precision; high is better.

        Parameters
        ----------
        X
            Features, as for `fit`.
        qid
            Query ids, where the network reads the context; None: all rows are one query. Not read otherwise.
        """
        check_is_fitted(self, "scorer_")
        from concordant.rankers.networks.scores import predicted

        features = self.checked_features(X, reset=False)
        if not self.scorer_.context:
            return predicted(self.scorer_, features, None, self.device)
        queries = Queries.of(on_host(qid), features.shape[0], "X")
        grouped = queries.gather(features)
        return queries.scatter(predicted(self.scorer_, grouped, queries.offsets, self.device))

    def scores_to_rank(self, X: ArrayLike, qid: ArrayLike) -> FloatArray:
        """The scores, which read the queries where the network reads the context."""
        return self.predict(X, qid=qid)

    def rank(self, X: ArrayLike, *, qid: ArrayLike = None) -> IntArray:
        """Give the place of each row in its query, 1 the best; equal scores keep their order."""
        return places(self.predict(X, qid=qid), on_host(qid))
