"""Proof, by enumeration, that a metric has no standardization: no r(y) whose mean ranks well for all labels.

A function r of the labels is a *standardization* if, for every distribution of the labels, every order that
sorts E[r] (ties in any order) is optimal. How E[r] ranks the items is one of finitely many *patterns* of
strict relations and ties; a proof refutes each of them at a single distribution. The argument is in
docs/certificates.md, "No function of the labels would do".

>>> proof = impossibility("ap")
>>> len(proof.refutations), proof.verify()
(75, True)
>>> impossibility("p@2") is None  # 1 for relevant items, 0 for others, is a standardization
True
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from concordant._base.validate import check_counts, list_words
from concordant.data.synthetic.distribution import Label
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.metrics.comparison import ranking_metric_error
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.theory.exact.enclosure import low
from concordant.theory.exact.exact_labels import ExactLabel, read
from concordant.theory.exact.exact_values import Order, best_orders, every_value, order_value
from concordant.theory.search.patterns import compatible, every_pattern, refutations
from concordant.theory.search.proof import Impossibility
from concordant.theory.spaces import SPACES, every_label
from concordant.types import BoolArray

# Search for a mixture of labels at which no pattern of scores is left, on which `impossibility` is based.

Parts: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]  # rows of a table, and the parts they are mixed in
MOST = {1: 5000, 2: 250, 3: 80}  # number of labels in a mixture -> how many labels, the smallest, are tried


class LabelMixture(NamedTuple):
    """A distribution of labels."""

    labels: tuple[Label, ...]
    probs: tuple[Fraction, ...]


class WorthTable(NamedTuple):
    """Values of all orders under each label.

    Attributes
    ----------
    labels
        Labels, small ones first.
    sizes, leanings
        Size of each label, and how much it favours each item.
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


def _build_worth_table(metric: Metric, labels: Sequence[Label]) -> WorthTable:
    """Build the table of the labels under which orders differ, by values that are fractions.

    Irrational values are known between two bounds only, which never prove two orders equally good.
    """
    orders = list(itertools.permutations(range(len(labels[0]))))
    rows = []
    for label in labels:
        exact_label = read(label)
        values = [order_value(metric, exact_label, order) for order in orders]
        exact = [value for value in values if isinstance(value, Fraction)]
        if len(exact) == len(values) and len(set(exact)) > 1:
            rows.append(
                (
                    size(exact_label),
                    [-grade for grade in exact_label.grades],
                    exact_label.pairs,
                    exact_label,
                    label,
                    exact,
                )
            )
    rows.sort(key=lambda row: row[:3])
    factor = math.lcm(*(value.denominator for row in rows for value in row[-1]))
    factor = factor if metric.greater_is_better else -factor
    worth = np.array([[int(factor * value) for value in row[-1]] for row in rows], dtype=object)
    leanings = [_item_leanings(row[3]) for row in rows]
    return WorthTable(
        [row[4] for row in rows],
        [row[0] for row in rows],
        leanings,
        orders,
        worth,
        _number_kinds(worth, orders),
    )


def size(label: ExactLabel) -> Fraction:
    """Sum of the grades, or of the weights of the preferences."""
    return sum(label.grades, Fraction()) + sum((weight for _, _, weight in label.pairs), Fraction())


def _item_leanings(label: ExactLabel) -> tuple[Fraction, ...]:
    """How much a label favours each item: its grade, n + 1 - position, or preferences won less lost."""
    net = list(label.grades or (Fraction(),) * label.n_items)
    for better, worse, weight in label.pairs:
        net[better] += weight
        net[worse] -= weight
    return tuple(net)


def _number_kinds(worth: Any, orders: Sequence[Order]) -> list[int]:
    """Number the rows; rows that are equal up to renaming the items have the number of the first."""
    columns = {order: column for column, order in enumerate(orders)}
    renamed = np.array(
        [[columns[tuple(names[item] for item in order)] for order in orders] for names in orders]
    )
    first: dict[tuple[int, ...], int] = {}
    return [
        first.setdefault(min(map(tuple, values[renamed].tolist())), row) for row, values in enumerate(worth)
    ]


def find_refuting_mixture(worth_table: WorthTable) -> LabelMixture | None:
    """Return the first mixture at which every pattern is refuted; None if there is none.

    >>> from concordant.metrics import metric
    >>> worth_table = _build_worth_table(metric("zero_one"), every_label("permutations", 3))
    >>> mixture = find_refuting_mixture(worth_table)
    >>> [label.positions.tolist() for label in mixture.labels], [str(prob) for prob in mixture.probs]
    ([[1, 2, 3], [3, 2, 1]], ['1/2', '1/2'])
    """
    columns = {order: column for column, order in enumerate(worth_table.orders)}
    patterns = every_pattern(len(worth_table.orders[0]))
    allows = np.zeros((len(patterns), len(columns)), dtype=np.int64)
    for row, pattern in enumerate(patterns):
        allows[row, [columns[order] for order in compatible(pattern)]] = 1
    tried = set()
    for rows, parts in _candidate_mixtures(worth_table):
        total = sum(part * worth_table.worth[row] for row, part in zip(rows, parts, strict=True))
        best = total == total.max()
        if (key := best.tobytes()) in tried:
            continue
        tried.add(key)
        if _is_each_refuted(worth_table.worth, best, allows):
            probs = tuple(Fraction(part, sum(parts)) for part in parts)
            return LabelMixture(tuple(worth_table.labels[row] for row in rows), probs)
    return None


