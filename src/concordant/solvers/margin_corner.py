"""From a rounded hinge to the exact optimum: which losses sit at their corner decides a linear system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from concordant.types import BoolArray, FloatArray, IntArray

__all__ = [
    "CORNERS",
    "Found",
    "Hinges",
    "RowHinges",
    "Terms",
    "exact_corner",
    "out_of_range",
    "pulled",
    "wrong_side",
]

ROUNDS = 30  # changes of the set of corners before it is given up
CORNERS = 400  # whose linear system is small
EDGE = 1e-12  # share of a slack that may be rounding

Found = tuple[FloatArray, float, float, float]
"""Weights, bias, objective and gap."""


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

    def signed(self, rows: FloatArray, chosen: BoolArray | IntArray) -> FloatArray:
        """Give the rows of some hinges, turned as they pull."""
        turned: FloatArray = (self.label * self.sign)[chosen, None] * rows[self.pair[chosen]]
        return turned


class Hinges(Protocol):
    """Hinges of which some are free: at their corner, where the dual variable may be anything in its range.

    The others are fixed, at 0 or at their cost. At first those are free that are bent at a point's rounding.
    """

    @property
    def n_free(self) -> int:
        """How many are free."""

    def corner(self) -> tuple[FloatArray, FloatArray]:
        """Give rows and labels of the free ones; rows turned as they pull, labels 0 without a bias."""

    def fixed(self) -> tuple[FloatArray, float]:
        """Give the direction that the dual variables of the others add up to, and their sum by label."""

    def moved(self, duals: FloatArray, bias: float) -> Found:
        """Give the free ones these dual variables, as far as they may; what the weights are then worth."""

    def regrouped(self) -> bool:
        """Free those on the wrong side of their corner, and fix those out of range; whether any changed."""


def exact_corner(hinges: Hinges, n_features: int) -> Found | None:
    """Give weights, bias, objective and gap where the hinges near their corner sit right at it.

    A dual variable outside its range leaves the corner, a loss on the wrong side of it joins. None where the
    set does not settle to a smaller gap.
    """
    best = None
    for _ in range(ROUNDS):
        if not 0 < hinges.n_free <= min(4 * (n_features + 1), CORNERS):
            break
        point = hinges.moved(*corner_duals(*hinges.corner(), *hinges.fixed()))
        best = point if best is None or point[3] < best[3] else best
        if not hinges.regrouped():
            break
    return best


def corner_duals(
    signed: FloatArray, label: FloatArray, pull: FloatArray, balance: float
) -> tuple[FloatArray, float]:
    """Solve for the dual variables and the bias that put the free hinges at their corner."""
    right = 1.0 - signed @ pull
    system = np.block([[signed @ signed.T, label[:, None]], [label[None, :], np.zeros((1, 1))]])
    has_bias = bool(label.any())
    solved = np.linalg.lstsq(system, np.append(right, -balance if has_bias else 0.0))[0]
    return solved[:-1], float(solved[-1]) if has_bias else 0.0


def out_of_range(dual: FloatArray, cost: FloatArray) -> BoolArray:
    """Which dual variables leave the corner."""
    leaving: BoolArray = (dual < 0.0) | (dual > cost)
    return leaving


def wrong_side(dual: FloatArray, cost: FloatArray, slack: FloatArray) -> BoolArray:
    """Which fixed hinges join the corner: they pull without need, or not at all where there is need."""
    edge = EDGE * (1.0 + np.abs(slack))
    joining: BoolArray = ((dual <= 0.0) & (slack > edge)) | ((dual >= cost) & (slack < -edge))
    return joining


@dataclass(eq=False)
class RowHinges:
    """The hinges of rows in memory."""

    rows: FloatArray
    terms: Terms
    dual: FloatArray
    free: BoolArray
    has_bias: bool
    leaving: BoolArray
    slack: FloatArray

    @classmethod
    def at(
        cls, rows: FloatArray, terms: Terms, slack: FloatArray, delta: float, *, has_bias: bool
    ) -> RowHinges:
        """Free the losses that are bent at this rounding."""
        dual = terms.cost * np.clip(slack / delta, 0.0, 1.0)
        free = (slack > 0.0) & (slack < delta)
        return cls(rows, terms, dual, free, has_bias, np.zeros_like(free), slack)

    @property
    def n_free(self) -> int:
        """How many are free."""
        return int(self.free.sum())

    def corner(self) -> tuple[FloatArray, FloatArray]:
        """Give rows and labels of the free ones."""
        label = self.terms.label[self.free] if self.has_bias else np.zeros(self.n_free)
        return self.terms.signed(self.rows, self.free), label

    def fixed(self) -> tuple[FloatArray, float]:
        """Give the direction that the dual variables of the others add up to, and their sum by label."""
        fixed = np.where(self.free, 0.0, self.dual)
        return pulled(self.rows, self.terms, fixed), float(fixed @ self.terms.label)

    def moved(self, duals: FloatArray, bias: float) -> Found:
        """Give the free ones these dual variables, as far as they may; what the weights are then worth."""
        self.dual[self.free] = duals
        self.leaving = self.free & out_of_range(self.dual, self.terms.cost)
        self.dual = np.clip(self.dual, 0.0, self.terms.cost)
        return self.valued(bias)

    def regrouped(self) -> bool:
        """Free those on the wrong side of their corner, and fix those out of range; whether any changed."""
        joins = ~self.free & wrong_side(self.dual, self.terms.cost, self.slack)
        changed = bool(self.leaving.any() or joins.any())
        self.free = (self.free & ~self.leaving) | joins
        return changed

    def valued(self, bias: float) -> Found:
        """Give the weights of dual variables, with the objective and the gap to the balanced dual."""
        rows, terms, dual = self.rows, self.terms, self.dual
        w = pulled(rows, terms, dual)
        self.slack = terms.slack(rows @ w, bias)
        value = 0.5 * float(w @ w) + float(terms.cost @ np.maximum(self.slack, 0.0))
        if self.has_bias:
            up, down = float(dual[terms.label > 0.0].sum()), float(dual[terms.label < 0.0].sum())
            least = min(up, down)
            dual = dual * np.where(terms.label > 0.0, least / max(up, 1e-300), least / max(down, 1e-300))
        direction = pulled(rows, terms, dual)
        bound = float(dual.sum()) - 0.5 * float(direction @ direction)
        return w, bias, value, max(value - bound, 0.0)


def pulled(rows: FloatArray, terms: Terms, dual: FloatArray) -> FloatArray:
    """Give the direction that dual variables add up to."""
    weights = np.bincount(terms.pair, weights=dual * terms.label * terms.sign, minlength=len(rows))
    direction: FloatArray = weights @ rows
    return direction
