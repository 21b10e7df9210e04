"""Every method of every estimator that takes data; the functions stand beside."""

import copy

import numpy as np

import concordant as cc
from tests.contracts import functions
from tests.contracts.models import (
    FEATURES,
    PAIRS,
    comparers,
    data_of,
    fitted,
    graded,
    outputs,
    paired,
    rankers,
    rating_models,
)
from tests.contracts.subject import OF_GRADES, Subject


class LostStateError(Exception):
    """A fit that was refused changed what had been fitted before."""


def refit(fitted_model, before, data, method="fit", said=outputs):
    """Fit a fitted model again; where that is refused, it must predict as before."""

    def call(**arguments):
        model = copy.deepcopy(fitted_model)
        try:
            getattr(model, method)(**arguments)
        except Exception as error:
            if not same_as(model, data, before, said):
                raise LostStateError(f"after: {error}") from error
            raise
        return said(model, {**data, **widened(data)} if is_wider(model) else data)

    return call


def is_wider(model):
    """True if it was fitted to more features than before."""
    return getattr(model, "n_features_in_", FEATURES) > FEATURES


def widened(data):
    """Features with one column more."""
    tables = {key: data[key] for key in ("X", "pairs") if key in data}
    return {key: np.concatenate((table, table[..., :1] ** 2), axis=-1) for key, table in tables.items()}


def same_as(model, data, before, said):
    """True if it still predicts the same."""
    try:
        return np.array_equal(said(model, data), before)
    except Exception:  # noqa: BLE001  # it cannot predict any more
        return False


def refitted(name, method="fit"):
    """`refit` of the model of this name."""

    def call(**arguments):
        return refit(*fitted(name), data_of(name), method)(**arguments)

    return call


def asked(name, method):
    """A method of the fitted model of this name."""

    def call(**arguments):
        return getattr(fitted(name)[0], method)(**arguments)

    return call


WEIGHTS = {"sample_weight": "weights", "query_weight": "weights"}
RANKING = {"X": "features", "y": "grades", "qid": "ids", **WEIGHTS}


def of_rankers():
    """`fit`, `predict`, `rank` and `score` of each ranker."""
    data = graded()
    ones = np.ones(len(data["y"]))
    patterns = {"X": r"\bX\b|sum of squares|Input data", "y": OF_GRADES, "qid": "qid|quer"}
    for name in rankers():
        full = data | {"sample_weight": ones, "query_weight": ones}
        yield Subject(f"{name}.fit", refitted(name), full, RANKING, patterns, widened(data))
        yield Subject(f"{name}.score", asked(name, "score"), data, {k: RANKING[k] for k in data}, patterns)
        some = {"X": data["X"], "qid": data["qid"]}
        yield Subject(f"{name}.rank", asked(name, "rank"), some, {k: RANKING[k] for k in some}, patterns)
        if not name.startswith("PairRanker"):
            alone = {"X": data["X"]}
            yield Subject(f"{name}.predict", asked(name, "predict"), alone, {"X": "features"}, patterns)


def of_comparers():
    """`fit`, `partial_fit`, `predict`, `rank_score` and `score` of each way to train a Comparer."""
    data = paired()
    roles = {"pairs": "pairs", "y": "outcome", "sample_weight": "weights"}
    full, alone = data | {"sample_weight": np.ones(PAIRS)}, {"pairs": data["pairs"]}
    for name in comparers():
        yield Subject(f"{name}.fit", refitted(name), full, roles, elsewhere=widened(data))
        yield Subject(f"{name}.predict", asked(name, "predict"), alone, {"pairs": "pairs"})
    items = {"items": data["pairs"][:, 0]}
    yield Subject("Comparer.rank_score", asked("Comparer", "rank_score"), items, {"items": "features"})
    yield Subject("Comparer.score", asked("Comparer", "score"), full, roles)
    model = cc.Comparer(loss="logistic").partial_fit(**data)
    streamed = refit(model, outputs(model, data), data, "partial_fit")
    yield Subject("Comparer.partial_fit", streamed, data, {"pairs": "pairs", "y": "outcome"})


def of_ratings():
    """`fit`, `update` and `predict_proba` of each model of ratings."""
    roles = {"left": "ids", "right": "ids", "outcome": "outcome", "sample_weight": "weights", "time": "times"}
    patterns = {"left": "left|ids|item|vote", "right": "right|ids|item|vote", "outcome": "outcome|left"}
    for name in rating_models():
        data = data_of(name)
        full = data | {"sample_weight": np.ones(len(data["left"]))}
        kinds = {key: roles[key] for key in full}
        yield Subject(f"{name}.fit", refitted(name), full, kinds, patterns)
        later = full | ({"time": full["time"] + full["time"].max()} if "time" in full else {})
        yield Subject(f"{name}.update", refitted(name, "update"), later, kinds, patterns)
        sides = {key: data[key] for key in ("left", "right")}
        proba = asked(name, "predict_proba")
        yield Subject(f"{name}.predict_proba", proba, sides, dict.fromkeys(sides, "ids"), patterns)


FAMILIES = (
    of_rankers, of_comparers, of_ratings, functions.of_metrics, functions.of_decoders,
    functions.of_supervision, functions.of_evaluation,
)  # fmt: skip


def subjects():
    """All of them."""
    for family in FAMILIES:
        yield from family()
