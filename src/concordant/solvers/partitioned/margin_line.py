"""Slopes of the comparison family's losses on the way from one point to another, over rows in parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from concordant.solvers.partitioned.margin_part import MarginPart, Spot
from concordant.solvers.partitioned.parts import Parts
from concordant.solvers.partitioned.tree import tree_sum
from concordant.types import BoolArray, FloatArray

__all__ = ["slope_between"]

LOGISTIC = 2  # of the kinds of losses
CROSSING = 1_000_000  # rows that may leave their piece in a step and be sent: 25 bytes each


def slope_between(
    parts: Parts, spot: Spot, ahead: Spot, bias_step: float, kind: int
) -> Callable[[float], float]:
    """Give the slope of all losses between two points: one pass, where few enough leave their piece.

    The slope of the others changes evenly. Else, and of the logistic loss, a sum over parts for each place.
    """
    way = spot, ahead, bias_step
    found = [] if kind == LOGISTIC else parts.each(crossing, *way, max(CROSSING // parts.n_parts, 1_000))
    if not found or any(one is None for one in found):
        return lambda t: float(parts.total(sloped, *way, t)[0])
    low, high = tree_sum(ends for ends, _ in found)
    rest, given = Way.joined([rows for _, rows in found]), (spot.bias, bias_step, kind, spot.delta)
    return lambda t: float(low + t * (high - low)) + rest.slope(t, *given)


@dataclass(frozen=True, eq=False)
class Way:
    """Scores of rows, how they change on the way to another point, which are ties, and costs."""

    g: FloatArray
    change: FloatArray
    tie: BoolArray
    cost: FloatArray

    @classmethod
    def joined(cls, ways: Sequence[Way]) -> Way:
        """Put those of parts together."""
        columns = zip(*((way.g, way.change, way.tie, way.cost) for way in ways), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    def take(self, rows: BoolArray) -> Way:
        """Give some of them."""
        return Way(self.g[rows], self.change[rows], self.tie[rows], self.cost[rows])

    def slope(self, t: float, bias: float, bias_step: float, kind: int, delta: float) -> float:
        """Slope of the losses at a share t of the way."""
        from concordant.solvers.margin_kernels import line_slope

        return float(line_slope(self.g, self.change, self.tie, self.cost, bias, bias_step, t, kind, delta))


# ---------------------------------------------------------------- jobs


def sloped(part: MarginPart, spot: Spot, ahead: Spot, bias_step: float, t: float) -> FloatArray:
    """Slope of the losses at a share t of the way between two points."""
    problem, point = part.at(spot)
    return np.array([problem.along(point, part.at(ahead)[1], bias_step)(t)])


def crossing(
    part: MarginPart, spot: Spot, ahead: Spot, bias_step: float, most: int
) -> tuple[FloatArray, Way] | None:
    """Give the slope, at two points, of losses that stay on one piece between them; and rows of the others.

    None where those are more than could be sent.
    """
    problem, point = part.at(spot)
    after, terms = part.at(ahead)[1], problem.terms()
    ends = terms.slack(point.g, point.bias), terms.slack(after.g, point.bias + bias_step)
    first, last = ((s > 0.0).astype(np.int8) + ((s >= point.delta) & (problem.kind == 0)) for s in ends)
    crosses = np.zeros(problem.n_rows, dtype=np.bool_)
    crosses[terms.pair[first != last]] = True
    if np.count_nonzero(crosses) > most:
        return None
    whole = Way(point.g, after.g - point.g, problem.tie, problem.cost)
    given = point.bias, bias_step, problem.kind, point.delta
    return np.array([whole.take(~crosses).slope(t, *given) for t in (0.0, 1.0)]), whole.take(crosses)
