"""Patterns: how scores may rank items, ties included; and their refutations at a distribution of labels.

A pattern is a tuple of blocks of items, best block first; the items of a block are tied.

>>> [written_pattern(pattern) for pattern in every_pattern(2)]
['1>2', '2>1', '{1,2}']
>>> len(every_pattern(3)), len(every_pattern(4)), len(every_pattern(5))
(13, 75, 541)
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from concordant.data.synthetic.distribution import Label
from concordant.metrics.metric import Metric
from concordant.theory.exact.exact_labels import ExactLabel, read
from concordant.theory.exact.exact_values import Order, best_orders, order_value

Pattern: TypeAlias = tuple[tuple[int, ...], ...]


def every_pattern(n_items: int) -> list[Pattern]:
    """Return all patterns of the items."""
    return list(_split_into_patterns(tuple(range(n_items))))


def _split_into_patterns(items: tuple[int, ...]) -> Iterator[Pattern]:
    """Choose the first block, then a pattern of the rest."""
    if not items:
        yield ()
    for size in range(1, len(items) + 1):
        for block in itertools.combinations(items, size):
            for rest in _split_into_patterns(tuple(item for item in items if item not in block)):
                yield (block, *rest)


def compatible(pattern: Pattern) -> list[Order]:
    """Return the orders that sorting may return: the blocks one after another, each in any order.

    >>> compatible(((2,), (0, 1)))
    [(2, 0, 1), (2, 1, 0)]
    """
    pieces = itertools.product(*(itertools.permutations(block) for block in pattern))
    return [tuple(itertools.chain(*piece)) for piece in pieces]


def coarsest(patterns: Iterable[Pattern]) -> list[Pattern]:
    """Return the patterns that do not follow from another pattern by breaking ties.

    >>> coarsest([((0,), (1,), (2,)), ((0, 1), (2,)), ((2,), (1,), (0,))])
    [((0, 1), (2,)), ((2,), (1,), (0,))]
    """
    allows = {pattern: set(compatible(pattern)) for pattern in patterns}
    return [
        candidate
        for candidate, orders in allows.items()
        if not any(orders < more for more in allows.values())
    ]


def written_pattern(pattern: Pattern) -> str:
    """Write a pattern for a person; items are counted from 1, and braces hold tied items."""
    blocks = [",".join(str(item + 1) for item in block) for block in pattern]
    return ">".join(f"{{{block}}}" if "," in block else block for block in blocks)


def written_order(order: Order) -> str:
    """Write an order, items counted from 1.

    >>> written_order((2, 0, 1))
    '3>1>2'
    """
    return written_pattern(tuple((item,) for item in order))


def written_orders(orders: Collection[Order]) -> str:
    """Write a set of orders by the coarsest patterns that allow no other.

    >>> written_orders([(0, 1, 2), (1, 0, 2), (2, 1, 0)])
    '3>2>1 or {1,2}>3'
    """
    allowed = set(orders)
    inside = [p for p in every_pattern(len(next(iter(orders)))) if allowed.issuperset(compatible(p))]
    return " or ".join(map(written_pattern, coarsest(inside)))


class Refutation(NamedTuple):
    """Why scores at a distribution cannot have a pattern: either `order` or `label` is given.

    Attributes
    ----------
    pattern
        Blocks of items, best first; the items of a block are tied.
    order
        An order that is compatible with the pattern, and not optimal.
    label
        A label: if a little of it is mixed in, no order compatible with the pattern is optimal.
    """

    pattern: Pattern
    order: Order | None
    label: Label | None


def best_for(metric: Metric, label: ExactLabel, orders: Iterable[Order]) -> list[Order]:
    """Return those of the orders that are best for a label."""
    return best_orders(metric, {order: order_value(metric, label, order) for order in orders})


def refutations(metric: Metric, best: Sequence[Order], labels: Sequence[Label]) -> Iterator[Refutation]:
    """Yield refutations of patterns, each by an order that is not among the best or by one of few labels."""
    left = []
    for pattern in every_pattern(len(best[0])):
        worse = [order for order in compatible(pattern) if order not in best]
        if worse:
            yield Refutation(pattern, worse[0], None)
        else:
            left.append(pattern)
    best_sets = [set(best_for(metric, read(label), best)) for label in labels]
    while left:
        falls = [[p for p in left if orders.isdisjoint(compatible(p))] for orders in best_sets]
        label, fallen = max(zip(labels, falls, strict=True), key=lambda entry: len(entry[1]))
        if not fallen:
            return  # the remaining patterns are not refuted
        yield from (Refutation(pattern, None, label) for pattern in fallen)
        left = [pattern for pattern in left if pattern not in fallen]
