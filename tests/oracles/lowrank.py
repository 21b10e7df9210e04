"""Loss matrices and low-rank surrogates: definitions, typed naively."""

import itertools
import math
from fractions import Fraction

import numpy as np


def order_losses(value_of_order, labels, n_items, *, gain=True):
    """Row by row what every order loses: gains are subtracted from 1, or from the largest if that is more."""
    orders = list(itertools.permutations(range(n_items)))
    values = [[value_of_order(label, list(order)) or 0.0 for order in orders] for label in labels]
    top = max(1.0, *(max(row) for row in values))
    return np.array([[top - value if gain else value for value in row] for row in values])


def exact_rank(matrix):
    """Rank of a matrix of whole numbers or fractions, by elimination without rounding."""
    rows = [[Fraction(entry) for entry in row] for row in matrix]
    rank = 0
    for column in range(len(rows[0])):
        pivot = next((r for r in range(rank, len(rows)) if rows[r][column] != 0), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for r in range(rank + 1, len(rows)):
            factor = rows[r][column] / rows[rank][column]
            rows[r] = [a - factor * b for a, b in zip(rows[r], rows[rank], strict=True)]
        rank += 1
    return rank


def doubly_centred(matrix):
    """Fractions less the mean of each row and each column, plus the mean of all."""
    rows = [[Fraction(entry) for entry in row] for row in matrix]
    n, k = len(rows), len(rows[0])
    row_means = [sum(row) / k for row in rows]
    column_means = [sum(row[t] for row in rows) / n for t in range(k)]
    mean = sum(row_means) / n
    return [[rows[y][t] - row_means[y] - column_means[t] + mean for t in range(k)] for y in range(n)]


def decision_regret(losses, probs, decision):
    """Expected loss of a decision beyond that of the best one, for one distribution of the labels."""
    expected = [
        math.fsum(p * row[t] for p, row in zip(probs, losses, strict=True)) for t in range(len(losses[0]))
    ]
    return expected[decision] - min(expected)
