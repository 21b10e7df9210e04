"""Warnings about lists: rows of many queries that are ranked as one list, and folds that cut queries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from concordant._base.warn import find_frame, warn_caller, warn_caller_once
from concordant.data.check import on_host
from concordant.data.queries import Queries
from concordant.exceptions import QueryWarning
from concordant.types import ArrayLike

# One list of more rows is taken for a mistake: a TREC run has 1,000 documents a topic, and the longest query
# of the public LETOR sets (MSLR-WEB30K) has 1,251.
LONGEST_LIST = 2000

ONE_LIST = "If they are one list, pass qid=np.zeros(len(X))."
ROUTE = """Turn on metadata routing, and pass qid, and groups for folds of whole queries:
    sklearn.set_config(enable_metadata_routing=True)
    GridSearchCV(model, grid, cv=GroupKFold(5)).fit(X, y, qid=qid, groups=qid)
    cross_val_score(model, X, y, cv=GroupKFold(5), params={"qid": qid, "groups": qid})"""
FOLDS = "sklearn.model_selection._fit_and_score"  # fits and scores a fold, by the ids in its variables
CUT = (
    "The folds cut queries: some queries have rows in both the training and the test rows, and parts of "
    "lists are scored. Use folds of whole queries: cv=GroupKFold(5), with groups=qid where qid is passed to "
    "scikit-learn."
)


def warn_at_fit(labels: Any) -> None:
    """Warn of too many rows without `qid`, one per label; arguments are checked."""
    if _module_calls("sklearn.model_selection"):
        warn_caller_once(_scikit_learn_text("fit()"), QueryWarning)
    elif (n_rows := len(labels if hasattr(labels, "__len__") else np.asarray(labels))) > LONGEST_LIST:
        text = f"fit() got no qid, so all {n_rows:,} rows are one list. Pass one query id per row: "
        warn_caller(f"{text}fit(X, y, qid=qid). {ONE_LIST}", QueryWarning)


def warn_at_use(model: Any, call: str, n_rows: int, qid: ArrayLike) -> None:
    """Warn if rows without `qid` are more than one list has, or if `qid` shows that folds cut queries.

    `call` is what the user should write, such as "score(X, y, qid=qid)".
    """
    if qid is not None:
        frame, _ = find_frame(lambda module, function: f"{module.rpartition('.')[0]}.{function}" == FOLDS)
        params = {} if frame is None else frame.f_locals
        trained, training_scored = (
            (params.get(name) or {}).get("qid") for name in ("fit_params", "score_params_train")
        )
        if trained is not None and qid is not training_scored:
            warn_of_cuts([(trained, qid)])
        return
    sample = getattr(getattr(model, "certificate_", None), "sample", None)
    n_queries, longest = (1, 0) if sample is None else (sample.n_queries, sample.n_items)
    through_folds = _module_calls("sklearn")
    # A list may well be longer than those of the fit, but rarely by much.
    most = longest if through_folds else 2 * longest
    if n_rows <= (most if n_queries > 1 else max(longest, LONGEST_LIST)):
        return
    name = call.partition("(")[0] + "()"
    if through_folds:
        warn_caller_once(_scikit_learn_text(name), QueryWarning)
        return
    text = f"{name} got no qid, so all {n_rows:,} rows are one list"
    if n_queries > 1:
        text += f"; the model was fitted to {n_queries:,} queries of at most {longest:,} rows"
    warn_caller(f"{text}. Pass one query id per row: {call}. {ONE_LIST}", QueryWarning)


def warn_of_cuts(folds: Iterable[tuple[ArrayLike, ArrayLike]]) -> None:
    """Warn if a query has rows among both the training and the test ids of a fold."""
    if any(np.intersect1d(_as_queries(train).ids, _as_queries(test).ids).size for train, test in folds):
        warn_caller_once(CUT, QueryWarning)


def _as_queries(qid: ArrayLike) -> Queries:
    return qid if isinstance(qid, Queries) else Queries.from_ids(on_host(qid))


def _scikit_learn_text(name: str) -> str:
    # Without numbers: they differ by fold, and equal warnings are shown once.
    return f"{name} got no qid through scikit-learn, so all rows (of each fold) are one list. {ROUTE}"


def _module_calls(module: str) -> bool:
    """Return True if a function of the module, or of a module inside it, is on the stack."""
    frame, _ = find_frame(lambda name, _: f"{name}.".startswith(f"{module}."))
    return frame is not None
