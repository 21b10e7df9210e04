"""Models of `compare`: which one, with which parameters, fitted to pairs, and what it says of others."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import ParameterError, UnknownNameError

if TYPE_CHECKING:
    from concordant.cli.compare_inputs import PairTable
    from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["MODELS", "Forecast", "chosen_model", "fit_on", "foretell", "part_of", "read_setting"]

MODELS: Mapping[str, str] = {
    "comparer": "Comparer",
    "davidson": "Davidson",
    "rao-kupper": "RaoKupper",
    "bradley-terry": "BradleyTerry",
    "elo": "Elo",
    "glicko": "Glicko",
}


def chosen_model(name: str | None, data: PairTable, parameters: Mapping[str, Any]) -> Any:
    """Give the model, not fitted yet: features call for a Comparer, ids alone for ratings."""
    import concordant as cc
    from concordant import ratings

    if name is None:
        tied = data.outcome is not None and bool((data.outcome == 0).any())
        name = "comparer" if data.features else "davidson" if tied else "bradley-terry"
    if name not in MODELS:
        raise UnknownNameError("model", name, MODELS)
    if name == "comparer" and not data.features:
        allowed = (
            "another where pairs have ids only: give their features by --items, or in columns of both sides"
        )
        raise ParameterError("model", name, allowed)
    if name != "comparer" and data.left is None:
        raise ParameterError("model", name, "comparer where pairs have no ids: --left and --right name them")
    made = cc.Comparer if name == "comparer" else getattr(ratings, MODELS[name])
    known = made().get_params()
    for key in parameters:
        if key not in known:
            raise UnknownNameError(f"parameter of {name}", key, known)
        check_kind(name, key, parameters[key], known[key])
    return made(**parameters)


def check_kind(model: str, name: str, value: Any, default: Any) -> None:
    """Refuse true and false where a number, or text, belongs: they would count as 1 and 0."""
    if not isinstance(value, bool) or isinstance(default, bool):
        return
    if name == "advantage":
        raise ParameterError(name, value, f"a number of points for {model}, as in --set advantage=35")
    raise ParameterError(name, value, "text" if isinstance(default, str) else "a number")


def read_setting(text: str) -> tuple[str, Any]:
    """Give the name and the value of NAME=VALUE: numbers, true, false and null are such, the rest is text.

    >>> read_setting("degree=2"), read_setting("loss=logistic"), read_setting("C=inf")
    (('degree', 2), ('loss', 'logistic'), ('C', inf))
    """
    name, sign, value = (part.strip() for part in text.partition("="))
    if not (name and sign and value):
        raise ParameterError("--set", text, "NAME=VALUE, as in degree=2")
    try:
        read = json.loads(value)
    except ValueError:
        return name, as_number(value)
    return name, read if isinstance(read, (int, float, bool, type(None))) else value


def as_number(text: str) -> float | str:
    """Give the number that a text is for Python, though not for JSON (inf, .5), else the text."""
    try:
        return float(text)
    except ValueError:
        return text


def fit_on(model: Any, data: PairTable, rows: IntArray | slice = slice(None)) -> list[str]:
    """Fit to these pairs; what the library warned of is given back."""
    from concordant import Comparer
    from concordant.ratings.sequential import SequentialModel

    weight = None if data.weight is None else data.weight[rows]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        if isinstance(model, Comparer):
            model.fit(part_of(data.pairs, rows), part_of(data.outcome, rows), sample_weight=weight)
            model.feature_names_in_ = np.array(data.features, dtype=object)
        else:
            timed = {"time": None if data.time is None else data.time[rows]}
            votes = (part_of(column, rows) for column in (data.left, data.right, data.outcome))
            model.fit(*votes, sample_weight=weight, **(timed if isinstance(model, SequentialModel) else {}))
    return list(dict.fromkeys(str(one.message) for one in heard))


def part_of(column: Any, rows: IntArray | slice) -> Any:
    """Give some rows of a column that is there."""
    return column[rows]


@dataclass(frozen=True, eq=False)
class Forecast:
    """What a model says of pairs; `known` are those whose items it knows, the others have no forecast."""

    outcome: IntArray
    decision: FloatArray
    probabilities: FloatArray | None
    known: BoolArray


def foretell(model: Any, data: PairTable, rows: IntArray | slice = slice(None)) -> Forecast:
    """Predict pairs; the decision is r(right) - r(left), of ratings too."""
    from concordant import Comparer

    if isinstance(model, Comparer):
        pairs = part_of(data.pairs, rows)
        told = None if model.curve_ is None else model.predict_proba(pairs)
        return Forecast(model.predict(pairs), model.decision_function(pairs), told, np.ones(len(pairs), bool))
    left, right = (part_of(column, rows) for column in (data.left, data.right))
    places = [model.known_.find(ids) for ids in (left, right)]
    known = (places[0] >= 0) & (places[1] >= 0)
    decision = model.ratings_[places[1][known]] - model.ratings_[places[0][known]]
    if not known.any():
        return Forecast(np.zeros(0, np.int64), decision, np.zeros((0, 3)), known)
    sides = left[known], right[known]
    return Forecast(model.predict(*sides), decision, model.predict_proba(*sides), known)
