"""Linear equations in fractions. Right-hand sides may be enclosed: a solution then is, too.

>>> solve([[Fraction(2), Fraction(1)], [Fraction(1), Fraction(-1)]], [Fraction(3), Fraction(0)])
[Fraction(1, 1), Fraction(1, 1)]
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

from concordant.theory.exact.enclosure import Number, exact, sign, total

__all__ = ["Matrix", "dot", "nearest", "rank", "solve", "transposed"]

Matrix: TypeAlias = Sequence[Sequence[Fraction]]


def dot(row: Sequence[Fraction], vector: Sequence[Number]) -> Number:
    """Sum of products."""
    return total(a * b for a, b in zip(row, vector, strict=True) if a)


def transposed(matrix: Matrix) -> list[list[Fraction]]:
    """Columns as rows."""
    return [list(column) for column in zip(*matrix, strict=True)]


def reduced(matrix: Matrix, right: Sequence[Number]) -> tuple[list[list[Fraction]], list[Number], list[int]]:
    """Give the reduced row echelon form, the right-hand side that goes with it, and the pivot columns."""
    rows, sides, pivots = [list(row) for row in matrix], list(right), list[int]()
    for column in range(len(rows[0]) if rows else 0):
        done = len(pivots)
        found = next((r for r in range(done, len(rows)) if rows[r][column]), None)
        if found is None:
            continue
        rows[done], rows[found], sides[done], sides[found] = (
            rows[found],
            rows[done],
            sides[found],
            sides[done],
        )
        pivot = rows[done][column]
        rows[done], sides[done] = [entry / pivot for entry in rows[done]], sides[done] / pivot
        for r, row in enumerate(rows):
            if r != done and (factor := row[column]):
                rows[r] = [a - factor * b for a, b in zip(row, rows[done], strict=True)]
                sides[r] = sides[r] - factor * sides[done]
        pivots.append(column)
    return rows, [exact(side) for side in sides], pivots


def rank(matrix: Matrix) -> int:
    """Give the number of independent rows."""
    return len(reduced(matrix, [Fraction()] * len(matrix))[2])


def solve(
    matrix: Matrix, right: Sequence[Number], free: Sequence[Fraction] | None = None
) -> list[Number] | None:
    """Give a solution of matrix x = right, or None where none is known to exist.

    Entries that the equations leave open are those of `free` (default 0).
    """
    rows, sides, pivots = reduced(matrix, right)
    if any(sign(side) != 0 for side in sides[len(pivots) :]):
        return None
    n = len(matrix[0])
    x: list[Number] = list(free) if free is not None else [Fraction()] * n
    known = [x[column] if column not in pivots else Fraction() for column in range(n)]
    for row, side, column in zip(rows, sides, pivots, strict=False):
        x[column] = exact(side - dot(row, known))
    return x


def nearest(matrix: Matrix, right: Sequence[Number], start: Sequence[Fraction]) -> list[Number] | None:
    """Give the solution of matrix x = right that is nearest to `start`, or None where none is known to exist.

    >>> nearest([[Fraction(1), Fraction(1)]], [Fraction(1)], [Fraction(0), Fraction(0)])
    [Fraction(1, 2), Fraction(1, 2)]
    """
    missing = [exact(side - dot(row, start)) for row, side in zip(matrix, right, strict=True)]
    gram = [
        [sum((a * b for a, b in zip(one, two, strict=True)), Fraction()) for two in matrix] for one in matrix
    ]
    steps = solve(gram, missing)
    if steps is None:
        return None
    moves = (dot(column, steps) for column in transposed(matrix))
    return [exact(move + value) for move, value in zip(moves, start, strict=True)]
