"""Index: which queries each part holds, and where each stands among all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import LabelError
from concordant.supervision.columns import joined_ids
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Index", "Piece", "joined"]

TOGETHER = "a query's rows must stand together; cc.write_parquet(source, path) writes files where they do."
Piece = tuple["NDArray[Any]", IntArray, FloatArray | None]


@dataclass(frozen=True, eq=False)
class Index:
    """The queries of all parts, part by part; within a part their ids ascend.

    Attributes
    ----------
    ids, sizes
        Id and number of rows of each query.
    edges
        Part `k` holds queries `edges[k]:edges[k + 1]`.
    weights
        Of the queries, as `query_weight` says; None: all are 1.
    """

    ids: NDArray[Any]
    sizes: IntArray
    edges: IntArray
    weights: FloatArray | None = None

    @classmethod
    def of(cls, pieces: Sequence[Piece], names: Sequence[str], hint: str = TOGETHER) -> Index:
        """Join the queries of parts; one that stands in two of them is refused by its name.

        Parameters
        ----------
        pieces
            Of each part the ids of its queries, ascending, their sizes, and their weights or None.
        names
            Of the parts, for the message.
        hint
            What to do where a query is cut.

        Examples
        --------
        >>> one, other = (np.array([7]), np.array([2]), None), (np.array([3]), np.array([1]), None)
        >>> Index.of([one, other], ["a", "b"]).ranks
        array([1, 0])
        """
        ids = joined([ids for ids, _, _ in pieces], names)
        sizes = np.concatenate([sizes for _, sizes, _ in pieces]).astype(np.int64)
        weights = [weights for _, _, weights in pieces if weights is not None]
        edges = np.cumsum([0, *(len(ids) for ids, _, _ in pieces)])
        found = cls(ids, sizes, edges, np.concatenate(weights) if weights else None)
        found.refuse_cut(names, hint)
        return found

    def refuse_cut(self, names: Sequence[str], hint: str) -> None:
        """Refuse a query of which two parts have rows."""
        ordered = self.ids[self.order]
        if not (same := np.flatnonzero(ordered[1:] == ordered[:-1])).size:
            return
        both = self.order[same[0] : same[0] + 2]
        one, other = sorted(np.searchsorted(self.edges, both, side="right") - 1)
        query, places = ordered[same[0]].item(), f"{names[one]} and {names[other]}"
        problem = f"query {query!r} is cut: it has rows in {places}"
        raise LabelError(problem, hint)

    @cached_property
    def order(self) -> IntArray:
        """Queries by ascending id."""
        return np.argsort(self.ids, kind="stable")

    @cached_property
    def ranks(self) -> IntArray:
        """Place of each query in the order of all ids."""
        ranks = np.empty(len(self.ids), dtype=np.int64)
        ranks[self.order] = np.arange(len(ranks))
        return ranks

    @property
    def offsets(self) -> IntArray:
        """Where each query would start if all parts were sorted by the ids of their queries."""
        return np.concatenate(([0], np.cumsum(self.sizes[self.order])))

    def own(self, part: int) -> slice:
        """Places of a part's queries."""
        return slice(int(self.edges[part]), int(self.edges[part + 1]))

    @property
    def n_queries(self) -> int:
        """Queries of all parts."""
        return len(self.ids)

    @property
    def n_rows(self) -> int:
        """Rows of all parts."""
        return int(self.sizes.sum())


def joined(columns: Sequence[NDArray[Any]], names: Sequence[str] = ()) -> NDArray[Any]:
    """Give ids of all parts in a type in which none changes; text and numbers are not mixed.

    `names`: of the parts, for the message.
    """
    first = columns[0]
    if all(ids.dtype == first.dtype for ids in columns):
        return np.concatenate(columns)
    for place, ids in enumerate(columns[1:], start=1):
        try:
            first = joined_ids(first, ids)
        except LabelError as error:
            if names:
                error.args = (f"{names[0]} and {names[place]}: {error}",)
            raise
    return first
