"""Keywords of LightGBM, XGBoost and CatBoost: errors that name the equivalent here."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from concordant.exceptions import UnexpectedArgumentError

# The same thing by another name: ours -> theirs.
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "alpha": ("l2", "reg_lambda", "lambda_l2"),
    "categorical_features": ("categorical_feature", "cat_features"),
    "colsample": ("colsample_bytree", "feature_fraction", "rsm"),
    "early_stopping": ("early_stopping_rounds", "early_stopping_round", "od_wait", "n_iter_no_change"),
    "eval_set": ("valid_sets", "evals", "validation", "validation_data", "X_val"),
    "l2": ("reg_lambda", "lambda_l2", "l2_leaf_reg", "lambda"),
    "learning_rate": ("eta", "shrinkage_rate", "lr"),
    "max_depth": ("depth",),
    "max_epochs": ("n_estimators", "iterations", "epochs", "n_epochs", "max_iter"),
    "max_iter": ("n_iter", "iterations", "num_iterations"),
    "max_leaf_nodes": ("num_leaves", "max_leaves"),
    "min_samples_leaf": ("min_child_samples", "min_data_in_leaf"),
    "monotonic_cst": ("monotone_constraints",),
    "n_estimators": ("num_boost_round", "num_trees", "num_iterations", "iterations", "n_iter", "max_iter"),
    "n_jobs": ("num_threads", "n_threads", "nthread", "thread_count"),
    "random_state": ("seed", "random_seed"),
    "sample_weight": ("weight", "weights"),
    "subsample": ("bagging_fraction",),
    "verbose": ("verbosity", "silent"),
}
# Names of other things, by those who have no synonym for it.
QID = "pass one query id per row, not group sizes: qid=np.repeat(np.arange(len(group)), group)."
EVAL_QID = "pass the query ids with the held-out rows: eval_set=(X, y, qid)."
METRIC = "name the metric: metric='ndcg@10'. It chooses the loss, and is what score and eval_set measure."
PAIRS = "every pair of a list counts: nothing is sampled or truncated."
HELD_OUT = "nothing is held out here; LinearRankerCV, BoostedRanker and NeuralRanker take held-out queries."
HINTS: Mapping[str, str] = {
    **dict.fromkeys(("group", "groups", "query", "queries", "group_id", "query_id"), QID),
    **dict.fromkeys(("eval_group", "eval_qid", "eval_query_id"), EVAL_QID),
    **dict.fromkeys(("objective", "loss_function", "eval_at", "eval_metric", "metrics", "scoring"), METRIC),
    **dict.fromkeys(("eval_set", "valid_sets", "validation", "validation_data"), HELD_OUT),
    "label_gain": "the gain is part of the metric's name: metric='ndcg@10[gain=linear]'.",
    "lambdarank_truncation_level": PAIRS,
    "lambdarank_num_pair_per_sample": PAIRS,
}
IF_TAKEN: Mapping[str, tuple[str, str]] = {  # advice by another parameter, if the ranker has that
    "C": ("alpha", "use alpha=1/C."),
    "Cs": ("alphas", "use alphas=, which are 1/Cs."),
    "callbacks": ("callback", "the constructor takes callback=, a function that is called after each round."),
}
OF_TREES = "n_estimators", "max_leaf_nodes", "max_depth", "min_samples_leaf", "learning_rate", "colsample"
STEPS = "iterations", "n_iter", "num_iterations", "max_iter"  # not of trees alone


def unexpected_argument(
    called: str, name: str, allowed: Iterable[str], ranker: object = None
) -> UnexpectedArgumentError:
    """Build the error for an argument that a function, or a method of a ranker, does not have.

    >>> print(unexpected_argument("evaluate", "group", ["model", "X", "y", "qid"]))
    evaluate() got an unexpected keyword argument 'group'.
    Hint: pass one query id per row, not group sizes: qid=np.repeat(np.arange(len(group)), group).
    """
    names, parameters = [ours for ours in allowed if ours != "self"], []
    if "self" in allowed:
        owner: Any = type(ranker)
        called = owner.__name__ if called == "__init__" else f"{owner.__name__}.{called}"
        if called != owner.__name__:
            parameters = [*owner._get_param_names()]  # noqa: SLF001
    problem = f"{called}() got an unexpected keyword argument {name!r}"
    return UnexpectedArgumentError(problem, _hint(name, names, parameters, type(ranker)))


def invalid_parameter(ranker: Any, name: str) -> UnexpectedArgumentError:
    """Build the error for a parameter that a ranker does not have, as scikit-learn words it."""
    problem = f"Invalid parameter {name!r} for estimator {type(ranker).__name__}"
    return UnexpectedArgumentError(problem, _hint(name, ranker._get_param_names(), [], type(ranker)))  # noqa: SLF001


def equivalent(name: str, parameters: Iterable[str]) -> str:
    """Return the parameter that another library calls `name`; empty if there is none.

    >>> equivalent("num_leaves", ["max_leaf_nodes", "n_jobs"])
    'max_leaf_nodes'
    """
    allowed = set(parameters)
    return next((ours for ours, theirs in SYNONYMS.items() if name in theirs and ours in allowed), "")


def _hint(name: str, names: list[str], parameters: list[str], owner: Any) -> str:
    """Return advice on a name that is none of `names`; `parameters` are those of the owner's constructor."""
    synonyms = [name, *(ours for ours, theirs in SYNONYMS.items() if name in theirs)]
    if advice := next(
        filter(None, (_where_it_belongs(ours, names, parameters, owner) for ours in synonyms)), ""
    ):
        return advice
    taken, advice = IF_TAKEN.get(name, ("", ""))
    if taken in (*names, *parameters):
        return advice
    if name in HINTS:
        return HINTS[name]
    of_trees = [ours for ours in synonyms if ours in OF_TREES and name not in STEPS]
    if of_trees:
        return f"only trees have it: BoostedRanker({of_trees[0]}=...)."
    if close := difflib.get_close_matches(name, names, n=1):
        return f"did you mean {close[0]}=?"
    rest = " Parameters of the library go into params={...}." if "params" in names else ""
    return f"it takes {', '.join(names)}.{rest}"


def _where_it_belongs(name: str, names: list[str], parameters: list[str], owner: Any) -> str:
    """Return where one of our parameters belongs; empty if the owner has none of that name."""
    if name in names:
        return f"use {name}=."
    if name in parameters:
        return f"pass it to the constructor: {owner.__name__}({name}=...)."
    of_fit = inspect.signature(owner.fit).parameters if hasattr(owner, "fit") else ()
    return f"pass it to fit: fit(X, y, {name}=...)." if name in of_fit else ""
