"""Features of a pair of items, made from those of the two; symmetric ones, and antisymmetric ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from concordant.exceptions import ParameterError, RowError, ShapeError
from concordant.supervision.check import check_features
from concordant.types import FloatArray

__all__ = ["TABLES", "Group", "PairFunction", "asked", "check_exchange", "pair_names", "two_of"]

SAME = 1e-9  # of the largest value of a feature: what rounding may make of equal ones

PairFunction: TypeAlias = Callable[[FloatArray, FloatArray], Any]
"""phi(left, right) of the features of two items, row by row: one row of features per pair."""


class Group(NamedTuple):
    """Features of pairs, from the features of their left and right items and the means of their queries.

    Attributes
    ----------
    values
        One row per pair.
    mixed
        Whether there is one for each two features of X (else for each one).
    """

    values: Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
    mixed: bool = False

    def width(self, n_features: int) -> int:
        """Give the number of features of a pair."""
        return n_features * (n_features - 1) // 2 if self.mixed else n_features


def mixed_products(left: FloatArray, right: FloatArray, sign: float) -> FloatArray:
    """Products of two features, one of each item, plus those with the items exchanged, times the sign."""
    a, b = np.triu_indices(left.shape[1], 1)
    products = left[:, a] * right[:, b]
    products += sign * (left[:, b] * right[:, a])
    return products


def two_of(rows: FloatArray) -> FloatArray:
    """Products of two features of one item."""
    a, b = np.triu_indices(rows.shape[1], 1)
    return rows[:, a] * rows[:, b]


def signed_square(left: FloatArray, right: FloatArray) -> FloatArray:
    """Squares of the differences, with their signs."""
    apart = left - right
    return apart * np.abs(apart)


SYMMETRIC = {  # the same for (i, j) and (j, i)
    "sum": Group(lambda left, right, _: left + right),
    "product": Group(lambda left, right, _: left * right),
    "absdiff": Group(lambda left, right, _: np.abs(left - right)),
    "context": Group(lambda left, _, mean: np.broadcast_to(mean, left.shape)),
    "cross": Group(lambda left, right, _: mixed_products(left, right, 1.0), mixed=True),
}
ANTISYMMETRIC = {  # of the other sign for (j, i)
    "difference": Group(lambda left, right, _: left - right),
    "signed_square": Group(lambda left, right, _: signed_square(left, right)),
    "context": Group(lambda left, right, mean: (left - right) * mean),
    "cross": Group(lambda left, right, _: mixed_products(left, right, -1.0), mixed=True),
}
TABLES: Mapping[bool, Mapping[str, Group]] = {True: SYMMETRIC, False: ANTISYMMETRIC}
"""Groups by their names, symmetric or not."""


def pair_names(groups: Mapping[str, Group], names: Sequence[str]) -> list[str]:
    """Give a name to each feature of a pair.

    >>> pair_names({name: TABLES[True][name] for name in ("sum", "cross")}, ["bm25", "age"])
    ['sum(bm25)', 'sum(age)', 'cross(bm25,age)']
    """
    two = [",".join(both) for both in combinations(names, 2)]
    return [f"{name}({of})" for name, group in groups.items() for of in (two if group.mixed else names)]


def asked(
    function: PairFunction, left: FloatArray, right: FloatArray, width: int | None = None
) -> FloatArray:
    """Give what a user's function makes of these items, checked; compressed rows are unpacked."""
    given = function(left, right)
    given = given.toarray() if hasattr(given, "toarray") else given
    try:
        values = np.asarray(check_features(given, "features(left, right)"), dtype=np.float64)
    except RowError as error:
        error.row = None  # it is the number of a pair, not of a row of the data
        raise
    if len(values) != len(left) or (width is not None and values.shape[1] != width):
        columns = "one row" if width is None else f"{width} features"
        raise ShapeError("features(left, right)", values.shape, f"{columns} for each of {len(left)} pairs")
    return values


def check_exchange(function: PairFunction, left: FloatArray, right: FloatArray, *, symmetric: bool) -> int:
    """Refuse a user's function whose features of (right, left) do not follow; give their number."""
    forth = asked(function, left, right)
    back = asked(function, right, left, forth.shape[1])
    apart = np.abs(forth - back if symmetric else forth + back)
    wrong = apart > SAME * np.abs(forth).max(axis=0)
    if wrong.any():
        pair, feature = np.argwhere(wrong)[0]
        seen = f"{forth[pair, feature]:g} and, the items exchanged, {back[pair, feature]:g}"
        rule = "symmetric, phi(a, b) = phi(b, a)" if symmetric else "antisymmetric, phi(a, b) = -phi(b, a)"
        raise ParameterError("features", function, f"{rule}: feature {feature} of a pair is {seen}")
    return int(forth.shape[1])
