"""PrefLib files: orders with counts (.soc .soi .toc .toi) and weighted directed graphs (.wmd)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from concordant.exceptions import EmptyDataError, MalformedLineError, UnknownNameError
from concordant.supervision.readers.text import COMPRESSED, PathLike, read_lines
from concordant.types import FloatArray, IntArray

__all__ = ["Digraph", "Profile", "read_preflib"]

ORDERS = {".soc": (True, True), ".soi": (True, False), ".toc": (False, True), ".toi": (False, False)}
"""Suffix -> (no ties, every alternative is ranked)."""

HEADER = re.compile(r"#\s*(NUMBER ALTERNATIVES|ALTERNATIVE NAME (\d+))\s*:\s*(.*)")
BALLOT_TOKEN = re.compile(r"\s*(?:(\d+)|([{},]))\s*")
EDGE = re.compile(r"\s*(\d+)\s*,\s*(\d+)\s*,\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*")

Ballot = list[list[int]]


@dataclass(frozen=True, eq=False)
class Profile:
    """Orders of several people.

    Attributes
    ----------
    names
        Alternatives.
    counts
        How many people gave each ballot.
    ballots
        Groups of tied alternatives, best first; alternatives count from 0.
    """

    names: list[str]
    counts: IntArray
    ballots: list[Ballot]

    def matrix(self, *, unranked_last: bool = False) -> FloatArray:
        """How many prefer i to j, in row i and column j.

        Ties are no preference. Nor are alternatives that a ballot leaves out, unless `unranked_last` puts
        them below all it ranks (tied with one another).

        >>> Profile(["a", "b", "c"], np.array([3]), [[[1], [0]]]).matrix(unranked_last=True).tolist()
        [[0.0, 0.0, 3.0], [3.0, 0.0, 3.0], [0.0, 0.0, 0.0]]
        """
        n = len(self.names)
        preferred = np.zeros((n, n))
        for count, ballot in zip(self.counts.tolist(), self.ballots, strict=True):
            place = np.full(n, np.inf if unranked_last else np.nan)  # a comparison with nan is never true
            for rank, group in enumerate(ballot):
                place[group] = rank
            preferred += count * (place[:, None] < place[None, :])
        return preferred


@dataclass(frozen=True, eq=False)
class Digraph:
    """Weighted edges between alternatives, which count from 0."""

    names: list[str]
    weights: FloatArray
    source: IntArray
    target: IntArray

    def matrix(self) -> FloatArray:
        """Sum of the weights from i to j, in row i and column j.

        >>> Digraph(["a", "b"], np.array([2.0]), np.array([0]), np.array([1])).matrix().tolist()
        [[0.0, 2.0], [0.0, 0.0]]
        """
        total = np.zeros((len(self.names), len(self.names)))
        np.add.at(total, (self.source, self.target), self.weights)
        return total


def read_preflib(path: PathLike) -> Profile | Digraph:
    r"""Orders or edges of a PrefLib file, plain or compressed (`x.soc.xz`).

    The lines are `count: 1,2,{3,4}` in orders, best first and ties in braces, and `source, target, weight` in
    .wmd, as PrefLib's format specification has them.

    Raises
    ------
    MalformedLineError
        At the first line that breaks the format or what the suffix promises: no ties in .soc and .soi, all
        alternatives in .soc and .toc.

    Examples
    --------
    >>> import tempfile
    >>> text = "# ALTERNATIVE NAME 1: tea\n# ALTERNATIVE NAME 2: milk\n3: 2,1\n1: {1,2}\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "drinks.toc").write_text(text)
    ...     profile = read_preflib(Path(folder, "drinks.toc"))
    >>> profile.names, profile.counts.tolist(), profile.ballots
    (['tea', 'milk'], [3, 1], [[[1], [0]], [[0, 1]]])
    """
    suffix = (Path(path).with_suffix("") if Path(path).suffix in COMPRESSED else Path(path)).suffix
    if suffix not in (*ORDERS, ".wmd"):
        raise UnknownNameError("PrefLib format", suffix, (*ORDERS, ".wmd"))
    lines = list(read_lines(path))
    names = _names(path, [(line, text) for line, text in lines if text.startswith("#")])
    body = [(line, text) for line, text in lines if text.strip() and not text.startswith("#")]
    if not names and not body:
        raise EmptyDataError(str(path))
    if suffix == ".wmd":
        edges = [_edge(path, line, text, len(names)) for line, text in body]
        sources, targets, weights = zip(*edges, strict=True) if edges else ((), (), ())
        return Digraph(names, np.array(weights), np.array(sources, np.int64), np.array(targets, np.int64))
    votes = [_vote(path, line, text, len(names), *ORDERS[suffix]) for line, text in body]
    counts = np.array([count for count, _ in votes], dtype=np.int64)
    return Profile(names, counts, [ballot for _, ballot in votes])


def _names(path: PathLike, header: list[tuple[int, str]]) -> list[str]:
    """Names in order of their numbers, which must be 1, 2, ... up to the stated count."""
    names, stated, last = {}, None, 1
    for line, text in header:
        match = HEADER.match(text)
        if match and match[2]:
            if int(match[2]) in names:
                raise MalformedLineError(path, line, 0, f"alternative {match[2]} is named twice")
            names[int(match[2])] = match[3].strip()
            last = line
        elif match and match[3].strip().isascii() and match[3].strip().isdigit():
            stated = int(match[3][:18])
    n = len(names) if stated is None else stated
    missing = [number for number in range(1, min(n, len(names) + 1) + 1) if number not in names]
    missing += sorted(number for number in names if number > n)
    if missing:
        problem = f"of {n} alternatives, number {missing[0]} is unnamed or unexpected"
        raise MalformedLineError(path, last, 0, problem)
    return [names[number] for number in range(1, n + 1)]


def _item(path: PathLike, line: int, column: int, digits: str, n_items: int) -> int:
    item = int(digits) if len(digits) < 19 else 0
    if not 1 <= item <= n_items:
        hint = f"the header names alternatives 1 to {n_items}."
        raise MalformedLineError(path, line, column, f"there is no alternative {digits[:40]}", hint)
    return item - 1


def _vote(
    path: PathLike, line: int, text: str, n_items: int, strict: bool, complete: bool
) -> tuple[int, Ballot]:
    """Count and groups of `count: 1,2,{3,4}`."""
    count, colon, order = text.partition(":")
    if not (colon and count.strip().isascii() and count.strip().isdigit() and len(count) < 19):
        raise MalformedLineError(path, line, 1, f"{text[:40]!r} is not `count: order`")
    ballot = _ballot(path, line, order, len(count) + 1, n_items)
    items = [item for group in ballot for item in group]
    if strict and len(items) > len(ballot):
        hint = "rename it .toc or .toi."
        raise MalformedLineError(path, line, 0, "a tie, in a file of strict orders", hint)
    if complete and len(items) < n_items:
        problem = f"{len(items)} alternatives of {n_items}, in a file of complete orders"
        raise MalformedLineError(path, line, 0, problem, "rename it .soi or .toi.")
    return int(count), ballot


def _ballot(path: PathLike, line: int, order: str, shift: int, n_items: int) -> Ballot:
    """Groups of `1,2,{3,4}`; numbers, and braces around several, alternate with commas."""
    ballot: Ballot = []
    seen: set[int] = set()
    inside, wants_item, at = False, True, 0
    while at < len(order):
        match = BALLOT_TOKEN.match(order, at)
        column = shift + 1 + (match.start(match.lastindex or 0) if match else at)
        piece = match[match.lastindex or 0] if match else order[at]
        if match and match[1] and wants_item:
            item = _item(path, line, column, piece, n_items)
            if item in seen:
                raise MalformedLineError(path, line, column, f"alternative {piece} is ranked twice")
            seen.add(item)
            if inside:
                ballot[-1].append(item)
            else:
                ballot.append([item])
            wants_item = False
        elif piece == "," and not wants_item:
            wants_item = True
        elif piece == "{" and wants_item and not inside:
            inside = True
            ballot.append([])
        elif piece == "}" and inside and not wants_item:
            inside = False
        else:
            raise MalformedLineError(path, line, column, f"{piece!r} does not fit `1,2,{{3,4}}`")
        at = match.end() if match else at
    if inside or wants_item:
        raise MalformedLineError(path, line, shift + len(order), "the order breaks off")
    return ballot


def _edge(path: PathLike, line: int, text: str, n_items: int) -> tuple[int, int, float]:
    """Source, target and weight."""
    match = EDGE.fullmatch(text)
    if not match or not np.isfinite(float(match[3])):
        raise MalformedLineError(path, line, 1, f"{text[:40]!r} is not `source, target, weight`")
    source, target = (_item(path, line, match.start(group) + 1, match[group], n_items) for group in (1, 2))
    return source, target, float(match[3])
