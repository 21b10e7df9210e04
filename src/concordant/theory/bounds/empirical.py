"""A bound for a fitted ranker, from the data it was fitted on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from concordant._base.light_sklearn import check_is_fitted
from concordant._base.segments import run_chunks
from concordant._base.validate import check_choice, check_number, check_share, freeze, refuse_misaligned
from concordant.data.check import check
from concordant.data.labels import Permutations
from concordant.data.queries import Queries
from concordant.exceptions import ParameterError, ShapeError
from concordant.metrics.parse import metric as read_metric
from concordant.solvers.linear_scores import LinearScorer
from concordant.surrogates import ListwiseHinge, PositionHinge, Preorder, Surrogate
from concordant.theory.bounds.bound import Term, TermSum, format_value
from concordant.theory.bounds.hinges import HingeFacts, hinge_facts
from concordant.types import ArrayLike, FloatArray, IntArray

# EmpiricalBound: the guarantee of a fitted ranker, and its terms.


@dataclass(frozen=True, repr=False)
class EmpiricalBound(TermSum):
    """With probability 1 - delta: risk <= multiplier * empirical loss + excess, for the ranker at hand.

    Attributes
    ----------
    bounds
        The loss whose risk is bounded.
    empirical
        Mean over the queries of the hinge, cut off by the tight version.
    parts
        The terms whose sum is the excess.
    multiplier
        Times which the hinge dominates the bounded loss.
    largest
        Largest value of the bounded loss.
    measured
        Mean of the bounded loss over all these queries. Queries whose labels do not differ lose nothing; a
        metric's mean leaves them out.
    worst
        Largest value of that mean on these queries, whatever the ranking.
    B, rule
        Largest length of w, and the rule that fixed it: "regulariser", "union" or "given".
    length, M
        Length of the ranker's weights, and the largest distance of a document from the mean of its list.
    version, n, delta
        "sharp" or "tight"; number of queries; probability of failure.
    assumes
        Assumptions besides independent queries.
    """

    bounds: str
    empirical: float
    parts: tuple[Term, ...]
    multiplier: float
    largest: float
    measured: float
    worst: float
    B: float
    rule: str
    length: float
    M: float
    version: str
    n: int
    delta: float
    assumes: tuple[str, ...]

    @property
    def value(self) -> float:
        """The bound."""
        return self.multiplier * self.empirical + self.excess

    @property
    def vacuous(self) -> bool:
        """True if the bound is at least the largest value of the bounded loss."""
        return self.value >= self.largest

    @property
    def verdict(self) -> str:
        """Reason why the bound is vacuous, where it is."""
        return f"it is never above {self.largest:g}"

    def queries_needed(self, epsilon: float) -> int:
        """Return the number of queries like these at which the excess would be at most epsilon."""
        rate = self.excess * math.sqrt(self.n) / check_number("epsilon", epsilon, above=0.0)
        return max(math.ceil(rate**2), 1)

    def __str__(self) -> str:
        times = "" if self.multiplier == 1.0 else f"{self.multiplier:g} * "
        excess = format_value(self.excess, math.log10(max(self.excess, 1e-300)))
        summands = f"{times}{self.empirical:.4g} + {excess}"
        lines = [f"{self.bounds} <= {self.value:.4g} = {summands} with probability {1 - self.delta:g}"]
        lines += [term.line for term in self.parts]
        weights = f"weights of length {self.length:.4g}"
        lines.append(f"  B = {self.B:.4g} by {self.rule}, {weights}, {self.n} queries")
        *on_these, vacuous = self._remarks()
        lines += [*on_these, *(f"  assumes that {text}" for text in self.assumes)]
        return "\n".join(lines + [vacuous] * self.vacuous)

    def _remarks(self) -> list[str]:
        """Lines on the queries at hand, and last the line of a vacuous bound."""
        on_these = f"  on these queries the loss is {self.measured:.4g}, and at most {self.worst:.4g}"
        return [on_these, f"  vacuous: the loss is never above {self.largest:g}"]

    def __repr__(self) -> str:
        state = "; vacuous" * self.vacuous
        return f"EmpiricalBound({self.bounds} <= {self.value:.4g}; n={self.n}{state})"


class Shape(NamedTuple):
    """Squared distances of the documents of each list: from their mean, and across levels."""

    spread: FloatArray  # sum of squared distances from the mean
    apart: FloatArray  # sum of squared distances within pairs of different levels
    farthest: float  # distance of the farthest document from the mean of its list


def shape(X: Any, queries: Queries, codes: IntArray) -> Shape:
    """Measure the distances list by list, on threads: X is read twice, and never copied."""
    from concordant.theory.bounds.row_kernels import dense_shape, sparse_shape

    shapes = np.zeros((queries.n_queries, 3))
    offsets, levels = freeze(queries.offsets), freeze(codes)
    body: Callable[..., None]
    if hasattr(X, "indptr"):
        order = freeze(np.lexsort((codes, np.repeat(np.arange(queries.n_queries), queries.sizes))))
        body = partial(sparse_shape, csr_arrays(X), X.shape[1], levels, order)
    else:
        body = partial(dense_shape, freeze(np.ascontiguousarray(X)), levels)
    run_chunks(queries.offsets, lambda first, last: body((offsets, first, last), shapes))
    return Shape(shapes[:, 0], shapes[:, 1], math.sqrt(shapes[:, 2].max(initial=0.0)))


def csr_arrays(X: Any) -> tuple[Any, Any, Any]:
    """Return the arrays of a sparse matrix, without duplicate entries."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return freeze(X.data), freeze(X.indices), freeze(X.indptr)


