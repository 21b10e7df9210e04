"""XGBoost, called with gradients and curvatures of our losses."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from concordant.rankers.boosters.booster import (
    Booster,
    BoostingMonitor,
    TrainingFacts,
    TreeData,
    Trees,
    power_of_two,
)
from concordant.types import FloatArray

GAINED = 1e3  # rows that together gain at least 1: XGBoost makes no split that gains less than 1e-6
DEEP = 6  # XGBoost's default depth
HEAVIEST = 1e30  # curvature of a row that single precision can add up


class XGBoost(Booster):
    """XGBoost: grows leaf by leaf, measures leaves by curvature, reads absent entries as missing."""

    name: ClassVar[str] = "xgboost"
    aliases: ClassVar = (
        {"learning_rate", "eta"},
        {"reg_lambda", "lambda"},
        {"nthread", "n_jobs"},
        {"seed", "random_state"},
        {"num_boost_round", "n_estimators"},
    )
    reserved_params: ClassVar = {
        "objective": "surrogate names the loss",
        "eval_metric": "metric is a parameter of the ranker",
        "disable_default_eval_metric": "metric is a parameter of the ranker",
        "num_boost_round": "n_estimators is a parameter of the ranker",
        "early_stopping_rounds": "early_stopping is a parameter of the ranker",
        "booster": "trees are added and never changed",
        "monotone_constraints": "monotonic_cst is a parameter of the ranker",
        "base_score": "scores begin at 0",
        "num_class": "a row has one score",
        "process_type": "trees are added and never changed",
    }

    def scale(self, data: TrainingFacts) -> float:
        """Scale curvatures up if the labels are so small that no split would gain enough."""
        faint_gain = GAINED * data.gain
        if not 0.0 < faint_gain < data.unit:
            return super().scale(data)
        return power_of_two(min(1.0 / faint_gain, HEAVIEST / data.unit))

    def _library_params(self, trees: Trees, data: TrainingFacts) -> dict[str, Any]:
        row = data.unit * self.scale(data)
        params = {
            "learning_rate": trees.learning_rate,
            "tree_method": "hist",
            "grow_policy": "depthwise" if trees.max_leaf_nodes is None else "lossguide",
            "max_leaves": trees.max_leaf_nodes or 0,
            "max_depth": trees.max_depth or 0,
            "min_child_weight": trees.min_samples_leaf * row,
            "reg_lambda": trees.l2 * row,
            "subsample": trees.subsample,
            "colsample_bytree": trees.colsample,
            "seed": trees.seed,
            "base_score": 0.0,
            "disable_default_eval_metric": True,
        }
        if trees.params.get("tree_method") == "exact":  # grows level by level, to a limited depth
            levels = DEEP if trees.max_leaf_nodes is None else (trees.max_leaf_nodes - 1).bit_length()
            params |= {"grow_policy": "depthwise", "max_leaves": 0, "max_depth": trees.max_depth or levels}
        if trees.n_jobs is not None:
            params["nthread"] = trees.n_jobs
        return params | ({"monotone_constraints": tuple(trees.monotonic)} if any(trees.monotonic) else {})

    def matrix(self, X: Any, trees: Trees, reference: Any = None) -> Any:
        """Convert features to XGBoost's matrix; held-out rows use the bins of `reference`."""
        kinds = ["c" if number in trees.categorical else "q" for number in range(X.shape[1])]
        options = {"feature_types": kinds, "enable_categorical": True, "nthread": trees.n_jobs}
        options["feature_names"] = list(trees.names) or None
        if trees.params.get("tree_method", "hist") != "hist":
            return self.library().DMatrix(dense(X), **options)
        bins = int(trees.params.get("max_bin", 256))
        return self.library().QuantileDMatrix(dense(X), ref=reference, max_bin=bins, **options)

    def grow(self, trees: Trees, data: TreeData, monitor: BoostingMonitor, start: Any = None) -> Any:
        """Grow trees by `xgboost.train`."""
        library = self.library()
        train = self.matrix(data.X, trees)
        evals = []
        if data.heldout_features is not None:
            evals.append((self.matrix(data.heldout_features, trees, train), "held"))

        def score_rows(scores: FloatArray, valid: Any) -> tuple[str, float]:
            del valid
            return "score", monitor.score(scores)

        class RoundCallback(library.callback.TrainingCallback):  # type: ignore[misc, name-defined]
            def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
                del epoch, evals_log
                return monitor.record_round(model.num_boosted_rounds())

        model = library.train(
            self.settings(trees, data),
            train,
            trees.n_estimators - (0 if start is None else self.n_trees(start)),
            evals=evals,
            obj=data.objective(monitor, self.scale(data)),
            custom_metric=score_rows,
            verbose_eval=False,
            xgb_model=start,
            callbacks=[RoundCallback()],
        )
        monitor.train_scores = model.predict(train, output_margin=True)  # cached in XGBoost
        return model

    def scores(self, model: Any, X: Any, trees: Trees) -> FloatArray:
        """Return raw scores."""
        del trees
        scores = model.inplace_predict(dense(X), predict_type="margin", validate_features=False)
        return np.asarray(scores, dtype=np.float64)

    def gains(self, model: Any, n_features: int) -> FloatArray:
        """Return the summed gain of each feature's splits."""
        names = model.feature_names or [f"f{number}" for number in range(n_features)]
        gains = model.get_score(importance_type="total_gain")
        return np.array([gains.get(name, 0.0) for name in names])

    def n_trees(self, model: Any) -> int:
        """Return the number of trees."""
        return int(model.num_boosted_rounds())

    def to_bytes(self, model: Any) -> bytes:
        """Serialize the model as binary JSON."""
        return bytes(model.save_raw("ubj"))

    def from_bytes(self, contents: bytes) -> Any:
        """Load a model from binary JSON."""
        model = self.library().Booster()
        model.load_model(bytearray(contents))
        return model

    def cut(self, model: Any, n_trees: int) -> Any:
        """Return the model's first trees."""
        return model[:n_trees]


def dense(X: Any) -> Any:
    """Return a dense array, since XGBoost would read absent entries as missing."""
    return X.toarray() if hasattr(X, "toarray") else X
