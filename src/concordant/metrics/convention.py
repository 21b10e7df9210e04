"""Convention: everything that two tools may define differently under the same metric name."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant._base.validate import as_double, list_words
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.types import FloatArray

# Kinds of gain: integers, since kernels read them; not in the kernels' module, whose import loads numba.

LINEAR = 0  # the grade itself
EXP2 = 1  # 2^grade - 1
BINARY = 2  # 1 if the grade is at least the parameter, else 0
ABOVE = 3  # distance of the grade above the parameter, or 0


def gains(kind: int, parameter: float, grades: FloatArray) -> FloatArray:
    """Gain of each grade, in plain numpy, since targets are also computed where numba is not installed.

    >>> gains(EXP2, 0.0, np.array([0.0, 1.0, 2.0])).tolist()
    [0.0, 1.0, 3.0]
    """
    if kind == BINARY:
        return (grades >= parameter).astype(np.float64)
    if kind == ABOVE:
        return np.maximum(grades - parameter, 0.0)
    return np.exp2(grades) - 1.0 if kind == EXP2 else grades.copy()  # a copy, not the labels themselves


ALLOWED: Mapping[str, tuple[str, ...]] = {
    "gain": ("exp2", "linear"),
    "discount": ("log2", "mslr"),
    "ties": ("expected", "input", "worst", "best", "id_descending", "random"),
    "empty": ("skip", "nan"),
    "empty_ap": ("skip", "nan"),
    "ap_denominator": ("relevant", "min", "found", "uncut"),
    "precision_denominator": ("k", "min"),
    "max_grade": ("data", "probability"),
    "short_list": ("all", "zero"),
}
NUMERIC = ("empty", "empty_ap", "max_grade", "relevant_from")  # fields that may also be a number
FUNCTIONS = ("gain", "discount")  # fields that may also be a function


@dataclass(frozen=True, kw_only=True)
class Convention:
    """Definitions that the name of a metric leaves open.

    Parameters
    ----------
    gain
        `"exp2"` (2^y - 1), `"linear"` (y), or a function of the array of grades.
    discount
        `"log2"` (1/log2(1 + position)), `"mslr"` (1, 1, then 1/log2(position)), or a function of the array of
        positions 1, 2, ... that does not rise (another base or shape).
    ties
        Value under tied scores: `"expected"` over all orders (closed form), or the order of `"input"` rows,
        `"worst"` or `"best"` (by grade), `"id_descending"` (by docid, else by row), `"random"` (by `seed`).
    empty_ap
        Value of AP on a query without a relevant item, if it differs from `empty`; None: as `empty`.
    empty
        Query without a relevant item: `"skip"` (and count it), `"nan"`, or the number that stands for 0/0 in
        NDCG, AP and AUC. Metrics that are defined there (DCG, P, RR, ERR, ERU: 0) keep their 0.
    ap_denominator
        AP@k divides by the number of relevant items (`"relevant"`), by min(relevant, k) (`"min"`), by those
        found in the first k (`"found"`), or ignores k altogether (`"uncut"`).
    precision_denominator
        P@k divides by k (`"k"`) or by min(k, n) (`"min"`).
    relevant_from
        Lowest grade that counts as relevant, where a metric is binary.
    max_grade
        ERR stops at grade y with probability (2^y - 1)/2^max_grade; `"data"` takes the highest grade seen,
        `"probability"` takes the grade itself as the probability.
    short_list
        NDCG@k of a list shorter than k: `"all"` uses what is there, `"zero"` gives 0.
    seed
        For random ties.

    Examples
    --------
    >>> Convention(gain="linear")
    Convention('concordant,gain=linear')
    >>> convention("lightgbm").empty
    1.0
    """

    gain: str | Callable[[Any], Any] = "exp2"
    discount: str | Callable[[Any], Any] = "log2"
    ties: str = "expected"
    empty_ap: str | float | None = None
    empty: str | float = "skip"
    ap_denominator: str = "relevant"
    precision_denominator: str = "k"
    relevant_from: float = 1.0
    max_grade: str | float = 4.0
    short_list: str = "all"
    seed: int = 0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, _check_field(field.name, getattr(self, field.name)))

    def replace(self, **changes: Any) -> Convention:
        """Return the convention with these fields changed."""
        unknown = set(changes) - set(FIELDS)
        if unknown:
            raise UnknownNameError("convention field", min(unknown), FIELDS)
        return dataclasses.replace(self, **changes)

    def differences(self, other: Convention) -> dict[str, Any]:
        """Fields of `other` that differ from this convention, with the other's value."""
        mine, theirs = vars(self), vars(other)
        return {name: theirs[name] for name in FIELDS if mine[name] != theirs[name]}

    def __str__(self) -> str:
        # The nearest preset and the fields that differ from it: short, and read back by `convention`.
        name, base = min(PRESETS.items(), key=lambda item: len(item[1].differences(self)))
        changes = base.differences(self)
        return ",".join([name, *(f"{field}={format_field(value)}" for field, value in changes.items())])

    def __repr__(self) -> str:
        return f"Convention({str(self)!r})"


