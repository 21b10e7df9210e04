"""Multipliers that prove scores to minimise a loss with corners, in exact arithmetic.

The loss is a sum over terms of weight * max over pieces. Scores minimise it if shares >= 0 of the pieces that
attain each maximum, adding up to 1 in each term, make the weighted slopes cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from concordant.theory.exact.enclosure import Enclosure, Number, exact, high, low, sign, total
from concordant.theory.exact.linear import dot, nearest, rank, solve, transposed
from concordant.theory.exact.pieces import Piece, Term
from concordant.types import FloatArray

__all__ = ["balanced", "minimal"]

INSIDE = 1e-7  # shares above this are > 0, others may be 0
DENOMINATORS = (100, 10**4, 10**8)


def minimal(terms: Sequence[Term], scores: Sequence[Number]) -> bool | None:
    """Tell whether scores that minimise the loss are its only minimiser; None where they are not proven to.

    Scores that are enclosed stand for the corner in which the pieces that may attain the maxima meet.
    """
    attained = [Term(term.weight, highest(term, scores)) for term in terms]
    constants = (piece.constant for term in attained for piece in term.pieces)
    enclosed = any(isinstance(number, Enclosure) for number in (*scores, *constants))
    if enclosed and not cornered(attained, scores):
        return None
    return balanced(attained, len(scores))


def highest(term: Term, scores: Sequence[Number]) -> tuple[Piece, ...]:
    """Give the pieces that are not proven lower than another; one of each slope."""
    values = [exact(piece.constant + dot(piece.slope, scores)) for piece in term.pieces]
    top = max(map(low, values))
    return tuple({p.slope: p for p, v in zip(term.pieces, values, strict=True) if high(v) >= top}.values())


def cornered(attained: Sequence[Term], scores: Sequence[Number]) -> bool:
    """Tell whether these pieces meet in exactly one point, up to a constant, which the scores enclose."""
    matrix, right = list[list[Fraction]](), list[Number]()
    for first, *others in (term.pieces for term in attained):
        for other in others:
            matrix.append([a - b for a, b in zip(other.slope, first.slope, strict=True)])
            right.append(exact(first.constant - other.constant))
    if rank(matrix) < len(scores) - 1:
        return False
    point = solve(matrix, right, [low(score) for score in scores])
    within = zip(scores, point or (), strict=False)
    return point is not None and all(low(s) <= low(p) and high(p) <= high(s) for s, p in within)


def balanced(attained: Sequence[Term], n_items: int) -> bool | None:
    """Find multipliers that make the slopes cancel; tell whether they leave no other minimiser.

    The slopes of a term are reckoned from its first one. As all slopes sum to 0 over the items, the last
    item's equation follows from the others. If all multipliers are > 0 and the slopes span all directions,
    0 lies inside the subdifferential: there is no other minimiser.
    """
    columns, owners = list[list[Fraction]](), list[int]()
    for number, term in enumerate(attained):
        if any(sum(piece.slope) for piece in term.pieces):
            return None
        first, *others = (piece.slope[:-1] for piece in term.pieces)
        columns += [[a - b for a, b in zip(other, first, strict=True)] for other in others]
        owners += [number] * len(others)
    right = [total(-term.weight * term.pieces[0].slope[i] for term in attained) for i in range(n_items - 1)]
    if not columns:
        return n_items == 1 if all(sign(side) == 0 for side in right) else None
    system = System(transposed(columns), right, owners, [term.weight for term in attained])
    return system.solved()


@dataclass(frozen=True)
class System:
    """Equations matrix @ m = right, for m >= 0 of which those of a term add up to its weight at most.

    `owners` says to which term a column belongs.
    """

    matrix: list[list[Fraction]]
    right: list[Number]
    owners: list[int]
    weights: list[Number]

    def solved(self) -> bool | None:
        """None without a solution; else whether one lies inside all bounds and columns span everything."""
        found, depth = self.deepest()
        if depth > INSIDE:
            for most in DENOMINATORS:
                start = [Fraction(float(m)).limit_denominator(most) for m in found]
                inside = nearest(self.matrix, self.right, start)
                if inside is not None and self.signs(inside) == {1}:
                    return rank(self.matrix) == len(self.matrix)
        return False if depth > -INSIDE and self.at_vertex() else None

    def signs(self, m: Sequence[Number]) -> set[int | None]:
        """Signs of the multipliers, those of the first pieces among them."""
        rest = {number: self.weights[number] for number in self.owners}
        for number, one in zip(self.owners, m, strict=True):
            rest[number] = exact(rest[number] - one)
        return {sign(one) for one in (*m, *rest.values())}

    @property
    def floats(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Matrix, right-hand side, weights of the terms with columns, and which columns are theirs."""
        used = sorted(set(self.owners))
        theirs = np.array([[float(owner == number) for owner in self.owners] for number in used])
        right = np.array([float(low(side)) for side in self.right])
        return (
            np.array(self.matrix, float),
            right,
            np.array([float(low(self.weights[n])) for n in used]),
            theirs,
        )

    def deepest(self) -> tuple[FloatArray, float]:
        """Give the solution, in doubles, whose least share is largest, and that share; -1 without one."""
        from scipy.optimize import linprog

        matrix, right, weights, theirs = self.floats
        n = matrix.shape[1]
        # share * weight <= m, and share * weight <= weight - sum of m.
        above = np.vstack([np.c_[-np.eye(n), theirs.T @ weights], np.c_[theirs, weights]])
        limits = np.concatenate([np.zeros(n), weights])
        bounds = [(None, None)] * n + [(-1.0, 1.0)]
        equal = np.c_[matrix, np.zeros(len(matrix))]
        found: Any = linprog(np.eye(n + 1)[n] * -1.0, above, limits, equal, right, bounds, method="highs-ds")
        return (found.x[:n], float(found.x[n])) if found.status == 0 else (np.zeros(n), -1.0)

    def at_vertex(self) -> bool:
        """Tell whether a solution at the bounds is exact: found in doubles, solved for on its support."""
        from scipy.optimize import linprog

        matrix, right, weights, theirs = self.floats
        equal = np.block([[matrix, np.zeros((len(matrix), len(weights)))], [theirs, np.eye(len(weights))]])
        ones = np.ones(equal.shape[1])
        found: Any = linprog(ones, A_eq=equal, b_eq=np.concatenate([right, weights]), method="highs-ds")
        if found.status != 0:
            return False
        support = np.flatnonzero(found.x > INSIDE * weights.max())
        used = sorted(set(self.owners))
        rows = [[Fraction(int(entry)) for entry in row] for row in equal[len(matrix) :]]
        rows = [[*row, *[Fraction()] * len(used)] for row in self.matrix] + rows
        sides = [*self.right, *(self.weights[number] for number in used)]
        exactly = solve([[row[c] for c in support] for row in rows], sides)
        return exactly is not None and all(sign(one) in (0, 1) for one in exactly)
