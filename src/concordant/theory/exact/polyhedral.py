"""Minimisers of losses with corners: found by linear programs in doubles, and then put exactly on corners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from concordant.exceptions import ParameterError
from concordant.metrics.metric import Metric
from concordant.supervision.synthetic.distribution import Label
from concordant.surrogates.surrogate import Surrogate
from concordant.theory.exact.enclosure import Number, exact, low
from concordant.theory.exact.labels import ExactLabel, read
from concordant.theory.exact.linear import rank, solve
from concordant.theory.exact.pairs import rounding
from concordant.theory.exact.pieces import Pieces, Term, label_terms, polyhedral
from concordant.types import FloatArray

__all__ = ["corners", "minimise_polyhedral", "polyhedral_minimiser"]

TOLERANCES = (1e-9, 1e-7, 1e-5, 1e-3)  # pieces nearer than this may meet
BOX = 2.0  # scores lie within this many times the largest margin per item
NUDGE = 1e-5  # share of a secondary objective
LOOSE = 1e-9  # a nudged minimiser may lose this much


class Rows(NamedTuple):
    """A term in doubles: its weight, constants and slopes of its pieces, and whether 0 is one more."""

    weight: float
    constants: FloatArray
    slopes: FloatArray
    floor: bool

    @property
    def key(self) -> bytes:
        """Equal for equal pieces."""
        return self.constants.tobytes() + self.slopes.tobytes()


def as_rows(weight: float, pieces: Pieces) -> Rows:
    """Give a term in doubles."""
    moving = [piece for piece in pieces if any(piece.slope)]
    constants = np.array([float(low(piece.constant)) for piece in moving])
    slopes = np.array([[float(entry) for entry in piece.slope] for piece in moving])
    return Rows(weight, constants, slopes, len(moving) < len(pieces))


@lru_cache(maxsize=2**13)
def label_rows(metric: Metric, surrogate: Surrogate, label: ExactLabel) -> tuple[tuple[bytes, Rows], ...]:
    """Give the terms of the loss under a label in doubles, each with its key."""
    terms = label_terms(metric, surrogate, label)
    rows = [as_rows(float(low(term.weight)), term.pieces) for term in terms]
    return tuple((row.key, row) for row in rows if len(row.constants))


def polyhedral_minimiser(
    metric: Metric,
    surrogate: Surrogate,
    labels: Sequence[Label | ExactLabel],
    probs: Sequence[float | Fraction],
    direction: FloatArray | None = None,
) -> FloatArray | None:
    """Give scores, in doubles, that minimise an expected loss with corners; None for other losses.

    None, too, where the metric has no exact values. Where minimisers are many, it is a vertex of them: one
    that is lowest along `direction`, if one is given. The first score is 0, and the others lie in a box
    around it.
    """
    if not polyhedral(surrogate):
        return None
    merged: dict[bytes, Rows] = {}
    seen = [read(label) for label in labels]
    try:
        tables = [label_rows(metric, surrogate, label) for label in seen]
    except ParameterError:
        return None
    for table, prob in zip(tables, probs, strict=True):
        for key, row in table:
            known = merged[key].weight if key in merged else 0.0
            merged[key] = row._replace(weight=known + float(prob) * row.weight)
    return minimise_polyhedral(list(merged.values()), seen[0].n_items, direction)


def minimise_polyhedral(
    rows: Sequence[Rows], n_items: int, direction: FloatArray | None = None
) -> FloatArray | None:
    """Minimise a sum of weight * max over pieces, in doubles; None where the solver fails."""
    used = [row for row in rows if row.weight > 0.0]
    if not used or n_items < 2:
        return np.zeros(n_items)
    best = program(used, np.zeros(n_items))
    if direction is None or best is None:
        return best
    weight = sum(row.weight for row in used)
    tilt = np.asarray(direction, dtype=np.float64) / max(float(np.abs(direction).max()), 1e-300)
    moved = program(used, NUDGE * weight * tilt)
    if moved is None or value(used, moved) > value(used, best) + LOOSE * weight:
        return best
    return moved


def value(rows: Sequence[Rows], scores: FloatArray) -> float:
    """Value of the loss."""
    return float(
        sum(
            r.weight * (r.constants + r.slopes @ scores).max(initial=0.0 if r.floor else -np.inf)
            for r in rows
        )
    )


def program(rows: Sequence[Rows], tilt: FloatArray) -> FloatArray | None:
    """Solve the linear program: one number per term, at least each of its pieces; None if that fails."""
    from scipy.optimize import linprog

    slopes, constants = (np.concatenate([row[column] for row in rows]) for column in (2, 1))
    tops = np.repeat(np.eye(len(rows)), [len(row.constants) for row in rows], axis=0)
    steps = np.abs(slopes)[slopes != 0.0]
    farthest = BOX * len(tilt) * max(float(np.abs(constants).max()), 1.0) / float(steps.min())
    bounds = [(0.0, 0.0), *[(-farthest, farthest)] * (len(tilt) - 1)]
    bounds += [(0.0 if row.floor else -np.inf, np.inf) for row in rows]
    cost = np.concatenate([tilt, [row.weight for row in rows]])
    found: Any = linprog(cost, np.hstack([slopes, -tops]), -constants, bounds=bounds, method="highs-ds")
    return None if found.x is None else np.asarray(found.x[: len(tilt)], dtype=np.float64)


def corners(terms: Sequence[Term], near: FloatArray) -> Iterator[list[Number]]:
    """Give candidates for exact minimisers near these scores: pieces that nearly meet there do meet."""
    raised = near - near.min()
    tried: list[list[list[Fraction]]] = []
    for tolerance in TOLERANCES:
        matrix, right = meeting(terms, raised, tolerance * max(1.0, float(raised.max())))
        if matrix in tried:
            continue
        tried.append(matrix)
        fixed = rank(matrix) == len(near) - 1
        for start in rounding(raised):
            found = solve(matrix, right, start) if matrix else list[Number](start)
            if found is not None:
                yield found
            if fixed or found is None:  # whatever the start is
                break


def meeting(
    terms: Sequence[Term], scores: FloatArray, tolerance: float
) -> tuple[list[list[Fraction]], list[Number]]:
    """Give the equations that the pieces within the tolerance of each maximum are equal."""
    matrix, right = list[list[Fraction]](), list[Number]()
    for term in terms:
        values = [
            float(low(constant)) + float(np.array(slope, float) @ scores) for constant, slope in term.pieces
        ]
        top = max(values) - tolerance
        first, *others = [piece for piece, v in zip(term.pieces, values, strict=True) if v >= top]
        for other in others:
            matrix.append([a - b for a, b in zip(other.slope, first.slope, strict=True)])
            right.append(exact(first.constant - other.constant))
    return matrix, right
