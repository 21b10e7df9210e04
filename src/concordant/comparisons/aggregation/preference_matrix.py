"""Conversion of votes of every kind to a matrix: row i, column j is how much i is preferred to j."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from concordant._base.files import COMPRESSED, PathLike
from concordant._base.validate import check_choice
from concordant.data.io import Digraph, Profile, read_comparisons, read_preflib
from concordant.data.io.preflib import ORDERS
from concordant.data.io.tables import FORMATS
from concordant.data.labels import Comparisons, Preferences, warn_about_similar_names
from concordant.decoders.decoded import check_square
from concordant.exceptions import (
    EmptyDataError,
    LabelError,
    LengthMismatchError,
    NotNumericError,
    ParameterError,
    ShapeError,
    UnknownNameError,
)
from concordant.types import ArrayLike, FloatArray

# Names of items: text or whole numbers, all different.

Item = str | int
"""What an item is called."""


def _check_item(item: Any, where: str) -> Item:
    """Check for text or a whole number; return it as a Python str or int."""
    if isinstance(item, str):
        return str(item)
    if isinstance(item, Integral) and not isinstance(item, bool):
        return int(item)
    problem = f"{where} has the item {str(item)[:40]!r}, a {type(item).__name__}"
    hint = "items are text or integers; a list inside an order is a tie; pass a matrix as a numpy array."
    raise LabelError(problem, hint)


def _check_names(names: Iterable[Any]) -> tuple[Item, ...]:
    if isinstance(names, (str, set, frozenset)) or not isinstance(names, Iterable):
        raise ParameterError("names", names, "a list of one name per item")
    checked_names = tuple(_check_item(name, "names") for name in names)
    if len(set(checked_names)) < len(checked_names):
        twice, _ = Counter(checked_names).most_common(1)[0]
        raise LabelError(f"{twice!r} is the name of two items", "pass names= that are all different.")
    warn_about_similar_names(checked_names, stacklevel=5)
    return checked_names


def _resolve_names(names: tuple[Item, ...] | None, vote_names: Sequence[Item]) -> tuple[Item, ...]:
    """Check the names of items that votes refer to by number; by default the names of the votes."""
    if names is None:
        return _check_names(vote_names)
    if len(names) != len(vote_names):
        raise LengthMismatchError("names", len(names), len(vote_names), "the matrix of votes")
    return names


def _sorted_items(items: Iterable[Item]) -> tuple[Item, ...]:
    """Return the distinct items, sorted: the ranking must not depend on who voted first."""
    texts, numbers = set[str](), set[int]()
    for item in items:
        texts.add(item) if isinstance(item, str) else numbers.add(item)
    if texts and numbers:
        problem = f"orders mix text and numbers: {min(texts)!r} and {min(numbers)}"
        raise LabelError(problem, "name every item in the same way.")
    sorted_items: tuple[Item, ...] = (*sorted(texts), *sorted(numbers))
    warn_about_similar_names(sorted_items, stacklevel=5)
    return sorted_items


class Lookup(dict[Item, int]):
    """Number of each item by name; if no name is a number, also by number.

    >>> Lookup(("tea", "milk"))["milk"], Lookup(("tea", "milk"))[1], Lookup((1, 0))[1]
    (1, 1, 0)
    """

    def __init__(self, names: Sequence[Item]) -> None:
        super().__init__({name: number for number, name in enumerate(names)})
        self.by_number = all(isinstance(name, str) for name in names)

    def __missing__(self, item: Item) -> int:
        if self.by_number and isinstance(item, int) and 0 <= item < len(self):
            return item
        raise UnknownNameError("item", item, map(str, self))


UNRANKED = ("ignore", "last")
KINDS = (
    "votes are a list of orders (lists of items, best first), a square numpy array, cc.Comparisons (of a "
    "frame: cc.read_comparisons), cc.Preferences, what cc.read_preflib gives, or a path."
)

ItemNames = tuple[Item, ...]
ParsedVotes = Profile | Digraph | FloatArray


def build_vote_matrix(votes: Any, names: Iterable[Any] | None, unranked: str) -> tuple[FloatArray, ItemNames]:
    """Build the preference matrix of votes of any kind; return it with the names of its rows."""
    check_choice("unranked", unranked, UNRANKED)
    parsed, items = _parse_votes(votes, None if names is None else _check_names(names))
    if not items:
        raise EmptyDataError("votes")
    if isinstance(parsed, Profile):
        weights = parsed.matrix(unranked_last=unranked == "last")
    elif unranked == "last":
        raise ParameterError("unranked", unranked, "'ignore' for votes that are not orders")
    else:
        weights = parsed.matrix() if isinstance(parsed, Digraph) else parsed
    np.fill_diagonal(weights, 0.0)  # an item against itself is no preference
    return _refuse_negative(weights), items


def _parse_votes(votes: Any, names: ItemNames | None) -> tuple[ParsedVotes, ItemNames]:
    """Convert votes to a profile, graph or matrix; return it with the names of the items."""
    if isinstance(votes, str | os.PathLike):
        votes = read_votes(votes)
    if isinstance(votes, list | tuple):
        return _as_profile(votes, names)
    if isinstance(votes, Comparisons):
        return _comparison_graph(votes, names)
    if isinstance(votes, Profile | Digraph):
        return votes, _resolve_names(names, votes.names)
    if isinstance(votes, Preferences):
        items = _resolve_names(names, range(votes.n_rows))
        return Digraph([*map(str, items)], votes.weights, votes.better, votes.worse), items
    labels, weights = _column_labels(votes), _check_matrix(votes)
    return weights, _resolve_names(names, labels or range(len(weights)))


def _column_labels(frame: Any) -> list[Any] | None:
    columns = getattr(frame, "columns", None)
    return None if columns is None else list(columns)


def read_votes(path: PathLike, **columns: Any) -> Profile | Digraph | Comparisons:
    """Read a PrefLib file or a table of comparisons, by the suffix of the path.

    Parameters
    ----------
    path
        The file, plain or compressed.
    **columns
        For tables only: left, right, outcome and outcomes, as in `read_comparisons`.
    """
    inner = Path(path).with_suffix("") if Path(path).suffix in COMPRESSED else Path(path)
    if inner.suffix in FORMATS:
        return read_comparisons(path, **columns)
    if inner.suffix not in (*ORDERS, ".wmd"):
        raise UnknownNameError("format of votes", inner.suffix, (*ORDERS, ".wmd", *FORMATS))
    if columns:
        raise ParameterError.because(
            f"{next(iter(columns))} was given, but PrefLib files have no columns. Leave it out."
        )
    return read_preflib(path)


def _comparison_graph(votes: Comparisons, names: ItemNames | None) -> tuple[Digraph, ItemNames]:
    """Build the graph of edges from the better to the worse item of each comparison; ties have no edge."""
    items: ItemNames = tuple(votes.items.tolist()) if names is None else names
    item_numbers = Lookup(items)
    number = np.array([item_numbers[item] for item in votes.items.tolist()], dtype=np.int64)
    left, right = number[votes.left_codes], number[votes.right_codes]
    decided, first = votes.outcome != 0, votes.outcome < 0
    better, worse = np.where(first, left, right)[decided], np.where(first, right, left)[decided]
    return Digraph([*map(str, items)], np.ones(len(better)), better, worse), items


def _check_matrix(votes: ArrayLike) -> FloatArray:
    """Check for a square matrix of numbers with a zero diagonal; return a copy."""
    try:
        weights = check_square(votes.toarray() if hasattr(votes, "toarray") else votes, "votes").copy()
    except (NotNumericError, ShapeError) as error:
        raise LabelError(str(error).partition("\n")[0].removesuffix("."), KINDS) from error
    if (loops := np.flatnonzero(np.diag(weights))).size:
        problem = f"votes[{loops[0]}, {loops[0]}] = {weights[loops[0], loops[0]]:g} prefers an item to itself"
        raise LabelError(problem, "set the diagonal to 0; orders are passed as a list of lists.")
    return weights


def _refuse_negative(weights: FloatArray) -> FloatArray:
    if (bad := np.argwhere(weights < 0)).size:
        i, j = bad[0]
        hint = "margins (votes for less votes against) become votes by np.maximum(margins, 0)."
        raise LabelError(f"votes[{i}, {j}] = {weights[i, j]:g} is negative", hint)
    return weights


def _as_profile(orders: Sequence[Any], names: ItemNames | None = None) -> tuple[Profile, ItemNames]:
    """Convert orders of items to a profile of distinct ballots with counts; return it with the items.

    Parameters
    ----------
    orders
        One per voter: items, best first; a list, tuple or set among them is a tie.
    names
        All items; None: those that occur, sorted.

    Examples
    --------
    >>> profile, items = _as_profile([["b", "a"], ["b", "a"], ["c", {"a", "b"}]])
    >>> items, profile.counts.tolist(), profile.ballots
    (('a', 'b', 'c'), [2, 1], [[[1], [0]], [[2], [0, 1]]])
    """
    if not orders:
        raise EmptyDataError("votes")
    ballots = [[*_iter_groups(order, number)] for number, order in enumerate(orders)]
    if names is None:
        names = _sorted_items(item for ballot in ballots for group in ballot for item in group)
    item_numbers = Lookup(names)
    counts: Counter[tuple[tuple[int, ...], ...]] = Counter()
    for number, ballot in enumerate(ballots):
        coded = tuple(tuple(sorted(item_numbers[item] for item in group)) for group in ballot)
        _refuse_repeated([item for group in coded for item in group], names, number)
        counts[coded] += 1
    ballot_lists = [[list(group) for group in ballot] for ballot in counts]
    return Profile([*map(str, names)], np.array([*counts.values()]), ballot_lists), names


def _iter_groups(order: Any, number: int) -> Iterator[list[Item]]:
    """Iterate over the groups of tied items of an order, best first."""
    if not isinstance(order, list | tuple | range | np.ndarray):
        problem = f"order {number} is {str(order)[:40]!r}, a {type(order).__name__}"
        raise LabelError(problem, f"give each order as a list of items, best first; {KINDS}")
    for entry in order:
        tied = entry if isinstance(entry, list | tuple | set | frozenset | np.ndarray) else (entry,)
        yield [_check_item(item, f"order {number}") for item in tied]


def _refuse_repeated(items: list[int], names: ItemNames, number: int) -> None:
    if len(set(items)) < len(items):
        item, _ = Counter(items).most_common(1)[0]
        hint = "an order names each item at most once; a matrix of votes is passed as a numpy array."
        raise LabelError(f"order {number} names {names[item]!r} twice", hint)
