"""Boosted trees: what our objectives and metrics cost in the libraries' rounds, against the libraries' own.

On synthetic sets of the shape of public ones. How well anything ranks is `concordant reproduce boosting`.
"""

import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

import concordant as cc
from benchmarks.shapes import MSLR, Set, Shape
from benchmarks.tables import Table
from benchmarks.timing import race
from concordant._segments import n_threads
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
        return [one_round(few, 1, 2), against_own(few, 1, 2), stopping(few, 1)]
    sets = [Set.random(MQ2008), Set.random(MSLR.part(200 / 723))]
    return [one_round(sets, 3, 30), against_own(sets, 3, 30), stopping(sets, 5)]


def installed() -> list[str]:
    return [name for name in PEERS if find_spec(name) is not None]


def size(data: Set) -> str:
    return f"{len(data.y):,} x {data.X.shape[1]}"


def light(objective: Any, trees: int, dataset: Any) -> Any:
    """LightGBM, from a Dataset that is there."""
    import lightgbm

    given = {"num_leaves": LEAVES, "learning_rate": RATE, "min_data_in_leaf": ROWS, "force_col_wise": True}
    given |= {"num_threads": n_threads(), "verbosity": -1, "metric": "None", "objective": objective}
    return lightgbm.train(given, dataset, trees)


def extreme(objective: Any, trees: int, dataset: Any) -> Any:
    """XGBoost, from a matrix that is there."""
    import xgboost

    given = {"max_leaves": LEAVES, "grow_policy": "lossguide", "max_depth": 0, "learning_rate": RATE}
    given |= {"nthread": n_threads(), "base_score": 0.0, "disable_default_eval_metric": 1}
    named = isinstance(objective, str)
    given |= {"objective": objective} if named else {}
    return xgboost.train(given, dataset, trees, obj=None if named else objective)


def cat(objective: Any, trees: int, dataset: Any) -> Any:
    """CatBoost, from a Pool that is there."""
    import catboost

    given = {"grow_policy": "Lossguide", "max_leaves": LEAVES, "depth": 16, "learning_rate": RATE}
    given |= {"thread_count": n_threads(), "iterations": trees, "loss_function": objective}
    quiet = {"logging_level": "Silent", "allow_writing_files": False, "bootstrap_type": "No"}
    return catboost.CatBoost(given | quiet | {"min_data_in_leaf": ROWS}).fit(dataset)


LIBRARIES = {"lightgbm": light, "xgboost": extreme, "catboost": cat}


def dataset(library: str, data: Set) -> Any:
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


class Timed:
    """An objective, and the time spent in it."""

    def __init__(self, own: Callable[..., Any]) -> None:
        self.own, self.seconds = own, 0.0

    def __deepcopy__(self, memo: dict) -> "Timed":
        return self

    def __call__(self, scores: np.ndarray, data: Any) -> Any:
        start = time.perf_counter()
        found = self.own(scores, data)
        self.seconds += time.perf_counter() - start
        return found


def shares(
    library: str, data: Set, ready: Any, surrogate: Surrogate, trees: int
) -> tuple[float, float, float]:
    """Share of the objective in the time of all rounds; milliseconds of it and of a round."""
    objective = getattr(cc.objectives, library)(METRIC, surrogate)
    objective(np.zeros(len(data.y)), ready)  # compiles, and binds the labels
    timed = Timed(objective)
    start = time.perf_counter()
    LIBRARIES[library](timed, trees, ready)
    took = time.perf_counter() - start
    return timed.seconds / took, timed.seconds / trees * 1e3, took / trees * 1e3


def one_round(sets: list[Set], rounds: int, trees: int) -> Table:
    """What of a round is spent in our objective."""
    table = Table(
        "The objective in a round",
        f"`cc.objectives` for {METRIC}, {LEAVES} leaves, {trees} trees, {n_threads()} threads; medians of "
        f"{rounds} trainings from datasets that are there. Goal: less than {SHARE_GOAL:.0%} of a round.",
        ("documents", "library", "surrogate", "share", "objective, ms", "round, ms", "reached"),
    )
    for data in sets:
        for library in installed()[:2]:
            ready = dataset(library, data)
            for surrogate in OURS:
                found = [shares(library, data, ready, surrogate, trees) for _ in range(rounds)]
                share, own, whole = np.median(found, axis=0).tolist()
                reached = "yes" if share < SHARE_GOAL else "no"
                table.rows.append((size(data), library, surrogate.name, share, own, whole, reached))
    if not table.rows:
        table.rows.append(("neither LightGBM nor XGBoost is installed", *[None] * 6))
    return table


