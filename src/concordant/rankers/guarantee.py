"""What is guaranteed of a training before it begins: label space, catalogue entry, and warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from concordant._base.segments import segment_reduce
from concordant._base.warn import warn_caller
from concordant.data.check import OF_ITEMS
from concordant.data.labels import Permutations, Preferences
from concordant.data.queries import Queries
from concordant.decoders.average_precision import DYNAMIC_ITEMS as AP_ITEMS
from concordant.decoders.feedback_arc import DYNAMIC_ITEMS as PD_ITEMS
from concordant.exceptions import GuaranteeWarning, UnknownNameError
from concordant.metrics.metric import Metric
from concordant.metrics.standardization import EVERY, NOTHING
from concordant.theory.catalogue import TARGETS_WEIGHTED, meaning_of, theorem_of, under_item_weights
from concordant.theory.certificate import Certificate
from concordant.theory.combination import OF_PAIRS, Combination, combination, misfit
from concordant.theory.kinds import PairSquared, SurrogateLike, format_surrogate
from concordant.theory.theorem import Theorem

ALWAYS_PROVEN = {"ap": AP_ITEMS, "pd": PD_ITEMS}  # items up to which "auto" proves every order best
PROVEN_DECODE = "proven_decode"
PROPENSITIES = (
    "To correct clicks by inverse propensities, train for a sum of gains (dcg, p@k, eru) with 'softmax' or "
    "'pairwise', or without weights for 'dcg[gain=linear]' on labels divided by their propensities."
)


@dataclass(frozen=True)
class Guarantee:
    """Guarantee for a metric, a label space, a surrogate and a decoder, under the assumed condition.

    Attributes
    ----------
    metric, space, surrogate, decoder
        The metric to train for, the label space, the loss, and the decoder.
    combination, theorem
        Entry of the catalogue, which reads relevance as 0 and 1; None if it has none for these.
    why
        Why it has none; else empty.
    assumed
        The condition that the caller assumes of the labels; None: none.
    n_items
        Items of the longest query, if pairs are scored; else 0.
    weighted
        What `sample_weight` weighs: "items" (which `theorem` takes into account), "queries", or nothing, "".
    """

    metric: Metric
    space: str
    surrogate: SurrogateLike
    decoder: str
    combination: Combination | None
    theorem: Theorem | None
    why: str
    assumed: str | None = None
    n_items: int = 0
    weighted: str = ""

    def under_weights(self, weighted: str) -> Guarantee:
        """Return the guarantee under `sample_weight` of items or queries; see `data.check.weight_kind`."""
        theorem, combination = self.theorem, self.combination
        if weighted == OF_ITEMS and theorem is not None and combination is not None:
            conditions = sorted(self.holds_under, key=lambda name: name != self.assumed)
            theorem = under_item_weights(combination, theorem, conditions)
        return replace(self, theorem=theorem, weighted=weighted)

    @property
    def items_weighted(self) -> bool:
        """True if items of a query have different weights."""
        return self.weighted == OF_ITEMS

    @property
    def catalogue_certificate(self) -> Certificate | None:
        """The catalogue's certificate; None if it has none."""
        if self.combination is None or self.theorem is None:
            return None
        return Certificate(self.combination, self.theorem, self.theorem.status)

    @property
    def status(self) -> str:
        """Over all distributions of the labels: "proven", "conditional", "refuted" or "open"."""
        return "open" if self.catalogue_certificate is None else self.catalogue_certificate.status

    @property
    def holds_under(self) -> tuple[str, ...]:
        """Conditions under which it is consistent, if it is not for every distribution and every query."""
        if self.by_proof:
            return (PROVEN_DECODE,)
        names = () if self.catalogue_certificate is None else self.catalogue_certificate.holds_under
        if self.assumed == "P_f":  # targets are means of f: low noise implies nothing for a user-supplied f
            return tuple(name for name in names if not name.startswith("low_noise"))
        return names

    @property
    def unproven(self) -> bool:
        """True if the exact decoder may leave orders of so many items unproven."""
        exact = isinstance(self.surrogate, PairSquared) and self.decoder == "auto"
        return exact and self.n_items > ALWAYS_PROVEN[self.metric.name]

    @property
    def by_proof(self) -> bool:
        """True if consistency holds on queries whose decode is proven; two grades need no search."""
        two_grades = self.metric.name == "pd" and self.space == "binary"
        return self.status == "proven" and self.unproven and not two_grades

    @property
    def condition(self) -> str:
        """What consistency rests on here: "every distribution", a condition, or "nothing"."""
        if self.status == "proven" and not self.by_proof:
            return EVERY
        if self.assumed in self.holds_under:
            return str(self.assumed)
        return next(iter(self.holds_under), NOTHING)

    @property
    def is_guaranteed(self) -> bool:
        """True if no warning is needed: a guarantee holds under the caller's assumption."""
        return self.status == "proven" or self.assumed in self.holds_under

    @property
    def caution(self) -> str:
        """Warning that names what is not guaranteed, and how to look it up."""
        by, metric = format_surrogate(self.surrogate), self.metric
        more = "See print(model.certificate_)"
        if self.items_weighted:
            return f"{self._weights_caution}. {PROPENSITIES} {more}."
        if self.catalogue_certificate is not None:
            more = f"{more} and {self.question}"
        if self.condition == NOTHING:
            return f"{self._no_guarantee_caution}. {more}."
        if isinstance(self.surrogate, PairSquared):
            text = f"decoder={self.decoder!r} is optimal for {metric} only if labels satisfy {self.condition}"
            return f"{text}. decoder='auto' needs no condition wherever it proves its order best. {more}."
        under, weakest = " or ".join(self.holds_under), self.condition
        if {"low_noise", "P_f"} <= set(self.holds_under):
            under, weakest = f"{under} (low_noise implies P_f)", "P_f"
        text = f"Training with {by} is guaranteed to optimise {metric} only if the labels satisfy {under}"
        return f"{text}. If yours do, pass assume={weakest!r}. {more}."

    @property
    def _no_guarantee_caution(self) -> str:
        reason = self.why if self.theorem is None else _uncapitalised(self.theorem.statement)
        by = format_surrogate(self.surrogate)
        return f"Nothing guarantees that training with {by} optimises {self.metric}: {reason.rstrip('.')}"

    @property
    def _weights_caution(self) -> str:
        metric, of_pairs = self.metric, isinstance(self.surrogate, PairSquared)
        by = f"{'PairRanker' if of_pairs else format_surrogate(self.surrogate)} with sample_weight"
        if self.theorem is not None and self.theorem.name == TARGETS_WEIGHTED.name:
            text = f"{by} does not optimise {metric}: it multiplies each target by its item's weight"
            return f"{text}, but a target of {metric} depends on the labels of the whole list"
        if self.condition == NOTHING:
            return self._no_guarantee_caution
        where = meaning_of(self.condition, metric)
        text = f"{by} optimises {metric} only {'' if where.startswith('on ') else 'where '}{where}"
        return (
            f"{text}. Weights multiply terms of the loss, not labels, so inverse propensities correct nothing"
        )

    @property
    def question(self) -> str:
        """The call of `certify` for these labels."""
        metric = _read_by(self.metric, self.space)
        if isinstance(self.surrogate, PairSquared):
            arguments, decoder = f"'{metric}', 'pairs', {self.decoder!r}", self.decoder
        else:
            arguments, decoder = f"'{metric}', model.surrogate_", "auto"
        default_space = combination(metric, self.surrogate, decoder).space
        labels = "" if default_space == self.space else f", labels={self.space!r}"
        return f"cc.certify({arguments}{labels})"

    def warn(self) -> None:
        """Warn if a guarantee is missing."""
        if not self.is_guaranteed:
            warn_caller(self.caution, GuaranteeWarning)


