"""LightGBM, told gradients and curvatures of our losses."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from concordant.exceptions import UnknownNameError
from concordant.rankers.boosters.booster import Booster, Data, Measured, Trees
from concordant.rankers.boosters.watch import Watch
from concordant.types import FloatArray

__all__ = ["LightGBM"]

MOST_LEAVES = 131_072
LEAST_CURVATURE = 1e-3  # of a leaf, in rows: keeps steps finite
DRAWN = {  # parameters by which rounds differ though scores are the same
    "bagging_fraction", "bagging_freq", "pos_bagging_fraction", "neg_bagging_fraction", "bagging_by_query",
    "feature_fraction", "feature_fraction_bynode", "extra_trees", "data_sample_strategy",
    "use_quantized_grad",
}  # fmt: skip


class LightGBM(Booster):
    """Leaf by leaf; absent entries of sparse features are 0."""

    name: ClassVar[str] = "lightgbm"
    own: ClassVar = {
        "objective": "surrogate names the loss",
        "metric": "metric is a parameter of the ranker",
        "num_iterations": "n_estimators is a parameter of the ranker",
        "early_stopping_round": "early_stopping is a parameter of the ranker",
        "boosting": "trees are added and never changed",
        "monotone_constraints": "monotonic_cst is a parameter of the ranker",
        "categorical_feature": "categorical_features is a parameter of the ranker",
        "num_class": "a row has one score",
    }

    def chosen(self, trees: Trees, data: Measured) -> dict[str, Any]:
        """Give LightGBM's names."""
        depth, leaves, row = trees.max_depth, trees.max_leaf_nodes, data.unit * self.scale(data)
        if leaves is None:
            leaves = MOST_LEAVES if depth is None else min(2**depth, MOST_LEAVES)
        chosen = {
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
            "force_col_wise": True,  # sums do not depend on threads; else the faster way is found by trying
            "num_threads": trees.n_jobs or 0,
            "verbosity": -1,
        }
        return chosen | ({"monotone_constraints": list(trees.monotonic)} if any(trees.monotonic) else {})

    def draws(self, trees: Trees) -> bool:
        """It keeps no tree without a split; the next round may draw better."""
        return super().draws(trees) or any(self.names_of(name) & DRAWN for name in trees.params)

    def names_of(self, name: str) -> set[str]:
        """Give all names of a parameter; refuse an unknown one, which LightGBM would pass over."""
        aliases = self.library().basic._ConfigAliases  # noqa: SLF001  nothing public lists them
        known, table = set(aliases.get_by_alias(name)), aliases.aliases
        if name not in table and known == {name}:
            raise UnknownNameError(
                "parameter of LightGBM", name, {one for many in table.values() for one in many}
            )
        if name == "force_row_wise":  # LightGBM does one or the other
            known = known | {"force_col_wise"}
        return known

    def grow(self, trees: Trees, data: Data, watch: Watch, start: Any = None) -> Any:
        """Through `lightgbm.train`."""
        library = self.library()
        told_by = data.objective(watch, self.scale(data))
        settings = self.settings(trees, data) | {"objective": told_by, "metric": "None"}
        names = {"feature_name": list(trees.names) or "auto", "categorical_feature": list(trees.categorical)}
        kept = {"free_raw_data": False, "label": data.labels, "group": np.diff(data.offsets)}
        train = library.Dataset(data.X, **names, **kept)
        sets = [train]
        if data.held is not None:
            sets.append(train.create_valid(data.held, label=np.zeros(data.held.shape[0])))

        def scored(scores: FloatArray, rows: Any) -> tuple[str, float, bool]:
            if rows is train:
                watch.trained = scores  # which the next gradient needs anyway
                return "score", 0.0, True
            return "score", watch.score(scores), True

        def told(env: Any) -> None:
            if watch.told(env.model.current_iteration()):
                raise library.callback.EarlyStopException(env.iteration, [])

        rounds = trees.n_estimators - (0 if start is None else self.n_trees(start))
        given = {"valid_sets": sets, "feval": scored, "init_model": start, "callbacks": [told]}
        try:
            model = library.train(settings, train, rounds, **given)
        except library.basic.LightGBMError as error:
            if "num_features" in str(error):  # none has two bins
                return None
            raise
        model.best_iteration = -1  # all of its trees predict
        return model

    def scores(self, model: Any, X: Any, trees: Trees) -> FloatArray:
        """Raw scores."""
        found: FloatArray = model.predict(X, raw_score=True, num_threads=trees.n_jobs or 0)
        return found

    def gains(self, model: Any, n_features: int) -> FloatArray:
        """Sum of the gains of a feature's splits."""
        del n_features
        found: FloatArray = model.feature_importance("gain")
        return found

    def n_trees(self, model: Any) -> int:
        """Count the trees."""
        return int(model.current_iteration())

    def written(self, model: Any) -> bytes:
        """As text."""
        return str(model.model_to_string(num_iteration=-1)).encode()

    def read(self, contents: bytes) -> Any:
        """Read the text."""
        return self.library().Booster(model_str=contents.decode())

    def cut(self, model: Any, n_trees: int) -> Any:
        """Read the first trees back."""
        return self.library().Booster(model_str=model.model_to_string(num_iteration=n_trees))
