"""Features as boosters read them: a matrix of numbers, categories as codes, missing values as NaN."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.utils.validation import check_array

from concordant.exceptions import LabelError, ParameterError, UnknownNameError
from concordant.types import FloatArray

__all__ = ["Encoding", "categorical_numbers", "monotonic_signs"]


@dataclass(frozen=True, eq=False)
class Encoding:
    """Categories of some features; each is replaced by its number.

    Attributes
    ----------
    categories
        Feature number -> its categories, in order.

    Examples
    --------
    >>> table = np.array([["red", 1.0], ["blue", 2.0], [None, 3.0]], dtype=object)
    >>> Encoding.of(table, (0,)).numbers(table).tolist()
    [[1.0, 1.0], [0.0, 2.0], [nan, 3.0]]
    """

    categories: Mapping[int, list[Any]]

    @classmethod
    def of(cls, X: Any, categorical: tuple[int, ...]) -> Encoding:
        """Find the categories of the features of these numbers."""
        return cls({number: categories(column(X, number)) for number in categorical})

    def numbers(self, X: Any) -> FloatArray:
        """Give all features as numbers; unknown and missing categories are NaN."""
        rest = [number for number in range(X.shape[1]) if number not in self.categories]
        matrix = np.empty(X.shape)
        if rest:
            matrix[:, rest] = check_array(part(X, rest), dtype=np.float64, ensure_all_finite="allow-nan")
        for number, known in self.categories.items():
            codes, values = {value: float(code) for code, value in enumerate(known)}, column(X, number)
            matrix[:, number] = [codes.get(value, np.nan) for value in values]
            if known and np.isnan(matrix[:, number]).all() and (seen := categories(values)):
                text = f"no category of feature {number} was seen by fit: {seen[0]!r}, say, is not one of "
                text += f"{known[:3]}, of type {type(known[0]).__name__}; all of them count as missing"
                warnings.warn(text, UserWarning, stacklevel=4)
        return matrix


def categories(values: list[Any]) -> list[Any]:
    """Give the different values, missing ones left out, in order; text after numbers.

    >>> categories(["b", None, "a", float("nan"), "b"])
    ['a', 'b']
    """
    try:
        different = {value for value in values if not missing(value)}
        return sorted(different, key=lambda one: (isinstance(one, str), one))
    except (TypeError, ValueError) as error:
        hint = "write them as text, or as numbers."
        raise LabelError(f"categories of a feature cannot be compared ({error})", hint) from error


def missing(value: Any) -> bool:
    """Tell None, NaN and the like."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)  # noqa: PLR0124


def framed(X: Any) -> nw.DataFrame[Any] | None:
    """Give a frame of any library in one form; None for arrays."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def column(X: Any, number: int) -> list[Any]:
    """Give one feature as a list."""
    frame = framed(X)
    return list(np.asarray(X)[:, number].tolist() if frame is None else frame[:, number].to_list())


def part(X: Any, numbers: list[int]) -> Any:
    """Give some features."""
    frame = framed(X)
    return np.asarray(X)[:, numbers] if frame is None else frame[:, numbers].to_native()


def categorical_numbers(given: Any, X: Any) -> tuple[int, ...]:
    """Give the numbers of the categorical features: by dtype, by name or by number."""
    frame = framed(X)
    if (isinstance(given, str) and given != "from_dtype") or not (given is None or hasattr(given, "__len__")):
        wanted = "'from_dtype', None, or a list of names or numbers of features"
        raise ParameterError("categorical_features", given, wanted)
    if frame is None and (given is None or isinstance(given, str)):
        return ()
    if given is None or isinstance(given, str):
        found = typed(frame, nw.Categorical, nw.Enum) if given else ()
    else:
        names = [] if frame is None else frame.columns
        found = tuple(sorted({number_of(one, names, X.shape[1]) for one in listed(given, X.shape[1])}))
    if found and hasattr(X, "tocsr"):
        raise ParameterError("categorical_features", given, "None for sparse features, which are numbers")
    if frame is not None and (text := set(typed(frame, nw.String)) - set(found)):
        name = frame.columns[min(text)]
        wanted = f"a list that names {name!r}, which is text; or give that column the type of a category"
        raise ParameterError("categorical_features", given, wanted)
    return found


def listed(given: Any, n_features: int) -> list[Any]:
    """Give names and numbers as they are, or those that a mask of the features marks."""
    if not isinstance(given, Iterable):
        raise ParameterError("categorical_features", given, "a list of names or numbers, a mask, or None")
    chosen = list(given)
    if not chosen or not all(isinstance(one, (bool, np.bool_)) for one in chosen):
        return chosen
    if len(chosen) != n_features:
        wanted = f"one truth value for each of the {n_features} features, if it is a mask"
        raise ParameterError("categorical_features", given, wanted)
    return np.flatnonzero(chosen).tolist()


def typed(frame: Any, *kinds: Any) -> tuple[int, ...]:
    """Give the numbers of the columns of these types."""
    return tuple(number for number, kind in enumerate(frame.schema.values()) if isinstance(kind, kinds))


def number_of(one: Any, names: list[str], n_features: int) -> int:
    """Give the number of a feature by its name or number."""
    if isinstance(one, str):
        if one not in names:
            raise UnknownNameError("feature", one, names)
        return names.index(one)
    if not isinstance(one, Integral) or isinstance(one, (bool, np.bool_)) or not 0 <= int(one) < n_features:
        raise ParameterError(
            "categorical_features", one, f"names, or whole numbers from 0 to {n_features - 1}"
        )
    return int(one)


def monotonic_signs(given: Any, names: list[str], n_features: int) -> tuple[int, ...]:
    """Give -1, 0 or 1 for each feature, from a list or by name; empty without constraints.

    >>> monotonic_signs({"b": -1}, ["a", "b"], 2)
    (0, -1)
    """
    if given is None:
        return ()
    signs = [0] * n_features
    if isinstance(given, Mapping):
        for name, sign in given.items():
            if not names:
                wanted = "a list: a dict goes by name, and the features of fit had none"
                raise ParameterError("monotonic_cst", given, wanted)
            signs[number_of(str(name), names, n_features)] = sign
    else:
        signs = list(given) if hasattr(given, "__len__") and not isinstance(given, str) else []
    if len(signs) != n_features or any(sign not in (-1, 0, 1) for sign in signs):
        wanted = f"-1, 0 or 1 for each of the {n_features} features, or a dict of them by name"
        raise ParameterError("monotonic_cst", given, wanted)
    return tuple(map(int, signs))
