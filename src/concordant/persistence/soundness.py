"""Whether the parts of a loaded model fit together: compiled code does not look where it reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from concordant.comparer.machine import Machine, Weights
from concordant.comparer.recipe import read_recipe
from concordant.comparer.scaling import Scaling
from concordant.comparer.stream import Stream
from concordant.ratings.sequential import LEVELS, Played
from concordant.types import IntArray

__all__ = ["comparer_problem", "sequential_problem", "strength_problem"]


def shapes(**found: tuple[tuple[int, ...], tuple[int, ...]]) -> str:
    """Name the first whose shape is not the one it should have, given as (shape, expected)."""
    wrong = (
        f"{name} has shape {has}, not {wanted}" for name, (has, wanted) in found.items() if has != wanted
    )
    return next(wrong, "")


def comparer_problem(model: Any) -> str:
    """Compare the sizes of scaling, scorer and stream."""
    read_recipe(model)
    if model.classes_.tolist() != [-1, 0, 1]:
        return "classes_ are not -1, 0, 1"
    problem = scaling_problem(model.scaling_, model.n_features_in_)
    problem = problem or machine_problem(model.machine_, len(model.scaling_.mean))
    if problem or "stream_" not in vars(model):
        return problem
    return stream_problem(model.stream_, model.n_features_in_)


def scaling_problem(scaling: Scaling, n_features: int) -> str:
    """Compare with the number of features."""
    kept = (int(scaling.kept.sum()),)
    problem = shapes(
        kept=(scaling.kept.shape, (n_features,)),
        mean=(scaling.mean.shape, kept),
        deviation=(scaling.deviation.shape, kept),
    )
    return problem or ("" if (scaling.deviation > 0.0).all() else "a deviation is not above 0")


def machine_problem(machine: Machine, kept: int) -> str:
    """Compare with the number of features that are kept."""
    scorer = machine.scorer
    if isinstance(scorer, Weights):
        return shapes(w=(scorer.w.shape, (kept,)))
    n_items = len(scorer.items)
    return shapes(items=(scorer.items.shape, (n_items, kept)), coef=(scorer.coef.shape, (n_items,)))


def stream_problem(stream: Stream, n_features: int) -> str:
    """Compare the state with the features that it is learned on."""
    from concordant.solvers.online_kernels import BINS

    state, features, kept = stream.state, stream.features, len(stream.scaling.mean)
    problem = scaling_problem(stream.scaling, n_features)
    width = kept
    if features is not None:
        width, n_landmarks = features.whiten.shape[1], len(features.landmarks)
        problem = problem or shapes(
            landmarks=(features.landmarks.shape, (n_landmarks, kept)),
            whiten=(features.whiten.shape, (n_landmarks, width)),
        )
    if (features is None) != (stream.recipe.kernel.name == "linear"):
        problem = problem or "the stream's features are not those of its kernel"
    own = {name: (getattr(state, name).shape, (width,)) for name in ("mean", "square", "widest")}
    joint = {name: (getattr(state, name).shape, (width + 1,)) for name in ("current", "fisher", "average")}
    return problem or shapes(**own, **joint, history=(state.history.shape, (2, 2, BINS)))


def outside(codes: IntArray, n_items: int) -> bool:
    """Whether some number is no item's."""
    return bool(codes.size) and not (codes.min() >= 0 and codes.max() < n_items)


def strength_problem(model: Any) -> str:
    """Compare ratings and votes with the items."""
    model.checked()
    counts, n_items = model.counts_, len(model.known_)
    problem = shapes(
        ratings_=(model.ratings_.shape, (n_items,)),
        n_items=((counts.n_items,), (n_items,)),
        second=(counts.second.shape, counts.first.shape),
        cells=(counts.cells.shape, (len(counts.first), 3)),
    )
    if problem:
        return problem
    if outside(counts.first, n_items) or outside(counts.second, n_items):
        return "votes are about items that do not exist"
    if not (np.isfinite(counts.cells).all() and (counts.cells >= 0.0).all() and counts.cells.any()):
        return "weights of votes are not finite and >= 0, or all 0"
    return shapes(x_=(model.x_.shape, (model.likelihood(counts, model.alpha).size,)))


def sequential_problem(model: Any) -> str:
    """Compare ratings, state and votes with the items."""
    model.check_parameters()
    state, n_items = model.state_, len(model.known_)
    wanted = model.newcomers(n_items).of_items
    kinds = {name: (column.dtype, column.shape) for name, column in state.of_items.items()}
    if list(kinds.items()) != [(name, (column.dtype, column.shape)) for name, column in wanted.items()]:
        return "the state is not one of these parameters"
    problem = shapes(ratings_=(model.ratings_.shape, (n_items,)), levels=(state.levels.shape, (LEVELS, 3)))
    problems = (played_problem(played, n_items) for played in model.history_)
    return problem or next(filter(None, problems), "") or ("" if model.history_ else "there are no votes")


def played_problem(played: Played, n_items: int) -> str:
    """Compare the columns of votes with one another and with the items."""
    rows = played.left.shape
    problem = shapes(
        right=(played.right.shape, rows),
        outcome=(played.outcome.shape, rows),
        weights=(played.weights.shape, rows if len(played.weights) else (0,)),
        periods=(played.periods.shape, rows if len(played.periods) else (0,)),
    )
    if problem:
        return problem
    wrong = outside(played.left, n_items) or outside(played.right, n_items) or outside(played.outcome + 1, 3)
    return "votes are about items or outcomes that do not exist" if wrong else ""
