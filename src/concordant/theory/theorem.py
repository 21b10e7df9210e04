"""Theorem: what is known of combinations, as data; and the named predicates that its hypotheses are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from concordant.metrics.parse import METRICS
from concordant.surrogates.listwise import Softmax
from concordant.surrogates.margins import (
    CLIP,
    Margin,
    exponential,
    hinge,
    huber_hinge,
    logistic,
    squared_hinge,
)
from concordant.surrogates.orders import ListwiseHinge
from concordant.surrogates.surrogate import Surrogate
from concordant.theory.combination import ITEMS, Combination
from concordant.theory.kinds import ITEM_KINDS, PairSquared

__all__ = ["PREDICATES", "STATUSES", "Predicate", "Theorem"]

STATUSES: Mapping[str, str] = {
    "proven": "It is consistent for every distribution of the labels.",
    "conditional": "It is consistent under a condition; beyond it nothing is known.",
    "refuted": "It is not consistent: there are distributions of the labels on which it fails.",
    "open": "Neither a proof nor a counterexample is known.",
}


class Predicate(NamedTuple):
    """A property of combinations: what it says, and whether one has it."""

    text: str
    holds: Callable[[Combination], bool]


def of_items(one: Combination) -> bool:
    """Whether items are scored, and sorted."""
    return isinstance(one.surrogate, Surrogate) and one.decoder in ITEMS


def reads(what: str) -> Callable[[Combination], bool]:
    """Whether the surrogate is told this."""
    return lambda one: one.surrogate.reads == what


def preserving(one: Combination) -> bool:
    """Whether minimisers follow the expected targets."""
    return isinstance(one.surrogate, Surrogate) and one.surrogate.order_preserving


def in_the_limit(one: Combination) -> bool:
    """Whether minimising sequences do: shown for the softmax, logistic and exponential losses."""
    return type(one.surrogate) is Softmax or getattr(one.surrogate, "margin", None) in (logistic, exponential)


def known(one: Combination) -> bool:
    """Whether metric and loss are those of the library: what is shown of them need not hold of others."""
    kind, margin = one.surrogate, getattr(one.surrogate, "margin", None)
    own = type(one.metric) in METRICS.values() and type(kind) in (*ITEM_KINDS.values(), PairSquared)
    mixed = isinstance(kind, ListwiseHinge) and kind.mode == "sum_interleavings"
    return own and not mixed and (margin is None or is_named(margin))


def is_named(margin: Margin) -> bool:
    """Whether a margin is one of the five with a name."""
    if margin.kind == CLIP and 0.0 < margin.width < math.inf and margin != hinge:
        return margin == huber_hinge(margin.width / 2.0)
    return margin in (squared_hinge, hinge, logistic, exponential)


def smooth_order(one: Combination) -> bool:
    """Whether a margin without a corner compares the items of full orders."""
    margin = getattr(one.surrogate, "margin", None)
    return one.space == "permutations" and margin is not None and margin.differentiable


def additive_pairs(one: Combination) -> bool:
    """Whether expected preferences are differences of one number per item."""
    return one.metric.name == "pd" and one.space == "binary"


def decoded_by(*names: str) -> Callable[[Combination], bool]:
    """Whether the decoder is one of these."""
    return lambda one: one.decoder in names


def no(held: Callable[[Combination], bool]) -> Callable[[Combination], bool]:
    """The contrary."""
    return lambda one: not held(one)


def either(one: Combination) -> bool:
    """Whether order is preserved, at the minimum or in the limit."""
    return preserving(one) or in_the_limit(one)


def conditional(one: Combination) -> bool:
    """Whether the metric has a standardization under a condition only."""
    return not one.standardized and bool(one.conditions)


def none(one: Combination) -> bool:
    """Whether the metric has no standardization, and no condition is known that would give one."""
    return not one.standardized and not one.conditions


PREDICATES: Mapping[str, Predicate] = {
    "known": Predicate("metric and loss are those of the library", known),
    "unknown": Predicate("metric or loss is one that nothing is shown of", no(known)),
    "items": Predicate("items have scores, and are sorted by them", of_items),
    "pairs": Predicate("pairs have scores", lambda one: isinstance(one.surrogate, PairSquared)),
    "targets": Predicate("the surrogate is told a function r(y) of the labels", reads("targets")),
    "grades": Predicate("the surrogate is told the grades themselves", reads("grades")),
    "positions": Predicate("the surrogate is told the order itself", reads("positions")),
    "standardized": Predicate(
        "E[r(Y)] is an optimal score vector, for every distribution", lambda one: one.standardized
    ),
    "standardized conditionally": Predicate("E[r(Y)] is optimal under a condition only", conditional),
    "not standardized": Predicate("the metric has no standardization", none),
    "order-preserving": Predicate(
        "every minimiser of the expected surrogate ranks by the expected targets", preserving
    ),
    "order-preserving in the limit": Predicate(
        "every minimising sequence comes to rank by the expected targets", in_the_limit
    ),
    "order-preserving at all": Predicate("minimisers, or minimising sequences, follow the targets", either),
    "not order-preserving": Predicate("minimisers need not follow the expected targets", no(either)),
    "differentiable margin on orders": Predicate(
        "labels are full orders, compared by a margin without a corner", smooth_order
    ),
    "no such margin on orders": Predicate("labels have ties, or the margin has a corner", no(smooth_order)),
    "two grades": Predicate("E[a_ij - a_ji] is the difference of two items' numbers", additive_pairs),
    "more than two grades": Predicate("E[a_ij - a_ji] is no such difference", no(additive_pairs)),
    "exact": Predicate(
        "the decoder gives the best order, as it does where `Decoded.proven` says so", decoded_by("auto")
    ),
    "not exact": Predicate("the decoder is a shortcut", no(decoded_by("auto"))),
    "diagonal": Predicate("items are sorted by u_ii", decoded_by("diagonal")),
    "beam": Predicate("a beam looks for the best order", decoded_by("beam")),
    "edge-deletion": Predicate("the lightest majorities are deleted", decoded_by("edge-deletion")),
    "borda": Predicate("items are sorted by the sums of their pair scores", decoded_by("borda")),
    "insertion": Predicate("single items are moved as long as that helps", decoded_by("insertion")),
}


@dataclass(frozen=True)
class Theorem:
    """What is known of the combinations that satisfy its hypotheses.

    Attributes
    ----------
    name
        In the catalogue.
    status
        Over all distributions of the labels: a name of `STATUSES`.
    statement
        What holds, in words.
    reference
        Who shows it; or that `certify` finds the counterexample.
    hypotheses
        Names of `PREDICATES`; a combination is covered that satisfies them all.
    holds_under
        Conditions under which it is consistent all the same; "*" stands for those of the metric.
    """

    name: str
    status: str
    statement: str
    reference: str
    hypotheses: tuple[str, ...]
    holds_under: tuple[str, ...] = ()

    def covers(self, one: Combination) -> bool:
        """Tell whether a combination satisfies every hypothesis."""
        return all(PREDICATES[name].holds(one) for name in self.hypotheses)

    def conditions(self, one: Combination) -> tuple[str, ...]:
        """Give the conditions under which it holds for a combination."""
        return tuple(
            name for stated in self.holds_under for name in (one.conditions if stated == "*" else (stated,))
        )