def terms(
    facts: HingeFacts, measured: Shape, B: float, height: float, chance: float, *, tight: bool
) -> tuple[Term, Term]:
    """Return the complexity term of the linear rankers on these lists, and the confidence term."""
    n, by_scores = len(facts.slopes), facts.slopes**2 * measured.spread
    by_pairs = facts.pair_slopes**2 * measured.apart
    words = "2 sqrt(2) (B/n) sqrt(sum_q L_q^2 S_q): vector contraction"
    total = 8.0 * by_scores.sum()
    if tight:
        words = "2 sqrt(2) (B/n) sqrt(sum_q min(L_q^2 S_q, K_q^2 D_q)): vector contraction"
        total = 8.0 * np.minimum(by_scores, by_pairs).sum()
    if tight and facts.separable and 4.0 * by_pairs.sum() < total:
        words = "2 (B/n) sqrt(sum_q K_q^2 D_q): contraction pair by pair"
        total = 4.0 * by_pairs.sum()
    complexity = Term("complexity", words, 1, B * math.sqrt(float(total) / n), n)
    words = f"3 c sqrt(ln(2/delta) / (2n)), c = {height:.4g}, delta = {chance:.3g}"
    confidence = Term("confidence", words, 1, 3.0 * height * math.sqrt(math.log(2.0 / chance) / 2.0), n)
    return complexity.scaled(facts.multiplier), confidence.scaled(facts.multiplier)


VERSIONS = ("sharp", "tight")
ERRORS = ("margin", "plain")
MOST_DOUBLINGS = 1000  # of the first B of a union
DELTA = 0.05


class Radius(NamedTuple):
    """The rule that fixes B, that B, and the remaining probability of failure."""

    rule: str
    B: float
    chance: float


