"""Attack a theorem: search label distributions for a counterexample, and verify it in exact arithmetic."""

from __future__ import annotations

import functools

import numpy as np

from concordant._base.segments import one_blas_thread
from concordant.theory.certificate import Certificate, Tried
from concordant.theory.combination import Combination
from concordant.theory.search.counterexample import Counterexample, find_counterexample
from concordant.theory.search.hunt import Finding, hunt
from concordant.theory.search.impossibility import impossibility
from concordant.theory.search.proof import Impossibility
from concordant.theory.search.trial import Trial
from concordant.theory.spaces import every_label
from concordant.theory.theorem import Theorem

BUDGET = 3000
SLOWER = 6  # by which the budget is divided where each minimiser is a linear program


def attack_theorem(
    combination: Combination,
    theorem: Theorem,
    *,
    n_items: int,
    budget: int = BUDGET,
    highest: int = 2,
    seed: int = 0,
) -> Certificate:
    """Test a theorem on label distributions; a counterexample refutes it, whatever its status.

    If there is regret that cannot be shown exactly, a proven theorem becomes open.
    """
    every_label(combination.space, n_items, highest)  # raises if there are too many, before any work
    counterexample, tried = _search_counterexample(combination, n_items, budget, highest, seed)
    unsure = counterexample is None and tried.worst > 0.0 and theorem.status != "refuted"
    status = "open" if unsure else theorem.status if counterexample is None else "refuted"
    proof = _no_standardization(combination, theorem, n_items, highest)
    return Certificate(combination, theorem, status, tried, counterexample, proof)


def _search_counterexample(
    combination: Combination, n_items: int, budget: int, highest: int, seed: int
) -> tuple[Counterexample | None, Tried]:
    """Search for a counterexample, with few items first."""
    rng, findings = np.random.default_rng(seed), []
    sizes = range(min(3, n_items), n_items + 1)
    counterexample = None
    with one_blas_thread():
        for size in sizes:
            trial = Trial(combination, size, highest)
            if not trial.spread:
                findings.append(Finding(0, 0.0, 0))
                continue
            findings.append(hunt(trial, budget if trial.quick else 1 + budget // SLOWER, rng))
            counterexample = find_counterexample(trial, findings[-1])
            if counterexample is not None:
                break
    total = functools.reduce(Finding.merge, findings)
    sizes_tried = tuple(sizes)[: len(findings)]
    return counterexample, Tried(sizes_tried, total.tried, total.worst, total.unsettled, seed)


def _no_standardization(
    combination: Combination, theorem: Theorem, n_items: int, highest: int
) -> Impossibility | None:
    """Prove that no function of the labels would serve, if the theorem says so."""
    if theorem.status != "refuted" or combination.surrogate.reads != "targets" or combination.standardized:
        return None
    return impossibility(combination.metric, combination.space, n_items=min(n_items, 4), highest=highest)
