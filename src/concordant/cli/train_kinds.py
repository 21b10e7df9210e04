"""The rankers that `train` and `tune` know by name, and their parameters."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Mapping
from typing import Any

from concordant.exceptions import ParameterError, UnknownNameError

__all__ = ["KINDS", "LIBRARIES", "defaults_of", "given_parameters", "made", "packages_of", "ranker_class"]

KINDS: Mapping[str, str] = {
    "linear": "LinearRanker",
    "linear-cv": "LinearRankerCV",
    "maxmargin": "MaxMarginRanker",
    "pairs": "PairRanker",
    "boosted": "BoostedRanker",
    "neural": "NeuralRanker",
}
# What a command decides itself, or a file cannot say.
OWN = ("callback", "checkpoint", "f", "verbose", "warm_start")
ELSEWHERE = {"metric": "--metric", "random_state": "--seed"}
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


def ranker_class(kind: str) -> Any:
    """Give the class of a kind."""
    if kind not in KINDS:
        raise UnknownNameError("model", kind, KINDS)
    import concordant as cc

    return getattr(cc, KINDS[kind])


def defaults_of(kind: str) -> dict[str, Any]:
    """Give the parameters that can be set, with their defaults; metric and seed are named elsewhere."""
    known = inspect.signature(ranker_class(kind)).parameters
    return {name: one.default for name, one in known.items() if name not in OWN and name not in ELSEWHERE}


def given_parameters(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Give all parameters: those given, in the types of their defaults, and the other defaults."""
    defaults = defaults_of(kind)
    for name, value in given.items():
        if name in ELSEWHERE:
            wanted = f"left out: {ELSEWHERE[name]} (in a file: {ELSEWHERE[name][2:]}) says it"
            raise ParameterError(name, value, wanted)
        if name not in defaults:
            raise UnknownNameError(f"parameter of {kind}", name, defaults)
    return {name: alike(given[name], one) if name in given else one for name, one in defaults.items()}


def alike(value: Any, default: Any) -> Any:
    """Give a TOML value in the type of the default: tuples for lists, floats for whole numbers.

    >>> alike([16, 8], (128, 64)), alike(1, 0.1), alike("none", 10)
    ((16, 8), 1.0, None)
    """
    if value == "none":
        return None
    if isinstance(value, list):
        inner = default[0] if isinstance(default, tuple) and default else None
        return tuple(alike(one, inner) for one in value)
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def made(kind: str, metric: str, seed: int, parameters: Mapping[str, Any]) -> Any:
    """Give the ranker, not fitted; parameters out of range are refused here where it checks them itself."""
    kind_class = ranker_class(kind)
    known = inspect.signature(kind_class).parameters
    seeded = {"random_state": seed} if "random_state" in known else {}
    model = kind_class(metric=metric, **seeded, **parameters)
    check = getattr(model, "checked_parameters", None)
    if check is not None:
        check()
    return model


def packages_of(kind: str, parameters: Mapping[str, Any]) -> list[str]:
    """Give the packages whose versions a result may depend on, as far as they are here."""
    own = {"boosted": str(parameters.get("booster")), "neural": "torch"}.get(kind)
    named = [*LIBRARIES, *([own] if own else [])]
    spelled = {"scikit-learn": "sklearn"}
    return [name for name in named if importlib.util.find_spec(spelled.get(name, name)) is not None]
