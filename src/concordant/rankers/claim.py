"""What is known of a training before it begins: the labels' space, the catalogue's entry, and the warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from concordant._segments import segment_reduce
from concordant.decoders.average_precision import DYNAMIC_ITEMS as AP_ITEMS
from concordant.decoders.components import DYNAMIC_ITEMS as PD_ITEMS
from concordant.exceptions import GuaranteeWarning, UnknownNameError
from concordant.metrics.metric import Metric
from concordant.metrics.standardization import EVERY, NOTHING
from concordant.supervision.labels import Permutations, Preferences
from concordant.supervision.queries import Queries
from concordant.theory.catalogue import theorem_of
from concordant.theory.certificate import Certificate
from concordant.theory.combination import OF_PAIRS, Combination, combination, misfit
from concordant.theory.kinds import PairSquared, SurrogateLike, described
from concordant.theory.theorem import Theorem

__all__ = ["PROVEN_DECODE", "Claim", "check_decoder", "claimed", "joint_space", "knowingly", "label_space"]

BY_RELEVANCE = ("ap", "p", "rr", "auc")  # metrics that read grades as relevant or not
ALWAYS_PROVEN = {"ap": AP_ITEMS, "pd": PD_ITEMS}  # items up to which "auto" proves every order best
PROVEN_DECODE = "proven_decode"


@dataclass(frozen=True)
class Claim:
    """What is guaranteed of a metric, the labels, a surrogate and a decoder, given what is assumed.

    Attributes
    ----------
    metric, space, surrogate, decoder
        What is trained for, on which labels, by which loss, decoded how.
    combination, theorem
        Of the catalogue, which reads relevance as 0 and 1; None where it does not speak of these together.
    why
        Why it does not; else empty.
    assumed
        The condition that the caller takes the labels to satisfy; None: none.
    n_items
        Items of the longest query, where pairs are scored; else 0.
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

    @property
    def known(self) -> Certificate | None:
        """What the catalogue says."""
        if self.combination is None or self.theorem is None:
            return None
        return Certificate(self.combination, self.theorem, self.theorem.status)

    @property
    def status(self) -> str:
        """Over all distributions of the labels: "proven", "conditional", "refuted" or "open"."""
        return "open" if self.known is None else self.known.status

    @property
    def holds_under(self) -> tuple[str, ...]:
        """Conditions under which it is consistent, where it is not for every distribution and every query."""
        if self.by_proof:
            return (PROVEN_DECODE,)
        return () if self.known is None else self.known.holds_under

    @property
    def unproven(self) -> bool:
        """Whether the exact decoder may leave orders of so many items unproven."""
        exact = isinstance(self.surrogate, PairSquared) and self.decoder == "auto"
        return exact and self.n_items > ALWAYS_PROVEN[self.metric.name]

    @property
    def by_proof(self) -> bool:
        """Whether consistency is proven, but on queries whose decode is: two grades need no search."""
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
    def told(self) -> bool:
        """Whether a guarantee holds for all that the caller assumes: nothing need be said."""
        return self.status == "proven" or self.assumed in self.holds_under

    @property
    def caution(self) -> str:
        """Say what is not guaranteed, and how to look it up."""
        by, metric = described(self.surrogate), self.metric
        more = "print(model.certificate_) tells more"
        if self.known is not None:
            more = f"print(model.certificate_) and {self.question} tell more"
        if self.condition == NOTHING:
            reason = self.why if self.theorem is None else uncapitalised(self.theorem.statement)
            text = f"nothing guarantees that training by {by} optimises {metric}"
            return f"{text}: {reason.rstrip('.')}; {more}"
        if isinstance(self.surrogate, PairSquared):
            text = f"decoder={self.decoder!r} is optimal for {metric} only under {self.condition}"
            return f"{text}, and decoder='auto' wherever it proves its order best; {more}"
        under, weakest = " or ".join(self.holds_under), self.condition
        if {"low_noise", "P_f"} <= set(self.holds_under):
            under, weakest = f"{under} (low_noise implies P_f)", "P_f"
        text = f"training for {metric} by {by} is consistent only under {under}"
        return f"{text}; assume={weakest!r} says that you know; {more}"

    @property
    def question(self) -> str:
        """Give the call of `certify` that asks about these labels."""
        metric = read_by(self.metric, self.space)
        if isinstance(self.surrogate, PairSquared):
            asked, decoder = f"'{metric}', 'pairs', {self.decoder!r}", self.decoder
        else:
            asked, decoder = f"'{metric}', model.surrogate_", "auto"
        meant = combination(metric, self.surrogate, decoder).space
        labels = "" if meant == self.space else f", labels={self.space!r}"
        return f"cc.certify({asked}{labels})"

    def warn(self, stacklevel: int = 3) -> None:
        """Say once what is not guaranteed; the default is for methods of rankers, whose caller is warned."""
        if not self.told:
            warnings.warn(self.caution, GuaranteeWarning, stacklevel=stacklevel)


