"""Which surrogate goes with which metric, and what it is trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from concordant._numbers import as_double
from concordant._segments import segment_reduce
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
from concordant.types import FloatArray, IntArray

__all__ = [
    "AUTO",
    "TREES",
    "chosen_for_trees",
    "chosen_surrogate",
    "lifted",
    "listwise_hinge",
    "training_labels",
]

# By measurement: `python -m benchmarks choice` trains every surrogate for every metric on the LETOR sets, the
# penalty chosen on validation queries; its tables, of test queries, are in benchmarks/results/choice.md. The
# differences are small: within two percent, and on synthetic preferences and orders below the noise.
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
# What boosted trees minimise, and the lift of its targets. By validation queries of LETOR sets: `python -m
# benchmarks tree_choice`, whose tables stand in benchmarks/results/tree_choice.md, and `concordant reproduce
# boosting`. Squared and lifted softmax are ahead there; but for ap the differences between the two are below
# the noise. A linear function hardly follows single queries, trees do: the lift holds them back.
TREES: Mapping[str, tuple[Surrogate, float]] = {
    "dcg": (Squared(), 0.0),
    "p": (Squared(), 0.0),
    "err": (Squared(), 0.0),
    "rr": (Squared(), 0.0),
    "auc": (Pairwise(), 0.0),
    "pd": (Pairwise(), 0.0),
    "zero_one": (Squared(), 0.0),
}
OF_TREES = Softmax(), 1.0

HIGHEST = 1e6  # of a lift: far above it single precision cannot tell targets apart


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


def chosen_for_trees(name: str | Surrogate, lift: float | str, metric: Metric) -> tuple[Surrogate, float]:
    """Give the surrogate and the lift for boosted trees; where "auto", those of `TREES`.

    >>> from concordant import metric
    >>> chosen_for_trees("auto", "auto", metric("ap")), chosen_for_trees("pairwise", "auto", metric("ap"))[1]
    ((Softmax(), 1.0), 0.0)
    """
    chosen = chosen_surrogate(name, metric)
    best, height = TREES.get(metric.name, OF_TREES)
    chosen = best if isinstance(name, str) and name == "auto" else chosen
    if not (isinstance(lift, str) and lift == "auto"):
        return chosen, check_lift(lift, chosen)
    return chosen, height if chosen == best else 1.0 * isinstance(chosen, Softmax)


def check_lift(lift: Any, loss: Surrogate) -> float:
    """Refuse what no targets can be lifted by."""
    if isinstance(lift, (bool, np.bool_)) or not 0.0 <= as_double(lift) <= HIGHEST:
        raise ParameterError("lift", lift, f"a number from 0 to {HIGHEST:g}, or 'auto'")
    if lift and loss.reads != "targets":
        raise ParameterError("lift", lift, f"0 for {loss.name}, which reads {loss.reads}, not targets")
    return float(lift)


def lifted(targets: FloatArray, offsets: IntArray, lift: float) -> FloatArray:
    """Add `lift` times the highest target of each query to all of its targets.

    What expected targets are compared by stays as it was: every item of a query gets the same. So a loss that
    follows expected targets is consistent with lifted ones, too, and softmax then never sends a score to
    minus infinity.

    >>> lifted(np.array([1.0, 0.0, 2.0]), np.array([0, 2, 3]), 0.5).tolist()
    [1.5, 0.5, 3.0]
    """
    highest = segment_reduce(np.maximum, targets, offsets)
    return targets + lift * np.repeat(np.maximum(highest, 0.0), np.diff(offsets)) if lift else targets


def training_labels(
    metric: Metric,
    loss: Surrogate,
    y: Any,
    queries: Queries,
    assume: str | None,
    f: Family | None = None,
    *,
    every: bool = True,
) -> tuple[FloatArray, Claim]:
    """Give what the surrogate reads, by sorted row, and what is known of training on it.

    `every` is that of `usable_targets`.
    """
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
    return usable_targets(metric, labels, queries, assume, f, every=every)[0], claim


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
