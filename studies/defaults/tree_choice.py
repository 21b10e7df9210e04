"""What `BoostedRanker(surrogate="auto")` should be: losses and lifts compared on VALIDATION queries alone.

The LETOR sets are read from CONCORDANT_DATA; without them there is no table. LightGBM's own objectives stand
beside ours. Test queries of a fold are never read; those of one fold are validation queries of another.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from joblib import Parallel, delayed

import concordant as cc
from benchmarks.shared.tables import Table
from concordant import datasets
from concordant._internals import n_threads
from concordant.exceptions import DatasetNotFoundError, EmptyDataError
from concordant.types import FloatArray

SETS = ("mq2008", "ohsumed", "mq2007-partial")
METRICS = ("ndcg@10", "dcg@10", "ap", "p@10")
OWN: Mapping[str, tuple[str | cc.surrogates.Surrogate, float]] = {
    "squared": ("squared", 0.0),
    "softmax": ("softmax", 0.0),
    "softmax, lift .5": ("softmax", 0.5),
    "softmax, lift 1": ("softmax", 1.0),
    "softmax, lift 2": ("softmax", 2.0),
    "pairwise": ("pairwise", 0.0),
    "pairwise, lift 1": ("pairwise", 1.0),
    "pairwise, squared hinge": (cc.surrogates.Pairwise("squared_hinge"), 0.0),
}
METHODS = ("lambdarank", "rank_xendcg", *OWN)
HALVES = 40
NOTE = (
    "Mean of the metric over validation queries of five folds, higher is better; the last column is the mean "
    "over the sets. 15 leaves, rate .05, 400 trees; the number of trees is chosen on one half of the "
    "validation queries and the metric taken on the other, both ways, mean over 40 random halvings."
)


def n_steps(*, quick: bool) -> int:
    """Number of times that `run` calls its `step`, at most: sets that are not here are left out."""
    return len(METHODS) if quick else len(SETS) * len(METRICS) * len(METHODS) * 5


def run(*, quick: bool, step: Callable[[str], None]) -> list[Table]:
    """Return one table for each metric.

    Parameters
    ----------
    quick
        One synthetic set, one metric, five trees: shows that it runs.
    step
        Called after each training.
    """
    metrics, folds, trees = (METRICS[:1], (1,), 5) if quick else (METRICS, (1, 2, 3, 4, 5), 400)
    sets = {"synthetic": [_synthetic_fold()]} if quick else {name: _load_folds(name, folds) for name in SETS}
    sets = {name: parts for name, parts in sets.items() if parts}
    tasks = [
        (name, at, metric, how) for name in sets for at in folds for metric in metrics for how in METHODS
    ]
    with Parallel(n_threads(), return_as="generator") as pool:
        work = pool(
            delayed(_validation_score)(sets[name][at - 1], metric, how, trees)
            for name, at, metric, how in tasks
        )
        values = dict(zip(tasks, _report_steps(work, step), strict=True))
    result_tables = []
    for metric in metrics if sets else ():
        rows = []
        for how in METHODS:
            means = [float(np.mean([values[name, at, metric, how] for at in folds])) for name in sets]
            rows.append((how, *(f"{mean:.4f}" for mean in (*means, np.mean(means)))))
        result_tables.append(
            Table(f"{metric} on validation queries", NOTE, ("objective", *sets, "mean"), rows)
        )
    return result_tables


def _report_steps(results: Iterable[float], step: Callable[[str], None]) -> Iterator[float]:
    """Yield results as they come; `step` is called after each."""
    for result in results:
        step("Training")
        yield result


def _synthetic_fold() -> datasets.Fold:
    """A synthetic set, where it is enough that it runs."""
    parts = [cc.synthetic.grades(n_queries=40, n_items=8, seed=seed) for seed in range(3)]
    return datasets.Fold(*(cc.RankingData(part.X, np.asarray(part.y), part.qid) for part in parts))


def _load_folds(name: str, folds: tuple[int, ...]) -> list[datasets.Fold]:
    """Folds of a set; none where it is not here."""
    try:
        return [cc.datasets.load(name, fold=fold) for fold in folds]
    except DatasetNotFoundError:
        return []


def _validation_score(fold: datasets.Fold, metric: str, how: str, trees: int) -> float:
    """Mean of the metric over validation queries, the number of trees chosen on other ones."""
    import lightgbm as lgb

    measured = cc.metric(metric)
    history: list[FloatArray] = []
    if fold.validation is None:
        raise EmptyDataError("the validation part")
    train, validation = _sort_rows(fold.train), _sort_rows(fold.validation)
    data = lgb.Dataset(train[0], train[1], group=train[2].sizes, params={"verbosity": -1})

    def record(scores: FloatArray, _: Any) -> tuple[str, float, bool]:
        history.append(measured.per_query(validation[1], scores, qid=validation[2]))
        return "kept", 0.0, True

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # metrics without standardization are part of the question
        objective = cc.objectives.lightgbm(metric, OWN[how][0], lift=OWN[how][1]) if how in OWN else how
        settings: dict[str, Any] = {
            "objective": objective,
            "metric": "None",
            "num_leaves": 15,
            "learning_rate": 0.05,
        }
        settings |= {"verbosity": -1, "num_threads": 1, "seed": 0, "deterministic": True}
        beside = data.create_valid(validation[0], validation[1], group=validation[2].sizes)
        lgb.train(settings, data, trees, valid_sets=[beside], feval=record)
    return _cross_halves(np.array(history))


def _sort_rows(part: cc.RankingData) -> tuple[FloatArray, FloatArray, cc.Queries]:
    """Features, grades and queries, rows of a query adjacent."""
    queries = cc.Queries.from_ids(part.qid)
    return queries.gather(part.X), queries.gather(np.asarray(part.y, dtype=float)), queries


def _cross_halves(values: FloatArray) -> float:
    """Mean over queries at the best round of the other half of them; values by round and query."""
    means = []
    for seed in range(HALVES):
        side = np.random.default_rng(seed).permutation(values.shape[1]) % 2
        rounds = [np.nanmean(values[:, side == half], axis=1).argmax() for half in (0, 1)]
        means.append(np.nanmean(np.where(side == 1, values[rounds[0]], values[rounds[1]])))
    return float(np.mean(means))
