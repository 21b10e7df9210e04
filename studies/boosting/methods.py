"""The methods of `boosting`: the boosters' own objectives, and ours; all give scores stage by stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np

from concordant import BoostedRanker, LinearRanker, RankingData
from concordant._internals import BOOSTERS, chosen_loss, knowingly
from concordant.metrics import metric as read_metric
from concordant.surrogates import Pairwise, Softmax, Squared, Surrogate, squared_hinge
from concordant.types import FloatArray
from studies.boosting.trees import (
    LEAST_ROWS,
    RATE,
    SEED,
    Part,
    Plan,
    Shape,
    options,
    staged_scores,
    train_booster,
)
from studies.shared.linear_paths import decades, fit_along

# Files that decide the result of a training, in the package and here: where one changes, results kept in a
# cache are not used again.
MEASURED = (
    "concordant/_base/segments.py",
    "concordant/metrics/**/*.py",
    "studies/boosting/methods.py",
    "studies/boosting/runs.py",
    "studies/boosting/trees.py",
)
TRAINED = (*MEASURED, "concordant/rankers/recipe.py", "concordant/surrogates/**/*.py")
OF_TREES = (*TRAINED, "concordant/rankers/boosted*.py", "concordant/rankers/boosters/*.py")
OF_LINES = (
    *TRAINED,
    "studies/shared/linear_paths.py",
    "concordant/rankers/linear.py",
    "concordant/rankers/training.py",
    "concordant/solvers/**/*.py",
)

LIBRARIES = {"lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"}
PENALTIES = decades(4, -5)
SURROGATES: Mapping[str, Surrogate] = {
    "pairwise": Pairwise(),
    "pairwise, squared hinge": Pairwise(squared_hinge),
    "softmax": Softmax(),
    "squared": Squared(),
}


class TrainingMethod(Protocol):
    """A way to learn scores that can be looked at along the way."""

    @property
    def name(self) -> str:
        """Name in tables."""

    @property
    def shaped(self) -> bool:
        """True if the method grows trees, whose shape is then chosen."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Patterns of the files that decide its result, as in `MEASURED`."""

    def stages(self, plan: Plan) -> tuple[float, ...]:
        """Numbers of trees, or penalties, among which validation queries choose."""

    def train(self, train: Part, shape: Shape, plan: Plan) -> Any:
        """Train, and return the model: a booster, or weights."""

    def scores(self, model: Any, X: FloatArray, plan: Plan) -> FloatArray:
        """Score the rows at each stage, one row of scores per stage."""

    def recipe(self, shape: Shape) -> str:
        """Library, version and options; another recipe is another training."""


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

    def train(self, train: Part, shape: Shape, plan: Plan) -> Any:
        """Train the library's model."""
        return train_booster(self.library, self.objective, train, shape, plan.trees)

    def scores(self, model: Any, X: FloatArray, plan: Plan) -> FloatArray:
        """Scores after each stage."""
        return staged_scores(self.library, model, X, plan)

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
        """Name with the metric that it is trained for."""
        return f"linear for {self.metric}"

    def stages(self, plan: Plan) -> tuple[float, ...]:
        """Penalties, largest first."""
        del plan
        return tuple(PENALTIES.tolist())

    def ranker(self) -> LinearRanker:
        """Return the ranker; its penalty is set for each fit."""
        return LinearRanker(self.metric)

    def train(self, train: Part, shape: Shape, plan: Plan) -> FloatArray:
        """Weights at each penalty, one row each."""
        del shape, plan
        data = RankingData(train.X, train.y, train.queries.codes)
        path = fit_along(self.ranker(), data, train.queries, PENALTIES)
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
        """Return the ranker: trees of the same shape as the library's own objectives grow, our penalties."""
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

    def train(self, train: Part, shape: Shape, plan: Plan) -> Any:
        """Train the library's model."""
        with knowingly():  # AP has its condition, which is said in the documentation
            fitted = self.ranker(shape, plan.trees).fit(train.X, train.y, qid=train.queries)
        return fitted.booster_

    def scores(self, model: Any, X: FloatArray, plan: Plan) -> FloatArray:
        """Scores after each stage."""
        return staged_scores(self.library, model, X, plan)

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


def default_trees(metric: str, library: str) -> Boosted:
    """Return what `BoostedRanker` does by default, with the surrogate that the booster can use.

    >>> default_trees("auc", "lightgbm").surrogate, default_trees("auc", "catboost").surrogate
    ('pairwise', 'squared')
    """
    default_loss, _ = chosen_loss("auto", "auto", read_metric(metric), BOOSTERS[library].accepts_loss)
    return Boosted(metric, next(name for name, loss in SURROGATES.items() if loss == default_loss), library)
