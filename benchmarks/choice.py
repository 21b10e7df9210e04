"""What `surrogate="auto"` should be: every surrogate trained for every metric, the penalty by validation.

The LETOR sets are read from CONCORDANT_DATA; their terms forbid shipping them, so without them only the
synthetic tables are made.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping

import numpy as np

import concordant as cc
from benchmarks.tables import Table
from benchmarks.timing import watched
from concordant.exceptions import DatasetNotFoundError
from concordant.surrogates import Pairwise, PlackettLuce, Preorder, Softmax, Squared, Surrogate
from concordant.theory import regret

SETS = ("mq2008", "mq2007-partial", "ohsumed")
METRICS = ("ndcg", "ndcg@10", "dcg@10", "err[max_grade=2]", "ap", "p@10", "rr", "eru", "auc", "wpd")
CONSISTENT: Mapping[str, Surrogate] = {
    "squared": Squared(),
    "pairwise": Pairwise(),
    "pairwise, 1/n(n-1)": Pairwise(normalize=True),
    "logistic, 1/n(n-1)": Pairwise("logistic", normalize=True),
    "softmax": Softmax(),
}
ITEMS = {**CONSISTENT, "preorder gain": Preorder("gain")}
ORDERS = {**CONSISTENT, "plackett_luce": PlackettLuce()}
ALPHAS = 10.0 ** np.arange(2.0, -7.0, -1.0)


def run(*, quick: bool) -> list[Table]:
    """One table on real sets, for each metric and set; one on synthetic preferences and orders."""
    sets, metrics, folds = (SETS[:1], METRICS[1:2], (1,)) if quick else (SETS, METRICS, (1, 2, 3, 4, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # metrics without standardization are part of the question
        tables = []
        for scaled in (True, False):
            rows = list(graded(sets, metrics if scaled else metrics[:2], folds, scaled=scaled))
            title = "Test score by surrogate, " + ("features scaled" if scaled else "features as they are")
            tables += [Table(title, NOTE, ("set", "metric", *ITEMS), rows)] if rows else []
            tables += [shortfall(rows)] if rows and scaled else []
        rows = list(exact(3 if quick else 20, quick=quick))
        labels = Table("Exact regret on synthetic labels", EXACT, ("labels", "metric", *ORDERS), rows)
        return [*tables, labels]


NOTE = (
    "Mean over the test queries of five folds; higher is better (wpd is negated). The penalty is chosen on "
    "the validation part by the same metric. In brackets the median penalty chosen, as a power of ten."
)
EXACT = "Mean regret over seeds, lower is better, with its standard error; 100 queries, penalty by 5 folds."
SHORT = (
    "How far below the best of the same set, mean over the sets; 0 is best. `auto` takes the lowest, "
    "except that softmax stands for dcg too, where logistic is ahead by less than the noise."
)


def graded(
    sets: Iterable[str], metrics: Iterable[str], folds: Iterable[int], *, scaled: bool
) -> Iterable[tuple[str, ...]]:
    """Rows of the table on real sets."""
    for name in sets:
        try:
            parts = [cc.datasets.load(name, fold=fold) for fold in folds]
        except DatasetNotFoundError:
            print(f"{name} is not here (set CONCORDANT_DATA): left out")
            continue
        for metric in watched(metrics, f"{name}: metrics"):
            cells = (tested(metric, kind, parts, scaled=scaled) for kind in ITEMS.values())
            yield name, metric, *cells


def shortfall(rows: list[tuple[str, ...]]) -> Table:
    """How far each consistent surrogate is below the best of them, in percent: the mean over the sets."""
    lost: dict[str, list[np.ndarray]] = {}
    for _, metric, *cells in rows:
        values = np.array([float(cell.split()[0]) for cell in cells[: len(CONSISTENT)]])
        lost.setdefault(metric, []).append(100.0 * (values.max() - values) / abs(values.max()))
    means = {metric: np.mean(some, axis=0) for metric, some in lost.items()}
    means["all"] = np.mean(list(means.values()), axis=0)
    body = [(metric, *(f"{mean:.2f}" for mean in some)) for metric, some in means.items()]
    return Table("Shortfall in percent, features scaled", SHORT, ("metric", *CONSISTENT), body)


def tested(metric: str, kind: Surrogate, parts: list, *, scaled: bool) -> str:
    """Mean test score over the folds, and the median penalty."""
    chosen, values, alphas = cc.metric(metric), [], []
    for part in parts:
        model = cc.LinearRankerCV(metric=chosen, surrogate=kind, alphas=ALPHAS, fit_scale=scaled)
        train, test = part.train, part.test
        model.fit(train.X, train.y, qid=train.qid, validation=part.validation)
        values.append(chosen.per_query(test.y, model.predict(test.X), qid=test.qid))
        alphas.append(np.log10(model.alpha_))
    mean = np.nanmean(np.concatenate(values)) * (1.0 if chosen.greater_is_better else -1.0)
    return f"{mean:.4f} ({np.median(alphas):.0f})"


def exact(seeds: int, *, quick: bool) -> Iterable[tuple[str, ...]]:
    """Rows of the table on synthetic preferences and permutations."""
    made: dict[str, tuple[Callable, str, str]] = {
        "preferences": (cc.synthetic.preferences, "pd", "low_noise"),
        "permutations": (cc.synthetic.permutations, "zero_one", "order_preserving"),
    }
    for name, (generate, metric, assume) in made.items():
        cells = []
        for label, kind in ORDERS.items():
            if kind.reads == "positions" and name != "permutations":
                cells.append("-")
                continue
            tries = watched(range(seeds), f"{name}: {label}")
            found = [one_regret(generate, metric, kind, assume, seed, quick=quick) for seed in tries]
            cells.append(f"{np.mean(found):.4f} ± {np.std(found) / np.sqrt(len(found)):.4f}")
        yield name, metric, *cells


def one_regret(
    generate: Callable, metric: str, kind: Surrogate, assume: str, seed: int, *, quick: bool
) -> float:
    """Exact regret of one fitted ranker on the queries it was trained on, whose labels are drawn but once."""
    toy = generate(n_queries=20 if quick else 100, n_items=5, n_features=5, seed=seed)
    alphas = ALPHAS[2:6] if quick else ALPHAS
    model = cc.LinearRankerCV(metric=metric, surrogate=kind, alphas=alphas, assume=assume)
    model.fit(toy.X, toy.y, qid=toy.qid)
    return float(np.mean(regret.regret(metric, toy.distribution, model.predict(toy.X))))
