"""The methods of `boosting`: the boosters' own objectives, and ours; all give scores stage by stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np

from concordant.evaluation.reproduction.boosting_trees import (
    LEAST_ROWS,
    RATE,
    SEED,
    Part,
    Plan,
    Shape,
    grown,
    options,
    staged,
)
from concordant.evaluation.reproduction.linear_paths import along, decades
from concordant.metrics import metric as read_metric
from concordant.rankers import LinearRanker
from concordant.rankers.boosted import BoostedRanker
from concordant.rankers.boosters import BOOSTERS
from concordant.rankers.boosters.plan import chosen_loss
from concordant.rankers.claim import knowingly
from concordant.supervision.data import RankingData
from concordant.surrogates import Pairwise, Softmax, Squared, Surrogate, squared_hinge
from concordant.types import FloatArray

__all__ = [
    "LIBRARIES",
    "OURS",
    "PEERS",
    "PENALTIES",
    "SURROGATES",
    "Boosted",
    "Linear",
    "Method",
    "Peer",
    "default_of",
]

# Files of this package that decide what a training gives: of another content they may give another result.
MEASURED = (
    "_segments.py",
    "metrics/**/*.py",
    "evaluation/reproduction/boosting_methods.py",
    "evaluation/reproduction/boosting_runs.py",
    "evaluation/reproduction/boosting_trees.py",
)
TRAINED = (*MEASURED, "rankers/recipe.py", "surrogates/**/*.py")
OF_TREES = (*TRAINED, "rankers/boosted*.py", "rankers/boosters/*.py")
OF_LINES = (
    *TRAINED,
    "evaluation/reproduction/linear_paths.py",
    "rankers/linear.py",
    "rankers/training.py",
    "solvers/**/*.py",
)

LIBRARIES = {"lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"}
PENALTIES = decades(4, -5)
SURROGATES: Mapping[str, Surrogate] = {
    "pairwise": Pairwise(),
    "pairwise, squared hinge": Pairwise(squared_hinge),
    "softmax": Softmax(),
    "squared": Squared(),
}


class Method(Protocol):
    """A way to learn scores that can be looked at along the way."""

    @property
    def name(self) -> str:
        """How it is called in tables."""

    @property
    def shaped(self) -> bool:
        """Whether it has trees, so that there are shapes to choose from."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Give patterns of the files of this package that decide what it gives."""

    def stages(self, plan: Plan) -> tuple[float, ...]:
        """Give what is chosen from."""

    def trained(self, train: Part, shape: Shape, plan: Plan) -> Any:
        """Give what was learned."""

    def scores(self, model: Any, X: FloatArray, plan: Plan) -> FloatArray:
        """Give the scores of the rows, one row a stage."""

    def recipe(self, shape: Shape) -> str:
        """Say whose code it is, and what it is told: another recipe is another training."""


@dataclass(frozen=True)
class Peer:
    """An objective of a booster, on the grades as they are.

    >>> Peer("xgboost", "rank:ndcg").name
    'XGBoost rank:ndcg'
    """

    library: str
    objective: str
    shaped = True
    sources = MEASURED

    @property
    def name(self) -> str:
        """Library and objective."""
        return f"{LIBRARIES[self.library]} {self.objective}"

    def stages(self, plan: Plan) -> tuple[float, ...]:
        """Numbers of trees."""
        return plan.stages

    def trained(self, train: Part, shape: Shape, plan: Plan) -> Any:
        """Give the library's model."""
        return grown(self.library, self.objective, train, shape, plan.trees)

    def scores(self, model: Any, X: FloatArray, plan: Plan) -> FloatArray:
        """Scores after each stage."""
        return staged(self.library, model, X, plan)

    def recipe(self, shape: Shape) -> str:
        """Version and options of the library."""
        return f"{self.library} {version(self.library)} {options(self.library, self.objective, shape)}"


