"""Noise conditions on a distribution of labels under which sorting or edge deletion is optimal.

The predicates read expectations, not labels: a matrix, or a stack of matrices of shape (..., n, n); they
return a boolean per matrix. Differences below 1e-12 of a matrix's largest number are rounding and count as 0.

>>> from concordant.data.synthetic import LabelDistribution
>>> company = LabelDistribution(([1, 1, 0], [1, 0, 0], [0, 0, 1]), [[0.5, 0.2, 0.3]], queries=["q"] * 3)
>>> (u,) = pair_means(company)
>>> bool(reinforces(u))  # item 1 is relevant with item 0 only, which is first anyway
False
>>> holds_on(company, "P_reinforce").tolist(), holds_on(company, "P_DAG").tolist()
([False], [True])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.data.labels import Permutations
from concordant.data.synthetic.distribution import LabelDistribution
from concordant.exceptions import LabelError, ParameterError, UnknownNameError
from concordant.metrics.metric import Family, Metric
from concordant.theory.noise_conditions import (
    acyclic,
    as_graphs,
    check_margin,
    family_means,
    follows,
    low_noise,
    net_means,
    pair_means,
    preserves_order,
    reinforces,
)
from concordant.types import BoolArray


@dataclass(frozen=True)
class Condition:
    """A condition on the distribution of a query's labels, and its consequence.

    Attributes
    ----------
    name
        Name, as in `standardize(..., assume=name)`.
    meaning, statement
        The condition in words, and as a formula in u_ij = E[y_i y_j / sum(y)], d_ij = E[a_ij - a_ji] or the
        orders.
    metric, optimal
        The metric, and the ranking that is then optimal for it.
    theorem
        Reference.
    can_fail
        With fewer items than this it holds for every distribution.
    lost
        Number of items -> largest loss of the ranking, for a margin of 1, if the condition holds up to a
        margin; None if no margin is defined.
    """

    name: str
    meaning: str
    statement: str
    metric: str
    optimal: str
    theorem: str
    can_fail: int = 3
    lost: Callable[[int], float] | None = None

    def __str__(self) -> str:
        then = f"{self.optimal} is optimal for {self.metric} ({self.theorem})"
        return f"{self.name}: {self.statement}. Then {then}"


# The largest loss for a margin of 1: proofs are in docs/theory.md, "Conditions up to a margin".


def _each_pair(n: int) -> float:
    """The margin for every pair: at most all pairs are misordered."""
    return n * (n - 1) / 2


def _each_pair_through_others(n: int) -> float:
    """Low noise up to a margin is P_f up to n - 2 margins."""
    return max(1, n - 2) * _each_pair(n)


def _each_exchange(n: int) -> float:
    """Sorting exchanges neighbours at ranks k, k + 1 at most n - k times, each for margin / (k (k + 1))."""
    return n - sum(1.0 / k for k in range(1, n + 1))


RAMASWAMY, BUFFONI = "Ramaswamy, Agarwal and Tewari 2013, {}", "Buffoni et al. 2011, {}"

CONDITIONS: Mapping[str, Condition] = {
    condition.name: condition
    for condition in (
        Condition(
            name="P_reinforce",
            meaning="an item more relevant on its own is not outweighed by the company it keeps",
            statement="u_ii >= u_jj implies u_ii >= u_jj + sum over other g of (u_jg - u_ig)_+",
            metric="ap",
            optimal="sorting by E[y_i / sum(y)]",
            theorem=RAMASWAMY.format("Theorem 4 and Corollary 5"),
            lost=_each_exchange,
        ),
        Condition(
            name="P_DAG",
            meaning="the majority preferences have no cycle",
            statement="the edges d_ij > 0 form no cycle",
            metric="pd",
            optimal="edge deletion",
            theorem=RAMASWAMY.format("Theorem 7"),
            lost=_each_pair,
        ),
        Condition(
            name="P_f",
            meaning="the majority prefers the item with the larger expected f, by default its net weight",
            statement="d_ij > 0 implies E[f_i] > E[f_j]",
            metric="pd",
            optimal="sorting by E[f_i]",
            theorem=RAMASWAMY.format("Theorem 6"),
            lost=_each_pair,
        ),
        Condition(
            name="low_noise",
            meaning="majorities add up along paths",
            statement="d_ik > 0 and d_kj > 0 imply d_ij >= d_ik + d_kj",
            metric="pd",
            optimal="sorting by the expected net weights",
            theorem=BUFFONI.format("section 5.3"),
            lost=_each_pair_through_others,
        ),
        Condition(
            name="order_preserving",
            meaning="along some order of the items, exchanging two neighbours makes every order rarer",
            statement="along a chain of items, orders are more probable than with neighbours exchanged",
            metric="zero_one",
            optimal="sorting by the mean place",
            theorem=BUFFONI.format("section 5.4"),
            can_fail=2,
        ),
    )
}


def holds_on(
    distribution: LabelDistribution,
    condition: str,
    *,
    metric: Metric | str | None = None,
    f: Family | None = None,
    margin: float = 0.0,
) -> BoolArray:
    """True, for each query, ids ascending, if the condition holds on the distribution of its labels.

    Parameters
    ----------
    distribution
        Distribution of grades for "P_reinforce"; of permutations for "order_preserving"; of any labels for
        the others, where a_ij is 1 if the label puts i above j.
    condition
        One of `CONDITIONS`.
    metric
        For "P_reinforce" only: AP, whose convention defines from which grade on an item is relevant.
    f
        For "P_f" only, as in `standardize(..., assume="P_f")`; None: the net weights, Duchi's f.
    margin
        Tolerance, as each predicate defines it; 0 for "order_preserving".

    Examples
    --------
    >>> from concordant.data.labels import Permutations
    >>> labels = tuple(Permutations(places) for places in ([1, 2, 3], [2, 3, 1], [3, 1, 2]))
    >>> for probs in ([0.4, 0.3, 0.3], [0.6, 0.2, 0.2]):
    ...     votes = LabelDistribution(labels, [probs], queries=["q"] * 3)
    ...     print(holds_on(votes, "P_DAG"), holds_on(votes, "low_noise"))
    [False] [False]
    [ True] [False]
    """
    check_condition(condition, metric, f, margin)
    is_satisfied: list[Any]
    if condition == "order_preserving":
        is_satisfied = _check_orders(distribution)
    elif condition == "P_reinforce":
        is_satisfied = [reinforces(u, margin) for u in pair_means(distribution, metric or "ap")]
    else:
        graphs = as_graphs(distribution)
        nets = net_means(graphs)
        if condition == "P_f":
            means = family_means(graphs, f)
            is_satisfied = [follows(d, mean, margin) for d, mean in zip(nets, means, strict=True)]
        else:
            predicate = {"P_DAG": acyclic, "low_noise": low_noise}[condition]
            is_satisfied = [predicate(d, margin) for d in nets]
    return np.array(is_satisfied, dtype=bool)


def _check_orders(distribution: LabelDistribution) -> list[BoolArray]:
    """True, for each query, if its labels form an order-preserving space."""
    queries, labels = distribution.queries, distribution.labels
    if not isinstance(labels[0], Permutations):
        problem = "'order_preserving' is a condition on permutations, but these labels are of another kind"
        raise LabelError(problem, "give each label as Permutations.")
    places = [label.grouped(queries) for label in labels if isinstance(label, Permutations)]
    owned = np.split(np.stack(places), queries.offsets[1:-1], axis=1)
    return [
        preserves_order(query_places, probs)
        for query_places, probs in zip(owned, distribution.probs, strict=True)
    ]


def check_condition(
    condition: str, metric: Metric | str | None = None, f: Family | None = None, margin: float = 0.0
) -> Condition:
    """Look up a condition; raise if it is unknown, or if a setting is given that it does not read."""
    if condition not in list(CONDITIONS):  # a list, since the argument need not be hashable
        raise UnknownNameError("condition", condition, CONDITIONS)
    if metric is not None and condition != "P_reinforce":
        raise ParameterError.because(
            f"metric is used only with condition 'P_reinforce', got {condition!r}. Leave metric out."
        )
    if f is not None and condition != "P_f":
        raise ParameterError.because(f"f is used only with condition 'P_f', got {condition!r}. Leave f out.")
    if f is not None and not callable(f):
        raise ParameterError("f", f, "a function f(better, worse, weights, n_items)")
    if check_margin(margin) > 0.0 and condition == "order_preserving":
        raise ParameterError("margin", margin, "0 for condition 'order_preserving'")
    return CONDITIONS[condition]
