"""Boosting plan: the metric that trees are trained for, the loss, and the kind of its curvature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant._base.validate import (
    INT32_MAX,
    check_choice,
    check_number,
    check_share,
    check_whole,
    is_whole,
    list_words,
)
from concordant.data.queries import Queries
from concordant.exceptions import GradeError, ParameterError
from concordant.metrics.metric import Family, Metric, check_assumption
from concordant.metrics.parse import metric as read_metric
from concordant.rankers.guarantee import Guarantee
from concordant.rankers.recipe import choose_for_trees, lift_targets, training_labels
from concordant.surrogates import Loss, Squared, Surrogate
from concordant.types import ArrayLike, FloatArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Parameters of `BoostedRanker`, checked before any work.

WHOLE = {  # name -> least value, whether None is allowed
    "n_estimators": (1, False),
    "max_leaf_nodes": (2, True),
    "max_depth": (1, True),
    "min_samples_leaf": (1, False),
    "early_stopping": (1, True),
}
REAL = ("learning_rate", "l2", "subsample", "colsample")
UNSAFE = frozenset(" \t\n\"',:[]{}<>")  # characters that some library does not allow in feature names


def check_parameters(params: Mapping[str, Any]) -> None:
    """Raise if a parameter is out of range."""
    for name, (least, optional) in WHOLE.items():
        value = params[name]
        if not (optional and value is None):
            check_whole(name, value, least, INT32_MAX, also="None" * optional)
    jobs = params["n_jobs"]
    if jobs is not None and not is_whole(jobs, -1, -1):
        check_whole("n_jobs", jobs, 1, INT32_MAX, also="None (-1 and None leave it to the library)")
    check_number("learning_rate", params["learning_rate"], above=0.0)
    check_number("l2", params["l2"], least=0.0)
    check_number("subsample", params["subsample"], above=0.0, most=1.0)
    check_number("colsample", params["colsample"], above=0.0, most=1.0)
    check_share("validation_fraction", params["validation_fraction"], 0.1)
    if params["callback"] is not None and not callable(params["callback"]):
        raise ParameterError("callback", params["callback"], "a function that takes a Round, or None")
    if params["params"] is not None and not isinstance(params["params"], Mapping):
        raise ParameterError("params", params["params"], "a dict of the library's parameters or None")


def draw_seed(random_state: Any) -> int:
    """Return a seed that every library accepts.

    >>> draw_seed(0) == draw_seed(0) != draw_seed(1)
    True
    """
    return int(np.random.default_rng(random_state).integers(2**31))


def safe_names(names: list[str]) -> tuple[str, ...]:
    """Return the feature names if every library accepts them, else none.

    >>> safe_names(["bm25", "length"]), safe_names(["a b"]), safe_names(["a", "a"])
    (('bm25', 'length'), (), ())
    """
    safe = len(set(names)) == len(names) and not any(UNSAFE & set(name) or not name for name in names)
    return tuple(names) if safe and all(name.isascii() for name in names) else ()


Slopes = tuple["NDArray[np.float32]", "NDArray[np.float32]"]
"""Gradient and curvature of each row, in single precision as tree libraries read them."""

KINDS = ("auto", "exact", "majorising")
LARGEST = 1e15  # label: its square fits into single precision, in which libraries keep gains


@dataclass(frozen=True)
class BoostingPlan:
    """Metric, loss and curvature of a boosted ranker."""

    metric: Metric  # to optimize
    surrogate: Surrogate  # the loss that is minimised
    curvature: str  # kind of `Loss.curvature`
    lift: float = 0.0  # constant added to all targets of a query, as a share of the highest
    assume: str | None = None  # as for `concordant.standardize`, as is `f`
    f: Family | None = None

    @classmethod
    def from_names(
        cls,
        metric: Any,
        surrogate: Any = "auto",
        curvature: str = "auto",
        lift: float | str = "auto",
        assume: str | None = None,
        f: Family | None = None,
        accepts_loss: Callable[[Surrogate], bool] | None = None,
    ) -> BoostingPlan:
        """Parse names, and check that trees can be trained with them; `accepts_loss`: see `chosen_loss`.

        >>> BoostingPlan.from_names("ndcg@10", "squared").curvature
        'exact'
        """
        check_assumption(assume, f)
        parsed_metric = read_metric(metric)
        loss, height = chosen_loss(surrogate, lift, parsed_metric, accepts_loss)
        return cls(parsed_metric, loss, _resolve_curvature(loss, curvature), height, assume, f)

    def labels(self, y: Any, queries: Queries) -> tuple[FloatArray, Guarantee]:
        """Return the labels that the surrogate reads, by sorted row, and the guarantee of training."""
        return training_labels(self.metric, self.surrogate, y, queries, self.assume, self.f)

    def weigh_and_lift(
        self, labels: FloatArray, weights: FloatArray | None, queries: Queries
    ) -> tuple[FloatArray, FloatArray]:
        """Lift the labels; return them with the row weights that the loss still has to apply.

        Losses that are linear in the targets treat a weight as a factor of the target. It is applied before
        the lift, which would otherwise be larger for rows of larger weight, and change their order.
        """
        if weights is None:
            weights = np.ones(len(labels))
        elif self.surrogate.weighs == "targets":
            labels, weights = labels * weights, np.ones(len(labels))
        if (large := np.abs(labels * weights) > LARGEST).any():
            first = int(np.argmax(large))
            row, value = int(queries.order[first]), float(labels[first] * weights[first])
            where, hint = f"row {row}, standardized and weighed,", "for raw counts use gain='linear'."
            raise GradeError(value, where, "is too large for the single precision of boosters", hint).at(row)
        return lift_targets(labels, queries.offsets, self.lift), weights


def chosen_loss(
    name: str | Surrogate,
    lift: float | str,
    metric: Metric,
    accepts_loss: Callable[[Surrogate], bool] | None = None,
) -> tuple[Surrogate, float]:
    """Return surrogate and lift; if the library lacks the surrogate behind "auto", use the squared loss.

    `accepts_loss` tells which losses the library has; None: all.

    >>> from concordant import metric
    >>> from concordant.surrogates import Softmax
    >>> chosen_loss("auto", "auto", metric("auc"), lambda loss: loss in (Squared(), Softmax()))
    (Squared(centred=True), 0.0)
    """
    loss, height = choose_for_trees(name, lift, metric)
    if accepts_loss is None or accepts_loss(loss) or not (isinstance(name, str) and name == "auto"):
        return loss, height
    return choose_for_trees(Squared(), lift, metric)


def _resolve_curvature(loss: Surrogate, kind: str) -> str:
    check_choice("curvature", kind, KINDS)
    if not loss.curvatures:
        raise ParameterError.because(
            f"surrogate {loss} has no second derivative or bound of one, which boosted trees need. Choose a "
            "smooth surrogate."
        )
    if kind == "auto":
        return loss.curvatures[0]
    if kind not in loss.curvatures:
        available = list_words(map(repr, ("auto", *loss.curvatures)))
        raise ParameterError("curvature", kind, f"{available} for {loss}")
    return kind


def slopes(loss: Loss, scores: ArrayLike, kind: str, scale: float = 1.0) -> tuple[float, Slopes]:
    """Return the summed loss, and its gradient and curvature times `scale`, which leaves steps unchanged."""
    values, grad = loss.value_and_grad(scores)
    curvature = loss.curvature(scores, kind, grad)
    return float(values.sum()), ((scale * grad).astype(np.float32), (scale * curvature).astype(np.float32))
