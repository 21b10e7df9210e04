"""Check whether a condition holds, fails or is undecided for each query of replicated supervision."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from concordant._base.validate import check_counts, check_number, check_whole
from concordant.data.synthetic.distribution import LabelDistribution
from concordant.exceptions import LabelError, ParameterError
from concordant.metrics.metric import Family, Metric
from concordant.theory.conditions import Condition, check_condition, holds_on
from concordant.theory.noise_conditions import ROUNDING, average_precision
from concordant.theory.replicates.annotator_votes import AnnotatorVotes, check_size
from concordant.theory.replicates.condition_report import ConditionReport, QueryCheck
from concordant.theory.replicates.evidence import (
    EVEN,
    Evidence,
    FamilyEvidence,
    Limits,
    LowNoiseEvidence,
    MajorityEvidence,
    OrderEvidence,
    RelevanceEvidence,
    build_limits,
)
from concordant.theory.replicates.replicated import Replicates
from concordant.types import BoolArray, FloatArray, IntArray

# Bootstrap of the votes: how often a condition holds on the resamples, and a band around its expectations.
#
# The band covers all expectations at once. Its width comes from the resamples; a few unanimous votes are not
# certainty, since expectations are first shrunk towards 0 by votes of either extreme (Agresti and Coull).
# Votes of different weights are too skewed for that: there the width is a distribution-free bound.

BLOCK = 2**22  # numbers in memory at once


class Resampled(NamedTuple):
    """Bootstrap results of a query.

    Attributes
    ----------
    estimate
        True if the condition holds on the votes themselves.
    support
        Share of the resamples on which it holds.
    lower, upper
        Ends of the band, one per expectation.
    """

    estimate: bool
    support: float
    lower: FloatArray
    upper: FloatArray


def resample(
    evidence: Evidence, counts: IntArray, n_bootstrap: int, confidence: float, margin: float, seed: list[int]
) -> Resampled:
    """Bootstrap the votes: draw as many as there are, with replacement, `n_bootstrap` times.

    `counts` are the numbers of annotators who cast each vote; other parameters are those of `check`.
    """
    rng, total, reach = np.random.default_rng(seed), int(counts.sum()), evidence.reach
    shares = counts / total
    means, squares = evidence.means(shares[None])[0] / reach, evidence.squares(shares)
    spread = np.sqrt(np.maximum(squares - means**2, 0.0))
    moving = spread > math.sqrt(ROUNDING)
    farthest, n_satisfied = np.zeros(n_bootstrap), 0
    size = max(1, BLOCK // max(len(means), evidence.n_items**2, len(counts)))
    for first in range(0, n_bootstrap, size):
        drawn = rng.multinomial(total, shares, min(size, n_bootstrap - first)) / total
        n_satisfied += int(evidence.holds(drawn, margin).sum())
        off = np.abs(evidence.means(drawn) / reach - means)[:, moving] / spread[moving]
        farthest[first : first + size] = off.max(axis=1, initial=0.0)
    reached = math.sqrt(total) * float(np.quantile(farthest, confidence))
    if evidence.uneven:
        lower, upper = distribution_free_band(means, squares, total, confidence)
    else:
        lower, upper = band(means, squares, total, reached, confidence)
    estimate = bool(evidence.holds(shares[None], margin)[0])
    return Resampled(estimate, n_satisfied / n_bootstrap, lower * reach, upper * reach)


def band(
    means: FloatArray, squares: FloatArray, total: int, reached: float, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the band around the means of numbers from -1 to 1.

    z is the number of standard errors within which the given share of the resamples stays in all columns, at
    least Student's for one column. z^2 imaginary votes are added, half of them -1 and half 1: for a single
    proportion this is the interval of Agresti and Coull (1998). Where the interval without them ends farther
    from 0, so does the band.

    `squares` are the mean squares of the columns, `total` is the number of annotators, and `reached` the
    number of standard errors within which the share `confidence` of the resamples stays.
    """
    from scipy.special import stdtrit

    if total < 2:
        return np.full(len(means), -np.inf), np.full(len(means), np.inf)
    z = max(reached, float(stdtrit(total - 1, (1.0 + confidence) / 2.0)))
    added = total + z**2
    centre = total * means / added
    half = z * np.sqrt(((total * squares + z**2) / added - centre**2) / added)
    plain = z * np.sqrt(np.maximum(squares - means**2, 0.0) / total)
    return np.minimum(centre - half, means - plain), np.maximum(centre + half, means + plain)