def trainings(library: str, data: Set, trees: int) -> Iterator[tuple[str, Call]]:
    """The library's own objectives, and ours, at equal trees; all from the same dataset."""
    ready = dataset(library, data)
    for objective in PEERS[library]:
        yield objective, lambda o=objective: LIBRARIES[library](o, trees, ready)
    for surrogate in OURS:
        if library == "catboost":
            continue
        own = getattr(cc.objectives, library)(METRIC, surrogate)
        yield f"ours, {surrogate.name}", lambda o=own: LIBRARIES[library](o, trees, ready)
    model = cc.BoostedRanker(METRIC, booster=library, n_estimators=trees, n_jobs=n_threads())
    yield "BoostedRanker.fit, from arrays", lambda: model.fit(data.X, data.y, qid=data.qid)
    first = PEERS[library][0]
    yield f"{first}, from arrays", lambda: LIBRARIES[library](first, trees, dataset(library, data))


def against_own(sets: list[Set], rounds: int, trees: int) -> Table:
    """Trainings at equal trees, against the libraries' own objectives."""
    table = Table(
        "Against the libraries' own objectives",
        f"Seconds for {trees} trees of {LEAVES} leaves at {n_threads()} threads, relative to the library's "
        "first objective (lambdarank, rank:ndcg, YetiRank) in the same round of the race, from datasets that "
        "are there; or from arrays, the dataset made in the time. Goal: not slower than that objective.",
        ("documents", "library", "objective", "/ first", "seconds"),
    )
    for data in sets:
        for library in installed():
            calls = dict(trainings(library, data, trees))
            timings = race(calls, title=f"{library}, {size(data)}", rounds=rounds, most=1)
            for name in calls:
                ratio = timings.ratio(name, PEERS[library][0])
                table.rows.append((size(data), library, name, ratio, timings.median(name)))
    if not table.rows:
        table.rows.append(("no library is installed", *[None] * 4))
    return table


def stopping(sets: list[Set], rounds: int) -> Table:
    """One evaluation of held-out queries, by our metric and by the library's."""
    table = Table(
        "One evaluation of held-out queries",
        f"{METRIC} of scores that are there, on all documents: what early stopping adds to a round. "
        "XGBoost's own is called through `Booster.eval_set`, which also looks its scores up.",
        ("documents", "library", "ours / its own", "ours, ms", "its own, ms"),
    )
    for data in sets:
        for library, calls in evaluations(data):
            timings = race(calls, title=f"metric, {size(data)}", rounds=rounds)
            ours, own = (timings.median(name) * 1e3 for name in ("ours", "own"))
            table.rows.append((size(data), library, timings.ratio("ours", "own"), ours, own))
    if not table.rows:
        table.rows.append(("neither LightGBM nor XGBoost is installed", *[None] * 4))
    return table


def evaluations(data: Set) -> Iterator[tuple[str, dict[str, Call]]]:
    """Both metrics at the scores of one tree."""
    if "lightgbm" in installed():
        import lightgbm

        train = dataset("lightgbm", data)
        for_library = {"objective": "lambdarank", "verbosity": -1, "num_threads": n_threads()}
        held = train.create_valid(data.X, label=data.y, group=np.diff(data.offsets))
        boosters = []
        for metric in ("ndcg", "None"):
            booster = lightgbm.Booster({**for_library, "metric": metric, "eval_at": 10}, train)
            booster.add_valid(held, "held")
            booster.update()
            boosters.append(booster)
        feval = cc.objectives.lightgbm_metric(METRIC)
        calls: dict[str, Call] = {
            "own": boosters[0].eval_valid,
            "ours": lambda: boosters[1].eval_valid(feval),
        }
        yield "lightgbm", calls
    if "xgboost" in installed():
        import xgboost

        matrix = dataset("xgboost", data)
        given = {"objective": "rank:ndcg", "eval_metric": METRIC, "nthread": n_threads()}
        booster = xgboost.train(given, matrix, 1)
        own = cc.objectives.xgboost_metric(METRIC)
        scores = booster.predict(matrix)
        yield (
            "xgboost",
            {"own": lambda: booster.eval_set([(matrix, "held")]), "ours": lambda: own(scores, matrix)},
        )
