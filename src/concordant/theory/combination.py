"""Combination: a metric, the labels it is read on, a surrogate and a decoder; and whether they fit together.

>>> combination("ndcg@10", "pairwise")
Combination(ndcg@10 on grades, pairwise, sort)
>>> combination("ap", "pairs", "diagonal")
Combination(ap on binary, pairs, diagonal)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from concordant.exceptions import NoStandardizationError, ParameterError, UnknownNameError
from concordant.metrics.comparison import ComparisonMetric
from concordant.metrics.metric import Metric
from concordant.metrics.parse import METRICS
from concordant.metrics.parse import metric as read_metric
from concordant.metrics.standardization import usable_targets
from concordant.supervision.queries import Queries
from concordant.surrogates.orders import ListwiseHinge
from concordant.theory.kinds import KINDS, PairSquared, SurrogateLike, described, read_kind
from concordant.theory.spaces import SPACES, every_label, spaces_of

__all__ = [
    "DECODERS",
    "Combination",
    "combination",
    "misfit",
    "registered",
]


ITEMS = ("sort", "top")  # decoders of scores of items
DECODERS: Mapping[str, str] = {  # name -> what it does
    "sort": "sorts the scores of items",
    "top": "takes the items of the q highest scores",
    "auto": "the best order of scores of pairs, proven where that can be done",
    "diagonal": "sorts by the items' own pair scores u_ii",
    "beam": "looks for the best order along a beam",
    "edge-deletion": "deletes the lightest majorities until no cycle is left",
    "borda": "sorts by the sum of each item's pair scores",
    "insertion": "moves single items as long as that helps",
}
OF_PAIRS: Mapping[str, tuple[str, ...]] = {
    "ap": ("auto", "diagonal", "beam"),
    "pd": ("auto", "edge-deletion", "borda", "insertion"),
}


@dataclass(frozen=True, repr=False)
class Combination:
    """What is certified.

    Attributes
    ----------
    metric, surrogate
        As values.
    space
        What the labels may be: a name of `theory.spaces.SPACES`.
    decoder
        A name of `DECODERS`.
    """

    metric: Metric
    space: str
    surrogate: SurrogateLike
    decoder: str

    @property
    def standardized(self) -> bool:
        """Whether the metric has a standardization for every distribution of these labels."""
        return standardizes(self.metric, self.space)

    @property
    def conditions(self) -> tuple[str, ...]:
        """Conditions under which the metric has a standardization on these labels."""
        labels = self.metric.read_labels(every_label(self.space, 2)[-1])
        return tuple(self.metric.conditional(labels))

    def __repr__(self) -> str:
        return f"Combination({self})"

    def __str__(self) -> str:
        return f"{self.metric} on {self.space}, {described(self.surrogate)}, {self.decoder}"


@functools.lru_cache(maxsize=256)
def standardizes(metric: Metric, space: str) -> bool:
    """Tell whether the metric gives a target to every label of three items."""
    try:
        for label in every_label(space, 3):
            metric.targets(label)
    except NoStandardizationError:
        return False
    return True


def combination(
    metric: Metric | str,
    surrogate: SurrogateLike | str,
    decoder: str = "auto",
    labels: str = "auto",
) -> Combination:
    """Read a combination from names; one whose parts do not fit together is refused, with the reason.

    Parameters
    ----------
    metric
        A metric, or its name.
    surrogate
        A surrogate, or its name: those of `concordant.surrogates.SURROGATES`, "listwise_hinge" (of this
        metric), or "pairs" (what `PairRanker` minimises); also with parameters, "pairwise(logistic)".
    decoder
        A name of `DECODERS`; "auto": sorting for scores of items, the exact decoder for those of pairs.
    labels
        A name of `theory.spaces.SPACES`; "auto": the first space of the metric that the surrogate can read.
    """
    chosen, kind = read_metric(metric), read_kind(surrogate, metric)
    if labels != "auto" and labels not in SPACES:
        raise UnknownNameError("label space", labels, SPACES)
    if not isinstance(decoder, str) or decoder not in DECODERS:
        raise UnknownNameError("decoder", decoder, DECODERS)
    if decoder == "auto" and not isinstance(kind, PairSquared):
        decoder = "sort"
    spaces = spaces_of(chosen) if labels == "auto" else (labels,)
    reasons = [misfit(Combination(chosen, space, kind, decoder)) for space in spaces]
    if not spaces:
        raise ParameterError("metric", str(chosen), "one of rankings")
    if "" not in reasons:
        given = f"{chosen}, {kind.name}, {decoder}"
        raise ParameterError("combination", given, f"one that fits: {reasons[0]}")
    return Combination(chosen, spaces[reasons.index("")], kind, decoder)


def misfit(one: Combination) -> str:
    """Say why the parts of a combination cannot be put together; empty where they can."""
    metric, surrogate = one.metric, one.surrogate
    if unread := space_misfit(one):
        return unread
    if isinstance(surrogate, PairSquared):
        return pair_misfit(one)
    if one.decoder not in ITEMS:
        return f"{one.decoder} decodes scores of pairs, and {surrogate.name} scores items"
    if one.decoder == "top" and metric.name != "p":
        return f"top gives a set, and {metric.name} judges orders"
    return label_misfit(one)


def space_misfit(one: Combination) -> str:
    """Say why the metric cannot judge labels of this space."""
    if isinstance(one.metric, ComparisonMetric):
        return f"{one.metric.name} judges comparisons, not rankings"
    if one.space not in spaces_of(one.metric):
        return f"{one.metric.name} does not read {one.space}"
    return grade_misfit(one) if one.space in ("binary", "grades") else ""


def grade_misfit(one: Combination) -> str:
    """Say why the metric's convention cannot judge these grades."""
    highest = one.metric.convention.max_grade if one.metric.name == "err" else math.inf
    if highest == "data":
        return "with max_grade='data' a label is worth more or less by what the other labels are"
    if one.space == "grades" and (highest == "probability" or float(highest) < 2):
        return f"with max_grade={highest} no grade is above 1: the labels are binary"
    highest = 1.0 if one.space == "binary" else max(2.0, math.ceil(one.metric.convention.relevant_from))
    chosen = one.metric.read_labels([highest, 1.0, 0.0])
    if not usable_targets(one.metric, chosen, Queries.from_sizes([len(chosen)]))[0].any():
        return f"{one.metric} tells no two of these grades apart: name other labels, or another convention"
    return ""


