"""The kernel machine on pairs: libsvm on the Gram matrix of flipped differences.

One family holds the comparison machine and both ranking baselines (`margin.py` writes it out): the rows a
binary support vector machine sees are the pairs themselves, with a sign and a label.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from concordant.solvers.margin import METHODS, Method, objective
from concordant.solvers.margin_corner import Terms
from concordant.types import BoolArray, FloatArray

__all__ = ["DualSolution", "fit_gram"]

STEPS = 100  # of libsvm, times the rows: an indefinite matrix would keep it busy for ever


@dataclass(frozen=True, eq=False)
class DualSolution:
    """Where libsvm stopped.

    Attributes
    ----------
    coef
        One number per pair: the direction is their sum over the flipped differences, u = sum_i coef_i d_i.
    bias
        Of the machine; 0 for the ranking methods, which have none.
    value, gap
        The primal objective, and how far it is above its optimum at most (the duality gap).
    """

    coef: FloatArray
    bias: float
    value: float
    gap: float


def fit_gram(
    gram: FloatArray,
    is_tie: BoolArray,
    *,
    C: float,
    method: str = "compare",
    sample_weight: FloatArray | None = None,
    tol: float = 1e-3,
) -> DualSolution:
    """Solve the dual (equation 18 of the paper) by libsvm.

    Parameters
    ----------
    gram
        Inner products of the pairs' differences (right - left, turned so that right is better), (n, n).
    is_tie
        Which pairs are ties.
    C
        Cost of a unit of slack.
    method
        "compare", "rank" or "rank2". There must be a difference, and for "compare" a tie.
    sample_weight
        Multiplies C, pair by pair.
    tol
        How far libsvm may leave the conditions of optimality violated.

    Examples
    --------
    >>> d = np.array([[2.0], [0.5]])  # a difference of 2, a tie at a distance of 0.5
    >>> found = fit_gram(d @ d.T, np.array([False, True]), C=100.0, tol=1e-8)
    >>> u = float(found.coef @ d[:, 0])
    >>> round(u, 6), round(found.bias, 6)
    (1.333333, -1.666667)
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import SVC

    family = METHODS[method]
    weight = np.ones(len(gram)) if sample_weight is None else sample_weight
    rows = machine_rows(is_tie, weight, family)
    matrix = gram[np.ix_(rows.pair, rows.pair)]
    matrix *= rows.sign[:, None] * rows.sign
    limit = int(STEPS * max(len(matrix), 10_000))
    machine = SVC(C=C, kernel="precomputed", tol=tol, cache_size=500, max_iter=limit)
    with warnings.catch_warnings():  # the gap tells
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(matrix, rows.label, sample_weight=rows.cost)
    dual = np.zeros(len(rows.pair))
    dual[machine.support_] = machine.dual_coef_[0]
    coef: FloatArray = np.bincount(rows.pair, weights=dual * rows.sign, minlength=len(gram)).astype(
        np.float64
    )
    bias = float(machine.intercept_[0]) if family.has_bias else 0.0
    g = gram @ coef
    squared = float(coef @ g)
    value = 0.5 * squared + objective(g, is_tie, weight, bias=bias, C=C, family=family)
    bound = float(np.abs(dual).sum()) - 0.5 * squared
    return DualSolution(coef, bias, value, max(value - bound, 0.0))


def machine_rows(is_tie: BoolArray, weight: FloatArray, family: Method) -> Terms:
    """Give the hinges that cost something as rows of a binary machine.

    Without a bias every row stands beside its mirror image, at half its cost: the best bias is then 0.
    """
    share = weight * np.where(is_tie, family.tie_weight, family.difference_weight)
    terms = Terms.of(is_tie, share, has_bias=family.has_bias)
    used = terms.cost > 0.0
    rows = Terms(terms.pair[used], terms.sign[used], terms.label[used], terms.cost[used])
    if family.has_bias:
        return rows
    twice = np.tile(rows.pair, 2), np.append(rows.sign, -rows.sign), np.append(rows.label, -rows.label)
    return Terms(*twice, 0.5 * np.tile(rows.cost, 2))
