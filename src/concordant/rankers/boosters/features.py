"""Features as boosters read them: a numeric matrix with categories as codes and missing values as NaN."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from concordant._base.light_sklearn import check_array
from concordant._base.validate import is_whole
from concordant._base.warn import warn_caller
from concordant.exceptions import LabelError, ParameterError, UnknownNameError
from concordant.types import FloatArray


@dataclass(frozen=True, eq=False)
class Encoding:
    """Categories of some features, each replaced by its code.

    Attributes
    ----------
    categories
        Feature number -> its categories, in the order of their codes.

    Examples
    --------
    >>> table = np.array([["red", 1.0], ["blue", 2.0], [None, 3.0]], dtype=object)
    >>> Encoding.from_features(table, (0,)).numbers(table).tolist()
    [[1.0, 1.0], [0.0, 2.0], [nan, 3.0]]
    """

    categories: Mapping[int, list[Any]]

    @classmethod
    def from_features(cls, X: Any, categorical: tuple[int, ...]) -> Encoding:
        """Collect the categories of the numbered features."""
        return cls({number: _sorted_categories(column(X, number)) for number in categorical})

    def numbers(self, X: Any) -> FloatArray:
        """Return all features as numbers; unknown and missing categories are NaN."""
        numeric = [number for number in range(X.shape[1]) if number not in self.categories]
        matrix = np.empty(X.shape)
        if numeric:
            columns = _select_columns(X, numeric)
            matrix[:, numeric] = check_array(columns, dtype=np.float64, ensure_all_finite=False)
        for number, levels in self.categories.items():
            codes = {value: float(code) for code, value in enumerate(levels)}
            values = column(X, number)
            matrix[:, number] = [codes.get(value, np.nan) for value in values]
            if levels and np.isnan(matrix[:, number]).all() and (unknown := _sorted_categories(values)):
                example = f"{unknown[0]!r} is not in {levels[:3]} (type {type(levels[0]).__name__})"
                warn_caller(f"fit saw no value of feature {number}, so all count as missing: {example}.")
        return matrix


def _sorted_categories(values: list[Any]) -> list[Any]:
    """Return the distinct values without missing ones, sorted; text after numbers.

    >>> _sorted_categories(["b", None, "a", float("nan"), "b"])
    ['a', 'b']
    """
    try:
        distinct = {value for value in values if not _is_missing(value)}
        return sorted(distinct, key=lambda category: (isinstance(category, str), category))
    except (TypeError, ValueError) as error:
        hint = "write them as text, or as numbers."
        raise LabelError(f"categories of a feature cannot be compared ({error})", hint) from error


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)  # noqa: PLR0124


def _as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """Wrap a frame of any library in narwhals; None for arrays."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def column(X: Any, number: int) -> list[Any]:
    """Return a feature as a list."""
    frame = _as_frame(X)
    return list(np.asarray(X)[:, number].tolist() if frame is None else frame[:, number].to_list())


def _select_columns(X: Any, numbers: list[int]) -> Any:
    frame = _as_frame(X)
    return np.asarray(X)[:, numbers] if frame is None else frame[:, numbers].to_native()


def categorical_numbers(user_features: Any, X: Any) -> tuple[int, ...]:
    """Return the numbers of the categorical features: by dtype, by name or by number."""
    frame = _as_frame(X)
    if (isinstance(user_features, str) and user_features != "from_dtype") or not (
        user_features is None or hasattr(user_features, "__len__")
    ):
        allowed = "'from_dtype', None or a list of feature names or numbers"
        raise ParameterError("categorical_features", user_features, allowed)
    if frame is None and (user_features is None or isinstance(user_features, str)):
        return ()
    if user_features is None or isinstance(user_features, str):
        numbers = _columns_of_type(frame, nw.Categorical, nw.Enum) if user_features else ()
    else:
        names = [] if frame is None else frame.columns
        features = _expand_mask(user_features, X.shape[1])
        numbers = tuple(sorted({_feature_number(feature, names, X.shape[1]) for feature in features}))
    if numbers and hasattr(X, "tocsr"):
        allowed = "None for sparse features"
        raise ParameterError("categorical_features", user_features, allowed)
    if frame is not None and (text := set(_columns_of_type(frame, nw.String)) - set(numbers)):
        name = frame.columns[min(text)]
        raise ParameterError.because(
            f"Column {name!r} is text and not in categorical_features. List it there, or convert the column "
            "to a categorical type."
        )
    return numbers


def _expand_mask(user_features: Any, n_features: int) -> list[Any]:
    """Return names and numbers as they are, or the numbers that a mask selects."""
    if not isinstance(user_features, Iterable):
        allowed = "a list of feature names or numbers, a mask or None"
        raise ParameterError("categorical_features", user_features, allowed)
    features = list(user_features)
    if not features or not all(isinstance(feature, (bool, np.bool_)) for feature in features):
        return features
    if len(features) != n_features:
        allowed = f"a mask with one boolean for each of the {n_features} features"
        raise ParameterError("categorical_features", user_features, allowed)
    return np.flatnonzero(features).tolist()


def _columns_of_type(frame: Any, *kinds: Any) -> tuple[int, ...]:
    return tuple(number for number, kind in enumerate(frame.schema.values()) if isinstance(kind, kinds))


def _feature_number(feature: Any, names: list[str], n_features: int) -> int:
    if isinstance(feature, str):
        if feature not in names:
            raise UnknownNameError("feature", feature, names)
        return names.index(feature)
    if not is_whole(feature, 0, n_features - 1):
        allowed = f"feature names or integers from 0 to {n_features - 1}"
        raise ParameterError("categorical_features", feature, allowed)
    return int(feature)


def monotonic_signs(constraints: Any, names: list[str], n_features: int) -> tuple[int, ...]:
    """Return -1, 0 or 1 per feature, from a list or a dict by name; empty without constraints.

    >>> monotonic_signs({"b": -1}, ["a", "b"], 2)
    (0, -1)
    """
    if constraints is None:
        return ()
    signs = [0] * n_features
    if isinstance(constraints, Mapping):
        for name, sign in constraints.items():
            if not names:
                raise ParameterError(
                    "monotonic_cst",
                    constraints,
                    "a list with one entry per feature, as X has no feature names",
                )
            signs[_feature_number(str(name), names, n_features)] = sign
    else:
        is_list = hasattr(constraints, "__len__") and not isinstance(constraints, str)
        signs = list(constraints) if is_list else []
    if len(signs) != n_features or any(sign not in (-1, 0, 1) for sign in signs):
        allowed = f"-1, 0 or 1 for each of the {n_features} features, or a dict of these by feature name"
        raise ParameterError("monotonic_cst", constraints, allowed)
    return tuple(map(int, signs))
