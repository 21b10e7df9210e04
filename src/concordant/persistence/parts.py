"""Parts of models: every class, every field, and what its values may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold

from concordant.comparer.calibration import OutcomeCurve
from concordant.comparer.machine import Machine, Weights
from concordant.comparer.recipe import Recipe
from concordant.comparer.scaling import Scaling
from concordant.comparer.stream import Stream
from concordant.exceptions import ConcordantError
from concordant.metrics.metric import Metric
from concordant.metrics.parse import METRICS
from concordant.metrics.parse import metric as read_metric
from concordant.persistence.kinds import (
    FLAG,
    IDS,
    NUMBERED,
    PLAIN,
    REAL,
    TEXT,
    WHOLE,
    Kind,
    array,
    by_name,
    maybe,
    one_of,
    part,
    several,
    up_to,
)
from concordant.rankers.boosters.booster import Trees
from concordant.rankers.boosters.features import Encoding
from concordant.rankers.certificate import FittedCertificate
from concordant.rankers.claim import Claim, claimed
from concordant.rankers.optimality import Descent, Optimality, Sample
from concordant.ratings.counts import Counts
from concordant.ratings.sequential import Played, State
from concordant.ratings.votes import Items
from concordant.scorers.kernel import Kernel, KernelScorer, NystroemMap
from concordant.solvers import Solution
from concordant.solvers.online import OnlineState
from concordant.surrogates import (
    Duchi,
    ListwiseHinge,
    Margin,
    Pairwise,
    Penalty,
    PlackettLuce,
    PositionHinge,
    Preorder,
    Softmax,
    Squared,
)
from concordant.surrogates.margins import CLIP, EXPONENTIAL, LOGISTIC
from concordant.surrogates.pointwise import PENALTIES
from concordant.theory.bounds.bound import Term
from concordant.theory.bounds.fitted import EmpiricalBound
from concordant.theory.bounds.smooth import LossBound
from concordant.theory.combination import DECODERS
from concordant.theory.kinds import PairSquared
from concordant.theory.spaces import SPACES

__all__ = [
    "CODES",
    "CUBE",
    "LOSS",
    "MASK",
    "MATRIX",
    "METRIC",
    "NUMBERS",
    "PARTS",
    "SPLITTER",
    "VECTOR",
    "Part",
    "text_of",
]

VECTOR, MATRIX, CUBE = (array(np.float64, ndim) for ndim in (1, 2, 3))
CODES, MASK, NUMBERS = (
    array(np.int64, 1),
    array(np.bool_, 1),
    Kind("numbers", lambda v: VECTOR.fits(v) or CODES.fits(v)),
)
METRIC = Kind("a metric", lambda value: type(value) in METRICS.values())
ITEMS = up_to(2**26)  # of a query: certificates make room for so many
LOSSES = (Squared, Pairwise, Softmax, Duchi, PlackettLuce, Preorder, PositionHinge, ListwiseHinge)
LOSS, SPLITTER = part(*LOSSES), part(KFold, GroupKFold, GroupShuffleSplit)


@dataclass(frozen=True)
class Part:
    """A class whose objects a file can hold.

    Attributes
    ----------
    of
        The class.
    fields
        What is kept of an object, and what that may be.
    made
        Gives the object of these fields.
    holds
        Whether the fields tell all of an object: functions of a caller's own are not data.
    """

    of: type
    fields: Mapping[str, Kind]
    made: Callable[..., Any]
    holds: Callable[[Any], bool] = lambda _: True


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
    Margin: {
        "name": TEXT,
        "kind": one_of(CLIP, LOGISTIC, EXPONENTIAL),
        **dict.fromkeys(("edge", "width", "scale", "flat_from", "lipschitz", "smoothness"), REAL),
        **dict.fromkeys(
            ("convex", "non_increasing", "differentiable", "favours_order", "falls_at_zero"), FLAG
        ),
    },
    Squared: {"centred": FLAG},
    Pairwise: {"margin": part(Margin), "normalize": FLAG},
    Softmax: {},
    Duchi: {"penalty": part(Penalty), "nu": REAL},
    PlackettLuce: {},
    Preorder: {"weighting": TEXT, "margin": part(Margin)},
    PositionHinge: {"reduction": TEXT},
    ListwiseHinge: {"metric": METRIC, "mode": TEXT, "temperature": REAL},
    PairSquared: {},
    Solution: {
        "w": VECTOR,
        **dict.fromkeys(("value", "gradient_norm", "excess", "gap"), REAL),
        **dict.fromkeys(("n_iter", "n_gradients"), WHOLE),
        "converged": FLAG,
        "stopped_by": TEXT,
    },
    Sample: {
        "space": one_of(*SPACES),
        "n_queries": WHOLE,
        "n_items": ITEMS,
        "mass": maybe(REAL),
        "weighted": FLAG,
    },
    Optimality: {
        **dict.fromkeys(("value", "excess", "alpha"), REAL),
        "gap": maybe(REAL),
        "converged": FLAG,
        "stopped_by": TEXT,
        "n_iter": WHOLE,
    },
    Descent: {
        "first": REAL,
        "value": REAL,
        "n_iter": WHOLE,
        "unit": TEXT,
        "stopped_by": TEXT,
        "chosen": FLAG,
    },
    Term: {"name": TEXT, "meaning": TEXT, "count": WHOLE, "factor": REAL, "n": WHOLE},
    FittedCertificate: {
        "claim": part(Claim),
        "sample": part(Sample),
        "optimality": part(Optimality, Descent),
        "bound": maybe(part(EmpiricalBound, LossBound)),
        "no_bound": TEXT,
    },
    Trees: {
        "library": TEXT,
        **dict.fromkeys(("n_estimators", "min_samples_leaf", "seed"), WHOLE),
        **dict.fromkeys(("max_leaf_nodes", "max_depth", "n_jobs"), maybe(WHOLE)),
        **dict.fromkeys(("learning_rate", "l2", "subsample", "colsample"), REAL),
        "monotonic": several(one_of(-1, 0, 1)),
        "categorical": several(WHOLE),
        "names": several(TEXT),
        "params": PLAIN,
    },
    Encoding: {"categories": NUMBERED},
    KFold: {"n_splits": WHOLE, "shuffle": FLAG, "random_state": maybe(WHOLE)},
    GroupKFold: {"n_splits": WHOLE, "shuffle": FLAG, "random_state": maybe(WHOLE)},
    GroupShuffleSplit: {
        "n_splits": WHOLE,
        "test_size": maybe(REAL),
        "train_size": maybe(REAL),
        "random_state": maybe(WHOLE),
    },
}
BOUND = {
    **dict.fromkeys(("bounds", "rule", "version"), TEXT),
    **dict.fromkeys(
        ("empirical", "multiplier", "largest", "measured", "worst", "B", "length", "M", "delta"), REAL
    ),
    "parts": several(part(Term)),
    "n": WHOLE,
    "assumes": several(TEXT),
}
CLAIM = {
    "metric": METRIC,
    "space": one_of(*SPACES),
    "surrogate": part(*LOSSES, PairSquared),
    "decoder": one_of(*DECODERS),
    "assumed": maybe(TEXT),
    "n_items": ITEMS,
}


def penalty_of(name: str) -> Penalty:
    """Give the penalty of this name."""
    return PENALTIES[name]


PARTS: Mapping[str, Part] = {
    **{one.__name__: Part(one, fields, one) for one, fields in FIELDS.items()},
    **{one.__name__: Part(one, BOUND, one) for one in (EmpiricalBound, LossBound)},
    # What the catalogue of theorems says is looked up again: the version that loads a file speaks.
    "Claim": Part(Claim, CLAIM, claimed),
    "Penalty": Part(Penalty, {"name": one_of(*PENALTIES)}, penalty_of, lambda v: v == PENALTIES.get(v.name)),
}


def text_of(metric: Metric) -> str | None:
    """Give the text that stands for a metric; None where none does: a gain may be a function."""
    try:
        return str(metric) if read_metric(str(metric)) == metric else None
    except ConcordantError:
        return None
