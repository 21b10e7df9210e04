"""Whether the parts of a loaded ranker fit together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from concordant.persistence.foreign import foreign_of
from concordant.persistence.soundness import shapes
from concordant.rankers.boosters import BOOSTERS
from concordant.rankers.linear_cv import checked_alphas
from concordant.rankers.pair_groups import chosen_groups
from concordant.scorers.pair_features import TABLES
from concordant.scorers.pairs import PairScorer
from concordant.theory.combination import OF_PAIRS

__all__ = ["linear_problem", "network_problem", "pair_problem", "tree_problem"]

WIDTHS: Mapping[str, Callable[[Any], int]] = {  # features that trees were grown on
    "lightgbm": lambda model: model.num_feature(),
    "xgboost": lambda model: model.num_features(),
    "catboost": lambda model: len(model.feature_names_),
}


def linear_problem(model: Any) -> str:
    """Compare weights, scale and solution with the number of features."""
    check_given(model, None)
    wanted = (model.n_features_in_,)
    problem = shapes(
        coef_=(model.coef_.shape, wanted),
        scale_=(model.scale_.shape, wanted),
        w=(model.solution_.w.shape, wanted),
    )
    if "scores_" in vars(model):
        tried = len(model.alphas_), model.scores_.shape[1]
        problem = problem or shapes(scores_=(model.scores_.shape, tried))
    return problem or certificate_problem(model)


def pair_problem(model: Any) -> str:
    """Compare weights with the features of pairs and items."""
    model.checked_parameters()
    name, n_features = model.metric_.name, model.n_features_in_
    if name not in OF_PAIRS or model.symmetric_ != (name == "ap"):
        return f"{name} has no such scores of pairs"
    groups: Any = chosen_groups(model.groups_, name)
    widths: list[int] = [TABLES[model.symmetric_][group].width(n_features) for group in groups]
    wide = sum(widths)
    problem = shapes(
        coef_=(model.coef_.shape, (wide,)),
        scale_=(model.scale_.shape, (wide,)),
        pair_features_=((len(model.pair_features_),), (wide,)),
    )
    if problem:
        return problem
    scorer = PairScorer(np.zeros((1, n_features)), np.array([0, 1]), groups, symmetric=model.symmetric_)
    items = (scorer.item_width if model.symmetric_ else 0,)
    return shapes(diagonal_coef_=(model.diagonal_coef_.shape, items)) or told_problem(model)


def tree_problem(model: Any) -> str:
    """Compare the trees with what is said of them."""
    model.checked_parameters()
    trees, n_features = model.trees_, model.n_features_in_
    if foreign_of(model.booster_) != trees.library:
        return f"its trees are not those of {trees.library}"
    found = int(WIDTHS[trees.library](model.booster_))
    if found != n_features:
        return f"its trees are of {found} features, not {n_features}"
    if BOOSTERS[trees.library].n_trees(model.booster_) != model.n_estimators_:
        return f"it has not the {model.n_estimators_} trees that it should have"
    known = tuple(model.encoding_.categories)
    if known != trees.categorical or any(number >= n_features for number in known):
        return "the categories are of other features"
    if {len(trees.names), len(trees.monotonic)} - {0, n_features}:
        return "names or constraints are of other features"
    return certificate_problem(model)


def network_problem(model: Any) -> str:
    """Compare the network with the number of features."""
    check_given(model, "cpu")
    found = model.scorer_.n_features
    if found != model.n_features_in_:
        return f"its network is of {found} features, not {model.n_features_in_}"
    return certificate_problem(model)


def check_given(model: Any, device: str | None) -> None:
    """Refuse parameters out of range; the device that it was fitted on need not be there."""
    given = model.get_params(deep=False)
    if "device" in given:
        given["device"] = device
    same = type(model)(**given)
    if "alphas" in given:
        same = same.ranker(float(checked_alphas(given["alphas"])[-1]))
    same.checked_parameters()


def certificate_problem(model: Any) -> str:
    """Compare the certificate with the loss and the data that the model says it was trained on."""
    given = model.certificate_
    if given.claim.surrogate != model.surrogate_:
        return "the certificate is of another loss"
    if (given.sample.n_queries, given.sample.space) != (model.n_queries_, given.claim.space):
        return "the certificate is of other data"
    return told_problem(model)


def told_problem(model: Any) -> str:
    """Let the certificate tell all it can: whatever it is made of, it can be read."""
    given = model.certificate_
    return "" if str(given) and given.to_json() else "the certificate says nothing"
