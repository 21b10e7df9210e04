"""Parameters of `BoostedRanker`, checked before any work."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np

from concordant._numbers import as_double, is_whole, whole_numbers
from concordant.exceptions import ParameterError

__all__ = ["REAL", "WHOLE", "check_parameters", "safe_names", "seed_of"]

WHOLE = {  # name -> least value, whether None may stand there
    "n_estimators": (1, False),
    "max_leaf_nodes": (2, True),
    "max_depth": (1, True),
    "min_samples_leaf": (1, False),
    "early_stopping": (1, True),
}
REAL = {
    "learning_rate": "a finite number > 0",
    "l2": "a finite number >= 0",
    "subsample": "a number > 0 and at most 1",
    "colsample": "a number > 0 and at most 1",
}
UNSAFE = frozenset(" \t\n\"',:[]{}<>")  # in names of features, of some library


def check_parameters(given: Mapping[str, Any]) -> None:
    """Refuse parameters out of range."""
    for name, (least, optional) in WHOLE.items():
        value = given[name]
        if not is_whole(value, least) and not (optional and value is None):
            raise ParameterError(name, value, whole_numbers(least) + ", or None" * optional)
    jobs = given["n_jobs"]
    if jobs is not None and not (isinstance(jobs, Integral) and (is_whole(jobs, 1) or jobs == -1)):
        raise ParameterError("n_jobs", jobs, "a whole number >= 1, or -1 or None: the library's own choice")
    for name, wanted in REAL.items():
        value = given[name]
        number = as_double(value)
        if not (0.0 <= number < np.inf and (number > 0.0 or name == "l2")):
            raise ParameterError(name, value, wanted)
        if name.endswith("sample") and number > 1.0:
            raise ParameterError(name, value, wanted)
    share = given["validation_fraction"]
    if not 0.0 < as_double(share) < 1.0:
        raise ParameterError("validation_fraction", share, "a number between 0 and 1")
    if given["callback"] is not None and not callable(given["callback"]):
        raise ParameterError("callback", given["callback"], "a function of a Round, or None")
    if given["params"] is not None and not isinstance(given["params"], Mapping):
        raise ParameterError("params", given["params"], "a dict of the library's parameters, or None")


def seed_of(random_state: Any) -> int:
    """Give a seed that every library takes.

    >>> seed_of(0) == seed_of(0) != seed_of(1)
    True
    """
    return int(np.random.default_rng(random_state).integers(2**31))


def safe_names(names: list[str]) -> tuple[str, ...]:
    """Give the names of features if every library takes them, else none.

    >>> safe_names(["bm25", "length"]), safe_names(["a b"]), safe_names(["a", "a"])
    (('bm25', 'length'), (), ())
    """
    safe = len(set(names)) == len(names) and not any(UNSAFE & set(name) or not name for name in names)
    return tuple(names) if safe and all(name.isascii() for name in names) else ()
