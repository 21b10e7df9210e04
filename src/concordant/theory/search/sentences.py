"""A counterexample in words: what is told, where the minimum is, what is decoded and lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from concordant.surrogates.pairwise import Preorder
from concordant.surrogates.pointwise import Duchi, Squared
from concordant.theory.exact.enclosure import text
from concordant.theory.exact.labels import read
from concordant.theory.exact.pairs import expected_pairs
from concordant.theory.exact.stationary import UNITS
from concordant.theory.exact.targets import expected_targets
from concordant.theory.exact.values import Order
from concordant.theory.kinds import SurrogateLike, described
from concordant.theory.search.patterns import written_order
from concordant.theory.spaces import written

if TYPE_CHECKING:
    from concordant.theory.search.counterexample import Counterexample

__all__ = ["PLACES", "sentences"]

PLACES = "places"  # unit of scores that are decoded places, negated
SHOWN = 4  # orders


def sentences(example: Counterexample) -> Iterator[str]:
    """Give the sentences, and one line for each label."""
    widest = max(len(written(label)) for label in example.labels)
    yield f"{example.n_items} items, numbered from 1; the label is"
    for label, prob in zip(example.labels, example.probs, strict=True):
        yield f"  {written(label):<{widest}}  with probability {prob}"
    yield from summed_up(example)
    yield minimum(example)
    name, way = str(example.combination.metric), "It" if example.unit == PLACES else "Sorting"
    yield f"{way} gives {listing(example.decoded)}: expected {name} {text(example.value)}."
    yield f"Best is {listing(example.best)}: expected {name} {text(example.best_value)}."
    yield f"Lost: {text(example.regret)}{averaged(example)}."


def summed_up(example: Counterexample) -> Iterator[str]:
    """Say what the surrogate is told on average, where that is all it depends on."""
    one, labels = example.combination, example.labels
    if type(one.surrogate) is Preorder:
        weights = expected_pairs(one.metric, one.surrogate, [read(label) for label in labels], example.probs)
        terms = (f"{text(w)} phi(s_{i + 1} - s_{j + 1})" for (i, j), w in sorted(weights.items()))
        yield f"The expected loss is {' + '.join(terms)}."
    elif one.surrogate.reads == "targets":
        means = expected_targets(one.metric, labels, example.probs)
        yield f"The expected targets are {', '.join(map(text, means))}."


def minimum(example: Counterexample) -> str:
    """Say where the minimum is, and how that is seen."""
    surrogate = example.combination.surrogate
    if example.unit == PLACES:
        return f"Expected pair targets, decoded by {example.combination.decoder}: {example.reason}"
    listed = ", ".join(text(score) for score in example.scores)
    only, others = ("only ", alike(surrogate, example.unit)) if example.unique else ("", "")
    where = f"is least {only}at {UNITS[example.unit]} = {listed}{others}"
    return f"The expected {described(surrogate)} loss {where}: {example.reason}."


def alike(surrogate: SurrogateLike, unit: str) -> str:
    """Say which other numbers stand for the same minimum: a constant changes no loss of score differences.

    >>> alike(Squared(), "scores"), alike(Squared(centred=False), "scores")
    (' (or those plus a constant)', '')
    """
    if isinstance(surrogate, Duchi) or (isinstance(surrogate, Squared) and not surrogate.centred):
        return ""
    return " (or those plus a constant)" if unit == "scores" else " (or those times a factor)"


def averaged(example: Counterexample) -> str:
    """Say that what is lost is a mean over ties, which it is whatever the convention."""
    if example.certain:
        return ""
    ties = example.combination.metric.convention.ties
    whatever = "" if ties == "expected" else f" (the convention, ties={ties}, is not applied)"
    return f", on average over the ties{whatever}"


def listing(orders: Sequence[Order]) -> str:
    """Write a few orders, and how many more there are."""
    shown = ", ".join(map(written_order, orders[:SHOWN]))
    return shown if len(orders) <= SHOWN else f"{shown} and {len(orders) - SHOWN} more"
