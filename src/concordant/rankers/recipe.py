"""Which surrogate goes with which metric, and what it is trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from concordant.exceptions import LabelError, ParameterError
from concordant.metrics.comparison import ComparisonMetric
from concordant.metrics.conditions import Family
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.metrics.standardization import usable_targets
from concordant.rankers.claim import Claim, claimed, label_space
from concordant.supervision.columns import check_lengths
from concordant.supervision.labels import Grades, Permutations
from concordant.supervision.queries import Queries
from concordant.surrogates import ListwiseHinge, Pairwise, Softmax, Squared, Surrogate, surrogate
from concordant.types import FloatArray

__all__ = ["AUTO", "chosen_surrogate", "listwise_hinge", "training_labels"]

# By measurement: `python -m benchmarks choice` trains every surrogate for every metric on the LETOR sets, the
# penalty chosen on validation queries; its tables stand in benchmarks/results/choice.md. The differences are
# small: within two percent, and on synthetic preferences and orders below the noise.
AUTO: Mapping[str, Surrogate] = {
    "dcg": Softmax(),
    "ndcg": Softmax(),
    "err": Squared(),
    "ap": Softmax(),
    "p": Softmax(),
    "rr": Squared(),
    "eru": Softmax(),
    "auc": Pairwise(),
    "pd": Pairwise(),
    "wpd": Softmax(),
    "zero_one": Squared(),
}
OTHERWISE = Softmax()


def listwise_hinge(metric: str | Metric, mode: str = "max", temperature: float = 1.0) -> ListwiseHinge:
    """Give the listwise hinge of a metric, or of its name: `concordant.surrogates.ListwiseHinge`.

    >>> listwise_hinge("ndcg@10").mode
    'max'
    """
    return ListwiseHinge(read_metric(metric), mode, temperature)


def chosen_surrogate(name: str | Surrogate, metric: Metric) -> Surrogate:
    """Give the surrogate, or the one that measured best for the metric where it is left open."""
    if isinstance(metric, ComparisonMetric):
        raise ParameterError("metric", str(metric), "one of rankings; give outcomes as Preferences, with pd")
    if isinstance(name, str) and name == "auto":
        return AUTO.get(metric.name, OTHERWISE)
    return surrogate(name)


def training_labels(
    metric: Metric,
    loss: Surrogate,
    y: Any,
    queries: Queries,
    assume: str | None,
    f: Family | None = None,
) -> tuple[FloatArray, Claim]:
    """Give what the surrogate reads, by sorted row, and what is known of training on it."""
    read: Callable[[Any, Surrogate], Any] | None = {"grades": graded, "positions": permuted}.get(loss.reads)
    labels = metric.read_labels(y) if read is None else read(y, loss)
    check_lengths("X", queries.n_rows, y=labels)
    if f is not None and read is not None:
        raise ParameterError("f", f, f"left out: {loss.name} reads the labels, not their standardization")
    claim = claimed(metric, loss, "sort", label_space(metric, loss, labels, queries), assume)
    if loss.reads == "grades":
        order = isinstance(labels, Permutations)
        return labels.grades(queries) if order else queries.gather(labels.values), claim
    if loss.reads == "positions":
        return labels.grouped(queries).astype(float), claim
    return usable_targets(metric, labels, queries, assume, f)[0], claim


def graded(y: Any, loss: Surrogate) -> Grades | Permutations:
    """Grades, for the surrogates that compare them; or an order, where only that counts."""
    if loss.ordinal and isinstance(y, Permutations):
        return y
    if type(y).__name__ in ("Preferences", "Permutations"):
        raise LabelError(f"{loss.name} reads grades, not {type(y).__name__}", "pass one grade per row.")
    return y if isinstance(y, Grades) else Grades.passing(y)


def permuted(y: Any, loss: Surrogate) -> Permutations:
    """Permutations, for the likelihood of an order."""
    if not isinstance(y, Permutations):
        hint = "wrap positions (1 is best): Permutations(positions)."
        raise LabelError(f"{loss.name} reads Permutations, not {type(y).__name__}", hint)
    return y
