"""Regret transfer: how far from the best a metric can be, by the regret of its surrogate.

>>> known = transfer_for("ndcg@10", "squared")
>>> round(known.bound(0.01, n_items=20), 4)
0.2234
>>> transfer_for("err", "squared") is None
True
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from concordant.exceptions import ParameterError
from concordant.metrics.conditions import check_assumption
from concordant.metrics.metric import Metric
from concordant.metrics.pairwise import PD
from concordant.metrics.standardization import EVERY
from concordant.supervision.columns import check_lengths, check_nonnegative
from concordant.supervision.synthetic.items import check_counts
from concordant.theory.combination import Combination, combination
from concordant.theory.kinds import PairSquared, SurrogateLike, described
from concordant.theory.linear_metrics import items_below, linear_discounts
from concordant.theory.transfer_factors import HERE, Rule, preference_factor, rule_of, shared_relevance_factor
from concordant.types import ArrayLike, FloatArray

__all__ = ["Transfer", "linear_discounts", "transfer_for", "transfer_of"]


@dataclass(frozen=True)
class Transfer:
    """A proven bound on the regret of a metric: sqrt(K(n) * surrogate regret), or that times sqrt(mass).

    The surrogate regret is the expected surrogate of a query, beyond its infimum over all scores; the metric
    counts 0 under labels for which it is undefined (as in `concordant.theory.regret`). The bound holds for
    every query, and for means over queries: then n_items is that of the longest, and mass the mean.

    Attributes
    ----------
    name
        The surrogate and the metric.
    statement, reference
        What is bounded by what, and where it is proven.
    needs
        What the bound depends on beside the surrogate regret: "n_items", "mass".
    factor
        K(n).
    condition
        On the distribution of the labels.
    """

    name: str
    statement: str
    reference: str
    needs: tuple[str, ...]
    factor: Callable[[int], float] = field(repr=False, compare=False)
    condition: str = EVERY

    def bound(self, surrogate_regret: ArrayLike, *, n_items: int, mass: ArrayLike = None) -> Any:
        """Give the largest regret that the metric can have.

        Parameters
        ----------
        surrogate_regret
            A number >= 0, or a column of them.
        n_items
            Items of the query, or of the longest one.
        mass
            Expected sum of the targets of a query, where the bound needs it: a number >= 0, or a column.

        Examples
        --------
        >>> transfer_for("p@1", "softmax").bound([0.0, 0.01, 0.02], n_items=5, mass=2.0).round(3).tolist()
        [0.0, 0.2, 0.283]
        """
        check_counts(n_items=n_items)
        regrets = column(surrogate_regret, "surrogate_regret")
        masses = self.read_mass(mass)
        if regrets.ndim and masses.ndim:
            check_lengths("surrogate_regret", len(regrets), mass=masses)
        with np.errstate(over="ignore"):  # infinite: no less than what is bounded
            bound = np.sqrt(self.factor(int(n_items))) * np.sqrt(masses) * np.sqrt(regrets)
        return bound if bound.ndim else float(bound)

    def read_mass(self, mass: ArrayLike) -> FloatArray:
        """Give the mass, which must be known where it is needed; else 1."""
        if "mass" not in self.needs:
            if mass is not None:
                column(mass, "mass")  # refuses what is no mass, though it is not needed
            return np.array(1.0)
        if mass is None:
            raise ParameterError("mass", mass, f"the mean sum of a query's targets: {self.name} needs it")
        return column(mass, "mass")


def column(values: ArrayLike, name: str) -> FloatArray:
    """Give finite numbers >= 0: a column, or a single one without an axis."""
    if isinstance(values, Real) or (isinstance(values, np.ndarray) and not values.ndim):
        return check_nonnegative([values], name, "row").reshape(())
    return check_nonnegative(values, name, "row")


def transfer_for(
    metric: Metric | str,
    surrogate: SurrogateLike | str,
    decoder: str = "auto",
    labels: str = "auto",
    *,
    assume: str | None = None,
) -> Transfer | None:
    """Give the proven bound on the regret of a metric by that of a surrogate; None where there is none.

    - Linear metrics (`linear_discounts`), sorted by scores: squared, duchi with the penalty z^2, softmax, and
      pairwise with every margin but the hinge.
    - pd and wpd on preferences, by the same surrogates, under low noise.
    - ap and pd by squares on scores of pairs, decoded exactly.

    Under P_reinforce or P_f there is none to be found: the condition lets the targets of two items be as
    close as one likes, and the metric tell them apart. See the example.

    Parameters
    ----------
    metric, surrogate, decoder, labels
        As for `concordant.theory.combination.combination`. Rows weigh 1.
    assume
        A condition on the distribution of the labels; without effect where none is needed.

    Examples
    --------
    >>> transfer_for("pd", "pairwise", labels="binary").needs
    ('n_items', 'mass')
    >>> transfer_for("pd", "squared", assume="low_noise").condition
    'low_noise'
    >>> round(transfer_for("ap", "pairs").bound(0.01, n_items=3), 4)
    0.0972

    Labels (1,0,1) with probability 0.67 and (0,1,0) with 0.33 satisfy P_reinforce. The expected shares are
    (0.335, 0.33, 0.335): to the squared loss, scores (0.333, 0.334, 0.333) are hardly worse. To AP they are.

    >>> from concordant.supervision.synthetic import LabelDistribution
    >>> from concordant.theory.regret import regret
    >>> votes = LabelDistribution(([1, 0, 1], [0, 1, 0]), [[0.67, 0.33]], queries=[0, 0, 0])
    >>> regret("ap", votes, [0.333, 0.334, 0.333]).round(3).tolist()
    [0.059]
    """
    return transfer_of(combination(metric, surrogate, decoder, labels), assume)


def transfer_of(one: Combination, assume: str | None = None) -> Transfer | None:
    """Give the transfer of a combination: see `transfer_for`."""
    check_assumption(assume)
    if isinstance(one.surrogate, PairSquared):
        return pair_transfer(one) if one.decoder == "auto" else None
    rule = rule_of(one.surrogate)
    if rule is None:
        return None
    if linear_discounts(one.metric, 1, one.space) is not None:
        return item_transfer(one, rule)
    preferred = isinstance(one.metric, PD) and one.space == "preferences"
    return low_noise_transfer(one, rule) if preferred and assume == "low_noise" else None


def item_transfer(one: Combination, rule: Rule) -> Transfer:
    """Scores of items, sorted, and a linear metric."""
    factor = partial(item_factor, rule.factor, one.metric, one.space)
    told = statement(one, rule.formula, rule.massive) + "; c_k is what a target of 1 is worth at place k"
    return Transfer(named(one), told, rule.reference, needs(rule), factor)


def item_factor(rule: Callable[[FloatArray], float], metric: Metric, space: str, n_items: int) -> float:
    """K(n) of a linear metric."""
    discounts: Any = linear_discounts(metric, n_items, space)
    return rule(discounts)


def low_noise_transfer(one: Combination, rule: Rule) -> Transfer:
    """Preferences: the regret is at most half of that of the linear metric with c_k = n - k.

    Let d_ij = E[a_ij - a_ji]. Along positive d nothing returns: the best order inverts none of them, and the
    regret of another is the sum of the d_ij > 0 that it inverts. The targets are net weights, up to a
    constant: their means differ by a_i - a_j = 2 d_ij + the sum over the other k of d_ik + d_kj. Let
    d_ij > 0. If d_kj < 0, low noise along i, j, k gives d_ik >= d_ij + d_jk > 0; if d_ik < 0, along k, i, j,
    d_kj >= d_ki + d_ij > 0; else neither is negative. No term of the sum is: a_i - a_j >= 2 d_ij > 0. So all
    that the order inverts is inverted for a, too, and costs half of a_i - a_j at most, which add up to the
    regret of the linear metric (`items_below`).
    """
    factor = partial(half_factor, rule.factor)
    told = statement(one, f"1/4 of {rule.formula}", rule.massive) + "; c_k is n - k"
    reference = f"shown in concordant.theory.transfer; {HERE}"
    return Transfer(named(one), told, reference, needs(rule), factor, "low_noise")


def half_factor(rule: Callable[[FloatArray], float], n_items: int) -> float:
    """K(n) of half the regret."""
    return 0.25 * rule(items_below(n_items))


def pair_transfer(one: Combination) -> Transfer:
    """Scores of pairs, decoded exactly."""
    reference = f"Ramaswamy, Agarwal and Tewari (2013), Theorem 3; {HERE}"
    if one.metric.name == "ap":
        told = statement(one, "2 (H_n - sum over i of (H_n - H_(n-i)) / i)", massive=False)
        told += "; squares are summed over i >= j, and H_n = 1 + 1/2 + ... + 1/n"
        return Transfer(named(one), told, reference, ("n_items",), shared_relevance_factor)
    told = statement(one, "n (n - 1) / 2", massive=False) + "; squares are summed over i < j"
    return Transfer(named(one), told, reference, ("n_items",), preference_factor)


def named(one: Combination) -> str:
    """Write the surrogate and the metric."""
    return f"{described(one.surrogate)}/{one.metric}"


def needs(rule: Rule) -> tuple[str, ...]:
    """Say what a bound depends on."""
    return ("n_items", "mass") if rule.massive else ("n_items",)


def statement(one: Combination, formula: str, massive: bool) -> str:
    """Say what is bounded by what."""
    root = "sqrt(K mass rho)" if massive else "sqrt(K rho)"
    decoded = "the decoded order" if isinstance(one.surrogate, PairSquared) else "sorting by score"
    regrets = f"where {described(one.surrogate)} has regret rho, {decoded} has {one.metric} regret <= {root}"
    return f"{regrets}, K = {formula}"
