"""From a rounded hinge to the exact optimum: which losses sit at their corner decides a linear system."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["CORNERS", "Terms", "exact_corner"]

ROUNDS = 30  # changes of the set of corners before it is given up
CORNERS = 400  # whose linear system is small


@dataclass(frozen=True, eq=False)
class Terms:
    """Every hinge on its own: h(1 - label (b + sign g)) of a pair, with its cost.

    Differences come first (label and sign 1), then ties, each once with either sign (label -1; without a
    bias, where nothing tells them from differences, 1).
    """

    pair: IntArray
    sign: FloatArray
    label: FloatArray
    cost: FloatArray

    @classmethod
    def of(cls, tie: BoolArray, cost: FloatArray, *, has_bias: bool) -> Terms:
        """Write the hinges of all pairs out."""
        differences, ties = np.flatnonzero(~tie), np.flatnonzero(tie)
        pair = np.concatenate((differences, ties, ties))
        sign = np.repeat([1.0, 1.0, -1.0], (len(differences), len(ties), len(ties)))
        label = np.where(tie[pair] & has_bias, -1.0, 1.0)
        return cls(pair, sign, label, cost[pair])

    def slack(self, g: FloatArray, bias: float) -> FloatArray:
        """Give how far each margin falls short of 1."""
        short: FloatArray = 1.0 - self.label * (bias + self.sign * g[self.pair])
        return short


def exact_corner(
    rows: FloatArray, terms: Terms, g: FloatArray, bias: float, delta: float, *, has_bias: bool
) -> tuple[FloatArray, float, float, float] | None:
    """Give weights, bias, objective and gap where the hinges near their corner sit right at it.

    Starts from the losses that are bent at rounding `delta`; a dual variable outside its range leaves the
    corner, a loss on the wrong side of it joins. None where the set does not settle to a smaller gap.
    """
    slack = terms.slack(g, bias)
    dual = terms.cost * np.clip(slack / delta, 0.0, 1.0)
    free = (slack > 0.0) & (slack < delta)
    best = None
    for _ in range(ROUNDS):
        if not 0 < free.sum() <= min(4 * (rows.shape[1] + 1), CORNERS):
            break
        dual[free], bias = corner_duals(rows, terms, free, np.where(free, 0.0, dual), has_bias=has_bias)
        low, high = free & (dual < 0.0), free & (dual > terms.cost)
        dual = np.clip(dual, 0.0, terms.cost)
        point = valued(rows, terms, dual, bias, has_bias=has_bias)
        best = point if best is None or point[3] < best[3] else best
        slack = terms.slack(rows @ point[0], bias)
        edge = 1e-12 * (1.0 + np.abs(slack))
        joins = ~free & (((dual <= 0.0) & (slack > edge)) | ((dual >= terms.cost) & (slack < -edge)))
        if not (low.any() or high.any() or joins.any()):
            break
        free = (free & ~low & ~high) | joins
    return best


def corner_duals(
    rows: FloatArray, terms: Terms, free: BoolArray, fixed: FloatArray, *, has_bias: bool
) -> tuple[FloatArray, float]:
    """Solve for the dual variables and the bias that put the free hinges at their corner."""
    signed = (terms.label * terms.sign)[free, None] * rows[terms.pair[free]]
    label = terms.label[free] if has_bias else np.zeros(int(free.sum()))
    right = 1.0 - signed @ pulled(rows, terms, fixed)
    system = np.block([[signed @ signed.T, label[:, None]], [label[None, :], np.zeros((1, 1))]])
    solved = np.linalg.lstsq(system, np.append(right, -float(fixed @ terms.label) if has_bias else 0.0))[0]
    return solved[:-1], float(solved[-1]) if has_bias else 0.0


def pulled(rows: FloatArray, terms: Terms, dual: FloatArray) -> FloatArray:
    """Give the direction that dual variables add up to."""
    weights = np.bincount(terms.pair, weights=dual * terms.label * terms.sign, minlength=len(rows))
    direction: FloatArray = weights @ rows
    return direction


def valued(
    rows: FloatArray, terms: Terms, dual: FloatArray, bias: float, *, has_bias: bool
) -> tuple[FloatArray, float, float, float]:
    """Give the weights of dual variables, with the objective and the gap to the balanced dual."""
    w = pulled(rows, terms, dual)
    value = 0.5 * float(w @ w) + float(terms.cost @ np.maximum(terms.slack(rows @ w, bias), 0.0))
    if has_bias:
        up, down = float(dual[terms.label > 0.0].sum()), float(dual[terms.label < 0.0].sum())
        least = min(up, down)
        dual = dual * np.where(terms.label > 0.0, least / max(up, 1e-300), least / max(down, 1e-300))
    direction = pulled(rows, terms, dual)
    bound = float(dual.sum()) - 0.5 * float(direction @ direction)
    return w, bias, value, max(value - bound, 0.0)
