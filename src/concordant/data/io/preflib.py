"""Read PrefLib files: orders with counts (.soc .soi .toc .toi) and weighted directed graphs (.wmd)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from concordant._base.files import COMPRESSED, PathLike, naming_memory, read_lines
from concordant.exceptions import EmptyDataError, MalformedLineError, UnknownNameError
from concordant.types import FloatArray, IntArray

ORDERS = {".soc": (True, True), ".soi": (True, False), ".toc": (False, True), ".toi": (False, False)}
"""Suffix -> (no ties, every alternative is ranked)."""

HEADER = re.compile(r"#\s*(NUMBER ALTERNATIVES|ALTERNATIVE NAME ([0-9]+))\s*:\s*(.*)")
STATED = re.compile(r"#\s*(NUMBER VOTERS|NUMBER UNIQUE ORDERS|NUMBER EDGES)\s*:\s*([0-9]+)\s*")
BALLOT_TOKEN = re.compile(r"\s*(?:([0-9]+)|([{},]))\s*")
EDGE = re.compile(r"\s*(\d+)\s*,\s*(\d+)\s*,\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*", re.ASCII)

Ballot = list[list[int]]


@dataclass(frozen=True, eq=False)
class Profile:
    """Orders given by several people.

    Attributes
    ----------
    names
        Alternatives.
    counts
        Number of people who gave each ballot.
    ballots
        Groups of tied alternatives, best first; alternatives count from 0.
    """

    names: list[str]
    counts: IntArray
    ballots: list[Ballot]

    def matrix(self, *, unranked_last: bool = False) -> FloatArray:
        """Return the number of people who prefer i to j, in row i and column j.

        Ties are not preferences. Neither are alternatives that a ballot leaves out, unless `unranked_last`
        puts them below all ranked ones (tied with one another).

        >>> Profile(["a", "b", "c"], np.array([3]), [[[1], [0]]]).matrix(unranked_last=True).tolist()
        [[0.0, 0.0, 3.0], [3.0, 0.0, 3.0], [0.0, 0.0, 0.0]]
        """
        n = len(self.names)
        preferred = np.zeros((n, n))
        for count, ballot in zip(self.counts.tolist(), self.ballots, strict=True):
            # A comparison with nan is always false.
            position = np.full(n, np.inf if unranked_last else np.nan)
            for rank, group in enumerate(ballot):
                position[group] = rank
            preferred += count * (position[:, None] < position[None, :])
        return preferred


@dataclass(frozen=True, eq=False)
class Digraph:
    """Weighted edges between alternatives, numbered from 0."""

    names: list[str]
    weights: FloatArray
    source: IntArray
    target: IntArray

    def matrix(self) -> FloatArray:
        """Return the sum of the weights from i to j, in row i and column j.

        >>> Digraph(["a", "b"], np.array([2.0]), np.array([0]), np.array([1])).matrix().tolist()
        [[0.0, 2.0], [0.0, 0.0]]
        """
        total = np.zeros((len(self.names), len(self.names)))
        np.add.at(total, (self.source, self.target), self.weights)
        return total


def read_preflib(path: PathLike) -> Profile | Digraph:
    r"""Read the orders or edges of a PrefLib file, plain or compressed (`x.soc.xz`).

    The lines are `count: 1,2,{3,4}` in orders, best first and ties in braces, and `source, target, weight` in
    .wmd, following PrefLib's format specification.

    Raises
    ------
    MalformedLineError
        At the first line that breaks the format or the promise of the suffix: no ties in .soc and .soi, all
        alternatives in .soc and .toc. Also if the header states other numbers of voters, orders or edges than
        the lines below it have. A count of 0 beside others is allowed: some of PrefLib's files have it.

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
    with naming_memory(path):
        return _parse_preflib(path)


