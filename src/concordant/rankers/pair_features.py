"""Features of a pair of items: groups by name, or a function of two items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from concordant.data.check import check_features
from concordant.exceptions import ParameterError, RowError, ShapeError, UnknownNameError
from concordant.types import FloatArray

# Features of a pair of items, computed from the features of both; symmetric and antisymmetric.

SAME = 1e-9  # relative to the largest value of a feature: rounding error of equal values

PairFunction: TypeAlias = Callable[[FloatArray, FloatArray], Any]
"""phi(left, right) of the features of two items, row by row: one row of features per pair."""


class PairFeatures(NamedTuple):
    """Features of pairs, from the features of their left and right items and the means of their queries."""

    values: Callable[[FloatArray, FloatArray, FloatArray], FloatArray]  # one row per pair
    mixed: bool = False  # True if there is a feature for each two features of X, else for each feature

    def width(self, n_features: int) -> int:
        """Return the number of features of a pair."""
        return n_features * (n_features - 1) // 2 if self.mixed else n_features


def _mixed_products(left: FloatArray, right: FloatArray, sign: float) -> FloatArray:
    """Multiply each two features, one of each item, and add the exchanged product, times the sign."""
    a, b = np.triu_indices(left.shape[1], 1)
    products = left[:, a] * right[:, b]
    products += sign * (left[:, b] * right[:, a])
    return products


def item_products(rows: FloatArray) -> FloatArray:
    """Products of two features of an item."""
    a, b = np.triu_indices(rows.shape[1], 1)
    return rows[:, a] * rows[:, b]


def signed_square(left: FloatArray, right: FloatArray) -> FloatArray:
    """Squares of the differences, with their signs."""
    apart = left - right
    return apart * np.abs(apart)


SYMMETRIC = {  # the same for (i, j) and (j, i)
    "sum": PairFeatures(lambda left, right, _: left + right),
    "product": PairFeatures(lambda left, right, _: left * right),
    "absdiff": PairFeatures(lambda left, right, _: np.abs(left - right)),
    "context": PairFeatures(lambda left, _, mean: np.broadcast_to(mean, left.shape)),
    "cross": PairFeatures(lambda left, right, _: _mixed_products(left, right, 1.0), mixed=True),
}
ANTISYMMETRIC = {  # of the other sign for (j, i)
    "difference": PairFeatures(lambda left, right, _: left - right),
    "signed_square": PairFeatures(lambda left, right, _: signed_square(left, right)),
    "context": PairFeatures(lambda left, right, mean: (left - right) * mean),
    "cross": PairFeatures(lambda left, right, _: _mixed_products(left, right, -1.0), mixed=True),
}
TABLES: Mapping[bool, Mapping[str, PairFeatures]] = {True: SYMMETRIC, False: ANTISYMMETRIC}
"""Groups by their names, symmetric or not."""


def pair_names(groups: Mapping[str, PairFeatures], names: Sequence[str]) -> list[str]:
    """Name each feature of a pair.

    >>> pair_names({name: TABLES[True][name] for name in ("sum", "cross")}, ["bm25", "age"])
    ['sum(bm25)', 'sum(age)', 'cross(bm25,age)']
    """
    mixed_names = [",".join(combination) for combination in combinations(names, 2)]
    return [
        f"{name}({feature_name})"
        for name, group in groups.items()
        for feature_name in (mixed_names if group.mixed else names)
    ]


def call_pair_function(
    function: PairFunction, left: FloatArray, right: FloatArray, width: int | None = None
) -> FloatArray:
    """Call a user's function on these items, and check the result; compressed rows are unpacked."""
    features = function(left, right)
    features = features.toarray() if hasattr(features, "toarray") else features
    try:
        values = np.asarray(check_features(features, "features(left, right)"), dtype=np.float64)
    except RowError as error:
        error.row = None  # it is the number of a pair, not of a row of the data
        raise
    if len(values) != len(left) or (width is not None and values.shape[1] != width):
        columns = "one row" if width is None else f"{width} features"
        raise ShapeError("features(left, right)", values.shape, f"{columns} for each of {len(left)} pairs")
    return values


def check_exchange(function: PairFunction, left: FloatArray, right: FloatArray, *, symmetric: bool) -> int:
    """Raise if a user's features of (right, left) contradict those of (left, right); return their number."""
    forth = call_pair_function(function, left, right)
    back = call_pair_function(function, right, left, forth.shape[1])
    apart = np.abs(forth - back if symmetric else forth + back)
    wrong = apart > SAME * np.abs(forth).max(axis=0)
    if wrong.any():
        pair, feature = np.argwhere(wrong)[0]
        mismatch = f"{forth[pair, feature]:g} for (a, b) and {back[pair, feature]:g} for (b, a)"
        rule = "symmetric, phi(a, b) = phi(b, a)" if symmetric else "antisymmetric, phi(a, b) = -phi(b, a)"
        hint = f"Feature {feature} of a pair is {mismatch}."
        raise ParameterError("features", function, rule, hint=hint)
    return int(forth.shape[1])


# Groups of pair features of a pair ranker: by name, or a function of two items.

AUTO: Mapping[str, tuple[str, ...]] = {
    "ap": ("sum", "product", "absdiff"),
    "pd": ("difference", "signed_square", "context"),
}
Groups: TypeAlias = tuple[str, ...] | PairFunction
"""Names of groups of the table, or a user's function."""


def check_groups(features: Any, metric: str) -> Groups:
    """Check the groups of pair features: names, or a user's function.

    >>> check_groups(("auto", "cross"), "ap")
    ('sum', 'product', 'absdiff', 'cross')
    """
    if callable(features):
        function: PairFunction = features
        return function
    names = (features,) if isinstance(features, str) else features
    if not isinstance(names, (tuple, list)) or not names:
        raise ParameterError("features", features, "'auto', a tuple of names or a function of two items")
    table = TABLES[metric == "ap"]
    for name in names:
        if not isinstance(name, str) or name not in ("auto", *table):
            raise UnknownNameError(f"group of pair features of {metric}", name, ["auto", *table])
    groups = tuple(group for name in names for group in (AUTO[metric] if name == "auto" else (name,)))
    if len(set(groups)) < len(groups):
        raise ParameterError("features", features, "a tuple of different names")
    return groups