def pair_misfit(one: Combination) -> str:
    """Say why scores of pairs do not serve the metric or the decoder."""
    if one.metric.name not in OF_PAIRS or getattr(one.metric, "k", None) is not None:
        return f"pairs serves ap and pd, uncut, and not {one.metric}"
    if one.decoder not in OF_PAIRS[one.metric.name]:
        return f"{one.decoder} does not decode the pair scores of {one.metric.name}"
    return ""


def label_misfit(one: Combination) -> str:
    """Say why a surrogate of items cannot read the labels of the metric."""
    reads, name = one.surrogate.reads, one.surrogate.name
    if reads == "positions" and one.space != "permutations":
        return f"{name} reads full orders, and {one.metric.name} does not"
    if reads == "grades" and one.space == "preferences":
        return f"{name} reads grades, not preferences"
    if reads == "grades" and one.space == "permutations" and not getattr(one.surrogate, "ordinal", False):
        return f"{name} reads grades, not full orders"
    if isinstance(one.surrogate, ListwiseHinge):
        return hinge_misfit(one)
    return ""


def hinge_misfit(one: Combination) -> str:
    """Say why a listwise hinge cannot read these labels: its metric must tell what orders lose."""
    inner: Any = one.surrogate
    sizes = Queries.from_sizes([3]).sizes
    try:
        for label in every_label(one.space, 3):
            inner.metric.order_loss(label, sizes)
    except ValueError as error:  # one of ours: a ParameterError or LabelError
        return str(error).splitlines()[0]
    return ""


def registered() -> Iterator[tuple[str, str, str, str]]:
    """Give every name of a metric, space, surrogate and decoder, whether they fit together or not.

    Precision has no name without a cutoff: it is p@2 here.

    >>> ("ndcg", "grades", "pairwise", "sort") in set(registered())
    True
    """
    for name in ("p@2" if name == "p" else name for name in METRICS):
        for space in SPACES:
            for kind in KINDS:
                for decoder in DECODERS:
                    yield name, space, kind, decoder
