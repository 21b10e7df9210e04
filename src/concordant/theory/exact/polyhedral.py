"""Minimisers of losses with corners: found by linear programs in doubles, then put exactly on corners."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from concordant.exceptions import ParameterError
from concordant.metrics.metric import Metric
from concordant.surrogates.margins import Margin
from concordant.surrogates.margins import hinge as plain_hinge
from concordant.surrogates.order_hinge import ListwiseHinge
from concordant.surrogates.pairwise import Pairwise, Preorder
from concordant.surrogates.position_hinge import PositionHinge
from concordant.surrogates.surrogate import Surrogate
from concordant.theory.exact.enclosure import BITS, Enclosure, Number, exact, high, low, sign, total
from concordant.theory.exact.exact_labels import (
    ExactLabel,
    Labels,
    Probs,
    check_library_metric,
    fraction,
    gains,
    read,
)
from concordant.theory.exact.exact_targets import surrogate_labels, targets
from concordant.theory.exact.exact_values import Order, order_value
from concordant.theory.exact.linear_equations import dot, nearest, rank, solve, transpose
from concordant.theory.exact.pair_losses import label_pairs, nearby_fractions
from concordant.types import FloatArray

# Losses with corners in exact arithmetic: sums of weight * max over pieces of constant + slope . scores.


class Piece(NamedTuple):
    """The function constant + slope . scores."""

    constant: Number
    slope: tuple[Fraction, ...]


Pieces: TypeAlias = tuple[Piece, ...]


class PiecewiseTerm(NamedTuple):
    """A weight times the largest of the pieces."""

    weight: Number
    pieces: Pieces


def is_polyhedral(surrogate: Any) -> bool:
    """True if the loss has flat pieces that this module can list."""
    kind = type(surrogate)
    if kind in (Pairwise, Preorder):
        return type(surrogate.margin) is Margin and surrogate.margin.code == plain_hinge.code
    if kind is ListwiseHinge:
        return surrogate.mode in ("max", "sum")
    return kind is PositionHinge


def expected_terms(
    metric: Metric, surrogate: Surrogate, labels: Sequence[ExactLabel], probs: Probs
) -> list[PiecewiseTerm]:
    """Return the terms of the expected loss."""
    weights: dict[Pieces, Number] = defaultdict(Fraction)
    for label, prob in zip(labels, probs, strict=True):
        for weight, pieces in _label_terms(metric, surrogate, label) if prob else ():
            weights[pieces] = exact(weights[pieces] + prob * weight)
    return [PiecewiseTerm(weight, pieces) for pieces, weight in weights.items()]


@lru_cache(maxsize=2**13)
def _label_terms(metric: Metric, surrogate: Surrogate, label: ExactLabel) -> tuple[PiecewiseTerm, ...]:
    if type(surrogate) is PositionHinge:
        return _position_terms(metric, surrogate, label)
    if type(surrogate) is ListwiseHinge:
        return _order_terms(surrogate, label)
    pairs = label_pairs(metric, surrogate, label)
    return tuple(
        PiecewiseTerm(weight, hinge(label.n_items, i, j, Fraction(1))) for (i, j), weight in pairs.items()
    )


def hinge(n_items: int, i: int, j: int, margin: Fraction) -> Pieces:
    """Return the pieces of max(0, margin - (s_i - s_j))."""
    slope = [Fraction()] * n_items
    slope[i], slope[j] = Fraction(-1), Fraction(1)
    return Piece(Fraction(), (Fraction(),) * n_items), Piece(margin, tuple(slope))


def _position_terms(metric: Metric, surrogate: Any, label: ExactLabel) -> tuple[PiecewiseTerm, ...]:
    """Terms max(0, m/y_i - m/y_j - (s_i - s_j)) for rank labels y_i < y_j, of m levels, 1 the best."""
    grades = surrogate_labels(metric, surrogate, label)
    levels = sorted({fraction(grade) for grade in grades}, reverse=True)  # type: ignore[arg-type]
    ranks = [Fraction(1 + levels.index(grade)) for grade in grades]  # type: ignore[arg-type]
    n, m = label.n_items, len(levels)
    pairs = [(i, j) for i in range(n) for j in range(n) if ranks[i] < ranks[j]]
    counts = {"sum": 1, "pairs": len(pairs), "all_pairs": n * (n - 1) // 2}
    share = Fraction(1, max(counts[surrogate.reduction], 1))
    return tuple(PiecewiseTerm(share, hinge(n, i, j, m / ranks[i] - m / ranks[j])) for i, j in pairs)


def _order_terms(surrogate: Any, label: ExactLabel) -> tuple[PiecewiseTerm, ...]:
    """Terms of orders that invert labels: the loss of the order, less what F falls short of its best value.

    F is 2/(n(n - 1)) times the sum over pairs of different labels of the score above less that below.
    """
    levels, n = _order_levels(surrogate.metric, label), label.n_items
    lean = {order: _net_items_below(order, levels) for order in itertools.permutations(range(n))}
    gold = tuple(sorted(range(n), key=lambda item: -levels[item]))
    wrong = [order for order in lean if any(levels[i] < levels[j] for i, j in itertools.pairwise(order))]
    nothing = Piece(Fraction(), (Fraction(),) * n)
    largest = {nothing.slope: nothing.constant}
    terms, share = [], Fraction(2, max(n * (n - 1), 1))
    for order in wrong:
        slope = tuple(share * (a - b) for a, b in zip(lean[order], lean[gold], strict=True))
        regret = order_loss(surrogate.metric, label, order, gold)
        terms.append(PiecewiseTerm(Fraction(1), (nothing, Piece(regret, slope))))
        other = largest.get(slope, regret)
        largest[slope] = exact(Enclosure(max(low(regret), low(other)), max(high(regret), high(other))))
    if surrogate.mode == "sum":
        return tuple(terms)
    return (PiecewiseTerm(Fraction(1), tuple(Piece(constant, slope) for slope, constant in largest.items())),)


def _order_levels(metric: Any, label: ExactLabel) -> list[Fraction]:
    """Number the labels that the metric distinguishes: by gains, relevance or targets."""
    check_library_metric(metric)
    has_gains = metric.name in ("dcg", "ndcg", "eru", "p")
    item_values = gains(metric, label, BITS) if has_gains else targets(metric, label)
    if metric.name == "ndcg" and metric.convention.short_list == "zero" and label.n_items < (metric.k or 0):
        return [Fraction()] * label.n_items
    ranked = {value: rank for rank, value in enumerate(sorted(set(item_values), key=high))}
    return [Fraction(ranked[value]) for value in item_values]


def _net_items_below(order: Order, levels: Sequence[Fraction]) -> list[int]:
    """Count, by item, the items of other labels below it, less those above it."""
    lean = [0] * len(order)
    for above, below in itertools.combinations(order, 2):
        if levels[above] != levels[below]:
            lean[above], lean[below] = lean[above] + 1, lean[below] - 1
    return lean


def order_loss(metric: Any, label: ExactLabel, order: Order, gold: Order) -> Number:
    """Return the loss of an order, compared with an order that the labels allow."""
    gap = order_value(metric, label, gold) - order_value(metric, label, order)
    return exact(gap if metric.greater_is_better else -gap)


# Multipliers that prove scores to minimise a loss with corners, in exact arithmetic.
#
# The loss is a sum over terms of weight * max over pieces. Scores minimise it if shares >= 0 of the pieces
# that attain each maximum, adding up to 1 in each term, make the weighted slopes cancel.

INSIDE = 1e-7  # shares above this are > 0, others may be 0
DENOMINATORS = (100, 10**4, 10**8)


def is_only_minimiser(terms: Sequence[PiecewiseTerm], scores: Sequence[Number]) -> bool | None:
    """True if scores are proven to be the only minimiser, False if proven a minimiser; None if neither.

    Scores that are enclosed stand for the corner in which the pieces that may attain the maxima meet.
    """
    attained = [PiecewiseTerm(term.weight, _highest_pieces(term, scores)) for term in terms]
    constants = (piece.constant for term in attained for piece in term.pieces)
    enclosed = any(isinstance(number, Enclosure) for number in (*scores, *constants))
    if enclosed and not _is_single_corner(attained, scores):
        return None
    return _check_multipliers(attained, len(scores))


def _highest_pieces(term: PiecewiseTerm, scores: Sequence[Number]) -> tuple[Piece, ...]:
    """Return the pieces that are not proven lower than another; one of each slope."""
    values = [exact(piece.constant + dot(piece.slope, scores)) for piece in term.pieces]
    top = max(map(low, values))
    return tuple({p.slope: p for p, v in zip(term.pieces, values, strict=True) if high(v) >= top}.values())


def _is_single_corner(attained: Sequence[PiecewiseTerm], scores: Sequence[Number]) -> bool:
    """True if these pieces meet in exactly one point, up to a constant, which the scores enclose."""
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


def _check_multipliers(attained: Sequence[PiecewiseTerm], n_items: int) -> bool | None:
    """Find multipliers that make the slopes cancel: True if they leave no other minimiser, None without any.

    The slopes of a term are taken relative to its first. As all slopes sum to 0 over the items, the last
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
    system = _MultiplierSystem(transpose(columns), right, owners, [term.weight for term in attained])
    return system.is_only_solution()