@contextmanager
def knowingly() -> Iterator[None]:
    """Silence `GuaranteeWarning`, to train a baseline on purpose.

    >>> from concordant import LinearRanker
    >>> with knowingly():
    ...     LinearRanker("ndcg", "preorder").fit([[1.0], [0.0]], [1, 0]).certificate_.status
    'refuted'
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        yield


def look_up_guarantee(
    metric: Metric,
    surrogate: SurrogateLike,
    decoder: str,
    space: str,
    assumed: str | None = None,
    n_items: int = 0,
) -> Guarantee:
    """Look up the guarantee in the catalogue.

    >>> from concordant import metric
    >>> look_up_guarantee(metric("ap"), PairSquared(), "diagonal", "binary").condition
    'P_reinforce'
    >>> auto = metric("ap"), PairSquared(), "auto", "binary"
    >>> [look_up_guarantee(*auto, n_items=n).condition for n in (10, 100)]
    ['every distribution', 'proven_decode']
    """
    candidate = Combination(_read_by(metric, space), space, surrogate, decoder)
    reason = misfit(candidate)
    covered, theorem = (None, None) if reason else (candidate, theorem_of(candidate))
    return Guarantee(metric, space, surrogate, decoder, covered, theorem, reason, assumed, n_items)


def _read_by(metric: Metric, space: str) -> Metric:
    """Return the metric that reads relevance, 0 or 1, as this metric reads grades.

    >>> from concordant import metric
    >>> _read_by(metric("p@2[relevant_from=3]"), "binary"), _read_by(metric("p@2[relevant_from=3]"), "grades")
    (metric('p@2'), metric('p@2[concordant,relevant_from=3]'))
    """
    if not metric.by_relevance or space != "binary" or metric.convention.relevant_from <= 1.0:
        return metric
    return replace(metric, convention=metric.convention.replace(relevant_from=1.0))


def label_space(metric: Metric, surrogate: SurrogateLike, labels: Any, queries: Queries) -> str:
    """Return the space of labels as the metric and the surrogate read them: a name of `theory.spaces.SPACES`.

    >>> from concordant import metric
    >>> from concordant.data.labels import Grades
    >>> one, two = Queries.from_sizes([3]), Queries.from_sizes([2, 1])
    >>> label_space(metric("pd"), PairSquared(), Grades([0, 4, 2]), one)
    'grades'
    >>> label_space(metric("pd"), PairSquared(), Grades([0, 4, 2]), two)
    'binary'
    """
    if isinstance(labels, Preferences):
        return "preferences"
    if isinstance(labels, Permutations):
        return "permutations"
    if metric.by_relevance and surrogate.reads != "grades":
        return "binary"
    grades = np.asarray(labels.values)
    low: Any
    high: Any
    if metric.name == "pd":  # which reads only which of two grades is higher
        rows = queries.gather(grades)
        ends = (segment_reduce(end, rows, queries.offsets) for end in (np.minimum, np.maximum))
        low, high = (np.repeat(end, queries.sizes) for end in ends)
    else:
        rows, low, high = grades, 0.0, 1.0
    return "binary" if ((rows == low) | (rows == high)).all() else "grades"


def joint_space(spaces: Sequence[str]) -> str:
    """Return the space of labels, from the spaces of their parts.

    >>> joint_space(["binary", "grades", "binary"])
    'grades'
    """
    return next((space for space in spaces if space != "binary"), spaces[0])


def _uncapitalised(text: str) -> str:
    """Begin a sentence in lower case, for use after a colon; an abbreviation stays.

    >>> _uncapitalised("No function"), _uncapitalised("AP is"), _uncapitalised("A beam")
    ('no function', 'AP is', 'a beam')
    """
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def check_decoder(metric: Metric, decoder: Any) -> None:
    """Raise if the pair scores of the metric do not have this decoder."""
    if not isinstance(decoder, str) or decoder not in OF_PAIRS[metric.name]:
        raise UnknownNameError(f"decoder of {metric.name}", decoder, OF_PAIRS[metric.name])
