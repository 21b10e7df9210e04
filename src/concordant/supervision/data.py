"""RankingData: what every reader, dataset and generator of graded queries returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["RankingData"]


@dataclass(frozen=True, eq=False)
class RankingData:
    """Rows of a learning-to-rank set, in file order.

    Attributes
    ----------
    X
        Features, one row per document; dense unless sparse was asked for.
    y
        Grade of each row.
    qid
        Query id of each row, in any order.
    docid
        Document id (or comment) of each row, `None` where the source has none.

    Examples
    --------
    >>> data = RankingData(X=np.ones((2, 3)), y=np.array([1.0, 0.0]), qid=np.array([7, 7]))
    >>> data
    RankingData(n_rows=2, n_features=3, n_queries=1)
    """

    X: Any
    y: np.ndarray
    qid: np.ndarray
    docid: np.ndarray | None = None

    @classmethod
    def like(cls, data: Any) -> RankingData | None:
        """Give what has X, y and qid (a dataset, synthetic data) as ranking data; None where it has not."""
        if isinstance(data, cls):
            return data
        if hasattr(type(data), "columns") or not all(hasattr(data, name) for name in ("X", "y", "qid")):
            return None  # a frame may have columns of these names
        return cls(data.X, data.y, data.qid, getattr(data, "docid", None))

    @property
    def n_queries(self) -> int:
        """How many different query ids there are."""
        return len(np.unique(self.qid))

    def __repr__(self) -> str:
        rows, features = self.X.shape
        return f"RankingData(n_rows={rows:,}, n_features={features:,}, n_queries={self.n_queries:,})"