@dataclass(frozen=True)
class _MultiplierSystem:
    """Equations matrix @ m = right, for m >= 0 of which those of a term add up to its weight at most.

    `owners` has the number of the term that each column belongs to.
    """

    matrix: list[list[Fraction]]
    right: list[Number]
    owners: list[int]
    weights: list[Number]

    def is_only_solution(self) -> bool | None:
        """True if a solution lies inside all bounds and columns span everything; None without a solution."""
        multipliers, depth = self.deepest_solution()
        if depth > INSIDE:
            for most in DENOMINATORS:
                start = [Fraction(float(m)).limit_denominator(most) for m in multipliers]
                inside = nearest(self.matrix, self.right, start)
                if inside is not None and self.signs(inside) == {1}:
                    return rank(self.matrix) == len(self.matrix)
        return False if depth > -INSIDE and self.has_vertex_solution() else None

    def signs(self, m: Sequence[Number]) -> set[int | None]:
        """Return the signs of the multipliers, including those of the first pieces."""
        rest = {number: self.weights[number] for number in self.owners}
        for number, multiplier in zip(self.owners, m, strict=True):
            rest[number] = exact(rest[number] - multiplier)
        return {sign(multiplier) for multiplier in (*m, *rest.values())}

    @property
    def floats(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Matrix, right-hand side, weights of the terms with columns, and a mask of their columns."""
        used = sorted(set(self.owners))
        theirs = np.array([[float(owner == number) for owner in self.owners] for number in used])
        right = np.array([float(low(side)) for side in self.right])
        weights = np.array([float(low(self.weights[number])) for number in used])
        return np.array(self.matrix, float), right, weights, theirs

    def deepest_solution(self) -> tuple[FloatArray, float]:
        """Return the solution, in doubles, whose least share is largest, and that share; -1 if none."""
        from scipy.optimize import linprog

        matrix, right, weights, theirs = self.floats
        n = matrix.shape[1]
        # share * weight <= m, and share * weight <= weight - sum of m.
        above = np.vstack([np.c_[-np.eye(n), theirs.T @ weights], np.c_[theirs, weights]])
        limits = np.concatenate([np.zeros(n), weights])
        bounds = [(None, None)] * n + [(-1.0, 1.0)]
        equal = np.c_[matrix, np.zeros(len(matrix))]
        cost = -np.eye(n + 1)[n]
        program: Any = linprog(cost, above, limits, equal, right, bounds, method="highs-ds")
        return (program.x[:n], float(program.x[n])) if program.status == 0 else (np.zeros(n), -1.0)

    def has_vertex_solution(self) -> bool:
        """True if a solution at the bounds is exact: found in doubles, solved for on its support."""
        from scipy.optimize import linprog

        matrix, right, weights, theirs = self.floats
        equal = np.block([[matrix, np.zeros((len(matrix), len(weights)))], [theirs, np.eye(len(weights))]])
        ones = np.ones(equal.shape[1])
        vertex: Any = linprog(ones, A_eq=equal, b_eq=np.concatenate([right, weights]), method="highs-ds")
        if vertex.status != 0:
            return False
        support = np.flatnonzero(vertex.x > INSIDE * weights.max())
        used = sorted(set(self.owners))
        rows = [[Fraction(int(entry)) for entry in row] for row in equal[len(matrix) :]]
        rows = [[*row, *[Fraction()] * len(used)] for row in self.matrix] + rows
        sides = [*self.right, *(self.weights[number] for number in used)]
        exactly = solve([[row[c] for c in support] for row in rows], sides)
        return exactly is not None and all(sign(multiplier) in (0, 1) for multiplier in exactly)


TOLERANCES = (1e-9, 1e-7, 1e-5, 1e-3)  # pieces nearer than this may meet
BOX = 2.0  # scores lie within this many times the largest margin per item
NUDGE = 1e-5  # share of a secondary objective
LOOSE = 1e-9  # a nudged minimiser may lose this much


class _TermRows(NamedTuple):
    """A term in doubles: its weight, constants and slopes of its pieces, and whether 0 is another piece."""

    weight: float
    constants: FloatArray
    slopes: FloatArray
    floor: bool

    @property
    def key(self) -> bytes:
        """Bytes that are equal for equal pieces."""
        return self.constants.tobytes() + self.slopes.tobytes()


def _as_rows(weight: float, pieces: Pieces) -> _TermRows:
    moving = [piece for piece in pieces if any(piece.slope)]
    constants = np.array([float(low(piece.constant)) for piece in moving])
    slopes = np.array([[float(entry) for entry in piece.slope] for piece in moving])
    return _TermRows(weight, constants, slopes, len(moving) < len(pieces))


@lru_cache(maxsize=2**13)
def _label_rows(
    metric: Metric, surrogate: Surrogate, label: ExactLabel
) -> tuple[tuple[bytes, _TermRows], ...]:
    terms = _label_terms(metric, surrogate, label)
    rows = [_as_rows(float(low(term.weight)), term.pieces) for term in terms]
    return tuple((row.key, row) for row in rows if len(row.constants))


def polyhedral_minimiser(
    metric: Metric,
    surrogate: Surrogate,
    labels: Labels,
    probs: Sequence[float | Fraction],
    direction: FloatArray | None = None,
) -> FloatArray | None:
    """Find scores, in doubles, that minimise an expected loss with corners; None for other losses.

    None, too, where the metric has no exact values. Of many minimisers the result is a vertex, lowest along
    `direction` if that is given. The first score is 0, and the others lie in a box
    around it.
    """
    if not is_polyhedral(surrogate):
        return None
    merged: dict[bytes, _TermRows] = {}
    exact_labels = [read(label) for label in labels]
    try:
        tables = [_label_rows(metric, surrogate, label) for label in exact_labels]
    except ParameterError:
        return None
    for table, prob in zip(tables, probs, strict=True):
        for key, row in table:
            weight = merged[key].weight if key in merged else 0.0
            merged[key] = row._replace(weight=weight + float(prob) * row.weight)
    return _minimise_polyhedral(list(merged.values()), exact_labels[0].n_items, direction)


def _minimise_polyhedral(
    rows: Sequence[_TermRows], n_items: int, direction: FloatArray | None = None
) -> FloatArray | None:
    used = [row for row in rows if row.weight > 0.0]
    if not used or n_items < 2:
        return np.zeros(n_items)
    best = _solve_linear_program(used, np.zeros(n_items))
    if direction is None or best is None:
        return best
    weight = sum(row.weight for row in used)
    tilt = np.asarray(direction, dtype=np.float64) / max(float(np.abs(direction).max()), 1e-300)
    moved = _solve_linear_program(used, NUDGE * weight * tilt)
    if moved is None or _piecewise_value(used, moved) > _piecewise_value(used, best) + LOOSE * weight:
        return best
    return moved


def _piecewise_value(rows: Sequence[_TermRows], scores: FloatArray) -> float:
    value = 0.0
    for row in rows:
        lowest = 0.0 if row.floor else -np.inf
        value += row.weight * float((row.constants + row.slopes @ scores).max(initial=lowest))
    return value


def _solve_linear_program(rows: Sequence[_TermRows], tilt: FloatArray) -> FloatArray | None:
    """Solve the linear program with one variable per term, above each of its pieces; None if that fails."""
    from scipy.optimize import linprog

    slopes, constants = (np.concatenate([row[column] for row in rows]) for column in (2, 1))
    tops = np.repeat(np.eye(len(rows)), [len(row.constants) for row in rows], axis=0)
    steps = np.abs(slopes)[slopes != 0.0]
    farthest = BOX * len(tilt) * max(float(np.abs(constants).max()), 1.0) / float(steps.min())
    bounds = [(0.0, 0.0), *[(-farthest, farthest)] * (len(tilt) - 1)]
    bounds += [(0.0 if row.floor else -np.inf, np.inf) for row in rows]
    cost = np.concatenate([tilt, [row.weight for row in rows]])
    solution: Any = linprog(cost, np.hstack([slopes, -tops]), -constants, bounds=bounds, method="highs-ds")
    return None if solution.x is None else np.asarray(solution.x[: len(tilt)], dtype=np.float64)


def corner_candidates(terms: Sequence[PiecewiseTerm], near: FloatArray) -> Iterator[list[Number]]:
    """Yield candidates for exact minimisers near these scores: pieces that nearly meet there do meet."""
    raised = near - near.min()
    tried: list[list[list[Fraction]]] = []
    for tolerance in TOLERANCES:
        matrix, right = _meeting_equations(terms, raised, tolerance * max(1.0, float(raised.max())))
        if matrix in tried:
            continue
        tried.append(matrix)
        fixed = rank(matrix) == len(near) - 1
        for start in nearby_fractions(raised):
            candidate = solve(matrix, right, start) if matrix else list[Number](start)
            if candidate is not None:
                yield candidate
            if fixed or candidate is None:  # whatever the start is
                break


def _meeting_equations(
    terms: Sequence[PiecewiseTerm], scores: FloatArray, tolerance: float
) -> tuple[list[list[Fraction]], list[Number]]:
    """Return the equations that set the pieces within the tolerance of each maximum equal."""
    matrix, right = list[list[Fraction]](), list[Number]()
    for term in terms:
        values = [float(low(level)) + float(np.array(slope, float) @ scores) for level, slope in term.pieces]
        top = max(values) - tolerance
        first, *others = [piece for piece, v in zip(term.pieces, values, strict=True) if v >= top]
        for other in others:
            matrix.append([a - b for a, b in zip(other.slope, first.slope, strict=True)])
            right.append(exact(first.constant - other.constant))
    return matrix, right
