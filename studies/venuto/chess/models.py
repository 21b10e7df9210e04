"""Models of chess games: ratings, a trivial model, and comparison machines on several features."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from concordant.exceptions import UnknownNameError
from concordant.types import FloatArray, IntArray
from studies.venuto.chess.data import Season

KERNELS = ("linear", "poly", "rbf")
TRIVIAL = "trivial"
RATINGS = ("Elo", "Glicko", "printed", "Elo + first move", "Glicko + first move")
LOSSES: Mapping[str, str] = {"logistic": "logistic", "squared": "squared_hinge"}  # which do not collapse
FEATURES: Mapping[str, str] = {
    "2": "Elo, Glicko",
    "16": "all 16 statistics",
    "2 + move": "Elo, Glicko, first move",
    "printed + move": "printed rating, first move",
    "2 + printed": "Elo, Glicko, printed rating",
    "2 + move + printed": "Elo, Glicko, first move, printed rating",
    "16 + printed": "all 16 statistics, printed rating",
}
HINGE = ("2", "16", "2 + move", "printed + move", "16 + printed")  # the first two are the paper's


@dataclass(frozen=True)
class Model:
    """One model of the study.

    Attributes
    ----------
    name
        How it is called; a machine that names no loss has the paper's, the hinge.
    kernel
        Of a comparison machine; empty for ratings and the trivial model.
    features
        Key of `FEATURES`; empty where there is no kernel.
    loss
        As of `Comparer`.
    published
        Whether the paper has it.
    """

    name: str
    kernel: str = ""
    features: str = ""
    loss: str = "hinge"
    published: bool = True


@dataclass(frozen=True, eq=False)
class Answer:
    """Predictions of a model for the test games of a year.

    Attributes
    ----------
    decision
        The larger, the likelier black wins; a draw is likeliest at 0.
    probabilities
        Of outcomes -1, 0, 1.
    predicted
        The outcome predicted.
    C, degree, gamma
        What the search chose; NaN where there is nothing to choose.
    validation
        Mean ROC area on the validation parts of the search.
    collapsed
        Whether the exact optimum of the machine on its training games ignores all features, whatever the C:
        checked of linear machines with the hinge.
    """

    decision: FloatArray
    probabilities: FloatArray
    predicted: IntArray
    C: float = math.nan
    degree: float = math.nan
    gamma: float = math.nan
    validation: float = math.nan
    collapsed: bool = False


def models(kernels: tuple[str, ...] = KERNELS) -> tuple[Model, ...]:
    """Return all models, in the order of the tables."""
    for kernel in kernels:
        if kernel not in KERNELS:
            raise UnknownNameError("kernel", kernel, KERNELS)
    ratings = [Model(name, published=name in ("Elo", "Glicko")) for name in RATINGS]
    machines = [Model(f"{kernel}, {key}", kernel, key) for kernel in kernels for key in ("2", "16")]
    others = [
        Model(f"{name} {kernel}, {key}", kernel, key, "logistic", published=False)
        for name, kernel, key in (("logistic", k, f) for k in kernels if k != "linear" for f in ("2", "16"))
    ]
    if "linear" in kernels:
        machines += [Model(f"linear, {key}", "linear", key, published=False) for key in HINGE[2:]]
        others = [
            Model(f"{name}, {key}", "linear", key, loss, published=False)
            for name, loss in LOSSES.items()
            for key in FEATURES
        ] + others
    return (Model(TRIVIAL), *ratings, *machines, *others)


def features_of(season: Season, key: str) -> FloatArray:
    """Features of both players in all games of the season: shape (n, 2, p)."""
    printed, statistics = season.printed[:, :, None], season.pairs
    two, move = statistics[:, :, :2], statistics[:, :, 2:3]
    parts = {
        "2": (two,),
        "16": (statistics,),
        "2 + move": (two, move),
        "printed + move": (printed, move),
        "2 + printed": (two, printed),
        "2 + move + printed": (two, move, printed),
        "16 + printed": (statistics, printed),
    }
    return np.concatenate(parts[key], axis=2)