@contextmanager
def knowingly() -> Iterator[None]:
    """Train a baseline on purpose: its `GuaranteeWarning` is not given.

    >>> from concordant import LinearRanker
    >>> with knowingly():
    ...     LinearRanker("ndcg", "preorder").fit([[1.0], [0.0]], [1, 0]).certificate_.status
    'refuted'
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        yield


def claimed(
    metric: Metric,
    surrogate: SurrogateLike,
    decoder: str,
    space: str,
    assumed: str | None = None,
    n_items: int = 0,
) -> Claim:
    """Look up what is known.

    >>> from concordant import metric
    >>> claimed(metric("ap"), PairSquared(), "diagonal", "binary").condition
    'P_reinforce'
    >>> [claimed(metric("ap"), PairSquared(), "auto", "binary", n_items=n).condition for n in (10, 100)]
    ['every distribution', 'proven_decode']
    """
    subject = metric, surrogate, decoder, space
    try:
        hash(subject)
    except TypeError:  # a metric or surrogate of the caller's own
        found = looked_up.__wrapped__(*subject)
    else:
        found = looked_up(*subject)
    return Claim(metric, space, surrogate, decoder, *found, assumed, n_items)


@lru_cache(maxsize=256)
def looked_up(
    metric: Metric, surrogate: SurrogateLike, decoder: str, space: str
) -> tuple[Combination | None, Theorem | None, str]:
    """Give the catalogue's entry; or why there is none. It takes some milliseconds, the first time."""
    one = Combination(read_by(metric, space), space, surrogate, decoder)
    if reason := misfit(one):
        return None, None, reason
    return one, theorem_of(one), ""


def read_by(metric: Metric, space: str) -> Metric:
    """Give the metric that reads relevance, 0 or 1, as this one reads grades.

    >>> from concordant import metric
    >>> read_by(metric("p@2[relevant_from=3]"), "binary"), read_by(metric("p@2[relevant_from=3]"), "grades")
    (metric('p@2'), metric('p@2[concordant,relevant_from=3]'))
    """
    if metric.name not in BY_RELEVANCE or space != "binary" or metric.convention.relevant_from <= 1.0:
        return metric
    return replace(metric, convention=metric.convention.replace(relevant_from=1.0))


def label_space(metric: Metric, surrogate: SurrogateLike, labels: Any, queries: Queries) -> str:
    """Give the space of labels as the metric and the surrogate read them: a name of `theory.spaces.SPACES`.

    >>> from concordant import metric
    >>> from concordant.supervision.labels import Grades
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
    if metric.name in BY_RELEVANCE and surrogate.reads != "grades":
        return "binary"
    grades = np.asarray(labels.values)
    low: Any
    high: Any
    if metric.name == "pd":  # which reads no more than which of two grades is higher
        rows = queries.gather(grades)
        ends = (segment_reduce(end, rows, queries.offsets) for end in (np.minimum, np.maximum))
        low, high = (np.repeat(end, queries.sizes) for end in ends)
    else:
        rows, low, high = grades, 0.0, 1.0
    return "binary" if ((rows == low) | (rows == high)).all() else "grades"


def joint_space(spaces: Sequence[str]) -> str:
    """Give the space of labels, from those of the labels' parts.

    >>> joint_space(["binary", "grades", "binary"])
    'grades'
    """
    return next((space for space in spaces if space != "binary"), spaces[0])


def uncapitalised(text: str) -> str:
    """Begin a sentence in small letters, for use after a colon; an abbreviation stays.

    >>> uncapitalised("No function"), uncapitalised("AP is"), uncapitalised("A beam")
    ('no function', 'AP is', 'a beam')
    """
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def check_decoder(metric: Metric, decoder: Any) -> None:
    """Refuse a decoder that the pair scores of the metric do not have."""
    if not isinstance(decoder, str) or decoder not in OF_PAIRS[metric.name]:
        raise UnknownNameError(f"decoder of {metric.name}", decoder, OF_PAIRS[metric.name])
