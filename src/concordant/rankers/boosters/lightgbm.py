"""LightGBM, called with gradients and curvatures of our losses."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar

import numpy as np

from concordant.exceptions import UnknownNameError
from concordant.rankers.boosters.booster import Booster, BoostingMonitor, TrainingFacts, TreeData, Trees
from concordant.types import FloatArray

MOST_LEAVES = 131_072
LEAST_CURVATURE = 1e-3  # of a leaf, counted in rows: keeps steps finite
DRAWN = {  # parameters that make rounds differ at equal scores
    "bagging_fraction", "bagging_freq", "pos_bagging_fraction", "neg_bagging_fraction", "bagging_by_query",
    "feature_fraction", "feature_fraction_bynode", "extra_trees", "data_sample_strategy",
    "use_quantized_grad",
}  # fmt: skip


class LightGBM(Booster):
    """LightGBM: grows leaf by leaf; absent entries of sparse features are 0."""

    name: ClassVar[str] = "lightgbm"
    reserved_params: ClassVar = {
        "objective": "surrogate names the loss",
        "metric": "metric is a parameter of the ranker",
        "num_iterations": "n_estimators is a parameter of the ranker",
        "early_stopping_round": "early_stopping is a parameter of the ranker",
        "boosting": "trees are added and never changed",
        "monotone_constraints": "monotonic_cst is a parameter of the ranker",
        "categorical_feature": "categorical_features is a parameter of the ranker",
        "num_class": "a row has one score",
    }

    @staticmethod
    def set_threads(number: int) -> None:
        """Limit LightGBM's OpenMP threads; versions before 4.2 have no limit."""
        from lightgbm.basic import _LIB

        with suppress(AttributeError):
            _LIB.LGBM_SetMaxThreads(number)

    def _library_params(self, trees: Trees, data: TrainingFacts) -> dict[str, Any]:
        depth, leaves, row = trees.max_depth, trees.max_leaf_nodes, data.unit * self.scale(data)
        if leaves is None:
            leaves = MOST_LEAVES if depth is None else min(2**depth, MOST_LEAVES)
        params = {
            "learning_rate": trees.learning_rate,
            "num_leaves": leaves,
            "max_depth": -1 if depth is None else depth,
            "min_data_in_leaf": trees.min_samples_leaf,
            "min_sum_hessian_in_leaf": LEAST_CURVATURE * row,
            "lambda_l2": trees.l2 * row,
            "bagging_fraction": trees.subsample,
            "bagging_freq": int(trees.subsample < 1.0),
            "feature_fraction": trees.colsample,
            "feature_pre_filter": False,
            "seed": trees.seed,
            "deterministic": True,
            "force_col_wise": True,  # sums do not depend on threads; else LightGBM times both ways
            "num_threads": trees.n_jobs or 0,
            "verbosity": -1,
        }
        return params | ({"monotone_constraints": list(trees.monotonic)} if any(trees.monotonic) else {})

    def is_random(self, trees: Trees) -> bool:
        """True if a round may draw better than the last; LightGBM keeps no tree without a split."""
        return super().is_random(trees) or any(self.find_aliases(name) & DRAWN for name in trees.params)

    def find_aliases(self, name: str) -> set[str]:
        """Return all names of a parameter; raise for unknown names, which LightGBM would ignore."""
        aliases = self.library().basic._ConfigAliases  # noqa: SLF001  nothing public lists them
        names, table = set(aliases.get_by_alias(name)), aliases.aliases
        if name not in table and names == {name}:
            raise UnknownNameError("parameter of LightGBM", name, set().union(*table.values()))
        if name == "force_row_wise":  # LightGBM allows only one of them
            names = names | {"force_col_wise"}
        return names

    def grow(self, trees: Trees, data: TreeData, monitor: BoostingMonitor, start: Any = None) -> Any:
        """Grow trees by `lightgbm.train`."""
        library = self.library()
        objective = data.objective(monitor, self.scale(data))
        settings = self.settings(trees, data) | {"objective": objective, "metric": "None"}
        names = {"feature_name": list(trees.names) or "auto", "categorical_feature": list(trees.categorical)}
        columns = {"free_raw_data": False, "label": data.labels, "group": np.diff(data.offsets)}
        train = library.Dataset(data.X, **names, **columns)
        datasets = [train]
        if (held_out := data.heldout_features) is not None:
            datasets.append(train.create_valid(held_out, label=np.zeros(held_out.shape[0])))

        def score_rows(scores: FloatArray, rows: Any) -> tuple[str, float, bool]:
            if rows is train:
                monitor.train_scores = scores  # the next gradient needs them anyway
                return "score", 0.0, True
            return "score", monitor.score(scores), True

        def end_round(env: Any) -> None:
            if monitor.record_round(env.model.current_iteration()):
                raise library.callback.EarlyStopException(env.iteration, [])

        rounds = trees.n_estimators - (0 if start is None else self.n_trees(start))
        options = {"valid_sets": datasets, "feval": score_rows, "init_model": start, "callbacks": [end_round]}
        try:
            model = library.train(settings, train, rounds, **options)
        except library.basic.LightGBMError as error:
            if "num_features" in str(error):  # no feature has two bins
                return None
            raise
        model.best_iteration = -1  # predict with all trees
        return model

    def scores(self, model: Any, X: Any, trees: Trees) -> FloatArray:
        """Return raw scores."""
        scores: FloatArray = model.predict(X, raw_score=True, num_threads=trees.n_jobs or 0)
        return scores

    def gains(self, model: Any, n_features: int) -> FloatArray:
        """Return the summed gain of each feature's splits."""
        del n_features
        gains: FloatArray = model.feature_importance("gain")
        return gains

    def n_trees(self, model: Any) -> int:
        """Return the number of trees."""
        return int(model.current_iteration())

    def to_bytes(self, model: Any) -> bytes:
        """Serialize the model as LightGBM's text format."""
        return str(model.model_to_string(num_iteration=-1)).encode()

    def from_bytes(self, contents: bytes) -> Any:
        """Load a model from text."""
        return self.library().Booster(model_str=contents.decode())

    def cut(self, model: Any, n_trees: int) -> Any:
        """Load the first trees from the model's text."""
        return self.library().Booster(model_str=model.model_to_string(num_iteration=n_trees))
