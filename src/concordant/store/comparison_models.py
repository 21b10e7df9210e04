"""Model files of Comparers and ratings: the estimators, and the parts that they consist of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from concordant.comparisons import Comparer
from concordant.comparisons.calibration import OutcomeCurve
from concordant.comparisons.comparer_recipe import Recipe, read_recipe
from concordant.comparisons.gram_kernel import Kernel, KernelScorer, NystroemMap
from concordant.comparisons.machine import Machine, Weights
from concordant.comparisons.machines.online_machine import OnlineState
from concordant.comparisons.ratings import BradleyTerry, Davidson, Elo, Glicko, RaoKupper
from concordant.comparisons.ratings.sequential import LEVELS, Played, State
from concordant.comparisons.ratings.votes import Counts, Items
from concordant.comparisons.stream import Stream
from concordant.comparisons.training_pairs import Scaling
from concordant.store.model_parts import CODES, CUBE, MASK, MATRIX, NUMBERS, VECTOR, StoredClass
from concordant.store.registry import StoredModel, require_shapes
from concordant.store.value_kinds import (
    FINITE,
    FLAG,
    IDS,
    REAL,
    TEXT,
    WHOLE,
    Kind,
    by_name,
    many,
    optional,
    part,
    require,
)
from concordant.types import FloatArray, IntArray

FIELDS: Mapping[type, Mapping[str, Kind]] = {
    Kernel: {"name": TEXT, "gamma": FINITE, "degree": WHOLE, "coef0": FINITE},
    KernelScorer: {"kernel": part(Kernel), "items": MATRIX, "coef": VECTOR},
    NystroemMap: {"kernel": part(Kernel), "landmarks": MATRIX, "whiten": MATRIX},
    Weights: {"w": VECTOR},
    Machine: {
        "scorer": part(Weights, KernelScorer),
        **dict.fromkeys(("threshold", "bias"), FINITE),
        **dict.fromkeys(("value", "gap"), REAL),
        **dict.fromkeys(("method", "solver", "note"), TEXT),
        "converged": FLAG,
    },
    Scaling: {"mean": VECTOR, "deviation": VECTOR, "kept": MASK},
    OutcomeCurve: {"slope": FINITE, "cut": FINITE},
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
        "features": optional(part(NystroemMap)),
    },
    Items: {"names": IDS},
    State: {"of_items": by_name(NUMBERS), "levels": MATRIX},
    Played: {**dict.fromkeys(("left", "right", "outcome", "periods"), CODES), "weights": VECTOR},
}
COUNTS = {"n_items": WHOLE, "sided": FLAG, "first": CODES, "second": CODES, "cells": MATRIX, "n_votes": REAL}


def _build_counts(
    n_items: int, sided: bool, first: IntArray, second: IntArray, cells: FloatArray, n_votes: float
) -> Counts:
    """Build counts; `n_votes` is summed again, since earlier versions wrote the number of rows."""
    del n_votes
    return Counts(n_items, sided, first, second, cells)


COMPARISON_PARTS: Mapping[str, StoredClass] = {
    **{cls.__name__: StoredClass(cls, fields, cls) for cls, fields in FIELDS.items()},
    "Counts": StoredClass(Counts, COUNTS, _build_counts),
}

# Checks that the parts of a loaded model fit together: compiled code does not check bounds.


def _check_comparer(model: Any) -> None:
    read_recipe(model)
    require(model.classes_.tolist() == [-1, 0, 1], "classes_ are not -1, 0, 1")
    _check_scaling(model.scaling_, model.n_features_in_)
    _check_machine(model.machine_, len(model.scaling_.mean))
    if "stream_" in vars(model):
        _check_stream(model.stream_, model.n_features_in_)


def _check_scaling(scaling: Scaling, n_features: int) -> None:
    kept_shape = (int(scaling.kept.sum()),)
    require_shapes(scaling, kept=(n_features,), mean=kept_shape, deviation=kept_shape)
    require((scaling.deviation > 0.0).all(), "a deviation is not above 0")


def _check_machine(machine: Machine, n_kept_features: int) -> None:
    scorer = machine.scorer
    if isinstance(scorer, Weights):
        require_shapes(scorer, w=(n_kept_features,))
        return
    n_items = len(scorer.items)
    require_shapes(scorer, items=(n_items, n_kept_features), coef=(n_items,))


def _check_stream(stream: Stream, n_features: int) -> None:
    from concordant.comparisons.machines.machine_kernels import BINS

    state, features, n_kept_features = stream.state, stream.features, len(stream.scaling.mean)
    _check_scaling(stream.scaling, n_features)
    width = n_kept_features
    if features is not None:
        width, n_landmarks = features.whiten.shape[1], len(features.landmarks)
        require_shapes(features, landmarks=(n_landmarks, n_kept_features), whiten=(n_landmarks, width))
    is_linear = stream.recipe.kernel.name == "linear"
    require((features is None) == is_linear, "the stream's features are not those of its kernel")
    require_shapes(state, **dict.fromkeys(("mean", "square", "widest"), (width,)))
    require_shapes(state, **dict.fromkeys(("current", "fisher", "average"), (width + 1,)))  # and the bias
    require_shapes(state, history=(2, 2, BINS))


def _are_codes(codes: IntArray, n_codes: int) -> bool:
    return not codes.size or bool(codes.min() >= 0 and codes.max() < n_codes)


def _check_strengths(model: Any) -> None:
    model.check_parameters()
    counts, n_items = model.counts_, len(model.known_)
    require_shapes(model, ratings_=(n_items,))
    require(counts.n_items == n_items, f"n_items has shape {(counts.n_items,)}, not {(n_items,)}")
    require_shapes(counts, second=counts.first.shape, cells=(len(counts.first), 3))
    exist = _are_codes(counts.first, n_items) and _are_codes(counts.second, n_items)
    require(exist, "votes are about items that do not exist")
    weigh = np.isfinite(counts.cells).all() and (counts.cells >= 0.0).all() and counts.cells.any()
    require(weigh, "weights of votes are not finite and >= 0, or all 0")
    require_shapes(model, x_=(model.likelihood(counts, model.alpha).size,))


def _check_sequential(model: Any) -> None:
    model.check_parameters()
    state, n_items = model.state_, len(model.known_)
    column_types, expected_types = (
        [(name, column.dtype, column.shape) for name, column in columns.items()]
        for columns in (state.of_items, model.newcomers(n_items).of_items)
    )
    require(column_types == expected_types, "the state is not one of these parameters")
    require_shapes(model, ratings_=(n_items,))
    require_shapes(state, levels=(LEVELS, 3))
    for played in model.history_:
        _check_played(played, n_items)
    require(model.history_, "there are no votes")


def _check_played(played: Played, n_items: int) -> None:
    rows = played.left.shape
    require_shapes(played, right=rows, outcome=rows)
    for name in ("weights", "periods"):  # either may be left out
        require_shapes(played, **{name: rows if len(getattr(played, name)) else (0,)})
    ranges = ((played.left, n_items), (played.right, n_items), (played.outcome + 1, 3))
    exist = all(_are_codes(codes, n_codes) for codes, n_codes in ranges)
    require(exist, "votes are about items or outcomes that do not exist")


COMPARER = {
    "n_features_in_": WHOLE,
    "classes_": CODES,
    "scaling_": part(Scaling),
    "machine_": part(Machine),
    "curve_": optional(part(OutcomeCurve)),
    "stream_": part(Stream),
}
LIMIT = Kind("a number, or infinity", lambda value: REAL.fits(value) and not math.isnan(value))
STRENGTHS = {
    "known_": part(Items),
    "counts_": part(Counts),
    "ratings_": VECTOR,
    "x_": VECTOR,
    "advantage_": FINITE,
    "log_tie_": LIMIT,
    "value_": REAL,
    "n_iter_": WHOLE,
}
SEQUENTIAL = {
    "known_": part(Items),
    "state_": part(State),
    "history_": many(part(Played)),
    "ratings_": VECTOR,
    "clock_": TEXT,
    "latest_": REAL,  # NaN: without times
    "tie_": LIMIT,
}


COMPARISON_MODELS: Mapping[str, StoredModel] = {
    "Comparer": StoredModel(Comparer, COMPARER, _check_comparer, frozenset({"stream_"})),
    **{
        cls.__name__: StoredModel(cls, STRENGTHS, _check_strengths, remembers=True)
        for cls in (BradleyTerry, Davidson, RaoKupper)
    },
    **{
        cls.__name__: StoredModel(cls, SEQUENTIAL, _check_sequential, remembers=True) for cls in (Elo, Glicko)
    },
}
