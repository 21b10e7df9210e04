"""A bound for a fitted ranker, from the data it was fitted on."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from concordant.exceptions import ParameterError, ShapeError
from concordant.metrics.parse import metric as read_metric
from concordant.scorers import LinearScorer
from concordant.supervision.check import check
from concordant.supervision.labels import Permutations
from concordant.supervision.queries import Queries
from concordant.surrogates import ListwiseHinge, PositionHinge, Preorder, Surrogate
from concordant.surrogates.surrogate import check_choice
from concordant.theory.bounds.bound import check_delta, check_positive
from concordant.theory.bounds.fitted import EmpiricalBound, shape, terms
from concordant.theory.bounds.hinges import Facts, facts
from concordant.types import ArrayLike, FloatArray

__all__ = ["bound_of_fit", "empirical"]

VERSIONS = ("sharp", "tight")
ERRORS = ("margin", "plain")
MOST_DOUBLINGS = 1000  # of the first B of a union
DELTA = 0.05


class Radius(NamedTuple):
    """The rule that fixes B, that B, and the probability of failure that is left."""

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
    fitted on these queries is not: with K penalties to choose from, give delta/K. Otherwise a union over
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
    check_delta(delta)
    hinge = loss if loss is not None else own_hinge(model)
    queries, rows, grades, coef = checked(model, X, y, qid)
    queries = Queries.from_sizes(queries.sizes)
    known = facts(hinge, grades, queries, largest, error)
    radius = chosen_length(model, hinge, known, B, length_of(coef), base, delta)
    return bounded(known, rows, queries, coef, radius, delta, version, M)


def bound_of_fit(
    loss: Surrogate,
    labels: FloatArray,
    X: Any,
    queries: Queries,
    coef: FloatArray,
    alpha: float | None,
    delta: float = DELTA,
) -> EmpiricalBound:
    """Give what `empirical` gives of the queries of a fit, rows of each adjacent.

    Parameters
    ----------
    loss, labels
        The hinge that was minimised, and what it was told.
    X, queries
        Features as given, and the queries of the rows.
    coef
        The weights.
    alpha
        The penalty that fixes B; None: a union over lengths.
    delta
        Probability of failure.
    """
    known, length = facts(loss, labels, queries, 1.0, "margin"), length_of(coef)
    radius = by_union(length, 1.0, delta) if alpha is None else by_penalty(known, alpha, length, delta)
    return bounded(known, X, queries, coef, radius, delta)


def bounded(
    known: Facts,
    X: Any,
    queries: Queries,
    coef: FloatArray,
    radius: Radius,
    delta: float,
    version: str = "tight",
    M: float | None = None,
) -> EmpiricalBound:
    """Put the terms together."""
    lists, tight = shape(X, queries, known.codes), version == "tight"
    far = lists.farthest if M is None else check_positive("M", M)
    if far < lists.farthest:
        raise ParameterError("M", M, f"at least {lists.farthest:.6g}, the distance of a document in X")
    height = known.ceiling if tight else known.height(radius.B * far)
    scores = LinearScorer(X).all_scores(coef)
    return EmpiricalBound(
        bounds=known.bounds,
        empirical=float((known.cut if tight else known.values)(scores).mean()),
        parts=terms(known, lists, radius.B, height, radius.chance, tight=tight),
        multiplier=known.multiplier,
        largest=known.largest,
        measured=float(known.error(scores).mean()),
        worst=float(known.worst.mean()),
        B=radius.B,
        rule=radius.rule,
        length=length_of(coef),
        M=far,
        version=version,
        n=queries.n_queries,
        delta=float(delta),
        assumes=assumptions(known, radius.rule, None if tight or M is not None else far, tight=tight),
    )


def length_of(coef: FloatArray) -> float:
    """Length of the weights, whose squares may leave the doubles."""
    largest = float(np.abs(coef).max(initial=0.0)) or 1.0
    return largest * float(np.linalg.norm(coef / largest))


def assumptions(known: Facts, rule: str, far: float | None, *, tight: bool) -> tuple[str, ...]:
    """Say what must be true besides independent queries."""
    told = [*known.assumes, *(() if tight else known.assumes_height)]
    if far is not None:
        told.append(f"no document is farther than {far:.4g} from the mean of its list")
    if rule == "regulariser":
        told.append("alpha was fixed before these queries were seen")
    return tuple(told)


def own_hinge(model: Any) -> Surrogate:
    """Give the hinge that the ranker minimised, else the listwise one of its metric."""
    own = getattr(model, "surrogate_", None)
    if isinstance(own, (ListwiseHinge, PositionHinge, Preorder)):
        return own
    if not hasattr(model, "metric"):
        raise ParameterError("loss", None, "given: the model names no metric whose hinge could be taken")
    return ListwiseHinge(read_metric(model.metric))


def checked(
    model: Any, X: ArrayLike, y: ArrayLike, qid: ArrayLike
) -> tuple[Queries, Any, FloatArray, FloatArray]:
    """Give the queries, their features and grades by sorted row, and the weights."""
    if hasattr(model, "checked_features"):  # compares the names of features, too
        check_is_fitted(model, "coef_")
        X = model.checked_features(X, reset=False)
    if isinstance(y, Permutations):
        given = Queries.of(qid, len(y))
        y = given.scatter(y.grades(given))
    queries, rows, grades = check(X, y, qid)
    coef = np.ascontiguousarray(getattr(model, "coef_", ()), dtype=np.float64)
    if coef.shape != (rows.shape[1],):
        raise ShapeError("coef_", coef.shape, f"one weight for each of the {rows.shape[1]} features of X")
    return queries, rows, grades, coef


def chosen_length(
    model: Any, hinge: Surrogate, known: Facts, B: float | str, length: float, base: float, delta: float
) -> Radius:
    """Give the B that a rule fixes."""
    if not isinstance(B, str):
        if not length <= check_positive("B", B):
            raise ParameterError("B", B, f"at least the length of the weights, {length:.6g}")
        return Radius("given", float(B), delta)
    check_choice("B", B, ("auto", "regulariser", "union"))
    alpha = getattr(model, "alpha", None) or 0.0
    own = getattr(model, "surrogate_", None) == hinge and getattr(model, "fit_scale", True) is False
    if B == "regulariser" and not (own and alpha > 0.0):
        raise ParameterError("B", B, "'union', unless the ranker minimised this loss with fit_scale=False")
    if own and alpha > 0.0 and B != "union":
        return by_penalty(known, alpha, length, delta)
    return by_union(length, base, delta)


def by_penalty(known: Facts, alpha: float, length: float, delta: float) -> Radius:
    """Give the B that the penalty promises: the objective at the optimum is at most that at 0."""
    radius = math.sqrt(2.0 * known.rest / alpha)
    if length > radius:
        promised = f"no longer than {radius:.4g}, as the penalty promises, or B 'union'"
        wanted = f"{promised} (sample_weight, warm_start, a later alpha?)"
        raise ParameterError("coef_", f"of length {length:.4g}", wanted)
    return Radius("regulariser", radius, delta)


def by_union(length: float, base: float, delta: float) -> Radius:
    """Give the smallest base * 2^k that is long enough, and what is left of delta for it."""
    start = math.log2(check_positive("base", base))
    k = max(math.ceil(math.log2(length) - start), 0) if length > 0.0 else 0
    if k > MOST_DOUBLINGS:
        raise ParameterError("coef_", f"of length {length:g}", f"at most {base:g} * 2^{MOST_DOUBLINGS} long")
    return Radius("union", base * 2.0**k, delta / ((k + 1) * (k + 2)))
