"""Regret transfer: bounds on the regret of a metric by the regret of its surrogate.

>>> squared_transfer = transfer_for("ndcg@10", "squared")
>>> round(squared_transfer.bound(0.01, n_items=20), 4)
0.2234
>>> transfer_for("err", "squared") is None
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from concordant._base.validate import check_counts, check_lengths, check_nonnegative, refuse_misaligned
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.metrics.metric import Metric, check_assumption
from concordant.metrics.pair_metrics import PD
from concordant.metrics.parse import METRICS
from concordant.metrics.parse import metric as read_metric
from concordant.metrics.standardization import EVERY
from concordant.surrogates.listwise import Softmax
from concordant.surrogates.margins import CLIP, EXPONENTIAL, LOGISTIC, Margin
from concordant.surrogates.pairwise import Pairwise
from concordant.surrogates.pointwise import PENALTIES, Duchi, Squared
from concordant.surrogates.surrogate import Surrogate
from concordant.theory.combination import Combination, combination
from concordant.theory.kinds import PairSquared, SurrogateLike, format_surrogate
from concordant.theory.spaces import SPACES
from concordant.types import ArrayLike, FloatArray

# Linear metrics: a target of 1 is worth c_k at place k, and the worths of items add up.


def linear_discounts(metric: Metric | str, n_items: int, labels: str = "auto") -> FloatArray | None:
    """Return c_1 >= ... >= c_n such that the metric is linear; None where that is not known.

    Its value is a constant of the label, plus (where greater is better, else minus) the sum over items of
    r_i(y) c(place of i), with the standardization r.

    Parameters
    ----------
    metric
        A metric, or its name.
    n_items
        Items of the query.
    labels
        Label space: a name of `concordant.theory.spaces.SPACES`; "auto": the default of the metric.

    Examples
    --------
    >>> linear_discounts("p@2", 4).tolist(), linear_discounts("auc", 3).tolist()
    ([0.5, 0.5, 0.0, 0.0], [2.0, 1.0, 0.0])
    >>> linear_discounts("pd", 3, "grades") is None  # 1(y_i > y_j) is no difference of two numbers
    True
    """
    check_counts(n_items=n_items)
    if labels != "auto" and labels not in SPACES:
        raise UnknownNameError("label space", labels, SPACES)
    parsed = read_metric(metric)
    spaces = parsed.label_spaces
    space = spaces[0] if labels == "auto" and spaces else labels
    if space not in spaces or type(parsed) not in METRICS.values():  # a subclass may be another metric
        return None
    return parsed.linear_discounts(n_items, space)


# Factors K of regret transfer: regret <= sqrt(K * surrogate regret). Those over the mass A, the sum of the
# expected targets of a query, are to be multiplied by it. Proofs: docs/theory.md, "Proofs of the factors".

HERE = "shown in docs/theory.md, Proofs of the factors"
SQUARES, REACH = "the sum of (c_k - c_(n+1-k))^2", "(c_1 - c_n)^2"


def _squared_factor(discounts: FloatArray) -> float:
    """Return the K of squares, centred or not: the sum of (c_k - c_(n+1-k))^2.

    >>> _squared_factor(np.array([2.0, 1.0, 0.0]))
    8.0
    """
    return float(((discounts - discounts[::-1]) ** 2).sum())


def _softmax_factor(discounts: FloatArray) -> float:
    """Return the K of the cross entropy to softmax(s), over A: 2 (c_1 - c_n)^2."""
    return 2.0 * _reach(discounts) ** 2


def _joint_pair_factor(discounts: FloatArray) -> float:
    """Return the K, over A, of pairs by the logistic or the exponential margin: 2 min((c_1 - c_n)^2, T).

    T is the sum of the n - 1 largest of the squares of the gaps g_k = c_k - c_(k+1), each taken twice.

    >>> _joint_pair_factor(np.array([1.0, 0.0, 0.0, 0.0])), _joint_pair_factor(np.array([3.0, 2.0, 1.0, 0.0]))
    (2.0, 6.0)
    """
    squares = np.repeat(np.diff(discounts) ** 2, 2)
    most = float(np.sort(squares)[::-1][: len(discounts) - 1].sum())
    return 2.0 * min(_reach(discounts) ** 2, most)


def _flat_pair_factor(discounts: FloatArray, margin: Margin) -> float:
    """Return the K, over A, of pairs by a margin that becomes flat: 2 B N (c_1 - c_n)^2 / phi'(0)^2.

    N = 1 + the sum of (1/2 + 1/k)^2 over k = 3..n, about n/4; B is the margin's smoothness, the most that
    its slope changes per unit. phi is convex, never rises, falls at 0, and has slope 0 from some point on.

    >>> from concordant.surrogates.margins import squared_hinge
    >>> _flat_pair_factor(np.array([1.0, 0.0]), squared_hinge)
    1.0
    """
    shares = 1.0 / np.arange(2.0, len(discounts) + 1.0)  # of all items but the first
    spread = float(((0.5 + shares) ** 2).sum())
    steepness = _reach(discounts) / float(margin.slope(0.0))
    return 2.0 * margin.smoothness * spread * steepness**2


def _shared_relevance_factor(n_items: int) -> float:
    """Return the K of squares on the pair scores of AP: 2 (H_n - sum over i of (H_n - H_(n-i)) / i).

    H_n = 1 + 1/2 + ... + 1/n. An order whose value on the pair scores is short of the largest by a gap adds
    that gap.

    >>> _shared_relevance_factor(2)
    0.5
    """
    harmonic = np.r_[0.0, np.cumsum(1.0 / np.arange(1.0, n_items + 1.0))]
    tails = harmonic[-1] - harmonic[-2::-1]  # H_n - H_(n-i) of i = 1..n
    return 2.0 * max(float(harmonic[-1] - (tails / np.arange(1.0, n_items + 1.0)).sum()), 0.0)


def _preference_factor(n_items: int) -> float:
    """Return the K of squares on the pair scores of PD: n (n - 1) / 2."""
    return 0.5 * n_items * (n_items - 1.0)


def _reach(discounts: FloatArray) -> float:
    """Return c_1 - c_n."""
    return float(discounts[0] - discounts[-1])


class Rule(NamedTuple):
    """Transfer rule of a surrogate for every linear metric: K as a formula, and as a function of c.

    If `massive`, K is the factor over the mass A.
    """

    formula: str
    factor: Callable[[Any], float]
    massive: bool = True
    reference: str = HERE


def _find_rule(surrogate: Surrogate) -> Rule | None:
    """Return the transfer rule of a surrogate; None for subclasses, which may be another loss."""
    kind: Any = type(surrogate)
    if kind is Squared:
        reference = f"Cossock and Zhang (2008), with a smaller factor; {HERE}"
        return Rule(SQUARES, _squared_factor, massive=False, reference=reference)
    if isinstance(surrogate, Duchi) and kind is Duchi and surrogate.penalty == PENALTIES["square"]:
        times = 4.0 * float(surrogate.nu)
        factor = partial(_scale_factor, _squared_factor, times)
        return Rule(f"{times:g} times {SQUARES}", factor, massive=False)
    if kind is Softmax:
        return Rule(f"2 {REACH}", _softmax_factor)
    return _pairwise_rule(surrogate) if isinstance(surrogate, Pairwise) and kind is Pairwise else None


def _pairwise_rule(surrogate: Pairwise) -> Rule | None:
    """Return the rule of a pairwise loss by its margin; a normalized loss divides its regret by n (n - 1)."""
    shape, rule = surrogate.shape, None
    if shape.kind in (LOGISTIC, EXPONENTIAL):
        gaps = "the n - 1 largest of (c_k - c_(k+1))^2, each taken twice, added up"
        rule = Rule(f"2 min({REACH}; {gaps})", _joint_pair_factor)
    elif shape.kind == CLIP and shape.order_preserving and shape.smoothness < np.inf:
        times = 2.0 * shape.smoothness / float(shape.slope(0.0)) ** 2
        formula = f"{times:g} {REACH} (1 + sum over k from 3 of (1/2 + 1/k)^2)"
        rule = Rule(formula, partial(_flat_pair_factor, margin=shape))
    if rule is None or not surrogate.normalize:
        return rule
    return Rule(f"n (n - 1) times {rule.formula}", partial(_undo_normalization, rule.factor))


def _scale_factor(factor: Callable[[FloatArray], float], times: float, discounts: FloatArray) -> float:
    return times * factor(discounts)


def _undo_normalization(factor: Callable[[FloatArray], float], discounts: FloatArray) -> float:
    """Multiply a factor by n (n - 1), as the loss was divided by it."""
    return len(discounts) * (len(discounts) - 1.0) * factor(discounts)


@dataclass(frozen=True)
class Transfer:
    """A proven bound on the regret of a metric: sqrt(K(n) * surrogate regret), or that times sqrt(mass).

    The surrogate regret is the expected surrogate of a query, beyond its infimum over all scores; the metric
    counts 0 under labels for which it is undefined (as in `concordant.theory.regret`). The bound holds for
    every query, with its mass; and for means over queries, all three with the same weights, where n_items is
    that of the longest. The mean mass bounds no single query: the mass of that query may be larger.

    Attributes
    ----------
    name
        The surrogate and the metric.
    statement, reference
        The claim in words, and where it is proven.
    needs
        Inputs of the bound besides the surrogate regret: "n_items", "mass".
    factor
        K(n).
    condition
        Condition on the distribution of the labels.
    """

    name: str
    statement: str
    reference: str
    needs: tuple[str, ...]
    factor: Callable[[int], float] = field(repr=False, compare=False)
    condition: str = EVERY

    def bound(self, surrogate_regret: ArrayLike, *, n_items: int, mass: ArrayLike = None) -> Any:
        """Return the largest regret that the metric can have.

        Parameters
        ----------
        surrogate_regret
            A number >= 0, or a column of them.
        n_items
            Items of the query, or of the longest one.
        mass
            Expected sum of the targets of a query, where the bound needs it: a number >= 0, or a column. One
            number for a column of regrets must be the largest.

        Examples
        --------
        >>> transfer_for("p@1", "softmax").bound([0.0, 0.01, 0.02], n_items=5, mass=2.0).round(3).tolist()
        [0.0, 0.2, 0.283]
        """
        check_counts(n_items=n_items)
        refuse_misaligned(surrogate_regret=surrogate_regret, mass=mass)
        regrets = nonnegative_column(surrogate_regret, "surrogate_regret")
        masses = self.read_mass(mass)
        if regrets.ndim and masses.ndim:
            check_lengths("surrogate_regret", len(regrets), mass=masses)
        with np.errstate(over="ignore"):  # infinite: still an upper bound
            bound = np.sqrt(self.factor(int(n_items))) * np.sqrt(masses) * np.sqrt(regrets)
        return bound if bound.ndim else float(bound)

    def read_mass(self, mass: ArrayLike) -> FloatArray:
        """Check the mass, which is required where the bound needs it; return 1 elsewhere."""
        if "mass" not in self.needs:
            if mass is not None:
                nonnegative_column(mass, "mass")  # an invalid mass is refused even where it is not needed
            return np.array(1.0)
        if mass is None:
            raise ParameterError.because(
                f"mass is missing: {self.name} needs the mean sum of the targets of a query."
            )
        return nonnegative_column(mass, "mass")


def nonnegative_column(values: ArrayLike, name: str) -> FloatArray:
    """Check finite numbers >= 0: a column, or a single number without an axis."""
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
    """Return the proven bound on the regret of a metric by that of a surrogate; None where there is none.

    - Linear metrics (`linear_discounts`), sorted by scores: squared, duchi with the penalty z^2, softmax, and
      pairwise with every margin but the hinge.
    - pd and wpd on preferences, by the same surrogates, under low noise.
    - ap and pd by squares on scores of pairs, decoded exactly.

    Under P_reinforce or P_f no bound exists: the condition allows the targets of two items to be arbitrarily
    close although the metric distinguishes them. See the example.

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

    >>> from concordant.data.synthetic import LabelDistribution
    >>> from concordant.theory.regret import regret
    >>> votes = LabelDistribution(([1, 0, 1], [0, 1, 0]), [[0.67, 0.33]], queries=[0, 0, 0])
    >>> regret("ap", votes, [0.333, 0.334, 0.333]).round(3).tolist()
    [0.059]
    """
    return transfer_of(combination(metric, surrogate, decoder, labels), assume)


def transfer_of(combination: Combination, assume: str | None = None) -> Transfer | None:
    """Return the transfer of a combination: see `transfer_for`."""
    check_assumption(assume)
    if isinstance(combination.surrogate, PairSquared):
        return _pair_transfer(combination) if combination.decoder == "auto" else None
    rule = _find_rule(combination.surrogate)
    if rule is None:
        return None
    if linear_discounts(combination.metric, 1, combination.space) is not None:
        return _item_transfer(combination, rule)
    preferred = isinstance(combination.metric, PD) and combination.space == "preferences"
    return _low_noise_transfer(combination, rule) if preferred and assume == "low_noise" else None


def _item_transfer(combination: Combination, rule: Rule) -> Transfer:
    factor = partial(_item_factor, rule.factor, combination.metric, combination.space)
    return _build_transfer(combination, rule, factor, "c_k is what a target of 1 is worth at place k")


def _item_factor(rule: Callable[[FloatArray], float], metric: Metric, space: str, n_items: int) -> float:
    discounts: Any = linear_discounts(metric, n_items, space)
    return rule(discounts)


def _low_noise_transfer(combination: Combination, rule: Rule) -> Transfer:
    """Build the transfer of preferences: regret is at most half of that of the linear metric c_k = n - k."""
    quarter = rule._replace(formula=f"1/4 of {rule.formula}", reference=HERE)
    return _build_transfer(
        combination, quarter, partial(_half_factor, rule.factor), "c_k is n - k", "low_noise"
    )


def _half_factor(rule: Callable[[FloatArray], float], n_items: int) -> float:
    return 0.25 * rule(np.arange(n_items - 1.0, -1.0, -1.0))


def _pair_transfer(combination: Combination) -> Transfer:
    formula, factor, note = PAIR_FACTORS[combination.metric.name]
    reference = f"Ramaswamy, Agarwal and Tewari (2013), Theorem 3; {HERE}"
    rule = Rule(formula, factor, massive=False, reference=reference)
    return _build_transfer(combination, rule, factor, note)


PAIR_FACTORS: Mapping[str, tuple[str, Callable[[Any], float], str]] = {
    "ap": (
        "2 (H_n - sum over i of (H_n - H_(n-i)) / i)",
        _shared_relevance_factor,
        "squares are summed over i >= j, and H_n = 1 + 1/2 + ... + 1/n",
    ),
    "pd": ("n (n - 1) / 2", _preference_factor, "squares are summed over i < j"),
}


def _build_transfer(
    combination: Combination,
    rule: Rule,
    factor: Callable[[int], float],
    note: str,
    condition: str = EVERY,
) -> Transfer:
    """Build a transfer: its name, its claim in words and the inputs of the bound follow from the rule."""
    surrogate, metric = format_surrogate(combination.surrogate), str(combination.metric)
    root = "sqrt(K mass rho)" if rule.massive else "sqrt(K rho)"
    decoded = "the decoded order" if isinstance(combination.surrogate, PairSquared) else "sorting by score"
    claim = f"where {surrogate} has regret rho, {decoded} has {metric} regret <= {root}, K = {rule.formula}"
    claim += "; mass is the expected sum of the query's targets" * rule.massive
    needs = ("n_items", "mass") if rule.massive else ("n_items",)
    return Transfer(f"{surrogate}/{metric}", f"{claim}; {note}", rule.reference, needs, factor, condition)