def _is_each_refuted(worth: Any, best: BoolArray, allows: Any) -> bool:
    """True if each pattern allows an order that is not best, or none that some label makes best."""
    inside = allows[~allows[:, ~best].any(axis=1)][:, best]
    among = worth[:, best]
    made_best = (among == among.max(axis=1, keepdims=True)).astype(np.int64)
    return bool((inside @ made_best.T == 0).any(axis=1).all())


def _candidate_mixtures(worth_table: WorthTable) -> Iterator[Parts]:
    """Yield mixtures to try, small labels first.

    First mixtures of a label under two or three renamings of the items that together favour no item; then any
    one to three labels, in equal parts; then two, in the parts at which their best orders change.
    """
    pairs = _label_subsets(worth_table, 2)
    yield from ((rows, (1, 1)) for rows in pairs if _is_balanced(worth_table, rows))
    triples = _label_subsets(worth_table, 3)
    yield from ((rows, (1, 1, 1)) for rows in triples if _is_balanced(worth_table, rows))
    for rows in itertools.chain(_label_subsets(worth_table, 1), pairs, triples):
        yield rows, (1,) * len(rows)
    for rows in pairs:
        for share in tipping_points(*worth_table.worth[list(rows)].tolist()):
            yield rows, (share.numerator, share.denominator - share.numerator)


def _label_subsets(worth_table: WorthTable, count: int) -> list[tuple[int, ...]]:
    """Return the choices of `count` labels, up to renaming the items; small labels first."""
    most = min(len(worth_table.labels), MOST[count])
    others = list(itertools.combinations(range(most), count - 1))
    sets = {tuple(sorted({first, *rest})) for first in set(worth_table.kinds[:most]) for rest in others}
    sizes = worth_table.sizes
    full = (rows for rows in sets if len(rows) == count)
    return sorted(full, key=lambda rows: (sizes[rows[-1]], sum(sizes[row] for row in rows), rows))


def _is_balanced(worth_table: WorthTable, rows: Iterable[int]) -> bool:
    """True if the rows are of one kind, and together favour no item."""
    if len({worth_table.kinds[row] for row in rows}) > 1:
        return False
    return len({sum(said) for said in zip(*(worth_table.leanings[row] for row in rows), strict=True)}) == 1


def tipping_points(first: Sequence[int], other: Sequence[int]) -> Iterator[Fraction]:
    """Yield the shares of the first label, between 0 and 1, at which the best orders of the two change.

    >>> [str(share) for share in tipping_points([2, 1, 0], [0, 3, 4])]
    ['1/2', '3/4']
    """
    lines = [(start, end - start) for start, end in zip(other, first, strict=True)]
    start, slope = max(lines)
    while steeper := [(Fraction(start - a, b - slope), -b, a) for a, b in lines if b > slope]:
        share, slope, start = min(steeper)
        if share >= 1:
            return
        slope = -slope
        yield share


PLAINEST = ("preferences", "permutations", "binary")  # label spaces, the first to try first
MAX_ITEMS = 5  # 541 patterns


def impossibility(
    metric: Metric | str, labels: str = "auto", n_items: int = 4, highest: int = 1
) -> Impossibility | None:
    """Search for a proof that a metric has no standardization; None if none is found, which proves nothing.

    Irrational values (dcg, ndcg, most eru) are out of reach: bounds do not prove that two orders tie. So are
    metrics without exact values: those with a function as gain, or with max_grade="data", which depends on
    more than a single label.

    Parameters
    ----------
    metric
        A metric of rankings, or its name.
    labels
        A space of labels that the metric reads: "binary", "grades", "preferences" or "permutations"; "auto":
        preferences for pd and wpd, permutations for zero_one, binary for all others.
    n_items
        Number of items, 2 to 5.
    highest
        Highest grade of the space "grades".

    Examples
    --------
    >>> proof = impossibility("err[max_grade=1]")
    >>> (good, most), (bad, less) = proof.contrast
    >>> most - less
    Fraction(1, 48)
    """
    parsed_metric = read_metric(metric)
    check_counts(n_items=n_items, highest=highest)
    if not 2 <= n_items <= MAX_ITEMS:
        raise ParameterError("n_items", n_items, f"an integer from 2 to {MAX_ITEMS}")
    space_labels = every_label(space := _check_space(parsed_metric, labels), n_items, highest)
    try:
        worth_table = _build_worth_table(parsed_metric, space_labels)
    except ParameterError:  # no exact values
        return None
    mixture = find_refuting_mixture(worth_table)
    return (
        None if mixture is None else build_proof(parsed_metric, space, highest, mixture, worth_table.labels)
    )


def _check_space(metric: Metric, labels: str) -> str:
    if not (spaces := metric.label_spaces):
        raise ranking_metric_error(metric)
    if labels == "auto":
        return next(name for name in PLAINEST if name in spaces)
    if not isinstance(labels, str) or labels not in SPACES:
        raise UnknownNameError("label space", labels, ["auto", *SPACES])
    if labels not in spaces:
        raise ParameterError("labels", labels, f"{list_words(map(repr, spaces))} for {metric.name}")
    return labels


def build_proof(
    metric: Metric, space: str, highest: int, mixture: LabelMixture, labels: Sequence[Label]
) -> Impossibility:
    """Build the proof at a distribution that refutes every pattern."""
    values = every_value(metric, *mixture)
    best = best_orders(metric, values)
    good, bad = best[0], min(values.keys() - best)
    return Impossibility(
        metric=metric,
        space=space,
        highest=highest,
        labels=mixture.labels,
        probs=mixture.probs,
        best=tuple(best),
        value=low(values[good]),
        contrast=((good, low(values[good])), (bad, low(values[bad]))),
        refutations=tuple(refutations(metric, best, labels)),
    )
