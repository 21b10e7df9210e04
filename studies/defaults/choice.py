"""What `LinearRanker(surrogate="auto")` should be: every surrogate for every metric, validated penalties.

The LETOR sets are read from CONCORDANT_DATA; their terms forbid shipping them, so without them only the
synthetic tables are made.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping

import numpy as np

import concordant as cc
from benchmarks.shared.tables import Table
from concordant.exceptions import DatasetNotFoundError
from concordant.surrogates import Pairwise, PlackettLuce, Preorder, Softmax, Squared, Surrogate
from concordant.theory import regret
from concordant.types import FloatArray

Step = Callable[[str], None]

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


def n_steps(*, quick: bool) -> int:
    """Number of times that `run` calls its `step`, at most: sets that are not here are left out."""
    sets, metrics = (1, 1) if quick else (len(SETS), len(METRICS))
    return sets * (metrics + min(metrics, 2)) + 2 * len(ORDERS)


def run(*, quick: bool, step: Step) -> list[Table]:
    """Return tables of test scores on real sets and of the shortfall, and one of exact regret.

    Parameters
    ----------
    quick
        One set, one metric, one fold, small data: shows that it runs.
    step
        Called with the name of each part of the work before it begins.
    """
    sets, metrics, folds = (SETS[:1], METRICS[1:2], (1,)) if quick else (SETS, METRICS, (1, 2, 3, 4, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # metrics without standardization are part of the question
        tables = []
        for scaled in (True, False):
            rows = list(
                _real_set_rows(sets, metrics if scaled else metrics[:2], folds, scaled=scaled, step=step)
            )
            title = "Test score by surrogate, " + ("features scaled" if scaled else "features as they are")
            tables += [Table(title, NOTE, ("set", "metric", *ITEMS), rows)] if rows else []
            tables += [_shortfall_table(rows)] if rows and scaled else []
        rows = list(_exact_rows(3 if quick else 20, quick=quick, step=step))
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


def _real_set_rows(
    sets: Iterable[str], metrics: Iterable[str], folds: Iterable[int], *, scaled: bool, step: Step
) -> Iterable[tuple[str, ...]]:
    """Rows of the table on real sets."""
    for name in sets:
        try:
            parts = [cc.datasets.load(name, fold=fold) for fold in folds]
        except DatasetNotFoundError:
            continue
        for metric in metrics:
            step(f"{name}: {metric}")
            cells = (_test_cell(metric, kind, parts, scaled=scaled) for kind in ITEMS.values())
            yield name, metric, *cells


def _shortfall_table(rows: list[tuple[str, ...]]) -> Table:
    """Distance of each consistent surrogate to the best of them, in percent: the mean over the sets."""
    lost: dict[str, list[FloatArray]] = {}
    for _, metric, *cells in rows:
        values = np.array([float(cell.split()[0]) for cell in cells[: len(CONSISTENT)]])
        lost.setdefault(metric, []).append(100.0 * (values.max() - values) / abs(values.max()))
    means = {metric: np.mean(some, axis=0) for metric, some in lost.items()}
    means["all"] = np.mean(list(means.values()), axis=0)
    body = [(metric, *(f"{mean:.2f}" for mean in some)) for metric, some in means.items()]
    return Table("Shortfall in percent, features scaled", SHORT, ("metric", *CONSISTENT), body)


def _test_cell(metric: str, kind: Surrogate, parts: list[cc.datasets.Fold], *, scaled: bool) -> str:
    """Mean test score over the folds, and the median penalty."""
    target_metric, values, alphas = cc.metric(metric), [], []
    for part in parts:
        model = cc.LinearRankerCV(metric=target_metric, surrogate=kind, alphas=ALPHAS, fit_scale=scaled)
        train, test = part.train, part.test
        model.fit(train.X, train.y, qid=train.qid, eval_set=part.validation)
        values.append(target_metric.per_query(test.y, model.predict(test.X), qid=test.qid))
        alphas.append(np.log10(model.alpha_))
    mean = np.nanmean(np.concatenate(values)) * (1.0 if target_metric.greater_is_better else -1.0)
    return f"{mean:.4f} ({np.median(alphas):.0f})"


def _exact_rows(seeds: int, *, quick: bool, step: Step) -> Iterable[tuple[str, ...]]:
    """Rows of the table on synthetic preferences and permutations."""
    settings: dict[str, tuple[Callable[..., cc.synthetic.Synthetic], str, str]] = {
        "preferences": (cc.synthetic.preferences, "pd", "low_noise"),
        "permutations": (cc.synthetic.permutations, "zero_one", "order_preserving"),
    }
    for name, (generate, metric, assume) in settings.items():
        cells = []
        for label, kind in ORDERS.items():
            step(f"{name}: {label}")
            if kind.reads == "positions" and name != "permutations":
                cells.append("-")
                continue
            regrets = [
                _exact_regret(generate, metric, kind, assume, seed, quick=quick) for seed in range(seeds)
            ]
            cells.append(f"{np.mean(regrets):.4f} ± {np.std(regrets) / np.sqrt(len(regrets)):.4f}")
        yield name, metric, *cells


def _exact_regret(
    generate: Callable[..., cc.synthetic.Synthetic],
    metric: str,
    kind: Surrogate,
    assume: str,
    seed: int,
    *,
    quick: bool,
) -> float:
    """Exact regret of one fitted ranker on the queries it was trained on, whose labels are drawn but once."""
    toy = generate(n_queries=20 if quick else 100, n_items=5, n_features=5, seed=seed)
    alphas = ALPHAS[2:6] if quick else ALPHAS
    model = cc.LinearRankerCV(metric=metric, surrogate=kind, alphas=alphas, assume=assume)
    model.fit(toy.X, toy.y, qid=toy.qid)
    return float(np.mean(regret.regret(metric, toy.distribution, model.predict(toy.X))))
