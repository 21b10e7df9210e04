"""Index of a scan: which queries each part holds, and the rank of each query among all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant._base.validate import concatenate_ids
from concordant.exceptions import LabelError
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOGETHER = "a query's rows must stand together; cc.write_parquet(source, path) writes files where they do."
Piece = tuple["NDArray[Any]", IntArray, FloatArray | None]


@dataclass(frozen=True, eq=False)
class Index:
    """Queries of all parts, part by part; within a part their ids ascend.

    Attributes
    ----------
    ids, sizes
        Id and number of rows of each query.
    edges
        Part `k` holds queries `edges[k]:edges[k + 1]`.
    weights
        Weights of the queries, from `query_weight`; None: all are 1.
    """

    ids: NDArray[Any]
    sizes: IntArray
    edges: IntArray
    weights: FloatArray | None = None

    @classmethod
    def from_pieces(cls, pieces: Sequence[Piece], names: Sequence[str], hint: str = TOGETHER) -> Index:
        """Concatenate the queries of the parts; raise LabelError if a query is in two parts.

        Parameters
        ----------
        pieces
            For each part: the ids of its queries, ascending, their sizes, and their weights or None.
        names
            Names of the parts, for the message.
        hint
            What to do if a query is cut, for the message.

        Examples
        --------
        >>> one, other = (np.array([7]), np.array([2]), None), (np.array([3]), np.array([1]), None)
        >>> Index.from_pieces([one, other], ["a", "b"]).ranks
        array([1, 0])
        """
        ids = concatenate_part_ids([ids for ids, _, _ in pieces], names)
        sizes = np.concatenate([sizes for _, sizes, _ in pieces]).astype(np.int64)
        weights = [weights for _, _, weights in pieces if weights is not None]
        edges = np.cumsum([0, *(len(ids) for ids, _, _ in pieces)])
        index = cls(ids, sizes, edges, np.concatenate(weights) if weights else None)
        index.refuse_cut(names, hint)
        return index

    def refuse_cut(self, names: Sequence[str], hint: str) -> None:
        """Raise if two parts have rows of the same query."""
        ordered = self.ids[self.order]
        if not (same := np.flatnonzero(ordered[1:] == ordered[:-1])).size:
            return
        both = self.order[same[0] : same[0] + 2]
        first_part, second_part = sorted(np.searchsorted(self.edges, both, side="right") - 1)
        query, parts = ordered[same[0]].item(), f"{names[first_part]} and {names[second_part]}"
        problem = f"query {query!r} is cut: it has rows in {parts}"
        raise LabelError(problem, hint)

    @cached_property
    def order(self) -> IntArray:
        """Query numbers by ascending id."""
        return np.argsort(self.ids, kind="stable")

    @cached_property
    def ranks(self) -> IntArray:
        """Rank of each query by ascending id."""
        ranks = np.empty(len(self.ids), dtype=np.int64)
        ranks[self.order] = np.arange(len(ranks))
        return ranks

    @property
    def offsets(self) -> IntArray:
        """Row offsets of the queries if all parts were sorted by query id."""
        return np.concatenate(([0], np.cumsum(self.sizes[self.order])))

    def part_slice(self, part: int) -> slice:
        """Slice of a part's queries."""
        return slice(int(self.edges[part]), int(self.edges[part + 1]))

    @property
    def n_queries(self) -> int:
        """Number of queries in all parts."""
        return len(self.ids)

    @property
    def n_rows(self) -> int:
        """Number of rows in all parts."""
        return int(self.sizes.sum())


def concatenate_part_ids(columns: Sequence[NDArray[Any]], names: Sequence[str] = ()) -> NDArray[Any]:
    """Concatenate ids in a dtype that changes none of them; text and numbers are not mixed.

    `names`: of the parts, for the message.
    """
    all_ids = columns[0]
    if all(ids.dtype == all_ids.dtype for ids in columns):
        return np.concatenate(columns)
    for number, ids in enumerate(columns[1:], start=1):
        try:
            all_ids = concatenate_ids(all_ids, ids)
        except LabelError as error:
            if names:
                error.args = (f"{names[0]} and {names[number]}: {error}",)
            raise
    return all_ids
