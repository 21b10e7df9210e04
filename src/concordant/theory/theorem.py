"""Theorem: a known fact about combinations, as data; and the named predicates of its hypotheses."""

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
from concordant.surrogates.order_hinge import ListwiseHinge
from concordant.surrogates.pointwise import PENALTIES
from concordant.surrogates.surrogate import Surrogate
from concordant.theory.combination import ITEMS, Combination
from concordant.theory.kinds import ITEM_KINDS, PairSquared

STATUSES: Mapping[str, str] = {
    "proven": "It is consistent for every distribution of the labels.",
    "conditional": "It is consistent under a condition; beyond it nothing is known.",
    "refuted": "It is not consistent: there are distributions of the labels on which it fails.",
    "open": "Neither a proof nor a counterexample is known.",
}


class Predicate(NamedTuple):
    """A property of combinations: its text, and a test for it."""

    text: str
    holds: Callable[[Combination], bool]


def _sorts_items(combination: Combination) -> bool:
    return isinstance(combination.surrogate, Surrogate) and combination.decoder in ITEMS


def _reads(labels: str) -> Callable[[Combination], bool]:
    return lambda combination: combination.surrogate.reads == labels


def _preserves_order(combination: Combination) -> bool:
    return isinstance(combination.surrogate, Surrogate) and combination.surrogate.order_preserving


def _preserves_order_in_limit(combination: Combination) -> bool:
    """Shown for the softmax, logistic and exponential losses."""
    return type(combination.surrogate) is Softmax or getattr(combination.surrogate, "margin", None) in (
        logistic,
        exponential,
    )


def _belongs_to_library(combination: Combination) -> bool:
    """True for the library's own metric and loss: proofs for them need not hold for others."""
    kind, margin = combination.surrogate, getattr(combination.surrogate, "margin", None)
    is_library = type(combination.metric) in METRICS.values() and type(kind) in (
        *ITEM_KINDS.values(),
        PairSquared,
    )
    mixed = isinstance(kind, ListwiseHinge) and kind.mode == "sum_interleavings"
    named = getattr(kind, "penalty", None) in (None, *PENALTIES.values())
    return is_library and named and not mixed and (margin is None or is_named(margin))


def is_named(margin: Margin) -> bool:
    """True if a margin is one of the five that have a name."""
    if margin.kind == CLIP and 0.0 < margin.width < math.inf and margin != hinge:
        return margin == huber_hinge(margin.width / 2.0)
    return margin in (squared_hinge, hinge, logistic, exponential)


def _smooth_order(combination: Combination) -> bool:
    margin = getattr(combination.surrogate, "margin", None)
    return combination.space == "permutations" and margin is not None and margin.differentiable


def _additive_pairs(combination: Combination) -> bool:
    return combination.metric.name == "pd" and combination.space == "binary"


def _decoded_by(*names: str) -> Callable[[Combination], bool]:
    return lambda combination: combination.decoder in names


def _negate(predicate: Callable[[Combination], bool]) -> Callable[[Combination], bool]:
    return lambda combination: not predicate(combination)


def _preserves_order_at_all(combination: Combination) -> bool:
    return _preserves_order(combination) or _preserves_order_in_limit(combination)


def _standardizes_conditionally(combination: Combination) -> bool:
    return not combination.standardized and bool(combination.conditions)


def _never_standardizes(combination: Combination) -> bool:
    """True if no condition is known that would give the metric a standardization."""
    return not combination.standardized and not combination.conditions


PREDICATES: Mapping[str, Predicate] = {
    "known": Predicate("metric and loss are those of the library", _belongs_to_library),
    "unknown": Predicate("metric or loss is one that nothing is shown of", _negate(_belongs_to_library)),
    "items": Predicate("items have scores, and are sorted by them", _sorts_items),
    "pairs": Predicate(
        "pairs have scores", lambda combination: isinstance(combination.surrogate, PairSquared)
    ),
    "targets": Predicate("the surrogate is told a function r(y) of the labels", _reads("targets")),
    "grades": Predicate("the surrogate is told the grades themselves", _reads("grades")),
    "positions": Predicate("the surrogate is told the order itself", _reads("positions")),
    "standardized": Predicate(
        "E[r(Y)] is an optimal score vector, for every distribution",
        lambda combination: combination.standardized,
    ),
    "standardized conditionally": Predicate(
        "E[r(Y)] is optimal under a condition only", _standardizes_conditionally
    ),
    "not standardized": Predicate("the metric has no standardization", _never_standardizes),
    "order-preserving": Predicate(
        "every minimiser of the expected surrogate ranks by the expected targets", _preserves_order
    ),
    "order-preserving in the limit": Predicate(
        "every minimising sequence comes to rank by the expected targets", _preserves_order_in_limit
    ),
    "order-preserving at all": Predicate(
        "minimisers, or minimising sequences, follow the targets", _preserves_order_at_all
    ),
    "not order-preserving": Predicate(
        "minimisers need not follow the expected targets", _negate(_preserves_order_at_all)
    ),
    "differentiable margin on orders": Predicate(
        "labels are full orders, compared by a margin without a corner", _smooth_order
    ),
    "no such margin on orders": Predicate(
        "labels have ties, or the margin has a corner", _negate(_smooth_order)
    ),
    "two grades": Predicate("E[a_ij - a_ji] is the difference of two items' numbers", _additive_pairs),
    "more than two grades": Predicate("E[a_ij - a_ji] is no such difference", _negate(_additive_pairs)),
    "exact": Predicate(
        "the decoder gives the best order, as it does where `Decoded.proven` says so", _decoded_by("auto")
    ),
    "not exact": Predicate("the decoder is a shortcut", _negate(_decoded_by("auto"))),
    "diagonal": Predicate("items are sorted by u_ii", _decoded_by("diagonal")),
    "beam": Predicate("a beam looks for the best order", _decoded_by("beam")),
    "edge-deletion": Predicate("the lightest majorities are deleted", _decoded_by("edge-deletion")),
    "borda": Predicate("items are sorted by the sums of their pair scores", _decoded_by("borda")),
    "insertion": Predicate("single items are moved as long as that helps", _decoded_by("insertion")),
}


@dataclass(frozen=True)
class Theorem:
    """A theorem on the combinations that satisfy its hypotheses.

    Attributes
    ----------
    name
        Name in the catalogue.
    status
        Name of `STATUSES`, over all distributions of the labels.
    statement
        The claim, in words.
    reference
        Source of the proof; or that `certify` finds the counterexample.
    hypotheses
        Names of `PREDICATES`; combinations that satisfy all of them are covered.
    holds_under
        Conditions under which the combination is consistent nevertheless; "*" stands for those of the metric.
    """

    name: str
    status: str
    statement: str
    reference: str
    hypotheses: tuple[str, ...]
    holds_under: tuple[str, ...] = ()

    def covers(self, combination: Combination) -> bool:
        """True if a combination satisfies every hypothesis."""
        return all(PREDICATES[name].holds(combination) for name in self.hypotheses)

    def conditions(self, combination: Combination) -> tuple[str, ...]:
        """Return the conditions under which a combination is consistent."""
        return tuple(
            name
            for stated in self.holds_under
            for name in (combination.conditions if stated == "*" else (stated,))
        )
