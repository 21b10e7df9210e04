"""Search for a mixture of labels at which no pattern of scores is left: what `impossibility` proves with.

>>> from concordant.metrics import metric
>>> from concordant.theory.spaces import every_label
>>> known = table(metric("zero_one"), every_label("permutations", 3))
>>> mixed = ruling_out(known)
>>> [written(label) for label in mixed.labels], [str(prob) for prob in mixed.probs]
(['1>2>3', '3>2>1'], ['1/2', '1/2'])
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from concordant.metrics.metric import Metric
from concordant.supervision.synthetic.distribution import Label
from concordant.theory.exact.labels import ExactLabel, read
from concordant.theory.exact.values import Order, order_value
from concordant.theory.search.patterns import compatible, every_pattern
from concordant.theory.spaces import written  # noqa: F401  # for the example
from concordant.types import BoolArray

__all__ = ["Mixed", "Table", "ruling_out", "table"]

Parts: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]  # rows of a table, and the parts they are mixed in
MOST = {1: 5000, 2: 250, 3: 80}  # of so many labels, the smallest ones, are one, two or three mixed


class Mixed(NamedTuple):
    """A distribution of labels."""

    labels: tuple[Label, ...]
    probs: tuple[Fraction, ...]


class Table(NamedTuple):
    """What orders are worth under each label.

    Attributes
    ----------
    labels
        Small ones first.
    sizes, leanings
        Of each label: its size, and how much it speaks for each item.
    orders
        All orders of the items.
    worth
        One row per label, one column per order: whole numbers, the exact values times a common factor, which
        is negative where small values are better.
    kinds
        One number per label, the same for labels that renaming the items turns into one another.
    """

    labels: list[Label]
    sizes: list[Fraction]
    leanings: list[tuple[Fraction, ...]]
    orders: list[Order]
    worth: Any
    kinds: list[int]


def table(metric: Metric, labels: Sequence[Label]) -> Table:
    """Give the table of those labels under which orders differ, by values that are fractions.

    Irrational values are known between two bounds only, which never prove two orders equally good.
    """
    orders = list(itertools.permutations(range(len(labels[0]))))
    rows = []
    for label in labels:
        seen = read(label)
        values = [order_value(metric, seen, order) for order in orders]
        exact = [value for value in values if isinstance(value, Fraction)]
        if len(exact) == len(values) and len(set(exact)) > 1:
            rows.append((size(seen), [-grade for grade in seen.grades], seen.pairs, seen, label, exact))
    rows.sort(key=lambda row: row[:3])
    factor = math.lcm(*(value.denominator for row in rows for value in row[-1]))
    factor = factor if metric.greater_is_better else -factor
    worth = np.array([[int(factor * value) for value in row[-1]] for row in rows], dtype=object)
    leanings = [leaning(row[3]) for row in rows]
    return Table(
        [row[4] for row in rows], [row[0] for row in rows], leanings, orders, worth, kinds(worth, orders)
    )


def size(label: ExactLabel) -> Fraction:
    """Sum of the grades, or of the weights of the preferences."""
    return sum(label.grades, Fraction()) + sum((weight for _, _, weight in label.pairs), Fraction())


def leaning(label: ExactLabel) -> tuple[Fraction, ...]:
    """Give what a label says for each item: its grade, n + 1 - position, or preferences won less lost."""
    net = list(label.grades or (Fraction(),) * label.n_items)
    for better, worse, weight in label.pairs:
        net[better] += weight
        net[worse] -= weight
    return tuple(net)


def kinds(worth: Any, orders: Sequence[Order]) -> list[int]:
    """Number the rows; rows that renaming the items turns into one another have the number of the first."""
    place = {order: column for column, order in enumerate(orders)}
    renamed = np.array(
        [[place[tuple(names[item] for item in order)] for order in orders] for names in orders]
    )
    first: dict[tuple[int, ...], int] = {}
    return [
        first.setdefault(min(map(tuple, values[renamed].tolist())), row) for row, values in enumerate(worth)
    ]


def ruling_out(known: Table) -> Mixed | None:
    """Give the first mixture at which every pattern is refuted; None if none was found."""
    place = {order: column for column, order in enumerate(known.orders)}
    patterns = every_pattern(len(known.orders[0]))
    allows = np.zeros((len(patterns), len(place)), dtype=np.int64)
    for row, pattern in enumerate(patterns):
        allows[row, [place[order] for order in compatible(pattern)]] = 1
    tried = set()
    for rows, parts in mixtures(known):
        total = sum(part * known.worth[row] for row, part in zip(rows, parts, strict=True))
        best = total == total.max()
        if (key := best.tobytes()) in tried:
            continue
        tried.add(key)
        if all_refuted(known.worth, best, allows):
            probs = tuple(Fraction(part, sum(parts)) for part in parts)
            return Mixed(tuple(known.labels[row] for row in rows), probs)
    return None


def all_refuted(worth: Any, best: BoolArray, allows: Any) -> bool:
    """Tell whether each pattern allows an order that is not best, or none that some label makes best."""
    inside = allows[~allows[:, ~best].any(axis=1)][:, best]
    among = worth[:, best]
    made_best = (among == among.max(axis=1, keepdims=True)).astype(np.int64)
    return bool((inside @ made_best.T == 0).any(axis=1).all())


def mixtures(known: Table) -> Iterator[Parts]:
    """Give mixtures to try, small labels first.

    First those of one label under two or three names of the items that together say the same of each item;
    then any one to three labels, in equal parts; then two, in the parts at which their best orders change.
    """
    pairs = rows_of(known, 2)
    yield from ((rows, (1, 1)) for rows in pairs if balanced(known, rows))
    triples = rows_of(known, 3)
    yield from ((rows, (1, 1, 1)) for rows in triples if balanced(known, rows))
    for rows in itertools.chain(rows_of(known, 1), pairs, triples):
        yield rows, (1,) * len(rows)
    for rows in pairs:
        for share in tipping_points(*known.worth[list(rows)].tolist()):
            yield rows, (share.numerator, share.denominator - share.numerator)


def rows_of(known: Table, count: int) -> list[tuple[int, ...]]:
    """Give the ways to choose so many labels, up to names of the items; small ones first."""
    most = min(len(known.labels), MOST[count])
    others = list(itertools.combinations(range(most), count - 1))
    sets = {tuple(sorted({first, *rest})) for first in set(known.kinds[:most]) for rest in others}
    sizes = known.sizes
    full = (rows for rows in sets if len(rows) == count)
    return sorted(full, key=lambda rows: (sizes[rows[-1]], sum(sizes[row] for row in rows), rows))


def balanced(known: Table, rows: Iterable[int]) -> bool:
    """Tell whether the rows are of one kind, and together say the same of each item."""
    if len({known.kinds[row] for row in rows}) > 1:
        return False
    return len({sum(said) for said in zip(*(known.leanings[row] for row in rows), strict=True)}) == 1


def tipping_points(one: Sequence[int], other: Sequence[int]) -> Iterator[Fraction]:
    """Give the shares of the first label, between 0 and 1, at which the best orders of the two change.

    >>> [str(share) for share in tipping_points([2, 1, 0], [0, 3, 4])]
    ['1/2', '3/4']
    """
    lines = [(start, end - start) for start, end in zip(other, one, strict=True)]
    start, slope = max(lines)
    while steeper := [(Fraction(start - a, b - slope), -b, a) for a, b in lines if b > slope]:
        share, slope, start = min(steeper)
        if share >= 1:
            return
        slope = -slope
        yield share
