"""Noise conditions: what a distribution of labels must satisfy for sorting or edge deletion to be optimal.

The predicates read expectations, not labels: a matrix, or a stack of them of shape (..., n, n); they give one
truth value per matrix. Differences below 1e-12 of a matrix's largest number are rounding and count as 0.

>>> from concordant.supervision.synthetic import LabelDistribution
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

from concordant.exceptions import LabelError, ParameterError, UnknownNameError
from concordant.metrics.conditions import Family
from concordant.metrics.metric import Metric
from concordant.supervision.labels import Permutations
from concordant.supervision.synthetic.distribution import LabelDistribution
from concordant.theory.noise.expectations import as_graphs, family_means, net_means, pair_means
from concordant.theory.noise.order_spaces import preserves_order
from concordant.theory.noise.predicates import acyclic, check_margin, follows, low_noise, reinforces
from concordant.types import BoolArray

__all__ = [
    "CONDITIONS",
    "Condition",
    "acyclic",
    "family_means",
    "follows",
    "holds_on",
    "low_noise",
    "net_means",
    "pair_means",
    "preserves_order",
    "reinforces",
]


@dataclass(frozen=True)
class Condition:
    """A condition on the distribution of a query's labels, and what follows from it.

    Attributes
    ----------
    name
        As `standardize(..., assume=name)` has it.
    meaning, statement
        What must be true, in words; and of u_ij = E[y_i y_j / sum(y)], d_ij = E[a_ij - a_ji] or the orders.
    metric, optimal
        By which metric which ranking is then the best.
    theorem
        Where that is shown.
    can_fail
        With fewer items than this it holds for every distribution.
    lost
        Number of items -> how much the ranking loses at most, for a margin of 1, where the condition holds up
        to a margin; None where no margin is defined.
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


def each_pair(n: int) -> float:
    """The margin for every pair: the pairs put wrong are at most all."""
    return n * (n - 1) / 2


def each_pair_through_others(n: int) -> float:
    """Low noise up to a margin is P_f up to n - 2 margins.

    Where d_ij is above the margin, and so is d_jk or d_ki, d_ik - d_jk >= d_ij - margin > 0; for another k it
    is >= -2 margins. The net weights then differ by 2 d_ij - 2 (n - 2) margins or more.
    """
    return max(1, n - 2) * each_pair(n)


def each_exchange(n: int) -> float:
    """Exchange two neighbours i, j at places k and k + 1 so that u_ii >= u_jj: at most margin / (k (k + 1)).

    The change of AP is (u_ii - u_jj + sum over g above of u_ig - u_jg) / (k (k + 1)). From the best order
    sorting exchanges at each k at most n - k times (bubble sort), which adds up to n - 1 - 1/2 ... - 1/n.
    """
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
            lost=each_exchange,
        ),
        Condition(
            name="P_DAG",
            meaning="the majority preferences have no cycle",
            statement="the edges d_ij > 0 form no cycle",
            metric="pd",
            optimal="edge deletion",
            theorem=RAMASWAMY.format("Theorem 7"),
            lost=each_pair,
        ),
        Condition(
            name="P_f",
            meaning="the majority prefers the item with the larger expected f, by default its net weight",
            statement="d_ij > 0 implies E[f_i] > E[f_j]",
            metric="pd",
            optimal="sorting by E[f_i]",
            theorem=RAMASWAMY.format("Theorem 6"),
            lost=each_pair,
        ),
        Condition(
            name="low_noise",
            meaning="majorities add up along paths",
            statement="d_ik > 0 and d_kj > 0 imply d_ij >= d_ik + d_kj",
            metric="pd",
            optimal="sorting by the expected net weights",
            theorem=BUFFONI.format("section 5.3"),
            lost=each_pair_through_others,
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
    """Tell, for each query, ids ascending, whether the condition holds on the distribution of its labels.

    Parameters
    ----------
    distribution
        Of grades for "P_reinforce"; of permutations for "order_preserving"; of any kind for the others, where
        a_ij is 1 if the label puts i above j.
    condition
        One of `CONDITIONS`.
    metric
        Of "P_reinforce" only: AP, whose convention says from which grade on an item is relevant.
    f
        Of "P_f" only, as for `standardize(..., assume="P_f")`; None: the net weights, Duchi's f.
    margin
        What is forgiven, as each predicate says; 0 for "order_preserving".

    Examples
    --------
    >>> from concordant.supervision.labels import Permutations
    >>> labels = tuple(Permutations(places) for places in ([1, 2, 3], [2, 3, 1], [3, 1, 2]))
    >>> for probs in ([0.4, 0.3, 0.3], [0.6, 0.2, 0.2]):
    ...     votes = LabelDistribution(labels, [probs], queries=["q"] * 3)
    ...     print(holds_on(votes, "P_DAG"), holds_on(votes, "low_noise"))
    [False] [False]
    [ True] [False]
    """
    check_condition(condition, metric, f, margin)
    found: list[Any]
    if condition == "order_preserving":
        found = kept_orders(distribution)
    elif condition == "P_reinforce":
        found = [reinforces(u, margin) for u in pair_means(distribution, metric or "ap")]
    else:
        graphs = as_graphs(distribution)
        nets = net_means(graphs)
        if condition == "P_f":
            means = family_means(graphs, f)
            found = [follows(d, mean, margin) for d, mean in zip(nets, means, strict=True)]
        else:
            predicate = {"P_DAG": acyclic, "low_noise": low_noise}[condition]
            found = [predicate(d, margin) for d in nets]
    return np.array(found, dtype=bool)


def kept_orders(distribution: LabelDistribution) -> list[BoolArray]:
    """Tell which queries have an order-preserving space."""
    queries, labels = distribution.queries, distribution.labels
    if not isinstance(labels[0], Permutations):
        problem = "'order_preserving' is about permutations, and these labels are of another kind"
        raise LabelError(problem, "give each label as Permutations.")
    places = [label.grouped(queries) for label in labels if isinstance(label, Permutations)]
    owned = np.split(np.stack(places), queries.offsets[1:-1], axis=1)
    return [preserves_order(own, probs) for own, probs in zip(owned, distribution.probs, strict=True)]


def check_condition(
    condition: str, metric: Metric | str | None = None, f: Family | None = None, margin: float = 0.0
) -> Condition:
    """Give the condition; refuse a name that is in no theorem, and what the condition does not read."""
    if condition not in list(CONDITIONS):  # a list, since anything may be given
        raise UnknownNameError("condition", condition, CONDITIONS)
    if metric is not None and condition != "P_reinforce":
        raise ParameterError("metric", str(metric), "left out: only 'P_reinforce' reads it")
    if f is not None and condition != "P_f":
        raise ParameterError("f", f, "left out: only 'P_f' reads it")
    if f is not None and not callable(f):
        raise ParameterError("f", f, "a function f(better, worse, weights, n_items)")
    if check_margin(margin) > 0.0 and condition == "order_preserving":
        raise ParameterError("margin", margin, "0: 'order_preserving' compares orders one by one")
    return CONDITIONS[condition]