def empirical(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    qid: ArrayLike = None,
    *,
    delta: float = DELTA,
    loss: Surrogate | None = None,
    version: str = "tight",
    B: float | str = "auto",
    M: float | None = None,
    base: float = 1.0,
    largest: float = 1.0,
    error: str = "margin",
) -> EmpiricalBound:
    """Bound the risk of a fitted linear ranker by its hinge loss on the queries it was fitted on.

    For all w of length <= B at once, with probability 1 - delta over n independent queries:

    risk <= mean hinge + 2 sqrt(2) (B/n) sqrt(sum_q L_q^2 S_q) + 3 c sqrt(ln(2/delta)/2n)

    with S_q the sum of the squared distances of list q's documents from their mean. The hinge dominates the
    bounded loss. The second term is twice the empirical Rademacher average of the losses: list q's is
    L_q-Lipschitz in its scores (`lipschitz`), vector contraction (Maurer 2016) turns it into that of the
    scores, and Jensen's inequality into a root of squares; features count from their list's mean, since no
    hinge sees a constant added to all scores. The third is McDiarmid's inequality, used twice on a loss of
    range c, for the deviation and for the Rademacher average.

    - `sharp`: c = largest loss where no document is farther than M from its list's mean; 1 + 2 kappa BM for
      the listwise hinge. M is taken from the data, an assumption about the rest of the distribution.
    - `tight`: the hinge is cut off, a list's at its value at scores 0, which no ranking's loss exceeds, a
      pair's at its margin. What is left dominates the loss, is as Lipschitz, and is less; c is the
      largest loss of a ranking, so that neither B nor M enters the third term, and nothing is assumed of M.
      And a list's loss is also K_q-Lipschitz in the differences of scores of its P pairs of different levels,
      K_q = sqrt(P) times the most that a pair's difference counts; with D_q the sum over these pairs of the
      squared distances, contraction may start from the differences, where K_q^2 D_q < L_q^2 S_q. For losses
      that are means over pairs no vector contraction is needed: number a list's pairs by u in [0, 1), evenly;
      for each u the losses are 1-Lipschitz in one number a list, and the mean over u of the roots is below
      the root of the mean. That saves the factor sqrt(2).

    B must not depend on these queries. The penalty fixes it: the objective at the optimum is at most that at
    0, so the length of w is at most sqrt(2 * (largest loss at scores 0) / alpha), if alpha was fixed before
    and the penalty sees X as given (`fit_scale=False`). An alpha that validation queries chose among rankers
    fitted on these queries is not: with K penalties to choose from, pass delta/K. Otherwise a union over
    B_k = base * 2^k with delta_k = delta / ((k + 1)(k + 2)) pays for taking the smallest B_k that is at least
    the length of w.

    Parameters
    ----------
    model
        A fitted linear ranker; or any object with `coef_`, if `loss` is given.
    X, y, qid
        The queries it was fitted on: features, grades, ids.
    delta
        Probability of failure.
    loss
        The hinge: `ListwiseHinge` (modes max and softmax), `PositionHinge`, or `Preorder("pairs",
        margin="hinge")`. None: the one that was minimised; of other rankers the listwise hinge of its metric.
    version
        "sharp" or "tight".
    B
        "auto" (the regulariser's where it holds, else the union), "regulariser", "union", or a number.
    M
        Largest distance of a document from the mean of its list; None: the largest in the data.
    base
        First B of the union; choose it before you see the data.
    largest
        Largest value of the metric's loss, where it is not 1.
    error
        Of the position hinge: "margin", the 0-1 error of pairs weighted by their margins; or "plain", which
        (levels - 1) times the hinge dominates.

    References
    ----------
    Bartlett and Mendelson (2002). Maurer (2016). Mohri, Rostamizadeh and Talwalkar (2018), Theorem 3.3.

    Examples
    --------
    >>> import warnings
    >>> from concordant import GuaranteeWarning, MaxMarginRanker, synthetic
    >>> warnings.simplefilter("ignore", GuaranteeWarning)  # max-margin, on purpose
    >>> toy = synthetic.grades(n_queries=2000, n_items=10, seed=0)
    >>> model = MaxMarginRanker("ap", alpha=10.0, fit_scale=False).fit(toy.X, toy.y, qid=toy.qid)
    >>> bound = empirical(model, toy.X, toy.y, toy.qid)
    >>> bound.rule, bound.measured < bound.empirical < bound.value, bound.vacuous
    ('regulariser', True, False)
    """
    check_choice("version", version, VERSIONS)
    check_choice("error", error, ERRORS)
    check_share("delta", delta, 0.05)
    hinge = loss if loss is not None else _minimised_hinge(model)
    queries, rows, grades, coef = _check_sample(model, X, y, qid)
    queries = Queries.from_sizes(queries.sizes)
    facts = hinge_facts(hinge, grades, queries, largest, error)
    radius = _choose_radius(model, hinge, facts, B, weight_length(coef), base, delta)
    return _assemble_bound(facts, rows, queries, coef, radius, delta, version, M)


def bound_of_fit(
    loss: Surrogate,
    labels: FloatArray,
    X: Any,
    queries: Queries,
    coef: FloatArray,
    alpha: float | None,
    delta: float = DELTA,
) -> EmpiricalBound:
    """Compute the bound of `empirical` for the queries of a fit, whose rows are adjacent.

    `labels` are those that the loss read, `X` are the features as given; without `alpha`, B is by the union.
    """
    facts, length = hinge_facts(loss, labels, queries, 1.0, "margin"), weight_length(coef)
    radius = (
        union_radius(length, 1.0, delta) if alpha is None else _penalty_radius(facts, alpha, length, delta)
    )
    return _assemble_bound(facts, X, queries, coef, radius, delta)


def _assemble_bound(
    facts: HingeFacts,
    X: Any,
    queries: Queries,
    coef: FloatArray,
    radius: Radius,
    delta: float,
    version: str = "tight",
    M: float | None = None,
) -> EmpiricalBound:
    lists, tight = shape(X, queries, facts.codes), version == "tight"
    farthest = lists.farthest if M is None else check_number("M", M, above=0.0)
    if farthest < lists.farthest:
        raise ParameterError(
            "M", M, f"at least {lists.farthest:.6g}, the largest distance of a document in X"
        )
    height = facts.ceiling if tight else facts.height(radius.B * farthest)
    scores = LinearScorer(X).all_scores(coef)
    return EmpiricalBound(
        bounds=facts.bounds,
        empirical=float((facts.cut if tight else facts.values)(scores).mean()),
        parts=terms(facts, lists, radius.B, height, radius.chance, tight=tight),
        multiplier=facts.multiplier,
        largest=facts.largest,
        measured=float(facts.error(scores).mean()),
        worst=float(facts.worst.mean()),
        B=radius.B,
        rule=radius.rule,
        length=weight_length(coef),
        M=farthest,
        version=version,
        n=queries.n_queries,
        delta=float(delta),
        assumes=_assumptions(facts, radius.rule, None if tight or M is not None else farthest, tight=tight),
    )


