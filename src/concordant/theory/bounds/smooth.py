"""A bound on the risk of a loss itself, for the losses that linear rankers minimise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from concordant.exceptions import ParameterError
from concordant.scorers import LinearScorer
from concordant.supervision.queries import Queries
from concordant.surrogates import Surrogate
from concordant.theory.bounds.bound import Term, check_delta, check_positive, readable
from concordant.theory.bounds.empirical import DELTA, Radius, by_union, length_of
from concordant.theory.bounds.fitted import EmpiricalBound
from concordant.theory.bounds.swing import Most, Swing, swing, why_unbounded
from concordant.theory.kinds import described
from concordant.types import FloatArray

__all__ = ["LossBound", "bound_of_loss", "either_way", "terms", "why_unbounded"]

SMALL = 30  # halvings of B = 1, for weights 0


@dataclass(frozen=True, repr=False)
class LossBound(EmpiricalBound):
    """With probability 1 - delta: expected loss <= mean loss + excess, for the ranker at hand.

    As `EmpiricalBound`, of a loss that nothing bounds but the length of the weights:

    - `empirical` and `measured` both are the mean loss on these queries.
    - `largest` is the mean loss of weights 0 on these queries: a bound that is not below it does not tell the
      ranker from no ranking at all, and is called `vacuous`.
    - `worst` is what the mean loss on these queries is at most, whatever the weights no longer than B.
    """

    @property
    def verdict(self) -> str:
        """Why it says nothing, where it does."""
        return f"weights 0 lose {self.largest:.4g} on these queries"

    def __str__(self) -> str:
        excess = readable(self.excess, math.log10(max(self.excess, 1e-300)))
        told = f"{self.bounds} <= {self.value:.4g} = {self.empirical:.4g} + {excess}"
        lines = [f"{told} with probability {1 - self.delta:g}"]
        lines += [f"  {one.name} {readable(one.value, one.log10)}: {one.meaning}" for one in self.parts]
        size = f"weights of length {self.length:.4g}, {self.n} queries"
        lines.append(f"  B = {self.B:.4g} by {self.rule}, {size}")
        lines += [f"  assumes that {text}" for text in self.assumes]
        return "\n".join(lines + [f"  vacuous: {self.verdict}"] * self.vacuous)


def bound_of_loss(
    loss: Surrogate,
    labels: FloatArray,
    X: Any,
    queries: Queries,
    coef: FloatArray,
    *,
    delta: float = DELTA,
    B: float | None = None,
) -> LossBound:
    """Bound the expected loss on new queries of a linear ranker by its mean loss on n queries.

    For all w of length <= B at once, with probability 1 - delta over n independent queries:

    expected loss <= mean loss + complexity + estimate + c sqrt(ln(k/delta)/2n)

    The last term is McDiarmid's inequality on losses within a range of c. The complexity bounds the expected
    largest difference of expected and mean loss. S_q sums the squared distances of list q's documents from
    their mean, so that its scores, as a vector, are at most B sqrt(S_q) from theirs.

    - Softmax, Plackett-Luce: 2 sqrt(2) (B/n) sqrt(sum_q L_q^2 S_q), twice the Rademacher average of the
      losses, by vector contraction (Maurer 2016). L_q is the less of two Lipschitz constants in the scores.
      One holds everywhere and is approached: the gradient A p - a of the softmax, A = sum a_i and p on the
      simplex, is longest at a corner, where its square is A^2 + sum a_i^2 - 2 A min a_i; that of
      Plackett-Luce counts how often an item is the corner, less 1, and is sqrt(m (m - 1)) long where the last
      of m always is. The other is the length of the gradient at scores 0, plus the largest curvature, A/2 or
      (m - 1)/2, times B sqrt(S_q).
    - Pairs (`Pairwise`, `Preorder`), sums of a_p phi(s_i - s_j): 2 (B/n) sqrt(sum_q l_q^2 W_q E_q), with
      W_q = sum a_p, E_q = sum a_p d_p^2, d_p the distance of the two documents, and l_q the slope of phi at
      -B times the largest distance. For u in [0, 1) take the pair of each list that u falls on, each pair as
      wide as its weight: losses of one pair are W_q l_q-Lipschitz in one number, their mean over u is the
      list's loss, and the mean over u of the roots is below the root of the mean. For gain weights E_q is
      bounded by the largest of them.
    - Squares (`Squared`, `Duchi`), v s.s + g.s + const: (B/n) sqrt(sum_q g_q^2 S_q) + v (B^2/n) sqrt(sum_q
      S_q^2), g_q the length of g. Such a loss is linear in w and in the products of its entries; its
      coefficients are a vector no longer than g_q sqrt(S_q) and a matrix of trace v S_q, and the mean of n
      such is 1/sqrt(n) times as far from its expectation. Where the level of the scores counts, S_q sums the
      squared lengths of the documents.

    By the proofs the sums over lists are n times expectations; they were measured. Let z_q^2 be what is
    summed: as it is not negative, its mean falls short of its expectation such that the root of that is at
    most the root of the mean plus max z sqrt(2 ln(k/delta)/n) (Maurer 2003), which gives `estimate`. k counts
    the events that may fail: 2, or 3 for squares.

    No loss has a largest value but the one that B leaves it. c and max z are taken from the lists at hand;
    for lists to come they are an assumption (`assumes`).

    Parameters
    ----------
    loss, labels
        What was minimised, and what it was told, by row.
    X, queries
        Features as given, rows of each list adjacent, and the queries of the rows.
    coef
        The weights.
    delta
        Probability of failure.
    B
        Length of the weights, fixed before the queries were seen; None: the smallest power of 2 that is at
        least the length of `coef`, paid for by a union (`either_way`).

    References
    ----------
    Maurer (2003), A bound on the deviation probability for sums of non-negative random variables. Maurer
    (2016). Mohri, Rostamizadeh and Talwalkar (2018), Theorem 3.3 and Lemma 5.7.

    Examples
    --------
    >>> from concordant import LinearRanker, standardize, synthetic
    >>> from concordant.surrogates import Softmax
    >>> toy = synthetic.grades(n_queries=2000, n_items=10, seed=0)
    >>> coef = LinearRanker("ndcg@5").fit(toy.X, toy.y, qid=toy.qid).coef_  # minimises the softmax loss
    >>> targets = standardize("ndcg@5", toy.y, qid=toy.qid)
    >>> bound = bound_of_loss(Softmax(), targets, toy.X, Queries.from_ids(toy.qid), coef)
    >>> bound.rule, bound.measured < bound.largest < bound.value, len(bound.assumes)
    ('union', True, 1)
    """
    if reason := why_unbounded(loss):
        raise ParameterError("loss", loss, f"one whose risk can be bounded: {reason}")
    check_delta(delta)
    radius, told = chosen(coef, B, delta), loss.bind(labels, queries.offsets)
    found = swing(loss, told, labels, X, queries, radius.B)
    mean = float(told.value_and_grad(LinearScorer(X).all_scores(coef))[0].mean())
    return LossBound(
        bounds=f"{described(loss)} loss",
        empirical=mean,
        parts=terms(found, found.most, radius),
        multiplier=1.0,
        largest=float(found.rest.mean()),
        measured=mean,
        worst=float(found.highest.mean()),
        B=radius.B,
        rule=radius.rule,
        length=length_of(coef),
        M=found.farthest,
        version="sharp",
        n=queries.n_queries,
        delta=float(delta),
        assumes=(assumed(found, radius.B),),
    )


def chosen(coef: FloatArray, B: float | None, delta: float) -> Radius:
    """Give the B that was fixed, or that of the union."""
    length = length_of(coef)
    if B is None:
        return either_way(length, delta)
    if not length <= check_positive("B", B):
        raise ParameterError("B", B, f"at least the length of the weights, {length:.6g}")
    return Radius("given", float(B), float(delta))


def either_way(length: float, delta: float) -> Radius:
    """Give the smallest power of 2 that is long enough, and what is left of delta for it; 2^-30 for 0.

    Half of delta pays for 1, 2, 4, ..., in shares of 1/((k + 1)(k + 2)), and half for 1/2, 1/4, ...

    >>> either_way(3.0, 0.05).B, either_way(0.2, 0.05).B, either_way(0.2, 0.05).chance == 0.025 / 6
    (4.0, 0.25, True)
    """
    share, k = math.frexp(length) if length > 0.0 else (1.0, -SMALL)  # exact, where a logarithm rounds
    k = k - 1 if share == 0.5 else k
    if k >= 0:
        return by_union(math.ldexp(1.0, min(k, 1023)), 1.0, delta / 2.0)
    return Radius("union", math.ldexp(1.0, k), delta / 2.0 / (k * (k - 1)))


def assumed(found: Swing, B: float) -> str:
    """Say what is taken for granted of lists outside the sample."""
    low, high, amounts = found.most
    told = f"no list loses more than {high:.4g}" + f" or less than {low:.4g}" * (low < 0.0)
    each = zip(found.parts, amounts, strict=True)
    limits = " or ".join(f"{part.symbol} above {amount:.4g}" for part, amount in each)
    return f"{told} at any weights no longer than {B:g}, nor has {limits}"


def terms(found: Swing, most: Most, radius: Radius) -> tuple[Term, ...]:
    """Give the complexity of the linear rankers on these lists, its estimate's part, and the confidence."""
    n, events = len(found.rest), 1 + len(found.parts)
    log, c = math.log(events / radius.chance), most.high - most.low
    complexity = sum(part.factor * math.sqrt(float((part.amounts**2).mean())) for part in found.parts)
    tops = zip(found.parts, most.amounts, strict=True)
    estimate = sum(part.factor * top for part, top in tops) * math.sqrt(2.0 * log / n)
    factor = f"{found.parts[0].factor:.3g} " if found.parts[0].factor != 1.0 else ""
    missed = f"{factor}(B/n) max z sqrt(2 ln({events}/delta)): what lists to come may add to it"
    told = f"c sqrt(ln({events}/delta) / (2n)), c = {c:.4g}, delta = {radius.chance:.3g}"
    return (
        Term("complexity", ", and ".join(part.words for part in found.parts), 1, radius.B * complexity, n),
        Term("estimate", missed, 1, radius.B * estimate, n),
        Term("confidence", told, 1, c * math.sqrt(log / 2.0), n),
    )
