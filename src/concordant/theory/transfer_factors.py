r"""Factors K of regret transfer, each with its proof: regret <= sqrt(K * surrogate regret).

Setting, for all that follows. A query has n items, expected targets a_i = E[r_i(Y)] >= 0, and *mass*
A = a_1 + ... + a_n. The metric is linear: its value is a constant, plus or minus the sum of r_i(y) times
c(place of i), with discounts c_1 >= ... >= c_n. An order gives item i the discount e_i; a best one sorts a,
and gives it b_i. With w = b - e,

    regret = <a, w>,        sum of w = 0,        -(c_1 - c_n) <= w_i <= c_1 - c_n.

The order sorts scores s: no item stands above one of higher score. If the numbers x_i do not rise along the
order, <x, e> is as large as in any order (rearrangement), so that

    <x, w> <= 0                                                                                       (1)

which holds for x = s. All this is true of every order that sorts s, hence of the mean over them where scores
are tied. rho, the *surrogate regret*, is the expected surrogate at s less its infimum over all scores.

The square root of A * rho is concave in both: bounds hold for means over queries, with the means of A and of
rho. Longer lists have the same gaps between discounts, and more of them, so that no factor falls with n: the
largest n serves queries of several sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from concordant.surrogates.listwise import Softmax
from concordant.surrogates.margins import CLIP, EXPONENTIAL, LOGISTIC, Margin
from concordant.surrogates.pairwise import Pairwise
from concordant.surrogates.pointwise import PENALTIES, Duchi, Squared
from concordant.surrogates.surrogate import Surrogate
from concordant.types import FloatArray

__all__ = [
    "HERE",
    "Rule",
    "flat_pair_factor",
    "joint_pair_factor",
    "preference_factor",
    "rule_of",
    "shared_relevance_factor",
    "softmax_factor",
    "squared_factor",
]


HERE = "shown in concordant.theory.transfer_factors"
SQUARES, REACH = "the sum of (c_k - c_(n+1-k))^2", "(c_1 - c_n)^2"


def squared_factor(discounts: FloatArray) -> float:
    """Give the K of squares, centred or not: the sum of (c_k - c_(n+1-k))^2.

    With d = s - a, rho is the sum of d_i^2, or of (d_i - mean d)^2. By (1), <a, w> <= -<d, w>, where any
    constant may be taken from d: by Cauchy and Schwarz, regret^2 <= rho * sum of w_i^2. That sum is
    2 sum of c_k^2 - 2 <b, e>, largest where e rises as b falls (rearrangement), when w_i = c_k - c_(n+1-k).

    It is never above 2 sum of c_k^2, the factor of Cossock and Zhang, and cannot be improved: let all scores
    be equal, the order be the worst one, and a be s plus a multiple of w.

    >>> squared_factor(np.array([2.0, 1.0, 0.0]))
    8.0
    """
    return float(((discounts - discounts[::-1]) ** 2).sum())


def softmax_factor(discounts: FloatArray) -> float:
    """Give the K of the cross entropy to softmax(s), over A: 2 (c_1 - c_n)^2.

    With q = a / A and p = softmax(s), rho = A KL(q, p), the infimum being the entropy. (If A = 0, nothing
    can be lost.) By (1) for x = p, regret = A <q, w> <= A <q - p, w>. As q - p adds up to 0, this is at most
    A (c_1 - c_n) times the sum of abs(q_i - p_i), which is at most sqrt(2 KL(q, p)) (Pinsker).

    On two items it cannot be improved: let both have the same score and nearly the same target.
    """
    return 2.0 * reach(discounts) ** 2


def joint_pair_factor(discounts: FloatArray) -> float:
    """Give the K, over A, of pairs by the logistic or the exponential margin: 2 min((c_1 - c_n)^2, T).

    T is the sum of the n - 1 largest of the squares of the gaps g_k = c_k - c_(k+1), each taken twice.

    Let d = s_i - s_j. The loss of a pair, a_i phi(d) + a_j phi(-d), is least at d = log(a_i / a_j)
    (logistic), or at half of it (exponential). Scores log(a_i), or half of them, do this for all pairs at
    once (in the limit, where a target is 0): rho is the sum of what each pair has above its own least value.
    Let a_i > a_j though i stands below j, so that d <= 0: the pair is *inverted*. Its loss is convex and
    least at some d > 0, hence above that by as much as at d = 0, at least:

        logistic      (a_i + a_j) (log 2 - H(p)) >= 2 (a_i + a_j) (p - 1/2)^2, p = a_i / (a_i + a_j) (Pinsker)
        exponential   (sqrt(a_i) - sqrt(a_j))^2 = (a_i - a_j)^2 / (sqrt(a_i) + sqrt(a_j))^2

    Either is >= (a_i - a_j)^2 / (2 (a_i + a_j)). So, if the regret is a sum over inverted pairs of
    t_ij (a_i - a_j), then by Cauchy and Schwarz

        regret^2 <= 2 rho * sum over inverted pairs of t_ij^2 (a_i + a_j).                            (2)

    First way: sort the order by insertion, from the top. Every inverted pair is exchanged once, when it has
    neighbouring places k and k + 1, which gains g_k (a_i - a_j): t_ij = g_k. An item moves up when it is
    inserted, and later only down. It meets each gap at most twice, and at most n - 1 items: the squares of
    its t_ij add up to T at most, and the sum in (2) to T A.

    Second way: regret = sum of g_k X_k, with X_k = what the k first items of the best order have beyond
    those of this one. If these sets differ in m items, I of the best order and J of this, X_k is 1/m times
    the sum of a_i - a_j over I and J, all of them inverted (or equal). By (2) with t_ij = 1/m,
    X_k^2 <= 2 rho (sum of a over I and J) / m <= 2 rho A. The gaps add up to c_1 - c_n.

    On two items it cannot be improved: as for softmax.

    >>> joint_pair_factor(np.array([1.0, 0.0, 0.0, 0.0])), joint_pair_factor(np.array([3.0, 2.0, 1.0, 0.0]))
    (2.0, 6.0)
    """
    squares = np.repeat(np.diff(discounts) ** 2, 2)
    most = float(np.sort(squares)[::-1][: len(discounts) - 1].sum())
    return 2.0 * min(reach(discounts) ** 2, most)


def flat_pair_factor(discounts: FloatArray, margin: Margin) -> float:
    """Give the K, over A, of pairs by a margin that becomes flat: 2 B N (c_1 - c_n)^2 / phi'(0)^2.

    N = 1 + the sum of (1/2 + 1/k)^2 over k = 3..n, about n/4; B is the margin's smoothness, the most that
    its slope changes per unit. phi is convex, never rises, falls at 0, and has slope 0 from some point on.

    Number the items by their places. Among the scores that do not rise along the order let z have the least
    loss, L(z) <= L(s); it exists, since closing a gap down to where phi is flat raises no term. In a *block*
    of equal scores z_i = x, the derivative of L by the score of i is a_i h(x) + f(x), with
    h(x) = sum over k of phi'(x - z_k) < 0 and f(x) = - sum over k of a_k phi'(z_k - x) >= 0. A block may
    move as a whole, both ways: its derivatives add up to 0. So, if m_i is the mean target of the block of i,

        f(x) = -h(x) m_i,        and the derivative is h(x) (a_i - m_i).

    With x, f rises and -h falls: m does not rise along the order, and by (1) regret <= <a - m, w>. Now move z
    by t u, with u_i = w_i / -h(x), but 0 for a block of one item, where a_i = m_i. L starts with the slope
    -<a - m, w> <= -regret. As phi bends by B at most, L(z + t u) is at most L(z) - t regret + t^2 B V / 2,
    where V is the sum over i and j of a_i (u_i - u_j)^2. With the best t,

        rho >= L(z) - inf L >= regret^2 / (2 B V).

    A block that ends at place l has -h(x) >= -l phi'(0), because phi'(x - z_k) <= phi'(0) for the l items at
    or above it; and l is at least 2, and at least the place of i. So u_i is at most
    -(c_1 - c_n) / phi'(0) / max(2, i) in size; the sum over j of (u_i - u_j)^2 is largest for i <= 2, where
    it is N (c_1 - c_n)^2 / phi'(0)^2 at most; and V is at most A times that.

    With the squared hinge it cannot be improved on two items of targets 1 and 0. Nor is it much too large on
    many: let two items have the targets 1 - e and 1 + e and tied scores, the others b/n^2. With e/b and b
    going to 0, regret^2 / (A rho) goes to (n + 2)/4 for p@1; the factor is N.

    >>> from concordant.surrogates.margins import squared_hinge
    >>> flat_pair_factor(np.array([1.0, 0.0]), squared_hinge)
    1.0
    """
    shares = 1.0 / np.arange(2.0, len(discounts) + 1.0)  # of all items but the first
    spread = float(((0.5 + shares) ** 2).sum())
    steepness = reach(discounts) / float(margin.slope(0.0))
    return 2.0 * margin.smoothness * spread * steepness**2


def shared_relevance_factor(n_items: int) -> float:
    """Give the K of squares on the pair scores of AP: 2 (H_n - sum over i of (H_n - H_(n-i)) / i).

    H_n = 1 + 1/2 + ... + 1/n. AP is <U, D>, with U_ij = y_i y_j / sum(y) and D_ij = 1/max(place of i, place
    of j), i >= j. Its expectation has E[U], rho is the squared distance of u from E[U], and an order is
    decoded that has the largest <u, D>: the regret is at most the distance of u from E[U] times that of D
    from the best order's D* (`concordant.surrogates.Calibration`). An order whose <u, D> is short of the
    largest by a gap adds that gap.

    The largest distance is that of opposite orders. The square of each D is the sum over m of m / m^2, which
    is H_n. And D is the sum over m of l_m > 0 times the indicator of pairs within the first m, with
    l_m = 1/m - 1/(m+1), or 1/n for m = n. So <D, D*> is a sum over m and k of l_m l_k times the number of
    pairs within both the first m of one order and the first k of the other. Opposite orders share
    max(m + k - n, 0) items there, the least possible, for all m and k at once: <D, D*> is least, and is
    the sum over i >= j of 1/i times 1/(n+1-j).

    >>> shared_relevance_factor(2)
    0.5
    """
    harmonic = np.r_[0.0, np.cumsum(1.0 / np.arange(1.0, n_items + 1.0))]
    tails = harmonic[-1] - harmonic[-2::-1]  # H_n - H_(n-i) of i = 1..n
    return 2.0 * max(float(harmonic[-1] - (tails / np.arange(1.0, n_items + 1.0)).sum()), 0.0)


def preference_factor(n_items: int) -> float:
    """Give the K of squares on the pair scores of PD: n (n - 1) / 2.

    As for AP: up to a constant, PD is <V, D> with V_ij = a_ij - a_ji and D_ij = 1 where i stands below j,
    i < j. The D of two orders differ by 1 in each pair that they order differently, at most all.
    """
    return 0.5 * n_items * (n_items - 1.0)


def reach(discounts: FloatArray) -> float:
    """Give c_1 - c_n."""
    return float(discounts[0] - discounts[-1])


class Rule(NamedTuple):
    """What is known of a surrogate and every linear metric: K as a formula, and as a function of c.

    Of massive ones it is the factor over A.
    """

    formula: str
    factor: Callable[[FloatArray], float]
    massive: bool = True
    reference: str = HERE


def rule_of(surrogate: Surrogate) -> Rule | None:
    """Give what is known of a surrogate; what inherits from it may be another loss."""
    kind: Any = type(surrogate)
    if kind is Squared:
        reference = f"Cossock and Zhang (2008), with a smaller factor; {HERE}"
        return Rule(SQUARES, squared_factor, massive=False, reference=reference)
    if isinstance(surrogate, Duchi) and kind is Duchi and surrogate.penalty == PENALTIES["square"]:
        # nu s^2 - a s is nu (s - a / (2 nu))^2 less a constant: squares to targets a / (2 nu), nu times.
        times = 4.0 * float(surrogate.nu)
        return Rule(f"{times:g} times {SQUARES}", partial(scaled, squared_factor, times), massive=False)
    if kind is Softmax:
        return Rule(f"2 {REACH}", softmax_factor)
    return pairwise_rule(surrogate) if isinstance(surrogate, Pairwise) and kind is Pairwise else None


def pairwise_rule(surrogate: Pairwise) -> Rule | None:
    """By the margin; where the loss is divided by n (n - 1), its regret is."""
    shape, rule = surrogate.shape, None
    if shape.kind in (LOGISTIC, EXPONENTIAL):
        gaps = "the n - 1 largest of (c_k - c_(k+1))^2, each taken twice, added up"
        rule = Rule(f"2 min({REACH}; {gaps})", joint_pair_factor)
    elif shape.kind == CLIP and shape.order_preserving and shape.smoothness < np.inf:
        times = 2.0 * shape.smoothness / float(shape.slope(0.0)) ** 2
        formula = f"{times:g} {REACH} (1 + sum over k from 3 of (1/2 + 1/k)^2)"
        rule = Rule(formula, partial(flat_pair_factor, margin=shape))
    if rule is None or not surrogate.normalize:
        return rule
    return Rule(f"n (n - 1) times {rule.formula}", partial(normalized, rule.factor))


def scaled(factor: Callable[[FloatArray], float], times: float, discounts: FloatArray) -> float:
    """A multiple of a factor."""
    return times * factor(discounts)


def normalized(factor: Callable[[FloatArray], float], discounts: FloatArray) -> float:
    """Undo the division by n (n - 1)."""
    return len(discounts) * (len(discounts) - 1.0) * factor(discounts)