def weight_length(coef: FloatArray) -> float:
    """Return the length of the weights, whose squares may overflow or underflow."""
    largest = float(np.abs(coef).max(initial=0.0)) or 1.0
    return largest * float(np.linalg.norm(coef / largest))


def _assumptions(facts: HingeFacts, rule: str, farthest: float | None, *, tight: bool) -> tuple[str, ...]:
    assumptions = [*facts.assumes, *(() if tight else facts.assumes_height)]
    if farthest is not None:
        assumptions.append(f"no document is farther than {farthest:.4g} from the mean of its list")
    if rule == "regulariser":
        assumptions.append("alpha was fixed before these queries were seen")
    return tuple(assumptions)


def _minimised_hinge(model: Any) -> Surrogate:
    """Return the hinge that the ranker minimised, else the listwise hinge of its metric."""
    surrogate = getattr(model, "surrogate_", None)
    if isinstance(surrogate, (ListwiseHinge, PositionHinge, Preorder)):
        return surrogate
    if not hasattr(model, "metric"):
        raise ParameterError.because(
            "loss is missing: the model has no metric from which to choose one. Pass loss=..."
        )
    return ListwiseHinge(read_metric(model.metric))


def _check_sample(
    model: Any, X: ArrayLike, y: ArrayLike, qid: ArrayLike
) -> tuple[Queries, Any, FloatArray, FloatArray]:
    """Check the sample; return the queries, their features and grades by sorted row, and the weights."""
    refuse_misaligned(X=X, y=y, qid=qid)
    if hasattr(model, "checked_features"):  # compares the names of features, too
        check_is_fitted(model, "coef_")
        X = model.checked_features(X, reset=False)
    if isinstance(y, Permutations):
        caller_queries = Queries.for_rows(qid, len(y))
        y = caller_queries.scatter(y.grades(caller_queries))
    queries, rows, grades = check(X, y, qid)
    coef = np.ascontiguousarray(getattr(model, "coef_", ()), dtype=np.float64)
    if coef.shape != (rows.shape[1],):
        raise ShapeError("coef_", coef.shape, f"one weight for each of the {rows.shape[1]} features of X")
    return queries, rows, grades, coef


def _choose_radius(
    model: Any, hinge: Surrogate, facts: HingeFacts, B: float | str, length: float, base: float, delta: float
) -> Radius:
    if not isinstance(B, str):
        return given_radius(length, B, delta)
    check_choice("B", B, ("auto", "regulariser", "union"))
    alpha = getattr(model, "alpha", None) or 0.0
    is_penalised_hinge = (
        getattr(model, "surrogate_", None) == hinge and getattr(model, "fit_scale", True) is False
    )
    if B == "regulariser" and not (is_penalised_hinge and alpha > 0.0):
        raise ParameterError("B", B, "'union' unless the ranker minimised this loss with fit_scale=False")
    if is_penalised_hinge and alpha > 0.0 and B != "union":
        return _penalty_radius(facts, alpha, length, delta)
    return union_radius(length, base, delta)


def given_radius(length: float, B: float, delta: float) -> Radius:
    """Return the B that was passed; raise if the weights are longer."""
    if not length <= check_number("B", B, above=0.0):
        raise ParameterError("B", B, f"at least the length of the weights, {length:.6g}")
    return Radius("given", float(B), float(delta))


def _penalty_radius(facts: HingeFacts, alpha: float, length: float, delta: float) -> Radius:
    """Return the B that the penalty promises: the objective at the optimum is at most that at 0."""
    radius = math.sqrt(2.0 * facts.rest / alpha)
    if length > radius:
        raise ParameterError.because(
            f"coef_ has length {length:.4g}, but the penalty allows at most {radius:.4g}. Was the model "
            "fitted with sample_weight, warm_start or another alpha? Use B='union'."
        )
    return Radius("regulariser", radius, delta)


def union_radius(length: float, base: float, delta: float) -> Radius:
    """Return the smallest base * 2^k of at least this length, and the share of delta left for it."""
    start = math.log2(check_number("base", base, above=0.0))
    k = max(math.ceil(math.log2(length) - start), 0) if length > 0.0 else 0
    if k > MOST_DOUBLINGS:
        raise ParameterError.because(
            f"coef_ has length {length:g}, but at most {base:g} * 2^{MOST_DOUBLINGS} is possible. Raise base."
        )
    return Radius("union", base * 2.0**k, delta / ((k + 1) * (k + 2)))