def distribution_free_band(
    means: FloatArray, squares: FloatArray, total: int, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of a band around the means of numbers from -1 to 1, whatever their distribution.

    The narrower of Hoeffding's bound and Bernstein's with the standard deviation of the votes, which is
    itself off by at most 2 sqrt(2 L / (total - 1)) (Maurer and Pontil 2009, Theorems 3 and 10). Five events
    of probability exp(-L) per column would break it; together they have probability 1 - confidence.
    """
    if total < 2:
        return np.full(len(means), -np.inf), np.full(len(means), np.inf)
    level = math.log(5.0 * max(len(means), 1) / (1.0 - confidence))
    deviation = np.sqrt(np.maximum(squares - means**2, 0.0) * total / (total - 1))
    deviation += 2.0 * math.sqrt(2.0 * level / (total - 1))
    bernstein = deviation * math.sqrt(2.0 * level / total) + 2.0 * level / (3.0 * total)
    half = np.minimum(bernstein, math.sqrt(2.0 * level / total))
    return means - half, means + half


BEYOND = 10  # resamples outside of the band: fewer say little about where it ends
COUNT_ROUNDING = 1e-6  # 10 / (1 - 0.95) is not 200


def check(
    replicates: Replicates,
    condition: str,
    *,
    metric: Metric | str | None = None,
    f: Family | None = None,
    margin: float = 0.0,
    largest: float | None = None,
    largest_f: float | None = None,
    n_bootstrap: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
    step: Callable[[str], None] = lambda _: None,
) -> ConditionReport:
    """Check for each query whether a condition holds, fails, or is undecided.

    A band around the expectations that decide the condition covers all of them at once with the requested
    confidence. The condition holds if it holds everywhere in the band, fails if it holds nowhere in it, and
    is undecided otherwise: where the band covers the truth, no state is wrong. The share of the resamples on
    which the condition holds, `support`, does not decide: near ties it is large or small by chance, and with
    few annotators it is always large or small.

    Parameters
    ----------
    replicates
        The votes. A pair that an annotator did not judge is no preference. "P_reinforce" is about the joint
        relevance of all items, and needs annotators who judged all; "order_preserving" needs full orders.
    condition
        One of `theory.conditions.CONDITIONS`.
    metric, f, margin
        As for `theory.conditions.holds_on`.
    largest
        For preferences: the largest weight that any vote can give to a preference, observed or not; None: the
        largest observed. A larger unobserved weight could turn every majority, so that the confidence is
        conditional on this limit.
    largest_f
        The same limit for f: how far a vote can set f of two items apart.
    n_bootstrap
        Number of resamples of the annotators of a query, with replacement; at least 10/(1 - confidence).
    confidence
        Confidence for each query, not for all of them together.
    seed
        Equal seeds give equal reports.
    step
        Called with the id of each query before it is checked.

    Examples
    --------
    >>> from concordant.data.synthetic import LabelDistribution
    >>> company = LabelDistribution(([1, 1, 0], [1, 0, 0], [0, 0, 1]), [[0.5, 0.2, 0.3]], queries=["q"] * 3)
    >>> for n in (2, 50, 2000):
    ...     print(check(Replicates.sample(company, n), "P_reinforce").queries[0])
    q: undecided (3 items, 2 annotators, support 1.00)
    q: undecided (3 items, 50 annotators, support 0.25)
    q: fails (3 items, 2,000 annotators, support 0.00, shown by items 1, 2)
    """
    noise_condition = check_condition(condition, metric, f, margin)
    _check_settings(n_bootstrap, confidence, seed)
    if not isinstance(replicates, Replicates):
        problem = f"replicates is a {type(replicates).__name__}"
        raise LabelError(
            problem, "read votes by Replicates.from_orders, from_array, from_table, from_labels."
        )
    limits = build_limits(replicates, f, largest, largest_f)
    query_checks = []
    for number, (query, votes) in enumerate(zip(replicates.ids, replicates.votes, strict=True)):
        step(str(query))
        check_size(len(votes.counts), votes.n_items, query)
        evidence = build_evidence(noise_condition, votes, metric, f, query, limits)
        drawn = resample(evidence, votes.counts, n_bootstrap, confidence, margin, [seed, number])
        verdict = evidence.verdict(drawn.lower, drawn.upper, margin)
        always = votes.n_items < (noise_condition.can_fail if f is None else 2)
        state = "holds" if always or verdict.everywhere else "fails" if verdict.nowhere else "undecided"
        shown = tuple(votes.items[item] for item in verdict.shown) if state == "fails" else ()
        size = votes.n_items, votes.n_annotators
        query_checks.append(QueryCheck(query, *size, drawn.estimate, drawn.support, state, shown))
    settings = float(confidence), n_bootstrap, float(margin)
    return ConditionReport(condition, tuple(query_checks), *settings, limits.uneven, limits.assumes)


def _check_settings(n_bootstrap: int, confidence: float, seed: int) -> None:
    check_counts(n_bootstrap=n_bootstrap)
    check_number("confidence", confidence, least=0.5, below=1.0)
    least = math.ceil(BEYOND / (1.0 - confidence) - COUNT_ROUNDING)
    if n_bootstrap < least:
        beyond = f"at least {least:,} for confidence={confidence:g}"
        raise ParameterError("n_bootstrap", n_bootstrap, beyond)
    check_whole("seed", seed, 0, math.inf)


def build_evidence(
    condition: Condition,
    votes: AnnotatorVotes,
    metric: Metric | str | None,
    f: Family | None,
    query: object,
    limits: Limits = EVEN,
) -> Evidence:
    """Build the columns that a condition reads from the votes of a query."""
    if condition.name == "P_reinforce":
        relevant_from = float(average_precision(metric or "ap").convention.relevant_from)
        return RelevanceEvidence(votes, relevant_from, query)
    if condition.name == "order_preserving":
        return OrderEvidence(votes, query)
    if condition.name == "P_f":
        return FamilyEvidence(votes, f, query, limits)
    return (MajorityEvidence if condition.name == "P_DAG" else LowNoiseEvidence)(votes, limits)


# Error rates of the states, on labels whose distribution is known.

SIZES = (5, 20, 100, 500)


@dataclass(frozen=True)
class ConditionErrors:
    """Error rates of `check` on queries with so many annotators, as shares of all checks.

    Attributes
    ----------
    n_annotators
        Annotators of each query.
    true
        Share where the condition holds on the distribution itself.
    holds, fails
        Shares of the states that `check` returned.
    wrong
        Share where it returned the opposite of the truth.
    naive_holds, naive_fails, naive_wrong
        The same shares if the support were taken for a probability: "holds" from `confidence` on, "fails"
        from 1 - `confidence` down.
    """

    n_annotators: int
    true: float
    holds: float
    fails: float
    wrong: float
    naive_holds: float
    naive_fails: float
    naive_wrong: float


def calibrate(
    distribution: LabelDistribution,
    condition: str,
    *,
    metric: Metric | str | None = None,
    f: Family | None = None,
    margin: float = 0.0,
    largest: float | None = None,
    largest_f: float | None = None,
    sizes: Iterable[int] = SIZES,
    n_samples: int = 1,
    n_bootstrap: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
    step: Callable[[str], None] = lambda _: None,
) -> list[ConditionErrors]:
    """Draw annotators from a known distribution, check the condition, and compare with the truth.

    Parameters
    ----------
    distribution, condition, metric, f, margin
        As for `theory.conditions.holds_on`.
    largest, largest_f
        As for `check`.
    sizes
        Numbers of annotators.
    n_samples
        Number of times that all queries are drawn.
    n_bootstrap, confidence, seed
        As for `check`.
    step
        Called with each number of annotators.

    Examples
    --------
    >>> company = LabelDistribution(([1, 1, 0], [1, 0, 0], [0, 0, 1]), [[0.5, 0.2, 0.3]], queries=["q"] * 3)
    >>> (row,) = calibrate(company, "P_reinforce", sizes=[5], n_samples=50)
    >>> row.true, row.wrong, row.naive_wrong
    (0.0, 0.0, 0.18)
    """
    check_counts(n_samples=n_samples)
    read: Any = {"metric": metric, "f": f, "margin": margin}
    true, errors = holds_on(distribution, condition, **read), []
    for size in sizes:
        step(f"{size:,} annotators")
        checks = [
            check(
                Replicates.sample(distribution, size, seed=number),
                condition,
                n_bootstrap=n_bootstrap,
                confidence=confidence,
                seed=number,
                largest=largest,
                largest_f=largest_f,
                **read,
            )
            for number in range(seed, seed + n_samples)
        ]
        states = np.array([[query_check.state for query_check in report.queries] for report in checks])
        support = np.array([[query_check.support for query_check in report.queries] for report in checks])
        stated = _state_shares(states == "holds", states == "fails", true)
        naive = _state_shares(support >= confidence, support <= 1.0 - confidence, true)
        errors.append(ConditionErrors(size, float(true.mean()), *stated, *naive))
    return errors


def _state_shares(holds: BoolArray, fails: BoolArray, true: BoolArray) -> tuple[float, float, float]:
    """Return the shares of the states "holds", "fails" and of wrong states."""
    return float(holds.mean()), float(fails.mean()), float((holds & ~true | fails & true).mean())
