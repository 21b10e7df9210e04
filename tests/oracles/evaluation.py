"""Comparisons of rankers on the same queries: definitions, typed naively."""

import itertools
import math
from fractions import Fraction


def paired_t(differences):
    """Size of the paired t of known differences; infinite where they are equal and not 0."""
    values = [Fraction(difference) for difference in differences if difference is not None]
    if len(values) < 2 or not any(values):
        return 0.0
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return math.sqrt(mean**2 / (variance / len(values))) if variance else math.inf


def largest_t(columns):
    """Step-down p-values of the largest t, over every way to flip whole rows; None where undefined."""
    observed = [paired_t(column) for column in columns]
    order = sorted(range(len(columns)), key=lambda i: -observed[i])
    flipped = [
        [
            paired_t(
                [None if value is None else sign * value for sign, value in zip(signs, column, strict=True)]
            )
            for column in columns
        ]
        for signs in itertools.product((-1, 1), repeat=len(columns[0]))
    ]
    adjusted, before = [1.0] * len(columns), 0.0
    for rank, i in enumerate(order):
        rest = order[rank:]
        hits = sum(max(row[j] for j in rest) >= observed[i] * (1 - 1e-9) for row in flipped)
        before = max(before, hits / len(flipped))
        adjusted[i] = before if observed[i] else 1.0
    return adjusted


def symmetric_percentile_t(values, resamples, confidence):
    """Ends of the interval of a mean, from resamples that are given as lists of places."""
    n, mean = len(values), math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    sizes = []
    for places in resamples:
        drawn = [values[i] for i in places]
        centre = math.fsum(drawn) / n
        error = math.sqrt(math.fsum((value - centre) ** 2 for value in drawn) / (n - 1) / n)
        flat = max(drawn) == min(drawn)
        sizes.append((math.inf if centre != mean else 0.0) if flat else abs(centre - mean) / error)
    size = sorted(sizes)[math.ceil(confidence * (len(sizes) + 1)) - 1]
    return mean - size * spread / math.sqrt(n), mean + size * spread / math.sqrt(n)
