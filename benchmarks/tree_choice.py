"""What `BoostedRanker(surrogate="auto")` should be: losses and lifts compared on VALIDATION queries alone.

The LETOR sets are read from CONCORDANT_DATA; without them there is no table. LightGBM's own objectives stand
beside ours. Test queries of a fold are never read; those of one fold are validation queries of another.
"""

import warnings
from collections.abc import Mapping

import numpy as np
from joblib import Parallel, delayed

import concordant as cc
from benchmarks.tables import Table
from benchmarks.timing import watched
from concordant._segments import n_threads
from concordant.exceptions import DatasetNotFoundError
from concordant.supervision.datasets import Fold

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


def run(*, quick: bool) -> list[Table]:
    """One table for each metric."""
    metrics, folds, trees = (METRICS[:1], (1,), 5) if quick else (METRICS, (1, 2, 3, 4, 5), 400)
    sets = {"synthetic": [made()]} if quick else {name: loaded(name, folds) for name in SETS}
    sets = {name: parts for name, parts in sets.items() if parts}
    tasks = [
        (name, at, metric, how) for name in sets for at in folds for metric in metrics for how in METHODS
    ]
    with Parallel(n_threads(), return_as="generator") as pool:
        work = pool(
            delayed(held_out)(sets[name][at - 1], metric, how, trees) for name, at, metric, how in tasks
        )
        values = dict(zip(tasks, watched_from(work, len(tasks)), strict=True))
    found = []
    for metric in metrics if sets else ():
        rows = []
        for how in METHODS:
            means = [float(np.mean([values[name, at, metric, how] for at in folds])) for name in sets]
            rows.append((how, *(f"{mean:.4f}" for mean in (*means, np.mean(means)))))
        found.append(Table(f"{metric} on validation queries", NOTE, ("objective", *sets, "mean"), rows))
    return found


def watched_from(results, total):
    """Results as they come, with a progress bar."""
    steps = iter(watched(range(total), "training"))
    for result in results:
        next(steps)
        yield result


def made() -> Fold:
    """A synthetic set, where it is enough that it runs."""
    parts = [cc.synthetic.grades(n_queries=40, n_items=8, seed=seed) for seed in range(3)]
    return Fold(*(cc.RankingData(part.X, part.y, part.qid) for part in parts))


def loaded(name: str, folds: tuple[int, ...]) -> list[Fold]:
    """Folds of a set; none where it is not here."""
    try:
        return [cc.datasets.load(name, fold=fold) for fold in folds]
    except DatasetNotFoundError:
        print(f"{name} is not here (set CONCORDANT_DATA): left out")
        return []


def held_out(fold: Fold, metric: str, how: str, trees: int) -> float:
    """Mean of the metric over validation queries, the number of trees chosen on other ones."""
    import lightgbm as lgb

    measured, history = cc.metric(metric), []
    train, held = (sorted_rows(part) for part in (fold.train, fold.validation))
    data = lgb.Dataset(train[0], train[1], group=train[2].sizes, params={"verbosity": -1})

    def kept(scores, _):
        history.append(measured.per_query(held[1], scores, qid=held[2]))
        return "kept", 0.0, True

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # metrics without standardization are part of the question
        objective = cc.objectives.lightgbm(metric, OWN[how][0], lift=OWN[how][1]) if how in OWN else how
        settings = {"objective": objective, "metric": "None", "num_leaves": 15, "learning_rate": 0.05}
        settings |= {"verbosity": -1, "num_threads": 1, "seed": 0, "deterministic": True}
        beside = data.create_valid(held[0], held[1], group=held[2].sizes)
        lgb.train(settings, data, trees, valid_sets=[beside], feval=kept)
    return crossed(np.array(history))


def sorted_rows(part):
    """Features, grades and queries, rows of a query adjacent."""
    queries = cc.Queries.from_ids(part.qid)
    return queries.gather(part.X), queries.gather(np.asarray(part.y, dtype=float)), queries


def crossed(values: np.ndarray) -> float:
    """Mean over queries at the best round of the other half of them; values by round and query."""
    means = []
    for seed in range(HALVES):
        side = np.random.default_rng(seed).permutation(values.shape[1]) % 2
        rounds = [np.nanmean(values[:, side == one], axis=1).argmax() for one in (0, 1)]
        means.append(np.nanmean(np.where(side == 1, values[rounds[0]], values[rounds[1]])))
    return float(np.mean(means))
