"""Combination: a metric, its labels, a surrogate and a decoder; and whether they fit together.

>>> combination("ndcg@10", "pairwise")
Combination(ndcg@10 on grades, pairwise, sort)
>>> combination("ap", "pairs", "diagonal")
Combination(ap on binary, pairs, diagonal)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from concordant.data.queries import Queries
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.metrics.comparison import ComparisonMetric, ranking_metric_error
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.metrics.standardization import usable_targets
from concordant.surrogates.order_hinge import ListwiseHinge
from concordant.theory.kinds import PairSquared, SurrogateLike, format_surrogate, read_kind
from concordant.theory.spaces import SPACES, every_label

ITEMS = ("sort", "top")  # decoders of scores of items
DECODERS: Mapping[str, str] = {  # name -> description
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

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Combination:
    """Metric, label space, surrogate and decoder that are certified together.

    Attributes
    ----------
    metric, surrogate
        The metric and the surrogate, as objects.
    space
        Label space: a name of `theory.spaces.SPACES`.
    decoder
        A name of `DECODERS`.
    """

    metric: Metric
    space: str
    surrogate: SurrogateLike
    decoder: str

    @property
    def standardized(self) -> bool:
        """True if the metric has a standardization for every distribution of these labels."""
        return self.metric.standardized_on(self.space)

    @property
    def conditions(self) -> tuple[str, ...]:
        """Conditions under which the metric has a standardization on these labels."""
        labels = self.metric.read_labels(every_label(self.space, 2)[-1])
        return tuple(self.metric.conditional(labels))

    def __repr__(self) -> str:
        return f"Combination({self})"

    def __str__(self) -> str:
        return f"{self.metric} on {self.space}, {format_surrogate(self.surrogate)}, {self.decoder}"


def combination(
    metric: Metric | str,
    surrogate: SurrogateLike | str,
    decoder: str = "auto",
    labels: str = "auto",
) -> Combination:
    """Read a combination from names; raise, with the reason, if the parts do not fit together.

    Parameters
    ----------
    metric, surrogate
        As for `concordant.certify`.
    decoder
        A name of `DECODERS`; "auto": sorting for scores of items, the exact decoder for scores of pairs.
    labels
        A name of `theory.spaces.SPACES`; "auto": the first space of the metric that the surrogate can read.
    """
    parsed_metric, kind = read_metric(metric), read_kind(surrogate, metric)
    if labels != "auto" and labels not in SPACES:
        raise UnknownNameError("label space", labels, SPACES)
    if not isinstance(decoder, str) or decoder not in DECODERS:
        raise UnknownNameError("decoder", decoder, DECODERS)
    if decoder == "auto" and not isinstance(kind, PairSquared):
        decoder = "sort"
    spaces = parsed_metric.label_spaces if labels == "auto" else (labels,)
    reasons = [misfit(Combination(parsed_metric, space, kind, decoder)) for space in spaces]
    if not spaces:
        raise ranking_metric_error(parsed_metric)
    if "" not in reasons:
        description = f"{parsed_metric}, {format_surrogate(kind)}, {decoder}"
        raise ParameterError.because(
            f"The combination ({description}) does not fit together: {reasons[0].rstrip('.')}."
        )
    return Combination(parsed_metric, spaces[reasons.index("")], kind, decoder)


def cached(function: Callable[[Combination], T]) -> Callable[[Combination], T]:
    """Cache a lookup; with a user's metric or surrogate that has no hash, it is repeated each time."""
    remembered = functools.lru_cache(maxsize=256)(function)

    @functools.wraps(function)
    def lookup(combination: Combination) -> T:
        try:
            hash(combination)
        except TypeError:
            return function(combination)
        return remembered(combination)

    return lookup


@cached
def misfit(combination: Combination) -> str:
    """Return why the parts of a combination do not fit together; empty if they do."""
    metric, surrogate = combination.metric, combination.surrogate
    if unread := _space_misfit(combination):
        return unread
    if isinstance(surrogate, PairSquared):
        return _pair_misfit(combination)
    if combination.decoder not in ITEMS:
        return f"{combination.decoder} decodes scores of pairs, and {surrogate.name} scores items"
    if combination.decoder == "top" and metric.name != "p":
        return f"top gives a set, and {metric.name} judges orders"
    return _label_misfit(combination)


def _space_misfit(combination: Combination) -> str:
    if isinstance(combination.metric, ComparisonMetric):
        return f"{combination.metric.name} judges comparisons, not rankings"
    if combination.space not in combination.metric.label_spaces:
        return f"{combination.metric.name} does not read {combination.space}"
    return _grade_misfit(combination) if combination.space in ("binary", "grades") else ""


def _grade_misfit(combination: Combination) -> str:
    highest = combination.metric.convention.max_grade if combination.metric.name == "err" else math.inf
    if highest == "data":
        return "with max_grade='data' a label is worth more or less by what the other labels are"
    if combination.space == "grades" and (highest == "probability" or float(highest) < 2):
        return f"with max_grade={highest} no grade is above 1: the labels are binary"
    highest = (
        1.0
        if combination.space == "binary"
        else max(2.0, math.ceil(combination.metric.convention.relevant_from))
    )
    labels = combination.metric.read_labels([highest, 1.0, 0.0])
    if not usable_targets(combination.metric, labels, Queries.from_sizes([len(labels)]))[0].any():
        return (
            f"{combination.metric} tells no two of these grades apart: "
            "name other labels, or another convention"
        )
    return ""


def _pair_misfit(combination: Combination) -> str:
    if combination.metric.name not in OF_PAIRS or getattr(combination.metric, "k", None) is not None:
        return f"pairs needs metric 'ap' or 'pd' without a cutoff, not {combination.metric}"
    if combination.decoder not in OF_PAIRS[combination.metric.name]:
        return f"{combination.decoder} does not decode the pair scores of {combination.metric.name}"
    return ""


def _label_misfit(combination: Combination) -> str:
    reads, name = combination.surrogate.reads, combination.surrogate.name
    if reads == "positions" and combination.space != "permutations":
        return f"{name} reads full orders, and {combination.metric.name} does not"
    if reads == "grades" and combination.space == "preferences":
        return f"{name} reads grades, not preferences"
    if (
        reads == "grades"
        and combination.space == "permutations"
        and not getattr(combination.surrogate, "ordinal", False)
    ):
        others = "preorder, preorder(pairs) and position_hinge read both"
        return f"{format_surrogate(combination.surrogate)} reads grades, not full orders; {others}"
    if isinstance(combination.surrogate, ListwiseHinge):
        return _hinge_misfit(combination)
    return ""


def _hinge_misfit(combination: Combination) -> str:
    """Return why a listwise hinge cannot read these labels: its metric must define what orders lose."""
    inner: Any = combination.surrogate
    sizes = Queries.from_sizes([3]).sizes
    try:
        for label in every_label(combination.space, 3):
            inner.metric.order_loss(label, sizes)
    except ValueError as error:  # a ParameterError or LabelError
        return str(error).splitlines()[0]
    return ""
