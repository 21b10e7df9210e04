"""certify: name a metric and a surrogate; get the theorem, or the counterexample.

>>> print(certify("ndcg@10", "pairwise", budget=0))
ndcg@10 on grades, pairwise, sort: proven. It is consistent for every distribution of the labels. ...
"""

from __future__ import annotations

from numbers import Integral

import numpy as np

from concordant._segments import one_blas_thread
from concordant.exceptions import ParameterError
from concordant.metrics.metric import Metric
from concordant.supervision.synthetic.items import check_counts
from concordant.theory.catalogue import theorem_of
from concordant.theory.certificate import Certificate, Tried
from concordant.theory.combination import Combination, combination
from concordant.theory.kinds import SurrogateLike
from concordant.theory.search.counterexample import Counterexample, first_verified
from concordant.theory.search.hunt import Finding, hunt
from concordant.theory.search.impossibility import Impossibility, impossibility
from concordant.theory.search.trial import Trial
from concordant.theory.spaces import every_label
from concordant.theory.theorem import Theorem

__all__ = ["certify", "put_to_the_test"]

MOST_ITEMS = 5  # all labels and all orders are looked at
BUDGET = 3000
SLOWER = 6  # by which the budget is divided where each minimiser is a linear program


def certify(
    metric: Metric | str,
    surrogate: SurrogateLike | str,
    decoder: str = "auto",
    *,
    labels: str = "auto",
    n_items: int = 4,
    budget: int = BUDGET,
    highest: int = 2,
    seed: int = 0,
) -> Certificate:
    """Say what is guaranteed of a metric, a surrogate and a decoder, and put it to the test.

    The catalogue gives the theorem. Then label distributions of 3 to `n_items` items are tried: on each the
    expected surrogate is minimised, decoded, and compared with the best of all orders. What fails is shrunk
    to few labels and small fractions, and verified in exact arithmetic.

    Parameters
    ----------
    metric
        A metric, or its name.
    surrogate
        A surrogate, or its name: those of `concordant.surrogates.SURROGATES`, "listwise_hinge" (of this
        metric), or "pairs" (what `PairRanker` minimises); also with parameters, "pairwise(logistic)".
    decoder
        "auto": sorting for scores of items, the exact decoder for those of pairs. Of pairs also "diagonal"
        and "beam" (ap), "edge-deletion", "borda" and "insertion" (pd).
    labels
        What the labels may be: "binary", "grades", "preferences", "permutations"; "auto": the first of these
        that the metric is meant for and the surrogate reads.
    n_items
        Items of the largest queries tried, from 2 to 5.
    budget
        Distributions to try for each number of items (a sixth of them for losses with corners, whose
        minimisers are linear programs); 0: only the catalogue is asked.
    highest
        Highest grade tried, on grades.
    seed
        Of the random numbers.

    Examples
    --------
    >>> print(certify("rr", "squared", n_items=3, budget=500).counterexample)
    3 items, numbered from 1; the label is
      ...
    >>> certify("ap", "pairwise", budget=0)
    Certificate(ap on binary, pairwise, sort: refuted, holds under P_reinforce)
    """
    one = combination(metric, surrogate, decoder, labels)
    check_counts(n_items=n_items, highest=highest)
    if not 2 <= n_items <= MOST_ITEMS:
        raise ParameterError("n_items", n_items, f"2 to {MOST_ITEMS}: all labels and orders are looked at")
    if one.space == "grades" and highest < 2:
        raise ParameterError("highest", highest, "2 or more: grades 0 and 1 are labels='binary'")
    for name, value in (("budget", budget), ("seed", seed)):
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
            raise ParameterError(name, value, "a whole number >= 0")
    if budget:
        every_label(one.space, n_items, highest)  # refuses too many, before any work
    how = {"n_items": int(n_items), "budget": int(budget), "highest": int(highest), "seed": int(seed)}
    return put_to_the_test(one, theorem_of(one), **how)


def put_to_the_test(
    one: Combination, theorem: Theorem, *, n_items: int, budget: int, highest: int = 2, seed: int = 0
) -> Certificate:
    """Try a theorem on distributions; a counterexample refutes it, whatever it says.

    A regret that cannot be shown exactly leaves open what was said to be proven.
    """
    if budget == 0:
        return Certificate(one, theorem, theorem.status)
    found, tried = searched(one, n_items, budget, highest, seed)
    unsure = found is None and tried.worst > 0.0 and theorem.status != "refuted"
    status = "open" if unsure else theorem.status if found is None else "refuted"
    proof = no_standardization(one, theorem, n_items, highest)
    return Certificate(one, theorem, status, tried, found, proof)


def searched(
    one: Combination, n_items: int, budget: int, highest: int, seed: int
) -> tuple[Counterexample | None, Tried]:
    """Look for a counterexample, in few items first."""
    rng, seen = np.random.default_rng(seed), []
    sizes = range(min(3, n_items), n_items + 1)
    found = None
    with one_blas_thread():
        for size in sizes:
            trial = Trial(one, size, highest)
            if not trial.spread:
                seen.append(Finding(0, 0.0, 0))
                continue
            seen.append(hunt(trial, budget if trial.quick else 1 + budget // SLOWER, rng))
            found = first_verified(trial, seen[-1])
            if found is not None:
                break
    return found, summary(seen, tuple(sizes)[: len(seen)], seed)


def summary(seen: list[Finding], sizes: tuple[int, ...], seed: int) -> Tried:
    """Add up what was tried."""
    tried, unsettled = sum(one.tried for one in seen), sum(one.unsettled for one in seen)
    return Tried(sizes, tried, max(one.worst for one in seen), unsettled, seed)


def no_standardization(
    one: Combination, theorem: Theorem, n_items: int, highest: int
) -> Impossibility | None:
    """Prove that no function of the labels would serve, where the theorem says so."""
    if theorem.status != "refuted" or one.surrogate.reads != "targets" or one.standardized:
        return None
    return impossibility(one.metric, one.space, n_items=min(n_items, 4), highest=highest)
