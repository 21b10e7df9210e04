"""Boosted trees: what our objectives and metrics cost in the libraries' rounds, against the libraries' own.

On synthetic sets of the shape of public ones. How well anything ranks is `python -m studies boosting`.
"""

import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

import concordant as cc
from benchmarks.shared.shapes import MSLR, Set, Shape
from benchmarks.shared.tables import Table
from benchmarks.shared.timing import race
from concordant._base.segments import n_threads
from concordant.surrogates import Pairwise, Softmax, Squared, Surrogate

MQ2008 = Shape("MQ2008", 15_211, 46, 784, (0.807, 0.132, 0.061))
OURS: tuple[Surrogate, ...] = (Squared(), Softmax(), Pairwise())
LEAVES, RATE, ROWS, SHARE_GOAL = 15, 0.05, 20, 0.15
PEERS = {
    "lightgbm": ("lambdarank", "rank_xendcg"),
    "xgboost": ("rank:ndcg", "rank:pairwise"),
    "catboost": ("YetiRank", "QueryRMSE", "QuerySoftMax"),
}
METRIC = "ndcg@10"

Call = Callable[[], object]


def run(*, quick: bool) -> list[Table]:
    """All tables of this suite."""
    if quick:
        few = [Set.random(MQ2008.part(0.03))]
        return [_one_round(few, 1, 2), _against_own(few, 1, 2), _stopping(few, 1)]
    sets = [Set.random(MQ2008), Set.random(MSLR.part(200 / 723))]
    return [_one_round(sets, 3, 30), _against_own(sets, 3, 30), _stopping(sets, 5)]


def _installed() -> list[str]:
    return [name for name in PEERS if find_spec(name) is not None]


def _size(data: Set) -> str:
    return f"{len(data.y):,} x {data.X.shape[1]}"


def _light(objective: Any, trees: int, dataset: Any) -> Any:
    """LightGBM, from a Dataset that is there."""
    import lightgbm

    parameters = {
        "num_leaves": LEAVES,
        "learning_rate": RATE,
        "min_data_in_leaf": ROWS,
        "force_col_wise": True,
    }
    parameters |= {"num_threads": n_threads(), "verbosity": -1, "metric": "None", "objective": objective}
    return lightgbm.train(parameters, dataset, trees)


def _extreme(objective: Any, trees: int, dataset: Any) -> Any:
    """XGBoost, from a matrix that is there."""
    import xgboost

    parameters = {"max_leaves": LEAVES, "grow_policy": "lossguide", "max_depth": 0, "learning_rate": RATE}
    parameters |= {"nthread": n_threads(), "base_score": 0.0, "disable_default_eval_metric": 1}
    named = isinstance(objective, str)
    parameters |= {"objective": objective} if named else {}
    return xgboost.train(parameters, dataset, trees, obj=None if named else objective)


def _cat(objective: Any, trees: int, dataset: Any) -> Any:
    """CatBoost, from a Pool that is there."""
    import catboost

    parameters = {"grow_policy": "Lossguide", "max_leaves": LEAVES, "depth": 16, "learning_rate": RATE}
    parameters |= {"thread_count": n_threads(), "iterations": trees, "loss_function": objective}
    quiet = {"logging_level": "Silent", "allow_writing_files": False, "bootstrap_type": "No"}
    return catboost.CatBoost(parameters | quiet | {"min_data_in_leaf": ROWS}).fit(dataset)


LIBRARIES = {"lightgbm": _light, "xgboost": _extreme, "catboost": _cat}


def _dataset(library: str, data: Set) -> Any:
    """The library's own form of the data."""
    if library == "lightgbm":
        import lightgbm

        settings = {"verbosity": -1, "force_col_wise": True, "num_threads": n_threads()}
        return lightgbm.Dataset(
            data.X, label=data.y, group=np.diff(data.offsets), params=settings
        ).construct()
    if library == "xgboost":
        import xgboost

        return xgboost.QuantileDMatrix(data.X, label=data.y, qid=data.qid)
    import catboost

    return catboost.Pool(data.X, data.y, group_id=data.qid)


class TimedObjective:
    """An objective, and the time spent in it."""

    def __init__(self, objective: Callable[..., Any]) -> None:
        self.objective, self.seconds = objective, 0.0

    def __deepcopy__(self, memo: dict) -> "TimedObjective":
        return self

    def __call__(self, scores: np.ndarray, data: Any) -> Any:
        start = time.perf_counter()
        result = self.objective(scores, data)
        self.seconds += time.perf_counter() - start
        return result


def _shares(
    library: str, data: Set, ready: Any, surrogate: Surrogate, trees: int
) -> tuple[float, float, float]:
    """Share of the objective in the time of all rounds; milliseconds of it and of a round."""
    objective = getattr(cc.objectives, library)(METRIC, surrogate)
    objective(np.zeros(len(data.y)), ready)  # compiles, and binds the labels
    timed = TimedObjective(objective)
    start = time.perf_counter()
    LIBRARIES[library](timed, trees, ready)
    took = time.perf_counter() - start
    return timed.seconds / took, timed.seconds / trees * 1e3, took / trees * 1e3