def _check_field(field: str, value: Any) -> Any:
    """Check and convert the value of a field, numbers to float."""
    words = ALLOWED.get(field, ())
    if isinstance(value, str) and value in words:
        return value
    if (field in FUNCTIONS and callable(value)) or (field == "empty_ap" and value is None):
        return value
    if field == "seed" and isinstance(value, numbers.Integral) and int(value) >= 0:
        return int(value)
    if field in NUMERIC and math.isfinite(as_double(value)):
        return float(value)
    options = [repr(word) for word in words] + ["a finite number"] * (field in NUMERIC)
    options += ["a function"] * (field in FUNCTIONS) + ["an integer >= 0"] * (field == "seed")
    raise ParameterError(field, value, list_words(options))


def format_field(value: object) -> str:
    """Format a field's value: whole numbers without .0, functions by name (not to be read back)."""
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() else repr(value)
    return value if isinstance(value, str) else getattr(value, "__name__", repr(value))


FIELDS = tuple(field.name for field in dataclasses.fields(Convention))
ABOVE_HALF = float(np.nextafter(0.5, 1))  # "grade > 0.5", written as "grade >= the next double"
ABOVE_ZERO = float(np.nextafter(0, 1))

PRESETS: Mapping[str, Convention] = {
    "concordant": Convention(),
    "lightgbm": Convention(ties="input", empty=1.0, ap_denominator="min", relevant_from=ABOVE_HALF),
    "xgboost": Convention(ties="input", empty=1.0, ap_denominator="min", precision_denominator="min"),
    "catboost": Convention(
        gain="linear",
        ties="worst",
        empty=1.0,
        empty_ap=0.0,
        ap_denominator="min",
        precision_denominator="min",
        relevant_from=ABOVE_HALF,
        max_grade="probability",
    ),
    "sklearn": Convention(gain="linear", empty=0.0),
    "trec_eval": Convention(gain="linear", ties="id_descending", empty=0.0),
    "ranx": Convention(gain="linear", ties="input", empty=0.0),
    "rax": Convention(ties="input", empty=0.0, precision_denominator="min"),
    "ranklib": Convention(
        ties="input",
        empty=0.0,
        ap_denominator="uncut",
        precision_denominator="min",
        relevant_from=ABOVE_ZERO,
    ),
    "mslr": Convention(
        discount="mslr",
        ties="input",
        empty=0.0,
        ap_denominator="found",
        relevant_from=2.0,
        short_list="zero",
    ),
}
"""What each tool does; docs/metrics.md says which were compared with the real tool, and which not."""


def convention(spec: str | Convention) -> Convention:
    """Read a convention: a preset, changed fields, or both.

    >>> convention("lightgbm,empty=0") == PRESETS["lightgbm"].replace(empty=0.0)
    True
    >>> convention("gain=linear").gain
    'linear'
    """
    if isinstance(spec, Convention):
        return spec
    words = [word.strip() for word in str(spec).split(",") if word.strip()]
    base = PRESETS["concordant"]
    if words and "=" not in words[0]:
        if words[0] not in PRESETS:
            raise UnknownNameError("convention", words[0], PRESETS)
        base = PRESETS[words.pop(0)]
    pairs = [(name.strip(), text.strip()) for name, _, text in (word.partition("=") for word in words)]
    if len(dict(pairs)) < len(pairs):
        raise ParameterError("convention", spec, "written with each field at most once")
    return base.replace(**{name: _read_value(name, text) for name, text in pairs})


def _read_value(field: str, text: str) -> str | float | int | None:
    """Convert the text of a field: to a number if the field accepts one, else unchanged."""
    if text.lower() == "none":
        return None
    if field not in (*NUMERIC, "seed") or text in ALLOWED.get(field, ()):
        return text
    try:
        return int(text) if field == "seed" else float(text)
    except ValueError:
        return text  # Convention raises, and lists the allowed values
