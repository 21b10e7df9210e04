"""XGBoost, told gradients and curvatures of our losses."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from concordant.rankers.boosters.booster import Booster, Data, Measured, Trees, power_of_two
from concordant.rankers.boosters.watch import Watch
from concordant.types import FloatArray

__all__ = ["XGBoost"]

ALIASES = (  # names of one parameter each
    {"learning_rate", "eta"},
    {"reg_lambda", "lambda"},
    {"nthread", "n_jobs"},
    {"seed", "random_state"},
    {"num_boost_round", "n_estimators"},
)
GAINED = 1e3  # by so many rows, at least 1: XGBoost makes no split that gains less than 1e-6
DEEP = 6  # its own choice
HEAVIEST = 1e30  # curvature of a row that single precision can add up


class XGBoost(Booster):
    """Leaf by leaf. It counts no rows in a leaf, but curvature; and reads absent entries as missing."""

    name: ClassVar[str] = "xgboost"
    own: ClassVar = {
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

    def scale(self, data: Measured) -> float:
        """Make curvatures larger where the labels are so small that no split would gain enough."""
        faint = GAINED * data.gain
        if not 0.0 < faint < data.unit:
            return super().scale(data)
        return power_of_two(min(1.0 / faint, HEAVIEST / data.unit))

    def chosen(self, trees: Trees, data: Measured) -> dict[str, Any]:
        """Give XGBoost's names."""
        row = data.unit * self.scale(data)
        chosen = {
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
        if trees.params.get("tree_method") == "exact":  # which grows level by level, and to some depth
            levels = DEEP if trees.max_leaf_nodes is None else (trees.max_leaf_nodes - 1).bit_length()
            chosen |= {"grow_policy": "depthwise", "max_leaves": 0, "max_depth": trees.max_depth or levels}
        if trees.n_jobs is not None:
            chosen["nthread"] = trees.n_jobs
        return chosen | ({"monotone_constraints": tuple(trees.monotonic)} if any(trees.monotonic) else {})

    def names_of(self, name: str) -> set[str]:
        """Give all names of a parameter."""
        return next((names for names in ALIASES if name in names), {name})

    def matrix(self, X: Any, trees: Trees, reference: Any = None) -> Any:
        """Give the library's form of the features: of held-out rows in the bins of the training ones."""
        kinds = ["c" if number in trees.categorical else "q" for number in range(X.shape[1])]
        given = {"feature_types": kinds, "enable_categorical": True, "nthread": trees.n_jobs}
        given["feature_names"] = list(trees.names) or None
        if trees.params.get("tree_method", "hist") != "hist":
            return self.library().DMatrix(dense(X), **given)
        bins = int(trees.params.get("max_bin", 256))
        return self.library().QuantileDMatrix(dense(X), ref=reference, max_bin=bins, **given)

    def grow(self, trees: Trees, data: Data, watch: Watch, start: Any = None) -> Any:
        """Through `xgboost.train`."""
        library = self.library()
        train = self.matrix(data.X, trees)
        held = [] if data.held is None else [(self.matrix(data.held, trees, train), "held")]

        def scored(scores: FloatArray, valid: Any) -> tuple[str, float]:
            del valid
            return "score", watch.score(scores)

        class Told(library.callback.TrainingCallback):  # type: ignore[misc, name-defined]
            def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
                del epoch, evals_log
                return watch.told(model.num_boosted_rounds())

        model = library.train(
            self.settings(trees, data),
            train,
            trees.n_estimators - (0 if start is None else self.n_trees(start)),
            evals=held,
            obj=data.objective(watch, self.scale(data)),
            custom_metric=scored,
            verbose_eval=False,
            xgb_model=start,
            callbacks=[Told()],
        )
        watch.trained = model.predict(train, output_margin=True)  # remembered there
        return model

    def scores(self, model: Any, X: Any, trees: Trees) -> FloatArray:
        """Raw scores."""
        del trees
        found = model.inplace_predict(dense(X), predict_type="margin", validate_features=False)
        return np.asarray(found, dtype=np.float64)

    def gains(self, model: Any, n_features: int) -> FloatArray:
        """Sum of the gains of a feature's splits."""
        names = model.feature_names or [f"f{number}" for number in range(n_features)]
        found = model.get_score(importance_type="total_gain")
        return np.array([found.get(name, 0.0) for name in names])

    def n_trees(self, model: Any) -> int:
        """Count the trees."""
        return int(model.num_boosted_rounds())

    def written(self, model: Any) -> bytes:
        """As binary JSON."""
        return bytes(model.save_raw("ubj"))

    def read(self, contents: bytes) -> Any:
        """Read binary JSON."""
        model = self.library().Booster()
        model.load_model(bytearray(contents))
        return model

    def cut(self, model: Any, n_trees: int) -> Any:
        """Give a slice."""
        return model[:n_trees]


def dense(X: Any) -> Any:
    """Write absent entries out: XGBoost would read them as missing."""
    return X.toarray() if hasattr(X, "toarray") else X