def _parse_preflib(path: PathLike) -> Profile | Digraph:
    suffix = (Path(path).with_suffix("") if Path(path).suffix in COMPRESSED else Path(path)).suffix
    if suffix not in (*ORDERS, ".wmd"):
        raise UnknownNameError("PrefLib format", suffix, (*ORDERS, ".wmd"))
    lines = list(read_lines(path))
    header = [(line, text) for line, text in lines if text.startswith("#")]
    names = _parse_names(path, header)
    body = [(line, text) for line, text in lines if text.strip() and not text.startswith("#")]
    if not names and not body:
        raise EmptyDataError(str(path))
    if suffix == ".wmd":
        edges = [_parse_edge(path, line, text, len(names)) for line, text in body]
        _check_header_counts(path, header, {"NUMBER EDGES": len(edges)})
        sources, targets, weights = zip(*edges, strict=True) if edges else ((), (), ())
        return Digraph(names, np.array(weights), np.array(sources, np.int64), np.array(targets, np.int64))
    votes = [_parse_vote(path, line, text, len(names), *ORDERS[suffix]) for line, text in body]
    voters = sum(count for count, _ in votes)
    _check_header_counts(path, header, {"NUMBER VOTERS": voters, "NUMBER UNIQUE ORDERS": len(votes)})
    if votes and not voters:
        raise MalformedLineError(path, body[0][0], 1, "every count is 0", "keep only orders that have votes.")
    counts = np.array([count for count, _ in votes], dtype=np.int64)
    return Profile(names, counts, [ballot for _, ballot in votes])


def _parse_names(path: PathLike, header: list[tuple[int, str]]) -> list[str]:
    """Return the names ordered by their numbers, which must be 1, 2, ... up to the stated count."""
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


def _check_header_counts(
    path: PathLike, header: list[tuple[int, str]], counted_lines: dict[str, int]
) -> None:
    """Compare the numbers in the header with those of the lines: they differ if a file was truncated."""
    for line, text in header:
        match = STATED.fullmatch(text)
        expected = str(counted_lines.get(match[1], "")) if match else ""
        if match and expected and (match[2].lstrip("0") or "0") != expected:
            problem = f"{match[1]} is {match[2][:40]}, but the lines below have {expected}"
            raise MalformedLineError(path, line, 0, problem, "get the file again, or correct the header.")


def _parse_item(path: PathLike, line: int, column: int, digits: str, n_items: int) -> int:
    item = int(digits) if len(digits) < 19 else 0
    if not 1 <= item <= n_items:
        hint = f"the header names alternatives 1 to {n_items}."
        raise MalformedLineError(path, line, column, f"there is no alternative {digits[:40]}", hint)
    return item - 1


def _parse_vote(
    path: PathLike, line: int, text: str, n_items: int, strict: bool, complete: bool
) -> tuple[int, Ballot]:
    """Parse the count and groups of `count: 1,2,{3,4}`."""
    count, colon, order = text.partition(":")
    if not (colon and count.strip().isascii() and count.strip().isdigit() and len(count) < 19):
        raise MalformedLineError(path, line, 1, f"{text[:40]!r} is not `count: order`")
    ballot = _parse_ballot(path, line, order, len(count) + 1, n_items)
    items = [item for group in ballot for item in group]
    if strict and len(items) > len(ballot):
        hint = "rename it .toc or .toi."
        raise MalformedLineError(path, line, 0, "there is a tie in a file of strict orders", hint)
    if complete and len(items) < n_items:
        problem = f"the order has {len(items)} of {n_items} alternatives in a file of complete orders"
        raise MalformedLineError(path, line, 0, problem, "rename it .soi or .toi.")
    return int(count), ballot


def _parse_ballot(path: PathLike, line: int, order: str, shift: int, n_items: int) -> Ballot:
    """Parse the groups of `1,2,{3,4}`: numbers, and braces around several, alternate with commas."""
    ballot: Ballot = []
    ranked: set[int] = set()
    inside, wants_item, at = False, True, 0
    while at < len(order):
        match = BALLOT_TOKEN.match(order, at)
        column = shift + 1 + (match.start(match.lastindex or 0) if match else at)
        piece = match[match.lastindex or 0] if match else order[at]
        if match and match[1] and wants_item:
            item = _parse_item(path, line, column, piece, n_items)
            if item in ranked:
                raise MalformedLineError(path, line, column, f"alternative {piece} is ranked twice")
            ranked.add(item)
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
        raise MalformedLineError(path, line, shift + len(order), "the order is incomplete")
    return ballot


def _parse_edge(path: PathLike, line: int, text: str, n_items: int) -> tuple[int, int, float]:
    match = EDGE.fullmatch(text)
    if not match or not np.isfinite(float(match[3])):
        raise MalformedLineError(path, line, 1, f"{text[:40]!r} is not `source, target, weight`")
    source = _parse_item(path, line, match.start(1) + 1, match[1], n_items)
    target = _parse_item(path, line, match.start(2) + 1, match[2], n_items)
    return source, target, float(match[3])
