"""Losses of pairs in exact arithmetic: weights W[i, j] of phi(s_i - s_j), and piecewise quadratic margins.

The expected pairwise and preorder losses are sums over pairs of W[i, j] * phi(s_i - s_j).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from concordant.exceptions import ParameterError
from concordant.metrics.metric import Metric
from concordant.surrogates.margins import CLIP, NO_WIDTH, Margin
from concordant.surrogates.pairwise import Pairwise, Preorder
from concordant.surrogates.surrogate import Surrogate
from concordant.theory.exact.enclosure import BITS, Number, exact, power2
from concordant.theory.exact.exact_labels import ExactLabel, Probs, fraction, read
from concordant.theory.exact.exact_targets import surrogate_labels
from concordant.theory.exact.linear_equations import solve
from concordant.types import FloatArray

Pairs: TypeAlias = Mapping[tuple[int, int], Number]
"""(i, j) -> weight of phi(s_i - s_j), where it is not 0."""

DENOMINATORS = (1, 2, 4, 10, 100, 10_000, 10**6)
STEPS = 8  # Newton steps from the pieces that the scores lie in


@lru_cache(maxsize=2**14)
def label_pairs(metric: Metric, surrogate: Surrogate, label: ExactLabel) -> Pairs:
    """Return the weights of a pairwise or preorder loss under one label."""
    kind: Any = surrogate
    if type(surrogate) not in (Pairwise, Preorder):
        raise ParameterError("surrogate", surrogate, "a Pairwise or a Preorder, not a subclass")
    read_as, items = surrogate_labels(metric, surrogate, label), range(label.n_items)
    pairs = [(i, j) for i in items for j in items if i != j]
    if type(surrogate) is Pairwise:
        share = Fraction(1, max(len(pairs), 1)) if kind.normalize else Fraction(1)
        return {(i, j): exact(read_as[i] * share) for i, j in pairs if read_as[i] != 0}
    grades = [fraction(grade) for grade in read_as]  # type: ignore[arg-type]  # grades are never enclosed
    apart = [(i, j) for i, j in pairs if grades[i] > grades[j]]
    share = Fraction(1) if kind.weighting == "unit" else Fraction(1, max(len(apart), 1))
    if kind.weighting != "gain":
        return dict.fromkeys(apart, share)
    powers = [power2(grade, BITS) for grade in grades]
    return {(i, j): exact((powers[i] - powers[j]) * share) for i, j in apart}


def expected_pairs(metric: Metric, surrogate: Surrogate, labels: Sequence[ExactLabel], probs: Probs) -> Pairs:
    """Return the weights of the expected loss."""
    weights: dict[tuple[int, int], Number] = defaultdict(Fraction)
    for label, prob in zip(labels, probs, strict=True):
        for pair, weight in label_pairs(metric, surrogate, read(label)).items():
            weights[pair] = exact(weights[pair] + prob * weight)
    return {pair: weight for pair, weight in weights.items() if weight != 0}


def nearby_fractions(near: Sequence[float] | FloatArray) -> Iterator[list[Fraction]]:
    """Yield fractions near these numbers, from short to exact."""
    for most in DENOMINATORS:
        yield [Fraction(float(score)).limit_denominator(most) for score in near]


@dataclass(frozen=True)
class Quadratic:
    """A piecewise quadratic margin: 0 from `edge` on, a parabola over `width` below it, then its tangent.

    With d = edge - t and c = d clipped to [0, width], phi(t) = scale * c * (2 d - c); its slope is
    -2 * scale * c. A width of None never ends.
    """

    edge: Fraction
    width: Fraction | None
    scale: Fraction

    @classmethod
    def from_margin(cls, margin: Any) -> Quadratic | None:
        """Read the pieces of a margin that has a parabola; None for others.

        The numbers are those that the kernels read, whatever the name of the margin. A rounded scale does not
        matter: it multiplies the whole loss.
        """
        if type(margin) is not Margin or margin.kind != CLIP:
            return None
        edge, width, scale = (float(number) for number in margin.parameters)
        if not (math.isfinite(edge) and width > NO_WIDTH and 0.0 < scale < math.inf):
            return None
        return cls(fraction(edge), fraction(width) if width < math.inf else None, fraction(scale))

    def piece(self, t: float | Fraction) -> int:
        """Return 0 where phi is flat, 1 on the parabola, 2 on the tangent; corners belong to the parabola."""
        if t > self.edge:
            return 0
        return 2 if self.width is not None and self.edge - t > self.width else 1

    def slope(self, t: Fraction) -> Fraction:
        """Return the slope of phi."""
        below = max(self.edge - t, Fraction())
        return -2 * self.scale * (below if self.width is None else min(below, self.width))

    def gradient(self, weights: Pairs, scores: Sequence[Fraction]) -> list[Number]:
        """Compute the derivative of the loss in each score."""
        grad: list[Number] = [Fraction()] * len(scores)
        for (i, j), weight in weights.items():
            slope = weight * self.slope(scores[i] - scores[j])
            grad[i], grad[j] = exact(grad[i] + slope), exact(grad[j] - slope)
        return grad

    def stationary(
        self, weights: Mapping[tuple[int, int], Fraction], near: FloatArray
    ) -> Iterator[list[Fraction]]:
        """Yield candidates for minimisers near these scores: zeros of the derivative of their pieces."""
        for start in nearby_fractions(near):
            current: Sequence[float | Fraction] = list(near)
            for _ in range(STEPS):
                candidate = self.newton(weights, current, start)
                if candidate is None:
                    break
                yield candidate
                if candidate == current:
                    break
                current = candidate

    def newton(
        self,
        weights: Mapping[tuple[int, int], Fraction],
        current: Sequence[float | Fraction],
        start: Sequence[Fraction],
    ) -> list[Fraction] | None:
        """Solve for a derivative of 0 if differences stay in their pieces; `start` fills open scores."""
        n = len(start)
        matrix, right = [[Fraction()] * n for _ in range(n)], [Fraction()] * n
        for (i, j), weight in weights.items():
            piece = self.piece(current[i] - current[j])
            rate = 2 * self.scale * weight
            if piece == 1:
                for item, other in ((i, j), (j, i)):
                    matrix[item][item] += rate
                    matrix[item][other] -= rate
            pull = rate * (self.edge if piece == 1 else self.width or 0) * (piece != 0)
            right[i], right[j] = right[i] + pull, right[j] - pull
        solution = solve(matrix, right, start)
        return None if solution is None else [fraction(score) for score in solution]  # type: ignore[arg-type]

    def unique(self, weights: Pairs, scores: Sequence[Fraction]) -> bool:
        """True if a minimiser is the only one, up to a constant.

        Along a line of minimisers every term is straight. So scores of a pair inside the parabola keep their
        difference, at the edge it may only grow, where the tangent starts only shrink. Nothing but a constant
        can be added if "may not fall behind" leads from every item to every other.
        """
        ahead = set[tuple[int, int]]()  # (i, j): i must not fall behind j
        for i, j in weights:
            below = self.edge - (scores[i] - scores[j])
            if below >= 0 and (self.width is None or below < self.width):
                ahead.add((i, j))
            if below > 0 and (self.width is None or below <= self.width):
                ahead.add((j, i))
        return is_strongly_connected(ahead, len(scores))


def is_strongly_connected(edges: set[tuple[int, int]], n_items: int) -> bool:
    """True if a path along the edges leads from every item to every other.

    >>> is_strongly_connected({(0, 1), (1, 0)}, 2), is_strongly_connected({(0, 1)}, 2)
    (True, False)
    >>> is_strongly_connected(set(), 1)
    True
    """
    for steps in (edges, {(j, i) for i, j in edges}):
        reached = {0}
        for _ in range(n_items):
            reached |= {j for i, j in steps if i in reached}
        if len(reached) < n_items:
            return False
    return True
