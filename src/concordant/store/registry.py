"""Registry of the estimators that model files can hold: their parameters and fitted attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from concordant.rankers import (
    BoostedRanker,
    LinearRanker,
    LinearRankerCV,
    MaxMarginRanker,
    NeuralRanker,
    PairRanker,
)
from concordant.rankers.boosters import BOOSTERS
from concordant.rankers.boosters.booster import Trees
from concordant.rankers.boosters.features import Encoding
from concordant.rankers.fitted_certificate import FittedCertificate, Sample
from concordant.rankers.linear_cv import checked_alphas
from concordant.rankers.pair_features import TABLES, check_groups
from concordant.rankers.pair_scores import PairScorer
from concordant.solvers import Solution
from concordant.store.foreign import foreign_kind
from concordant.store.model_parts import LOSS, METRIC, SPLITTER, VECTOR, LazyTable
from concordant.store.value_kinds import (
    FINITE,
    FLAG,
    PLAIN,
    REAL,
    TEXT,
    WHOLE,
    Kind,
    array,
    by_name,
    either,
    many,
    part,
    require,
    several,
)
from concordant.theory.combination import OF_PAIRS

# Checks that the parts of a loaded model fit together: compiled code does not check bounds.


def require_shapes(owner: Any, **shapes: tuple[int, ...]) -> None:
    """Raise if attributes do not have these shapes."""
    for name, expected in shapes.items():
        actual = getattr(owner, name).shape
        require(actual == expected, f"{name} has shape {actual}, not {expected}")


WIDTHS: Mapping[str, Callable[[Any], int]] = {  # features that trees were grown on
    "lightgbm": lambda model: model.num_feature(),
    "xgboost": lambda model: model.num_features(),
    "catboost": lambda model: len(model.feature_names_),
}


def _check_linear(model: Any) -> None:
    _check_parameters(model, None)
    per_feature = (model.n_features_in_,)
    require_shapes(model, coef_=per_feature, scale_=per_feature)
    require_shapes(model.solution_, w=per_feature)
    if "scores_" in vars(model):
        require_shapes(model, scores_=(len(model.alphas_), model.scores_.shape[1]))
    _check_certificate(model)


def _check_pairs(model: Any) -> None:
    model.checked_parameters()
    name, n_features = model.metric_.name, model.n_features_in_
    require(name in OF_PAIRS and model.symmetric_ == (name == "ap"), f"{name} has no such scores of pairs")
    groups: Any = check_groups(model.groups_, name)
    widths: list[int] = [TABLES[model.symmetric_][group].width(n_features) for group in groups]
    wide, n_names = sum(widths), len(model.pair_features_)
    require_shapes(model, coef_=(wide,), scale_=(wide,))
    require(n_names == wide, f"pair_features_ has shape {(n_names,)}, not {(wide,)}")
    scorer = PairScorer(np.zeros((1, n_features)), np.array([0, 1]), groups, symmetric=model.symmetric_)
    require_shapes(model, diagonal_coef_=(scorer.item_width if model.symmetric_ else 0,))
    _check_certificate_text(model)


def _check_trees(model: Any) -> None:
    model.checked_parameters()
    trees, n_features = model.trees_, model.n_features_in_
    require(foreign_kind(model.booster_) == trees.library, f"its trees are not those of {trees.library}")
    n_tree_features = int(WIDTHS[trees.library](model.booster_))
    require(n_tree_features == n_features, f"its trees are of {n_tree_features} features, not {n_features}")
    n_trees = BOOSTERS[trees.library].n_trees(model.booster_)
    require(n_trees == model.n_estimators_, f"it has not the {model.n_estimators_} trees that it should have")
    categorical = tuple(model.encoding_.categories)
    fits = categorical == trees.categorical and all(number < n_features for number in categorical)
    require(fits, "the categories are of other features")
    lengths = {len(trees.names), len(trees.monotonic)}
    require(lengths <= {0, n_features}, "names or constraints are of other features")
    _check_certificate(model)


def _check_network(model: Any) -> None:
    _check_parameters(model, "cpu")
    n_features, expected = model.scorer_.n_features, model.n_features_in_
    require(n_features == expected, f"its network is of {n_features} features, not {expected}")
    _check_certificate(model)


def _check_parameters(model: Any, device: str | None) -> None:
    """Check that parameters are in range; the device that the model was fitted on need not exist."""
    params = model.get_params(deep=False)
    if "device" in params:
        params["device"] = device
    clone = type(model)(**params)
    if "alphas" in params:
        clone = clone.ranker(float(checked_alphas(params["alphas"])[-1]))
    clone.checked_parameters()


def _check_certificate(model: Any) -> None:
    """Check the certificate against the loss and the data that the model was trained on."""
    claim, sample = model.certificate_.claim, model.certificate_.sample
    require(claim.surrogate == model.surrogate_, "the certificate is of another loss")
    fits = sample.n_queries == model.n_queries_ and sample.space == claim.space
    require(fits, "the certificate is of other data")
    _check_certificate_text(model)


def _check_certificate_text(model: Any) -> None:
    """Check that the certificate can be printed, whatever its parts are."""
    certificate = model.certificate_
    require(str(certificate) and certificate.to_json(), "the certificate says nothing")


UNSAVED = {"callback": None, "checkpoint": None, "verbose": 0}  # parameters are loaded with these values


@dataclass(frozen=True)
class StoredModel:
    """An estimator class that model files can hold."""

    estimator: Any  # its parameters are those of the constructor
    fitted: Mapping[str, Kind]  # fitted attributes, and the values that each may have
    check: Callable[[Any], None]  # raises an error where the parts of a loaded model contradict each other
    optional: frozenset[str] = frozenset()  # fitted attributes that may be absent
    remembers: bool = False  # the parameters that it was fitted with
    parameters: Mapping[str, Kind] = field(default_factory=dict)  # those that are neither numbers nor text


def foreign(*names: str) -> Kind:
    """Return the kind of models of these libraries."""
    return Kind(f"a model of {' or '.join(names)}", lambda value: foreign_kind(value) in names)


RANKER = dict.fromkeys(("n_features_in_", "n_queries_", "n_informative_"), WHOLE)
CERTIFIED = {**RANKER, "surrogate_": LOSS, "certificate_": part(FittedCertificate)}
LINEAR = {**CERTIFIED, "coef_": VECTOR, "scale_": VECTOR, "solution_": part(Solution), "n_iter_": WHOLE}
GRID = array(np.float64, 2, finite=False)
PATH = {**LINEAR, "alphas_": VECTOR, "scores_": GRID, "alpha_": FINITE, "best_score_": REAL}
PAIRS = {
    **RANKER,
    **dict.fromkeys(("coef_", "scale_", "diagonal_coef_"), VECTOR),
    **dict.fromkeys(("intercept_", "diagonal_intercept_", "alpha_"), FINITE),
    "pair_features_": many(TEXT),
    "groups_": several(TEXT),
    "symmetric_": FLAG,
    "metric_": METRIC,
    "sample_": part(Sample),
    "solution_": part(Solution),
}
TREES = {
    **CERTIFIED,
    "booster_": foreign("lightgbm", "xgboost", "catboost"),
    "trees_": part(Trees),
    "encoding_": part(Encoding),
    **dict.fromkeys(("n_estimators_", "best_iteration_"), WHOLE),
    "history_": array(np.float64, 1, finite=False),
    "stopped_by_": TEXT,
}
NETWORK = {
    **CERTIFIED,
    "scorer_": foreign("network"),
    "history_": by_name(many(REAL)),
    **dict.fromkeys(("best_epoch_", "n_iter_"), WHOLE),
    "stopped_by_": TEXT,
}

OBJECTIVE = {"metric": either(TEXT, METRIC), "surrogate": either(TEXT, LOSS)}
FOLDS = either(WHOLE, PLAIN, SPLITTER)

LEARNED = "learned_"  # the parameters at the last fit: those that a file holds
RANKERS: Mapping[str, StoredModel] = {
    "LinearRanker": StoredModel(LinearRanker, LINEAR, _check_linear, parameters=OBJECTIVE),
    "LinearRankerCV": StoredModel(
        LinearRankerCV,
        PATH,
        _check_linear,
        parameters={**OBJECTIVE, "alphas": PLAIN, "cv": FOLDS},
    ),
    "MaxMarginRanker": StoredModel(
        MaxMarginRanker,
        LINEAR,
        _check_linear,
        parameters={**OBJECTIVE, "loss": either(TEXT, LOSS)},
    ),
    "PairRanker": StoredModel(PairRanker, PAIRS, _check_pairs, parameters={**OBJECTIVE, "features": PLAIN}),
    "BoostedRanker": StoredModel(
        BoostedRanker,
        TREES,
        _check_trees,
        parameters={**OBJECTIVE, **dict.fromkeys(("params", "monotonic_cst", "categorical_features"), PLAIN)},
    ),
    "NeuralRanker": StoredModel(
        NeuralRanker,
        NETWORK,
        _check_network,
        parameters={**OBJECTIVE, "hidden": PLAIN, "transforms": PLAIN},
    ),
}


def _comparison_models() -> Mapping[str, StoredModel]:
    from concordant.store.comparison_models import COMPARISON_MODELS

    return COMPARISON_MODELS


MODELS: Mapping[str, StoredModel] = LazyTable(RANKERS, _comparison_models)
