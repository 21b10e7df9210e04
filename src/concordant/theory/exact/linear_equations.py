"""Linear equations in fractions. Right-hand sides may be enclosed: a solution then is, too.

>>> solve([[Fraction(2), Fraction(1)], [Fraction(1), Fraction(-1)]], [Fraction(3), Fraction(0)])
[Fraction(1, 1), Fraction(1, 1)]
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from operator import mul
from typing import TypeAlias

from concordant.theory.exact.enclosure import Number, exact, sign, total

Matrix: TypeAlias = Sequence[Sequence[Fraction]]


def dot(row: Sequence[Fraction], vector: Sequence[Number]) -> Number:
    """Return the sum of products."""
    return total(a * b for a, b in zip(row, vector, strict=True) if a)


def transpose(matrix: Matrix) -> list[list[Fraction]]:
    """Return the columns as rows."""
    return [list(column) for column in zip(*matrix, strict=True)]


def _row_echelon(
    matrix: Matrix, right: Sequence[Number]
) -> tuple[list[list[Fraction]], list[Number], list[int]]:
    """Return the reduced row echelon form, its right-hand side, and the pivot columns."""
    rows, sides, pivots = [list(row) for row in matrix], list(right), list[int]()
    for column in range(len(rows[0]) if rows else 0):
        done = len(pivots)
        pivot_row = next((r for r in range(done, len(rows)) if rows[r][column]), None)
        if pivot_row is None:
            continue
        rows[done], rows[pivot_row] = rows[pivot_row], rows[done]
        sides[done], sides[pivot_row] = sides[pivot_row], sides[done]
        pivot = rows[done][column]
        rows[done], sides[done] = [entry / pivot for entry in rows[done]], sides[done] / pivot
        for r, row in enumerate(rows):
            if r != done and (factor := row[column]):
                rows[r] = [a - factor * b for a, b in zip(row, rows[done], strict=True)]
                sides[r] = sides[r] - factor * sides[done]
        pivots.append(column)
    return rows, [exact(side) for side in sides], pivots


def rank(matrix: Matrix) -> int:
    """Return the number of independent rows."""
    return len(_row_echelon(matrix, [Fraction()] * len(matrix))[2])


def solve(
    matrix: Matrix, right: Sequence[Number], free: Sequence[Fraction] | None = None
) -> list[Number] | None:
    """Solve matrix x = right; None where no solution is known to exist.

    Entries that the equations leave open are those of `free` (default 0).
    """
    rows, sides, pivots = _row_echelon(matrix, right)
    if any(sign(side) != 0 for side in sides[len(pivots) :]):
        return None
    n = len(matrix[0])
    x: list[Number] = list(free) if free is not None else [Fraction()] * n
    open_entries = [x[column] if column not in pivots else Fraction() for column in range(n)]
    for row, side, column in zip(rows, sides, pivots, strict=False):
        x[column] = exact(side - dot(row, open_entries))
    return x


def nearest(matrix: Matrix, right: Sequence[Number], start: Sequence[Fraction]) -> list[Number] | None:
    """Solve matrix x = right for the x nearest to `start`; None where no solution is known to exist.

    >>> nearest([[Fraction(1), Fraction(1)]], [Fraction(1)], [Fraction(0), Fraction(0)])
    [Fraction(1, 2), Fraction(1, 2)]
    """
    missing = [exact(side - dot(row, start)) for row, side in zip(matrix, right, strict=True)]
    gram = [[sum(map(mul, first, second), Fraction()) for second in matrix] for first in matrix]
    steps = solve(gram, missing)
    if steps is None:
        return None
    moves = (dot(column, steps) for column in transpose(matrix))
    return [exact(move + value) for move, value in zip(moves, start, strict=True)]
