"""Anything that counts as votes becomes a matrix: row i, column j is how much i is preferred to j."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from concordant.aggregation.items import Item, Lookup, check_item, check_names, named, sorted_items
from concordant.decoders.decoded import check_square
from concordant.exceptions import (
    EmptyDataError,
    LabelError,
    NotNumericError,
    ParameterError,
    ShapeError,
    UnknownNameError,
)
from concordant.supervision.labels import Comparisons, Preferences
from concordant.supervision.readers import Digraph, Profile, read_comparisons, read_preflib
from concordant.supervision.readers.preflib import ORDERS
from concordant.supervision.readers.tables import FORMATS
from concordant.supervision.readers.text import COMPRESSED, PathLike
from concordant.types import ArrayLike, FloatArray

__all__ = ["UNRANKED", "as_profile", "matrix_of", "read_votes"]

UNRANKED = ("ignore", "last")
KINDS = (
    "votes are a list of orders (lists of items, best first), a square numpy array, cc.Comparisons (of a "
    "frame: cc.read_comparisons), cc.Preferences, what cc.read_preflib gives, or a path."
)

Items = tuple[Item, ...]
Votes = Profile | Digraph | FloatArray


def matrix_of(votes: Any, names: Iterable[Any] | None, unranked: str) -> tuple[FloatArray, Items]:
    """Give the matrix of any votes, and what its rows are called."""
    if unranked not in UNRANKED:
        raise ParameterError("unranked", unranked, f"one of {', '.join(map(repr, UNRANKED))}")
    found, items = known(votes, None if names is None else check_names(names))
    if not items:
        raise EmptyDataError("votes")
    if isinstance(found, Profile):
        weights = found.matrix(unranked_last=unranked == "last")
    elif unranked == "last":
        raise ParameterError("unranked", unranked, "'ignore' where votes are no orders: nothing is unranked")
    else:
        weights = found.matrix() if isinstance(found, Digraph) else found
    np.fill_diagonal(weights, 0.0)  # an item against itself is no preference
    return refuse_negative(weights), items


def known(votes: Any, names: Items | None) -> tuple[Votes, Items]:
    """Give votes of a known kind, and what their items are called."""
    if isinstance(votes, str | os.PathLike):
        votes = read_votes(votes)
    if isinstance(votes, list | tuple):
        return as_profile(votes, names)
    if isinstance(votes, Comparisons):
        return won(votes, names)
    if isinstance(votes, Profile | Digraph):
        return votes, named(names, votes.names)
    if isinstance(votes, Preferences):
        items = named(names, range(votes.n_rows))
        return Digraph([*map(str, items)], votes.weights, votes.better, votes.worse), items
    labels, weights = labels_of(votes), check_matrix(votes)
    return weights, named(names, labels or range(len(weights)))


def labels_of(frame: Any) -> list[Any] | None:
    """Give the columns of a frame; None of an array. Rows that are labelled must be so alike."""
    columns = getattr(frame, "columns", None)
    if columns is None:
        return None
    labels, index = list(columns), list(getattr(frame, "index", []))
    if len(index) == len(labels) and index not in (labels, list(range(len(labels)))):
        problem = f"row {index[0]!r} of the votes stands beside column {labels[0]!r}"
        raise LabelError(problem, "label rows and columns alike, in the same order: frame[frame.index].")
    return labels


def read_votes(path: PathLike, **columns: Any) -> Profile | Digraph | Comparisons:
    """Read a PrefLib file or a table of comparisons, whichever the suffix names.

    Parameters
    ----------
    path
        The file, plain or compressed.
    **columns
        Of tables only: left, right, outcome and outcomes, as `read_comparisons` takes them.
    """
    inner = Path(path).with_suffix("") if Path(path).suffix in COMPRESSED else Path(path)
    if inner.suffix in FORMATS:
        return read_comparisons(path, **columns)
    if inner.suffix not in (*ORDERS, ".wmd"):
        raise UnknownNameError("format of votes", inner.suffix, (*ORDERS, ".wmd", *FORMATS))
    if columns:
        raise ParameterError(*next(iter(columns.items())), "left out: PrefLib files have no columns")
    return read_preflib(path)


def won(votes: Comparisons, names: Items | None) -> tuple[Digraph, Items]:
    """Give an edge from the better to the worse item of each comparison; a tie prefers neither."""
    items: Items = tuple(votes.items.tolist()) if names is None else names
    place = Lookup(items)
    number = np.array([place[item] for item in votes.items.tolist()], dtype=np.int64)
    left, right = number[votes.left_codes], number[votes.right_codes]
    decided, first = votes.outcome != 0, votes.outcome < 0
    better, worse = np.where(first, left, right)[decided], np.where(first, right, left)[decided]
    return Digraph([*map(str, items)], np.ones(len(better)), better, worse), items


def check_matrix(votes: ArrayLike) -> FloatArray:
    """Give a copy of a square matrix of numbers with nothing on its diagonal."""
    try:
        weights = check_square(votes.toarray() if hasattr(votes, "toarray") else votes, "votes").copy()
    except (NotNumericError, ShapeError) as error:
        raise LabelError(str(error).partition("\n")[0].removesuffix("."), KINDS) from error
    if (own := np.flatnonzero(np.diag(weights))).size:
        problem = f"votes[{own[0]}, {own[0]}] = {weights[own[0], own[0]]:g} prefers an item to itself"
        raise LabelError(problem, "set the diagonal to 0; orders are passed as a list of lists.")
    return weights


def refuse_negative(weights: FloatArray) -> FloatArray:
    """Refuse weights below 0."""
    if (bad := np.argwhere(weights < 0)).size:
        i, j = bad[0]
        hint = "margins (votes for less votes against) become votes by np.maximum(margins, 0)."
        raise LabelError(f"votes[{i}, {j}] = {weights[i, j]:g} is negative", hint)
    return weights


def as_profile(orders: Sequence[Any], names: Items | None = None) -> tuple[Profile, Items]:
    """Give orders of items as ballots of item numbers, equal ones counted together; and the items.

    Parameters
    ----------
    orders
        One a voter: items, best first; a list, tuple or set among them is a tie.
    names
        All items; None: those that occur, sorted.

    Examples
    --------
    >>> profile, items = as_profile([["b", "a"], ["b", "a"], ["c", {"a", "b"}]])
    >>> items, profile.counts.tolist(), profile.ballots
    (('a', 'b', 'c'), [2, 1], [[[1], [0]], [[2], [0, 1]]])
    """
    if not orders:
        raise EmptyDataError("votes")
    ballots = [[*groups(order, number)] for number, order in enumerate(orders)]
    if names is None:
        names = sorted_items(item for ballot in ballots for group in ballot for item in group)
    place = Lookup(names)
    counts: Counter[tuple[tuple[int, ...], ...]] = Counter()
    for number, ballot in enumerate(ballots):
        coded = tuple(tuple(sorted(place[item] for item in group)) for group in ballot)
        refuse_repeated([item for group in coded for item in group], names, number)
        counts[coded] += 1
    found = [[list(group) for group in ballot] for ballot in counts]
    return Profile([*map(str, names)], np.array([*counts.values()]), found), names


def groups(order: Any, number: int) -> Iterator[list[Item]]:
    """Give the groups of tied items of one order, best first."""
    if not isinstance(order, list | tuple | range | np.ndarray):
        problem = f"order {number} is {str(order)[:40]!r}, a {type(order).__name__}"
        raise LabelError(problem, f"give each order as a list of items, best first; {KINDS}")
    for entry in order:
        tied = entry if isinstance(entry, list | tuple | set | frozenset | np.ndarray) else (entry,)
        yield [check_item(item, f"order {number}") for item in tied]


def refuse_repeated(items: list[int], names: Items, number: int) -> None:
    """Refuse an order that names an item twice."""
    if len(set(items)) < len(items):
        item, _ = Counter(items).most_common(1)[0]
        hint = "an order names each item at most once; a matrix of votes is passed as a numpy array."
        raise LabelError(f"order {number} names {names[item]!r} twice", hint)
