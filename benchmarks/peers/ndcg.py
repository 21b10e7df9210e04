"""The peers that compute NDCG@10, each called as its users do; what they need beforehand is built untimed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant._base.segments import n_threads


@dataclass(frozen=True)
class Lists:
    """Ragged graded lists; scores differ within a list and are exact in float32, which XGBoost stores."""

    y: np.ndarray
    scores: np.ndarray
    qid: np.ndarray
    sizes: np.ndarray

    @classmethod
    def random(cls, n_queries: int, seed: int = 0) -> "Lists":
        """Lists of 20 to 200 documents, grades 0..4, scores that know a little about the grades."""
        rng = np.random.default_rng(seed)
        sizes = rng.integers(20, 201, n_queries)
        y = rng.choice(5, sizes.sum(), p=[0.5, 0.2, 0.15, 0.1, 0.05])
        scores = np.argsort(np.argsort(rng.standard_normal(len(y)) + 0.5 * y)) / 2**20
        return cls(y, scores, np.repeat(np.arange(n_queries), sizes), sizes)

    def first(self, n_queries: int) -> "Lists":
        """Only the first queries."""
        rows = slice(0, int(self.sizes[:n_queries].sum()))
        return Lists(self.y[rows], self.scores[rows], self.qid[rows], self.sizes[:n_queries])

    def pieces(self, values: np.ndarray) -> list[np.ndarray]:
        """Values of each list."""
        return np.split(values, self.sizes.cumsum()[:-1])


@dataclass(frozen=True)
class Peer:
    """A timed call, how to read NDCG@10 from what it gives, and the convention of ours that equals it."""

    name: str
    timed: str
    threads: str
    convention: str
    lists: Lists
    call: Callable[[], Any]
    value: Callable[[Any], float] = float


def lightgbm(lists: Lists) -> Peer:
    import lightgbm

    features = np.zeros((len(lists.y), 1))
    data = lightgbm.Dataset(features, lists.y, group=lists.sizes, init_score=lists.scores)
    parameters = {"objective": "lambdarank", "metric": "ndcg", "eval_at": 10, "verbose": -1}
    booster = lightgbm.Booster(parameters | {"num_threads": n_threads()}, data)
    timed = "`Booster.eval_train()`, scores given as init_score; Dataset and Booster built before"
    return Peer("LightGBM", timed, "all", "lightgbm", lists, booster.eval_train, lambda result: result[0][2])


def xgboost(lists: Lists) -> Peer:
    import xgboost

    features = np.zeros((len(lists.y), 1))
    data = xgboost.DMatrix(features, label=lists.y, group=lists.sizes, base_margin=lists.scores)
    parameters = {"objective": "rank:pairwise", "eval_metric": "ndcg@10", "nthread": n_threads()}
    booster = xgboost.Booster(parameters, [data])
    timed = "`Booster.eval(data)`, scores given as base_margin, no trees; DMatrix and Booster built before"
    call, value = lambda: booster.eval(data), lambda result: float(result.rpartition(":")[2])
    return Peer("XGBoost", timed, "all", "xgboost", lists, call, value)


def catboost(lists: Lists) -> Peer:
    from catboost.utils import eval_metric

    def call() -> Any:
        return eval_metric(lists.y, lists.scores, "NDCG:top=10", group_id=lists.qid, thread_count=n_threads())

    timed = "`catboost.utils.eval_metric` on arrays"
    return Peer("CatBoost", timed, "all", "catboost", lists, call, lambda result: result[0])


def pytrec_eval(lists: Lists) -> Peer:
    import pytrec_eval

    grades, run = _trec(lists)
    evaluator = pytrec_eval.RelevanceEvaluator(grades, {"ndcg_cut.10"})
    timed = "`RelevanceEvaluator.evaluate(run)`, per query, not averaged; evaluator and dicts built before"

    def value(result: dict) -> float:
        return np.mean([row["ndcg_cut_10"] for row in result.values()])

    return Peer("pytrec_eval", timed, "1", "trec_eval", lists, lambda: evaluator.evaluate(run), value)


def ranx(lists: Lists) -> Peer:
    import ranx

    grades, run = (part(values) for part, values in zip((ranx.Qrels, ranx.Run), _trec(lists), strict=True))
    timed = "`ranx.evaluate(qrels, run)`; both built, compiled and sorted before"
    return Peer("ranx", timed, "all", "ranx", lists, lambda: ranx.evaluate(grades, run, "ndcg@10"))


def sklearn(lists: Lists) -> Peer:
    from sklearn.metrics import ndcg_score

    few = lists.first(500)
    pairs = list(zip(few.pieces(few.y), few.pieces(few.scores), strict=True))
    timed = f"`ndcg_score` of each query in a loop; the first {len(pairs)} queries, per document"

    def call() -> float:
        return np.mean([ndcg_score([y], [scores], k=10) for y, scores in pairs])

    return Peer("scikit-learn", timed, "1", "sklearn", few, call)


def _trec(lists: Lists) -> tuple[dict, dict]:
    """Grades and scores as nested dicts by query and document; text order is number order."""
    names = [f"d{row:07d}" for row in range(len(lists.y))]
    documents = lists.pieces(np.array(names, dtype=object))
    return tuple(
        {
            f"q{q:05d}": dict(zip(ids, part.tolist(), strict=True))
            for q, (ids, part) in enumerate(zip(documents, lists.pieces(values), strict=True))
        }
        for values in (lists.y, lists.scores)
    )


BUILDERS = (ranx, pytrec_eval, lightgbm, xgboost, catboost, sklearn)
