"""What model files can hold: every class, every field, and what its values may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.comparer import Comparer
from concordant.comparer.calibration import OutcomeCurve
from concordant.comparer.machine import Machine, Weights
from concordant.comparer.recipe import Recipe
from concordant.comparer.scaling import Scaling
from concordant.comparer.stream import Stream
from concordant.persistence.kinds import FLAG, IDS, REAL, TEXT, WHOLE, Kind, array, by_name, many, maybe, part
from concordant.persistence.soundness import comparer_problem, sequential_problem, strength_problem
from concordant.ratings import BradleyTerry, Davidson, Elo, Glicko, RaoKupper
from concordant.ratings.counts import Counts
from concordant.ratings.sequential import Played, State
from concordant.ratings.votes import Items
from concordant.scorers.kernel import Kernel, KernelScorer, NystroemMap
from concordant.solvers.online import OnlineState

__all__ = ["LEARNED", "MODELS", "PARTS", "Model"]

VECTOR, MATRIX, CUBE = (array(np.float64, ndim) for ndim in (1, 2, 3))
CODES, MASK, NUMBERS = (
    array(np.int64, 1),
    array(np.bool_, 1),
    Kind("numbers", lambda v: VECTOR.fits(v) or CODES.fits(v)),
)

FIELDS: Mapping[type, Mapping[str, Kind]] = {
    Kernel: {"name": TEXT, "gamma": REAL, "degree": WHOLE, "coef0": REAL},
    KernelScorer: {"kernel": part(Kernel), "items": MATRIX, "coef": VECTOR},
    NystroemMap: {"kernel": part(Kernel), "landmarks": MATRIX, "whiten": MATRIX},
    Weights: {"w": VECTOR},
    Machine: {
        "scorer": part(Weights, KernelScorer),
        **dict.fromkeys(("threshold", "bias", "value", "gap"), REAL),
        **dict.fromkeys(("method", "solver", "note"), TEXT),
        "converged": FLAG,
    },
    Scaling: {"mean": VECTOR, "deviation": VECTOR, "kept": MASK},
    OutcomeCurve: {"slope": REAL, "cut": REAL},
    Recipe: {
        "kernel": part(Kernel),
        "scale_gamma": FLAG,
        **dict.fromkeys(("method", "formulation", "loss", "approximation", "solver"), TEXT),
        **dict.fromkeys(("C", "nu", "tol"), REAL),
        **dict.fromkeys(("n_components", "max_iter", "seed"), WHOLE),
    },
    OnlineState: {
        "count": WHOLE,
        "scaled": FLAG,
        **dict.fromkeys(("mean", "square", "widest", "current", "fisher", "average"), VECTOR),
        "history": CUBE,
    },
    Stream: {
        "asked": part(Recipe),
        "recipe": part(Recipe),
        "state": part(OnlineState),
        "scaling": part(Scaling),
        "features": maybe(part(NystroemMap)),
    },
    Items: {"names": IDS},
    Counts: {
        "n_items": WHOLE,
        "sided": FLAG,
        "first": CODES,
        "second": CODES,
        "cells": MATRIX,
        "n_votes": WHOLE,
    },
    State: {"of_items": by_name(NUMBERS), "levels": MATRIX},
    Played: {**dict.fromkeys(("left", "right", "outcome", "periods"), CODES), "weights": VECTOR},
}
PARTS: Mapping[str, tuple[type, Mapping[str, Kind]]] = {one.__name__: (one, FIELDS[one]) for one in FIELDS}


@dataclass(frozen=True)
class Model:
    """A kind of model that files can hold.

    Attributes
    ----------
    made
        Its class; the parameters are those of its constructor.
    fitted
        What fitting leaves on it.
    optional
        Which of these may be absent.
    problem
        What a loaded one's parts contradict one another in; empty where they fit together.
    remembers
        Whether it keeps the parameters that it was fitted with.
    """

    made: Any
    fitted: Mapping[str, Kind]
    problem: Callable[[Any], str]
    optional: frozenset[str] = frozenset()
    remembers: bool = False


COMPARER = {
    "n_features_in_": WHOLE,
    "classes_": CODES,
    "scaling_": part(Scaling),
    "machine_": part(Machine),
    "curve_": maybe(part(OutcomeCurve)),
    "stream_": part(Stream),
}
STRENGTHS = {
    "known_": part(Items),
    "counts_": part(Counts),
    "ratings_": VECTOR,
    "x_": VECTOR,
    **dict.fromkeys(("advantage_", "log_tie_", "value_"), REAL),
    "n_iter_": WHOLE,
}
SEQUENTIAL = {
    "known_": part(Items),
    "state_": part(State),
    "history_": many(part(Played)),
    "ratings_": VECTOR,
    "clock_": TEXT,
    "latest_": REAL,
    "tie_": REAL,
}
LEARNED = "learned_"  # the parameters at the last fit: those that a file holds
MODELS: Mapping[str, Model] = {
    "Comparer": Model(Comparer, COMPARER, comparer_problem, frozenset({"stream_"})),
    **{
        one.__name__: Model(one, STRENGTHS, strength_problem, remembers=True)
        for one in (BradleyTerry, Davidson, RaoKupper)
    },
    **{one.__name__: Model(one, SEQUENTIAL, sequential_problem, remembers=True) for one in (Elo, Glicko)},
}