def _one_round(sets: list[Set], rounds: int, trees: int) -> Table:
    """Share of a round that is spent in our objective."""
    table = Table(
        "The objective in a round",
        f"`cc.objectives` for {METRIC}, {LEAVES} leaves, {trees} trees, {n_threads()} threads; medians of "
        f"{rounds} trainings from datasets that are there. Goal: less than {SHARE_GOAL:.0%} of a round.",
        ("documents", "library", "surrogate", "share", "objective, ms", "round, ms", "reached"),
    )
    for data in sets:
        for library in _installed()[:2]:
            ready = _dataset(library, data)
            for surrogate in OURS:
                measurements = [_shares(library, data, ready, surrogate, trees) for _ in range(rounds)]
                share, spent, whole = np.median(measurements, axis=0).tolist()
                reached = "yes" if share < SHARE_GOAL else "no"
                table.rows.append((_size(data), library, surrogate.name, share, spent, whole, reached))
    if not table.rows:
        table.add_text("neither LightGBM nor XGBoost is installed")
    return table


def _trainings(library: str, data: Set, trees: int) -> Iterator[tuple[str, Call]]:
    """The library's own objectives, and ours, at equal trees; all from the same dataset."""
    ready = _dataset(library, data)
    for objective in PEERS[library]:
        yield objective, lambda o=objective: LIBRARIES[library](o, trees, ready)
    for surrogate in OURS:
        if library == "catboost":
            continue
        custom = getattr(cc.objectives, library)(METRIC, surrogate)
        yield f"ours, {surrogate.name}", lambda o=custom: LIBRARIES[library](o, trees, ready)
    model = cc.BoostedRanker(METRIC, booster=library, n_estimators=trees, n_jobs=n_threads())
    yield "BoostedRanker.fit, from arrays", lambda: model.fit(data.X, data.y, qid=data.qid)
    first = PEERS[library][0]
    yield f"{first}, from arrays", lambda: LIBRARIES[library](first, trees, _dataset(library, data))


def _against_own(sets: list[Set], rounds: int, trees: int) -> Table:
    """Trainings at equal trees, against the libraries' own objectives."""
    table = Table(
        "Against the libraries' own objectives",
        f"Seconds for {trees} trees of {LEAVES} leaves at {n_threads()} threads, relative to the library's "
        "first objective (lambdarank, rank:ndcg, YetiRank) in the same round of the race, from datasets that "
        "are there; or from arrays, the dataset made in the time. Goal: not slower than that objective.",
        ("documents", "library", "objective", "/ first", "seconds"),
    )
    for data in sets:
        for library in _installed():
            calls = dict(_trainings(library, data, trees))
            timings = race(calls, title=f"{library}, {_size(data)}", rounds=rounds, most=1)
            for name in calls:
                ratio = timings.ratio(name, PEERS[library][0])
                table.rows.append((_size(data), library, name, ratio, timings.median(name)))
    if not table.rows:
        table.add_text("no library is installed")
    return table


def _stopping(sets: list[Set], rounds: int) -> Table:
    """One evaluation of held-out queries, by our metric and by the library's."""
    table = Table(
        "One evaluation of held-out queries",
        f"{METRIC} of scores that are there, on all documents: what early stopping adds to a round. "
        "XGBoost's own is called through `Booster.eval_set`, which also looks its scores up.",
        ("documents", "library", "ours / its own", "ours, ms", "its own, ms"),
    )
    for data in sets:
        for library, calls in _evaluations(data):
            timings = race(calls, title=f"metric, {_size(data)}", rounds=rounds)
            ours, theirs = (timings.median(name) * 1e3 for name in ("ours", "own"))
            table.rows.append((_size(data), library, timings.ratio("ours", "own"), ours, theirs))
    if not table.rows:
        table.add_text("neither LightGBM nor XGBoost is installed")
    return table


def _evaluations(data: Set) -> Iterator[tuple[str, dict[str, Call]]]:
    """Both metrics at the scores of one tree."""
    if "lightgbm" in _installed():
        import lightgbm

        train = _dataset("lightgbm", data)
        for_library = {"objective": "lambdarank", "verbosity": -1, "num_threads": n_threads()}
        held_out = train.create_valid(data.X, label=data.y, group=np.diff(data.offsets))
        boosters = []
        for metric in ("ndcg", "None"):
            booster = lightgbm.Booster({**for_library, "metric": metric, "eval_at": 10}, train)
            booster.add_valid(held_out, "held")
            booster.update()
            boosters.append(booster)
        feval = cc.objectives.lightgbm_metric(METRIC)
        calls: dict[str, Call] = {
            "own": boosters[0].eval_valid,
            "ours": lambda: boosters[1].eval_valid(feval),
        }
        yield "lightgbm", calls
    if "xgboost" in _installed():
        import xgboost

        matrix = _dataset("xgboost", data)
        parameters = {"objective": "rank:ndcg", "eval_metric": METRIC, "nthread": n_threads()}
        booster = xgboost.train(parameters, matrix, 1)
        custom = cc.objectives.xgboost_metric(METRIC)
        scores = booster.predict(matrix)
        yield (
            "xgboost",
            {"own": lambda: booster.eval_set([(matrix, "held")]), "ours": lambda: custom(scores, matrix)},
        )
