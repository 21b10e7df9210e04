"""Whether a condition holds, fails or is undecided, for each query of replicated supervision."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real

from concordant.exceptions import LabelError, ParameterError
from concordant.metrics.conditions import Family
from concordant.metrics.metric import Metric
from concordant.supervision.synthetic.items import check_counts
from concordant.theory.conditions import Condition, check_condition
from concordant.theory.noise.expectations import average_precision
from concordant.theory.replicates.bootstrap import resample
from concordant.theory.replicates.evidence import Evidence, Followed, Majorities, Paths
from concordant.theory.replicates.limits import EVEN, Limits, limits_of
from concordant.theory.replicates.order_evidence import Orders
from concordant.theory.replicates.relevance_evidence import Shares
from concordant.theory.replicates.replicated import Replicates
from concordant.theory.replicates.report import ConditionReport, QueryCheck
from concordant.theory.replicates.votes import Votes, check_size

__all__ = ["check"]

BEYOND = 10  # resamples outside of the band: fewer say little of where it ends
ROUNDING = 1e-6  # 10 / (1 - 0.95) is not 200


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
    """Tell for each query whether a condition holds, fails, or is undecided.

    Around the expectations that decide the condition a band is laid, which covers all of them at once with
    the confidence asked for. The condition holds if it holds everywhere in the band, fails if it holds
    nowhere in it, and is undecided otherwise: where the band covers the truth, no state is wrong. The share
    of the resamples on which the condition holds, `support`, does not decide: near ties it is large or small
    by chance, and with few annotators it is always one or the other.

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
        Of preferences: the largest weight that any vote can give to one, seen or not; None: the largest seen.
        One that was not seen may turn every majority, so that the confidence is given this limit.
    largest_f
        The same of f: how far a vote can set f of two items apart.
    n_bootstrap
        How often the annotators of a query are drawn again, with replacement; at least 10/(1 - confidence).
    confidence
        Of each query, not of all of them together.
    seed
        Equal seeds give equal reports.
    step
        Called with the id of each query before it is looked at.

    Examples
    --------
    >>> from concordant.supervision.synthetic import LabelDistribution
    >>> company = LabelDistribution(([1, 1, 0], [1, 0, 0], [0, 0, 1]), [[0.5, 0.2, 0.3]], queries=["q"] * 3)
    >>> for n in (2, 50, 2000):
    ...     print(check(Replicates.sample(company, n), "P_reinforce").queries[0])
    q: undecided (3 items, 2 annotators, support 1.00)
    q: undecided (3 items, 50 annotators, support 0.25)
    q: fails (3 items, 2,000 annotators, support 0.00, shown by items 1, 2)
    """
    chosen = check_condition(condition, metric, f, margin)
    check_settings(n_bootstrap, confidence, seed)
    if not isinstance(replicates, Replicates):
        problem = f"replicates is a {type(replicates).__name__}"
        raise LabelError(
            problem, "read votes by Replicates.from_orders, from_array, from_table, from_labels."
        )
    limits = limits_of(replicates, f, largest, largest_f)
    found = []
    for number, (query, votes) in enumerate(zip(replicates.ids, replicates.votes, strict=True)):
        step(str(query))
        check_size(len(votes.counts), votes.n_items, query)
        evidence = evidence_of(chosen, votes, metric, f, query, limits)
        drawn = resample(evidence, votes.counts, n_bootstrap, confidence, margin, [seed, number])
        verdict = evidence.verdict(drawn.lower, drawn.upper, margin)
        always = votes.n_items < (chosen.can_fail if f is None else 2)
        state = "holds" if always or verdict.everywhere else "fails" if verdict.nowhere else "undecided"
        shown = tuple(votes.items[item] for item in verdict.shown) if state == "fails" else ()
        size = votes.n_items, votes.n_annotators
        found.append(QueryCheck(query, *size, drawn.estimate, drawn.support, state, shown))
    settings = float(confidence), n_bootstrap, float(margin)
    return ConditionReport(condition, tuple(found), *settings, limits.uneven, limits.assumes)


def check_settings(n_bootstrap: int, confidence: float, seed: int) -> None:
    """Refuse settings that mean nothing."""
    check_counts(n_bootstrap=n_bootstrap)
    if not (isinstance(confidence, Real) and 0.5 <= confidence < 1.0):
        raise ParameterError("confidence", confidence, "from 0.5 to below 1")
    least = math.ceil(BEYOND / (1.0 - confidence) - ROUNDING)
    if n_bootstrap < least:
        beyond = f"at least {least:,} for a confidence of {confidence:g}, so that {BEYOND} lie beyond it"
        raise ParameterError("n_bootstrap", n_bootstrap, beyond)
    if isinstance(seed, bool) or not (isinstance(seed, Integral) and seed >= 0):
        raise ParameterError("seed", seed, "a whole number >= 0")


def evidence_of(
    condition: Condition,
    votes: Votes,
    metric: Metric | str | None,
    f: Family | None,
    query: object,
    limits: Limits = EVEN,
) -> Evidence:
    """Give what a condition reads of the votes of one query."""
    if condition.name == "P_reinforce":
        relevant_from = float(average_precision(metric or "ap").convention.relevant_from)
        return Shares(votes, relevant_from, query)
    if condition.name == "order_preserving":
        return Orders(votes, query)
    if condition.name == "P_f":
        return Followed(votes, f, query, limits)
    return (Majorities if condition.name == "P_DAG" else Paths)(votes, limits)
