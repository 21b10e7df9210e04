"""Bounds put to the test where the risk is known: every inequality beside what it bounds, measured.

A loose bound cannot fail, so that its holding shows little. Therefore each step of a proof is measured
too, with its slack, and constants known to be wrong are tried: those must be caught.

>>> found = run(draws=500)
>>> sum(check.broken for check in found.checks if not check.wrong)
0
>>> all(check.broken for check in found.checks if check.wrong)
True
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from concordant._internals import check_counts, check_whole, listwise_slope, n_pairs, reach, variety
from concordant.theory.bounds import Bound, kappa, listwise, multipartite, pairwise
from concordant.types import FloatArray
from studies.riezler_debona.bounds.problems import Problem, adversarial, misordered
from studies.riezler_debona.bounds.sampling import DELTA, Check, Sampler

TEMPERATURE = 0.5
MANY = 1_000_000  # queries at which the published excess is below the gap of erratum 5
CONTRACTED = "R_n <= sqrt(2) L B M sqrt(m/n)"
FULL, HALF = (1, 1, 1), (2, 2)
STEPS = 8  # of which `run` tells


@dataclass(frozen=True)
class Simulation:
    """Checks of `run`, and its settings: queries of a draw, draws, delta and seed."""

    checks: tuple[Check, ...]
    n: int
    draws: int
    delta: float
    seed: int

    @property
    def as_expected(self) -> bool:
        """True if every wrong constant is caught, and nothing else is broken."""
        return all(check.broken == check.wrong for check in self.checks)


def run(
    *, n: int = 100, draws: int = 1000, seed: int = 0, step: Callable[[str], None] = lambda _: None
) -> Simulation:
    """Measure every inequality on small adversarial problems.

    Parameters
    ----------
    n
        Queries of each sample.
    draws
        Samples. Few leave large standard errors, so that wrong constants may pass: of 100 some do.
    seed
        Of the random numbers; equal arguments give equal results.
    step
        Called with a line of text before each group of checks.
    """
    check_counts(n=n, draws=draws)
    rng = np.random.default_rng(check_whole("seed", seed, 0))
    sampler, checks = Sampler(n, draws, rng), list[Check]()
    for name, group in _groups().items():
        step(name)
        checks += group(sampler, name)
    return Simulation(tuple(checks), n, draws, DELTA, seed)


def _groups() -> Mapping[str, Callable[[Sampler, str], list[Check]]]:
    full, half = adversarial(FULL), adversarial(HALF)
    soft = half.softmax_hinge("ap", TEMPERATURE)
    return {
        "linear functions": lambda sampler, _: _linear_checks(sampler, half),
        "position hinge, 3 levels": lambda sampler, name: _position_checks(sampler, full, name),
        "position hinge, 2 levels": lambda sampler, name: _position_checks(sampler, half, name),
        "max hinge, AP": lambda sampler, name: _listwise_checks(
            sampler, half, name, half.max_hinge("ap"), "max"
        ),
        "max hinge, NDCG": lambda sampler, name: _listwise_checks(
            sampler, full, name, full.max_hinge("ndcg"), "max"
        ),
        "soft-max hinge, AP": lambda sampler, name: _listwise_checks(sampler, half, name, soft, "softmax"),
        "sum of hinges, AP": lambda sampler, name: _summed_checks(sampler, half, name),
        "0-1 error, 3 levels": _plain_error_checks,
    }


def _linear_checks(sampler: Sampler, problem: Problem) -> list[Check]:
    """Lemma 1: Rademacher averages of linear functions (2/n, absolute values), of pairs and of orders."""
    unit, m = problem.B / math.sqrt(sampler.n), sum(problem.levels)
    items, orders = (
        2 * problem.B * np.linalg.norm(sampler.signs(problem.probs) @ differences, axis=1)
        for differences in (problem.differences(), problem.order_differences())
    )
    pair, pair_of_orders = "differences of two items", "differences of two orders"
    return [
        sampler.mean(pair, "R_n <= 4BM / sqrt(n)", items, 4 * unit),
        sampler.mean(pair, "R_n <= 2BM / sqrt(n), as published", items, 2 * unit, wrong=True),
        sampler.mean(pair_of_orders, "R_n <= 4 kappa BM / sqrt(n)", orders, 4 * kappa(m) * unit),
        sampler.mean(pair_of_orders, "R_n <= 4BM / sqrt(n), without kappa", orders, 4 * unit, wrong=True),
    ]


def _symmetrisation_checks(
    sampler: Sampler, problem: Problem, name: str, values: FloatArray, slope: float
) -> list[Check]:
    """The two steps of the sharp proof: contraction, and E sup(R - Rhat) <= 2 R_n."""
    averages, centred = sampler.averages(problem, values), problem.centred(values)
    unit = slope * problem.B / math.sqrt(sampler.n)
    deviations, noise = sampler.deviations(problem, centred, centred), 2 * sampler.noise(averages)
    return [
        sampler.mean(name, CONTRACTED, averages, math.sqrt(2 * sum(problem.levels)) * unit),
        sampler.mean(name, "E sup(R - Rhat) <= 2 R_n", deviations, 2 * float(averages.mean()), noise=noise),
    ]


def _position_checks(sampler: Sampler, problem: Problem, name: str) -> list[Check]:
    """Every step and every version for the summed position hinge."""
    values, levels, unit = problem.position_hinge(), problem.levels, problem.B / math.sqrt(sampler.n)
    pairs, averages = n_pairs(levels), sampler.averages(problem, values)
    checks = _symmetrisation_checks(sampler, problem, name, values, reach(levels))
    by_pair = math.sqrt(pairs * variety(levels)) * unit
    checks += [
        sampler.mean(
            name, "R_n <= L B M / sqrt(n), as of one score", averages, reach(levels) * unit, wrong=True
        ),
        sampler.mean(name, "R_n <= B M sqrt(P V/n)", averages, by_pair),
        sampler.mean(
            name, "R_n (2/n) <= P 8BM / sqrt(n)", sampler.absolute(problem, values), 8 * pairs * unit
        ),
    ]
    cut = problem.position_hinge(cut=True)
    for version in ("corrected", "sharp", "tight"):
        bound = multipartite(sampler.n, levels, problem.B, 1.0, DELTA, version)
        losses, words = (cut, f"{name}, cut off") if version == "tight" else (values, name)
        checks.append(_deviation_check(sampler, problem, words, losses, bound))
    return checks


def _deviation_check(
    sampler: Sampler, problem: Problem, name: str, values: FloatArray, bound: Bound
) -> Check:
    """A version's last word: every draw's largest R - Rhat against its excess."""
    deviations = sampler.deviations(problem, values, values)
    return sampler.quantile(name, f"sup(R - Rhat) <= {bound.version}", deviations, bound)


def _listwise_checks(
    sampler: Sampler, problem: Problem, name: str, values: FloatArray, mode: str
) -> list[Check]:
    """Every step of the sharp bound, for a listwise hinge."""
    levels, m = problem.levels, sum(problem.levels)
    checks = _symmetrisation_checks(sampler, problem, name, values, listwise_slope(levels))
    steep = 4 * math.sqrt(2 * n_pairs(levels) * variety(levels)) / (m * (m - 1))
    limit, averages = steep * problem.B / math.sqrt(sampler.n), sampler.averages(problem, values)
    checks.append(sampler.mean(name, "R_n <= 4 sqrt(2 P V) B M / (m (m - 1) sqrt(n))", averages, limit))
    setting = sampler.n, m, problem.B, 1.0, DELTA
    for version, losses in (("sharp", values), ("tight", np.minimum(values, 1.0))):
        bound = listwise(*setting, version, mode, temperature=TEMPERATURE, levels=levels)
        words = f"{name}, cut off" if version == "tight" else name
        checks.append(_deviation_check(sampler, problem, words, losses, bound))
    return checks


def _summed_checks(sampler: Sampler, problem: Problem, name: str) -> list[Check]:
    """The corrected bound, for the sum over all orders."""
    values, m = problem.sum_hinge("ap"), sum(problem.levels)
    limit = math.factorial(m) * 8 * kappa(m) * problem.B / math.sqrt(sampler.n)
    bound = listwise(sampler.n, m, problem.B, 1.0, DELTA, "corrected")
    return [
        sampler.mean(name, "R_n (2/n) <= Q 8 kappa BM / sqrt(n)", sampler.absolute(problem, values), limit),
        _deviation_check(sampler, problem, name, values, bound),
    ]


def _plain_error_checks(sampler: Sampler, name: str) -> list[Check]:
    """Erratum 5: with many queries the published bound on the 0-1 error fails, the corrected one holds."""
    problem, many = misordered(), Sampler(MANY, sampler.draws, sampler.rng)
    error, hinge = problem.zero_one(), problem.position_hinge()
    checks = []
    for version, factor in (("published", ""), ("corrected", "2 ")):
        bound = pairwise(MANY, 3, problem.B, 1.0, DELTA, version, error="plain")
        gaps = many.deviations(problem, error, bound.multiplier * hinge)
        words = f"sup(R01 - {factor}Rhat) <= {version}, n = {MANY:,}, B = {problem.B:g}"
        checks.append(many.quantile(name, words, gaps, bound, wrong=bool(bound.refuted)))
    return checks
