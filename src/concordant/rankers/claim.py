"""What is known of a training before it begins: the labels' space, the catalogue's entry, and the warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from concordant._segments import segment_reduce
from concordant.exceptions import GuaranteeWarning, UnknownNameError
from concordant.metrics.metric import Metric
from concordant.metrics.standardization import EVERY, NOTHING
from concordant.supervision.labels import Permutations, Preferences
from concordant.supervision.queries import Queries
from concordant.theory.catalogue import theorem_of
from concordant.theory.certificate import Certificate
from concordant.theory.combination import OF_PAIRS, Combination, misfit
from concordant.theory.kinds import PairSquared, SurrogateLike, described
from concordant.theory.theorem import Theorem

__all__ = ["Claim", "check_decoder", "claimed", "knowingly", "label_space"]

BY_RELEVANCE = ("ap", "p", "rr", "auc")  # metrics that read grades as relevant or not


@dataclass(frozen=True)
class Claim:
    """What is guaranteed of a metric, the labels, a surrogate and a decoder, given what is assumed.

    Attributes
    ----------
    metric, space, surrogate, decoder
        What is trained for, on which labels, by which loss, decoded how.
    combination, theorem
        Of the catalogue; None where it does not speak of these together.
    why
        Why it does not; else empty.
    assumed
        The condition that the caller takes the labels to satisfy; None: none.
    """

    metric: Metric
    space: str
    surrogate: SurrogateLike
    decoder: str
    combination: Combination | None
    theorem: Theorem | None
    why: str
    assumed: str | None = None

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
        """Conditions under which it is consistent, where it is not for every distribution."""
        return () if self.known is None else self.known.holds_under

    @property
    def condition(self) -> str:
        """What consistency rests on here: "every distribution", a condition, or "nothing"."""
        if self.status == "proven":
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
        paired = isinstance(self.surrogate, PairSquared)
        ask = f"'{metric}', 'pairs', {self.decoder!r}" if paired else f"'{metric}', model.surrogate_"
        more = "print(model.certificate_) tells more"
        if self.known is not None:
            more = f"print(model.certificate_) and cc.certify({ask}) tell more"
        if self.condition == NOTHING:
            reason = self.why if self.theorem is None else self.theorem.statement
            text = f"nothing guarantees that training by {by} optimises {metric}"
            return f"{text}: {reason.rstrip('.')}; {more}"
        if paired:
            text = f"decoder={self.decoder!r} is optimal for {metric} only under {self.condition}"
            return f"{text}, and decoder='auto' always; {more}"
        text = f"training for {metric} by {by} is consistent only under {self.condition}"
        return f"{text}; assume={self.condition!r} says that you know; {more}"

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
    metric: Metric, surrogate: SurrogateLike, decoder: str, space: str, assumed: str | None = None
) -> Claim:
    """Look up what is known.

    >>> from concordant import metric
    >>> claimed(metric("ap"), PairSquared(), "diagonal", "binary").condition
    'P_reinforce'
    """
    subject = metric, surrogate, decoder, space
    try:
        hash(subject)
    except TypeError:  # a metric or surrogate of the caller's own
        found = looked_up.__wrapped__(*subject)
    else:
        found = looked_up(*subject)
    return Claim(metric, space, surrogate, decoder, *found, assumed)


@lru_cache(maxsize=256)
def looked_up(
    metric: Metric, surrogate: SurrogateLike, decoder: str, space: str
) -> tuple[Combination | None, Theorem | None, str]:
    """Give the catalogue's entry; or why there is none. It takes some milliseconds, the first time."""
    one = Combination(metric, space, surrogate, decoder)
    if reason := misfit(one):
        return None, None, reason
    return one, theorem_of(one), ""


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


def check_decoder(metric: Metric, decoder: Any) -> None:
    """Refuse a decoder that the pair scores of the metric do not have."""
    if not isinstance(decoder, str) or decoder not in OF_PAIRS[metric.name]:
        raise UnknownNameError(f"decoder of {metric.name}", decoder, OF_PAIRS[metric.name])