@dataclass(frozen=True)
class Linear:
    """`LinearRanker` for a metric: its own surrogate, penalties for stages.

    >>> Linear("ap").name
    'linear for ap'
    """

    metric: str
    shaped = False
    sources = OF_LINES

    @property
    def name(self) -> str:
        """What it is trained for."""
        return f"linear for {self.metric}"

    def stages(self, plan: Plan) -> tuple[float, ...]:
        """Penalties, largest first."""
        del plan
        return tuple(PENALTIES.tolist())

    def ranker(self) -> LinearRanker:
        """Give the ranker, penalties still to come."""
        return LinearRanker(self.metric)

    def trained(self, train: Part, shape: Shape, plan: Plan) -> FloatArray:
        """Give the weights at each penalty, one row each."""
        del shape, plan
        data = RankingData(train.X, train.y, train.queries.codes)
        path = along(self.ranker(), data, train.queries, PENALTIES)
        return np.stack([model.coef_ for model in path])

    def scores(self, model: FloatArray, X: FloatArray, plan: Plan) -> FloatArray:
        """Scores at each penalty."""
        del plan
        return np.ascontiguousarray((X @ model.T).T)

    def recipe(self, shape: Shape) -> str:
        """Version and options of the ranker."""
        del shape
        return f"concordant {version('concordant')} {self.ranker().get_params()}"


@dataclass(frozen=True)
class Boosted:
    """`BoostedRanker` for a metric: a surrogate on the metric's standardized labels, in a booster.

    >>> Boosted("ap", "squared", "lightgbm").name
    'LightGBM squared for ap'
    """

    metric: str
    surrogate: str
    library: str
    shaped = True
    sources = OF_TREES

    @property
    def name(self) -> str:
        """Library, surrogate and what it is trained for."""
        return f"{LIBRARIES[self.library]} {self.surrogate} for {self.metric}"

    def stages(self, plan: Plan) -> tuple[float, ...]:
        """Numbers of trees."""
        return plan.stages

    def ranker(self, shape: Shape, trees: int) -> BoostedRanker:
        """Give the ranker: trees of the shape that the library's own objectives have, but our penalties."""
        symmetric = self.library == "catboost"
        return BoostedRanker(
            self.metric,
            SURROGATES[self.surrogate],
            booster=self.library,
            n_estimators=trees,
            learning_rate=RATE,
            max_leaf_nodes=None if symmetric else shape.leaves,
            max_depth=shape.depth if symmetric else None,
            min_samples_leaf=LEAST_ROWS,
            random_state=SEED,
            n_jobs=1,
        )

    def trained(self, train: Part, shape: Shape, plan: Plan) -> Any:
        """Give the library's model."""
        with knowingly():  # AP has its condition, which is said in the documentation
            fitted = self.ranker(shape, plan.trees).fit(train.X, train.y, qid=train.queries)
        return fitted.booster_

    def scores(self, model: Any, X: FloatArray, plan: Plan) -> FloatArray:
        """Scores after each stage."""
        return staged(self.library, model, X, plan)

    def recipe(self, shape: Shape) -> str:
        """Versions of the library and of ours, options of the ranker, and what "auto" means in them."""
        loss, lift = chosen_loss(SURROGATES[self.surrogate], "auto", read_metric(self.metric))
        meant = {"lift": lift, "curvature": loss.curvatures[:1]}
        ours = f"concordant {version('concordant')} {self.ranker(shape, 1).get_params()} {meant}"
        return f"{self.library} {version(self.library)} {ours}"


PEERS = (
    Peer("lightgbm", "lambdarank"),
    Peer("lightgbm", "rank_xendcg"),
    Peer("xgboost", "rank:ndcg"),
    Peer("xgboost", "rank:pairwise"),
    Peer("xgboost", "rank:map"),
    Peer("catboost", "YetiRank"),
    Peer("catboost", "QuerySoftMax"),
    Peer("catboost", "QueryRMSE"),
)

OURS = (  # our candidates for each metric, beside the default of each booster
    ("pairwise", "lightgbm"),
    ("softmax", "lightgbm"),
    ("squared", "lightgbm"),
    ("softmax", "catboost"),
    ("squared", "catboost"),
)


def default_of(metric: str, library: str) -> Boosted:
    """Give what `BoostedRanker` does by default, where a booster has not the loss, too.

    >>> default_of("auc", "lightgbm").surrogate, default_of("auc", "catboost").surrogate
    ('pairwise', 'squared')
    """
    chosen, _ = chosen_loss("auto", "auto", read_metric(metric), BOOSTERS[library].takes)
    return Boosted(metric, next(name for name, one in SURROGATES.items() if one == chosen), library)
