"""Rows sorted by query, of which only some are in memory at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from concordant.supervision.queries import Queries
from concordant.supervision.scans.conversion.counts import Counts
from concordant.supervision.scans.conversion.spill import Spill
from concordant.types import IntArray

__all__ = ["by_query"]

MOST_SPILLS, FEWEST_SPILLS = 64, 8  # files that are open at a time
SCATTERED = (
    8  # rows, about, that go to a file at a time at least: to write one takes as long as to write many
)


def by_query(tables: Iterable[Any], counts: Counts, most_rows: int, folder: Path) -> Iterator[Any]:
    """Give tables of at most so many rows, sorted by the id in the first column; equal ids keep their order.

    Rows that are too many go to files by ranges of ids, each of which is then treated in the same way.
    """
    if counts.n_rows <= most_rows or len(counts.ids) == 1:
        yield sorted_table(tables)
        return
    edges = ranges(counts.sizes, most_rows)
    with ExitStack() as stack:
        spills = [stack.enter_context(closing(Spill(folder))) for _ in edges[1:]]
        for table in gathered(tables, most_rows // 4):
            scatter(table, counts.ids[edges[1:-1]], spills)
        for spill, (first, last) in zip(spills, pairwise(edges.tolist()), strict=True):
            with closing(spill):  # its file is closed when it is done, not when all are
                yield from by_query(spill.tables(), counts.within(first, last), most_rows, folder)


def gathered(tables: Iterable[Any], rows: int) -> Iterator[Any]:
    """Join small tables that follow one another until they have so many rows."""
    import pyarrow as pa

    waiting: list[Any] = []
    known = 0
    for table in tables:
        waiting.append(table)
        known += table.num_rows
        if known >= rows:
            yield pa.concat_tables(waiting)
            waiting, known = [], 0
    if waiting:
        yield pa.concat_tables(waiting)


def sorted_table(tables: Iterable[Any]) -> Any:
    """Give all rows, sorted."""
    import pyarrow as pa

    return moved(pa.concat_tables(tables))[0]


def moved(table: Any) -> tuple[Any, Queries]:
    """Give a table sorted by the first column, and the queries of that; a copy more of one column is made."""
    import pyarrow as pa

    queries = Queries.from_ids(table.column(0).to_numpy())
    if queries.moved is None:
        return table, queries
    order = pa.array(queries.moved)
    columns = [column.combine_chunks().take(order) for column in table.columns]
    return pa.table(columns, schema=table.schema), queries


def ranges(sizes: IntArray, most_rows: int) -> IntArray:
    """Cut queries into ranges of at most so many rows, or of more where there would be too many ranges.

    >>> ranges(np.array([2, 2, 3, 1]), 4).tolist()
    [0, 2, 4]
    """
    ends = np.cumsum(sizes)
    spills = min(MOST_SPILLS, max(FEWEST_SPILLS, most_rows // 4 // SCATTERED))
    most_rows = max(most_rows, int(np.ceil(2 * ends[-1] / spills)))
    edges = [0]
    while edges[-1] < len(sizes):
        before = ends[edges[-1] - 1] if edges[-1] else 0
        edges.append(max(edges[-1] + 1, int(np.searchsorted(ends, before + most_rows, side="right"))))
    return np.array(edges)


def scatter(table: Any, firsts: Any, spills: list[Spill]) -> None:
    """Write each row to the file of its range; `firsts` are the ids at which ranges but the first begin."""
    rows, queries = moved(table)
    edges = np.r_[0, queries.offsets[np.searchsorted(queries.ids, firsts)], table.num_rows]
    for spill, (first, last) in zip(spills, pairwise(edges.tolist()), strict=True):
        if first < last:
            spill.write(rows.slice(first, last - first))
